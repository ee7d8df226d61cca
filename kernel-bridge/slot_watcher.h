/* What an engine tells of a slot and of the lines in it, and in which words. Inside kernel-bridge
 * only. Loop thread. */
#ifndef COPPICE_BRIDGE_SLOT_WATCHER_H
#define COPPICE_BRIDGE_SLOT_WATCHER_H

#include "kernel-bridge/bridge.h"

struct slot_files_watcher;

#define ENDPOINT_SIZE 128
struct endpoints {
	char address[CHANNEL_COUNT]
		    [ENDPOINT_SIZE]; /* by enum channel: "ipc:///run/...", "tcp://127.0.0.1:N" */
	char key[65];		     /* signature key, text as the kernel got it */
	/* CURVE (Z85), "" if not encrypted: the kernel is the server; the client uses the same
	 * pair. */
	char curve_public[41];
	char curve_secret[41];
	bool trusted_hwm; /* a kernel of coppice_kernel: no mark on its PUB, 64 on our SUB */
};

struct line_exit {
	bool known; /* false: it is gone and nobody said how */
	int code;   /* exit code, if signal is 0 */
	int signal;
	bool oom;	/* SIGKILL that was not ours and the cgroup's oom_kill count rose */
	char text[256]; /* "" or more detail */
};

/* A park as it was told; a guest's texts, borrowed. The line that it was of may be gone. */
struct slot_parked {
	int64_t park;
	unsigned line;
	const char *kernel_id; /* that the line was started for; "": an older image does not say */
	const char *msg_id;
	struct bytes text;
};

/* Called by the engine, each from the loop, never inside one of the engine's functions. */
struct slot_watcher {
	/* creating -> warm: a line can be started. */
	void (*on_warm)(void *data);
	/* The launch failed or the container went away by itself; the slot must still be removed.
	 */
	void (*on_gone)(void *data, const struct line_exit *exit, const struct err *err);
	/* Answer to start: the process runs and its sockets are bound or about to be. */
	void (*on_started)(void *data, unsigned line, const struct endpoints *endpoints, long pid);
	void (*on_start_failed)(void *data, unsigned line, const struct err *err);
	void (*on_exit)(void *data, unsigned line, const struct line_exit *exit);
	/* A message that the line kept, each frame behind its length; in order of sending. May be
	 * NULL for a watcher that never asks for a replay. */
	void (*on_kept)(void *data, unsigned line, enum channel channel, struct bytes frames);
	/* That was all; lost of them are not there any more, or -1: nobody could be asked. */
	void (*on_kept_end)(void *data, unsigned line, int64_t lost);
	/* Answer to hand_over. NULL for a watcher that never asks. */
	void (*on_handed_over)(void *data, unsigned line);
	/* What the line's kernel says that it learnt of a cell: a text of its own making. NULL for
	 * a watcher that does not want it. */
	void (*on_report)(void *data, unsigned line, const char *msg_id, struct bytes text);
	/* A question of the line's kernel, likewise. */
	void (*on_ask)(void *data, unsigned line, int64_t id, const char *what, const char *about);
	/* What is parked in the slot; what a revived line says of itself. NULL likewise. */
	void (*on_parked)(void *data, const struct slot_parked *parked);
	void (*on_unparked)(void *data, int64_t park, const char *reason);
	void (*on_not_parked)(void *data, unsigned line, const char *msg_id, const char *reason);
	void (*on_revived)(void *data, unsigned line, struct bytes text);
	/* slot_files.h; NULL likewise. */
	const struct slot_files_watcher *files;
	void *data;
};

#endif
