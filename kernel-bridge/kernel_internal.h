/* What the files of one kernel share. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_INTERNAL_H
#define COPPICE_BRIDGE_KERNEL_INTERNAL_H

#include "kernel-bridge/bridge_internal.h"
#include "kernel-bridge/channel.h"
#include "kernel-bridge/wire.h"

#define LINES_KEPT	8  /* what is told of their folder may come after their end */
#define ROUTING_ID_SIZE 33 /* 32 hex digits; longer ones cost libzmq an allocation each */

/* Whether it was taken over from an earlier gateway and what it kept is still to come. */
enum kernel_adoption { ADOPT_NO, ADOPT_WAITS, ADOPT_REPLAYS };

/* A kernel that was started before it was asked for: what keeps its owner from it still. */
enum kernel_handing { HAND_NO, HAND_WAITS, HAND_ASKED };

/* What the end of the present line is for; set by kernel_restart and kernel_end. */
enum kernel_wish { WISH_RUN, WISH_RESTART, WISH_END };

struct kernel {
	struct bridge *bridge;
	struct sm sm;
	struct list link; /* in bridge->kernels[state] */
	struct log log;
	char id[UUID_SIZE];
	char *owner;
	const struct kernelspec *spec;
	struct cJSON *env;
	struct kernel_watcher watcher;
	enum kernel_wish wish;

	struct kernel_place *place; /* kernel_place.c: where its lines are, or NULL */
	struct list beside;	    /* in place->kernels */
	uint64_t n_place;	    /* place->number, also when it has left it */
	unsigned lines[LINES_KEPT]; /* the last that were its own there, as a ring */
	char *folder;		    /* its working folder there; "": the usual one */
	bool slot_gone;		    /* it went away by itself, or is of no use, and is to be left */
	size_t n_removing;	    /* slots that the engine is removing */

	unsigned line;		 /* the one that is the kernel */
	bool alive;		 /* line was asked for and is not known to have ended */
	struct revival *revival; /* a line that is to take its place, or NULL */
	struct ending *ending;	 /* kernel_limit.c: its line is killed, or NULL */
	struct laying *laying;	 /* kernel_files.c: of its folder, or NULL */
	char lay[UUID_SIZE];	 /* the last one that is part of its line's state, or "" */
	long pid;
	char key[SIGN_KEY_SIZE], routing_id[ROUTING_ID_SIZE];
	struct sign sign;
	struct channels *channels; /* from started to dead */
	struct endpoints endpoints;
	struct jmsg *reply; /* kernel_info_reply, until ready */
	bool heard;	    /* something came on iopub */
	bool stdin_up;	    /* connected, or not waited for */
	bool ready;	    /* of the line whose channels are open */
	uint64_t nudge_ms;
	unsigned n_nudges, n_lines;
	struct timer start_timer, nudge_timer, stdin_timer, launch_timer;
	struct list launch_link; /* in bridge->launches while it waits for its turn */
	bool launching;

	struct list kept; /* messages that wait for readiness, or for an interrupt to be over */
	size_t kept_bytes;
	bool held, delivered;

	enum kernel_adoption adoption;
	char *after[CHANNEL_HB];
	struct list replayed, live; /* of struct kept: what waits for the end of the replay */
	size_t live_bytes, replayed_bytes;
	uint64_t *seen; /* sorted hashes of what was replayed: it may come live too */
	size_t n_seen;
	uint64_t seen_until_ms;
	char asker[40]; /* session of the bridge's own requests */

	bool unowned;	   /* kernel_pool.c: nobody has asked for it yet */
	struct jmsg *info; /* its kernel_info_reply meanwhile */
	unsigned handed;   /* the line that was begun unowned and is not any more; 0: none */
	enum kernel_handing handing;

	bool signalled, dying; /* dying: it ended; what it sent before is still being read */
	struct kernel_death death;
	uint64_t dying_until_ms;
	struct timer quiet_timer, beat_timer, fail_timer;
	unsigned missed_beats;

	struct timer interrupt_timer, gate_timer;
	struct list restarts; /* who waits for kernel_restart */
	bool killed;	      /* the step after being polite */
	struct timer step_timer, deadline_timer, free_timer;
	void (*ended)(void *data);
	void *ended_data;

	uint64_t bad_frames, sent, received, lost, lost_told_ms;
};

static inline struct clock *kernel_clock(const struct kernel *k)
{
	return k->bridge->env.clock;
}

static inline bool kernel_is(const struct kernel *k, enum kernel_state state)
{
	return k->sm.state == (unsigned)state;
}

struct kept {
	struct list link;
	struct jmsg *m;
};

/* kernel.c */
struct kernel *kernel_new(struct bridge *b, const struct kernel_start *start, struct cJSON *env,
	const struct kernel_watcher *watcher);
/* E_CAPACITY: there are as many as there may be. */
int kernel_may_start(const struct bridge *b, struct err *err);
int kernel_copy_env(const struct cJSON *env, struct cJSON **ret, struct err *err);
void kernel_set_state(struct kernel *k, enum kernel_state state);
/* Begins a line, in a new slot if there is none that is warm. What fails, fails later. */
void kernel_begin(struct kernel *k);
void kernel_drop_slot(struct kernel *k);
void kernel_free(struct kernel *k);
/* A request of the bridge itself; its answers stay here. */
int kernel_ask(struct kernel *k, enum channel channel, const char *msg_type, const char *content,
	struct err *err);
void kernel_flush_kept(struct kernel *k);
void kernel_drop_kept(struct kernel *k);
void kernel_notice(struct kernel *k, const char *format, ...) PRINTF(2, 3);
/* Calls cb from the loop; err may be NULL. Does not need the kernel any more. */
void kernel_answer_later(struct clock *clock, void (*cb)(void *data, const struct err *err),
	void *data, const struct err *err);

/* kernel_ready.c */
void kernel_ready_init(struct kernel *k);
int kernel_connect(struct kernel *k, const struct endpoints *endpoints, struct err *err);
void kernel_disconnect(struct kernel *k);
void kernel_listen(struct kernel *k); /* to k->channels, whoever opened them */
void kernel_become_ready(struct kernel *k);

/* kernel_death.c */
void kernel_death_init(struct kernel *k);
void kernel_on_gone(void *data, const struct line_exit *exit, const struct err *err);
void kernel_on_exit(void *data, unsigned line, const struct line_exit *exit);
/* The line did not come to be ready; from the loop. */
void kernel_fail(struct kernel *k, const char *why);
void kernel_fail_later(struct kernel *k, const char *why); /* from within a call */
/* The line is dead: its last output, then the watcher is told. */
void kernel_dies(struct kernel *k, const struct kernel_death *death);
void kernel_death_cancel(struct kernel *k); /* of one that was not told yet */
/* While dying: something was read. */
void kernel_death_postpone(struct kernel *k);

/* kernel_end.c */
void kernel_end_init(struct kernel *k);
/* err may be NULL; at once, so from the loop only. */
void kernel_answer_restarts(struct kernel *k, const struct err *err);
/* The line or the slot of a kernel that was to restart or end is gone. */
void kernel_wish_next(struct kernel *k);
void kernel_on_removed(void *data);

#endif
