/* A program as a child process (git, tar): an argument vector and an environment of its own, so
 * that neither settings nor hooks of a person or of the machine count; a process group of its own,
 * at low priority. Blocks; one at a time. */
#ifndef COPPICE_BASE_CHILD_H
#define COPPICE_BASE_CHILD_H

#include <pthread.h>
#include <sys/types.h>

#include "base.h"
#include "err.h"

struct child {
	pthread_mutex_t lock;
	pid_t pid; /* 0: none runs */
	bool stopped;
};

void child_init(struct child *c);
void child_done(struct child *c);

/* Runs argv (NULL-ended) to its end. held_fd: stays open in it and in what it starts, -1 for none.
 * E_IO: it failed, err says what it said; E_UNAVAILABLE: child_stop() ended it. */
int child_run(struct child *c, const char *const *argv, int held_fd, struct err *err);
/* Likewise; it reads what is in the file input_fd, from its beginning. */
int child_run_fed(
	struct child *c, const char *const *argv, int input_fd, int held_fd, struct err *err);
/* Any thread: what runs is told to end, and what comes later is refused. */
void child_stop(struct child *c);

#endif
