#include "kernel-bridge/run_dir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway/base/crypto.h"
#include "tests/lib/test.h"

static char parent[64];

static void make_parent(char ret_path[96])
{
	assert_int_equal(crypto_init(NULL), 0);
	(void)snprintf(parent, sizeof(parent), "/tmp/coppice-test-XXXXXX");
	assert_non_null(mkdtemp(parent));
	(void)snprintf(ret_path, 96, "%s/run", parent);
}

static void remove_parent(const char *path)
{
	assert_int_equal(rmdir(path), 0); /* nothing was left in it */
	assert_int_equal(rmdir(parent), 0);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static bool keep_none(void *data, const char *name)
{
	(void)data, (void)name;
	return false;
}

static bool keep_named(void *data, const char *name)
{
	return strcmp(data, name) == 0;
}

TEST(run_dir, belongs_to_one_gateway)
{
	struct run_dir d, other;
	struct err err;
	char path[96];
	make_parent(path);

	assert_int_equal(run_dir_open(path, &d, &err), 0);

	assert_int_equal(run_dir_open(path, &other, &err), E_CONFLICT);
	assert_int_equal(mode_of(path), 0700);
	run_dir_close(&d);
	assert_int_equal(run_dir_open(path, &d, &err), 0);
	run_dir_close(&d);
	remove_parent(path);
}

TEST(run_dir, refuses_paths_without_room_for_sockets)
{
	struct run_dir d;
	struct err err;
	char path[200];
	memset(path, 'x', sizeof(path));
	memcpy(path, "/tmp/", 5);

	path[199] = '\0';
	assert_int_equal(run_dir_open(path, &d, &err), E_INVALID);
	assert_int_equal(run_dir_open("relative", &d, &err), E_INVALID);
}

TEST(run_slot, listens_with_the_modes_that_keep_guests_out)
{
	struct run_dir d;
	struct run_slot s;
	char path[96], socket_path[200];
	int fd = -1;
	make_parent(path);
	assert_int_equal(run_dir_open(path, &d, NULL), 0);
	assert_int_equal(run_slot_make(&d, &s, NULL), 0);

	assert_int_equal(run_slot_listen(&s, "shell-1", SOCK_STREAM, 0700, &fd, NULL), 0);

	assert_int_equal(mode_of(s.folder), 0700);
	assert_int_equal(mode_of(s.sockets), 0755);
	(void)snprintf(socket_path, sizeof(socket_path), "%s/shell-1", s.sockets);
	assert_int_equal(mode_of(socket_path), 0700);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	(void)close(fd);
	run_slot_remove(&s);
	run_dir_close(&d);
	remove_parent(path);
}

TEST(run_slot, takes_a_name_once)
{
	struct run_dir d;
	struct run_slot s;
	struct err err;
	char path[96];
	int fd = -1, other = -1;
	make_parent(path);
	assert_int_equal(run_dir_open(path, &d, NULL), 0);
	assert_int_equal(run_slot_make(&d, &s, NULL), 0);
	assert_int_equal(run_slot_listen(&s, "ctl", SOCK_SEQPACKET, 0666, &fd, NULL), 0);

	assert_int_equal(
		run_slot_listen(&s, "ctl", SOCK_SEQPACKET, 0666, &other, &err), E_CONFLICT);

	assert_int_equal(other, -1);
	(void)close(fd);
	run_slot_unlink(&s, "ctl");
	assert_int_equal(run_slot_listen(&s, "ctl", SOCK_SEQPACKET, 0666, &fd, NULL), 0);
	(void)close(fd);
	run_slot_remove(&s);
	run_dir_close(&d);
	remove_parent(path);
}

TEST(run_dir, sweeps_what_is_not_alive)
{
	struct run_dir d;
	struct run_slot alive, dead;
	char path[96], stranger[120];
	int fd = -1;
	make_parent(path);
	assert_int_equal(run_dir_open(path, &d, NULL), 0);
	assert_int_equal(run_slot_make(&d, &alive, NULL), 0);
	assert_int_equal(run_slot_make(&d, &dead, NULL), 0);
	assert_int_equal(run_slot_listen(&dead, "ctl", SOCK_SEQPACKET, 0666, &fd, NULL), 0);
	(void)close(fd);
	(void)snprintf(stranger, sizeof(stranger), "%s/strange1", path);
	assert_int_equal(mkdir(stranger, 0700), 0);

	run_dir_sweep(&d, keep_named, alive.name);

	assert_int_equal(access(alive.sockets, F_OK), 0);
	assert_int_equal(access(dead.folder, F_OK), -1);
	assert_int_equal(access(stranger, F_OK), 0);
	assert_int_equal(rmdir(stranger), 0);
	run_dir_sweep(&d, keep_none, NULL);
	run_dir_close(&d);
	remove_parent(path);
}

TEST(run_slot, never_follows_a_link_when_it_removes)
{
	struct run_dir d;
	struct run_slot s;
	char path[96], kept[96];
	make_parent(path);
	assert_int_equal(run_dir_open(path, &d, NULL), 0);
	assert_int_equal(run_slot_make(&d, &s, NULL), 0);
	(void)snprintf(kept, sizeof(kept), "%s/kept", parent);
	assert_int_equal(mkdir(kept, 0700), 0);
	(void)strncat(kept, "/file", sizeof(kept) - strlen(kept) - 1);
	int fd = open(kept, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(rmdir(s.sockets), 0);
	kept[strlen(kept) - 5] = '\0';
	assert_int_equal(symlink(kept, s.sockets), 0);

	run_slot_remove(&s);

	(void)strncat(kept, "/file", sizeof(kept) - strlen(kept) - 1);
	assert_int_equal(access(kept, F_OK), 0);
	assert_int_equal(unlink(kept), 0);
	kept[strlen(kept) - 5] = '\0';
	assert_int_equal(rmdir(kept), 0);
	assert_int_equal(unlink(s.sockets), 0);
	assert_int_equal(rmdir(s.folder), 0);
	run_dir_close(&d);
	remove_parent(path);
}

RUN(TEST_ROW(run_dir, belongs_to_one_gateway),
	TEST_ROW(run_dir, refuses_paths_without_room_for_sockets),
	TEST_ROW(run_slot, listens_with_the_modes_that_keep_guests_out),
	TEST_ROW(run_slot, takes_a_name_once), TEST_ROW(run_dir, sweeps_what_is_not_alive),
	TEST_ROW(run_slot, never_follows_a_link_when_it_removes))
