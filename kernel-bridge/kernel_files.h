/* A part of kernel-bridge's public header: the folder that a kernel works in (docs/decisions/0028).
 * A Change and an entry are JSON as that paper has them; all of them a guest's. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_FILES_H
#define COPPICE_BRIDGE_KERNEL_FILES_H

#include "kernel-bridge/bridge.h"

#define FILES_CHANGE_MAX  (4u << 20)
#define FILES_CONTENT_MAX (1u << 20)
#define FILES_WANT_MAX	  400u /* names in one call */

/* Contents of the Change of msg_id that are wanted; last: no more of them are. */
struct kernel_want {
	const char *msg_id;
	const char *const *names;
	size_t n;
	bool last;
};

/* False: its image is older, its engine knows none, or the gateway wants none; then nothing is
 * told, and nothing can be asked. */
bool kernel_has_files(const struct kernel *k);
/* Another one with each container: what was told of one folder is not another one's. */
uint64_t kernel_place(const struct kernel *k);
/* on_content follows for each name, in their order (data NULL: it is not to be had). E_UNAVAILABLE,
 * as the next three. */
int kernel_want(struct kernel *k, const struct kernel_want *want, struct err *err);
/* on_files with that id as its msg_id follows, also if nothing has changed; full: with all that is
 * in the folder, whatever was told before. */
int kernel_scan(struct kernel *k, const char *id, bool full, struct err *err);

struct kernel_lay {
	const char *folder;   /* as the container sees it */
	struct bytes entries; /* {"entries": [...]}; copied */
	/* Contents that lie nowhere in the folder, to be given by kernel_lay_content; last: these
	 * were all. Not called if there are none. */
	void (*on_needs)(void *data, const struct cJSON *names, bool last);
	/* What was given has left: more can be given without its waiting in memory. */
	void (*on_room)(void *data);
	/* NULL: the folder holds that and nothing else, until kernel_lay_end. Else it is as it was:
	 * E_UNAVAILABLE with the reason; also when the container goes meanwhile. Once. */
	void (*on_laid)(void *data, const struct err *err);
	void *data;
};

/* One at a time: until kernel_lay_end, which is due in any case. */
int kernel_lay(struct kernel *k, const struct kernel_lay *lay, struct err *err);
/* bytes.data NULL: it cannot be had; on_laid tells of the failure. */
int kernel_lay_content(struct kernel *k, const char *name, struct bytes bytes, struct err *err);
/* keep: what was there before is given up; else it is put back, whatever came of the lay. Nothing
 * is called back any more. Without a lay nothing happens. */
void kernel_lay_end(struct kernel *k, bool keep);

#endif
