/* The run folder: one host folder per slot with the sockets that its container sees. The run folder
 * is locked by one gateway; a slot's folder is RUN_DIR/<8 hex digits>/ (0700), in it s/ (0755),
 * which the container mounts read-only, so all names in it are ours. Loop thread. */
#ifndef COPPICE_BRIDGE_RUN_DIR_H
#define COPPICE_BRIDGE_RUN_DIR_H

#include <sys/types.h>

#include "gateway/base/base.h"
#include "gateway/base/err.h"

#define RUN_SOCKET_PATH_MAX 108 /* of sun_path, with its NUL */
#define RUN_SLOT_NAME_SIZE  9
#define RUN_BACKLOG	    16

struct run_dir {
	char path[RUN_SOCKET_PATH_MAX]; /* absolute, without links */
	int lock;
};

struct run_slot {
	char name[RUN_SLOT_NAME_SIZE];
	char folder[RUN_SOCKET_PATH_MAX];  /* RUN_DIR/<name> */
	char sockets[RUN_SOCKET_PATH_MAX]; /* RUN_DIR/<name>/s */
};

/* Makes the folder (0700) with what is missing above it and locks it. E_INVALID: the path leaves no
 * room for the names of sockets; E_CONFLICT: another gateway has it; E_IO. */
int run_dir_open(const char *path, struct run_dir *ret, struct err *err);
void run_dir_close(struct run_dir *d);
/* Removes what an earlier gateway left: folders named like those of slots, except those that keep
 * says are alive. */
void run_dir_sweep(const struct run_dir *d, bool (*keep)(void *data, const char *name), void *data);

int run_slot_make(const struct run_dir *d, struct run_slot *ret, struct err *err);
/* The folder that an earlier gateway made. E_INVALID: no such name; E_NOT_FOUND: it is gone. */
int run_slot_open(const struct run_dir *d, const char *name, struct run_slot *ret, struct err *err);
/* Removes the folder and all in it. */
void run_slot_remove(const struct run_slot *s);
/* A listening socket of that name (SOCK_STREAM, SOCK_SEQPACKET), non-blocking, close on exec.
 * E_CONFLICT if the name is taken. The caller owns the descriptor. */
int run_slot_listen(const struct run_slot *s, const char *name, int type, mode_t mode, int *ret_fd,
	struct err *err);
void run_slot_unlink(const struct run_slot *s, const char *name);
/* Unlinks all but those that are to be kept. */
void run_slot_clear(
	const struct run_slot *s, bool (*keep)(void *data, const char *name), void *data);
/* Writes a file that the container can read (0644). */
int run_slot_write(const struct run_slot *s, const char *name, const char *text, struct err *err);

#endif
