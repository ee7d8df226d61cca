/* kernel-bridge's public header: kernels as things one can start, send to, interrupt, restart and
 * end, whichever engine runs them. Everything on the loop thread. Callbacks fire from the loop,
 * each `cb` exactly once and never inside the call that set it up. */
#ifndef COPPICE_BRIDGE_H
#define COPPICE_BRIDGE_H

#include "gateway/base/base.h"
#include "gateway/base/clock.h"
#include "gateway/base/config.h"
#include "gateway/base/err.h"
#include "gateway/base/jmsg.h"
#include "gateway/base/log.h"
#include "gateway/base/sm.h"

struct uv_loop_s;
struct cJSON;
struct bridge;
struct kernel;

struct bridge_env {
	struct uv_loop_s *loop;
	struct clock *clock;
	const struct config *config; /* borrowed for the bridge's life */
	const struct log *log;
};

/* Engines that do not answer are no error here: starts say so (E_ENGINE, E_ENGINE_DOWN). */
int bridge_open(const struct bridge_env *env, struct bridge **ret, struct err *err);
/* Removes what an earlier gateway of the same run_dir left. Once; cb also without an engine. */
void bridge_sweep(struct bridge *b, void (*cb)(void *data), void *data);
/* All kernels must have been ended before; what the engines still remove of them is waited for. */
void bridge_close(struct bridge *b, void (*cb)(void *data), void *data);
/* Engine name -> {version, api, cgroup, live_restore, isolates:bool, warnings:[...]} as far as
 * known, for status and doctor; caller owns the tree. */
struct cJSON *bridge_report(const struct bridge *b);

/* ---- kernelspecs: names as clients see them ---- */
enum interrupt_mode { INTERRUPT_MESSAGE, INTERRUPT_SIGNAL };

struct kernelspec {
	const char *name;
	const char *engine; /* "docker", "process" */
	struct cJSON *spec; /* {argv, display_name, language, env, interrupt_mode, metadata} */
	const char *resource_dir; /* folder of logo-64x64.png ...; NULL if none */
	enum interrupt_mode interrupt_mode;
	int64_t cull_idle_ms; /* metadata.cull_idle_timeout (seconds), or -1 */
	struct list link;
};

/* Alias "python" -> "python3". NULL if there is none. Empty or NULL name: the default. */
const struct kernelspec *bridge_spec(const struct bridge *b, const char *name);
const char *bridge_default_spec(const struct bridge *b);
const struct list *bridge_specs(const struct bridge *b); /* of struct kernelspec by link */

/* ---- kernels: the picture is kernel.c's ---- */
enum kernel_state { KERNEL_STARTING, KERNEL_IDLE, KERNEL_BUSY, KERNEL_DEAD, KERNEL_STATES };

struct kernel_start {
	const char *id;	   /* uuid; NULL: nobody's yet, see kernel_hand_over */
	const char *owner; /* token name */
	const struct kernelspec *spec;
	const struct cJSON *env; /* object of strings, or NULL: checked by bridge (see below) */
	const char *folder;	 /* it works in; NULL or "": the usual one */
};
/* Env names that count are [A-Za-z_][A-Za-z0-9_]*. Values are strings of at most 4096 bytes without
 * NUL; all together at most 32 KiB, else E_INVALID. */

struct kernel_death {
	enum { DEATH_EXIT, DEATH_SIGNAL, DEATH_OOM, DEATH_GONE, DEATH_START, DEATH_UNKNOWN } cause;
	int code;	/* exit code or signal number */
	char text[256]; /* a sentence for people: "the kernel ended with exit code 3" */
};

/* Who watches one kernel (the spine). */
struct kernel_watcher {
	/* starting -> idle, after start and each restart: the kernel answers and its iopub works.
	 * reply: its kernel_info_reply, borrowed. */
	void (*on_ready)(void *data, const struct jmsg *reply);
	/* One message of the kernel, validated, mended where needed, signature checked; borrowed
	 * (jmsg_ref to keep). Order within a channel is kept; iopub comes before shell when both
	 * wait. Answers to the bridge's own requests never come here. */
	void (*on_message)(void *data, struct jmsg *m);
	/* This wake-up's messages are all delivered. */
	void (*on_turn)(void *data);
	/* -> dead, channels closed. Not for one that kernel_end or kernel_restart wanted. */
	void (*on_death)(void *data, const struct kernel_death *death);
	/* Something people should read: a message that was too large, say. Once per cause. */
	void (*on_notice)(void *data, const char *text);
	/* kernel_record is another now, before the line begins, also within a call. Or NULL. */
	void (*on_record)(void *data);
	/* What a kernel of ours learnt of msg_id after its idle: a guest's text, at most 64 KiB,
	 * borrowed. May be NULL. */
	void (*on_report)(void *data, const char *msg_id, struct bytes text);
	/* A magic asks, by number: kernel_answer. Guest's texts likewise. May be NULL. */
	void (*on_ask)(void *data, int64_t id, const char *what, const char *about);
	/* The kernel can be begun anew where it stood after msg_id; text tells of it (`parked` in
	 * docs/PROTOCOL-ctl.md): a guest's. Maybe again. These three may be NULL. */
	void (*on_parked)(void *data, const char *msg_id, int64_t park, struct bytes text);
	/* Not any more; also within a call. */
	void (*on_unparked)(void *data, int64_t park, const char *reason);
	/* It will not be after that execution. */
	void (*on_not_parked)(void *data, const char *msg_id, const char *reason);
	/* What changed in its folder, and a content that was wanted: kernel_files.h. Or NULL. */
	void (*on_files)(void *data, const char *msg_id, struct bytes change);
	void (*on_content)(void *data, const char *name, struct bytes bytes);
	void *data;
};

/* Reserves the slot at once; returns in state starting; readiness or death comes by callback.
 * E_INVALID env, E_CAPACITY limit of kernels reached. */
int kernel_start(struct bridge *b, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err);
/* Signs and sends m on m->channel (shell, control, stdin). Kept while starting. E_DEAD. */
int kernel_send(struct kernel *k, const struct jmsg *m, struct err *err);
/* What the kernel sent there up to this message is kept for good: it may forget it. */
void kernel_written(struct kernel *k, enum channel channel, const char *msg_id);
/* To a question of on_ask: "ok" with JSON, or a word with a sentence. A late one is dropped. */
void kernel_answer(struct kernel *k, int64_t id, const char *status, struct bytes text);
/* Stops or resumes reading from the kernel (back pressure: what waits then waits in the guest). */
void kernel_hold(struct kernel *k, bool hold);
/* By the kernelspec's mode: control message, SIGINT by the supervisor 2 s later if it is still
 * busy, notice 5 s after that. cb once it was sent (or could not be: err). */
void kernel_interrupt(struct kernel *k, void (*cb)(void *data, const struct err *err), void *data);
/* A new kernel under the same id in the same container; from dead too. cb (err NULL) when the new
 * process was started or failed to; on_ready follows. Requests in flight are the watcher's. */
void kernel_restart(struct kernel *k, void (*cb)(void *data, const struct err *err), void *data);
/* Polite shutdown_request, kill of everything that is left, container removed; within 5 s. The
 * watcher hears nothing more. k is freed after cb. */
void kernel_end(struct kernel *k, void (*cb)(void *data), void *data);

/* ---- before anybody asks: a kernel without id is nobody's, its watcher hears no messages ----
 * Whether one of that spec may serve a request with that env. */
bool bridge_fits(struct bridge *b, const struct kernelspec *spec, const struct cJSON *env);
/* It is start's now, in state starting, as after kernel_start; the old watcher hears nothing more.
 * One that dies on the way is replaced. E_GONE: it is dead; E_INVALID env: still nobody's. */
int kernel_hand_over(struct kernel *k, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct err *err);
const struct cJSON *kernel_env(const struct kernel *k);
const char *kernel_folder(const struct kernel *k); /* "": the usual one */
/* False: its container is gone, and a restart needs another. */
bool kernel_has_place(const struct kernel *k);

enum kernel_state kernel_state(const struct kernel *k);
/* Mover for the watcher: idle <-> busy by tracked status messages; other edges are the bridge's. */
void kernel_set_busy(struct kernel *k, bool busy);
const struct kernelspec *kernel_spec(const struct kernel *k);
#define ENVIRONMENT_SIZE 80
/* What its code runs in: "sha256:..." of the image, or "process:..." of interpreter and kernelspec;
 * "" while it is not known. Borrowed until the kernel's next start. */
const char *kernel_environment(const struct kernel *k);
/* {slot, container, pid, line, bad_frames, sent, received, ...} for admin; caller owns. */
struct cJSON *kernel_report(const struct kernel *k);

/* Parts of it that stand by themselves, and need what is above. */
#include "kernel-bridge/kernel_files.h"
#include "kernel-bridge/limits.h"
#include "kernel-bridge/parks.h"
#include "kernel-bridge/survival.h"

#endif
