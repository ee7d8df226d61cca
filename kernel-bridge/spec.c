/* Making a kernelspec of a tree; reading kernel.json files. The search path is spec_dirs.c. */
#include "kernel-bridge/spec.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"

#define SPEC_FILE_MAX (1 << 20)
#define SPEC_NAME_MAX 128

static void tree_freep(cJSON **tree)
{
	cJSON_Delete(*tree);
}

/* Jupyter's rule: letters, digits, dot, underscore, hyphen; names are compared in lower case. */
static int name_copy(const char *name, char ret_name[SPEC_NAME_MAX], struct err *err)
{
	size_t len = strlen(name);

	if (len == 0 || len >= SPEC_NAME_MAX)
		return err_set(err, E_INVALID, "kernelspec: a name has 1 to %d characters",
			SPEC_NAME_MAX - 1);
	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789._-", c))
			return err_set(err, E_INVALID,
				"kernelspec: name may hold letters, digits, '.', '_' and '-' only");
		ret_name[i] = c;
	}
	ret_name[len] = '\0';
	return 0;
}

static int check_argv(const cJSON *tree, struct err *err)
{
	const cJSON *argv = cJSON_GetObjectItemCaseSensitive(tree, "argv");
	const cJSON *word;

	if (!cJSON_IsArray(argv) || !argv->child)
		return err_set(err, E_INVALID, "argv is not a list of texts");
	cJSON_ArrayForEach (word, argv)
		if (!cJSON_IsString(word))
			return err_set(err, E_INVALID, "argv is not a list of texts");
	return 0;
}

/* Moves a member over; what is absent or of another kind becomes the default (then freed if the
 * member was right). */
static void take(cJSON *to, cJSON *from, const char *key, cJSON *otherwise)
{
	cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(from, key);

	if (item && (item->type & 0xff) == (otherwise->type & 0xff)) {
		cJSON_Delete(otherwise);
		cJSON_AddItemToObject(to, key, item);
		return;
	}
	cJSON_Delete(item);
	cJSON_AddItemToObject(to, key, otherwise);
}

/* The environment of a kernel is texts only; anything else cannot be passed on. */
static void only_texts(cJSON *object)
{
	for (cJSON *item = object->child, *next; item; item = next) {
		next = item->next;
		if (!cJSON_IsString(item) || !item->string || !*item->string ||
			strchr(item->string, '='))
			cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
	}
}

static int64_t cull_idle_ms(const cJSON *spec)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(spec, "metadata");
	const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(metadata, "cull_idle_timeout");

	if (!cJSON_IsNumber(seconds) || seconds->valuedouble < 0 || seconds->valuedouble > 1e9)
		return -1;
	return (int64_t)(seconds->valuedouble * 1000);
}

static int interrupt_mode(const cJSON *tree, enum interrupt_mode *ret, struct err *err)
{
	const cJSON *mode = cJSON_GetObjectItemCaseSensitive(tree, "interrupt_mode");

	if (mode && !cJSON_IsString(mode))
		return err_set(err, E_INVALID, "interrupt_mode is not a text");
	if (!mode || strcmp(mode->valuestring, "signal") == 0)
		*ret = INTERRUPT_SIGNAL;
	else if (strcmp(mode->valuestring, "message") == 0)
		*ret = INTERRUPT_MESSAGE;
	else
		return err_set(
			err, E_INVALID, "interrupt_mode is neither \"signal\" nor \"message\"");
	return 0;
}

/* The members that the kernelspec API hands out, each of the kind that clients check for. */
static cJSON *spec_tree(const char *name, cJSON *tree)
{
	cJSON *spec = cJSON_CreateObject();
	cJSON *version = cJSON_DetachItemFromObjectCaseSensitive(tree, "kernel_protocol_version");

	take(spec, tree, "argv", cJSON_CreateArray());
	take(spec, tree, "env", cJSON_CreateObject());
	take(spec, tree, "display_name", cJSON_CreateString(name));
	take(spec, tree, "language", cJSON_CreateString(""));
	take(spec, tree, "interrupt_mode", cJSON_CreateString("signal"));
	take(spec, tree, "metadata", cJSON_CreateObject());
	if (cJSON_IsString(version))
		cJSON_AddItemToObject(spec, "kernel_protocol_version", version);
	else
		cJSON_Delete(version);
	only_texts(cJSON_GetObjectItemCaseSensitive(spec, "env"));
	return spec;
}

int spec_new(const char *name, const char *engine, struct cJSON *tree, const char *resource_dir,
	struct kernelspec **ret, struct err *err)
{
	AUTO(tree_freep) cJSON *given = tree;
	char lower[SPEC_NAME_MAX];
	enum interrupt_mode mode = INTERRUPT_SIGNAL;
	struct kernelspec *s;
	int rc;

	if (!cJSON_IsObject(given))
		return err_set(err, E_INVALID, "kernelspec: not a JSON object");
	rc = name_copy(name, lower, err);
	if (rc < 0)
		return rc;
	rc = check_argv(given, err);
	if (rc == 0)
		rc = interrupt_mode(given, &mode, err);
	if (rc < 0) {
		(void)err_wrap(err, "kernelspec %s", lower); /* rc is the code */
		return rc;
	}
	s = xcalloc(1, sizeof(*s));
	s->name = xstrdup(lower);
	s->engine = engine;
	s->spec = spec_tree(lower, given);
	s->resource_dir = resource_dir ? xstrdup(resource_dir) : NULL;
	s->interrupt_mode = mode;
	s->cull_idle_ms = cull_idle_ms(s->spec);
	list_init(&s->link);
	*ret = s;
	return 0;
}

void spec_free(struct kernelspec *s)
{
	if (!s)
		return;
	list_remove(&s->link);
	cJSON_Delete(s->spec);
	free((char *)s->name);
	free((char *)s->resource_dir);
	free(s);
}

void spec_list_free(struct list *specs)
{
	LIST_EACH_SAFE (at, specs)
		spec_free(CONTAINER_OF(at, struct kernelspec, link));
}

struct kernelspec *spec_find(const struct list *specs, const char *name)
{
	LIST_EACH (at, specs) {
		struct kernelspec *s = CONTAINER_OF(at, struct kernelspec, link);

		if (strcasecmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

static int read_fd(int fd, struct buf *ret, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, E_IO, "not a regular file");
	for (;;) {
		ssize_t n;

		if (buf_reserve(ret, 4096) < 0)
			return buf_check(ret, "kernel.json", err);
		n = read(fd, ret->data + ret->len, 4096);
		if (n < 0)
			return err_set(err, E_IO, "%s", strerror(errno));
		if (n == 0)
			return 0;
		ret->len += (size_t)n;
	}
}

static int read_tree(const char *path, cJSON **ret, struct err *err)
{
	AUTO(buf_done) struct buf text;
	/* O_NONBLOCK: a fifo of that name must not hold the gateway's start. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc;

	buf_init(&text, SPEC_FILE_MAX);
	if (fd < 0)
		return err_set(err, errno == ENOENT ? E_NOT_FOUND : E_IO, "%s", strerror(errno));
	rc = read_fd(fd, &text, err);
	(void)close(fd); /* only read from */
	if (rc < 0)
		return rc;
	rc = json_scan((struct bytes){text.data, text.len}, NULL, 0, err);
	if (rc < 0)
		return rc;
	*ret = json_parse((struct bytes){text.data, text.len}, NULL, err);
	return *ret ? 0 : err_wrap(err, "kernel.json");
}

/* jupyter_client's rule: "python" of a spec that belongs to an environment is that environment's
 * interpreter, not whichever comes first on PATH. */
static void own_python(cJSON *tree, const char *dir)
{
	static const char share[] = "/share/jupyter";
	cJSON *word = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(tree, "argv"), 0);
	size_t len = strlen(dir), tail = sizeof(share) - 1;
	char path[4096];
	int n;

	if (!cJSON_IsString(word) || strncmp(word->valuestring, "python", 6) != 0 ||
		strspn(word->valuestring + 6, "0123456789.") != strlen(word->valuestring + 6))
		return;
	if (len <= tail || strcmp(dir + len - tail, share) != 0)
		return;
	n = snprintf(path, sizeof(path), "%.*s/bin/%s", (int)(len - tail), dir, word->valuestring);
	if (n > 0 && (size_t)n < sizeof(path) && access(path, X_OK) == 0)
		(void)cJSON_SetValuestring(word, path); /* if memory is out the plain name stays */
}

static int read_one(const char *dir, const char *folder, const char *prefix, const char *engine,
	struct kernelspec **ret, struct err *err)
{
	char resources[4096], path[4096], name[SPEC_NAME_MAX * 2];
	cJSON *tree = NULL;
	int rc;

	if ((size_t)snprintf(resources, sizeof(resources), "%s/kernels/%s", dir, folder) >=
			sizeof(resources) ||
		(size_t)snprintf(path, sizeof(path), "%s/kernel.json", resources) >= sizeof(path) ||
		(size_t)snprintf(name, sizeof(name), "%s%s", prefix, folder) >= sizeof(name))
		return err_set(err, E_TOO_BIG, "path is too long");
	rc = read_tree(path, &tree, err);
	if (rc < 0)
		return rc;
	own_python(tree, dir);
	return spec_new(name, engine, tree, resources, ret, err);
}

static void read_dir(const char *dir, const char *prefix, const char *engine, struct list *specs,
	const struct log *log)
{
	char path[4096];
	DIR *d;

	if ((size_t)snprintf(path, sizeof(path), "%s/kernels", dir) >= sizeof(path))
		return;
	d = opendir(path);
	if (!d)
		return; /* most folders of the search path do not exist */
	for (const struct dirent *e; (e = readdir(d));) {
		struct kernelspec *s = NULL;
		struct err err = {0};
		int rc;

		if (e->d_name[0] == '.')
			continue;
		rc = read_one(dir, e->d_name, prefix, engine, &s, &err);
		if (rc == E_NOT_FOUND)
			continue; /* a folder that holds no kernel.json is no kernelspec */
		if (rc < 0)
			log_warn(log, "kernelspec_skipped folder=%s/%s reason=%s", path, e->d_name,
				err.text);
		else if (spec_find(specs, s->name))
			spec_free(s);
		else
			list_append(specs, &s->link);
	}
	(void)closedir(d); /* only read from */
}

void spec_read(const struct spec_dirs *d, const char *prefix, const char *engine,
	struct list *specs, const struct log *log)
{
	for (size_t i = 0; i < d->n; i++)
		read_dir(d->at[i], prefix, engine, specs, log);
}
