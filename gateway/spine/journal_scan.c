#include "gateway/spine/journal_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/jmsg.h"
#include "gateway/spine/journal_segment.h"

/* Most stretches are of a few messages; behind them in the file are others'. */
#define FIRST_BYTES (16u << 10)
#define BLOCK_BYTES (256u << 10)

struct journal_scan {
	struct journal_stretch stretch;
	int fd;
	uint64_t next; /* number of the record to come; 0: none was seen yet */
	uint8_t *block;
	size_t at, len, size; /* block[at..len) is not taken yet */
};

struct journal_scan *journal_scan_new(const struct journal_stretch *stretch)
{
	struct journal_scan *s = xcalloc(1, sizeof *s);
	s->stretch = *stretch;
	s->fd = -1;
	return s;
}

static void close_segment(struct journal_scan *s)
{
	if (s->fd >= 0)
		(void)close(s->fd); /* read only: nothing to lose */
	s->fd = -1;
}

void journal_scan_free(struct journal_scan *s)
{
	if (!s)
		return;
	close_segment(s);
	free(s->block);
	free(s);
}

static int open_segment(struct journal_scan *s, struct err *err)
{
	char path[PATH_MAX + 16];
	(void)snprintf(
		path, sizeof path, "%s/%06u.seg", s->stretch.folder, s->stretch.segment); /* fits */
	s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (s->fd >= 0)
		return 0;
	return err_set(
		err, errno == ENOENT ? E_GONE : E_IO, "journal: %s: %s", path, strerror(errno));
}

static int make_room(struct journal_scan *s, size_t want, struct err *err)
{
	if (s->len > s->at)
		memmove(s->block, s->block + s->at, s->len - s->at);
	s->len -= s->at;
	s->at = 0;
	size_t size = s->size > 0 ? 2 * s->size : FIRST_BYTES;
	if (want <= s->size && s->size >= BLOCK_BYTES)
		return 0;
	size = size > BLOCK_BYTES ? BLOCK_BYTES : size;
	size = want > size ? want : size;
	uint8_t *block = realloc(s->block, size);
	if (!block && want <= s->size)
		return 0;
	if (!block)
		return err_set(err, E_NOMEM, "journal: a record of %zu bytes", want);
	s->block = block;
	s->size = size;
	return 0;
}

/* 1: `want` bytes are there; 0: the segment ends before. */
static int fill(struct journal_scan *s, size_t want, struct err *err)
{
	if (s->len - s->at >= want)
		return 1;
	int rc = s->size > 0 && s->at == 0 && want <= s->size ? 0 : make_room(s, want, err);
	while (rc == 0 && s->len < want) {
		ssize_t n =
			pread(s->fd, s->block + s->len, s->size - s->len, (off_t)s->stretch.offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, E_IO, "journal: %s", strerror(errno));
		if (n == 0)
			return 0;
		s->len += (size_t)n;
		s->stretch.offset += (uint64_t)n;
	}
	return rc == 0 ? 1 : rc;
}

static void next_segment(struct journal_scan *s)
{
	close_segment(s);
	s->stretch.segment++;
	s->stretch.offset = 0;
	s->at = s->len = 0;
}

static uint64_t get_le(const uint8_t *from, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

/* 1: a whole record is in the block. */
static int take(struct journal_scan *s, struct scanned *ret, struct err *err)
{
	int rc = fill(s, RECORD_HEAD, err);
	if (rc != 1)
		return rc;
	uint64_t len = get_le(s->block + s->at, 4), number = get_le(s->block + s->at + 4, 8);
	if (len > JMSG_FRAME_MAX || (s->next > 0 && number != s->next))
		return err_set(err, E_IO, "journal: %s is damaged", s->stretch.folder);
	rc = fill(s, RECORD_HEAD + len, err);
	if (rc != 1)
		return rc;
	const uint8_t *head = s->block + s->at;
	*ret = (struct scanned){.number = number,
		.to = get_le(head + 12, 8),
		.frame = {.data = head + RECORD_HEAD, .len = len}};
	s->at += RECORD_HEAD + len;
	s->next = number + 1;
	return 1;
}

int journal_scan_next(struct journal_scan *s, struct scanned *ret, struct err *err)
{
	while (s->next <= s->stretch.last) {
		int rc = s->fd < 0 ? open_segment(s, err) : 0;
		if (rc == 0)
			rc = take(s, ret, err);
		if (rc < 0)
			return rc;
		if (rc == 0)
			next_segment(s);
		else if (ret->number >= s->stretch.first)
			return 1;
	}
	return 0;
}

bool journal_stretch(
	const struct journal *j, uint64_t first, uint64_t last, struct journal_stretch *ret)
{
	const struct journal_file *f = journal_file_of(j, last);
	if (!f || strlen(f->folder) >= sizeof ret->folder)
		return false;
	LIST_EACH (at, &f->segments) {
		const struct segment *s = CONTAINER_OF(at, struct segment, link);
		if (s->last < first)
			continue;
		if (s->first > first)
			return false;
		*ret = (struct journal_stretch){.segment = s->index,
			.offset = segment_offset(s, first),
			.first = first,
			.last = last};
		(void)copy_text(ret->folder, sizeof ret->folder, f->folder, strlen(f->folder));
		return true;
	}
	return false;
}
