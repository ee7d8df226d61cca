#include "gateway/door/tcp_position.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { STATE_FIN_WAIT1 = 4, STATE_LAST_ACK = 9, STATE_CLOSING = 11 };

bool tcp_position(int fd, uint64_t *ret_acked, uint64_t *ret_unacked)
{
	struct tcp_info info;
	socklen_t len = sizeof info;
	int queued = 0;
	if (fd < 0 || ioctl(fd, SIOCOUTQ, &queued) != 0 || queued < 0)
		return false;
	memset(&info, 0, sizeof info); /* an older system fills less of it */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return false;
	bool fin = info.tcpi_state == STATE_FIN_WAIT1 || info.tcpi_state == STATE_LAST_ACK ||
		   info.tcpi_state == STATE_CLOSING;
	*ret_acked = info.tcpi_bytes_acked;
	*ret_unacked = (uint64_t)(fin && queued > 0 ? queued - 1 : queued);
	return true;
}
