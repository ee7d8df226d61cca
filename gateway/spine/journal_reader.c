/* Reads a journal's file from some record on, a block at a time. */
#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "gateway/spine/journal_segment.h"

#define BLOCK_BYTES (256u << 10)

struct journal_reader {
	struct journal_file *file;
	uv_fs_t op;
	bool busy, orphan, broken;
	int fd;
	unsigned index;	 /* of the segment that is open */
	uint64_t offset; /* in the segment, of block[len] */
	uint8_t *block;
	size_t at, len, size; /* block[at..len) is not taken yet */
	void (*on_ready)(void *data);
	void *data;
};

struct journal_reader *journal_reader_new(
	struct journal_file *f, void (*on_ready)(void *data), void *data)
{
	struct journal_reader *r = xcalloc(1, sizeof *r);
	r->file = f;
	r->fd = -1;
	r->on_ready = on_ready;
	r->data = data;
	f->n_readers++;
	return r;
}

static void close_segment(struct journal_reader *r)
{
	uv_fs_t op;
	if (r->fd >= 0) {
		(void)uv_fs_close(NULL, &op, r->fd, NULL); /* read only: nothing to lose */
		uv_fs_req_cleanup(&op);
	}
	r->fd = -1;
}

void journal_reader_free(struct journal_reader *r)
{
	if (r->busy) {
		r->orphan = true;
		return;
	}
	struct journal_file *f = r->file;
	close_segment(r);
	free(r->block);
	free(r);
	journal_file_reader_left(f);
}

static uint64_t get_le(const uint8_t *from, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

static void done(struct journal_reader *r)
{
	r->busy = false;
	if (r->orphan)
		journal_reader_free(r);
	else
		r->on_ready(r->data);
}

static void on_read(uv_fs_t *op)
{
	struct journal_reader *r = op->data;
	int64_t result = op->result;
	uv_fs_req_cleanup(op);
	if (result <= 0)
		r->broken = true;
	else {
		r->len += (size_t)result;
		r->offset += (uint64_t)result;
	}
	done(r);
}

/* The rest of the block moves to its beginning; a record larger than a block gets a larger one. */
static int make_room(struct journal_reader *r, struct err *err)
{
	size_t have = r->len - r->at, want = BLOCK_BYTES;
	if (have >= RECORD_HEAD) {
		size_t record = RECORD_HEAD + (size_t)get_le(r->block + r->at, 4);
		want = record > want ? record : want;
	}
	if (have > 0)
		memmove(r->block, r->block + r->at, have);
	r->at = 0;
	r->len = have;
	if (want <= r->size)
		return 0;
	if (want > (size_t)JMSG_FRAME_MAX + RECORD_HEAD)
		return err_set(err, E_IO, "journal: a record in its file is damaged");
	uint8_t *block = realloc(r->block, want);
	if (!block)
		return err_set(err, E_NOMEM, "journal: out of memory for reading it");
	r->block = block;
	r->size = want;
	return 0;
}

static int read_more(struct journal_reader *r, struct err *err)
{
	int rc = make_room(r, err);
	if (rc != 0)
		return rc;
	uv_buf_t buf = {.base = (char *)r->block + r->len, .len = r->size - r->len};
	r->op.data = r;
	if (uv_fs_read(r->file->setup.loop, &r->op, r->fd, &buf, 1, (int64_t)r->offset, on_read))
		return err_set(err, E_NOMEM, "journal: out of memory for reading it");
	r->busy = true;
	return 0;
}

static void on_open(uv_fs_t *op)
{
	struct journal_reader *r = op->data;
	r->fd = op->result < 0 ? -1 : (int)op->result;
	r->broken = r->fd < 0;
	uv_fs_req_cleanup(op);
	done(r);
}

static int open_segment(
	struct journal_reader *r, const struct segment *s, uint64_t number, struct err *err)
{
	char path[PATH_MAX];
	close_segment(r);
	segment_path(r->file, s->index, path);
	r->op.data = r;
	if (uv_fs_open(r->file->setup.loop, &r->op, path, O_RDONLY | O_CLOEXEC, 0, on_open))
		return err_set(err, E_NOMEM, "journal: out of memory for reading it");
	r->busy = true;
	r->index = s->index;
	r->offset = segment_offset(s, number);
	r->at = r->len = 0;
	return 0;
}

static const struct segment *find_segment(const struct journal_file *f, uint64_t number)
{
	LIST_EACH (at, &f->segments) {
		const struct segment *s = CONTAINER_OF(at, struct segment, link);
		if (s->bytes > 0 && s->first <= number && number <= s->last)
			return s;
	}
	return NULL;
}

/* 1: a whole record lies at r->at; its bytes and number are given. */
static bool whole_record(const struct journal_reader *r, struct bytes *ret, uint64_t *ret_number)
{
	if (r->len - r->at < RECORD_HEAD)
		return false;
	const uint8_t *head = r->block + r->at;
	size_t len = (size_t)get_le(head, 4);
	if (r->len - r->at - RECORD_HEAD < len)
		return false;
	*ret = (struct bytes){.data = head + RECORD_HEAD, .len = len};
	*ret_number = get_le(head + 4, 8);
	return true;
}

static int decode(
	struct bytes frame, uint64_t number, uint64_t to, struct entry **ret, struct err *err)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	if (jmsg_from_frame(frame, &m, err) != 0)
		return err_wrap(err, "journal: entry %llu", (unsigned long long)number);
	struct entry *e = entry_new(m, number, to);
	if (!e)
		return err_set(err, E_NOMEM, "journal: out of memory for reading it");
	*ret = e;
	return 1;
}

int journal_reader_next(
	struct journal_reader *r, uint64_t number, struct entry **ret, struct err *err)
{
	if (r->busy)
		return 0;
	const struct segment *s = find_segment(r->file, number);
	if (r->broken || !s)
		return err_set(err, E_IO, "journal: its file cannot be read");
	if (r->fd < 0 || r->index != s->index)
		return open_segment(r, s, number, err);
	struct bytes frame;
	uint64_t found;
	while (whole_record(r, &frame, &found)) {
		uint64_t to = get_le(frame.data - 8, 8);
		r->at += RECORD_HEAD + frame.len;
		if (found == number)
			return decode(frame, number, to, ret, err);
		if (found > number)
			return err_set(err, E_IO, "journal: a record in its file is damaged");
	}
	return read_more(r, err);
}
