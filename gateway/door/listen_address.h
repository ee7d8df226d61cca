/* "ADDRESS:PORT" taken apart. */
#ifndef COPPICE_DOOR_LISTEN_ADDRESS_H
#define COPPICE_DOOR_LISTEN_ADDRESS_H

#include "gateway/base/err.h"
#include <stdbool.h>

struct uv_loop_s;

struct listen_address {
	char host[64]; /* an IPv4 or IPv6 address; "" for every address */
	int port;
	bool ipv6;
	bool loopback;
};

/* "127.0.0.1:8899", "[::1]:8899", "localhost:8899", "*:8899", ":8899". E_INVALID. */
int listen_address_parse(const char *text, struct listen_address *ret, struct err *err);
/* E_IO with the system's reason if it cannot be listened on now. Asked before libwebsockets is,
 * which waits in silence for an address that does not exist. */
int listen_address_probe(const struct listen_address *a, struct err *err);
/* Somebody in that loop listens on that port: libwebsockets does not say if it could not. */
bool listen_address_is_open(struct uv_loop_s *loop, int port);

#endif
