/* What `coppice serve` says once it serves. Main thread. */
#ifndef COPPICE_CLI_READY_H
#define COPPICE_CLI_READY_H

#include "gateway/gateway.h"

/* Prints the URLs and writes DATA_DIR/server.json. The token is printed to a terminal only, or if
 * it is asked for. */
int cli_ready(const struct gateway *gw, int port, bool show_token, struct err *err);
/* scheme://host:port/base without a slash at its end, as this machine reaches it. */
void cli_url(const struct config *config, int port, char *ret_url, size_t size);

#endif
