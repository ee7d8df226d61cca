#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/spine/forgotten.h"

static void make_folder(char ret_folder[64])
{
	(void)snprintf(ret_folder, 64, "/tmp/coppice-forgotten-XXXXXX");
	assert_non_null(mkdtemp(ret_folder));
}

static void remove_folder(const char *folder)
{
	char command[128];
	(void)snprintf(command, sizeof command, "rm -r '%s'", folder);
	assert_int_equal(system(command), 0);
}

TEST(forgotten, the_next_process_knows_them_too)
{
	/* Ids are chosen by clients. */
	static const char *const ids[] = {"a", "b \"\\\n", "\xc3\xa4"};
	struct forgotten f = {0}, next = {0};
	char folder[64];
	make_folder(folder);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		assert_false(forgotten_has(&f, ids[i]));
		assert_int_equal(forgotten_add(&f, folder, ids[i], NULL), 0);
		assert_int_equal(forgotten_add(&f, folder, ids[i], NULL), 0);
	}
	forgotten_read(&next, folder);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		assert_true(forgotten_has(&f, ids[i]) && forgotten_has(&next, ids[i]));
	assert_false(forgotten_has(&next, ""));
	forgotten_done(&f);
	forgotten_done(&next);
	assert_false(forgotten_has(&f, "a"));
	remove_folder(folder);
}

TEST(forgotten, the_oldest_of_too_many_go)
{
	struct forgotten f = {0}, next = {0};
	char folder[64], id[16];
	make_folder(folder);
	for (unsigned i = 0; i < FORGOTTEN_MAX + 2; i++) {
		(void)snprintf(id, sizeof id, "m%u", i);
		assert_int_equal(forgotten_add(&f, folder, id, NULL), 0);
	}
	forgotten_read(&next, folder);
	assert_false(forgotten_has(&f, "m1") || forgotten_has(&next, "m1"));
	assert_true(forgotten_has(&f, "m2") && forgotten_has(&next, "m2"));
	assert_true(forgotten_has(&f, id) && forgotten_has(&next, id));
	forgotten_done(&f);
	forgotten_done(&next);
	remove_folder(folder);
}

TEST(forgotten, a_file_that_is_none_names_nothing)
{
	static const char *const texts[] = {"", "{", "{\"a\":1}", "7", "[1,null,[\"a\"]]"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct forgotten f = {0};
		char folder[64], path[128];
		make_folder(folder);
		(void)snprintf(path, sizeof path, "%s/" FORGOTTEN_FILE, folder);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
		assert_int_equal(close(fd), 0);
		forgotten_read(&f, folder);
		assert_false(forgotten_has(&f, "a"));
		forgotten_done(&f);
		remove_folder(folder);
	}
}

RUN(TEST_ROW(forgotten, the_next_process_knows_them_too),
	TEST_ROW(forgotten, the_oldest_of_too_many_go),
	TEST_ROW(forgotten, a_file_that_is_none_names_nothing))
