/* An engine in memory, and scripted kernels that speak real ZeroMQ over ipc sockets in a folder of
 * the test's own. Everything happens on the test's one thread: scripted kernels are stepped by
 * fake_engine_step, the engine's answers come as timers of the (fake) clock. Include after test.h.
 */
#ifndef COPPICE_FAKE_ENGINE_H
#define COPPICE_FAKE_ENGINE_H

#include <uv.h>

#include "kernel-bridge/bridge_internal.h"
#include "kernel-bridge/sign.h"
#include "kernel-bridge/slot_files.h"

/* What a scripted kernel does of itself; a test drives the rest. */
struct script {
	bool mute_control; /* answers kernel_info on shell only, as an old foreign kernel */
	bool mute;	   /* answers nothing */
	bool deaf_iopub;   /* answers, but nothing comes on iopub */
	bool foreign;	   /* not of coppice_kernel: no mark and no limit on our side */
	bool curve;	   /* encrypted */
	bool deaf_stdin;   /* does not listen there until script_listen_stdin */
	bool rude;	   /* ignores shutdown_request */
	bool ignores_interrupt;
};

struct script_kernel {
	struct script script;
	void *socket[CHANNEL_COUNT];
	struct endpoints endpoints;
	struct sign sign;
	unsigned line;
	char last_ident[CHANNEL_COUNT][64]; /* routing id of the last request, per channel */
	struct jmsg *last[CHANNEL_COUNT];   /* last request that was not kernel_info */
	unsigned requests[CHANNEL_COUNT];   /* those, counted */
	unsigned infos;			    /* kernel_info_requests */
	unsigned beats;
	bool wants_exit; /* shutdown_request came */
};

struct fake_slot;

/* What a gateway finds of the slot that an earlier one left. */
enum left { LEFT_WELL, LEFT_SILENT, LEFT_GONE, LEFT_EXITED };

struct fake_engine {
	struct engine engine;
	struct bridge_env env;
	char dir[64];
	void *zmq;
	struct kernelspec spec;
	struct script script;	      /* for lines to come */
	struct list words;	      /* that it is about to say */
	struct fake_slot *slot;	      /* the last that was launched and not removed */
	struct script_kernel *kernel; /* of the last line, NULL once it ended */
	struct script_kernel *second; /* a line beside it; follows it as it ends */
	bool hangs_launch, hangs_start, hangs_kill, tells_nothing;
	bool no_pool, hangs_hand_over, no_branches;
	enum left left;
	bool has_files;
	char lay[64];	    /* as slot_adopt had it */
	char said[512];	    /* what was last asked of its files, as words */
	bool keeps_nothing; /* of an older image: replay is refused */
	/* The nth call of launch, start, signal, kill_line, hand_over, adopt, replay, revive or
	 * look fails; counted down, 0: none. */
	int fault;
	bool fault_met;
	unsigned launched, started, killed, signals, removed, limited, handed, adopted, replays;
	unsigned revived;
	unsigned looks;
	const char *stays; /* what a look finds; NULL: nothing */
	bool hangs_look;
	int64_t park, released; /* of the last revive and release */
	/* As the last line was started or handed over. */
	char kernel_id[40];
	char kernel_env[256];
	char folder[64];
	char dropped[64];     /* of the last drop_folder */
	const char *parks_of; /* id of the kernel whose the next parks are; NULL: not said */
	char after[CHANNEL_HB][JMSG_ID_MAX]; /* as the last replay was asked for */
	unsigned serial;
};

/* message_limit and the like come from env->config. */
struct fake_engine *fake_engine_new(const struct bridge_env *env);
/* Scripted kernels take what came and answer. True if there was something. */
bool fake_engine_step(struct fake_engine *e);
/* The present line ends by itself. */
void fake_engine_exit(struct fake_engine *e, const struct line_exit *exit);
void fake_engine_exit_second(struct fake_engine *e, const struct line_exit *exit);
/* Something is parked in the slot, or not any more; a line says what it is. At once. */
void fake_engine_parks(struct fake_engine *e, int64_t park, const char *msg_id, const char *text);
void fake_engine_unparks(struct fake_engine *e, int64_t park);
void fake_engine_says_revived(struct fake_engine *e, unsigned line, const char *text);
/* Its slot tells of files, at once; of a lay: contents that are needed (names), else that it is
 * ready, or the reason why not. */
void fake_engine_files(struct fake_engine *e, unsigned line, const char *msg_id, const char *text);
void fake_engine_content(struct fake_engine *e, const char *name, const char *text);
void fake_engine_laid(
	struct fake_engine *e, const char *id, const struct cJSON *names, const char *reason);
void fake_engine_room(struct fake_engine *e);
/* The container goes away by itself. */
void fake_engine_lose_slot(struct fake_engine *e);

/* A message that the present line kept, as its frames on that channel; then the end of them. Told
 * at once, whatever was asked. */
void fake_engine_keeps(struct fake_engine *e, enum channel channel, const struct jmsg *m);
void fake_engine_keeps_raw(struct fake_engine *e, enum channel channel, struct bytes all);
void fake_engine_kept_end(struct fake_engine *e, int64_t lost);
void fake_engine_kept_end_of(struct fake_engine *e, unsigned line, int64_t lost);

/* ---- fake_script.c ---- */

struct script_kernel *script_new(struct fake_engine *e, unsigned line, const char *key);
void script_free(struct script_kernel *k);
/* Takes what came and answers. NULL does nothing. */
bool script_step(struct script_kernel *k);
/* Sends on iopub, or as an answer to the last request of another channel. parent may be NULL. */
void script_send(struct script_kernel *k, enum channel channel, const char *msg_type,
	const struct jmsg *parent, const char *content);
void script_listen_stdin(struct script_kernel *k);
/* Frames as they are, after the ident. */
void script_send_raw(
	struct script_kernel *k, enum channel channel, const struct bytes *frames, size_t n);

#endif
