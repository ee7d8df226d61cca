/* What the files of the engine `process` share. It runs kernelspecs of the host as plain processes
 * of the gateway's user and isolates nothing. Inside engine_process*.c only. Loop thread. */
#ifndef COPPICE_BRIDGE_ENGINE_PROCESS_H
#define COPPICE_BRIDGE_ENGINE_PROCESS_H

#include <sys/types.h>
#include <uv.h>

#include "kernel-bridge/engine.h"
#include "kernel-bridge/run_dir.h"
#include "kernel-bridge/slot.h"

#define PROCESS_PATH_SIZE 256

struct process_engine {
	struct engine engine; /* first */
	struct bridge_env env;
	struct run_dir dir; /* RUN_DIR/process, locked */
	struct list slots;
	struct timer trim; /* runs while there are lines: keeps their logs short */
	bool shy_ports;	   /* a kernel could not bind beside a held port: hold none any more */
	struct timer swept, closed;
	void (*on_swept)(void *data);
	void *on_swept_data;
	void (*on_closed)(void *data);
	void *on_closed_data;
};

struct process_slot {
	struct slot slot;  /* first */
	struct list lines; /* of struct process_line */
	char environment[ENVIRONMENT_SIZE];
	struct timer told; /* warm, or the answer to a removal of what had no line */
	struct timer late; /* a removal that takes too long gives up on the process */
	void (*on_removed)(void *data);
	void *on_removed_data;
};

/* engine_process_line.c: one kernel process, owned by its slot's list until its exit was told. */
struct process_line;
void process_line_start(struct process_slot *s, const struct line_start *start);
/* NULL if there is none of that number, or it has ended. */
struct process_line *process_line_find(struct process_slot *s, unsigned line);
int process_line_signal(struct process_line *l, int signo, struct err *err);
void process_line_kill(struct process_line *l);
/* Gives up on a process that SIGKILL does not end: forgets it. */
void process_line_forget(struct process_line *l);
/* The kernel serves its ports: the sockets that kept them free are closed. */
void process_line_ready(struct process_line *l);
void process_line_trim_log(struct process_line *l);
struct cJSON *process_line_report(const struct process_line *l);
struct process_line *process_line_of(struct list *link);
/* engine_process.c: the last line of a slot that is being removed has gone. */
void process_slot_empty(struct process_slot *s);

/* engine_process_ports.c: five free TCP ports of 127.0.0.1, held by bound sockets that do not
 * listen. A kernel that sets SO_REUSEADDR (each that stands on libzmq does) binds beside them, so
 * nobody else can come in between. hold false: the sockets are closed at once. */
struct process_ports {
	int fd[CHANNEL_COUNT]; /* -1: closed */
	unsigned port[CHANNEL_COUNT];
};
int process_ports_take(struct process_ports *p, bool hold, struct err *err);
void process_ports_release(struct process_ports *p);

/* engine_process_files.c: RUN_DIR/process/kernel-ID-LINE.{json,pid,log}, all 0600. */
struct process_id {
	pid_t pid;
	unsigned long long started; /* clock ticks since boot: a pid with it names one process */
};
void process_file_path(
	char ret_path[PROCESS_PATH_SIZE], const char *dir, const char *stem, const char *kind);
int process_write_connection(const char *path, const struct endpoints *endpoints,
	const struct process_ports *ports, const char *kernel_name, struct err *err);
int process_write_pid(const char *path, struct process_id id, const char *mark, struct err *err);
int process_open_log(const char *path, struct err *err);
/* The last line with text in it after the first skip bytes, made printable; "" if there is none. */
void process_log_tail(const char *path, int64_t skip, char *ret_text, size_t size);
int64_t process_log_size(const char *path);
/* True if the log's end says that an address was in use. */
bool process_log_in_use(const char *path);
void process_remove_files(const char *dir, const char *stem);
/* Kills kernels of an earlier gateway whose record still names them; removes all files of dir. */
void process_sweep_files(const char *dir, const struct log *log);

/* engine_process_env.c: what is executed. */
#define PROCESS_MARK                                                                               \
	"KERNEL_COPPICE_LINE" /* in the environment of all that descends from a line               \
			       */
struct process_command {
	char **argv;
	char **env;
	const char *cwd;
};
struct process_command_source {
	const struct kernelspec *spec;
	const struct cJSON *env; /* of the request; may be NULL */
	const char *connection_file;
	const char *mark;
	const char *data_dir;
};
int process_command_init(
	struct process_command *c, const struct process_command_source *source, struct err *err);
void process_command_done(struct process_command *c);
/* Digest of the kernelspec and the program that c runs: where that is, its size and time. What it
 * loads later is not in it. */
void process_environment(const struct kernelspec *spec, const struct process_command *c,
	char ret_text[ENVIRONMENT_SIZE]);

/* engine_process_tree.c */
/* started 0 if there is no such process. */
struct process_id process_id_of(pid_t pid);
/* SIGKILL to root (if alive is true), all of its session, all below it, and all whose environment
 * has PROCESS_MARK=mark. Returns how many besides root were killed. */
int process_tree_kill(pid_t root, bool alive, const char *mark);

#endif
