/* Which processes descend from a kernel. Linux keeps no such record once a parent has died, so
 * three traces are followed: the session, living parents, and a mark in the environment. */
#include "kernel-bridge/engine_process.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ENVIRON_MAX (128 * 1024)
#define ROUNDS_MAX  8

struct one {
	pid_t pid, parent, session;
	bool ours;
};

struct all {
	struct one *at;
	size_t n, size;
};

static bool read_proc(pid_t pid, const char *file, char *to, size_t size, size_t *ret_len)
{
	char path[64];
	ssize_t n;
	size_t len = 0;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file); /* fits */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (len < size - 1 && (n = read(fd, to + len, size - 1 - len)) > 0)
		len += (size_t)n;
	(void)close(fd); /* only read from */
	to[len] = '\0';
	*ret_len = len;
	return len > 0;
}

/* Field 2 is the program's name in parentheses and may hold anything, so fields are counted from
 * the last parenthesis. */
static bool read_stat(pid_t pid, char *ret_state, struct one *ret, unsigned long long *ret_started)
{
	char text[1024];
	size_t len;
	const char *at;
	int parent = 0, session = 0;

	if (!read_proc(pid, "stat", text, sizeof(text), &len))
		return false;
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1,
			   " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			   "%*d %llu",
			   ret_state, &parent, &session, ret_started) != 4)
		return false;
	*ret = (struct one){.pid = pid, .parent = parent, .session = session};
	return true;
}

struct process_id process_id_of(pid_t pid)
{
	struct process_id id = {.pid = pid};
	struct one one;
	char state;

	if (pid <= 0 || !read_stat(pid, &state, &one, &id.started))
		id.started = 0;
	return id;
}

static bool has_mark(pid_t pid, const char *mark, char *scratch)
{
	char want[160];
	size_t len, want_len;

	(void)snprintf(
		want, sizeof(want), "%s=%s", PROCESS_MARK, mark); /* a mark has < 100 bytes */
	want_len = strlen(want) + 1; /* with its NUL, so that line 1 is not line 12 */
	if (!read_proc(pid, "environ", scratch, ENVIRON_MAX, &len))
		return false;
	for (const char *at = scratch; at < scratch + len; at += strlen(at) + 1)
		if ((size_t)(scratch + len + 1 - at) >= want_len && memcmp(at, want, want_len) == 0)
			return true;
	return false;
}

static void add(struct all *all, const struct one *one)
{
	if (all->n == all->size) {
		size_t size = all->size ? all->size * 2 : 256;
		struct one *at = realloc(all->at, size * sizeof(*at));

		if (!at)
			return; /* what is left out is not killed; there is nothing better to do */
		all->at = at;
		all->size = size;
	}
	all->at[all->n++] = *one;
}

static void read_all(struct all *all)
{
	DIR *d = opendir("/proc");

	all->n = 0;
	if (!d)
		return;
	for (const struct dirent *e; (e = readdir(d));) {
		unsigned long long started;
		struct one one;
		char state;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (read_stat((pid_t)strtol(e->d_name, NULL, 10), &state, &one, &started) &&
			state != 'Z' && state != 'X')
			add(all, &one);
	}
	(void)closedir(d); /* only read from */
}

static int by_pid(const void *a, const void *b)
{
	pid_t left = ((const struct one *)a)->pid, right = ((const struct one *)b)->pid;

	return (left > right) - (left < right);
}

static const struct one *find(const struct all *all, pid_t pid)
{
	struct one key = {.pid = pid};

	return all->n ? bsearch(&key, all->at, all->n, sizeof(key), by_pid) : NULL;
}

/* Marks children of marked ones until nothing changes. */
static void spread(struct all *all)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < all->n; i++) {
			const struct one *parent = find(all, all->at[i].parent);

			if (!all->at[i].ours && parent && parent->ours)
				all->at[i].ours = changed = true;
		}
	}
}

struct tree {
	pid_t root;
	bool alive;
	const char *mark;
	char *scratch;
};

static void look(const struct tree *t, struct all *ret)
{
	read_all(ret);
	if (ret->n)
		qsort(ret->at, ret->n, sizeof(*ret->at), by_pid);
	for (size_t i = 0; i < ret->n; i++) {
		struct one *one = &ret->at[i];

		one->ours = (t->alive && one->pid == t->root) || one->session == t->root ||
			    has_mark(one->pid, t->mark, t->scratch);
	}
	spread(ret);
}

/* Returns how many were killed that were not among ours at the look before. */
static int kill_ours(const struct tree *t, const struct all *now, const struct all *before)
{
	int fresh = 0;

	for (size_t i = 0; i < now->n; i++) {
		const struct one *one = &now->at[i], *old = find(before, one->pid);

		if (!one->ours || one->pid == getpid() || one->pid <= 1)
			continue;
		if (kill(one->pid, SIGKILL) == 0 && one->pid != t->root && !(old && old->ours))
			fresh++;
	}
	return fresh;
}

int process_tree_kill(pid_t root, bool alive, const char *mark)
{
	AUTO(freep) char *scratch = xcalloc(1, ENVIRON_MAX);
	struct tree t = {.root = root, .alive = alive, .mark = mark, .scratch = scratch};
	struct all looks[2] = {0};
	int killed = 0;

	assert(root > 1);
	/* A process can fork between our look and its end; a few more looks catch its children. */
	for (int round = 0; round < ROUNDS_MAX; round++) {
		int fresh;

		look(&t, &looks[round % 2]);
		fresh = kill_ours(&t, &looks[round % 2], &looks[(round + 1) % 2]);
		killed += fresh;
		if (fresh == 0)
			break;
	}
	free(looks[0].at);
	free(looks[1].at);
	if (alive)
		(void)kill(root, SIGKILL); /* also where /proc cannot be read */
	return killed;
}
