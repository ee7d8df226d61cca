#include "gateway/base/tree.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"

static char folder[64];

static const char *in(const char *rest)
{
	static char path[128];
	(void)snprintf(path, sizeof path, "%s/%s", folder, rest);
	return path;
}

static void make(void)
{
	char line[256];
	(void)snprintf(folder, sizeof folder, "/tmp/coppice-tree-XXXXXX");
	assert_non_null(mkdtemp(folder));
	(void)snprintf(line, sizeof line,
		"cd %s && mkdir -p a/b/c && echo one > a/one && echo two > a/b/c/two &&"
		" echo half > a/b/tmp_x && ln -s /etc a/link",
		folder);
	assert_int_equal(system(line), 0);
}

static void done(void)
{
	assert_int_equal(tree_remove(folder, NULL), 0);
	assert_int_not_equal(access(folder, F_OK), 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	assert_int_equal(tree_remove(folder, NULL), 0);
}

static bool skips(const char *name)
{
	return strncmp(name, "tmp_", 4) == 0 || strcmp(name, "link") == 0;
}

static void assert_copied(const char *to, nlink_t links)
{
	char path[128];
	struct stat st;
	(void)snprintf(path, sizeof path, "%s/b/c/two", to);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_nlink, links);
	assert_int_equal(st.st_size, 4);
	(void)snprintf(path, sizeof path, "%s/b/tmp_x", to);
	assert_int_not_equal(access(path, F_OK), 0);
}

TEST(tree, is_copied_or_gets_second_names)
{
	char from[128], to[128];
	uint64_t bytes = 0;
	make();
	(void)snprintf(from, sizeof from, "%s", in("a"));
	(void)snprintf(to, sizeof to, "%s", in("copied"));
	assert_int_equal(tree_copy(from, to, false, skips, NULL), 0);
	assert_copied(to, 1);
	(void)snprintf(to, sizeof to, "%s", in("linked"));
	assert_int_equal(tree_copy(from, to, true, skips, NULL), 0);
	assert_copied(to, 2);
	assert_int_not_equal(tree_copy(from, to, true, skips, NULL), 0); /* they are there */
	assert_int_equal(tree_bytes(from, &bytes, NULL), 0);
	assert_true(bytes > 0 && bytes < 100000);
	done();
}

TEST(tree, a_file_is_never_written_over)
{
	char from[128], to[128];
	make();
	(void)snprintf(from, sizeof from, "%s", in("a/one"));
	(void)snprintf(to, sizeof to, "%s", in("a/b/c/two"));
	assert_int_equal(tree_copy_file(from, to, NULL), E_IO);
	(void)snprintf(from, sizeof from, "%s", in("a/absent"));
	(void)snprintf(to, sizeof to, "%s", in("new"));
	assert_int_equal(tree_copy_file(from, to, NULL), E_NOT_FOUND);
	(void)snprintf(from, sizeof from, "%s", in("a/link"));
	assert_int_equal(tree_copy_file(from, to, NULL), E_IO);
	done();
}

TEST(tree, what_is_not_there_is_empty)
{
	uint64_t bytes = 7;
	assert_int_equal(tree_bytes("/nonexistent/folder", &bytes, NULL), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(tree_remove("/nonexistent/folder", NULL), 0);
}

RUN(TEST_ROW(tree, is_copied_or_gets_second_names), TEST_ROW(tree, a_file_is_never_written_over),
	TEST_ROW(tree, what_is_not_there_is_empty))
