/* coppice push: the branches of a history to another git repository, by the git program of whoever
 * asks, with their keys and settings. What the gateway serves is fetched into a folder of its own
 * first: so it is what the token may see, and never what is ours alone. */
#include "gateway/cli_push.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/cli_history.h"

#define ENVIRONMENT_MAX 4096
#define TEXT_SIZE	4200

/* ---- the address ---- */

static const char *const schemes[] = {"file://", "http://", "https://", "ssh://", "git://"};

static int bad(struct err *err, const char *why)
{
	return err_set(err, E_INVALID, "this is no address to push to: %s", why);
}

/* Of "ssh://ada@HOST/path" and "ada@HOST:path". */
static bool host_is_option(const char *at)
{
	size_t len = strcspn(at, "/:");
	const char *user_end = memchr(at, '@', len);
	return *at == '-' || (user_end && user_end[1] == '-');
}

int push_url_check(const char *url, struct err *err)
{
	if (!*url || *url == '-')
		return bad(err, "an option is none");
	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return bad(err, "blanks and control characters are not allowed");
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t n = strlen(schemes[i]);
		if (strncasecmp(url, schemes[i], n) != 0)
			continue;
		if (strncmp(url, schemes[i], n) != 0)
			return bad(err, "its scheme is written in small letters");
		return host_is_option(url + n) ? bad(err, "its host is an option") : 0;
	}
	if (strstr(url, "::"))
		return bad(err, "helpers of git (`ext::` ...) are not allowed");
	if (strstr(url, "://"))
		return bad(err, "it may begin with file, http, https, ssh or git");
	const char *colon = strchr(url, ':'), *slash = strchr(url, '/');
	if (colon && (!slash || colon < slash))
		return host_is_option(url) ? bad(err, "its host is an option") : 0;
	return slash ? 0 : bad(err, "a folder is named with a slash, as ./backup.git");
}

/* ---- git ---- */

struct environment {
	char *list[ENVIRONMENT_MAX];
	unsigned n;
};

static void put(struct environment *e, const char *name, const char *value)
{
	size_t size = strlen(name) + strlen(value) + 2;
	if (e->n + 1 >= ENVIRONMENT_MAX)
		return;
	char *text = xcalloc(1, size);
	(void)snprintf(text, size, "%s=%s", name, value);
	e->list[e->n++] = text;
}

static void environment_done(struct environment *e)
{
	for (unsigned i = 0; i < e->n; i++)
		free(e->list[i]);
}

/* Which repository is meant is said on the command line alone. */
static bool is_gits_place(const char *variable)
{
	static const char *const names[] = {"GIT_DIR=", "GIT_WORK_TREE=", "GIT_INDEX_FILE=",
		"GIT_OBJECT_DIRECTORY=", "GIT_ALTERNATE_OBJECT_DIRECTORIES=", "GIT_COMMON_DIR=",
		"GIT_NAMESPACE=", "GIT_ALLOW_PROTOCOL="};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* The person's own: keys, agents, helpers. */
static void persons_environment(struct environment *e)
{
	for (char **at = environ; *at && e->n + 2 < ENVIRONMENT_MAX; at++) {
		char *copy = is_gits_place(*at) ? NULL : strdup(*at);
		if (copy)
			e->list[e->n++] = copy;
	}
	put(e, "GIT_ALLOW_PROTOCOL", "file:http:https:ssh:git");
}

/* None of theirs: the token goes to the gateway and nowhere else. */
static void our_environment(struct environment *e, const struct cli_server *server)
{
	char text[TEXT_SIZE];
	put(e, "PATH", getenv("PATH") ? getenv("PATH") : "/usr/local/bin:/usr/bin:/bin");
	put(e, "HOME", "/nonexistent");
	put(e, "GIT_CONFIG_NOSYSTEM", "1");
	put(e, "GIT_TERMINAL_PROMPT", "0");
	put(e, "GIT_ALLOW_PROTOCOL", "http:https");
	put(e, "GIT_CONFIG_COUNT", *server->ca_file ? "4" : "3");
	(void)snprintf(text, sizeof text, "http.%s/.extraHeader", server->url); /* 1024 */
	put(e, "GIT_CONFIG_KEY_0", text);
	(void)snprintf(text, sizeof text, "Authorization: token %s", server->token);
	put(e, "GIT_CONFIG_VALUE_0", text);
	put(e, "GIT_CONFIG_KEY_1", "http.proxy"); /* as libcurl takes it: none */
	put(e, "GIT_CONFIG_VALUE_1", "");
	put(e, "GIT_CONFIG_KEY_2", "http.followRedirects"); /* the token goes nowhere else */
	put(e, "GIT_CONFIG_VALUE_2", "false");
	put(e, "GIT_CONFIG_KEY_3", "http.sslCAInfo");
	put(e, "GIT_CONFIG_VALUE_3", server->ca_file);
}

struct running {
	uv_process_t process;
	int64_t status;
};

static void on_ended(uv_process_t *process, int64_t status, int signo)
{
	struct running *r = process->data;
	r->status = signo ? 128 + signo : status;
	uv_close((uv_handle_t *)process, NULL);
}

/* To its end; what it says goes where ours does. */
static int run_git(char **argv, struct environment *e, struct err *err)
{
	uv_loop_t loop;
	struct running r = {.status = -1};
	uv_stdio_container_t stdio[] = {{.flags = UV_INHERIT_FD, .data.fd = 0},
		{.flags = UV_INHERIT_FD, .data.fd = 1}, {.flags = UV_INHERIT_FD, .data.fd = 2}};
	uv_process_options_t options = {.file = argv[0],
		.args = argv,
		.env = e->list,
		.exit_cb = on_ended,
		.stdio = stdio,
		.stdio_count = ARRAY_LEN(stdio)};
	int uv = uv_loop_init(&loop);
	if (uv != 0)
		return err_set(err, E_IO, "the loop: %s", uv_strerror(uv));
	r.process.data = &r;
	uv = uv_spawn(&loop, &r.process, &options);
	if (uv != 0)
		uv_close((uv_handle_t *)&r.process, NULL);
	(void)uv_run(&loop, UV_RUN_DEFAULT); /* until it is closed */
	(void)uv_loop_close(&loop);	     /* nothing is open */
	if (uv != 0)
		return err_set(err, E_IO, "git cannot be started: %s", uv_strerror(uv));
	return r.status == 0 ? 0
			     : err_set(err, E_IO, "git %s failed (%lld)",
				       argv[*argv[1] == '-' ? 3 : 1], (long long)r.status);
}

/* ---- the two steps ---- */

/* /history/ID as git asks for it. */
static int fetch_into(
	const char *folder, const struct cli_server *server, const char *path, struct err *err)
{
	char url[TEXT_SIZE];
	struct environment *e = xcalloc(1, sizeof *e);
	(void)snprintf(url, sizeof url, "%s%s.git", server->url, path); /* 1024 and 1024 */
	char *argv[] = {
		"git", "clone", "--quiet", "--bare", "--", url, (char *)(uintptr_t)folder, NULL};
	our_environment(e, server);
	int status = run_git(argv, e, err);
	environment_done(e);
	free(e);
	return status;
}

static int push_from(const char *folder, const char *url, struct err *err)
{
	struct environment *e = xcalloc(1, sizeof *e);
	char *argv[] = {"git", "-C", (char *)(uintptr_t)folder, "push", "--",
		(char *)(uintptr_t)url, "refs/heads/*:refs/heads/*", NULL};
	persons_environment(e);
	int status = run_git(argv, e, err);
	environment_done(e);
	free(e);
	return status;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	(void)st, (void)kind, (void)place;
	return remove(path);
}

static void remove_folder(const char *folder)
{
	(void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* what stays harms nobody */
}

/* A folder's name is that of whoever asks, not of where git runs. */
static int resolve(const char *url, char ret[PATH_MAX], struct err *err)
{
	bool is_folder = !strstr(url, "://") && (!strchr(url, ':') || *url == '/' || *url == '.');
	if (is_folder && !realpath(url, ret))
		return err_set(err, E_NOT_FOUND, "%s: %s", url, strerror(errno));
	if (!is_folder && !copy_text(ret, PATH_MAX, url, strlen(url)))
		return err_set(err, E_INVALID, "the address is too long");
	return 0;
}

static int push(struct cli_asked *a, struct err *err)
{
	AUTO(buf_done) struct buf path;
	char folder[] = "/tmp/coppice-push-XXXXXX", url[PATH_MAX];
	struct cli_server server;
	buf_init(&path, 1024);
	a->history = a->words[0];
	int status = push_url_check(a->words[1], err);
	if (status == 0)
		status = resolve(a->words[1], url, err);
	if (status == 0)
		status = cli_history_path(a, &server, &path, err);
	if (status == 0 && server.any_name)
		status = err_set(err, E_INVALID,
			"git wants the name in the gateway's certificate: "
			"give --url https://NAME:PORT");
	if (status != 0)
		return status;
	if (!mkdtemp(folder))
		return err_set(err, E_IO, "%s: %s", folder, strerror(errno));
	status = fetch_into(folder, &server, (const char *)path.data, err);
	if (status == 0)
		status = push_from(folder, url, err);
	remove_folder(folder);
	return status;
}

static int run(int argc, char **argv)
{
	struct cli_asked a;
	struct err err;
	int status = cli_asked_read(&a, argc, argv, 2);
	if (status != CLI_OK)
		return status;
	if (a.n_words < 2) {
		fprintf(stderr, "coppice push: what, and where to? coppice push HISTORY URL\n");
		config_done(&a.config);
		return CLI_WRONG_USE;
	}
	status = push(&a, &err);
	config_done(&a.config);
	return status == 0 ? CLI_OK : cli_fail(&err);
}

const struct command command_push = {
	.name = "push",
	.about = "a history's branches to a git repository: coppice push HISTORY URL",
	.usage = "  HISTORY                 its id or name\n"
		 "  URL                     file://, https://, ssh://, user@host:path, or a "
		 "folder\n" CLI_SERVER_USAGE,
	.takes_options = true,
	.run = run,
};
