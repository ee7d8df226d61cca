/* What socket.c, socket_in.c and socket_out.c share. */
#ifndef COPPICE_DOOR_SOCKET_PARTS_H
#define COPPICE_DOOR_SOCKET_PARTS_H

#include "gateway/door/socket.h"

/* Forgets the message that is half received. */
void socket_in_done(struct socket *s);
/* Tells the spine what the peer has, and lets the client go. */
void socket_detach(struct socket *s);
void socket_drop_outgoing(struct socket *s);
/* Takes e over, to be sent before what the journal holds; e NULL is nothing. False: too many. */
bool socket_notice(struct socket *s, struct entry *e);
/* What header.session our own messages carry. */
const char *socket_session(const struct socket *s);

/* Ties our count of bytes to TCP's: libwebsockets answers pings without telling. */
void socket_base(struct socket *s);
/* Bytes of ours at the stream's end that the peer may not have; never too few. */
uint64_t socket_unacked(const struct socket *s);
/* Number of the oldest journal entry of which that is so; 0: there is none. */
uint64_t socket_first_undelivered(struct socket *s);

#endif
