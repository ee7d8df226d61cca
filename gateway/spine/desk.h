/* Inside of the spine: one kernel as clients know it. Owned by struct kernels; lives until its
 * kernel has ended and no client's socket is on it. Loop thread.
 *
 *   client -> relay -> queue -> execution -> kernel_send        kernel -> desk -> relay -> journal
 */
#ifndef COPPICE_SPINE_DESK_H
#define COPPICE_SPINE_DESK_H

#include "gateway/base/crypto.h"
#include "gateway/spine/acks.h"
#include "gateway/spine/cost.h"
#include "gateway/spine/execution.h"
#include "gateway/spine/files.h"
#include "gateway/spine/journal.h"
#include "gateway/spine/kernels.h"
#include "gateway/spine/parks.h"
#include "gateway/spine/past.h"
#include "gateway/spine/pool.h"
#include "gateway/spine/queue.h"
#include "gateway/spine/relay.h"
#include "gateway/spine/request.h"
#include "gateway/spine/scribe.h"
#include "gateway/spine/waiting.h"

struct waiter {
	struct list link;
	void (*cb)(void *data, const struct err *err);
	void *data;
};

struct desk {
	struct list link;  /* kernels.desks: listed */
	UT_hash_handle hh; /* kernels.by_id: listed */
	struct kernels *kernels;
	struct gateway *gw;
	const struct owner *owner;
	struct kernel *kernel; /* NULL before its start and after its end */
	struct journal *journal;
	struct requests requests;
	struct queue queue;
	struct acks acks;
	struct scribe scribe;
	struct files files;
	struct magic *magic; /* a question of the kernel's that is not answered yet, or NULL */
	struct move *move;   /* on the way to another node, or NULL */
	struct look *look;   /* what history is asked after an adoption, or NULL */
	struct limit *limit; /* a cell whose time is up, or NULL */
	struct timer limit_timer;
	char stands[JMSG_ID_MAX]; /* msg_id of the execution whose state it is in; "": not known */
	struct filed *filed; /* a move that a cell asked for and that waits for its end, or NULL */
	struct parks parks;
	struct live *live;   /* NULL: it could not be made */
	struct past *past;   /* of an adopted kernel */
	struct list clients; /* attached and gone, oldest first */
	uint64_t last_client;
	struct list executions;
	unsigned n_executions;
	struct jmsg *info; /* the kept kernel_info_reply */
	char id[UUID_SIZE];
	char *name, *path;
	char session[JMSG_ID_MAX]; /* the kernel's last seen header.session */
	int64_t last_activity_us;
	uint64_t activity_ms;
	char reason[320]; /* why it is dead */
	bool open;	  /* the kernel takes shell messages: from ready to death or restart */
	bool was_ready, dead, ending, held;
	bool from_pool, adopting; /* ready when it was taken; an earlier gateway's, not heard yet */
	struct repeats repeats;
	bool leaving;	/* it lives on without us: its files stay */
	bool unborn;	/* branches.c: nobody knows of it yet, nor is it written down */
	bool branching; /* a cell asked for a branch and has no answer yet */
	bool asked;	/* something was sent to the kernel since it was ready */
	uint64_t ready_ms;
	uint64_t epoch;	    /* of the kernel's process; grows with each */
	struct stand_at at; /* where that began */
	struct {
		bool known;
		struct kernel_death how;
	} death;		       /* the last one */
	unsigned deaths;	       /* in a row */
	uint64_t exit_ms, shutdown_ms; /* when it was announced; 0: it was not */
	bool shutdown_restarts;
	bool others_untold; /* of a restart that somebody asked for */
	struct timer restart_timer;
	struct timer exit_timer; /* runs while an announced exit is waited for */
	struct list waiters;	 /* of a restart on its way */
	void (*ended)(void *data);
	void *ended_data;
	struct log log;
};

struct kernels {
	struct gateway *gw;
	struct desk *by_id;
	struct list desks, unlisted; /* unlisted: on their way out */
	size_t n_unrecorded;	     /* executions that history does not have yet */
	size_t files_bytes;	     /* of contents that are on their way into history */
	size_t n_alive;		     /* desks that are not freed yet, listed or not */
	struct spine_counters count;
	struct pool *pool;
	struct waiting waiting; /* for a place */
	struct list branchings; /* branches.c: branches on their way */
	struct timer janitor;
	struct timer end_timer;
	struct kernels_watch watch;
	void (*ended)(void *data);
	void *ended_data;
};

/* n_alive is raised already. On failure it falls again once the desk is freed, from the loop. */
int desk_new(struct kernels *ks, const struct kernels_start *start, const char *id,
	const struct kernelspec *spec, struct desk **ret, struct err *err);
/* The same for a kernel that an earlier gateway had; the kernel is the caller's to set. */
int desk_restore(struct kernels *ks, const struct kernels_start *start, const char *id,
	const struct kernelspec *spec, struct desk **ret, struct err *err);
/* Another process is behind it from now on: what it runs does not follow on what was. */
void desk_new_epoch(struct desk *d);
/* What follows its death, which was told: a restart, or the end. */
void desk_after_death(struct desk *d);
/* The kernel was ended by us and nothing brings its state back: a fresh process takes its place,
 * whatever `auto_restart` says. */
void desk_begin_anew(struct desk *d);
/* Between desk.c and desk_death.c. Of these desk_die: it stays listed, with its reason. */
void desk_died(void *data, const struct kernel_death *death);
void desk_die(struct desk *d, const char *reason);
void desk_start_again(struct desk *d);
void desk_tell_restart(struct desk *d);
void desk_tell_waiters(struct desk *d, const struct err *err);
/* Takes messages again, if it can. */
void desk_open(struct desk *d);
/* Carries out what the earlier gateway had begun: the kernel that was taken over is restarted. */
void desk_restart_on(struct desk *d);
struct kernel_watcher desk_watcher(struct desk *d);
/* Appends for clients and tells them. False: out of memory, those clients were closed. */
bool desk_post(struct desk *d, struct jmsg *m, uint64_t to, uint64_t *ret_number);
/* "starting", "idle", "busy" or "dead". */
const char *desk_state(const struct desk *d);
bool desk_is_busy(const struct desk *d);
void desk_set_busy(struct desk *d, bool busy);
void desk_touch(struct desk *d);
/* A client's shutdown_request goes to the kernel: its death is expected. */
void desk_shutdown_asked(struct desk *d, bool restarts);
/* User code ends the kernel: what comes now waits for the next one, or until it proves to stay. */
void desk_exit_asked(struct desk *d);
/* The gateway ends and the desk's files stay for the next one. left: so does the kernel, which is
 * the bridge's no more; else it is ended. */
void desk_leave(struct desk *d, bool left);
/* Frees it if nothing holds it any more. */
void desk_release(struct desk *d);
void kernels_list_desk(struct desk *d);
bool kernels_is_id(const char *text);
size_t kernels_places(const struct kernels *ks); /* how many kernels there may be */
/* E_CAPACITY; else n_alive is raised. */
int kernels_reserve(struct kernels *ks, struct err *err);
void kernels_unlist(struct desk *d);
void kernels_freed(struct kernels *ks);

#include "gateway/spine/clients.h"

#endif
