#include "tests/lib/fake_bridge.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/crypto.h"
#include "gateway/base/list.h"

#define SENT_MAX 20100

/* A test in which calls fail puts around our own calls what keeps them from it. */
#ifndef FAKE_OWN
#define FAKE_OWN(begins) (void)(begins)
#endif

struct bridge {
	struct clock *clock;
	struct list kernels, specs, deferred;
	struct kernelspec spec;
	struct fault fault;
	bool survives, leaves, has_files;
	unsigned places;
};

struct kernel {
	struct list link;
	struct bridge *bridge;
	struct kernel_watcher watcher;
	enum kernel_state state;
	char written[CHANNEL_COUNT][JMSG_ID_MAX];
	bool held, ending;
	bool unowned, doomed, lost;
	int64_t answered;
	char answer[512];
	char id[40];
	char folder[160];
	unsigned restarts, interrupts;
	char session[32];
	struct jmsg **sent;
	size_t first, last;
	struct kernel_revival revival; /* under way if cb is set */
	int64_t released;
	unsigned kills;
	struct {
		void (*cb)(void *data, const struct err *left); /* NULL: nobody asks */
		void *data;
	} look;
	bool has_files;
	uint64_t place; /* kernels with one number are in one container */
	char wants[4096], scans[UUID_SIZE], given[1024];
	bool scans_all;
	struct kernel_lay lay; /* under way if on_laid is set */
	char *lays;
	const char *lay_ended;
};

struct deferred {
	struct list link;
	struct kernel *kernel; /* freed after it, if it ends */
	bool fails, ends;
	int code; /* cb gets it */
	void (*cb)(void *data, const struct err *err);
	void (*plain)(void *data);
	void *data;
	char apart[64]; /* test_sweep.c tells allocations by their size */
};

bool fault_arm(struct fault *f, unsigned nth)
{
	if (nth > 1 && !f->fired)
		return false;
	*f = (struct fault){.nth = nth};
	return true;
}

static bool fault_hit(struct bridge *b)
{
	struct fault *f = &b->fault;
	if (f->nth == 0 || ++f->seen != f->nth)
		return false;
	f->fired = true;
	return true;
}

struct bridge *fake_bridge_new(struct clock *clock)
{
	struct bridge *b = xcalloc(1, sizeof *b);
	b->clock = clock;
	list_init(&b->kernels);
	list_init(&b->specs);
	list_init(&b->deferred);
	b->spec = (struct kernelspec){.name = "python3", .engine = "fake", .cull_idle_ms = -1};
	list_append(&b->specs, &b->spec.link);
	return b;
}

void fake_bridge_free(struct bridge *b)
{
	fake_bridge_run(b);
	assert(list_empty(&b->kernels));
	free(b);
}

struct fault *fake_bridge_fault(struct bridge *b)
{
	return &b->fault;
}

struct kernelspec *fake_bridge_spec(struct bridge *b)
{
	return &b->spec;
}

static void kernel_free(struct kernel *k)
{
	while (k->first < k->last)
		jmsg_unref(k->sent[k->first++]);
	list_remove(&k->link);
	free(k->sent);
	free(k->lays);
	free(k);
}

void fake_bridge_run(struct bridge *b)
{
	static const struct err err = {E_ENGINE, "a fault of the test"};
	while (!list_empty(&b->deferred)) {
		struct deferred *d = CONTAINER_OF(b->deferred.next, struct deferred, link);
		struct err why = err;
		list_remove(&d->link);
		if (d->code)
			err_set(&why, d->code, "it was given up");
		if (d->cb)
			d->cb(d->data, d->fails || d->code ? &why : NULL);
		if (d->fails && d->kernel->state == KERNEL_DEAD && !d->kernel->ending)
			fake_kernel_die(d->kernel, DEATH_START, 0, err.text);
		if (d->plain)
			d->plain(d->data);
		if (d->ends)
			kernel_free(d->kernel);
		free(d);
	}
}

static struct deferred *defer(struct kernel *k, void *data)
{
	struct deferred *d = xcalloc(1, sizeof *d);
	d->kernel = k;
	d->data = data;
	list_append(&k->bridge->deferred, &d->link);
	return d;
}

size_t fake_bridge_kernels(const struct bridge *b)
{
	size_t n = 0;
	LIST_EACH (at, &b->kernels)
		n++;
	return n;
}

struct kernel *fake_kernel(struct bridge *b, size_t nth)
{
	LIST_EACH (at, &b->kernels) {
		if (nth-- == 0)
			return CONTAINER_OF(at, struct kernel, link);
	}
	return NULL;
}

void fake_kernel_ready(struct kernel *k)
{
	struct jmsg *reply;
	FAKE_OWN(true);
	int rc = jmsg_make(CHANNEL_SHELL, "kernel_info_reply", k->session, NULL,
		"{\"status\":\"ok\",\"implementation\":\"fake\"}", &reply, NULL);
	FAKE_OWN(false);
	assert(rc == 0 && k->state == KERNEL_STARTING);
	(void)rc;
	k->state = KERNEL_IDLE;
	k->watcher.on_ready(k->watcher.data, reply);
	jmsg_unref(reply);
}

struct jmsg *fake_kernel_says(struct kernel *k, enum channel channel, const char *type,
	const struct jmsg *parent, const char *content)
{
	struct jmsg *m;
	FAKE_OWN(true);
	int rc = jmsg_make(channel, type, k->session, parent, content, &m, NULL);
	FAKE_OWN(false);
	assert(rc == 0 && !k->ending);
	(void)rc;
	k->watcher.on_message(k->watcher.data, m);
	return m;
}

void fake_kernel_says_again(struct kernel *k, struct jmsg *m)
{
	k->watcher.on_message(k->watcher.data, m);
}

void fake_kernel_say(struct kernel *k, enum channel channel, const char *type,
	const struct jmsg *parent, const char *content)
{
	jmsg_unref(fake_kernel_says(k, channel, type, parent, content));
}

void fake_kernel_turn(struct kernel *k)
{
	k->watcher.on_turn(k->watcher.data);
}

void fake_kernel_report(struct kernel *k, const char *msg_id, const char *text)
{
	k->watcher.on_report(
		k->watcher.data, msg_id, (struct bytes){(const uint8_t *)text, strlen(text)});
}

void fake_kernel_ask(struct kernel *k, int64_t id, const char *what, const char *about)
{
	k->watcher.on_ask(k->watcher.data, id, what, about);
}

void kernel_answer(struct kernel *k, int64_t id, const char *status, struct bytes text)
{
	assert(!k->ending);
	k->answered = id;
	(void)snprintf(k->answer, sizeof k->answer, "%s %.*s", status, (int)text.len,
		(const char *)text.data); /* may be cut */
}

const char *fake_kernel_answer(const struct kernel *k, int64_t id)
{
	return k->answered == id ? k->answer : "";
}

#include "tests/lib/fake_bridge_limits.h"
#include "tests/lib/fake_bridge_parks.h"

#include "tests/lib/fake_bridge_files.h"

void fake_kernel_notice(struct kernel *k, const char *text)
{
	k->watcher.on_notice(k->watcher.data, text);
}

void fake_kernel_die(struct kernel *k, int cause, int code, const char *text)
{
	struct kernel_death death = {.code = code};
	death.cause = (__typeof__(death.cause))cause;
	(void)copy_text(death.text, sizeof death.text, text, strlen(text));
	k->state = KERNEL_DEAD;
	k->watcher.on_death(k->watcher.data, &death);
}

struct jmsg *fake_kernel_take(struct kernel *k)
{
	return k->first < k->last ? k->sent[k->first++] : NULL;
}

size_t fake_kernel_waiting(const struct kernel *k)
{
	return k->last - k->first;
}

bool fake_kernel_held(const struct kernel *k)
{
	return k->held;
}

unsigned fake_kernel_restarts(const struct kernel *k)
{
	return k->restarts;
}

unsigned fake_kernel_interrupts(const struct kernel *k)
{
	return k->interrupts;
}

const char *fake_kernel_id(const struct kernel *k)
{
	return k->unowned ? NULL : k->id;
}

void fake_kernel_doom(struct kernel *k)
{
	k->doomed = true;
}

void fake_kernel_lose(struct kernel *k)
{
	k->lost = true;
}

const char *fake_kernel_session(const struct kernel *k)
{
	return k->session;
}

int bridge_open(const struct bridge_env *env, struct bridge **ret, struct err *err)
{
	(void)err;
	*ret = fake_bridge_new(env->clock);
	return 0;
}

void bridge_sweep(struct bridge *b, void (*cb)(void *data), void *data)
{
	(void)b;
	cb(data);
}

void bridge_close(struct bridge *b, void (*cb)(void *data), void *data)
{
	fake_bridge_free(b);
	cb(data);
}

struct cJSON *bridge_report(const struct bridge *b)
{
	(void)b;
	return cJSON_CreateObject();
}

const struct kernelspec *bridge_spec(const struct bridge *b, const char *name)
{
	bool known = !name || !*name || strcmp(name, "python3") == 0;
	return known ? &b->spec : NULL;
}

const char *bridge_default_spec(const struct bridge *b)
{
	return b->spec.name;
}

const struct list *bridge_specs(const struct bridge *b)
{
	return &b->specs;
}

int kernel_start(struct bridge *b, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err)
{
	if (fault_hit(b))
		return err_set(err, E_UNAVAILABLE, "a fault of the test");
	struct kernel *k = xcalloc(1, sizeof *k);
	k->released = -1;
	k->bridge = b;
	k->unowned = !start->id;
	k->has_files = b->has_files;
	k->lay_ended = "";
	if (start->id)
		(void)snprintf(k->id, sizeof k->id, "%s", start->id);
	k->place = ++b->places;
	(void)snprintf(k->folder, sizeof k->folder, "%s", start->folder ? start->folder : "");
	k->watcher = *watcher;
	k->sent = xcalloc(SENT_MAX, sizeof(struct jmsg *));
	(void)snprintf(k->session, sizeof k->session, "kernel-1");
	list_append(&b->kernels, &k->link);
	*ret = k;
	return 0;
}

int kernel_send(struct kernel *k, const struct jmsg *m, struct err *err)
{
	assert(!k->ending);
	if (k->state == KERNEL_DEAD)
		return err_set(err, E_DEAD, "the kernel is dead");
	if (fault_hit(k->bridge))
		return err_set(err, E_NOMEM, "a fault of the test");
	assert(k->last < SENT_MAX);
	k->sent[k->last++] = jmsg_ref((struct jmsg *)(uintptr_t)m);
	return 0;
}

void kernel_written(struct kernel *k, enum channel channel, const char *msg_id)
{
	assert(!k->ending);
	(void)snprintf(k->written[channel], sizeof k->written[channel], "%s", msg_id);
}

const char *fake_kernel_written(const struct kernel *k, enum channel channel)
{
	return k->written[channel];
}

bool bridge_fits(struct bridge *b, const struct kernelspec *spec, const struct cJSON *env)
{
	return spec == &b->spec && !cJSON_HasObjectItem(env, "LD_PRELOAD");
}

const struct cJSON *kernel_env(const struct kernel *k)
{
	(void)k;
	return NULL;
}

bool kernel_has_place(const struct kernel *k)
{
	return !k->lost;
}

int kernel_hand_over(struct kernel *k, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct err *err)
{
	assert(!k->ending && k->unowned);
	if (k->state == KERNEL_DEAD || k->doomed)
		return err_set(err, E_GONE, "it is dead already");
	if (fault_hit(k->bridge))
		return err_set(err, E_GONE, "a fault of the test");
	k->unowned = false;
	(void)snprintf(k->id, sizeof k->id, "%s", start->id);
	k->watcher = *watcher;
	k->state = KERNEL_STARTING;
	return 0;
}

void fake_bridge_leave(struct bridge *b)
{
	b->leaves = true;
}

void fake_bridge_survive(struct bridge *b)
{
	b->survives = true;
}

struct cJSON *kernel_record(const struct kernel *k)
{
	return k->bridge->survives ? cJSON_CreateObject() : NULL;
}

int kernel_adopt(struct bridge *b, const struct kernel_start *start, const struct cJSON *row,
	char *const after[CHANNEL_HB], const struct kernel_watcher *watcher, struct kernel **ret,
	struct err *err)
{
	(void)row, (void)after;
	if (b->survives)
		return kernel_start(b, start, watcher, ret, err);
	return err_set(err, E_GONE, "nothing outlives a test");
}

int kernel_restore_dead(struct bridge *b, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err)
{
	int rc = kernel_start(b, start, watcher, ret, err);
	if (rc == 0)
		(*ret)->state = KERNEL_DEAD;
	return rc;
}

int kernel_beside(struct kernel *of, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err)
{
	unsigned n = 0;
	LIST_EACH (at, &of->bridge->kernels)
		n += CONTAINER_OF(at, struct kernel, link)->place == of->place ? 1 : 0;
	if (n >= BESIDE_MAX)
		return err_set(err, E_CAPACITY, "%u branches live in this container already", n);
	int rc = kernel_start(of->bridge, start, watcher, ret, err);
	if (rc != 0)
		return rc;
	(*ret)->place = of->place;
	(*ret)->state = KERNEL_DEAD;
	return 0;
}

bool kernel_is_beside(const struct kernel *k, const struct kernel *other)
{
	return k->place == other->place;
}

const char *kernel_folder(const struct kernel *k)
{
	return k->folder;
}

bool kernel_leave(struct kernel *k)
{
	if (!k->bridge->leaves || k->ending || k->state == KERNEL_DEAD)
		return false;
	LIST_EACH_SAFE (at, &k->bridge->deferred) {
		struct deferred *d = CONTAINER_OF(at, struct deferred, link);
		if (d->kernel != k)
			continue;
		list_remove(&d->link);
		free(d);
	}
	revival_cancel(k);
	kernel_free(k);
	return true;
}

void kernel_hold(struct kernel *k, bool hold)
{
	assert(!k->ending);
	k->held = hold;
}

void kernel_interrupt(struct kernel *k, void (*cb)(void *data, const struct err *err), void *data)
{
	struct deferred *d = defer(k, data);
	k->interrupts++;
	d->cb = cb;
	d->fails = fault_hit(k->bridge);
}

void kernel_restart(struct kernel *k, void (*cb)(void *data, const struct err *err), void *data)
{
	assert(!k->ending);
	revival_cancel(k);
	struct deferred *d = defer(k, data);
	k->restarts++;
	while (k->first < k->last)
		jmsg_unref(k->sent[k->first++]);
	(void)snprintf(k->session, sizeof k->session, "kernel-%u", k->restarts + 1);
	d->cb = cb;
	d->fails = fault_hit(k->bridge);
	k->state = d->fails ? KERNEL_DEAD : KERNEL_STARTING;
}

void kernel_end(struct kernel *k, void (*cb)(void *data), void *data)
{
	assert(!k->ending);
	revival_cancel(k);
	struct deferred *d = defer(k, data);
	k->ending = true;
	d->plain = cb;
	d->ends = true;
}

enum kernel_state kernel_state(const struct kernel *k)
{
	return k->state;
}

void kernel_set_busy(struct kernel *k, bool busy)
{
	assert(k->state == (busy ? KERNEL_IDLE : KERNEL_BUSY));
	k->state = busy ? KERNEL_BUSY : KERNEL_IDLE;
}

const struct kernelspec *kernel_spec(const struct kernel *k)
{
	return &k->bridge->spec;
}

const char *kernel_environment(const struct kernel *k)
{
	(void)k;
	return "sha256:fake";
}

struct cJSON *kernel_report(const struct kernel *k)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddNumberToObject(row, "sent", (double)k->last);
	return row;
}
