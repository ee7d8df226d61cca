/* The end of a line whose time is up: killed, then looked for from outside. What the container
 * itself says of it does not count: its guest may have a hand in that.
 *
 *   killed --exited--> (dead) --kernel_look--> looks --nothing left--> over
 *     |                                        |  ^-- something: again, until the time is up
 *     +--time is up: the place goes            +--time is up: the place goes
 */
#include "kernel-bridge/kernel_limit.h"
#include "kernel-bridge/kernel_place.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>

#define AGAIN_MS	50
#define CLEAN_BESIDE_MS 10000 /* where others would lose their container */

#define GOES_TOO                                                                                   \
	"another kernel of its container could not be ended cleanly, so the container was removed"

struct ending {
	struct kernel *kernel;
	unsigned line;
	struct timer timer;
	uint64_t until_ms;
	void (*cb)(void *data, const struct err *left); /* NULL: nobody asked yet */
	void *data;
};

static void on_timer(struct timer *t);

static unsigned clean_ms(const struct kernel *k)
{
	return k->place && kernel_place_is_shared(k->place) ? CLEAN_BESIDE_MS : KERNEL_CLEAN_MS;
}

static struct ending *begin(struct kernel *k)
{
	struct ending *e = xcalloc(1, sizeof(*e));

	e->kernel = k;
	e->line = k->line;
	e->until_ms = clock_now_ms(kernel_clock(k)) + clean_ms(k);
	timer_init(&e->timer, on_timer);
	k->ending = e;
	return e;
}

static void ending_free(struct ending *e)
{
	timer_stop(kernel_clock(e->kernel), &e->timer);
	kernel_place_look_cancel(e->kernel);
	e->kernel->ending = NULL;
	free(e);
}

void kernel_limit_cancel(struct kernel *k, int code, const char *why)
{
	struct ending *e = k->ending;
	struct err err;

	if (!e)
		return;
	err_set(&err, code, "%s", why);
	if (e->cb)
		kernel_answer_later(kernel_clock(k), e->cb, e->data, &err);
	ending_free(e);
}

/* ---- killed ---- */

void kernel_kill(struct kernel *k)
{
	struct err err;

	if (!k->alive || k->dying || k->wish != WISH_RUN)
		return; /* its end is on its way */
	if (k->ending)
		ending_free(k->ending); /* of a line before, that nobody asked about */
	begin(k);
	log_info(&k->log, "kernel_killed line=%u", k->line);
	if (k->place->slot->engine->ops->kill_line(k->place->slot, k->line, &err) < 0)
		log_warn(&k->log, "kill_failed line=%u why=%s", k->line, err.text);
	timer_start(kernel_clock(k), &k->ending->timer, clean_ms(k));
}

/* Its container is removed as it is told dead. */
static void give_up(struct kernel *k)
{
	struct kernel_death death = {.cause = DEATH_SIGNAL, .code = SIGKILL};

	log_warn(&k->log, "line_not_killed line=%u", k->line);
	(void)snprintf(death.text, sizeof(death.text), /* short */
		"the kernel could not be killed within %u ms", clean_ms(k));
	if (k->place)
		kernel_place_give_up(k, GOES_TOO);
	k->alive = false;
	k->slot_gone = true;
	kernel_dies(k, &death);
}

/* ---- looked for ---- */

static void finish(struct ending *e, const struct err *left)
{
	void (*cb)(void *data, const struct err *left) = e->cb;
	void *data = e->data;

	ending_free(e);
	cb(data, left);
}

void kernel_on_looked(struct kernel *k, const struct err *left)
{
	struct ending *e = k->ending;
	struct err err;

	if (!e || !e->cb)
		return; /* of one that was given up */
	if (!left) {
		finish(e, NULL);
		return;
	}
	if (clock_now_ms(kernel_clock(k)) < e->until_ms) {
		timer_start(kernel_clock(k), &e->timer, AGAIN_MS);
		return;
	}
	log_warn(&k->log, "line_left_something line=%u what=%s", k->line, left->text);
	err_set(&err, E_BUSY, "%s", left->text);
	if (k->place)
		kernel_place_give_up(k, GOES_TOO);
	k->ending = NULL; /* who asked is told by `left` */
	kernel_drop_slot(k);
	k->ending = e;
	finish(e, &err);
}

static void look(struct ending *e)
{
	struct kernel *k = e->kernel;
	struct err err;
	int rc = kernel_place_look(k, &err);

	if (rc == 1)
		kernel_on_looked(k, NULL);
	else if (rc < 0)
		kernel_on_looked(k, &err);
}

static void on_timer(struct timer *t)
{
	struct ending *e = CONTAINER_OF(t, struct ending, timer);

	if (e->cb)
		look(e);
	else if (e->kernel->alive && e->kernel->line == e->line)
		give_up(e->kernel);
}

void kernel_look(struct kernel *k, void (*cb)(void *data, const struct err *left), void *data)
{
	struct ending *e;

	assert(!k->ending || !k->ending->cb);
	if (k->ending && k->ending->line != k->line)
		ending_free(k->ending);
	e = k->ending ? k->ending : begin(k);
	e->cb = cb;
	e->data = data;
	if (!kernel_is(k, KERNEL_DEAD) || k->wish != WISH_RUN)
		kernel_limit_cancel(k, E_DEAD, "the kernel is being started or ended");
	else if (!k->place || !k->place->warm || k->slot_gone)
		kernel_limit_cancel(k, E_GONE, "its container is gone");
	else
		timer_start(kernel_clock(k), &e->timer, 0);
}
