/* Kernels that were started before anybody asked for one, and how one is handed over: what its
 * owner asks of it waits until its process has id, environment and folder of the owner's. */
#include "kernel-bridge/kernel_pool.h"
#include "kernel-bridge/kernel_place.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

#define HAND_OVER_MS 2000 /* a process that does nothing answers within milliseconds */

bool bridge_fits(struct bridge *b, const struct kernelspec *spec, const struct cJSON *env)
{
	struct engine *e = bridge_engine(b, spec->engine);

	return e && e->ops->fits && e->ops->fits(e, spec, env);
}

const struct cJSON *kernel_env(const struct kernel *k)
{
	return k->env;
}

bool kernel_has_place(const struct kernel *k)
{
	return k->place && !k->slot_gone;
}

bool kernel_can_wait(struct kernel *k, struct err *err)
{
	const struct engine_ops *ops = k->place->slot->engine->ops;

	if (!ops->can_hand_over) {
		err_set(err, E_UNAVAILABLE, "engine %s has no pool", k->spec->engine);
		return false;
	}
	return ops->can_hand_over(k->place->slot, err) == 0;
}

static int say(struct kernel *k, struct err *err)
{
	const struct line_start start = {
		.line = k->line,
		.kernel_id = k->id,
		.spec = k->spec,
		.env = k->env,
		.key = k->key,
		.folder = k->folder,
	};

	return k->place->slot->engine->ops->hand_over(k->place->slot, &start, err);
}

static void begin_anew(struct kernel *k, const char *why)
{
	log_warn(&k->log, "hand_over_failed line=%u why=%s", k->line, why);
	k->handing = HAND_NO;
	kernel_death_cancel(k);
	kernel_disconnect(k);
	kernel_drop_slot(k);
	kernel_begin(k);
}

static void ask(struct kernel *k)
{
	struct err err;

	k->handing = HAND_ASKED;
	if (say(k, &err) < 0)
		begin_anew(k, err.text);
	else
		timer_start(kernel_clock(k), &k->start_timer, HAND_OVER_MS);
}

bool kernel_hand_over_ready(struct kernel *k)
{
	if (k->handing != HAND_WAITS)
		return false;
	ask(k);
	return true;
}

bool kernel_hand_over_failed(struct kernel *k)
{
	if (k->handing == HAND_NO || k->wish != WISH_RUN)
		return false;
	begin_anew(k, "it did not live to see it");
	return true;
}

void kernel_on_handed_over(void *data, unsigned line)
{
	struct kernel *k = data;

	if (line != k->line || k->handing != HAND_ASKED || k->wish != WISH_RUN)
		return;
	k->handing = HAND_NO;
	log_info(&k->log, "kernel_handed_over line=%u pid=%ld", k->line, k->pid);
	kernel_answer_restarts(k, NULL);
	if (k->wish == WISH_RUN && k->channels && k->reply)
		kernel_become_ready(k);
}

void kernel_hand_over_again(struct kernel *k)
{
	struct err err;

	/* It comes before the replay on its way, so nobody waits for the answer. */
	if (k->handed > 0 && say(k, &err) < 0)
		log_warn(&k->log, "hand_over_failed line=%u why=%s", k->line, err.text);
}

/* ---- taking one ---- */

static void own(struct kernel *k, const struct kernel_start *start, struct cJSON *env,
	const struct kernel_watcher *watcher)
{
	k->unowned = false;
	k->bridge->n_unowned--;
	(void)copy_text(k->id, sizeof(k->id), start->id, strlen(start->id)); /* a uuid fits */
	log_child(&k->log, k->bridge->env.log, "kernel", k->id);
	free(k->owner);
	k->owner = xstrdup(start->owner ? start->owner : "");
	free(k->folder);
	k->folder = xstrdup(start->folder ? start->folder : "");
	cJSON_Delete(k->env);
	k->env = env;
	k->watcher = *watcher;
	k->handed = k->line;
}

int kernel_hand_over(struct kernel *k, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct err *err)
{
	struct cJSON *env = NULL;
	int rc = kernel_copy_env(start->env, &env, err);

	assert(k->unowned && start->id);
	if (rc < 0)
		return rc;
	if (k->wish != WISH_RUN || k->dying || kernel_is(k, KERNEL_DEAD) || !kernel_has_place(k) ||
		timer_running(&k->fail_timer)) {
		cJSON_Delete(env);
		return err_set(err, E_GONE, "it is dead already");
	}
	own(k, start, env, watcher);
	if (kernel_is(k, KERNEL_IDLE)) {
		kernel_set_state(k, KERNEL_STARTING);
		k->ready = false;
		k->heard = true;
		k->reply = TAKE(k->info);
		ask(k);
	} else if (k->line > 0) {
		k->handing = HAND_WAITS;
	}
	return 0;
}
