/* One end of `ctl` (docs/PROTOCOL-ctl.md): the gateway's connection with the supervisor in one
 * container. Owns the listener, then the one connection that takes its place. What arrives is
 * untrusted: checked, bounded per wake-up, and closed when too much of it is bad. Loop thread. */
#ifndef COPPICE_BRIDGE_CTL_H
#define COPPICE_BRIDGE_CTL_H

#include "kernel-bridge/ctl_message.h"

struct uv_loop_s;
struct cJSON;
struct log;
struct ctl;

#define CTL_TURN_MAX  32   /* packets read per wake-up */
#define CTL_BAD_MAX   1000 /* malformed packets after which the connection is closed */
#define CTL_QUEUE_MAX 64   /* packets that wait for the supervisor to read */

/* Each from the loop, never inside one of ctl's functions; each may call ctl_close. */
struct ctl_watcher {
	/* hello has come, its version is known, welcome is sent. The listener is closed. */
	void (*on_up)(void *data, long pid, const struct cJSON *hello);
	/* A message after hello, checked against its row; borrowed. Negative: it makes no sense
	 * now; it is answered with `error` and counts as bad. */
	int (*on_message)(
		void *data, enum ctl_type type, const struct cJSON *message, struct err *err);
	/* The connection has ended; once. E_UNAVAILABLE: the supervisor closed it; E_PROTOCOL: it
	 * broke the protocol. ctl must still be closed. */
	void (*on_down)(void *data, const struct err *err);
	/* All that waited was sent, after something had to wait. May be NULL. */
	void (*on_room)(void *data);
	void *data;
};

/* Waits on listen_fd for the first connection, which is the supervisor's. Takes listen_fd over,
 * also on failure. log is borrowed for ctl's life. */
int ctl_open(struct uv_loop_s *loop, const struct log *log, int listen_fd,
	const struct ctl_watcher *watcher, struct ctl **ret, struct err *err);
/* Only the process of that id is the supervisor: an earlier gateway knew it. */
void ctl_expect(struct ctl *c, long pid);
/* How many parks the supervisor is told to keep at most; 0: none. */
void ctl_park(struct ctl *c, int64_t max);
/* The supervisor is told that the gateway takes what it tells of files. */
void ctl_take_files(struct ctl *c, bool takes);
/* Before it connects: the lay of that id is part of the state that its line has. What else an
 * earlier gateway left ready is put back. */
void ctl_keep_lay(struct ctl *c, const char *id);
/* Connected, and nothing waits: for who has much to send. */
bool ctl_has_room(const struct ctl *c);
/* The watcher hears nothing more. */
void ctl_close(struct ctl *c, void (*closed)(void *data), void *data);
/* Sends a message (ctl_message_new and its fields; taken over) with descriptors, which are closed
 * on our side in any case. E_UNAVAILABLE: not connected, or too much waits. */
int ctl_send(struct ctl *c, struct cJSON *message, const int *fds, size_t n_fds, struct err *err);

#endif
