/* What is left of a line that ended, as the container engine sees it. Inside the engine `docker`
 * only. Loop thread. */
#ifndef COPPICE_BRIDGE_DOCKER_LOOK_H
#define COPPICE_BRIDGE_DOCKER_LOOK_H

#include "kernel-bridge/engine_docker.h"

/* engine_ops.look */
int docker_look(struct slot *slot, unsigned line, void (*cb)(void *data, const struct err *left),
	void *data, struct err *err);
/* A process of that number in its container is a parked one, or not any more. */
void docker_look_parked(struct docker_slot *s, int64_t park, long pid);
void docker_look_unparked(struct docker_slot *s, int64_t park);
void docker_look_drop(struct docker_slot *s);

#endif
