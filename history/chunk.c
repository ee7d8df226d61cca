#include "history/chunk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "gateway/base/crypto.h"
#include "gateway/base/file.h"
#include "gateway/base/tree.h"
#include "history/pointer.h"

#define SAMPLE_BYTES 65536u
#define SAMPLE_LEVEL 1
#define LEVEL	     3
#define HEAD_BYTES   4u

/* The first bytes of a file: how the rest is to be read. */
static const char head_raw[] = "raw\n", head_zstd[] = "zst\n";

static bool path_of(const char *repository, const char *name, char ret_path[PATH_MAX])
{
	return snprintf(ret_path, PATH_MAX, "%s/" CHUNK_FOLDER "/%.2s/%s", repository, name,
		       name + 2) < PATH_MAX;
}

static bool half_of(const char *repository, const char *name, char ret_path[PATH_MAX])
{
	return snprintf(ret_path, PATH_MAX, "%s/" CHUNK_FOLDER "/" CHUNK_HALF "%s", repository,
		       name) < PATH_MAX;
}

bool chunk_touch(const char *repository, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	if (!path_of(repository, name, path) || stat(path, &st) != 0 || st.st_size < HEAD_BYTES)
		return false;
	return utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

/* ---- writing ---- */

static bool gains(size_t packed, size_t whole)
{
	return !ZSTD_isError(packed) && packed <= whole - whole / 5;
}

/* Its middle stands for it. */
static bool is_worth_it(struct bytes data)
{
	size_t n = data.len < SAMPLE_BYTES ? data.len : SAMPLE_BYTES, room = ZSTD_compressBound(n);
	AUTO(freep) uint8_t *to = malloc(room);
	const uint8_t *from = data.data + (data.len - n) / 2;
	return to && n > 0 && gains(ZSTD_compress(to, room, from, n, SAMPLE_LEVEL), n);
}

/* What the file holds. */
static void encode(struct bytes data, struct buf *b)
{
	size_t room = ZSTD_compressBound(data.len);
	AUTO(freep) uint8_t *to = is_worth_it(data) ? malloc(room) : NULL;
	size_t n = to ? ZSTD_compress(to, room, data.data, data.len, LEVEL) : 0;
	bool packs = to && gains(n, data.len);
	(void)buf_add(b, packs ? head_zstd : head_raw, HEAD_BYTES); /* latched, as below */
	(void)buf_add(b, packs ? to : data.data, packs ? n : data.len);
}

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
	bool fine = fd >= 0 && write_all(fd, b);
	int why = errno;
	if (fd >= 0 && close(fd) != 0 && fine) {
		fine = false;
		why = errno;
	}
	if (fine)
		return 0;
	(void)unlink(path); /* else the next start does */
	return err_set(err, E_IO, "%s cannot be written: %s", path, strerror(why));
}

int chunk_write(const char *repository, const char *name, struct bytes data, struct err *err)
{
	AUTO(buf_done) struct buf content;
	char path[PATH_MAX];
	buf_init(&content, 2 * CHUNK_BYTES);
	if (!half_of(repository, name, path))
		return err_set(err, E_IO, "the path of a history is too long");
	encode(data, &content);
	int status = buf_check(&content, "a chunk", err);
	if (status == 0)
		status = file_folder_make(path, err);
	return status == 0 ? write_file(path, &content, err) : status;
}

int chunk_place(const char *repository, const char *name, struct err *err)
{
	char from[PATH_MAX], to[PATH_MAX];
	if (!half_of(repository, name, from) || !path_of(repository, name, to))
		return err_set(err, E_IO, "the path of a history is too long");
	int status = file_folder_make(to, err);
	if (status != 0 || rename(from, to) == 0)
		return status;
	if (errno == ENOENT && access(to, F_OK) == 0)
		return 0; /* it came twice */
	return err_set(err, E_IO, "%s cannot be put in place: %s", to, strerror(errno));
}

/* ---- reading ---- */

static int decode(struct bytes file, struct buf *ret, struct err *err)
{
	struct bytes rest = {file.data + HEAD_BYTES, file.len - HEAD_BYTES};
	size_t at = ret->len;
	if (memcmp(file.data, head_raw, HEAD_BYTES) == 0) {
		(void)buf_add(ret, rest.data, rest.len); /* latched */
		return buf_check(ret, "a chunk", err);
	}
	if (memcmp(file.data, head_zstd, HEAD_BYTES) != 0)
		return E_IO;
	unsigned long long size = ZSTD_getFrameContentSize(rest.data, rest.len);
	if (size > CHUNK_BYTES) /* the two errors are as large as can be */
		return E_IO;
	int status = buf_reserve(ret, (size_t)size);
	if (status != 0)
		return err_set(err, status, "a chunk of %llu bytes does not fit", size);
	size_t n = ZSTD_decompress(ret->data + at, (size_t)size, rest.data, rest.len);
	if (ZSTD_isError(n))
		return E_IO;
	ret->len = at + n;
	ret->data[ret->len] = '\0';
	return 0;
}

int chunk_read(const char *repository, const char *name, struct buf *ret, struct err *err)
{
	AUTO(buf_done) struct buf file;
	char path[PATH_MAX], is[DIGEST_HEX_SIZE];
	size_t at = ret->len;
	buf_init(&file, 2 * CHUNK_BYTES);
	if (!path_of(repository, name, path))
		return err_set(err, E_IO, "the path of a history is too long");
	int status = file_read(path, &file, err);
	if (status != 0)
		return status;
	status = file.len < HEAD_BYTES ? E_IO
				       : decode((struct bytes){file.data, file.len}, ret, err);
	struct bytes got = {ret->data + at, ret->len - at};
	if (status == 0)
		crypto_digest_hex(&got, 1, is);
	if (status == 0 && strcmp(is, name) == 0)
		return 0;
	ret->len = at;
	return status == 0 || status == E_IO
		       ? err_set(err, E_IO, "%s is damaged: it does not hold what it is called by",
				 path)
		       : status;
}

/* ---- removing ---- */

struct sweeping {
	const struct chunk_sweep *sweep;
	const char *folder; /* the two digits */
	int64_t before_s;
};

static int remove_file(const char *path, struct err *err)
{
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	return err_set(err, E_IO, "%s cannot be removed: %s", path, strerror(errno));
}

static int sweep_one(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	const struct sweeping *s = data;
	char whole[CHUNK_NAME_LEN + 1];
	struct stat st;
	if (is_folder || strlen(name) != CHUNK_NAME_LEN - 2)
		return 0;
	(void)snprintf(whole, sizeof whole, "%.2s%s", s->folder, name);
	if (s->sweep->keeps(s->sweep->data, whole) || stat(path, &st) != 0 ||
		st.st_mtim.tv_sec > s->before_s)
		return 0;
	return remove_file(path, err);
}

static int sweep_folder(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	struct sweeping s = *(const struct sweeping *)data;
	s.folder = name;
	return is_folder && strlen(name) == 2 ? tree_each(path, sweep_one, &s, err) : 0;
}

int chunks_sweep(const char *repository, const struct chunk_sweep *sweep, struct err *err)
{
	char path[PATH_MAX];
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
	struct sweeping s = {.sweep = sweep,
		.before_s = sweep->older_s > 0 ? now.tv_sec - sweep->older_s : INT64_MAX};
	(void)snprintf(path, sizeof path, "%s/" CHUNK_FOLDER, repository); /* fits: folder.h */
	return tree_each(path, sweep_folder, &s, err);
}

static int clean_one(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	(void)data;
	bool half = !is_folder && strncmp(name, CHUNK_HALF, strlen(CHUNK_HALF)) == 0;
	return half ? remove_file(path, err) : 0;
}

int chunks_clean(const char *repository, struct err *err)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/" CHUNK_FOLDER, repository); /* as above */
	return tree_each(path, clean_one, NULL, err);
}

bool chunks_any(const char *repository)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/" CHUNK_FOLDER, repository); /* as above */
	return access(path, F_OK) == 0;
}
