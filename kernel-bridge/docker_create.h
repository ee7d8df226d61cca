/* The body of the engine's create call: image, limits, mounts, the whole wall around a kernel. No
 * input or output. Any thread. */
#ifndef COPPICE_BRIDGE_DOCKER_CREATE_H
#define COPPICE_BRIDGE_DOCKER_CREATE_H

#include "gateway/base/config.h"

struct cJSON;

#define DOCKER_LABEL_RUN  "coppice.run"
#define DOCKER_LABEL_SLOT "coppice.slot"
#define DOCKER_SOCKETS	  "/run/coppice" /* where a container sees its slot's socket folder */
#define DOCKER_FOREIGN	  "/run/kernel"	 /* where a kernel without coppice_kernel binds */
#define DOCKER_WORK	  "/work"
#define DOCKER_BRANCHES	  "/branches" /* working folders of branches beside (docs/decisions/0029) */

struct docker_create {
	const struct config *config;
	const char *image;
	const char *run; /* value of the label: whose containers these are */
	const char *slot;
	const char *sockets; /* host folder */
	/* A kernel without coppice_kernel: its command (array of texts) and environment (object of
	 * texts or NULL). NULL: the image's own entrypoint. Borrowed. */
	const struct cJSON *argv;
	const struct cJSON *env;
};

/* The whole tree; the caller owns it. E_NOMEM; E_INVALID as docker_mounts_check. */
int docker_create_body(const struct docker_create *c, struct cJSON **ret, struct err *err);
/* {"NanoCpus": n}, for the update call once a kernel is ready. */
struct cJSON *docker_update_body(const struct config *config);
/* E_INVALID: an item of --mount is not NAME=PATH:ro, a name comes twice, or the folder is not
 * there. */
int docker_mounts_check(const struct config *config, struct err *err);

/* Our seccomp profile (images/kernel/seccomp.json), NUL-ended. */
extern const char docker_seccomp[];

#endif
