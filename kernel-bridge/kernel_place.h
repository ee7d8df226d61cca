/* Where kernels are: a slot of an engine with the kernels in it, which are lines of one container
 * (docs/decisions/0029). It counts them: the last that leaves has the slot removed. What the engine
 * says of a line goes to the kernel whose line it is, what it says of the slot to all. Owns slot
 * and parks. Inside kernel-bridge only. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_PLACE_H
#define COPPICE_BRIDGE_KERNEL_PLACE_H

#include "kernel-bridge/kernel_internal.h"

#define PARKS_MAX   64u /* of a container; what is told beyond is not believed */
#define DIGEST_SIZE 256

struct kernel_place {
	struct list link; /* in bridge->places */
	struct bridge *bridge;
	uint64_t number; /* of all places that there were */
	struct slot *slot;
	struct list kernels; /* struct kernel by beside, oldest first */
	struct list parks;
	unsigned last_line;    /* the greatest number that was used in this slot */
	bool warm;	       /* a line can be started in it */
	bool limited;	       /* the engine was told that the start is over */
	bool looks;	       /* the engine is asked what is left of a line of it */
	struct kernel *looker; /* who asked, or NULL: it does not want to know any more */
	bool left;	       /* a kernel of it lives on without us: so does the slot */
};

struct park {
	struct list link;
	struct kernel *of; /* whose line it was */
	int64_t number;
	char digest[DIGEST_SIZE]; /* JSON as it came; "": it said none */
};

/* k gets a slot of its own. On failure it has none. */
int kernel_place_launch(struct kernel *k, struct engine *e, struct err *err);
/* Likewise, one that an earlier gateway had, which another kernel of it may have been given
 * already. */
int kernel_place_adopt(
	struct kernel *k, struct engine *e, const struct slot_adopt *adopt, struct err *err);
/* k, which has none, comes beside the others. */
void kernel_place_join(struct kernel_place *p, struct kernel *k);
/* k goes: what it had parked is released; if others stay its line is killed and its folder dropped,
 * else the slot is removed. True: it is, which kernel_on_removed tells. */
bool kernel_place_leave(struct kernel *k);
/* k lives on without us. */
void kernel_place_let_go(struct kernel *k);
/* A number that no line had. The rows of the others in it are to know. */
unsigned kernel_place_next_line(struct kernel *k);

/* k's container has to go: the others in it are told that it is gone. */
void kernel_place_give_up(struct kernel *k, const char *why);
bool kernel_place_is_shared(const struct kernel_place *p);

/* Whether anything of k's line is left: as engine_ops.look, but with kernel_on_looked. E_BUSY:
 * another's is being looked for. */
int kernel_place_look(struct kernel *k, struct err *err);
void kernel_place_look_cancel(struct kernel *k);

void kernel_place_release(struct kernel_place *p, int64_t park);
/* What is k's. If it is alone those too that are being made. */
void kernel_place_release_all(struct kernel *k);

bool kernel_place_is_full(const struct kernel_place *p);
void kernel_read_digest(struct bytes text, char ret[DIGEST_SIZE]); /* of JSON: as it came */
struct park *kernel_place_find_park(const struct kernel_place *p, int64_t number);

/* What the place tells one of its kernels: kernel.c. */
void kernel_on_warm(struct kernel *k);
void kernel_on_started(
	struct kernel *k, unsigned line, const struct endpoints *endpoints, long pid);
void kernel_on_start_failed(struct kernel *k, unsigned line, const struct err *err);
/* kernel_limit.c */
void kernel_on_looked(struct kernel *k, const struct err *left);

#endif
