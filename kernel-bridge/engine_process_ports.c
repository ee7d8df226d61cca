/* Free ports for a kernel that binds TCP by itself. */
#include "kernel-bridge/engine_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int take_one(int *ret_fd, unsigned *ret_port, struct err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_set(err, E_IO, "socket: %s", strerror(errno));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
		int code = errno;

		(void)close(fd); /* never used */
		return err_set(err, E_IO, "no free port: %s", strerror(code));
	}
	*ret_fd = fd;
	*ret_port = ntohs(at.sin_port);
	return 0;
}

int process_ports_take(struct process_ports *p, bool hold, struct err *err)
{
	for (int i = 0; i < CHANNEL_COUNT; i++)
		p->fd[i] = -1;
	/* All five are bound before one is closed, so that no port comes twice. */
	for (int i = 0; i < CHANNEL_COUNT; i++) {
		int rc = take_one(&p->fd[i], &p->port[i], err);

		if (rc < 0) {
			process_ports_release(p);
			return rc;
		}
	}
	if (!hold)
		process_ports_release(p);
	return 0;
}

void process_ports_release(struct process_ports *p)
{
	for (int i = 0; i < CHANNEL_COUNT; i++) {
		if (p->fd[i] >= 0)
			(void)close(p->fd[i]); /* it held a name, no data */
		p->fd[i] = -1;
	}
}
