/* A connection to a ZeroMQ socket on a unix socket, spoken to by ourselves: for the kernels in our
 * containers. libzmq would read it in a thread of its own and wake the loop for each message, which
 * costs more than all else (docs/decisions/0008). Connects again by itself. What is not read stays
 * in the kernel. Inside channel_socket.c only. Loop thread. */
#ifndef COPPICE_BRIDGE_CHANNEL_PIPE_H
#define COPPICE_BRIDGE_CHANNEL_PIPE_H

#include <uv.h>

#include "gateway/base/base.h"
#include "gateway/base/err.h"

struct pipe;

struct pipe_open {
	uv_loop_t *loop;
	bool subscribes;	/* a SUB, for all topics; else a DEALER */
	const char *routing_id; /* or NULL */
	uint64_t frame_max;	/* bytes; 0: no limit */
	/* Where what one reads into lies while none reads, shared by pipes, the caller's to free;
	 * or NULL: each time a fresh one. */
	uint8_t **spare;
	/* There may be something to read, an event, or the end. From the loop. */
	void (*on_change)(void *data);
	void *data;
};

/* Watched, not yet connected. */
struct pipe *pipe_new(const struct pipe_open *open);
/* "ipc:///...". Whether somebody listens there yet does not matter. E_INVALID. */
int pipe_connect(struct pipe *p, const char *address, struct err *err);
/* No callback but closed follows, from the loop. Frames that were received live until then. */
void pipe_close(struct pipe *p, void (*closed)(void *data), void *data);
void pipe_watch(struct pipe *p, bool on);

/* False: no message waits. frames are borrowed until the next call; *ret_n 0: a message had too
 * many parts or bytes and was dropped. */
bool pipe_receive(struct pipe *p, struct bytes *frames, size_t frames_max, size_t *ret_n);
/* Copies; what cannot go yet waits. E_NOMEM, E_GONE: nothing was sent. */
int pipe_send(struct pipe *p, const struct bytes *frames, size_t n, struct err *err);
/* Connected, and no part of a message has been read. */
bool pipe_is_between(const struct pipe *p);
/* The peer sent a frame over the limit or no ZMTP: it was hung up on for good. */
bool pipe_is_broken(const struct pipe *p);
/* True if the connection came up or went down since the last call. */
bool pipe_changed(struct pipe *p, bool *ret_up);

#endif
