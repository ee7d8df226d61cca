/* The engine `docker`: working files over `ctl` (docs/PROTOCOL-ctl.md), in pieces both ways. Owns
 * what is put together, and what waits to be sent, of one slot. Loop thread. */
#ifndef COPPICE_BRIDGE_DOCKER_FILES_H
#define COPPICE_BRIDGE_DOCKER_FILES_H

#include "kernel-bridge/engine_docker.h"
#include "kernel-bridge/slot_files.h"

extern const struct slot_files_ops docker_files_ops;

/* Whether this gateway wants to be told. */
bool docker_files_taken(const struct docker *d);
/* The supervisor is there. */
void docker_files_up(struct docker_slot *s, const struct cJSON *hello);
void docker_files_drop(struct docker_slot *s);
bool docker_files_are_meant(enum ctl_type type);
/* What breaks the rules is answered with `error` and dropped as a whole. */
int docker_files_message(
	struct docker_slot *s, enum ctl_type type, const struct cJSON *message, struct err *err);
/* `ctl` takes more. */
void docker_files_go_on(struct docker_slot *s);

#endif
