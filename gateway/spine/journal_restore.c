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

static uint64_t get_le(const uint8_t *from, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

/* Walks as far as whole records reach whose numbers go on from *number (0: any). */
static void walk(struct segment *s, struct bytes all, uint64_t *number)
{
	while (all.len - s->bytes >= RECORD_HEAD) {
		const uint8_t *head = all.data + s->bytes;
		uint64_t len = get_le(head, 4), found = get_le(head + 4, 8);
		if (len > JMSG_FRAME_MAX || len > all.len - s->bytes - RECORD_HEAD || found == 0 ||
			(*number > 0 && found != *number + 1))
			return;
		segment_grew(s, found, found, RECORD_HEAD + len);
		*number = found;
	}
}

static void restore_one(struct journal_file *f, unsigned index, uint64_t *number)
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
		walk(s, (struct bytes){at, (size_t)st.st_size}, number);
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

uint64_t journal_file_restore(struct journal_file *f)
{
	unsigned *indices = xcalloc(SEGMENTS_MAX, sizeof *indices);
	uint64_t last = 0;
	size_t n = find(f->folder, indices);
	for (size_t i = 0; i < n; i++)
		restore_one(f, indices[i], &last);
	if (n > 0)
		f->n_made = indices[n - 1] + 1;
	free(indices);
	return last;
}
