#include "gateway/door/listen_address.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

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
