#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/file.h"

static void path_in(const char *folder, const char *name, char ret_path[128])
{
	(void)snprintf(ret_path, 128, "%s/%s", folder, name);
}

TEST(file, write_replaces_and_read_reads)
{
	char folder[] = "/tmp/coppice-test-file-XXXXXX", path[128];
	AUTO(buf_done) struct buf b;
	struct stat st;
	struct err err;
	assert_non_null(mkdtemp(folder));
	path_in(folder, "x", path);
	buf_init(&b, 5);
	assert_int_equal(file_read(path, &b, &err), E_NOT_FOUND);
	assert_int_equal(file_write(path, "first", 5, &err), 0);
	assert_int_equal(file_write(path, "two", 3, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(file_read(path, &b, &err), 0);
	assert_string_equal((char *)b.data, "two");
	assert_int_equal(file_read(path, &b, &err), E_TOO_BIG);
	unlink(path);
	assert_int_equal(rmdir(folder), 0); /* no temporary file is left */
}

TEST(file, folders_are_made_private)
{
	char folder[] = "/tmp/coppice-test-file-XXXXXX", path[128], sub[128], file[128];
	struct stat st;
	struct err err;
	assert_non_null(mkdtemp(folder));
	path_in(folder, "a/b", path);
	path_in(folder, "a", sub);
	path_in(folder, "a/b/c", file);
	assert_int_equal(file_folder_make(file, &err), 0);
	assert_int_equal(folders_make(path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(file_write(file, "", 0, &err), 0);
	assert_int_equal(folders_make(file, &err), E_IO);
	assert_non_null(strstr(err.text, "is not a folder"));
	assert_int_equal(folders_make("", &err), E_INVALID);
	unlink(file);
	rmdir(path);
	rmdir(sub);
	assert_int_equal(rmdir(folder), 0);
}

RUN(TEST_ROW(file, write_replaces_and_read_reads), TEST_ROW(file, folders_are_made_private))
