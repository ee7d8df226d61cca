/* The seam between kernels and what runs them. A slot is a place for kernels (a container, or for
 * the engine `process` nothing but a row, with one kernel); a line is one kernel process in it,
 * numbered from 1, a restart being a new line; several live at a time. Inside kernel-bridge only.
 * Loop thread; every effect goes through this table, so that tests put a fake in its place. */
#ifndef COPPICE_BRIDGE_ENGINE_H
#define COPPICE_BRIDGE_ENGINE_H

#include "kernel-bridge/slot_watcher.h"

struct engine;
struct slot;
struct slot_files_ops;

struct line_start {
	unsigned line;
	const char *kernel_id; /* "": nobody has it yet */
	const struct kernelspec *spec;
	const struct cJSON *env;
	const char *key;
	const char *folder; /* it works in; "": the usual one */
};

/* A slot that an earlier gateway had, with the line that ran in it (0: none yet). */
struct slot_adopt {
	const struct cJSON *row; /* as slot_row gave it */
	unsigned line;
	const char *key;
	const char *lay; /* that is part of the line's state; "": none */
};

struct engine_ops {
	/* Reserves and begins; on_warm or on_gone follows. spec decides image and limits. */
	int (*launch)(struct engine *e, const struct kernelspec *spec, const char *owner,
		const struct slot_watcher *watcher, struct slot **ret, struct err *err);
	/* on_started or on_start_failed follows. */
	int (*start)(struct slot *s, const struct line_start *start, struct err *err);
	/* Sends a signal to the line's kernel. Best effort: E_UNAVAILABLE if it cannot be sent. */
	int (*signal)(struct slot *s, unsigned line, int signo, struct err *err);
	/* Kills everything of that line (SIGKILL, double forks too); on_exit follows. */
	int (*kill_line)(struct slot *s, unsigned line, struct err *err);
	/* Whether anything of a line that ended is left, seen from outside. 1: nothing can be; 0:
	 * cb follows, left NULL or what it is. NULL: it cannot look, and need not. */
	int (*look)(struct slot *s, unsigned line, void (*cb)(void *data, const struct err *left),
		void *data, struct err *err);
	/* The line's kernel may forget what it sent up to msg_id. NULL: it keeps nothing. */
	void (*ack)(struct slot *s, unsigned line, enum channel channel, const char *msg_id);
	/* To on_ask. Best effort; NULL: nobody asks. */
	void (*answer)(
		struct slot *s, unsigned line, int64_t id, const char *status, struct bytes text);
	/* Kill and remove the container; cb exactly once, s is freed after it; the watcher hears
	 * nothing from this call on. */
	void (*remove)(struct slot *s, void (*cb)(void *data), void *data);
	/* These five are NULL for an engine whose kernels end with the gateway.
	 * adopt: on_warm follows, then on_started if the line lives, else on_exit; or on_gone. */
	int (*adopt)(struct engine *e, const struct kernelspec *spec,
		const struct slot_adopt *adopt, const struct slot_watcher *watcher,
		struct slot **ret, struct err *err);
	/* Another line of a slot that is being adopted, within the same turn. */
	int (*adopt_line)(struct slot *s, const struct slot_adopt *adopt, struct err *err);
	/* What adopt needs; NULL: this slot cannot be left. Its `slot` names it. */
	struct cJSON *(*slot_row)(const struct slot *s);
	/* Lets go of a slot, which lives on; s is freed. */
	void (*leave)(struct slot *s);
	/* on_kept and on_kept_end follow. after: a msg_id per channel, or "". */
	int (*replay)(
		struct slot *s, unsigned line, char *const after[CHANNEL_HB], struct err *err);
	/* These three are NULL for an engine whose kernels cannot wait for an owner.
	 * fits: a kernel of that spec may have been started before it was asked for with env. */
	bool (*fits)(struct engine *e, const struct kernelspec *spec, const struct cJSON *env);
	/* Of a slot that is warm: E_UNAVAILABLE with the reason why it cannot be handed over. */
	int (*can_hand_over)(struct slot *s, struct err *err);
	/* A line that was started without kernel_id becomes that kernel: on_handed_over, or
	 * on_exit, follows. Twice does no harm. */
	int (*hand_over)(struct slot *s, const struct line_start *start, struct err *err);
	/* These four are NULL for an engine that parks nothing.
	 * A line is begun from a park: on_started or on_start_failed follows, then on_revived. */
	int (*revive)(
		struct slot *s, const struct line_start *start, int64_t park, struct err *err);
	/* Best effort; on_unparked follows. */
	void (*release)(struct slot *s, int64_t park);
	/* Working files; NULL for an engine that knows none. */
	const struct slot_files_ops *files;
	/* Of a slot that is warm: E_UNAVAILABLE, several kernels cannot be told apart in it. */
	int (*can_branch)(struct slot *s, struct err *err);
	/* A folder of line_start's that no line works in any more goes. Best effort. */
	void (*drop_folder)(struct slot *s, const char *folder);
	/* CPU limit and the like, set when a kernel is ready (unlimited while starting). */
	void (*limit)(struct slot *s);
	/* Removes what an earlier gateway left. */
	void (*sweep)(struct engine *e, void (*cb)(void *data), void *data);
	/* What kernel_environment says; NULL: nothing. */
	const char *(*environment)(const struct slot *s);
	struct cJSON *(*report)(const struct engine *e);
	struct cJSON *(*slot_report)(const struct slot *s);
	/* Adds the engine's kernelspecs (list of struct kernelspec by link, owned by the list). */
	int (*specs)(struct engine *e, struct list *specs, struct err *err);
	void (*close)(struct engine *e, void (*cb)(void *data), void *data);
};

struct engine {
	const struct engine_ops *ops;
	const char *name;
};

/* First member of each engine's slot struct. */
struct slot {
	struct engine *engine;
	struct slot_watcher watcher;
	struct sm sm; /* slot machine: see slot.h */
	struct list link;
};

int engine_docker_open(const struct bridge_env *env, struct engine **ret, struct err *err);
int engine_process_open(const struct bridge_env *env, struct engine **ret, struct err *err);

#endif
