/* Looks from outside: the engine's `top` lists a container's processes as the host sees them, and
 * no guest can hide one from it. What may be there is known: the init, the supervisor, what is
 * parked (stopped, or it would not be), and the trees of other lines. All else is of the line that
 * ended. */
#include "kernel-bridge/docker_look.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARKS_KNOWN   128
#define PROCESSES_MAX 4096
#define TOP	      "/top?ps_args=-eo%20pid,ppid,stat"

struct docker_look {
	struct {
		int64_t park;
		long pid;
	} parks[PARKS_KNOWN];
	size_t n_parks;
	unsigned line;
	void (*cb)(void *data, const struct err *left); /* NULL: nobody asked */
	void *data;
};

struct process {
	long pid, parent; /* as the host numbers them */
	long own;	  /* as its container does; 0: it is gone */
	char state;
};

struct table {
	const struct docker_slot *slot;
	unsigned line;
	struct process *of;
	size_t n;
};

/* ---- what is parked ---- */

static struct docker_look *look_of(struct docker_slot *s)
{
	if (!s->look)
		s->look = xcalloc(1, sizeof(*s->look));
	return s->look;
}

void docker_look_parked(struct docker_slot *s, int64_t park, long pid)
{
	struct docker_look *l = look_of(s);
	docker_look_unparked(s, park);
	if (park <= 0 || pid <= 0 || l->n_parks == PARKS_KNOWN)
		return; /* seen as left then, which costs a container and nothing else */
	l->parks[l->n_parks].park = park;
	l->parks[l->n_parks++].pid = pid;
}

void docker_look_unparked(struct docker_slot *s, int64_t park)
{
	struct docker_look *l = s->look;
	for (size_t i = 0; l && i < l->n_parks; i++)
		if (l->parks[i].park == park)
			l->parks[i--] = l->parks[--l->n_parks];
}

void docker_look_drop(struct docker_slot *s)
{
	free(TAKE(s->look));
}

static bool is_parked(const struct docker_slot *s, const struct process *p)
{
	const struct docker_look *l = s->look;
	for (size_t i = 0; i < l->n_parks; i++)
		if (l->parks[i].pid == p->own)
			return p->state == 'T';
	return false;
}

/* ---- the table ---- */

/* The last number of NSpid is that in the innermost namespace. 0: the process is gone, or its
 * status is not for us to read. */
static long own_number(long pid)
{
	char path[64], line[256];
	long own = 0;
	(void)snprintf(path, sizeof(path), "/proc/%ld/status", pid); /* short */
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *last = strrchr(line, '\t');
		if (strncmp(line, "NSpid:", 6) == 0 && last)
			own = strtol(last, NULL, 10);
	}
	if (f)
		(void)fclose(f); /* nothing was written */
	return own;
}

static int column(const cJSON *titles, const char *name)
{
	const cJSON *title;
	int i = 0;
	cJSON_ArrayForEach (title, titles) {
		if (cJSON_IsString(title) && strcmp(title->valuestring, name) == 0)
			return i;
		i++;
	}
	return -1;
}

static const char *cell(const cJSON *row, int i)
{
	const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(row, i));
	return text ? text : "";
}

static int table_read(struct table *t, const cJSON *json, struct err *err)
{
	const cJSON *titles = cJSON_GetObjectItemCaseSensitive(json, "Titles"), *row;
	const cJSON *rows = cJSON_GetObjectItemCaseSensitive(json, "Processes");
	int pid = column(titles, "PID"), parent = column(titles, "PPID");
	int state = column(titles, "STAT"), n = cJSON_GetArraySize(rows);
	if (pid < 0 || parent < 0 || state < 0 || n > PROCESSES_MAX)
		return err_set(err, E_ENGINE, "the engine's list of processes makes no sense");
	t->of = xcalloc((size_t)n + 1, sizeof(*t->of));
	cJSON_ArrayForEach (row, rows) {
		struct process *p = &t->of[t->n++];
		p->pid = strtol(cell(row, pid), NULL, 10);
		p->parent = strtol(cell(row, parent), NULL, 10);
		p->state = cell(row, state)[0];
		p->own = own_number(p->pid);
	}
	return 0;
}

/* ---- what may be there ---- */

static bool is_house(const struct table *t, const struct process *p)
{
	return p->own == 1 || p->pid == t->slot->pid;
}

/* The kernel of another line, or the process above it. */
static bool is_of_other_line(const struct table *t, const struct process *p)
{
	LIST_EACH (at, &t->slot->lines) {
		const struct docker_line *l = CONTAINER_OF(at, struct docker_line, link);
		if (l->number == t->line || l->pid == 0)
			continue;
		for (size_t i = 0; i < t->n; i++)
			if (t->of[i].own == l->pid &&
				(t->of[i].pid == p->pid || t->of[i].parent == p->pid))
				return true;
	}
	return false;
}

static const struct process *parent_of(const struct table *t, const struct process *p)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->of[i].pid == p->parent)
			return &t->of[i];
	return NULL;
}

static bool may_be_there(const struct table *t, const struct process *p)
{
	if (p->state == 'Z' || p->state == 'X' || is_house(t, p) || is_parked(t->slot, p))
		return true;
	/* Bounded: what was read while processes came and went may not be a tree. */
	for (size_t i = 0; p && i < t->n && !is_house(t, p); i++, p = parent_of(t, p))
		if (is_of_other_line(t, p))
			return true;
	return false;
}

static int count_left(const struct table *t, struct err *err)
{
	long first = 0;
	unsigned n = 0;
	for (size_t i = 0; i < t->n; i++) {
		if (may_be_there(t, &t->of[i]))
			continue;
		first = n++ == 0 ? t->of[i].pid : first;
	}
	if (n == 0)
		return 0;
	return err_set(err, E_BUSY, "%u %s of it still there (process %ld of the host)", n,
		n == 1 ? "process is" : "processes are", first);
}

static void on_top(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	struct docker_look *l = s->look;
	struct table t = {.slot = s, .line = l->line};
	struct err left;
	(void)status; /* err says it */
	void (*cb)(void *data, const struct err *left) = TAKE(l->cb);
	int rc = err ? err_set(&left, err->code, "nobody can say what is left: %s", err->text)
		     : table_read(&t, json, &left);
	if (rc == 0)
		rc = count_left(&t, &left);
	free(t.of);
	if (cb)
		cb(l->data, rc == 0 ? NULL : &left);
}

int docker_look(struct slot *slot, unsigned line, void (*cb)(void *data, const struct err *left),
	void *data, struct err *err)
{
	struct docker_slot *s = docker_slot_of(slot);
	if (s->foreign)
		return 1; /* its container went with it */
	if (s->gone)
		return err_set(err, E_UNAVAILABLE, "the container is gone");
	struct docker_look *l = look_of(s);
	l->line = line;
	l->cb = cb;
	l->data = data;
	return docker_slot_call(s, "GET", TOP, NULL, on_top, err);
}
