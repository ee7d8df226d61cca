/* The engine `docker`: what its files share. A slot is a container with its folder of sockets, made
 * by engine_docker.c, given kernels by docker_line.c, taken away by docker_remove.c. A slot of a
 * kernelspec without coppice_kernel (foreign) makes a container per line: docker_foreign.c. Owns
 * run folder, api and slots. Loop thread. */
#ifndef COPPICE_BRIDGE_ENGINE_DOCKER_H
#define COPPICE_BRIDGE_ENGINE_DOCKER_H

#include "kernel-bridge/ctl.h"
#include "kernel-bridge/docker_api.h"
#include "kernel-bridge/run_dir.h"
#include "kernel-bridge/slot.h"

#define DOCKER_NAME_SIZE 48

struct docker {
	struct engine engine;
	struct bridge_env env;
	struct log log;
	struct run_dir run;
	struct docker_api *api; /* NULL once it is closed */
	struct list slots, leftovers;
	unsigned open_ctls;
	struct cJSON *info; /* docker_facts.c: what the engine says of itself, or NULL */
	enum { IMAGE_UNKNOWN, IMAGE_THERE, IMAGE_MISSING } image;
	struct sweep *sweep; /* docker_remove.c: while one runs */
	void (*closed)(void *data);
	void *closed_data;
};

/* A kept message that comes in pieces. */
struct docker_kept {
	int64_t id;
	enum channel channel;
	uint8_t *data;
	size_t len, size;
};

/* A kernel process in a slot. */
struct docker_line {
	struct docker_slot *slot;
	unsigned number;
	struct endpoints endpoints;
	long pid; /* of its kernel, in its container; 0: not started */
	bool started;
	bool adopted;	   /* an earlier gateway had it, and it is not known to live */
	struct timer kill; /* the supervisor has that long to end it */
	struct docker_kept kept;
	struct list link;
};

struct docker_slot {
	struct slot base;
	struct docker *docker;
	struct log log;
	struct run_slot dir;
	const struct config_spec *spec; /* of the configuration file, or NULL */
	char container[DOCKER_NAME_SIZE];
	bool made;	/* a container of that name may be there */
	bool in_flight; /* the create or start call is not answered yet */
	enum again { AGAIN_NO, AGAIN_CREATE, AGAIN_START } again; /* what it was away for */
	struct ctl *ctl;
	bool unlimited;	   /* the engine was away when it was told its share of processors */
	long pid;	   /* the supervisor's, as the host sees it */
	bool keeps, hands; /* outbox, hand_over: its supervisor, of an older image, may not */
	bool branches;	   /* and keeps several kernels apart */
	char image_id[ENVIRONMENT_SIZE]; /* "" until the engine has said it */
	struct list lines;
	struct timer deadline; /* of the launch, then of the removal's callback */
	struct timer retry;    /* of looking at how it ended, then of the removal */
	unsigned tries;
	bool gone; /* on_gone was called or is being found out */
	struct err why;
	bool left;		  /* the container lives on without us: nothing of it is removed */
	bool adopts;		  /* from an earlier gateway, until its supervisor is there */
	struct docker_look *look; /* docker_look.c, or NULL */
	struct docker_files *files;	/* docker_files.c: NULL where nothing is told of any */
	char wait_tag;			/* its address names the wait call */
	struct docker_foreign *foreign; /* docker_foreign.c: NULL for slots with a supervisor */
	void (*removed)(void *data);	/* NULL once it was called */
	void *removed_data;
};

struct docker_slot *docker_slot_of(struct slot *s);
/* Image of the slot's kernelspec. */
const char *docker_slot_image(const struct docker_slot *s);
/* About its container: /containers/<name><path>; done's data is the slot. */
int docker_slot_call(struct docker_slot *s, const char *method, const char *path,
	const struct cJSON *body,
	void (*done)(void *data, int status, const struct cJSON *json, const struct err *err),
	struct err *err);
/* Why the create call was refused, for people. */
void docker_create_error(
	struct docker_slot *s, int status, const struct err *cause, struct err *ret_err);
void docker_slot_warm(struct docker_slot *s); /* creating -> warm, told to the watcher */
/* How a container ended, out of the engine's State. */
void docker_exit_read(const struct cJSON *inspected, struct line_exit *ret);

/* The slot is of no use any more: finds out how the container ended and tells the watcher, once. */
void docker_slot_gone(struct docker_slot *s, const struct err *why);
void docker_slot_wait(struct docker_slot *s); /* how the container ends is watched from now on */
void docker_slot_ended_timer(struct timer *t);
int docker_slot_listen(struct docker_slot *s, struct err *err);
const struct config_spec *docker_spec_find(const struct config *config, const char *name);

/* docker_adopt.c */
int docker_adopt(struct engine *e, const struct kernelspec *spec, const struct slot_adopt *adopt,
	const struct slot_watcher *watcher, struct slot **ret, struct err *err);
int docker_adopt_line(struct slot *slot, const struct slot_adopt *adopt, struct err *err);
struct cJSON *docker_slot_row(const struct slot *slot);
void docker_leave(struct slot *slot);
int docker_replay(struct slot *slot, unsigned line, char *const after[CHANNEL_HB], struct err *err);
/* The sockets of lines that nobody has: an earlier gateway may have begun what it did not come to
 * write down. */
void docker_adopt_clear(struct docker_slot *s);
/* Lines that its supervisor has and we do not know are ended. */
void docker_adopt_strays(struct docker_slot *s, const struct cJSON *hello);
/* The supervisor of an adopted slot is there. */
void docker_adopt_up(struct docker_slot *s, const struct cJSON *hello);
int docker_kept(
	struct docker_line *l, enum ctl_type type, const struct cJSON *message, struct err *err);
void docker_kept_drop(struct docker_line *l);

/* docker_remove.c */
void docker_slot_remove(struct slot *s, void (*cb)(void *data), void *data);
void docker_slot_remove_now(struct docker_slot *s); /* what it waited for is answered */
void docker_slot_free(struct docker_slot *s);	    /* its container is gone or given up */
/* However long the engine is away. */
void docker_container_remove(struct docker *d, const char *name);
void docker_leftovers_drop(struct docker *d);
void docker_slot_close_ctl(struct docker_slot *s);
/* engine_docker.c: closes the engine if nothing is open any more. */
void docker_maybe_closed(struct docker *d);
void docker_sweep(struct engine *e, void (*cb)(void *data), void *data);
void docker_sweep_drop(struct docker *d);

#endif
