/* Where a TCP connection stands with its peer. Apart, since libwebsockets drags in an older
 * tcp_info. */
#ifndef COPPICE_DOOR_TCP_POSITION_H
#define COPPICE_DOOR_TCP_POSITION_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes acknowledged since the connection began, and bytes written but not acknowledged (a FIN of
 * ours not counted). False if fd has no answer. */
bool tcp_position(int fd, uint64_t *ret_acked, uint64_t *ret_unacked);

#endif
