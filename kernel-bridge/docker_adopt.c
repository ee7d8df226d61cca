/* Slots that outlive a gateway: what is written down of them, how they are let go, how they are
 * taken up again; and what their kernels kept meanwhile. */
#include "kernel-bridge/docker_line.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/crypto.h"

#define HELLO_MS   5000	      /* a supervisor tries every 50 ms */
#define EXITED_MS  1000	      /* for the word of an end that nobody has heard yet */
#define LINES_MAX  8	      /* more than kernels of one slot */
#define KEPT_HEADS (1u << 20) /* what comes with the largest part of a message */

/* The supervisor's pid is 0 until it has connected: then the first to come is it. */
struct cJSON *docker_slot_row(const struct slot *slot)
{
	const struct docker_slot *s = CONTAINER_OF(slot, struct docker_slot, base);
	if (s->foreign)
		return NULL;
	cJSON *row = cJSON_CreateObject();
	/* What cannot be added for want of memory is missed at the adoption. */
	(void)cJSON_AddStringToObject(row, "slot", s->dir.name);
	(void)cJSON_AddNumberToObject(row, "pid", (double)s->pid);
	return row;
}

void docker_leave(struct slot *slot)
{
	struct docker_slot *s = docker_slot_of(slot);
	s->left = true;
	docker_slot_free(s);
}

/* ---- the beginning ---- */

static void on_no_hello(struct timer *t)
{
	struct docker_slot *s = CONTAINER_OF(t, struct docker_slot, deadline);
	struct err err;
	(void)err_set(&err, E_TIMEOUT, "its supervisor did not answer the new gateway in %d s",
		HELLO_MS / 1000);
	docker_slot_gone(s, &err);
}

/* Said with the first word to its supervisor. */
static void keep_lay(struct docker_slot *s, const struct slot_adopt *adopt)
{
	if (*adopt->lay)
		ctl_keep_lay(s->ctl, adopt->lay);
}

int docker_adopt_line(struct slot *slot, const struct slot_adopt *adopt, struct err *err)
{
	struct docker_slot *s = docker_slot_of(slot);
	if (!s->adopts || adopt->line == 0 || docker_line_find(s, adopt->line))
		return err_set(
			err, E_INVALID, "line %u of its container is not to be had", adopt->line);
	keep_lay(s, adopt);
	docker_line_adopt(s, adopt->line, adopt->key)->adopted = true;
	return 0;
}

static int fill(struct docker_slot *s, const struct slot_adopt *adopt, struct err *err)
{
	int rc = run_slot_open(&s->docker->run, ctl_text(adopt->row, "slot", ""), &s->dir, err);
	if (rc < 0)
		return rc;
	log_child(&s->log, &s->docker->log, "slot", s->dir.name);
	/* The slot's name has eight characters. */
	(void)snprintf(s->container, sizeof(s->container), "coppice-%s", s->dir.name);
	s->made = true;
	run_slot_unlink(&s->dir, "ctl");
	rc = docker_slot_listen(s, err);
	if (rc < 0)
		return rc;
	ctl_expect(s->ctl, (long)ctl_int(adopt->row, "pid", 0));
	keep_lay(s, adopt);
	s->adopts = true;
	if (adopt->line > 0)
		docker_line_adopt(s, adopt->line, adopt->key)->adopted = true;
	timer_start(s->docker->env.clock, &s->deadline, HELLO_MS);
	docker_slot_wait(s); /* one that has ended meanwhile is known at once */
	return 0;
}

int docker_adopt(struct engine *e, const struct kernelspec *spec, const struct slot_adopt *adopt,
	const struct slot_watcher *watcher, struct slot **ret, struct err *err)
{
	struct docker *d = CONTAINER_OF(e, struct docker, engine);
	struct docker_slot *s = xcalloc(1, sizeof(*s));
	s->docker = d;
	s->log = d->log;
	s->spec = docker_spec_find(d->env.config, spec->name);
	list_init(&s->lines);
	timer_init(&s->deadline, on_no_hello);
	timer_init(&s->retry, docker_slot_ended_timer);
	slot_init(&s->base, e, watcher, &s->log, &d->slots);
	int rc = fill(s, adopt, err);
	if (rc < 0) {
		docker_slot_free(s);
		return rc;
	}
	*ret = &s->base;
	return 0;
}

/* ---- hello ---- */

/* NUMBER:PID:KERNEL of the line; -1: it does not live. */
static long find_pid(const cJSON *hello, unsigned line)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(hello, "lines")) {
		unsigned number = 0;
		long pid = 0;
		if (sscanf(item->valuestring, "%9u:%9ld:", &number, &pid) == 2 && number == line)
			return pid;
	}
	return -1;
}

static bool is_of_line(void *data, const char *name)
{
	const char *dash = strrchr(name, '-');
	unsigned number = 0;
	return dash && sscanf(dash, "-%9u", &number) == 1 && docker_line_find(data, number);
}

void docker_adopt_clear(struct docker_slot *s)
{
	run_slot_clear(&s->dir, is_of_line, s);
}

/* They would keep their sockets and what they compute with, and no restart could have their
 * numbers. */
void docker_adopt_strays(struct docker_slot *s, const cJSON *hello)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(hello, "lines")) {
		unsigned number = 0;
		if (sscanf(item->valuestring, "%9u:", &number) == 1 && !docker_line_find(s, number))
			docker_line_end_stray(s, number);
	}
}

/* One that is not known to live. */
static struct docker_line *next_adopted(struct docker_slot *s)
{
	LIST_EACH (at, &s->lines) {
		struct docker_line *l = CONTAINER_OF(at, struct docker_line, link);
		if (l->adopted)
			return l;
	}
	return NULL;
}

static void on_no_exited(struct timer *t)
{
	struct docker_slot *s = CONTAINER_OF(t, struct docker_slot, deadline);
	const struct line_exit exit = {.text = "it ended while the gateway was away"};
	for (struct docker_line *l; (l = next_adopted(s));)
		docker_line_ended(l, &exit);
}

/* Whoever is told may let go of the slot's lines. */
static void tell_lives(struct docker_slot *s, unsigned number, long pid)
{
	struct docker_line *l = docker_line_find(s, number);
	log_info(&s->log, "slot_adopted line=%u pid=%ld", number, pid);
	if (!l || pid == 0)
		return; /* `started` is to come */
	l->started = true;
	l->pid = pid;
	s->base.watcher.on_started(s->base.watcher.data, number, &l->endpoints, pid);
}

void docker_adopt_up(struct docker_slot *s, const struct cJSON *hello)
{
	unsigned numbers[LINES_MAX];
	size_t n = 0;
	s->adopts = false;
	LIST_EACH (at, &s->lines) {
		struct docker_line *l = CONTAINER_OF(at, struct docker_line, link);
		if (!l->adopted || n == LINES_MAX)
			continue;
		if (find_pid(hello, l->number) >= 0)
			numbers[n++] = l->number;
	}
	if (!list_empty(&s->lines) && slot_state(&s->base) == SLOT_WARM)
		slot_move(&s->base, SLOT_TAKEN); /* else a restart began another line just now */
	for (size_t i = 0; i < n; i++)
		docker_line_find(s, numbers[i])->adopted = false;
	if (next_adopted(s)) {
		timer_init(&s->deadline, on_no_exited);
		timer_start(s->docker->env.clock, &s->deadline, EXITED_MS);
	}
	for (size_t i = 0; i < n; i++)
		tell_lives(s, numbers[i], find_pid(hello, numbers[i]));
}

/* ---- what was kept ---- */

static void add_after(cJSON *list, enum channel c, const char *msg_id)
{
	char text[JMSG_ID_MAX + 16];
	(void)snprintf(text, sizeof(text), "%s:%s", channel_name(c), msg_id); /* fits */
	(void)cJSON_AddItemToArray(list, cJSON_CreateString(text));	      /* ctl_send checks */
}

int docker_replay(struct slot *slot, unsigned line, char *const after[CHANNEL_HB], struct err *err)
{
	struct docker_slot *s = docker_slot_of(slot);
	struct docker_line *l = docker_line_find(s, line);
	if (!s->keeps || !s->ctl || !l)
		return err_set(err, E_UNAVAILABLE, "nothing was kept");
	cJSON *m = ctl_message_new(CTL_REPLAY);
	(void)cJSON_AddNumberToObject(m, "line", line); /* ctl_send checks that both are there */
	cJSON *list = cJSON_AddArrayToObject(m, "after");
	for (int c = 0; c < CHANNEL_HB; c++)
		add_after(list, (enum channel)c, after[c] ? after[c] : "");
	docker_kept_drop(l);
	return ctl_send(s->ctl, m, NULL, 0, err);
}

void docker_kept_drop(struct docker_line *l)
{
	free(l->kept.data);
	l->kept = (struct docker_kept){0};
}

/* One that is too large is passed over: its pieces are no fault of theirs. */
static void begin_message(struct docker_line *l, enum channel channel, int64_t size)
{
	struct docker_slot *s = l->slot;
	struct docker_kept *k = &l->kept;
	uint64_t max = (uint64_t)s->docker->env.config->message_limit + KEPT_HEADS;
	if (size > 0 && (uint64_t)size <= max)
		k->data = malloc((size_t)size);
	if (!k->data) {
		log_warn(&s->log, "kept_passed_over bytes=%lld", (long long)size);
		return;
	}
	k->channel = channel;
	k->size = (size_t)size;
	k->len = 0;
}

static int add_piece(struct docker_line *l, const cJSON *m, struct err *err)
{
	struct docker_kept *k = &l->kept;
	const char *name = ctl_text(m, "channel", "");
	enum channel channel = channel_parse((struct bytes){(const uint8_t *)name, strlen(name)});
	int64_t offset = ctl_int(m, "offset", -1);
	size_t len = 0;
	if (channel >= CHANNEL_HB)
		return err_set(err, E_PROTOCOL, "kept on no channel");
	if (offset == 0) {
		docker_kept_drop(l);
		k->id = ctl_int(m, "id", 0);
		begin_message(l, channel, ctl_int(m, "size", 0));
	}
	if (!k->data && k->id == ctl_int(m, "id", -1))
		return 0; /* of one that is passed over */
	bool fits = k->data && k->id == ctl_int(m, "id", -1) && k->channel == channel &&
		    offset == (int64_t)k->len;
	if (!fits || !crypto_base64_decode(
			     ctl_text(m, "data", ""), k->data + k->len, k->size - k->len, &len))
		return err_set(err, E_PROTOCOL, "a piece that does not fit");
	k->len += len;
	return 0;
}

int docker_kept(
	struct docker_line *l, enum ctl_type type, const struct cJSON *message, struct err *err)
{
	const struct slot_watcher *w = &l->slot->base.watcher;
	unsigned line = l->number;
	if (type == CTL_KEPT_END) {
		docker_kept_drop(l);
		w->on_kept_end(w->data, line, ctl_int(message, "dropped", -1));
		return 0;
	}
	int rc = add_piece(l, message, err);
	if (rc < 0 || !l->kept.data || l->kept.len < l->kept.size)
		return rc;
	AUTO(freep) uint8_t *data = TAKE(l->kept.data);
	w->on_kept(w->data, line, l->kept.channel, (struct bytes){data, l->kept.len});
	return 0;
}
