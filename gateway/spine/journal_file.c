#include "gateway/spine/journal_file.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/spine/forgotten.h"
#include "gateway/spine/journal_segment.h"

enum op { OP_MKDIR, OP_OPEN, OP_WRITE, OP_CLOSE, OP_UNLINK, OP_RMDIR };

struct batch {
	size_t n;
	uint64_t bytes;
	struct entry *entries[JOURNAL_BATCH_MAX];
	uint8_t heads[JOURNAL_BATCH_MAX][RECORD_HEAD];
	uv_buf_t bufs[JOURNAL_BATCH_MAX * 2];
};

static void step_or_fail(struct journal_file *f);

void segment_path(const struct journal_file *f, unsigned index, char ret_path[PATH_MAX])
{
	(void)snprintf(
		ret_path, PATH_MAX, "%s/%06u.seg", f->folder, index); /* length was checked */
}

int journal_file_open(
	const struct journal_file_setup *setup, struct journal_file **ret, struct err *err)
{
	if (strlen(setup->folder) + 16 > PATH_MAX)
		return err_set(err, E_INVALID, "journal: path is too long: %.200s", setup->folder);
	struct journal_file *f = xcalloc(1, sizeof *f);
	f->setup = *setup;
	f->folder = xstrdup(setup->folder);
	f->setup.folder = f->folder;
	f->segment_max = setup->disk_max / 4;
	if (f->segment_max > JOURNAL_SEGMENT_MAX)
		f->segment_max = JOURNAL_SEGMENT_MAX;
	f->fd = -1;
	list_init(&f->segments);
	*ret = f;
	return 0;
}

bool journal_file_busy(const struct journal_file *f)
{
	return f->batch != NULL;
}

uint64_t journal_file_first(const struct journal_file *f)
{
	if (list_empty(&f->segments))
		return 0;
	return CONTAINER_OF(f->segments.next, struct segment, link)->first;
}

uint64_t journal_file_bytes(const struct journal_file *f)
{
	return f->bytes;
}

static struct segment *current(const struct journal_file *f)
{
	return CONTAINER_OF(f->segments.prev, struct segment, link);
}

static void batch_free(struct batch *b)
{
	for (size_t i = 0; b && i < b->n; i++)
		entry_unref(b->entries[i]);
	free(b);
}

static void put_le(uint8_t *to, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

static void batch_add(struct batch *b, struct entry *e)
{
	struct bytes frame = e->msg->frame;
	uint8_t *head = b->heads[b->n];
	put_le(head, frame.len, 4);
	put_le(head + 4, e->number, 8);
	put_le(head + 12, e->to, 8);
	b->bufs[b->n * 2] = uv_buf_init((char *)head, RECORD_HEAD);
	b->bufs[b->n * 2 + 1].base = (char *)(uintptr_t)frame.data;
	b->bufs[b->n * 2 + 1].len = frame.len;
	b->bytes += RECORD_HEAD + frame.len;
	b->entries[b->n++] = entry_ref(e);
}

static void segment_unlinked(uv_fs_t *op)
{
	struct journal_file *f = op->data;
	uv_fs_req_cleanup(op);
	free(op);
	f->n_unlinks--;
	step_or_fail(f);
}

/* The oldest segment goes; a file that cannot be removed is left to the sweep of the next start. */
static void cut_oldest(struct journal_file *f)
{
	struct segment *s = CONTAINER_OF(f->segments.next, struct segment, link);
	char path[PATH_MAX];
	segment_path(f, s->index, path);
	uv_fs_t *op = xcalloc(1, sizeof *op);
	op->data = f;
	if (uv_fs_unlink(f->setup.loop, op, path, segment_unlinked) == 0)
		f->n_unlinks++;
	else
		free(op);
	f->bytes -= s->bytes;
	segment_free(s);
}

static void wrote(struct journal_file *f)
{
	struct batch *b = f->batch;
	f->batch = NULL;
	struct segment *s = current(f);
	segment_grew(s, b->entries[0]->number, b->entries[b->n - 1]->number, b->bytes);
	f->bytes += b->bytes;
	uint64_t last = s->last;
	batch_free(b);
	while (f->bytes > f->setup.disk_max && f->segments.next != f->segments.prev)
		cut_oldest(f);
	if (!f->closed)
		f->setup.on_written(f->setup.data, last);
}

static void fail(struct journal_file *f, int code, const char *what)
{
	struct err err;
	err_set(&err, E_IO, "journal: cannot %s in %s: %s", what, f->folder, uv_strerror(code));
	f->failed = true;
	batch_free(f->batch);
	f->batch = NULL;
	if (!f->closed)
		f->setup.on_failed(f->setup.data, &err);
}

static void on_op(uv_fs_t *op);

static int begin(struct journal_file *f, enum op kind, const char *path)
{
	uv_loop_t *loop = f->setup.loop;
	int rc = UV_EINVAL;
	f->op.data = f;
	f->kind = kind;
	switch (kind) {
	case OP_MKDIR:
		rc = uv_fs_mkdir(loop, &f->op, path, 0700, on_op);
		break;
	case OP_OPEN:
		rc = uv_fs_open(
			loop, &f->op, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600, on_op);
		break;
	case OP_WRITE:
		rc = uv_fs_write(loop, &f->op, f->fd, f->batch->bufs, (unsigned)f->batch->n * 2,
			(int64_t)current(f)->bytes, on_op);
		break;
	case OP_CLOSE:
		rc = uv_fs_close(loop, &f->op, f->fd, on_op);
		break;
	case OP_UNLINK:
		rc = uv_fs_unlink(loop, &f->op, path, on_op);
		break;
	case OP_RMDIR:
		rc = uv_fs_rmdir(loop, &f->op, path, on_op);
		break;
	}
	f->op_active = rc == 0;
	return rc;
}

static void finish_close(struct journal_file *f)
{
	void (*cb)(void *) = f->closed;
	void *data = f->closed_data;
	batch_free(f->batch); /* one that waited for its segment */
	free(f->folder);
	free(f);
	cb(data);
}

/* Takes the segments one by one; what fails is left to the sweep of the next start. The folder's
 * removal comes last, also where no folder was made: it brings cb from the loop. */
static int close_step(struct journal_file *f)
{
	char path[PATH_MAX];
	if (f->n_readers > 0 || f->n_unlinks > 0)
		return 0;
	if (f->fd >= 0)
		return begin(f, OP_CLOSE, NULL);
	if (list_empty(&f->segments))
		return begin(f, OP_RMDIR, f->folder);
	struct segment *s = CONTAINER_OF(f->segments.next, struct segment, link);
	segment_path(f, s->index, path);
	segment_free(s);
	if (f->keeps)
		return close_step(f);
	return begin(f, OP_UNLINK, path);
}

static int write_step(struct journal_file *f)
{
	char path[PATH_MAX];
	if (!f->made)
		return begin(f, OP_MKDIR, f->folder);
	if (f->fd >= 0 && current(f)->bytes >= f->segment_max)
		return begin(f, OP_CLOSE, NULL);
	if (f->fd >= 0)
		return begin(f, OP_WRITE, NULL);
	segment_path(f, f->n_made, path);
	return begin(f, OP_OPEN, path);
}

static int step(struct journal_file *f)
{
	if (f->op_active)
		return 0;
	if (f->closed)
		return close_step(f);
	return f->batch && !f->failed ? write_step(f) : 0;
}

static void step_or_fail(struct journal_file *f)
{
	int rc = step(f);
	if (rc == 0)
		return;
	if (f->closed)
		finish_close(f); /* out of memory for the removal */
	else
		fail(f, rc, "write");
}

static void wrote_or_fail(struct journal_file *f, int64_t result)
{
	if (result >= 0 && (uint64_t)result == f->batch->bytes)
		wrote(f);
	else
		fail(f, result < 0 ? (int)result : UV_ENOSPC, "write");
}

static void opened(struct journal_file *f, int64_t result)
{
	if (result < 0) {
		fail(f, (int)result, "make a segment");
		return;
	}
	f->fd = (int)result;
	struct segment *s = segment_new(f->n_made++);
	list_append(&f->segments, &s->link);
}

static void on_op(uv_fs_t *op)
{
	struct journal_file *f = op->data;
	int64_t result = op->result;
	uv_fs_req_cleanup(op);
	f->op_active = false;
	switch (f->kind) {
	case OP_MKDIR:
		f->made = result == 0 || result == UV_EEXIST;
		if (!f->made)
			fail(f, (int)result, "make a folder");
		break;
	case OP_OPEN:
		opened(f, result);
		break;
	case OP_WRITE:
		wrote_or_fail(f, result);
		break;
	case OP_CLOSE:
		f->fd = -1;
		break;
	case OP_UNLINK:
		break;
	case OP_RMDIR:
		finish_close(f);
		return;
	}
	step_or_fail(f);
}

int journal_file_write(struct journal_file *f, struct entry *const *entries, size_t n)
{
	assert(!f->batch && !f->failed && !f->closed && n > 0 && n <= JOURNAL_BATCH_MAX);
	f->batch = malloc(sizeof *f->batch);
	if (!f->batch)
		return E_NOMEM;
	f->batch->n = 0;
	f->batch->bytes = 0;
	for (size_t i = 0; i < n; i++)
		batch_add(f->batch, entries[i]);
	if (step(f) == 0)
		return 0;
	batch_free(f->batch);
	f->batch = NULL;
	return E_NOMEM;
}

void journal_file_keep(struct journal_file *f)
{
	f->keeps = true; /* a folder that is not empty is not removed either */
}

void journal_file_close(struct journal_file *f, void (*cb)(void *data), void *data)
{
	assert(!f->closed);
	f->closed = cb;
	f->closed_data = data;
	int rc = step(f);
	assert(rc == 0);
	(void)rc; /* only memory can be short here, and then xcalloc's rule holds */
}

void journal_file_reader_left(struct journal_file *f)
{
	f->n_readers--;
	step_or_fail(f);
}

static void sweep_one(const char *journals, const char *name)
{
	char folder[PATH_MAX], path[PATH_MAX];
	if (snprintf(folder, sizeof folder, "%s/%s", journals, name) >= (int)sizeof folder)
		return;
	DIR *dir = opendir(folder);
	for (struct dirent *d; dir && (d = readdir(dir));) {
		size_t len = strlen(d->d_name);
		bool segment = len >= 4 && strcmp(d->d_name + len - 4, ".seg") == 0;
		if (!segment && strcmp(d->d_name, "live") != 0 &&
			strncmp(d->d_name, FORGOTTEN_FILE, sizeof FORGOTTEN_FILE - 1) != 0)
			continue;
		if (snprintf(path, sizeof path, "%s/%s", folder, d->d_name) < (int)sizeof path)
			(void)unlink(path); /* rmdir shows what could not be removed */
	}
	if (dir)
		closedir(dir);
	(void)rmdir(folder); /* strangers' files keep it */
}

void journal_file_sweep(
	const char *journals, bool (*keep)(void *data, const char *name), void *data)
{
	(void)mkdir(journals, 0700); /* the first write tells if it is not there */
	DIR *dir = opendir(journals);
	for (struct dirent *d; dir && (d = readdir(dir));) {
		if (d->d_name[0] != '.' && !(keep && keep(data, d->d_name)))
			sweep_one(journals, d->d_name);
	}
	if (dir)
		closedir(dir);
}
