/* Beside history_fixture.h: packs of a history, and a `git` that waits where a test wants it. */
#ifndef COPPICE_PACK_FIXTURE_H
#define COPPICE_PACK_FIXTURE_H

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>

#include "gateway/base/tree.h"
#include "history/pack.h"
#include "tests/lib/history_fixture.h"

/* As they come: some are recorded together. */
static inline void record_some(struct hfix *fx, unsigned first, unsigned n)
{
	struct tape *last = NULL;
	for (unsigned i = first; i < first + n; i++) {
		char id[16], code[64];
		(void)snprintf(id, sizeof id, "m%u", i);
		(void)snprintf(code, sizeof code, "x = %u\nprint(x * %u)", i, i);
		last = record_cell(fx, id, code, "a line of output\n");
		if (i % 500 == 499)
			await_fine(fx, last);
	}
	if (last)
		await_fine(fx, last);
}

/* Each alone, so that all they leave is files. */
static inline void record_each(struct hfix *fx, unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		record_some(fx, i, 1);
}

static inline const char *path_in(struct hfix *fx, const char *rest)
{
	static _Thread_local char path[512];
	(void)snprintf(path, sizeof path, "%s/" HISTORY_A ".git/%s", fx->folder, rest);
	return path;
}

/* How many names in a folder of the repository end so. */
static inline unsigned count_names(struct hfix *fx, const char *folder, const char *end)
{
	DIR *dir = opendir(path_in(fx, folder));
	unsigned n = 0;
	if (!dir)
		return 0;
	for (struct dirent *d; (d = readdir(dir));) {
		size_t len = strlen(d->d_name), m = strlen(end);
		n += len >= m && strcmp(d->d_name + len - m, end) == 0 && d->d_name[0] != '.';
	}
	(void)closedir(dir);
	return n;
}

static inline unsigned packs(struct hfix *fx)
{
	return count_names(fx, "objects/pack", ".idx");
}

static inline unsigned loose(struct hfix *fx)
{
	return pack_loose_nodes(path_in(fx, ""));
}

/* Until a condition holds; the loop turns meanwhile. The pause is between two questions: git is to
 * have the processor. */
#define AWAIT(fx, condition)                                                                       \
	do {                                                                                       \
		unsigned await_left = 30000; /* a minute: never reached by a whole machine */      \
		while (!(condition)) {                                                             \
			assert_true(await_left-- > 0);                                             \
			(void)uv_run(&(fx)->loop, UV_RUN_NOWAIT);                                  \
			(void)poll(NULL, 0, 2);                                                    \
		}                                                                                  \
	} while (0)

/* From now on `git` writes its number to FOLDER/began, and waits there until FOLDER/go is. */
static inline void hold_git(struct hfix *fx)
{
	char path[128], bin[128], search[512];
	const char *old = getenv("PATH");
	(void)snprintf(bin, sizeof bin, "%s/bin", fx->folder);
	(void)snprintf(path, sizeof path, "%s/bin/git", fx->folder);
	(void)snprintf(search, sizeof search, "%s:%s", bin, old);
	assert_int_equal(mkdir(bin, 0700), 0);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file,
		"#!/bin/sh\n"
		"PATH=/usr/local/bin:/usr/bin:/bin\n"
		"echo $$ > '%s/began.new' && mv '%s/began.new' '%s/began'\n"
		"while [ ! -e '%s/go' ]; do sleep 0.01; done\n"
		"exec git \"$@\"\n",
		fx->folder, fx->folder, fx->folder, fx->folder);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(setenv("PATH", search, 1), 0);
}

static inline void unhold_git(struct hfix *fx)
{
	char search[512];
	(void)snprintf(search, sizeof search, "%s", strchr(getenv("PATH"), ':') + 1);
	assert_int_equal(setenv("PATH", search, 1), 0);
	(void)fx;
}

static inline bool is_there(struct hfix *fx, const char *name)
{
	char path[128];
	(void)snprintf(path, sizeof path, "%s/%s", fx->folder, name);
	return access(path, F_OK) == 0;
}

static inline void touch(struct hfix *fx, const char *name)
{
	char line[256];
	(void)snprintf(line, sizeof line, "cd '%s' && touch %s", fx->folder, name);
	shell(line);
}

#endif
