/* Takes the place of kernel-bridge: every function of bridge.h over memory, a kernel being what a
 * test makes it say. Deferred callbacks fire in fake_bridge_run. */
#ifndef COPPICE_FAKE_BRIDGE_H
#define COPPICE_FAKE_BRIDGE_H

#include "kernel-bridge/bridge.h"

/* Fails the nth call that can fail (kernel_send, kernel_start, kernel_restart, kernel_interrupt).
 */
struct fault {
	unsigned nth, seen;
	bool fired;
};

/* False once a whole run met no fault. nth counts from 1. */
bool fault_arm(struct fault *f, unsigned nth);

struct bridge *fake_bridge_new(struct clock *clock);
/* Every kernel must have ended. */
void fake_bridge_free(struct bridge *b);
struct fault *fake_bridge_fault(struct bridge *b);
/* Fires what is deferred, until nothing is. */
void fake_bridge_run(struct bridge *b);
size_t fake_bridge_kernels(const struct bridge *b);
/* The nth kernel that lives, oldest first; NULL if there are fewer. */
struct kernel *fake_kernel(struct bridge *b, size_t nth);
struct kernelspec *fake_bridge_spec(struct bridge *b);
/* Its kernels have a record, and whatever has one is adopted: as a kernel that starts. */
void fake_bridge_survive(struct bridge *b);
/* They live on without a gateway. */
void fake_bridge_leave(struct bridge *b);

void fake_kernel_ready(struct kernel *k);
/* One message; parent may be NULL. Its turn is not over: fake_kernel_turn. */
void fake_kernel_say(struct kernel *k, enum channel channel, const char *type,
	const struct jmsg *parent, const char *content);
/* Likewise; the caller unrefs the message, which the next gateway's kernel may say again. */
struct jmsg *fake_kernel_says(struct kernel *k, enum channel channel, const char *type,
	const struct jmsg *parent, const char *content);
void fake_kernel_says_again(struct kernel *k, struct jmsg *m);
void fake_kernel_turn(struct kernel *k);
/* What it learnt of an execution. */
void fake_kernel_report(struct kernel *k, const char *msg_id, const char *text);
/* A magic of its asks; and what it was answered last: "STATUS TEXT", cut. */
void fake_kernel_ask(struct kernel *k, int64_t id, const char *what, const char *about);
const char *fake_kernel_answer(const struct kernel *k, int64_t id);
/* What is parked in its container; what it parked not; and a revival: the park that it goes to now
 * (0: none), what the new line says of itself (then it takes over, unless it is refused), or a
 * failure. */
void fake_kernel_parks(struct kernel *k, int64_t park, const char *msg_id, const char *text);
void fake_kernel_unparks(struct kernel *k, int64_t park);
void fake_kernel_not_parked(struct kernel *k, const char *msg_id, const char *reason);
int64_t fake_kernel_revives(const struct kernel *k);
void fake_kernel_proves(struct kernel *k, const char *text);
void fake_kernel_not_revived(struct kernel *k, int code);
int64_t fake_kernel_released(const struct kernel *k);
/* How often it was killed: the test says when it dies of it. Then whether it is looked for, and
 * what is left of it; NULL: nothing. With something its place goes, if it is
 * there still. */
unsigned fake_kernel_kills(const struct kernel *k);
bool fake_kernel_is_looked_for(const struct kernel *k);
void fake_kernel_looked(struct kernel *k, const char *left);
/* Kernels that begin from now on tell of their files. What is told, of an execution or the scan
 * that was asked for last; what was wanted last, as "NAME NAME last" or without the last word. */
void fake_bridge_files(struct bridge *b);
void fake_kernel_files_on(struct kernel *k); /* one that was taken over */
void fake_kernel_files(struct kernel *k, const char *msg_id, const char *change);
void fake_kernel_content(struct kernel *k, const char *name, const char *content);
const char *fake_kernel_wants(const struct kernel *k);
const char *fake_kernel_scans(const struct kernel *k);
bool fake_kernel_scans_all(const struct kernel *k);
/* Another container is behind it. */
void fake_kernel_moves_house(struct kernel *k);
/* A lay: the order (NULL: none is under way), what is needed, then what was given as "NAME=TEXT ";
 * that it is done, or why not; and how it ended: "", "kept", "put back". */
const char *fake_kernel_lays(const struct kernel *k);
void fake_kernel_needs(struct kernel *k, const char *names_json, bool last);
const char *fake_kernel_given(const struct kernel *k);
void fake_kernel_room(struct kernel *k);
void fake_kernel_laid(struct kernel *k, const char *reason);
const char *fake_kernel_lay_ended(const struct kernel *k);
void fake_kernel_notice(struct kernel *k, const char *text);
void fake_kernel_die(struct kernel *k, int cause, int code, const char *text);

/* What was sent to it and is not taken yet; the oldest is taken. Caller unrefs; NULL: nothing. */
struct jmsg *fake_kernel_take(struct kernel *k);
size_t fake_kernel_waiting(const struct kernel *k);
/* The msg_id up to which it was last told that all is kept; "" if never. */
const char *fake_kernel_written(const struct kernel *k, enum channel channel);
bool fake_kernel_held(const struct kernel *k);
unsigned fake_kernel_restarts(const struct kernel *k);
unsigned fake_kernel_interrupts(const struct kernel *k);
/* NULL: nobody has it yet. */
const char *fake_kernel_id(const struct kernel *k);
/* It is dead, only its watcher has not heard of it. */
void fake_kernel_doom(struct kernel *k);
/* Its container is gone. */
void fake_kernel_lose(struct kernel *k);
/* Header session of what it says; begins as "kernel-1", a restart raises the number. */
const char *fake_kernel_session(const struct kernel *k);

#endif
