#include "history/packfile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "gateway/base/buf.h"
#include "gateway/base/hmac.h"
#include "history/pack.h"

/* Small ones, of which there are many, are stored as they are: half of what a batch costs went to
 * compressing them, and packing does that again, better. */
#define LEVEL	    1
#define SMALL	    4096u
#define WINDOW_BITS 15
#define MEMORY_LEVEL                                                                               \
	5 /* objects are small: most of deflate's time would go to clearing its table */
#define FANOUT 256u

struct entry {
	const struct pack_object *object;
	uint32_t crc, at;
};

struct packing {
	struct buf pack, index;
	struct entry *entries;
	size_t n;
	z_stream z;
	uint8_t sum[PACK_ID_SIZE]; /* of the pack */
};

static void put_u32(struct buf *b, uint32_t number)
{
	uint32_t big = htonl(number);
	(void)buf_add(b, &big, sizeof big); /* latched */
}

/* The sum over all that is in b, added to it. */
static int put_sum(struct buf *b, uint8_t ret_sum[PACK_ID_SIZE], struct err *err)
{
	if (sha1_sum((struct bytes){b->data, b->len}, ret_sum) != 0)
		return err_set(err, E_NOMEM, "a pack: out of memory");
	(void)buf_add(b, ret_sum, PACK_ID_SIZE); /* latched */
	return 0;
}

/* ---- the pack ---- */

/* Type and size, seven bits a byte but for the first, which has four. */
static void put_head(struct buf *b, unsigned type, size_t size)
{
	uint8_t head[12];
	size_t n = 0;
	head[0] = (uint8_t)(type << 4 | (size & 15));
	for (size >>= 4; size > 0; size >>= 7) {
		head[n++] |= 0x80;
		head[n] = (uint8_t)(size & 0x7f);
	}
	(void)buf_add(b, head, n + 1); /* latched */
}

static int put_deflated(z_stream *z, struct bytes data, struct buf *b, struct err *err)
{
	(void)deflateReset(z); /* it is one that works, as below */
	(void)deflateParams(z, data.len < SMALL ? Z_NO_COMPRESSION : LEVEL, Z_DEFAULT_STRATEGY);
	uLong bound = deflateBound(z, (uLong)data.len);
	int status = buf_reserve(b, bound);
	if (status != 0)
		return buf_check(b, "a pack", err);
	z->next_in = (Bytef *)(uintptr_t)data.data; /* it is not written to */
	z->avail_in = (uInt)data.len;
	z->next_out = b->data + b->len;
	z->avail_out = (uInt)bound;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return err_set(err, E_IO, "zlib cannot compress %zu bytes", data.len);
	b->len += z->total_out;
	b->data[b->len] = '\0';
	return 0;
}

static int put_entry(struct packing *p, struct entry *e, struct err *err)
{
	const struct pack_object *o = e->object;
	if (o->data.len > PACKFILE_BYTES_MAX)
		return err_set(err, E_TOO_BIG, "an object is too large for a pack");
	e->at = (uint32_t)p->pack.len;
	put_head(&p->pack, o->type, o->data.len);
	int status = put_deflated(&p->z, o->data, &p->pack, err);
	if (status == 0)
		e->crc = (uint32_t)crc32(0, p->pack.data + e->at, (uInt)(p->pack.len - e->at));
	return status;
}

static int make_pack(struct packing *p, struct err *err)
{
	int status = 0;
	(void)buf_add_text(&p->pack, "PACK"); /* latched, as below */
	put_u32(&p->pack, 2);
	put_u32(&p->pack, (uint32_t)p->n);
	for (size_t i = 0; status == 0 && i < p->n; i++)
		status = put_entry(p, &p->entries[i], err);
	if (status == 0)
		status = put_sum(&p->pack, p->sum, err);
	return status == 0 ? buf_check(&p->pack, "a pack", err) : status;
}

/* ---- its index ---- */

static int by_id(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return memcmp(x->object->id, y->object->id, PACK_ID_SIZE);
}

/* How many objects there are up to each first byte. */
static void put_fanout(struct packing *p)
{
	size_t at = 0;
	for (unsigned first = 0; first < FANOUT; first++) {
		while (at < p->n && p->entries[at].object->id[0] <= first)
			at++;
		put_u32(&p->index, (uint32_t)at);
	}
}

static int make_index(struct packing *p, struct err *err)
{
	uint8_t sum[PACK_ID_SIZE];
	qsort(p->entries, p->n, sizeof *p->entries, by_id);
	(void)buf_add_text(&p->index, "\377tOc"); /* latched, as below */
	put_u32(&p->index, 2);
	put_fanout(p);
	for (size_t i = 0; i < p->n; i++)
		(void)buf_add(&p->index, p->entries[i].object->id, PACK_ID_SIZE);
	for (size_t i = 0; i < p->n; i++)
		put_u32(&p->index, p->entries[i].crc);
	for (size_t i = 0; i < p->n; i++)
		put_u32(&p->index, p->entries[i].at);
	(void)buf_add(&p->index, p->sum, PACK_ID_SIZE);
	int status = put_sum(&p->index, sum, err);
	return status == 0 ? buf_check(&p->index, "the index of a pack", err) : status;
}

/* ---- the files ---- */

static bool write_all(int fd, const struct buf *b)
{
	for (size_t at = 0; at < b->len;) {
		ssize_t n = write(fd, b->data + at, b->len - at);
		if (n < 0 && errno != EINTR)
			return false;
		at += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static int write_file(const char *path, const struct buf *b, struct err *err)
{
	(void)unlink(path); /* who was killed left it, or nobody */
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	bool fine = fd >= 0 && write_all(fd, b) && fsync(fd) == 0;
	int status =
		fine ? 0 : err_set(err, E_IO, "%s cannot be written: %s", path, strerror(errno));
	if (fd >= 0 && close(fd) != 0 && status == 0)
		status = err_set(err, E_IO, "%s cannot be written: %s", path, strerror(errno));
	return status;
}

struct pack_paths {
	char half_pack[PATH_MAX], half_index[PATH_MAX];
	char pack[PATH_MAX], index[PATH_MAX];
};

/* The halves are called as folder.c removes them at a start, and where pack_clean(), which runs
 * meanwhile, does not look. */
static int find_paths(const char *folder, const uint8_t sum[PACK_ID_SIZE], struct pack_paths *ret,
	struct err *err)
{
	char hex[2 * PACK_ID_SIZE + 1];
	for (size_t i = 0; i < PACK_ID_SIZE; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
	int len = snprintf(
		ret->index, sizeof ret->index, "%s/pack/pack-" PACK_OF_BURST "%s.idx", folder, hex);
	if (len < 0 || (size_t)len + 8 > sizeof ret->index)
		return err_set(err, E_INVALID, "the path of a pack is too long");
	(void)snprintf(ret->pack, sizeof ret->pack, "%s/pack/pack-" PACK_OF_BURST "%s.pack", folder,
		hex); /* fit */
	(void)snprintf(ret->half_pack, sizeof ret->half_pack, "%s/tmp_object_pack", folder);
	(void)snprintf(ret->half_index, sizeof ret->half_index, "%s/tmp_object_idx", folder);
	return 0;
}

/* The index first: one without its pack is passed over by whoever reads, while pack_clean() takes a
 * pack without its index for half a one, and removes it. */
static int put_in_place(const struct pack_paths *paths, struct err *err)
{
	if (rename(paths->half_index, paths->index) != 0)
		return err_set(
			err, E_IO, "%s cannot be put in place: %s", paths->index, strerror(errno));
	if (rename(paths->half_pack, paths->pack) == 0)
		return 0;
	int status =
		err_set(err, E_IO, "%s cannot be put in place: %s", paths->pack, strerror(errno));
	(void)unlink(paths->index); /* else the next start does */
	return status;
}

static int write_files(const char *folder, struct packing *p, struct err *err)
{
	struct pack_paths paths;
	int status = find_paths(folder, p->sum, &paths, err);
	if (status != 0)
		return status;
	status = write_file(paths.half_pack, &p->pack, err);
	if (status == 0)
		status = write_file(paths.half_index, &p->index, err);
	if (status == 0)
		status = put_in_place(&paths, err);
	if (status != 0) {
		(void)unlink(paths.half_pack); /* else the next start does, as below */
		(void)unlink(paths.half_index);
	}
	return status;
}

/* ---- the whole ---- */

static int start(struct packing *p, const struct pack_object *objects, size_t n, struct err *err)
{
	buf_init(&p->pack, PACKFILE_BYTES_MAX);
	buf_init(&p->index, PACKFILE_BYTES_MAX);
	p->n = n;
	p->entries = calloc(n + 1, sizeof *p->entries);
	if (!p->entries || deflateInit2(&p->z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
				   Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, E_NOMEM, "a pack: out of memory");
	for (size_t i = 0; i < n; i++)
		p->entries[i].object = &objects[i];
	return 0;
}

int packfile_write(
	const char *objects_folder, const struct pack_object *objects, size_t n, struct err *err)
{
	struct packing p = {.n = 0};
	int status = start(&p, objects, n, err);
	if (status == 0)
		status = make_pack(&p, err);
	if (status == 0)
		status = make_index(&p, err);
	if (status == 0)
		status = write_files(objects_folder, &p, err);
	(void)deflateEnd(&p.z); /* it may not have begun */
	free(p.entries);
	buf_done(&p.pack);
	buf_done(&p.index);
	return status;
}
