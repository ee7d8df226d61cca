/* The way to a kernel's WebSocket: who may open one, with which framing. Decided before the
 * upgrade, so that a client sees a status code. */
#ifndef COPPICE_DOOR_CHANNELS_H
#define COPPICE_DOOR_CHANNELS_H

#include "gateway/door/call.h"
#include "gateway/door/socket.h"

#define V1_PROTOCOL "v1.kernel.websocket.jupyter.org"

/* Fills desk, session_id (borrowed from r), framing and traits. E_NOT_FOUND: not a channels URL, no
 * such kernel or another owner's; E_UNAUTHORIZED, E_FORBIDDEN; E_INVALID: no subprotocol that we
 * speak was offered. */
int channels_admit(struct call *r, struct socket_setup *ret, struct err *err);

#endif
