/* Kernels that outlive a gateway: left by one, taken up by the next with what they kept. */
#include "kernel-bridge/kernel_adopt.h"
#include "kernel-bridge/kernel_limit.h"
#include "kernel-bridge/kernel_place.h"
#include "kernel-bridge/kernel_pool.h"
#include "kernel-bridge/kernel_revive.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

#define FRAMES_MAX	 (JMSG_BUFFERS_MAX + WIRE_HEAD)
#define LIVE_MAX_BYTES	 (64u << 20)  /* more than that waits in the guest */
#define REPLAY_MAX_BYTES (128u << 20) /* twice what its memory holds, besides one large message */
#define REPLAY_QUIET_MS	 30000	      /* a guest that says nothing for so long gives nothing more */
#define SEEN_MS		 60000

struct cJSON *kernel_record(const struct kernel *k)
{
	struct cJSON *slot, *row;

	if (!k->place || !k->place->slot->engine->ops->slot_row)
		return NULL;
	slot = k->place->slot->engine->ops->slot_row(k->place->slot);
	if (!slot)
		return NULL;
	row = cJSON_CreateObject();
	cJSON_AddItemToObject(row, "slot", slot);
	cJSON_AddNumberToObject(row, "line", k->line);
	cJSON_AddNumberToObject(row, "last_line", k->place->last_line);
	if (*k->folder)
		cJSON_AddStringToObject(row, "folder", k->folder);
	cJSON_AddBoolToObject(row, "handed_over", k->handed > 0);
	cJSON_AddStringToObject(row, "key", k->key);
	cJSON_AddStringToObject(row, "routing_id", k->routing_id);
	cJSON_AddStringToObject(row, "asker", k->asker);
	if (*k->lay)
		cJSON_AddStringToObject(row, "lay", k->lay);
	cJSON_AddItemToObject(row, "env", cJSON_Duplicate(k->env, true));
	return row;
}

static void drop_list(struct list *list)
{
	LIST_EACH_SAFE (at, list) {
		struct kept *kept = CONTAINER_OF(at, struct kept, link);

		list_remove(&kept->link);
		jmsg_unref(kept->m);
		free(kept);
	}
}

void kernel_adopt_init(struct kernel *k)
{
	list_init(&k->replayed);
	list_init(&k->live);
}

void kernel_adopt_drop(struct kernel *k)
{
	k->adoption = ADOPT_NO;
	drop_list(&k->replayed);
	drop_list(&k->live);
	k->live_bytes = k->replayed_bytes = 0;
	free(TAKE(k->seen));
	k->n_seen = 0;
	for (int c = 0; c < CHANNEL_HB; c++)
		free(TAKE(k->after[c]));
}

static bool read_text(const struct cJSON *row, const char *name, char *to, size_t size)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, name));

	return text && copy_text(to, size, text, strlen(text));
}

/* *ret_last: the greatest number that a line of that slot had. */
static int read_row(struct kernel *k, const struct cJSON *row, unsigned *ret_last, struct err *err)
{
	const struct cJSON *line = cJSON_GetObjectItemCaseSensitive(row, "line");
	const struct cJSON *last = cJSON_GetObjectItemCaseSensitive(row, "last_line");
	const char *folder = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "folder"));

	if (!cJSON_IsNumber(line) || line->valuedouble < 0 || line->valuedouble > 1e9 ||
		!read_text(row, "key", k->key, sizeof(k->key)) ||
		!read_text(row, "routing_id", k->routing_id, sizeof(k->routing_id)) ||
		!read_text(row, "asker", k->asker, sizeof(k->asker)))
		return err_set(err, E_INVALID, "what was written down of the kernel is malformed");
	k->line = *ret_last = (unsigned)line->valueint;
	if (cJSON_IsNumber(last) && last->valuedouble > line->valuedouble &&
		last->valuedouble <= 1e9)
		*ret_last = (unsigned)last->valueint;
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "handed_over")))
		k->handed = k->line;
	if (!read_text(row, "lay", k->lay, sizeof(k->lay)))
		k->lay[0] = '\0'; /* none is part of it */
	if (folder) {
		free(k->folder);
		k->folder = xstrdup(folder);
	}
	return 0;
}

static int take_slot(struct kernel *k, const struct cJSON *row, unsigned last, struct err *err)
{
	struct engine *e = bridge_engine(k->bridge, k->spec->engine);
	const struct slot_adopt adopt = {
		.row = cJSON_GetObjectItemCaseSensitive(row, "slot"),
		.line = k->line,
		.key = k->key,
		.lay = k->lay,
	};

	if (!e || !e->ops->adopt)
		return err_set(err, E_UNAVAILABLE, "kernels of engine %s end with the gateway",
			k->spec->engine);
	int rc = kernel_place_adopt(k, e, &adopt, err);

	if (rc == 0 && k->place->last_line < last)
		k->place->last_line = last;
	return rc;
}

int kernel_adopt(struct bridge *b, const struct kernel_start *start, const struct cJSON *row,
	char *const after[CHANNEL_HB], const struct kernel_watcher *watcher, struct kernel **ret,
	struct err *err)
{
	struct cJSON *env = NULL;
	struct kernel *k;
	unsigned last = 0;
	int rc = kernel_copy_env(cJSON_GetObjectItemCaseSensitive(row, "env"), &env, err);

	if (rc < 0)
		return rc;
	k = kernel_new(b, start, env, watcher);
	rc = read_row(k, row, &last, err);
	if (rc == 0)
		rc = take_slot(k, row, last, err);
	if (rc < 0) {
		kernel_free(k);
		return rc;
	}
	for (int c = 0; c < CHANNEL_HB; c++)
		k->after[c] = after && after[c] ? xstrdup(after[c]) : NULL;
	k->adoption = ADOPT_WAITS;
	k->alive = k->line > 0;
	*ret = k;
	return 0;
}

int kernel_restore_dead(struct bridge *b, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err)
{
	struct cJSON *env = NULL;
	int rc = kernel_copy_env(start->env, &env, err);

	if (rc < 0)
		return rc;
	*ret = kernel_new(b, start, env, watcher);
	kernel_set_state(*ret, KERNEL_DEAD);
	return 0;
}

bool kernel_leave(struct kernel *k)
{
	struct cJSON *row = kernel_record(k);
	bool can = row && k->wish == WISH_RUN && !k->dying && !k->slot_gone &&
		   !kernel_is(k, KERNEL_DEAD) && k->n_removing == 0 && list_empty(&k->restarts);

	cJSON_Delete(row);
	if (!can)
		return false;
	kernel_revival_cancel(k, E_UNAVAILABLE, "the gateway is ending");
	kernel_limit_cancel(k, E_UNAVAILABLE, "the gateway is ending");
	kernel_disconnect(k);
	kernel_place_let_go(k);
	kernel_free(k);
	return true;
}

/* ---- the replay ---- */

static uint64_t hash_of(const struct jmsg *m)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (const char *c = m->msg_id; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
	return hash ^ (uint64_t)m->channel;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

bool kernel_adopt_seen(const struct kernel *k, const struct jmsg *m)
{
	uint64_t hash;

	if (k->n_seen == 0 || clock_now_ms(kernel_clock(k)) > k->seen_until_ms)
		return false;
	hash = hash_of(m);
	return bsearch(&hash, k->seen, k->n_seen, sizeof(hash), compare) != NULL;
}

static void note_seen(struct kernel *k)
{
	size_t n = 0;

	LIST_EACH (at, &k->replayed)
		n++;
	if (n == 0)
		return;
	k->seen = xcalloc(n, sizeof(*k->seen));
	LIST_EACH (at, &k->replayed)
		k->seen[k->n_seen++] = hash_of(CONTAINER_OF(at, struct kept, link)->m);
	qsort(k->seen, k->n_seen, sizeof(*k->seen), compare);
	k->seen_until_ms = clock_now_ms(kernel_clock(k)) + SEEN_MS;
}

/* The watcher may end the kernel over any of them. */
static void deliver(struct kernel *k, struct list *list, bool doubles)
{
	while (!list_empty(list) && k->wish == WISH_RUN) {
		struct kept *kept = CONTAINER_OF(list->next, struct kept, link);
		AUTO(jmsg_unrefp) struct jmsg *m = kept->m;

		list_remove(&kept->link);
		free(kept);
		if (doubles || !kernel_adopt_seen(k, m))
			k->watcher.on_message(k->watcher.data, m);
	}
}

static void deliver_all(struct kernel *k)
{
	note_seen(k);
	deliver(k, &k->replayed, true);
	deliver(k, &k->live, false);
	k->live_bytes = 0;
	if (k->wish == WISH_RUN)
		k->watcher.on_turn(k->watcher.data);
}

static void replay_done(struct kernel *k)
{
	k->adoption = ADOPT_NO;
	timer_stop(kernel_clock(k), &k->start_timer);
	channels_hold(k->channels, k->held);
	kernel_become_ready(k);
	if (kernel_is(k, KERNEL_IDLE) || kernel_is(k, KERNEL_BUSY))
		deliver_all(k);
}

void kernel_adopt_timeout(struct kernel *k)
{
	log_warn(&k->log, "replay_not_ended line=%u", k->line);
	replay_done(k);
}

void kernel_adopt_last(struct kernel *k)
{
	if (k->adoption == ADOPT_NO)
		return;
	k->adoption = ADOPT_NO;
	deliver_all(k);
}

void kernel_adopt_heard(struct kernel *k)
{
	struct err err;

	if (k->adoption != ADOPT_WAITS)
		return;
	timer_stop(kernel_clock(k), &k->nudge_timer);
	k->adoption = ADOPT_REPLAYS;
	kernel_hand_over_again(k);
	if (k->place->slot->engine->ops->replay(k->place->slot, k->line, k->after, &err) < 0) {
		log_warn(&k->log, "replay_refused why=%s", err.text);
		replay_done(k);
		return;
	}
	timer_start(kernel_clock(k), &k->start_timer, REPLAY_QUIET_MS);
}

void kernel_adopt_live(struct kernel *k, struct jmsg *m)
{
	struct kept *kept = xcalloc(1, sizeof(*kept));

	kept->m = jmsg_ref(m);
	list_append(&k->live, &kept->link);
	k->live_bytes += m->frame.len;
	if (k->live_bytes > LIVE_MAX_BYTES && k->channels)
		channels_hold(k->channels, true);
}

/* Each frame is behind its length, 4 bytes, big-endian. */
static size_t split(struct bytes all, struct bytes *ret, size_t max)
{
	size_t n = 0;

	for (size_t at = 0; at < all.len;) {
		const uint8_t *head = all.data + at;
		size_t len;

		if (all.len - at < 4 || n == max)
			return 0;
		len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 |
		      head[3];
		if (all.len - at - 4 < len)
			return 0;
		ret[n++] = (struct bytes){head + 4, len};
		at += 4 + len;
	}
	return n;
}

static size_t replay_max(const struct kernel *k)
{
	return REPLAY_MAX_BYTES + (size_t)k->bridge->env.config->message_limit;
}

void kernel_on_kept(void *data, unsigned line, enum channel channel, struct bytes all)
{
	struct kernel *k = data;
	struct bytes *frames;
	struct jmsg *m;
	struct err err;
	size_t n;

	if (line != k->line || k->adoption != ADOPT_REPLAYS)
		return;
	timer_start(kernel_clock(k), &k->start_timer, REPLAY_QUIET_MS);
	frames = xcalloc(FRAMES_MAX, sizeof(*frames));
	n = split(all, frames, FRAMES_MAX);
	if (n == 0 || wire_decode(&k->sign, channel, frames, n, &m, &err) < 0) {
		k->bad_frames++;
		log_warn(&k->log, "bad_kept channel=%s why=%s", channel_name(channel),
			n == 0 ? "its parts do not add up" : err.text);
	} else if (strcmp(m->parent_session, k->asker) == 0) {
		jmsg_unref(m); /* an answer to the earlier gateway itself */
	} else {
		struct kept *kept = xcalloc(1, sizeof(*kept));

		kept->m = m;
		list_append(&k->replayed, &kept->link);
		k->replayed_bytes += m->frame.len;
	}
	free(frames);
	if (k->replayed_bytes <= replay_max(k) || k->dying || k->wish != WISH_RUN)
		return;
	/* A guest that has no end: what it still sends is not listened to. */
	log_warn(&k->log, "replay_too_large line=%u", k->line);
	kernel_notice(k, "what the kernel sent while the gateway was away is too much: the rest "
			 "of it is missing");
	replay_done(k);
}

void kernel_on_kept_end(void *data, unsigned line, int64_t lost)
{
	struct kernel *k = data;

	if (line != k->line || k->adoption != ADOPT_REPLAYS)
		return;
	log_info(&k->log, "kernel_adopted line=%u lost=%lld", line, (long long)lost);
	if (lost > 0)
		kernel_notice(k,
			"%lld messages that the kernel sent while the gateway was away are "
			"missing: its memory for them was full",
			(long long)lost);
	if (k->wish != WISH_RUN)
		return;
	if (k->dying || !k->channels)
		return; /* its end brings what has come */
	replay_done(k);
}
