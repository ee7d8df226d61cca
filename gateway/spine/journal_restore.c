/* Takes up the segments that an earlier gateway left: their records are walked through once, a torn
 * last one is cut off. Blocks; at start only. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/spine/journal_segment.h"

#define SEGMENTS_MAX 4096u
#define NUMBER_MAX   (UINT64_MAX / 2) /* no journal comes so far, and what comes after fits */

static uint64_t get_le(const uint8_t *from, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

/* Walks as far as whole records reach whose numbers go on from *number (0: any). */
static void walk(struct segment *s, struct bytes all, const struct journal_file_setup *to_tell,
	uint64_t *number)
{
	while (all.len - s->bytes >= RECORD_HEAD) {
		const uint8_t *head = all.data + s->bytes;
		uint64_t len = get_le(head, 4), found = get_le(head + 4, 8);
		if (len > JMSG_FRAME_MAX || len > all.len - s->bytes - RECORD_HEAD || found == 0 ||
			found > NUMBER_MAX || (*number > 0 && found != *number + 1))
			return;
		segment_grew(s, found, found, RECORD_HEAD + len);
		*number = found;
		if (to_tell && to_tell->on_kept)
			to_tell->on_kept(to_tell->data, (struct bytes){head + RECORD_HEAD, len},
				found, get_le(head + 12, 8));
	}
}

static void restore_one(struct journal_file *f, unsigned index, bool tells, uint64_t *number)
{
	char path[PATH_MAX];
	struct stat st;
	segment_path(f, index, path);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct segment *s = segment_new(index);
	void *at = MAP_FAILED;
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED) {
		walk(s, (struct bytes){at, (size_t)st.st_size}, tells ? &f->setup : NULL, number);
		(void)munmap(at, (size_t)st.st_size); /* cannot fail for a mapping of ours */
		/* Readers stop at the last record anyway. */
		if ((uint64_t)st.st_size > s->bytes && ftruncate(fd, (off_t)s->bytes) < 0)
			s->bytes = 0;
	}
	if (fd >= 0)
		(void)close(fd); /* nothing was written through it */
	if (s->bytes == 0) {
		(void)unlink(path); /* what stays is never read */
		segment_free(s);
		return;
	}
	list_append(&f->segments, &s->link);
	f->bytes += s->bytes;
}

static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	return (x > y) - (x < y);
}

static size_t find(const char *folder, unsigned ret[SEGMENTS_MAX])
{
	size_t n = 0;
	DIR *dir = opendir(folder);
	for (struct dirent *d; dir && (d = readdir(dir)) && n < SEGMENTS_MAX;) {
		unsigned index;
		int end = 0;
		if (sscanf(d->d_name, "%9u.seg%n", &index, &end) == 1 && end > 0 && !d->d_name[end])
			ret[n++] = index;
	}
	if (dir)
		closedir(dir);
	qsort(ret, n, sizeof *ret, compare);
	return n;
}

static size_t first_told(const struct journal_file *f, const unsigned *indices, size_t n)
{
	char path[PATH_MAX];
	struct stat st;
	for (uint64_t bytes = 0; n > 0 && bytes < JOURNAL_TOLD_BYTES; n--) {
		segment_path(f, indices[n - 1], path);
		bytes += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
	}
	return n;
}

uint64_t journal_file_restore(struct journal_file *f)
{
	unsigned *indices = xcalloc(SEGMENTS_MAX, sizeof *indices);
	uint64_t last = 0;
	size_t n = find(f->folder, indices), told = first_told(f, indices, n);
	for (size_t i = 0; i < n; i++)
		restore_one(f, indices[i], i >= told, &last);
	if (n > 0)
		f->n_made = indices[n - 1] + 1;
	free(indices);
	return last;
}
