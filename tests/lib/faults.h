/* Makes what a gateway asks of the machine fail, one call a run, until each has failed once:
 *
 *   memory   malloc, calloc, realloc, strdup, ... as our own objects call them. Not xcalloc's,
 * whose failure ends the process (docs/STYLE.md). Nothing stands in the production code for it: the
 * objects are linked with these names replaced (tests/lib/faults.syms), and gateway/base/base.o,
 * which holds xcalloc, with its own. calls    open, write, fsync, mkdir, rename, link, socket,
 * bind, connect, accept, ... of ours and of libraries (git, sqlite, libuv, libwebsockets, libcurl),
 * in any thread.
 *
 * Which call is meant is told by who called whom to get there: a run in a loop is one call, however
 * often it comes. All of them instead, one after the other: FAULTS_EACH. */
#ifndef COPPICE_TEST_FAULTS_H
#define COPPICE_TEST_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

enum faults_kind { FAULTS_MEMORY = 1, FAULTS_CALLS = 2 };
enum faults_depth {
	FAULTS_SOME, /* every eighth */
	FAULTS_ALL,
	FAULTS_EACH
};

/* A sweep begins: nothing was seen yet. */
void faults_sweep(enum faults_kind kind, enum faults_depth depth);
/* Arms the next one; the first run has none. False: there is no more. */
bool faults_next(void);
/* Nothing fails any more in this run. True if something did. */
bool faults_disarm(void);
/* In this thread: what the test does itself. Nests. */
void faults_own(bool begins);
/* How many runs had a fault. */
size_t faults_fired(void);
/* What failed in the last run; NULL: nothing. */
const char *faults_name(void);
/* Where it was, to stderr. FAULTS_TELL in the environment: of each. */
void faults_tell(const char *what);

#endif
