/* Contents of working files, from the loop to the bulk lane and back: which are there, keeping one,
 * reading one. Those that wait are done together, so that many chunks are synced once. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/crypto.h"
#include "history/chunk.h"
#include "history/files_tree.h"
#include "history/files_walk.h"
#include "history/folder.h"
#include "history/index.h"
#include "history/lanes.h"
#include "history/pins.h"

#define TURN_MAX  64u /* in one turn: questions wait behind it */
#define NAME_SIZE (CHUNK_NAME_LEN + 1)

enum content_what { CONTENT_LACKS, CONTENT_KEEP, CONTENT_READ };

/* One call on its way; owns its texts. */
struct content {
	struct list link;
	enum content_what what;
	struct history_whose whose; /* texts point into text */
	char *text;
	char (*names)[NAME_SIZE];
	size_t n;
	struct buf bytes; /* to be kept, or read */
	union {
		void (*lacks)(void *data, int status, const size_t *lacking, size_t n,
			const struct err *err);
		void (*keep)(void *data, int status, const struct err *err);
		void (*read)(void *data, int status, struct bytes content, const struct err *err);
	} cb;
	void *data;
	/* What came of it. */
	int status;
	struct err err;
	size_t *lacking, n_lacking;
	char history[64];
	bool half; /* a chunk that is written beside */
};

/* ---- the loop ---- */

static struct content *new_content(
	enum content_what what, const struct history_whose *whose, size_t n, void *data)
{
	struct content *c = xcalloc(1, sizeof *c);
	const char *texts[] = {whose->history_id, whose->wanted, whose->owner};
	const char **to[] = {&c->whose.history_id, &c->whose.wanted, &c->whose.owner};
	size_t size = 1;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		size += texts[i] ? strlen(texts[i]) + 1 : 0;
	char *at = c->text = xcalloc(1, size);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (!texts[i])
			continue;
		*to[i] = at;
		memcpy(at, texts[i], strlen(texts[i]) + 1);
		at += strlen(texts[i]) + 1;
	}
	c->what = what;
	c->n = n;
	c->names = xcalloc(n + 1, sizeof *c->names);
	c->data = data;
	buf_init(&c->bytes, HISTORY_CONTENT_MAX);
	list_init(&c->link);
	return c;
}

static void content_free(struct content *c)
{
	buf_done(&c->bytes);
	free(c->lacking);
	free(c->names);
	free(c->text);
	free(c);
}

/* What is no name is "", and is not there. */
static void set_name(struct content *c, size_t i, const char *name)
{
	size_t len = strlen(name);
	if ((len == HISTORY_NODE_SIZE - 1 || len == CHUNK_NAME_LEN) && is_hex_name(name, len))
		memcpy(c->names[i], name, len + 1);
}

/* Takes it. Whatever is wrong with it already is told from the loop, as all else is. */
static void hand_over(struct histories *h, struct content *c)
{
	pthread_mutex_lock(&h->lock);
	if (c->status == 0 && (h->closing || h->n_contents >= HISTORY_CONTENTS_MAX))
		c->status = err_set(&c->err, E_UNAVAILABLE,
			"too many contents of files wait, or everything ends");
	if (c->status == 0 && h->contents_bytes + c->bytes.len > HISTORY_CONTENTS_WAIT)
		c->status = err_set(&c->err, E_CAPACITY,
			"more than %u MiB of contents of files wait to be kept",
			HISTORY_CONTENTS_WAIT >> 20);
	if (c->status != 0)
		buf_done(&c->bytes);
	h->n_contents++;
	h->contents_bytes += c->bytes.len;
	/* Behind those that came before it, whatever came of it; but nobody may look there any more
	 * when everything ends. */
	list_append(h->closing ? &h->contents_done : &h->contents, &c->link);
	if (h->closing)
		(void)uv_async_send(
			&h->async); /* it is open as long as the loop has not closed h */
	pthread_cond_signal(&h->ask_wake);
	pthread_mutex_unlock(&h->lock);
}

void history_lacks(struct histories *h, const struct history_whose *whose, const char *const *names,
	size_t n,
	void (*cb)(void *data, int status, const size_t *lacking, size_t n, const struct err *err),
	void *data)
{
	bool fits = n <= HISTORY_CONTENTS_MAX;
	struct content *c = new_content(CONTENT_LACKS, whose, fits ? n : 0, data);
	c->cb.lacks = cb;
	c->lacking = calloc(c->n + 1, sizeof *c->lacking);
	if (!fits || !c->lacking)
		c->status = err_set(&c->err, fits ? E_NOMEM : E_TOO_BIG,
			"%zu contents of files are asked for at once", n);
	for (size_t i = 0; i < c->n; i++)
		set_name(c, i, names[i]);
	hand_over(h, c);
}

void history_keep(struct histories *h, const struct history_whose *whose, const char *name,
	struct bytes content, void (*cb)(void *data, int status, const struct err *err), void *data)
{
	struct content *c = new_content(CONTENT_KEEP, whose, 1, data);
	c->cb.keep = cb;
	set_name(c, 0, name);
	if (buf_add(&c->bytes, content.data, content.len) != 0)
		c->status = buf_check(&c->bytes, "the content of a file", &c->err);
	hand_over(h, c);
}

void history_content(struct histories *h, const struct history_whose *whose, const char *name,
	void (*cb)(void *data, int status, struct bytes content, const struct err *err), void *data)
{
	struct content *c = new_content(CONTENT_READ, whose, 1, data);
	c->cb.read = cb;
	set_name(c, 0, name);
	hand_over(h, c);
}

static void tell(struct content *c)
{
	const struct err *err = c->status == 0 ? NULL : &c->err;
	struct bytes bytes = {c->bytes.data, c->bytes.len};
	switch (c->what) {
	case CONTENT_LACKS:
		c->cb.lacks(c->data, c->status, c->lacking, err ? 0 : c->n_lacking, err);
		break;
	case CONTENT_KEEP:
		c->cb.keep(c->data, c->status, err);
		break;
	case CONTENT_READ:
		c->cb.read(c->data, c->status, err ? (struct bytes){0} : bytes, err);
		break;
	}
}

void contents_tell(struct list *done)
{
	LIST_EACH_SAFE (at, done) {
		struct content *c = CONTAINER_OF(at, struct content, link);
		list_remove(at);
		tell(c);
		content_free(c);
	}
}

/* ---- the bulk lane: where they are ---- */

/* What is open during a turn. */
struct turn {
	struct histories *h;
	char id[64], path[PATH_MAX];
	struct repo repo;
	const struct content *of; /* whose the place was found for */
	bool halves;
};

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_whose(const struct history_whose *a, const struct history_whose *b)
{
	return same_text(a->history_id, b->history_id) && same_text(a->wanted, b->wanted) &&
	       same_text(a->owner, b->owner);
}

static bool is_there(const struct histories *h, const char *id)
{
	char path[PATH_MAX];
	return folder_repository(h->folder, id, path, sizeof path) && access(path, F_OK) == 0;
}

/* As the recorder places a run (place.c), which alone makes what is not there yet. */
static int find_id(struct turn *t, const struct content *c, char ret_id[64], struct err *err)
{
	const struct history_whose *w = &c->whose;
	struct histories *h = t->h;
	const char *wanted = w->wanted && *w->wanted ? w->wanted : w->history_id;
	bool own = copy_text(ret_id, 64, w->history_id, strlen(w->history_id));
	if (!w->owner)
		return own && is_there(h, w->history_id)
			       ? 0
			       : err_set(err, E_NOT_FOUND, "there is no such history");
	int status = index_find_history(h->asker.db, w->owner, wanted, ret_id, err);
	if (status != 0)
		return status < 0 ? status : 0;
	status = index_has_history(h->asker.db, w->history_id, err);
	if (status < 0)
		return status;
	if (status == 0 && own && is_there(h, w->history_id))
		return 0;
	if (c->what == CONTENT_KEEP)
		return keeping_place(h, w, ret_id, err);
	return err_set(err, E_NOT_FOUND, "the history is not there yet");
}

static void leave(struct turn *t)
{
	if (t->repo.git)
		repo_close(&t->repo);
	t->of = NULL;
}

static int enter(struct turn *t, struct content *c, struct err *err)
{
	if (t->of && same_whose(&t->of->whose, &c->whose)) {
		memcpy(c->history, t->id, sizeof c->history);
		return 0;
	}
	leave(t);
	int status = find_id(t, c, t->id, err);
	if (status != 0)
		return status;
	if (!folder_repository(t->h->folder, t->id, t->path, sizeof t->path))
		return err_set(err, E_IO, "the path of a history is too long");
	status = repo_open_to_write(t->path, &t->repo, err);
	if (status == 0) {
		t->of = c;
		memcpy(c->history, t->id, sizeof c->history);
	}
	return status;
}

/* ---- the bulk lane: what is done ---- */

static bool is_chunk(const char *name)
{
	return strlen(name) == CHUNK_NAME_LEN;
}

/* A file that looks like a pointer of ours would be taken for one. */
static bool is_pointer(struct turn *t, const char *blob)
{
	AUTO(buf_done) struct buf text;
	struct pointer pointer;
	bool is = false;
	uint64_t bytes;
	return files_look(&t->repo, blob, &bytes, &text, &pointer, &is, NULL) == 0 && is;
}

static bool has(struct turn *t, const char *name)
{
	struct pins *pins = recorder_pins(t->h->recorder);
	bool there = *name != '\0';
	uint64_t bytes;
	if (there && is_chunk(name))
		there = chunk_touch(t->path, name);
	else if (there)
		there = repo_freshen(&t->repo, name) && files_has_blob(&t->repo, name, &bytes) &&
			!is_pointer(t, name);
	if (there)
		pins_add(pins, t->id, name);
	return there;
}

static void find_lacking(struct turn *t, struct content *c)
{
	int status = enter(t, c, &c->err);
	if (status != 0 && status != E_NOT_FOUND) {
		c->status = status;
		return;
	}
	for (size_t i = 0; i < c->n; i++)
		if (status != 0 || !has(t, c->names[i]))
			c->lacking[c->n_lacking++] = i;
}

static bool is_name_of(const char *name, struct bytes content)
{
	char is[DIGEST_HEX_SIZE];
	if (is_chunk(name))
		crypto_digest_hex(&content, 1, is);
	else if (!repo_blob_name(content, is))
		return false;
	return strcmp(is, name) == 0;
}

static int keep(struct turn *t, struct content *c, struct err *err)
{
	const char *name = c->names[0];
	struct bytes content = {c->bytes.data, c->bytes.len};
	struct pointer pointer;
	char blob[HISTORY_NODE_SIZE];
	if (!*name || !is_name_of(name, content))
		return err_set(err, E_INVALID, "'%.64s' is not the name of that content", name);
	int status = enter(t, c, err);
	if (status != 0)
		return status;
	if (!is_chunk(name) && pointer_read(content, &pointer))
		return err_set(err, E_INVALID, "the file looks like one that stands for another");
	pins_add(recorder_pins(t->h->recorder), t->id, name);
	if (!is_chunk(name))
		return repo_blob(&t->repo, content, blob, err);
	if (chunk_touch(t->path, name))
		return 0;
	status = chunk_write(t->path, name, content, err);
	c->half = status == 0;
	t->halves = t->halves || c->half;
	return status;
}

static int read_one(struct turn *t, struct content *c, struct err *err)
{
	const char *name = c->names[0];
	if (!*name)
		return err_set(err, E_NOT_FOUND, "that is the name of no content");
	int status = enter(t, c, err);
	if (status != 0)
		return status;
	return is_chunk(name) ? chunk_read(t->path, name, &c->bytes, err)
			      : repo_read_blob(&t->repo, name, &c->bytes, err);
}

static void do_one(struct turn *t, struct content *c)
{
	if (c->status != 0)
		return;
	if (c->what == CONTENT_LACKS)
		find_lacking(t, c);
	else if (c->what == CONTENT_KEEP)
		c->status = keep(t, c, &c->err);
	else
		c->status = read_one(t, c, &c->err);
}

/* No chunk has its name before its bytes are on the disk. */
static int sync_folder(const struct histories *h, struct err *err)
{
	int fd = open(h->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool fine = fd >= 0 && syncfs(fd) == 0;
	int why = errno;
	if (fd >= 0)
		(void)close(fd); /* read only */
	return fine ? 0 : err_set(err, E_IO, "%s cannot be synced: %s", h->folder, strerror(why));
}

static void place_halves(struct turn *t, struct list *all)
{
	struct err err;
	int synced = t->halves ? sync_folder(t->h, &err) : 0;
	LIST_EACH (at, all) {
		struct content *c = CONTAINER_OF(at, struct content, link);
		char path[PATH_MAX];
		if (!c->half)
			continue;
		(void)folder_repository(t->h->folder, c->history, path, sizeof path); /* did */
		c->status = synced == 0 ? chunk_place(path, c->names[0], &c->err)
					: err_set(&c->err, synced, "%s", err.text);
	}
}

static void take_some(struct histories *h, struct list *ret)
{
	size_t n = 0;
	list_init(ret);
	pthread_mutex_lock(&h->lock);
	while (!list_empty(&h->contents) && n++ < TURN_MAX) {
		struct list *at = h->contents.next;
		list_remove(at);
		list_append(ret, at);
	}
	pthread_mutex_unlock(&h->lock);
}

static void give_back(struct histories *h, struct list *all, size_t bytes)
{
	pthread_mutex_lock(&h->lock);
	LIST_EACH_SAFE (at, all) {
		list_remove(at);
		list_append(&h->contents_done, at);
	}
	h->contents_bytes -= bytes;
	(void)uv_async_send(&h->async); /* cannot fail while it is open */
	pthread_mutex_unlock(&h->lock);
}

void contents_turn(struct histories *h)
{
	struct turn t = {.h = h};
	struct list all;
	size_t bytes = 0;
	take_some(h, &all);
	if (list_empty(&all))
		return;
	LIST_EACH (at, &all) {
		struct content *c = CONTAINER_OF(at, struct content, link);
		bytes += c->bytes.len; /* before something is read into it */
		do_one(&t, c);
	}
	place_halves(&t, &all);
	leave(&t);
	give_back(h, &all, bytes);
}
