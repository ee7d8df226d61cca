#include "history/packfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"

/* Git says whether it is a pack. */

struct place {
	char folder[64];
};

static void in_place(const struct place *p, const char *command, char *ret_text, size_t size)
{
	char line[512], rest[64];
	(void)snprintf(line, sizeof line, "cd '%s' && %s", p->folder, command);
	FILE *pipe = popen(line, "re");
	assert_non_null(pipe);
	size_t n = fread(ret_text, 1, size - 1, pipe);
	ret_text[n] = '\0';
	assert_int_equal(fread(rest, 1, sizeof rest, pipe), 0);
	int status = pclose(pipe);
	if (status != 0)
		fail_msg("%s: %d", command, status);
}

static void assert_says(const struct place *p, const char *command, const char *expected)
{
	char text[1024];
	in_place(p, command, text, sizeof text);
	assert_string_equal(text, expected);
}

static void make_place(struct place *p)
{
	char text[16];
	(void)snprintf(p->folder, sizeof p->folder, "/tmp/coppice-packfile-XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	in_place(p, "git init -q --bare .", text, sizeof text);
}

static void remove_place(const struct place *p)
{
	char text[16];
	in_place(p, "rm -rf \"$PWD\"", text, sizeof text);
}

/* Puts the bytes into a file and has git name them as an object of that type, without keeping it.
 */
static void name_object(
	const struct place *p, const char *type, struct bytes data, uint8_t ret_id[PACK_ID_SIZE])
{
	char path[128], command[128], hex[64];
	(void)snprintf(path, sizeof path, "%s/data", p->folder);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(data.data, 1, data.len, file), data.len);
	assert_int_equal(fclose(file), 0);
	(void)snprintf(command, sizeof command, "git hash-object -t %s data", type);
	in_place(p, command, hex, sizeof hex);
	for (size_t i = 0; i < PACK_ID_SIZE; i++) {
		unsigned byte;
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		ret_id[i] = (uint8_t)byte;
	}
}

static const char *objects_of(const struct place *p)
{
	static char path[128];
	(void)snprintf(path, sizeof path, "%s/objects", p->folder);
	return path;
}

TEST(packfile, git_reads_what_is_in_it)
{
	struct place p;
	uint8_t ids[6][PACK_ID_SIZE];
	static uint8_t many[300000];
	static const char commit[] = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
				     "author a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nWords\n";
	make_place(&p);
	for (size_t i = 0; i < sizeof many; i++)
		many[i] = (uint8_t)(i * 2654435761u >> 13); /* does not compress */
	/* Sizes on both sides of where one takes a byte more. */
	struct pack_object objects[] = {
		{ids[0], 3, {(const uint8_t *)"hello\n", 6}},
		{ids[1], 3, {(const uint8_t *)"", 0}},
		{ids[2], 2, {(const uint8_t *)"", 0}},
		{ids[3], 1, {(const uint8_t *)commit, sizeof commit - 1}},
		{ids[4], 3, {many, 2047}},
		{ids[5], 3, {many, sizeof many}},
	};
	static const char *const types[] = {"", "commit", "tree", "blob"};
	for (size_t i = 0; i < ARRAY_LEN(objects); i++)
		name_object(&p, types[objects[i].type], objects[i].data, ids[i]);
	assert_int_equal(packfile_write(objects_of(&p), objects, ARRAY_LEN(objects), NULL), 0);
	assert_says(&p, "git verify-pack objects/pack/*.idx", "");
	assert_says(&p, "git count-objects", "0 objects, 0 kilobytes\n");
	assert_says(&p, "git cat-file blob ce013625030ba8dba906f756967f9e9ca394464a", "hello\n");
	assert_says(&p, "git fsck --strict --no-dangling 2>&1 | grep -v HEAD; true",
		"notice: No default references\n");
	assert_says(&p,
		"git cat-file --batch-all-objects --batch-check='%(objecttype) %(objectsize)'"
		" | sort -n -k 2",
		"blob 0\ntree 0\nblob 6\ncommit 102\nblob 2047\nblob 300000\n");
	assert_says(&p, "git cat-file blob $(git hash-object data) | cmp - data && echo same",
		"same\n");
	/* As git's own index of it. */
	assert_says(&p,
		"git index-pack -o again.idx objects/pack/*.pack >/dev/null &&"
		" cmp again.idx objects/pack/*.idx && echo same",
		"same\n");
	assert_says(&p, "ls objects", "info\npack\n");
	remove_place(&p);
}

TEST(packfile, what_cannot_be_written_leaves_nothing)
{
	struct place p;
	struct err err;
	uint8_t id[PACK_ID_SIZE] = {0};
	struct pack_object object = {id, 3, {(const uint8_t *)"x", 1}};
	char text[16];
	make_place(&p);
	in_place(&p, "mkdir objects/tmp_object_idx", text, sizeof text);
	assert_int_equal(packfile_write(objects_of(&p), &object, 1, &err), E_IO);
	assert_non_null(strstr(err.text, "tmp_object_idx"));
	assert_says(&p, "rmdir objects/tmp_object_idx && ls objects objects/pack",
		"objects:\ninfo\npack\n\nobjects/pack:\n");
	assert_int_equal(packfile_write("/nowhere", &object, 1, &err), E_IO);
	object.data.len = PACKFILE_BYTES_MAX + 1;
	assert_int_equal(packfile_write(objects_of(&p), &object, 1, &err), E_TOO_BIG);
	remove_place(&p);
}

RUN(TEST_ROW(packfile, git_reads_what_is_in_it),
	TEST_ROW(packfile, what_cannot_be_written_leaves_nothing))
