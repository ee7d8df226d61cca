#include "gateway/door/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/base.h"

static int refuse(const char *text, struct err *err)
{
	return err_set(err, E_INVALID,
		"listen: `%s` is not ADDRESS:PORT, such as 127.0.0.1:8899 or [::1]:8899", text);
}

static bool parse_port(const char *text, int *ret)
{
	size_t len = strlen(text);
	if (len == 0 || len > 5 || strspn(text, "0123456789") != len)
		return false;
	long port = strtol(text, NULL, 10);
	*ret = (int)port;
	return port <= 65535;
}

static bool parse_host(struct listen_address *a)
{
	struct in_addr v4;
	struct in6_addr v6;
	if (strcmp(a->host, "localhost") == 0)
		(void)copy_text(a->host, sizeof a->host, "127.0.0.1", 9); /* fits */
	if (strcmp(a->host, "*") == 0 || strcmp(a->host, "0.0.0.0") == 0)
		a->host[0] = '\0';
	if (a->ipv6) {
		if (inet_pton(AF_INET6, a->host, &v6) != 1)
			return false;
		a->loopback = IN6_IS_ADDR_LOOPBACK(&v6);
		return true;
	}
	if (a->host[0] == '\0')
		return true;
	if (inet_pton(AF_INET, a->host, &v4) != 1)
		return false;
	a->loopback = (ntohl(v4.s_addr) >> 24) == 127;
	return true;
}

int listen_address_parse(const char *text, struct listen_address *ret, struct err *err)
{
	struct listen_address a = {0};
	const char *colon = strrchr(text, ':'), *from = text;
	if (!colon || !parse_port(colon + 1, &a.port))
		return refuse(text, err);
	size_t len = (size_t)(colon - text);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		a.ipv6 = true;
		from++;
		len -= 2;
	}
	if (!copy_text(a.host, sizeof a.host, from, len) || !parse_host(&a))
		return refuse(text, err);
	*ret = a;
	return 0;
}

static int try_bind(int fd, const struct listen_address *a)
{
	int on = 1;
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)a->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)a->port)};
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
		return -1;
	if (a->ipv6) {
		(void)inet_pton(AF_INET6, a->host, &v6.sin6_addr); /* parsed before */
		return bind(fd, (const struct sockaddr *)&v6, sizeof v6);
	}
	if (a->host[0] != '\0')
		(void)inet_pton(AF_INET, a->host, &v4.sin_addr); /* parsed before */
	return bind(fd, (const struct sockaddr *)&v4, sizeof v4);
}

int listen_address_probe(const struct listen_address *a, struct err *err)
{
	int status = 0;
	int fd = socket(a->ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || try_bind(fd, a) != 0 || listen(fd, 1) != 0)
		status = err_set(err, E_IO, "cannot listen on %s port %d: %s",
			a->host[0] ? a->host : "any address", a->port, strerror(errno));
	if (fd >= 0)
		(void)close(fd); /* nothing was written */
	return status;
}

struct search {
	int port;
	bool found;
};

static int port_of(const struct sockaddr_storage *at)
{
	if (at->ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)(const void *)at)->sin_port);
	if (at->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)(const void *)at)->sin6_port);
	return 0;
}

static void look(uv_handle_t *handle, void *data)
{
	struct search *s = data;
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof at, size = sizeof(int);
	int fd, listens = 0;
	if (uv_handle_get_type(handle) == UV_POLL && uv_fileno(handle, &fd) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
		getsockname(fd, (struct sockaddr *)&at, &len) == 0)
		s->found = s->found || port_of(&at) == s->port;
}

bool listen_address_is_open(struct uv_loop_s *loop, int port)
{
	struct search s = {.port = port};
	uv_walk(loop, look, &s);
	return s.found;
}
