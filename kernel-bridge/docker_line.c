/* Lines of a slot with a supervisor: start, signal, kill over ctl, and what comes back. */
#include "kernel-bridge/docker_line.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel-bridge/docker_create.h"
#include "kernel-bridge/docker_foreign.h"
#include "kernel-bridge/docker_look.h"

/* The supervisor has that long to end a line; then the whole container goes. */
#define KILL_MS	       2000
#define KILL_BESIDE_MS 30000 /* where another line would end with it */

#define SOCKET_NAME_SIZE 24
#define PIECE_MAX	 28000u /* of an answer: twice that in quotes, and its fields, is a packet */

static void socket_name(const struct docker_line *l, enum channel c, char ret[SOCKET_NAME_SIZE])
{
	/* "control-4294967295" is the longest. */
	(void)snprintf(ret, SOCKET_NAME_SIZE, "%s-%u", channel_name(c), l->number);
}

static void line_free(struct docker_line *l)
{
	char name[SOCKET_NAME_SIZE];
	for (int c = 0; c < CHANNEL_COUNT && !l->slot->left; c++) {
		socket_name(l, (enum channel)c, name);
		run_slot_unlink(&l->slot->dir, name);
	}
	timer_stop(l->slot->docker->env.clock, &l->kill);
	docker_kept_drop(l);
	list_remove(&l->link);
	free(l);
}

void docker_lines_drop(struct docker_slot *s)
{
	LIST_EACH_SAFE (at, &s->lines)
		line_free(CONTAINER_OF(at, struct docker_line, link));
}

struct docker_line *docker_line_find(struct docker_slot *s, int64_t number)
{
	LIST_EACH (at, &s->lines) {
		struct docker_line *l = CONTAINER_OF(at, struct docker_line, link);
		if (l->number == number)
			return l;
	}
	return NULL;
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)close(fds[i]); /* listeners: nothing is lost by it */
}

/* run_dir_open has seen to it that they fit. */
static void set_addresses(struct docker_line *l)
{
	for (int c = 0; c < CHANNEL_COUNT; c++) {
		char name[SOCKET_NAME_SIZE];
		socket_name(l, (enum channel)c, name);
		(void)snprintf(l->endpoints.address[c], ENDPOINT_SIZE, "ipc://%.*s/%s",
			RUN_SOCKET_PATH_MAX - SOCKET_NAME_SIZE, l->slot->dir.sockets, name);
	}
}

/* ret_fds are the caller's; on failure all are closed. */
static int listen_channels(struct docker_line *l, int ret_fds[CHANNEL_COUNT], struct err *err)
{
	for (int c = 0; c < CHANNEL_COUNT; c++) {
		char name[SOCKET_NAME_SIZE];
		socket_name(l, (enum channel)c, name);
		int rc = run_slot_listen(&l->slot->dir, name, SOCK_STREAM, 0700, &ret_fds[c], err);
		if (rc < 0) {
			close_all(ret_fds, (size_t)c);
			return rc;
		}
	}
	return 0;
}

/* Names that a library reads when it is imported: a fork of the supervisor would be too late. */
static bool is_read_at_import(const char *name)
{
	static const char *const starts[] = {"OMP_", "OPENBLAS_", "MKL_", "PYTHON", "MPLBACKEND"};
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/* What else a kernel process looks at when it begins and not again. */
static bool is_read_at_start(const char *name)
{
	static const char *const starts[] = {"LD_", "GLIBC_", "MALLOC_", "LC_", "IPYTHON",
		"JUPYTER", "MPL", "MATPLOTLIB", "NUMEXPR_", "XDG_"};
	static const char *const names[] = {"LANG", "LANGUAGE", "TZ", "HOME", "COLUMNS", "LINES"};
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return is_read_at_import(name);
}

/* Of our own image alone; data folders are the same in every container. */
bool docker_fits(struct engine *e, const struct kernelspec *spec, const struct cJSON *env)
{
	struct docker *d = CONTAINER_OF(e, struct docker, engine);
	const cJSON *item;
	if (docker_spec_find(d->env.config, spec->name))
		return false;
	cJSON_ArrayForEach (item, env)
		if (is_read_at_start(item->string))
			return false;
	return true;
}

/* The kernelspec's environment, then the request's, which counts more. */
static bool add_env(cJSON *to, const cJSON *env, bool *fresh)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, env) {
		if (!cJSON_IsString(item))
			continue;
		*fresh = *fresh || is_read_at_import(item->string);
		cJSON_DeleteItemFromObjectCaseSensitive(to, item->string);
		if (!cJSON_AddStringToObject(to, item->string, item->valuestring))
			return false;
	}
	return true;
}

static bool add_endpoints(const struct docker_line *l, cJSON *m)
{
	cJSON *list = cJSON_AddArrayToObject(m, "endpoints");
	for (int c = 0; c < CHANNEL_COUNT; c++) {
		char name[SOCKET_NAME_SIZE], text[ENDPOINT_SIZE];
		socket_name(l, (enum channel)c, name);
		(void)snprintf(text, sizeof(text), "ipc://" DOCKER_SOCKETS "/%s", name); /* short */
		cJSON *item = cJSON_CreateString(text);
		if (!cJSON_AddItemToArray(list, item)) {
			cJSON_Delete(item);
			return false;
		}
	}
	return true;
}

static const char *folder_of(const struct line_start *start, int64_t park)
{
	if (start->folder && *start->folder)
		return start->folder;
	return park > 0 ? "" : DOCKER_WORK;
}

/* A tree that misses something for want of memory is refused by ctl_send's check. park: where it
 * begins, in the folder where that stood; 0: anew. */
static cJSON *start_message(
	const struct docker_line *l, const struct line_start *start, int64_t park)
{
	bool fresh = false;
	cJSON *m = ctl_message_new(park > 0 ? CTL_REVIVE : CTL_START);
	cJSON *env = cJSON_CreateObject();
	bool ok =
		cJSON_AddNumberToObject(m, "line", l->number) &&
		cJSON_AddStringToObject(m, "kernel", start->kernel_id) &&
		cJSON_AddStringToObject(m, "key", start->key) &&
		cJSON_AddStringToObject(m, "cwd", folder_of(start, park)) && add_endpoints(l, m) &&
		add_env(env, cJSON_GetObjectItemCaseSensitive(start->spec->spec, "env"), &fresh) &&
		add_env(env, start->env, &fresh);
	if (!ok || !cJSON_AddItemToObject(m, "env", env)) {
		cJSON_Delete(env);
		return m;
	}
	if (park > 0)
		(void)cJSON_AddNumberToObject(m, "park", (double)park); /* as above */
	else
		(void)cJSON_AddBoolToObject(m, "fresh", fresh);
	return m;
}

static void on_kill_late(struct timer *t);

struct docker_line *docker_line_adopt(struct docker_slot *s, unsigned number, const char *key)
{
	struct docker_line *l = xcalloc(1, sizeof(*l));
	l->slot = s;
	l->number = number;
	l->endpoints.trusted_hwm = true;
	/* A key is made by the bridge: it fits. */
	(void)copy_text(l->endpoints.key, sizeof(l->endpoints.key), key, strlen(key));
	set_addresses(l);
	timer_init(&l->kill, on_kill_late);
	list_append(&s->lines, &l->link);
	return l;
}

static int send_kill(struct docker_slot *s, unsigned line, struct err *err)
{
	cJSON *m = ctl_message_new(CTL_KILL);
	(void)cJSON_AddNumberToObject(m, "line", line); /* ctl_send checks */
	return ctl_send(s->ctl, m, NULL, 0, err);
}

/* Not made to end: the line that is known lives beside it. */
void docker_line_end_stray(struct docker_slot *s, unsigned number)
{
	struct err err;
	(void)docker_line_adopt(s, number, ""); /* until its `exited` comes */
	log_warn(&s->log, "line_unknown line=%u", number);
	if (send_kill(s, number, &err) < 0)
		log_warn(&s->log, "kill_not_sent line=%u reason=%s", number, err.text);
}

static int line_new(
	struct docker_slot *s, const struct line_start *start, int64_t park, struct err *err)
{
	int fds[CHANNEL_COUNT];
	if (docker_line_find(s, start->line))
		return err_set(err, E_CONFLICT, "an earlier process %u has not ended", start->line);
	struct docker_line *l = docker_line_adopt(s, start->line, start->key);
	int rc = listen_channels(l, fds, err);
	if (rc == 0)
		rc = ctl_send(s->ctl, start_message(l, start, park), fds, CHANNEL_COUNT, err);
	if (rc < 0)
		line_free(l);
	return rc;
}

int docker_line_start(struct slot *slot, const struct line_start *start, struct err *err)
{
	struct docker_slot *s = docker_slot_of(slot);
	assert(slot_state(slot) == SLOT_WARM || slot_state(slot) == SLOT_TAKEN);
	if (s->gone)
		return err_set(err, E_UNAVAILABLE, "the container is gone");
	int rc = s->foreign ? docker_foreign_start(s, start, err) : line_new(s, start, 0, err);
	if (rc == 0 && slot_state(slot) == SLOT_WARM)
		slot_move(slot, SLOT_TAKEN);
	return rc;
}

int docker_line_revive(
	struct slot *slot, const struct line_start *start, int64_t park, struct err *err)
{
	struct docker_slot *s = docker_slot_of(slot);
	if (s->gone || s->foreign || !s->ctl || park <= 0)
		return err_set(err, E_UNAVAILABLE, "its container parks nothing");
	return line_new(s, start, park, err);
}

void docker_park_release(struct slot *slot, int64_t park)
{
	struct docker_slot *s = docker_slot_of(slot);
	if (!s->ctl)
		return;
	cJSON *m = ctl_message_new(CTL_RELEASE);
	(void)cJSON_AddNumberToObject(m, "park", (double)park); /* ctl_send checks */
	(void)ctl_send(s->ctl, m, NULL, 0, NULL);		/* it is thinned some day */
}

int docker_can_branch(struct slot *slot, struct err *err)
{
	const struct docker_slot *s = docker_slot_of(slot);
	if (s->foreign || !s->ctl || !s->branches)
		return err_set(err, E_UNAVAILABLE,
			"image %s is older than branches: make it anew with `make image`",
			docker_slot_image(s));
	return 0;
}

void docker_drop_folder(struct slot *slot, const char *folder)
{
	struct docker_slot *s = docker_slot_of(slot);
	if (!s->ctl || !s->branches)
		return;
	cJSON *m = ctl_message_new(CTL_DROP_FOLDER);
	(void)cJSON_AddStringToObject(m, "folder", folder); /* ctl_send checks */
	(void)ctl_send(s->ctl, m, NULL, 0, NULL);	    /* it goes with the container */
}

static int find_alive(
	struct docker_slot *s, unsigned line, struct docker_line **ret, struct err *err)
{
	struct docker_line *l = docker_line_find(s, line);
	if (!l || !s->ctl)
		return err_set(err, E_UNAVAILABLE, "kernel process %u has ended", line);
	*ret = l;
	return 0;
}

int docker_line_signal(struct slot *slot, unsigned line, int signo, struct err *err)
{
	struct docker_slot *s = docker_slot_of(slot);
	struct docker_line *l = NULL;
	if (s->foreign)
		return docker_foreign_signal(s, line, signo, err);
	int rc = find_alive(s, line, &l, err);
	if (rc < 0)
		return rc;
	cJSON *m = ctl_message_new(CTL_SIGNAL);
	/* ctl_send checks that both are there. */
	(void)cJSON_AddNumberToObject(m, "line", line);
	(void)cJSON_AddNumberToObject(m, "signal", signo);
	return ctl_send(s->ctl, m, NULL, 0, err);
}

int docker_can_hand_over(struct slot *slot, struct err *err)
{
	const struct docker_slot *s = docker_slot_of(slot);
	if (s->foreign || !s->hands)
		return err_set(err, E_UNAVAILABLE,
			"image %s is older than the pool: make it anew with `make image`",
			docker_slot_image(s));
	return 0;
}

int docker_line_hand_over(struct slot *slot, const struct line_start *start, struct err *err)
{
	struct docker_slot *s = docker_slot_of(slot);
	struct docker_line *l = NULL;
	bool fresh = false;
	int rc = docker_can_hand_over(slot, err);
	if (rc == 0)
		rc = find_alive(s, start->line, &l, err);
	if (rc < 0)
		return rc;
	cJSON *m = ctl_message_new(CTL_HAND_OVER);
	cJSON *env = cJSON_CreateObject();
	/* ctl_send checks that all are there. The kernelspec's own was there from the start. */
	(void)cJSON_AddNumberToObject(m, "line", start->line);
	(void)cJSON_AddStringToObject(m, "kernel", start->kernel_id);
	(void)cJSON_AddStringToObject(m, "cwd", folder_of(start, 0));
	if (!add_env(env, start->env, &fresh) || !cJSON_AddItemToObject(m, "env", env))
		cJSON_Delete(env);
	return ctl_send(s->ctl, m, NULL, 0, err);
}

static void on_killed(void *data, int status, const struct cJSON *json, const struct err *err)
{
	(void)json; /* has none */
	/* 409: it has ended meanwhile, which ctl tells. */
	if (err && status != 409)
		docker_slot_gone(data, err);
}

/* The supervisor is stuck, or the guest keeps it from working: the engine ends the container, and
 * the end of ctl tells the rest. */
static void on_kill_late(struct timer *t)
{
	struct docker_line *l = CONTAINER_OF(t, struct docker_line, kill);
	struct docker_slot *s = l->slot;
	struct err err;
	log_warn(&s->log, "kill_not_answered line=%u", l->number);
	if (docker_slot_call(s, "POST", "/kill", NULL, on_killed, &err) < 0)
		docker_slot_gone(s, &err);
}

static bool others_live(const struct docker_line *of)
{
	LIST_EACH (at, &of->slot->lines) {
		const struct docker_line *l = CONTAINER_OF(at, struct docker_line, link);
		if (l != of && l->started)
			return true;
	}
	return false;
}

int docker_line_kill(struct slot *slot, unsigned line, struct err *err)
{
	struct docker_slot *s = docker_slot_of(slot);
	struct docker_line *l = NULL;
	if (s->foreign)
		return docker_foreign_kill(s, line, err);
	int rc = find_alive(s, line, &l, err);
	if (rc < 0)
		return rc;
	struct err why;
	if (send_kill(s, line, &why) < 0)
		log_warn(&s->log, "kill_not_sent line=%u reason=%s", line, why.text);
	if (!timer_running(&l->kill))
		timer_start(
			s->docker->env.clock, &l->kill, others_live(l) ? KILL_BESIDE_MS : KILL_MS);
	return 0;
}

void docker_line_ack(struct slot *slot, unsigned line, enum channel channel, const char *msg_id)
{
	struct docker_slot *s = docker_slot_of(slot);
	struct docker_line *l = NULL;
	if (s->foreign || !s->keeps || find_alive(s, line, &l, NULL) < 0)
		return;
	cJSON *m = ctl_message_new(CTL_ACK);
	/* ctl_send checks that all are there. */
	(void)cJSON_AddNumberToObject(m, "line", line);
	(void)cJSON_AddStringToObject(m, "channel", channel_name(channel));
	(void)cJSON_AddStringToObject(m, "msg_id", msg_id);
	(void)ctl_send(s->ctl, m, NULL, 0, NULL); /* the next one covers it */
}

void docker_line_ended(struct docker_line *l, const struct line_exit *exit)
{
	struct docker_slot *s = l->slot;
	unsigned number = l->number;
	line_free(l);
	s->base.watcher.on_exit(s->base.watcher.data, number, exit);
}

static void on_line_exited(struct docker_line *l, const cJSON *m)
{
	struct docker_slot *s = l->slot;
	unsigned number = l->number;
	int64_t left = ctl_int(m, "left", 0);
	struct line_exit exit = {
		.known = true,
		.code = (int)ctl_int(m, "code", 0),
		.signal = (int)ctl_int(m, "signal", 0),
		.oom = ctl_bool(m, "oom"),
	};
	if (left > 0)
		(void)snprintf(exit.text, sizeof(exit.text), /* short */
			"%lld processes that it had left behind were ended", (long long)left);
	log_info(&s->log, "line_exited line=%u code=%d signal=%d oom=%d left=%lld", number,
		exit.code, exit.signal, exit.oom, (long long)left);
	docker_line_ended(l, &exit);
}

static int on_line_started(struct docker_line *l, const cJSON *m, struct err *err)
{
	struct docker_slot *s = l->slot;
	if (l->started)
		return err_set(err, E_PROTOCOL, "this line was started before");
	l->started = true;
	l->pid = (long)ctl_int(m, "pid", 0);
	s->base.watcher.on_started(s->base.watcher.data, l->number, &l->endpoints, l->pid);
	return 0;
}

static int on_line_start_failed(struct docker_line *l, const cJSON *m, struct err *err)
{
	struct docker_slot *s = l->slot;
	unsigned number = l->number;
	struct err why;
	if (l->started)
		return err_set(err, E_PROTOCOL, "this line was started before");
	(void)err_set(&why, E_ENGINE, "the kernel did not start: %s", ctl_text(m, "reason", ""));
	line_free(l);
	s->base.watcher.on_start_failed(s->base.watcher.data, number, &why);
	return 0;
}

static void on_report(struct docker_slot *s, const struct docker_line *l, const cJSON *m)
{
	const struct slot_watcher *w = &s->base.watcher;
	const char *text = ctl_text(m, "data", "");
	if (w->on_report)
		w->on_report(w->data, l->number, ctl_text(m, "msg_id", ""),
			(struct bytes){(const uint8_t *)text, strlen(text)});
}

static void on_ask(struct docker_slot *s, const struct docker_line *l, const cJSON *m)
{
	const struct slot_watcher *w = &s->base.watcher;
	if (w->on_ask)
		w->on_ask(w->data, l->number, ctl_int(m, "id", 0), ctl_text(m, "what", ""),
			ctl_text(m, "about", ""));
}

static void on_parked(struct docker_slot *s, const cJSON *m)
{
	const struct slot_watcher *w = &s->base.watcher;
	const char *text = ctl_text(m, "data", "");
	const struct slot_parked parked = {.park = ctl_int(m, "park", 0),
		.line = (unsigned)ctl_int(m, "line", 0),
		.kernel_id = ctl_text(m, "kernel", ""),
		.msg_id = ctl_text(m, "msg_id", ""),
		.text = {(const uint8_t *)text, strlen(text)}};
	docker_look_parked(s, parked.park, (long)ctl_int(m, "pid", 0));
	if (w->on_parked && parked.park > 0)
		w->on_parked(w->data, &parked);
}

static void on_revived(struct docker_slot *s, const struct docker_line *l, const cJSON *m)
{
	const struct slot_watcher *w = &s->base.watcher;
	const char *text = ctl_text(m, "data", "");
	if (w->on_revived)
		w->on_revived(
			w->data, l->number, (struct bytes){(const uint8_t *)text, strlen(text)});
}

/* About what outlives a line: the line is not looked for. True: it was such a message. */
static bool take_park(struct docker_slot *s, enum ctl_type type, const cJSON *m)
{
	const struct slot_watcher *w = &s->base.watcher;
	if (type == CTL_PARKED)
		on_parked(s, m);
	else if (type == CTL_NOT_PARKED && w->on_not_parked)
		w->on_not_parked(w->data, (unsigned)ctl_int(m, "line", 0),
			ctl_text(m, "msg_id", ""), ctl_text(m, "reason", ""));
	if (type == CTL_UNPARKED)
		docker_look_unparked(s, ctl_int(m, "park", 0));
	if (type == CTL_UNPARKED && w->on_unparked)
		w->on_unparked(w->data, ctl_int(m, "park", 0), ctl_text(m, "reason", ""));
	return type == CTL_PARKED || type == CTL_NOT_PARKED || type == CTL_UNPARKED;
}

/* Up to PIECE_MAX bytes from offset on, with no character cut in two. */
static size_t piece_of(struct bytes text, size_t offset)
{
	size_t n = text.len - offset;
	if (n <= PIECE_MAX)
		return n;
	for (n = PIECE_MAX; n > 0 && (text.data[offset + n] & 0xc0) == 0x80;)
		n--;
	return n;
}

/* In pieces, since a packet is short. What cannot be sent leaves the kernel waiting until it gives
 * up. */
void docker_line_answer(
	struct slot *slot, unsigned line, int64_t id, const char *status, struct bytes text)
{
	struct docker_slot *s = docker_slot_of(slot);
	struct docker_line *l = NULL;
	size_t offset = 0;
	int rc = s->foreign ? E_UNAVAILABLE : find_alive(s, line, &l, NULL);
	while (rc == 0) {
		size_t n = piece_of(text, offset);
		AUTO(freep) char *piece = strndup((const char *)text.data + offset, n);
		cJSON *m = ctl_message_new(CTL_ANSWER);
		/* ctl_send checks that all are there. */
		(void)cJSON_AddNumberToObject(m, "line", line);
		(void)cJSON_AddNumberToObject(m, "id", (double)id);
		(void)cJSON_AddStringToObject(m, "status", status);
		(void)cJSON_AddNumberToObject(m, "offset", (double)offset);
		(void)cJSON_AddNumberToObject(m, "size", (double)text.len);
		(void)cJSON_AddStringToObject(m, "data", piece ? piece : "");
		rc = ctl_send(s->ctl, m, NULL, 0, NULL);
		offset += n;
		if (offset >= text.len)
			return;
	}
}

int docker_line_message(
	struct docker_slot *s, enum ctl_type type, const struct cJSON *message, struct err *err)
{
	if (take_park(s, type, message))
		return 0;
	struct docker_line *l = docker_line_find(s, ctl_int(message, "line", -1));
	if (!l && (type == CTL_REPORT || type == CTL_ASK || type == CTL_REVIVED))
		return 0; /* it has ended meanwhile */
	if (!l)
		return err_set(err, E_PROTOCOL, "there is no such line");
	switch (type) {
	case CTL_STARTED:
		return on_line_started(l, message, err);
	case CTL_START_FAILED:
		return on_line_start_failed(l, message, err);
	case CTL_EXITED:
		on_line_exited(l, message);
		return 0;
	case CTL_HANDED_OVER:
		s->base.watcher.on_handed_over(s->base.watcher.data, l->number);
		return 0;
	case CTL_REPORT:
		on_report(s, l, message);
		return 0;
	case CTL_ASK:
		on_ask(s, l, message);
		return 0;
	case CTL_REVIVED:
		on_revived(s, l, message);
		return 0;
	case CTL_KEPT:
	case CTL_KEPT_END:
		return docker_kept(l, type, message, err);
	case CTL_SIGNALLED:
		if (!ctl_bool(message, "ok"))
			log_info(&s->log, "signal_failed line=%u reason=%s", l->number,
				ctl_text(message, "reason", ""));
		return 0;
	default:
		return err_set(err, E_PROTOCOL, "this type does not go up");
	}
}
