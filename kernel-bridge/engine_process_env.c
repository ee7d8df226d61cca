/* The command line, environment and working folder of a kernel process. */
#include "kernel-bridge/engine_process.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/buf.h"
#include "gateway/base/crypto.h"

#define TEXT_MAX  (128 * 1024) /* execve takes no longer single text */
#define WORDS_MAX 4096

struct words {
	char **at; /* ends with NULL */
	size_t n;
};

static int words_add(struct words *w, char *text, struct err *err)
{
	char **at;

	if (!text)
		return err_set(err, E_NOMEM, "kernel command: out of memory");
	at = w->n < WORDS_MAX ? realloc(w->at, (w->n + 2) * sizeof(*at)) : NULL;
	if (!at) {
		free(text);
		return err_set(err, E_TOO_BIG, "kernel command: too many words");
	}
	w->at = at;
	w->at[w->n++] = text;
	w->at[w->n] = NULL;
	return 0;
}

static size_t name_len(const char *entry)
{
	return strcspn(entry, "=");
}

static char **words_find(const struct words *env, const char *name, size_t len)
{
	for (size_t i = 0; i < env->n; i++)
		if (name_len(env->at[i]) == len && memcmp(env->at[i], name, len) == 0)
			return &env->at[i];
	return NULL;
}

static int env_set(struct words *env, const char *name, const char *value, struct err *err)
{
	char **old = words_find(env, name, strlen(name));
	char *entry = NULL;

	if (asprintf(&entry, "%s=%s", name, value) < 0)
		return err_set(err, E_NOMEM, "kernel environment: out of memory");
	if (!old)
		return words_add(env, entry, err);
	free(*old);
	*old = entry;
	return 0;
}

/* What belongs to the gateway, or would let a kernel speak in its name. */
static bool is_ours(const char *entry)
{
	static const char *const names[] = {"JUPYTER_TOKEN", "JUPYTERHUB_API_TOKEN",
		"JUPYTER_GATEWAY_AUTH_TOKEN", "KG_AUTH_TOKEN", "EG_AUTH_TOKEN", "NOTIFY_SOCKET",
		"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "PYTHONEXECUTABLE", PROCESS_MARK};
	size_t len = name_len(entry);

	if (strncmp(entry, "COPPICE_", 8) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && memcmp(names[i], entry, len) == 0)
			return true;
	return false;
}

/* One reference behind a '$': its end, and its name. NULL: not a reference. */
static const char *reference(const char *at, const char **ret_name, size_t *ret_len)
{
	bool braced = *at == '{';
	const char *name = at + braced, *end = name;

	if (!isalpha((unsigned char)*name) && *name != '_')
		return NULL;
	while (isalnum((unsigned char)*end) || *end == '_')
		end++;
	if (braced && *end != '}')
		return NULL;
	*ret_name = name;
	*ret_len = (size_t)(end - name);
	return end + braced;
}

/* As jupyter_client: $NAME and ${NAME} of the environment so far, $$ is one $, what is unknown
 * stays. */
static int expand(const struct words *env, const char *text, struct buf *ret)
{
	while (*text) {
		const char *name, *end;
		char **entry;
		size_t len = strcspn(text, "$");

		(void)buf_add(ret, text, len); /* checked by the caller through buf_check */
		text += len;
		if (!*text)
			break;
		if (text[1] == '$') {
			(void)buf_add_text(ret, "$"); /* checked later */
			text += 2;
			continue;
		}
		end = reference(text + 1, &name, &len);
		entry = end ? words_find(env, name, len) : NULL;
		if (entry) {
			(void)buf_add_text(ret, *entry + len + 1); /* checked later */
			text = end;
		} else {
			(void)buf_add_text(ret, "$"); /* checked later */
			text++;
		}
	}
	return ret->failed ? -1 : 0;
}

static int env_add_spec(struct words *env, const struct kernelspec *spec, struct err *err)
{
	const cJSON *object = cJSON_GetObjectItemCaseSensitive(spec->spec, "env");
	const cJSON *item;

	cJSON_ArrayForEach (item, object) {
		AUTO(buf_done) struct buf value;
		int rc;

		if (!cJSON_IsString(item) || !item->string)
			continue;
		buf_init(&value, TEXT_MAX);
		(void)expand(env, item->valuestring, &value); /* checked next */
		rc = buf_check(&value, "environment of the kernelspec", err);
		if (rc == 0)
			rc = env_set(
				env, item->string, value.data ? (const char *)value.data : "", err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int env_add_request(struct words *env, const cJSON *object, struct err *err)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, object) {
		int rc;

		if (!cJSON_IsString(item) || !item->string || is_ours(item->string))
			continue;
		rc = env_set(env, item->string, item->valuestring, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int env_build(
	const struct process_command_source *source, struct words *ret, struct err *err)
{
	char *mark = NULL;
	int rc;

	/* The mark comes first: the kernel shows only the beginning of a long environment. */
	if (asprintf(&mark, "%s=%s", PROCESS_MARK, source->mark) < 0)
		mark = NULL;
	rc = words_add(ret, mark, err);
	for (char **at = environ; rc == 0 && *at; at++)
		if (!is_ours(*at))
			rc = words_add(ret, strdup(*at), err);
	if (rc == 0)
		rc = env_add_spec(ret, source->spec, err);
	return rc < 0 ? rc : env_add_request(ret, source->env, err);
}

/* sys.prefix of the environment that a kernelspec belongs to. */
static void prefix_of(const struct kernelspec *spec, char *ret_prefix, size_t size)
{
	const char *dir = spec->resource_dir ? spec->resource_dir : "";
	const char *share = strstr(dir, "/share/jupyter/kernels/");

	if (!share || !copy_text(ret_prefix, size, dir, (size_t)(share - dir)))
		(void)snprintf(ret_prefix, size, "/usr");
}

static int expand_word(const struct process_command_source *source, const char *word,
	struct words *ret, struct err *err)
{
	AUTO(buf_done) struct buf text;
	char prefix[4096];
	const char *const names[] = {"{connection_file}", "{resource_dir}", "{prefix}"};
	const char *const values[] = {source->connection_file,
		source->spec->resource_dir ? source->spec->resource_dir : "", prefix};
	int rc;

	prefix_of(source->spec, prefix, sizeof(prefix));
	buf_init(&text, TEXT_MAX);
	while (*word) {
		size_t i = 0;

		while (i < ARRAY_LEN(names) && strncmp(word, names[i], strlen(names[i])) != 0)
			i++;
		if (i < ARRAY_LEN(names)) {
			(void)buf_add_text(&text, values[i]); /* checked below */
			word += strlen(names[i]);
		} else {
			(void)buf_add(&text, word++, 1); /* checked below */
		}
	}
	rc = buf_check(&text, "argv of the kernelspec", err);
	return rc < 0 ? rc : words_add(ret, strdup(text.data ? (char *)text.data : ""), err);
}

static int argv_build(
	const struct process_command_source *source, struct words *ret, struct err *err)
{
	const cJSON *argv = cJSON_GetObjectItemCaseSensitive(source->spec->spec, "argv");
	const cJSON *word;

	cJSON_ArrayForEach (word, argv) {
		int rc = expand_word(source, cJSON_GetStringValue(word), ret, err);

		if (rc < 0)
			return rc;
	}
	return ret->n ? 0
		      : err_set(err, E_INVALID, "kernelspec %s has no argv", source->spec->name);
}

static bool is_dir(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       access(path, X_OK) == 0;
}

/* A working folder that names one of another machine is quietly not used. */
static const char *working_dir(const struct process_command_source *source)
{
	const char *asked = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(source->env, "KERNEL_WORKING_DIR"));

	if (is_dir(asked))
		return asked;
	if (is_dir(getenv("HOME")))
		return getenv("HOME");
	return is_dir(source->data_dir) ? source->data_dir : "/";
}

int process_command_init(
	struct process_command *c, const struct process_command_source *source, struct err *err)
{
	struct words argv = {0}, env = {0};
	int rc = argv_build(source, &argv, err);

	if (rc == 0)
		rc = env_build(source, &env, err);
	*c = (struct process_command){.argv = argv.at, .env = env.at, .cwd = working_dir(source)};
	if (rc < 0)
		process_command_done(c);
	return rc;
}

static void words_free(char **at)
{
	for (char **word = at; word && *word; word++)
		free(*word);
	free(at);
}

void process_command_done(struct process_command *c)
{
	words_free(c->argv);
	words_free(c->env);
	*c = (struct process_command){0};
}

/* ---- what it runs in ---- */

/* As execvp would find it. */
static bool find_program(const struct process_command *c, char ret_path[PATH_MAX])
{
	const char *name = c->argv[0], *path = "/usr/bin:/bin";
	for (char **entry = c->env; entry && *entry; entry++)
		if (strncmp(*entry, "PATH=", 5) == 0)
			path = *entry + 5;
	if (strchr(name, '/'))
		return realpath(name, ret_path) != NULL;
	while (*path) {
		char full[PATH_MAX];
		size_t len = strcspn(path, ":");
		int n = snprintf(full, sizeof(full), "%.*s/%s", (int)len, path, name);
		if (n > 0 && (size_t)n < sizeof(full) && access(full, X_OK) == 0)
			return realpath(full, ret_path) != NULL;
		path += len + (path[len] == ':');
	}
	return false;
}

void process_environment(const struct kernelspec *spec, const struct process_command *c,
	char ret_text[ENVIRONMENT_SIZE])
{
	AUTO(freep) char *text = cJSON_PrintUnformatted(spec->spec);
	char program[PATH_MAX], facts[PATH_MAX + 64], hex[DIGEST_HEX_SIZE];
	struct stat st;

	ret_text[0] = '\0';
	if (!text || !find_program(c, program) || stat(program, &st) < 0)
		return;
	int n = snprintf(facts, sizeof(facts), "\n%s %lld %lld", program, (long long)st.st_size,
		(long long)st.st_mtime); /* fits */
	const struct bytes parts[] = {
		{(const uint8_t *)text, strlen(text)}, {(const uint8_t *)facts, (size_t)n}};
	crypto_digest_hex(parts, ARRAY_LEN(parts), hex);
	(void)snprintf(ret_text, ENVIRONMENT_SIZE, "process:%s", hex); /* fits */
}
