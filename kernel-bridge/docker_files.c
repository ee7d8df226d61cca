#include "kernel-bridge/docker_files.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/crypto.h"

#define PIECE_MAX 46080u /* before base64 makes four thirds of it */
#define KEY_MAX	  320u

/* A text or a content that comes in pieces. */
struct assembly {
	char key[KEY_MAX]; /* of whose pieces; "": of none */
	uint8_t *data;	   /* NULL: what comes of it is passed over */
	size_t len, size;
};

/* Bytes that wait to be sent, in several packets. */
struct outgoing {
	struct list link;
	cJSON *head;  /* of each, without offset, size and data */
	bool is_gone; /* they cannot be had */
	uint8_t *data;
	size_t len, offset;
};

struct docker_files {
	struct docker_slot *slot;
	struct assembly change, content;
	struct list out;
	struct timer room;
};

static void on_room(struct timer *t)
{
	struct docker_files *f = CONTAINER_OF(t, struct docker_files, room);
	const struct slot_watcher *w = &f->slot->base.watcher;
	if (w->files)
		w->files->on_room(w->data);
}

bool docker_files_taken(const struct docker *d)
{
	return d->env.config->files && d->env.config->record;
}

void docker_files_up(struct docker_slot *s, const struct cJSON *hello)
{
	if (!docker_files_taken(s->docker) || !ctl_bool(hello, "files"))
		return;
	s->files = xcalloc(1, sizeof(*s->files));
	s->files->slot = s;
	list_init(&s->files->out);
	timer_init(&s->files->room, on_room);
}

static void assembly_drop(struct assembly *a)
{
	free(a->data);
	a->data = NULL;
	a->len = a->size = 0;
}

static void outgoing_free(struct outgoing *o)
{
	list_remove(&o->link);
	cJSON_Delete(o->head);
	free(o->data);
	free(o);
}

/* Of one lay; NULL: of all. */
static void drop_outgoing(struct docker_files *f, const char *id)
{
	LIST_EACH_SAFE (at, &f->out) {
		struct outgoing *o = CONTAINER_OF(at, struct outgoing, link);
		if (!id || strcmp(ctl_text(o->head, "id", ""), id) == 0)
			outgoing_free(o);
	}
}

void docker_files_drop(struct docker_slot *s)
{
	struct docker_files *f = TAKE(s->files);
	if (!f)
		return;
	timer_stop(s->docker->env.clock, &f->room);
	assembly_drop(&f->change);
	assembly_drop(&f->content);
	drop_outgoing(f, NULL);
	free(f);
}

/* ---- up ---- */

bool docker_files_are_meant(enum ctl_type type)
{
	return type == CTL_FILES || type == CTL_CONTENT || type == CTL_LAID;
}

static int begin(struct assembly *a, const char *key, int64_t size, size_t max, struct err *err)
{
	assembly_drop(a);
	a->key[0] = '\0';
	if (strlen(key) >= sizeof(a->key))
		return err_set(err, E_PROTOCOL, "its name is too long");
	(void)copy_text(a->key, sizeof(a->key), key, strlen(key)); /* fits */
	if (size < 0 || (uint64_t)size > max)
		return err_set(err, E_PROTOCOL, "it is longer than %zu bytes", max);
	a->data = malloc((size_t)size + 1);
	if (!a->data)
		return err_set(err, E_NOMEM, "out of memory");
	a->size = (size_t)size;
	return 0;
}

/* 1: it is whole. What follows a piece that did not fit is passed over without a word each. */
static int add_piece(
	struct assembly *a, const char *key, const cJSON *m, size_t max, struct err *err)
{
	int64_t offset = ctl_int(m, "offset", -1), size = ctl_int(m, "size", -1);
	size_t len = 0;
	int rc = offset == 0 ? begin(a, key, size, max, err) : 0;
	if (rc < 0)
		return rc;
	bool is_same = strcmp(a->key, key) == 0;
	if (!a->data && is_same)
		return 0;
	if (!a->data || !is_same || offset != (int64_t)a->len || size != (int64_t)a->size ||
		!crypto_base64_decode(
			ctl_text(m, "data", ""), a->data + a->len, a->size - a->len, &len) ||
		(len == 0 && a->size > 0)) {
		assembly_drop(a);
		return err_set(err, E_PROTOCOL, "a piece that does not fit");
	}
	a->len += len;
	return a->len == a->size ? 1 : 0;
}

static int take_change(struct docker_slot *s, const cJSON *m, struct err *err)
{
	const struct slot_watcher *w = &s->base.watcher;
	struct assembly *a = &s->files->change;
	const char *msg_id = ctl_text(m, "msg_id", "");
	unsigned line = (unsigned)ctl_int(m, "line", 0);
	char key[KEY_MAX + 1];
	(void)snprintf(key, sizeof(key), "%u %s", line, msg_id); /* cut: begin refuses it */
	int rc = add_piece(a, key, m, FILES_CHANGE_MAX, err);
	if (rc < 1)
		return rc;
	AUTO(freep) uint8_t *data = TAKE(a->data);
	w->files->on_files(w->data, line, msg_id, (struct bytes){data, a->len});
	return 0;
}

static int take_content(struct docker_slot *s, const cJSON *m, struct err *err)
{
	const struct slot_watcher *w = &s->base.watcher;
	struct assembly *a = &s->files->content;
	const char *name = ctl_text(m, "name", "");
	if (ctl_int(m, "size", 0) == -1) {
		w->files->on_content(w->data, name, (struct bytes){0});
		return 0;
	}
	int rc = add_piece(a, name, m, FILES_CONTENT_MAX, err);
	if (rc < 1)
		return rc;
	AUTO(freep) uint8_t *data = TAKE(a->data);
	w->files->on_content(w->data, name, (struct bytes){data, a->len});
	return 0;
}

static void take_laid(struct docker_slot *s, const cJSON *m)
{
	const struct slot_watcher *w = &s->base.watcher;
	const char *reason = ctl_text(m, "reason", NULL);
	const struct slot_laid laid = {
		.id = ctl_text(m, "id", ""),
		.ready = ctl_bool(m, "ready"),
		.reason = reason,
		.names = ctl_bool(m, "ready") || reason
				 ? NULL
				 : cJSON_GetObjectItemCaseSensitive(m, "names"),
		.last = ctl_bool(m, "last"),
	};
	w->files->on_laid(w->data, &laid);
}

int docker_files_message(
	struct docker_slot *s, enum ctl_type type, const struct cJSON *m, struct err *err)
{
	if (!s->files)
		return err_set(err, E_PROTOCOL, "this gateway was told nothing of files");
	if (!s->base.watcher.files)
		return 0;
	if (type == CTL_FILES)
		return take_change(s, m, err);
	if (type == CTL_CONTENT)
		return take_content(s, m, err);
	take_laid(s, m);
	return 0;
}

/* ---- down ---- */

static cJSON *next_packet(struct outgoing *o)
{
	AUTO(buf_done) struct buf text;
	size_t n = o->len - o->offset < PIECE_MAX ? o->len - o->offset : PIECE_MAX;
	cJSON *m = cJSON_Duplicate(o->head, true);
	buf_init(&text, 2 * PIECE_MAX);
	/* What is missing for want of memory is missed by ctl_send's check. */
	if (n > 0)
		(void)base64_encode((struct bytes){o->data + o->offset, n}, &text);
	(void)cJSON_AddNumberToObject(m, "offset", (double)o->offset);
	(void)cJSON_AddNumberToObject(m, "size", o->is_gone ? -1 : (double)o->len);
	if (!text.failed)
		(void)cJSON_AddStringToObject(m, "data", text.data ? (char *)text.data : "");
	o->offset += n;
	return m;
}

void docker_files_go_on(struct docker_slot *s)
{
	struct docker_files *f = s->files;
	struct err err;
	if (!f || list_empty(&f->out))
		return;
	while (!list_empty(&f->out) && s->ctl && ctl_has_room(s->ctl)) {
		struct outgoing *o = CONTAINER_OF(f->out.next, struct outgoing, link);
		int rc = ctl_send(s->ctl, next_packet(o), NULL, 0, &err);
		if (rc < 0)
			log_warn(&s->log, "files_not_sent reason=%s", err.text);
		if (rc < 0 || o->offset == o->len)
			outgoing_free(o);
	}
	if (list_empty(&f->out))
		timer_start(s->docker->env.clock, &f->room, 0);
}

static bool has(struct slot *slot)
{
	const struct docker_slot *s = docker_slot_of(slot);
	return s->files && s->ctl;
}

static int check(struct slot *slot, struct err *err)
{
	return has(slot) ? 0
			 : err_set(err, E_UNAVAILABLE, "its container tells nothing of its files");
}

static int want(struct slot *slot, unsigned line, const struct kernel_want *w, struct err *err)
{
	int rc = check(slot, err);
	if (rc < 0)
		return rc;
	assert(w->n <= FILES_WANT_MAX);
	cJSON *m = ctl_message_new(CTL_WANT);
	/* ctl_send checks that all are there. */
	(void)cJSON_AddNumberToObject(m, "line", line);
	(void)cJSON_AddStringToObject(m, "msg_id", w->msg_id);
	cJSON *names = cJSON_AddArrayToObject(m, "names");
	for (size_t i = 0; i < w->n; i++)
		(void)cJSON_AddItemToArray(names, cJSON_CreateString(w->names[i]));
	(void)cJSON_AddBoolToObject(m, "last", w->last);
	return ctl_send(docker_slot_of(slot)->ctl, m, NULL, 0, err);
}

static int scan(struct slot *slot, unsigned line, const char *id, bool full, struct err *err)
{
	int rc = check(slot, err);
	if (rc < 0)
		return rc;
	cJSON *m = ctl_message_new(CTL_SCAN);
	(void)cJSON_AddNumberToObject(m, "line", line); /* ctl_send checks that both are there */
	(void)cJSON_AddStringToObject(m, "id", id);
	if (full && !cJSON_AddTrueToObject(m, "full")) {
		cJSON_Delete(m);
		return err_set(err, E_NOMEM, "a look at its folder: out of memory");
	}
	return ctl_send(docker_slot_of(slot)->ctl, m, NULL, 0, err);
}

/* Takes the head. */
static int push(struct slot *slot, cJSON *head, struct bytes bytes, struct err *err)
{
	struct docker_slot *s = docker_slot_of(slot);
	struct outgoing *o = xcalloc(1, sizeof(*o));
	o->head = head;
	o->is_gone = !bytes.data;
	o->len = bytes.data ? bytes.len : 0;
	o->data = malloc(o->len + 1);
	list_append(&s->files->out, &o->link);
	if (!o->data) {
		outgoing_free(o);
		return err_set(err, E_NOMEM, "a file to lay down: out of memory");
	}
	if (o->len > 0)
		memcpy(o->data, bytes.data, o->len);
	docker_files_go_on(s);
	return 0;
}

static int lay(struct slot *slot, const char *id, const char *folder, struct bytes entries,
	struct err *err)
{
	int rc = check(slot, err);
	if (rc < 0)
		return rc;
	cJSON *m = ctl_message_new(CTL_LAY);
	(void)cJSON_AddStringToObject(m, "id", id); /* ctl_send checks that all are there */
	(void)cJSON_AddStringToObject(m, "folder", folder);
	return push(slot, m, entries, err);
}

static int lay_content(
	struct slot *slot, const char *id, const char *name, struct bytes bytes, struct err *err)
{
	int rc = check(slot, err);
	if (rc < 0)
		return rc;
	cJSON *m = ctl_message_new(CTL_LAY_CONTENT);
	(void)cJSON_AddStringToObject(m, "id", id); /* as above */
	(void)cJSON_AddStringToObject(m, "name", name);
	return push(slot, m, bytes, err);
}

/* What waits of others' lays, in other folders, stays. */
static void lay_end(struct slot *slot, const char *id, bool keep)
{
	struct docker_slot *s = docker_slot_of(slot);
	if (!has(slot))
		return;
	drop_outgoing(s->files, id);
	cJSON *m = ctl_message_new(CTL_LAY_END);
	(void)cJSON_AddStringToObject(m, "id", id); /* ctl_send checks that both are there */
	(void)cJSON_AddBoolToObject(m, "keep", keep);
	struct err err;
	if (ctl_send(s->ctl, m, NULL, 0, &err) < 0)
		log_warn(&s->log, "lay_end_not_sent keep=%d reason=%s", keep, err.text);
}

const struct slot_files_ops docker_files_ops = {
	.has = has,
	.want = want,
	.scan = scan,
	.lay = lay,
	.lay_content = lay_content,
	.lay_end = lay_end,
};
