#include "gateway/cli_ready.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/config.h"
#include "gateway/cli.h"
#include "gateway/spine/owners.h"

/* The host of "HOST:PORT"; an address that means "all" is reached by the loopback one. */
static void host_of(const char *listen, char *ret_host, size_t size)
{
	const char *colon = strrchr(listen, ':');
	size_t len = colon ? (size_t)(colon - listen) : strlen(listen);
	(void)copy_text(ret_host, size, listen, len); /* the door has bound it, so it is short */
	if (!*ret_host || strcmp(ret_host, "0.0.0.0") == 0 || strcmp(ret_host, "*") == 0)
		(void)copy_text(ret_host, size, "127.0.0.1", 9); /* it fits */
	else if (strcmp(ret_host, "[::]") == 0 || strcmp(ret_host, "::") == 0)
		(void)copy_text(ret_host, size, "[::1]", 5); /* it fits */
}

void cli_url(const struct config *config, int port, char *ret_url, size_t size)
{
	char host[256];
	host_of(config->listen, host, sizeof host);
	(void)snprintf(ret_url, size, "%s://%s:%d%s", *config->tls_cert ? "https" : "http", host,
		port, config->base_url); /* for people: cut if it is that long */
	size_t len = strlen(ret_url);
	while (len > 0 && ret_url[len - 1] == '/')
		ret_url[--len] = '\0';
}

static bool may_show(bool asked)
{
	const char *variable = getenv("COPPICE_SHOW_TOKEN");
	return asked || (variable && strcmp(variable, "1") == 0) || isatty(STDOUT_FILENO);
}

int cli_ready(const struct gateway *gw, int port, bool show_token, struct err *err)
{
	char url[1024];
	cli_url(&gw->config, port, url, sizeof url);
	int status = server_file_write(&gw->config, url, err);
	if (status != 0)
		return status;
	const struct owner *owner = owners_first(gw->owners);
	if (owner && may_show(show_token)) {
		printf("Coppice is ready: %s/?token=%s\n", url, owner->secret);
		printf("  jupyter lab --gateway-url=%s --GatewayClient.auth_token=%s\n", url,
			owner->secret);
	} else {
		printf("Coppice is ready: %s/\n", url);
		printf("  its token is in %s (or start with --show-token)\n",
			gw->config.token_file);
	}
	if (fflush(stdout) != 0)
		log_warn(&gw->log, "stdout_closed"); /* nobody reads it; that is no reason to end */
	log_info(&gw->log, "ready url=%s pid=%ld", url, (long)getpid());
	return 0;
}
