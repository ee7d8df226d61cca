#include "history/change.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

#define BLOB "ce013625030ba8dba906f756967f9e9ca394464a"

static void read_text(const char *json, struct change *c)
{
	struct err err;
	if (change_read((struct bytes){(const uint8_t *)json, strlen(json)}, c, &err) != 0)
		fail_msg("%s", err.text);
}

/* A change of one file of that path, given as JSON. */
static void read_path(const char *path, struct change *c)
{
	AUTO(buf_done) struct buf json;
	buf_init(&json, 1u << 20);
	(void)buf_addf(&json,
		"{\"changed\":[{\"path\":\"%s\",\"mode\":\"100644\",\"bytes\":6,\"blob\":\"" BLOB
		"\"}]}",
		path);
	read_text((const char *)json.data, c);
}

TEST(change, each_kind_of_entry_is_read)
{
	struct change c;
	char chunk[65] = "";
	char json[1024];
	memset(chunk, 'a', 64);
	(void)snprintf(json, sizeof json,
		"{\"full\":true,\"changed\":[{\"path\":\"a\",\"mode\":\"100755\",\"bytes\":6,"
		"\"blob\":\"" BLOB "\"},{\"path\":\"b/c\",\"mode\":\"100644\",\"bytes\":1048577,"
		"\"chunks\":[\"%s\",\"%s\"]},{\"path\":\"d\",\"mode\":\"40000\"},"
		"{\"path\":\"e\",\"mode\":\"100644\",\"bytes\":9,\"lost\":\"too\\nlarge\"}],"
		"\"removed\":[\"f\"],\"lost\":[{\"path\":\"g\",\"reason\":\"a socket\"}]}",
		chunk, chunk);
	read_text(json, &c);
	assert_true(c.full);
	assert_int_equal(c.n_changed, 4);
	assert_int_equal(c.changed[0].mode, MODE_EXECUTABLE);
	assert_string_equal(c.changed[0].blob, BLOB);
	assert_int_equal(c.changed[1].n_chunks, 2);
	assert_string_equal(c.changed[1].path, "b/c");
	assert_memory_equal(c.changed[1].chunks + 64, chunk, 65);
	assert_int_equal(c.changed[2].mode, MODE_FOLDER);
	assert_string_equal(c.changed[3].lost, "too large");
	assert_int_equal(c.n_removed, 1);
	assert_string_equal(c.removed[0], "f");
	assert_int_equal(c.n_notes, 1);
	assert_string_equal(c.notes[0].reason, "a socket");
	change_done(&c);
}

TEST(change, a_path_that_leads_elsewhere_is_refused_and_told)
{
	static const char *const bad[] = {"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.",
		"\\u0000", "a\\u0000b", "a\\nb", "a\\u007f", "x/.coppice-folder",
		".coppice-folder"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct change c;
		read_path(bad[i], &c);
		if (c.n_changed != 0 || c.n_notes != 1)
			fail_msg("%s was taken", bad[i]);
		assert_non_null(strstr(c.notes[0].reason, "refused"));
		change_done(&c);
	}
	static const char *const good[] = {"a", "...", "..a", "a b", ".coppice-folders", "%2E",
		"\\u00e9", "a\\\\b", ".gitignore"};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct change c;
		read_path(good[i], &c);
		if (c.n_changed != 1)
			fail_msg("%s was not taken: %s", good[i], c.notes[0].reason);
		change_done(&c);
	}
}

TEST(change, paths_have_bounds)
{
	struct change c;
	char path[2 * CHANGE_PATH_MAX];
	memset(path, 'n', sizeof path);
	path[CHANGE_NAME_MAX] = '\0';
	read_path(path, &c);
	assert_int_equal(c.n_changed, 1);
	change_done(&c);
	path[CHANGE_NAME_MAX] = 'n';
	path[CHANGE_NAME_MAX + 1] = '\0';
	read_path(path, &c);
	assert_int_equal(c.n_changed, 0);
	change_done(&c);
	/* A hundred levels, and one more. */
	for (size_t i = 0; i < 2 * CHANGE_DEPTH_MAX; i++)
		path[i] = i % 2 ? '/' : 'd';
	path[2 * CHANGE_DEPTH_MAX - 1] = '\0';
	read_path(path, &c);
	assert_int_equal(c.n_changed, 1);
	change_done(&c);
	path[2 * CHANGE_DEPTH_MAX - 1] = '/';
	path[2 * CHANGE_DEPTH_MAX] = 'd';
	path[2 * CHANGE_DEPTH_MAX + 1] = '\0';
	read_path(path, &c);
	assert_int_equal(c.n_changed, 0);
	change_done(&c);
	/* 4096 bytes in names of 127, and one more. */
	memset(path, 'n', sizeof path);
	for (size_t i = 127; i < CHANGE_PATH_MAX; i += 128)
		path[i] = '/';
	path[CHANGE_PATH_MAX - 1] = 'n';
	path[CHANGE_PATH_MAX] = '\0';
	read_path(path, &c);
	assert_int_equal(c.n_changed, 1);
	change_done(&c);
	path[CHANGE_PATH_MAX] = 'n';
	path[CHANGE_PATH_MAX + 1] = '\0';
	read_path(path, &c);
	assert_int_equal(c.n_changed, 0);
	assert_true(strlen(c.notes[0].path) < 100);
	change_done(&c);
}

TEST(change, an_entry_without_a_content_is_lost)
{
	struct change c;
	read_text("{\"changed\":["
		  "{\"path\":\"a\",\"mode\":\"100644\",\"bytes\":6},"
		  "{\"path\":\"b\",\"mode\":\"100644\",\"bytes\":6,\"blob\":\"xyz\"},"
		  "{\"path\":\"c\",\"mode\":\"100644\",\"bytes\":6,\"chunks\":[]},"
		  "{\"path\":\"d\",\"mode\":\"100644\",\"bytes\":6,\"chunks\":[\"aa\"]},"
		  "{\"path\":\"e\",\"mode\":\"100644\",\"lost\":7},"
		  "{\"path\":\"f\",\"mode\":\"100600\",\"blob\":\"" BLOB "\"}]}",
		&c);
	assert_int_equal(c.n_changed, 5);
	for (size_t i = 0; i < c.n_changed; i++) {
		assert_non_null(c.changed[i].lost);
		assert_null(c.changed[i].blob);
		assert_null(c.changed[i].chunks);
	}
	assert_int_equal(c.n_notes, 1);
	assert_string_equal(c.notes[0].path, "f");
	change_done(&c);
}

TEST(change, what_is_no_change_is_an_error)
{
	static const char *const bad[] = {"", "7", "[]", "{\"changed\":7}", "{\"removed\":{}}",
		"{\"changed\":[", "{\"lost\":\"x\"}"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct change c;
		struct err err;
		int status = change_read(
			(struct bytes){(const uint8_t *)bad[i], strlen(bad[i])}, &c, &err);
		assert_int_equal(status, E_INVALID);
		change_done(&c);
	}
}

TEST(change, more_than_can_be_told_is_counted)
{
	AUTO(buf_done) struct buf json, out;
	struct change c;
	struct err err;
	buf_init(&json, 64u << 20);
	buf_init(&out, 64u << 20);
	(void)buf_add_text(&json, "{\"changed\":[");
	for (size_t i = 0; i < CHANGE_ENTRIES_MAX + 100; i++)
		(void)buf_addf(&json, "%s{\"path\":\"f%zu\",\"mode\":\"40000\"}", i ? "," : "", i);
	(void)buf_add_text(&json, "]}");
	read_text((const char *)json.data, &c);
	assert_int_equal(c.n_changed, CHANGE_ENTRIES_MAX);
	assert_int_equal(c.n_notes, CHANGE_NOTES_MAX);
	assert_int_equal(c.more, 100 - CHANGE_NOTES_MAX);
	assert_int_equal(change_write(&c, &out, &err), 0);
	assert_non_null(strstr((const char *)out.data, "and 36 more"));
	change_done(&c);
}

TEST(pointer, a_file_that_is_none_is_none)
{
	struct pointer p;
	AUTO(buf_done) struct buf text;
	char names[129];
	memset(names, 'b', sizeof names);
	buf_init(&text, POINTER_MAX);
	pointer_add(&text, CHUNK_BYTES + 1, names, 2);
	struct bytes whole = {text.data, text.len};
	assert_true(pointer_read(whole, &p));
	assert_int_equal(p.n, 2);
	assert_false(pointer_read((struct bytes){whole.data, whole.len - 1}, &p));
	text.data[20] = 'x';
	assert_false(pointer_read(whole, &p));
	buf_reset(&text);
	pointer_add(&text, 2 * CHUNK_BYTES + 1, names, 2); /* of three chunks */
	assert_false(pointer_read((struct bytes){text.data, text.len}, &p));
	buf_reset(&text);
	pointer_add_lost(&text, MODE_LINK, 12, "too \xc3\xa9 large");
	assert_true(pointer_read((struct bytes){text.data, text.len}, &p));
	assert_true(p.is_lost);
	assert_int_equal(p.mode, MODE_LINK);
	assert_int_equal(p.bytes, 12);
	assert_string_equal(p.reason, "too \xc3\xa9 large");
}

/* Whoever reads a folder of many files looks into few of them. */
TEST(pointer, few_sizes_are_those_of_pointers)
{
	char names[POINTER_CHUNKS * CHUNK_NAME_LEN];
	size_t n = 0;
	memset(names, 'c', sizeof names);
	for (size_t i = 1; i <= POINTER_CHUNKS; i++) {
		uint64_t sizes[] = {(i - 1) * CHUNK_BYTES + 1, i * CHUNK_BYTES};
		for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
			AUTO(buf_done) struct buf text;
			buf_init(&text, POINTER_MAX);
			pointer_add(&text, sizes[k], names, i);
			assert_true(pointer_may_be(text.len));
		}
	}
	for (size_t size = 0; size < 2 * POINTER_MAX; size++)
		n += pointer_may_be(size);
	assert_true(n < 300);
}

RUN(TEST_ROW(change, each_kind_of_entry_is_read),
	TEST_ROW(change, a_path_that_leads_elsewhere_is_refused_and_told),
	TEST_ROW(change, paths_have_bounds), TEST_ROW(change, an_entry_without_a_content_is_lost),
	TEST_ROW(change, what_is_no_change_is_an_error),
	TEST_ROW(change, more_than_can_be_told_is_counted),
	TEST_ROW(pointer, a_file_that_is_none_is_none),
	TEST_ROW(pointer, few_sizes_are_those_of_pointers))
