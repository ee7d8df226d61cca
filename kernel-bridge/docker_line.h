/* Lines of a slot of the engine docker: docker_line.c, for the other files of that engine. Loop
 * thread. */
#ifndef COPPICE_BRIDGE_DOCKER_LINE_H
#define COPPICE_BRIDGE_DOCKER_LINE_H

#include "kernel-bridge/engine_docker.h"

struct docker_line *docker_line_find(struct docker_slot *s, int64_t number);
/* A line that runs already; then one that nobody knows of, which is ended. */
struct docker_line *docker_line_adopt(struct docker_slot *s, unsigned number, const char *key);
void docker_line_end_stray(struct docker_slot *s, unsigned number);
void docker_line_ended(struct docker_line *l, const struct line_exit *exit);

int docker_line_start(struct slot *s, const struct line_start *start, struct err *err);
int docker_line_revive(
	struct slot *s, const struct line_start *start, int64_t park, struct err *err);
void docker_park_release(struct slot *s, int64_t park);
int docker_can_branch(struct slot *s, struct err *err);
void docker_drop_folder(struct slot *s, const char *folder);
int docker_line_signal(struct slot *s, unsigned line, int signo, struct err *err);
int docker_line_kill(struct slot *s, unsigned line, struct err *err);
bool docker_fits(struct engine *e, const struct kernelspec *spec, const struct cJSON *env);
int docker_can_hand_over(struct slot *s, struct err *err);
int docker_line_hand_over(struct slot *s, const struct line_start *start, struct err *err);
void docker_line_ack(struct slot *s, unsigned line, enum channel channel, const char *msg_id);
void docker_line_answer(
	struct slot *s, unsigned line, int64_t id, const char *status, struct bytes text);
int docker_line_message(
	struct docker_slot *s, enum ctl_type type, const struct cJSON *message, struct err *err);
void docker_lines_drop(struct docker_slot *s);

#endif
