#include "gateway/door/listen_pipe.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_eventfd(unsigned fd)
{
	static const char kind[] = "anon_inode:[eventfd]";
	char path[32], target[sizeof kind];
	(void)snprintf(path, sizeof path, "/proc/self/fd/%u", fd); /* fits */
	return readlink(path, target, sizeof target) == (ssize_t)sizeof kind - 1 &&
	       memcmp(target, kind, sizeof kind - 1) == 0;
}

void listen_eventfds(struct listen_eventfds *ret)
{
	*ret = (struct listen_eventfds){0};
	for (unsigned fd = 0; fd < LISTEN_FDS; fd++)
		if (is_eventfd(fd))
			ret->bits[fd / 64] |= UINT64_C(1) << (fd % 64);
}

int listen_pipe_since(const struct listen_eventfds *then)
{
	struct listen_eventfds now;
	listen_eventfds(&now);
	for (unsigned fd = 0; fd < LISTEN_FDS; fd++)
		if ((now.bits[fd / 64] & ~then->bits[fd / 64]) >> (fd % 64) & 1)
			return (int)fd;
	return -1;
}

void listen_pipe_hold(int fd)
{
	if (fd < 0)
		return;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null == fd)
		return;
	/* The lowest that is free from fd on: fd itself, or somebody has it. */
	int held = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, fd);
	if (held >= 0 && held != fd)
		(void)close(held);
	if (null >= 0)
		(void)close(null);
}
