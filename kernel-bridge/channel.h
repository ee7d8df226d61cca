/* The sockets of one line (shell, control, stdin, iopub, a heartbeat on demand)
 * and the hub that lets all lines take turns. A set owns its sockets and outlives no line. What
 * libzmq gives up on is made again by itself. Loop thread; callbacks only from the loop. */
#ifndef COPPICE_BRIDGE_CHANNEL_H
#define COPPICE_BRIDGE_CHANNEL_H

#include "kernel-bridge/engine.h"

struct channel_hub;
struct channels;

/* max_sockets is cut to what libzmq allows. */
int channel_hub_new(struct uv_loop_s *loop, struct clock *clock, int64_t max_sockets,
	struct channel_hub **ret, struct err *err);
/* Every set must be closed before. cb from the loop, once; the hub is freed before it. */
void channel_hub_close(struct channel_hub *hub, void (*cb)(void *data), void *data);

/* Each may close the set. */
struct channels_watcher {
	/* One message; frames are borrowed for the call. n is 0 for one that had too many parts or
	 * bytes and was dropped. Within a turn iopub comes before stdin, shell, control. */
	void (*on_frames)(void *data, enum channel channel, const struct bytes *frames, size_t n);
	/* What could be read in this turn was read. */
	void (*on_turn)(void *data);
	/* libzmq gave the connection up (a frame over the limit, or no ZMTP); it was made anew. */
	void (*on_lost)(void *data, enum channel channel);
	/* The connection of iopub came up or went down; or that of stdin came up. */
	void (*on_link)(void *data, enum channel channel, bool up);
	void *data;
};

struct channels_open {
	const struct endpoints *endpoints;
	const char *routing_id;	   /* equal on shell, control and stdin: else stdin gets nothing */
	int64_t max_message_bytes; /* a frame; 0: no limit */
};

int channels_open(struct channel_hub *hub, const struct channels_open *open,
	const struct channels_watcher *watcher, struct channels **ret, struct err *err);
/* Somebody else is told from now on. */
void channels_watch(struct channels *set, const struct channels_watcher *watcher);
/* No callback follows. The set frees itself. */
void channels_close(struct channels *set);
/* Frames are copied. E_NOMEM, E_GONE, E_IO: nothing was sent. */
int channels_send(struct channels *set, enum channel channel, const struct bytes *frames, size_t n,
	struct err *err);
/* Sends a heartbeat, making its socket at the first; the echo comes as frames of CHANNEL_HB. */
int channels_beat(struct channels *set, struct err *err);
/* Stops or resumes reading iopub, and only iopub. */
void channels_hold(struct channels *set, bool hold);
/* The line has exited: what is there is still read, nothing is connected anew. */
void channels_settle(struct channels *set);

/* A new CURVE key pair (Z85). E_UNAVAILABLE if libzmq was built without CURVE. */
int channel_curve_pair(char ret_public[41], char ret_secret[41]);

#endif
