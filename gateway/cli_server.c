/* DATA_DIR/server.json: how the other commands find the server that runs. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "gateway/base/file.h"
#include "gateway/cli.h"
#include "gateway/spine/owners.h"

#define SERVER_FILE_MAX 16384
#define START_ONE	"start one with `make run` or `build/coppice serve`"

static int server_file_path(const struct config *config, char ret_path[PATH_MAX], struct err *err)
{
	int len = snprintf(ret_path, PATH_MAX, "%s/server.json", config->data_dir);
	if (len < 0 || len >= PATH_MAX)
		return err_set(err, E_INVALID, "data_dir is too long");
	return 0;
}

/* tls_cert as other folders see it; "" if there is none. */
static void find_cert(const struct config *config, char ret_path[PATH_MAX])
{
	const char *cert = config->tls_cert ? config->tls_cert : "";
	if (!*cert || !realpath(cert, ret_path))
		ret_path[0] = '\0';
}

int server_file_write(const struct config *config, const char *url, struct err *err)
{
	char path[PATH_MAX], cert[PATH_MAX];
	find_cert(config, cert);
	int status = server_file_path(config, path, err);
	if (status != 0)
		return status;
	AUTO(buf_done) struct buf text;
	buf_init(&text, SERVER_FILE_MAX);
	/* Every result is in the latch. */
	(void)buf_add_text(&text, "{\"url\":");
	(void)buf_add_json_string(&text, url, strlen(url));
	(void)buf_addf(&text, ",\"pid\":%ld,\"token_file\":", (long)getpid());
	(void)buf_add_json_string(&text, config->token_file, strlen(config->token_file));
	if (*cert) {
		(void)buf_add_text(&text, ",\"tls_cert\":");
		(void)buf_add_json_string(&text, cert, strlen(cert));
	}
	(void)buf_add_text(&text, "}\n");
	status = buf_check(&text, path, err);
	return status != 0 ? status : file_write(path, text.data, text.len, err);
}

static void copy_member(const cJSON *tree, const char *name, char *to, size_t size)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, name));
	if (!text || !copy_text(to, size, text, strlen(text)))
		to[0] = '\0';
}

/* The first token that may see /admin; a token file that is not there is not made here. */
static int read_token(const char *token_file, char *ret_token, size_t size, struct err *err)
{
	if (access(token_file, R_OK) != 0)
		return err_set(err, E_NOT_FOUND, "token file %s: %s; give --token", token_file,
			strerror(errno));
	struct owners *owners;
	int status = owners_open(token_file, &owners, err);
	if (status != 0)
		return status;
	const struct owner *owner = owners_first_with(owners, SCOPE_ADMIN);
	if (!owner)
		owner = owners_first(owners);
	if (!owner || !copy_text(ret_token, size, owner->secret, strlen(owner->secret)))
		status = err_set(
			err, E_NOT_FOUND, "no token in %s may ask; give --token", token_file);
	owners_free(owners);
	return status;
}

/* token_file has PATH_MAX bytes. E_NOT_FOUND: there is none. */
static int read_server_file(const struct config *config, char path[PATH_MAX],
	struct cli_server *ret, char *token_file, struct err *err)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, SERVER_FILE_MAX);
	int status = server_file_path(config, path, err);
	if (status == 0)
		status = file_read(path, &text, err);
	if (status != 0)
		return status;
	cJSON *tree = cJSON_ParseWithLength((const char *)text.data, text.len);
	copy_member(tree, "url", ret->url, sizeof ret->url);
	copy_member(tree, "token_file", token_file, PATH_MAX);
	copy_member(tree, "tls_cert", ret->ca_file, sizeof ret->ca_file);
	ret->pid = (long)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(tree, "pid"));
	cJSON_Delete(tree);
	return *ret->url && ret->pid > 0 ? 0 : err_set(err, E_INVALID, "%s is malformed", path);
}

/* A start that was refused, because another gateway has the folders, leaves that one's. */
void server_file_remove(const struct config *config)
{
	struct cli_server found = {0};
	char path[PATH_MAX], token_file[PATH_MAX];
	if (read_server_file(config, path, &found, token_file, NULL) == 0 && found.pid == getpid())
		(void)unlink(path); /* a stale file is recognised by its pid */
}

static int find_running(
	const struct config *config, struct cli_server *ret, char *token_file, struct err *err)
{
	char path[PATH_MAX];
	int status = read_server_file(config, path, ret, token_file, err);
	if (status == E_NOT_FOUND)
		return err_set(err, E_NOT_FOUND,
			"no gateway runs with the data folder %s; " START_ONE, config->data_dir);
	if (status == 0 && kill((pid_t)ret->pid, 0) != 0 && errno == ESRCH)
		return err_set(err, E_NOT_FOUND,
			"the gateway of %s (pid %ld) runs no more; " START_ONE, config->data_dir,
			ret->pid);
	return status;
}

/* A certificate for the name that others use says nothing of the address that we ask: it must be
 * that very one, then. A name must be in it. */
static bool is_address(const char *url)
{
	const char *host = strstr(url, "://");
	host = host ? host + 3 : url;
	size_t len = strcspn(host, ":/");
	return *host == '[' || (len > 0 && strspn(host, "0123456789.") >= len);
}

static void trim_slash(char *url)
{
	size_t len = strlen(url);
	while (len > 0 && url[len - 1] == '/')
		url[--len] = '\0';
}

int cli_server_find(const struct config *config, const char *url, const char *token,
	struct cli_server *ret, struct err *err)
{
	struct cli_server found = {0};
	char token_file[PATH_MAX];
	(void)copy_text(token_file, sizeof token_file, config->token_file,
		strlen(config->token_file)); /* a path that long cannot be opened either */
	if (!url) {
		int status = find_running(config, &found, token_file, err);
		if (status != 0)
			return status;
		found.any_name = *found.ca_file && is_address(found.url);
	} else if (!*url || !copy_text(found.url, sizeof found.url, url, strlen(url))) {
		return err_set(err, E_INVALID, "--url needs a value like http://127.0.0.1:8899");
	}
	trim_slash(found.url);
	if (token && !copy_text(found.token, sizeof found.token, token, strlen(token)))
		return err_set(err, E_INVALID, "--token is too long");
	if (!token) {
		int status = read_token(token_file, found.token, sizeof found.token, err);
		if (status != 0)
			return status;
	}
	*ret = found;
	return 0;
}
