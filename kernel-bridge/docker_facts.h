/* The engine `docker`: what it says of itself, of images, and which kernelspecs it has. Loop
 * thread. */
#ifndef COPPICE_BRIDGE_DOCKER_FACTS_H
#define COPPICE_BRIDGE_DOCKER_FACTS_H

#include "kernel-bridge/engine_docker.h"

void docker_facts_ask(struct docker *d);
struct cJSON *docker_report(const struct engine *e);
/* Of which image the slot's container was made, in its own time. */
void docker_slot_ask_image(struct docker_slot *s);
const char *docker_environment(const struct slot *slot);
int docker_specs(struct engine *e, struct list *specs, struct err *err);

#endif
