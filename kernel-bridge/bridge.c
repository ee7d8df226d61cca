/* Opening and closing the bridge: its engines, its kernelspecs, the run folder. Kernels are
 * kernel.c. */
#include "kernel-bridge/bridge_internal.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "kernel-bridge/spec.h"

struct opener {
	const char *name;
	int (*open)(const struct bridge_env *env, struct engine **ret, struct err *err);
};

static const struct opener openers[] = {
	{"docker", engine_docker_open},
	{"process", engine_process_open},
};

/* Like mkdir -p, except that the last folder is for us alone: the sockets of kernels lie in it. */
static int make_run_dir(const char *path, struct err *err)
{
	AUTO(freep) char *part = xstrdup(path);

	if (path[0] != '/')
		return err_set(err, E_INVALID, "run_dir is not an absolute path: %s", path);
	for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_set(
				err, E_IO, "run_dir %s: %s: %s", path, part, strerror(errno));
		*at = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_set(err, E_IO, "run_dir %s: %s", path, strerror(errno));
	return 0;
}

static void on_nothing(void *data)
{
	(void)data; /* an engine that was opened in vain has nobody who waits for its end */
}

static void close_in_vain(struct engine **engines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		engines[i]->ops->close(engines[i], on_nothing, NULL);
}

static int open_engine(const struct bridge_env *env, const char *name, struct engine **engines,
	size_t *n, struct err *err)
{
	for (size_t i = 0; i < *n; i++)
		if (strcmp(engines[i]->name, name) == 0)
			return 0;
	for (size_t i = 0; i < ARRAY_LEN(openers); i++) {
		int rc;

		if (strcmp(openers[i].name, name) != 0)
			continue;
		rc = openers[i].open(env, &engines[*n], err);
		if (rc < 0) {
			(void)err_wrap(err, "engine %s", name); /* rc is the code */
			return rc;
		}
		++*n;
		return 0;
	}
	return err_set(err, E_INVALID, "engine '%s' is neither docker nor process", name);
}

int bridge_open(const struct bridge_env *env, struct bridge **ret, struct err *err)
{
	struct engine *engines[BRIDGE_ENGINES_MAX] = {0};
	const char *at = env->config->engine;
	char name[64];
	size_t n = 0;
	int rc = make_run_dir(env->config->run_dir, err);

	_Static_assert(ARRAY_LEN(openers) <= BRIDGE_ENGINES_MAX, "each engine finds a place");
	while (rc == 0 && config_list_next(&at, name, sizeof(name)))
		rc = open_engine(env, name, engines, &n, err);
	if (rc == 0 && n == 0)
		rc = err_set(err, E_INVALID, "option engine names no engine");
	if (rc == 0)
		return bridge_open_with(env, engines, n, ret, err);
	close_in_vain(engines, n);
	return rc;
}

/* Of two specs of one name the first counts: engines come in the order of the configuration. */
static void drop_doubles(struct bridge *b)
{
	LIST_EACH_SAFE (at, &b->specs) {
		struct kernelspec *s = CONTAINER_OF(at, struct kernelspec, link);

		if (spec_find(&b->specs, s->name) != s) {
			log_warn(b->env.log, "kernelspec_hidden name=%s engine=%s", s->name,
				s->engine);
			spec_free(s);
		}
	}
}

static void warn_about_default(const struct bridge *b)
{
	const char *wanted = b->env.config->default_kernel;

	if (wanted && *wanted && !spec_find(&b->specs, wanted))
		log_warn(b->env.log, "default_kernel_unknown name=%s used=%s", wanted,
			bridge_default_spec(b));
}

int bridge_open_with(const struct bridge_env *env, struct engine **engines, size_t n,
	struct bridge **ret, struct err *err)
{
	struct bridge *b = xcalloc(1, sizeof(*b));
	int rc;

	assert(n >= 1 && n <= BRIDGE_ENGINES_MAX);
	b->env = *env;
	list_init(&b->specs);
	memcpy(b->engines, engines, n * sizeof(engines[0]));
	b->n_engines = n;
	rc = bridge_kernels_init(b, err);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = engines[i]->ops->specs(engines[i], &b->specs, err);
	if (rc < 0) {
		bridge_close(b, on_nothing, NULL);
		return rc;
	}
	drop_doubles(b);
	warn_about_default(b);
	*ret = b;
	return 0;
}

struct engine *bridge_engine(struct bridge *b, const char *name)
{
	for (size_t i = 0; i < b->n_engines; i++)
		if (strcmp(b->engines[i]->name, name) == 0)
			return b->engines[i];
	return NULL;
}

/* A sweep of all engines at once; freed by the last that answers. */
struct bridge_sweep {
	size_t left;
	void (*cb)(void *data);
	void *data;
};

static void on_swept(void *data)
{
	struct bridge_sweep *sweep = data;

	if (--sweep->left > 0)
		return;
	sweep->cb(sweep->data);
	free(sweep);
}

void bridge_sweep(struct bridge *b, void (*cb)(void *data), void *data)
{
	struct bridge_sweep *sweep = xcalloc(1, sizeof(*sweep));

	*sweep = (struct bridge_sweep){.left = b->n_engines, .cb = cb, .data = data};
	for (size_t i = 0; i < b->n_engines; i++)
		b->engines[i]->ops->sweep(b->engines[i], on_swept, sweep);
}

static void on_kernels_done(void *data)
{
	struct bridge *b = data;
	void (*cb)(void *data) = b->closed;
	void *cb_data = b->closed_data;

	spec_list_free(&b->specs);
	free(b);
	cb(cb_data);
}

static void on_engine_closed(void *data)
{
	struct bridge *b = data;

	if (--b->n_closing == 0)
		bridge_kernels_done(b, on_kernels_done, b);
}

static void close_engines(struct bridge *b)
{
	b->n_closing = b->n_engines;
	for (size_t i = 0; i < b->n_engines; i++)
		b->engines[i]->ops->close(b->engines[i], on_engine_closed, b);
}

void bridge_close(struct bridge *b, void (*cb)(void *data), void *data)
{
	b->closed = cb;
	b->closed_data = data;
	if (b->n_kernels == 0)
		close_engines(b);
}

void bridge_kernel_freed(struct bridge *b)
{
	b->n_kernels--;
	if (b->closed && b->n_kernels == 0)
		close_engines(b);
}

struct cJSON *bridge_report(const struct bridge *b)
{
	cJSON *tree = cJSON_CreateObject();

	for (size_t i = 0; i < b->n_engines; i++)
		cJSON_AddItemToObject(
			tree, b->engines[i]->name, b->engines[i]->ops->report(b->engines[i]));
	return tree;
}

const struct kernelspec *bridge_spec(const struct bridge *b, const char *name)
{
	const struct kernelspec *s;

	if (!name || !*name)
		name = bridge_default_spec(b);
	s = spec_find(&b->specs, name);
	if (!s && strcmp(name, "python") == 0)
		s = spec_find(&b->specs, "python3");
	return s;
}

const char *bridge_default_spec(const struct bridge *b)
{
	const char *wanted = b->env.config->default_kernel;
	const char *const names[] = {wanted ? wanted : "", "python3", "process-python3"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct kernelspec *s = spec_find(&b->specs, names[i]);

		if (s)
			return s->name;
	}
	if (!list_empty(&b->specs))
		return CONTAINER_OF(b->specs.next, struct kernelspec, link)->name;
	return "python3";
}

const struct list *bridge_specs(const struct bridge *b)
{
	return &b->specs;
}
