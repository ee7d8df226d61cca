/* Jupyter kernelspecs: finds kernel.json files on Jupyter's own search path and makes structs of
 * them that every client's validation passes. Inside kernel-bridge only. Loop thread; reads files,
 * so only while the gateway opens. */
#ifndef COPPICE_BRIDGE_SPEC_H
#define COPPICE_BRIDGE_SPEC_H

#include "kernel-bridge/bridge.h"

/* Makes a spec out of a tree (a kernel.json): absent members get defaults, members that no client
 * may see are dropped. Takes tree over, also on failure. name is lower-cased and copied;
 * resource_dir is copied and may be NULL; engine is borrowed for ever (a literal).
 * E_INVALID: the name or the tree is not a kernelspec; err says why. */
int spec_new(const char *name, const char *engine, struct cJSON *tree, const char *resource_dir,
	struct kernelspec **ret, struct err *err);
void spec_free(struct kernelspec *s);
void spec_list_free(struct list *specs);
/* NULL if there is none of that name; compares without case. */
struct kernelspec *spec_find(const struct list *specs, const char *name);

/* Folders that hold kernels/NAME/kernel.json, the most important one first. */
#define SPEC_DIRS_MAX 64
struct spec_dirs {
	char *at[SPEC_DIRS_MAX];
	size_t n;
};

/* By the environment: JUPYTER_PATH, the user's folder, the prefixes of VIRTUAL_ENV and of each
 * python3 and jupyter on PATH, the system's. */
void spec_dirs_init(struct spec_dirs *d);
void spec_dirs_done(struct spec_dirs *d);

/* Adds all specs of the folders to specs (the first of a name wins), each name after prefix ("" or
 * "process-"). A spec that cannot be read is logged and left out. */
void spec_read(const struct spec_dirs *d, const char *prefix, const char *engine,
	struct list *specs, const struct log *log);

#endif
