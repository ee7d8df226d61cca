/* Jupyter's search path for data files, as jupyter_core computes it, without asking Python. */
#include "kernel-bridge/spec.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *env_text(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static void add(struct spec_dirs *d, const char *path)
{
	if (d->n == SPEC_DIRS_MAX || path[0] != '/')
		return;
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->at[i], path) == 0)
			return;
	d->at[d->n++] = xstrdup(path);
}

static void add_below(struct spec_dirs *d, const char *base, const char *rest)
{
	char path[PATH_MAX];

	if (base && (size_t)snprintf(path, sizeof(path), "%s%s", base, rest) < sizeof(path))
		add(d, path);
}

/* Calls visit for each item of a colon separated list of folders. */
static void each_path(
	const char *list, void (*visit)(struct spec_dirs *d, const char *path), struct spec_dirs *d)
{
	while (list && *list) {
		size_t len = strcspn(list, ":");
		char path[PATH_MAX];

		if (len > 0 && copy_text(path, sizeof(path), list, len))
			visit(d, path);
		list += len;
		list += *list == ':';
	}
}

static void add_user(struct spec_dirs *d)
{
	if (env_text("JUPYTER_DATA_DIR"))
		add(d, env_text("JUPYTER_DATA_DIR"));
	else if (env_text("XDG_DATA_HOME"))
		add_below(d, env_text("XDG_DATA_HOME"), "/jupyter");
	else
		add_below(d, env_text("HOME"), "/.local/share/jupyter");
}

/* program lies in PREFIX/bin: adds PREFIX/share/jupyter. */
static void add_prefix_of(struct spec_dirs *d, const char *program)
{
	char prefix[PATH_MAX];
	char *slash;

	(void)copy_text(prefix, sizeof(prefix), program, strlen(program)); /* PATH_MAX both */
	for (int up = 0; up < 2; up++) {
		slash = strrchr(prefix, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
	add_below(d, prefix, "/share/jupyter");
}

/* A virtual environment's python3 is a link: its own prefix is where the link lies, the prefix
 * below it where the link leads. */
static void add_programs(struct spec_dirs *d, const char *folder)
{
	static const char *const names[] = {"jupyter", "python3"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char program[PATH_MAX];
		char real[PATH_MAX];

		if ((size_t)snprintf(program, sizeof(program), "%s/%s", folder, names[i]) >=
				sizeof(program) ||
			access(program, X_OK) != 0)
			continue;
		add_prefix_of(d, program);
		if (realpath(program, real))
			add_prefix_of(d, real);
	}
}

void spec_dirs_init(struct spec_dirs *d)
{
	d->n = 0;
	each_path(env_text("JUPYTER_PATH"), add, d);
	/* An active environment goes before the user's folder, as with jupyter_core. */
	add_below(d, env_text("VIRTUAL_ENV"), "/share/jupyter");
	add_user(d);
	each_path(env_text("PATH"), add_programs, d);
	add(d, "/usr/local/share/jupyter");
	add(d, "/usr/share/jupyter");
}

void spec_dirs_done(struct spec_dirs *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->at[i]);
	d->n = 0;
}
