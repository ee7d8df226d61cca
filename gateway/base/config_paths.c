#include "gateway/base/config_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/log.h"

const char *config_environ(char **variables, const char *name)
{
	size_t len = strlen(name);
	for (char **at = variables; at && *at; at++)
		if (strncmp(*at, name, len) == 0 && (*at)[len] == '=')
			return *at + len + 1;
	return "";
}

static int join(char **ret, const char *folder, const char *rest, struct err *err)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof path, "%s%s", folder, rest);
	if (len < 0 || (size_t)len >= sizeof path)
		return err_set(err, E_INVALID, "the path %.100s... is too long", folder);
	free(*ret);
	*ret = xstrdup(path);
	return 0;
}

/* The container engine and a later call from another folder must mean the same place. */
static int make_absolute(char **path, struct err *err)
{
	char here[PATH_MAX], rest[PATH_MAX];
	if (**path == '/')
		return 0;
	if (!getcwd(here, sizeof here))
		return err_set(err, E_IO, "the current folder: %s", strerror(errno));
	int len = snprintf(rest, sizeof rest, "/%s", *path);
	if (len < 0 || (size_t)len >= sizeof rest)
		return err_set(err, E_INVALID, "the path %.100s... is too long", *path);
	return join(path, here, rest, err);
}

static int default_data_dir(struct config *config, char **variables, struct err *err)
{
	const char *xdg = config_environ(variables, "XDG_DATA_HOME");
	const char *home = config_environ(variables, "HOME");
	if (geteuid() == 0)
		return join(&config->data_dir, "/var/lib/coppice", "", err);
	if (*xdg == '/')
		return join(&config->data_dir, xdg, "/coppice", err);
	if (*home == '/')
		return join(&config->data_dir, home, "/.local/share/coppice", err);
	return err_set(
		err, E_INVALID, "data_dir has no default, for HOME is not set; give --data-dir");
}

static int default_run_dir(struct config *config, char **variables, struct err *err)
{
	const char *xdg = config_environ(variables, "XDG_RUNTIME_DIR");
	if (geteuid() == 0)
		return join(&config->run_dir, "/run/coppice", "", err);
	if (*xdg == '/')
		return join(&config->run_dir, xdg, "/coppice", err);
	return join(&config->run_dir, config->data_dir, "/run", err);
}

static int complete_paths(struct config *config, char **variables, struct err *err)
{
	int status = *config->data_dir ? 0 : default_data_dir(config, variables, err);
	if (status == 0)
		status = make_absolute(&config->data_dir, err);
	if (status == 0 && !*config->run_dir)
		status = default_run_dir(config, variables, err);
	if (status == 0)
		status = make_absolute(&config->run_dir, err);
	if (status == 0 && !*config->token_file)
		status = join(&config->token_file, config->data_dir, "/tokens.ini", err);
	if (status == 0)
		status = make_absolute(&config->token_file, err);
	return status;
}

int config_complete(struct config *config, char **variables, struct err *err)
{
	enum log_level level;
	if (!log_level_parse(config->log_level, &level))
		return err_set(err, E_INVALID,
			"log_level is '%.100s'; it must be debug, info, warn or error",
			config->log_level);
	if (*config->base_url != '/')
		return err_set(err, E_INVALID, "base_url is '%.100s'; it must begin with /",
			config->base_url);
	if (!*config->tls_cert != !*config->tls_key)
		return err_set(
			err, E_INVALID, "tls_cert and tls_key are given together or not at all");
	if (*config->tls_client_ca && !*config->tls_cert)
		return err_set(err, E_INVALID, "tls_client_ca needs tls_cert and tls_key");
	return complete_paths(config, variables, err);
}
