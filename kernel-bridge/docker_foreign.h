/* Slots of kernelspecs without coppice_kernel, for engine_docker.c, docker_line.c and
 * docker_remove.c: a container per line. Owned by the slot. Loop thread. */
#ifndef COPPICE_BRIDGE_DOCKER_FOREIGN_H
#define COPPICE_BRIDGE_DOCKER_FOREIGN_H

#include "kernel-bridge/engine_docker.h"

int docker_foreign_new(struct docker_slot *s, struct err *err);
void docker_foreign_free(struct docker_slot *s);
int docker_foreign_start(struct docker_slot *s, const struct line_start *start, struct err *err);
int docker_foreign_signal(struct docker_slot *s, unsigned line, int signo, struct err *err);
int docker_foreign_kill(struct docker_slot *s, unsigned line, struct err *err);

#endif
