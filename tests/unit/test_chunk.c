#include "history/chunk.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/crypto.h"
#include "gateway/base/tree.h"
#include "history/pointer.h"
#include "tests/lib/test.h"

struct store {
	char folder[64];
	char name[DIGEST_HEX_SIZE];
};

static void open_store(struct store *s)
{
	assert_int_equal(crypto_init(NULL), 0);
	(void)snprintf(s->folder, sizeof s->folder, "/tmp/coppice-chunk-XXXXXX");
	assert_non_null(mkdtemp(s->folder));
}

static void close_store(struct store *s)
{
	assert_int_equal(tree_remove(s->folder, NULL), 0);
}

static void put(struct store *s, const struct buf *data)
{
	struct bytes bytes = {data->data, data->len};
	struct err err;
	crypto_digest_hex(&bytes, 1, s->name);
	if (chunk_write(s->folder, s->name, bytes, &err) != 0)
		fail_msg("%s", err.text);
	assert_false(chunk_touch(s->folder, s->name)); /* not before it is in place */
	if (chunk_place(s->folder, s->name, &err) != 0)
		fail_msg("%s", err.text);
	assert_true(chunk_touch(s->folder, s->name));
}

static off_t file_size(const struct store *s)
{
	char path[256];
	struct stat st;
	(void)snprintf(path, sizeof path, "%s/chunks/%.2s/%s", s->folder, s->name, s->name + 2);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void comes_back(struct store *s, const struct buf *data)
{
	AUTO(buf_done) struct buf back;
	struct err err;
	buf_init(&back, CHUNK_BYTES);
	if (chunk_read(s->folder, s->name, &back, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(back.len, data->len);
	if (data->len > 0)
		assert_memory_equal(back.data, data->data, data->len);
}

TEST(chunk, what_shrinks_is_compressed_and_all_comes_back)
{
	struct store s;
	open_store(&s);
	for (int kind = 0; kind < 3; kind++) {
		AUTO(buf_done) struct buf data;
		buf_init(&data, CHUNK_BYTES);
		uint32_t seed = 7;
		for (size_t i = 0; kind > 0 && i < CHUNK_BYTES; i++) {
			uint8_t byte = (uint8_t)(kind == 1 ? i >> 12 : seed >> 24);
			seed = seed * 1664525u + 1013904223u;
			(void)buf_add(&data, &byte, 1);
		}
		put(&s, &data);
		comes_back(&s, &data);
		if (kind == 1)
			assert_true(file_size(&s) < CHUNK_BYTES / 10);
		else
			assert_int_equal(file_size(&s), (off_t)data.len + 4);
	}
	close_store(&s);
}

TEST(chunk, one_that_is_damaged_is_not_given_out)
{
	struct store s;
	AUTO(buf_done) struct buf data, back;
	char path[256];
	struct err err;
	open_store(&s);
	buf_init(&data, 64);
	buf_init(&back, CHUNK_BYTES);
	(void)buf_add_text(&data, "what it holds");
	put(&s, &data);
	(void)snprintf(path, sizeof path, "%s/chunks/%.2s/%s", s.folder, s.name, s.name + 2);
	assert_int_equal(chmod(path, 0600), 0);
	FILE *f = fopen(path, "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, 8, SEEK_SET), 0);
	assert_int_equal(fputc('X', f), 'X');
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chunk_read(s.folder, s.name, &back, &err), E_IO);
	assert_int_equal(back.len, 0);
	assert_non_null(strstr(err.text, "damaged"));
	assert_int_equal(truncate(path, 2), 0);
	assert_false(chunk_touch(s.folder, s.name)); /* so that it is told again */
	assert_int_equal(chunk_read(s.folder, s.name, &back, &err), E_IO);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(chunk_read(s.folder, s.name, &back, &err), E_NOT_FOUND);
	close_store(&s);
}

static bool keeps_named(void *data, const char *name)
{
	return strcmp(data, name) == 0;
}

TEST(chunk, only_what_nobody_keeps_and_is_old_goes)
{
	struct store s;
	AUTO(buf_done) struct buf data;
	char kept[DIGEST_HEX_SIZE], other[DIGEST_HEX_SIZE];
	struct err err;
	open_store(&s);
	buf_init(&data, 64);
	(void)buf_add_text(&data, "one");
	put(&s, &data);
	memcpy(kept, s.name, sizeof kept);
	(void)buf_add_text(&data, "two");
	put(&s, &data);
	memcpy(other, s.name, sizeof other);
	struct chunk_sweep sweep = {keeps_named, kept, CHUNK_GRACE};
	assert_int_equal(chunks_sweep(s.folder, &sweep, &err), 0);
	assert_true(chunk_touch(s.folder, kept));
	assert_true(chunk_touch(s.folder, other)); /* young */
	sweep.older_s = 0;
	assert_int_equal(chunks_sweep(s.folder, &sweep, &err), 0);
	assert_true(chunk_touch(s.folder, kept));
	assert_false(chunk_touch(s.folder, other));
	/* Half a one is a dead process's. */
	assert_int_equal(
		chunk_write(s.folder, other, (struct bytes){data.data, data.len}, &err), 0);
	assert_int_equal(chunks_clean(s.folder, &err), 0);
	assert_int_equal(chunk_place(s.folder, other, &err), E_IO);
	assert_true(chunk_touch(s.folder, kept));
	close_store(&s);
}

RUN(TEST_ROW(chunk, what_shrinks_is_compressed_and_all_comes_back),
	TEST_ROW(chunk, one_that_is_damaged_is_not_given_out),
	TEST_ROW(chunk, only_what_nobody_keeps_and_is_old_goes))
