/* The seam of engine.h, as far as working files are concerned (docs/decisions/0028): the folder of
 * a slot is told of, and what it is to hold is laid down. Inside kernel-bridge only. Loop thread.
 */
#ifndef COPPICE_BRIDGE_SLOT_FILES_H
#define COPPICE_BRIDGE_SLOT_FILES_H

#include "kernel-bridge/engine.h"

/* Answer to a lay: contents that are needed; or, without names, that it is done, or why not. */
struct slot_laid {
	const char *id;
	bool ready;
	const char *reason;	   /* NULL: there is none */
	const struct cJSON *names; /* texts of a guest; NULL if it is ready or failed */
	bool last;
};

/* From the loop, never inside one of the functions below. data is slot_watcher's; all texts and
 * bytes are a guest's, borrowed. */
struct slot_files_watcher {
	void (*on_files)(void *data, unsigned line, const char *msg_id, struct bytes change);
	/* bytes.data is NULL: it is not to be had any more. */
	void (*on_content)(void *data, const char *name, struct bytes bytes);
	void (*on_laid)(void *data, const struct slot_laid *laid);
	/* All that was given to lay_content has left. */
	void (*on_room)(void *data);
};

/* Each E_UNAVAILABLE if there is nobody to say it to. */
struct slot_files_ops {
	/* Whether its container and its gateway know of files. */
	bool (*has)(struct slot *s);
	int (*want)(struct slot *s, unsigned line, const struct kernel_want *want, struct err *err);
	int (*scan)(struct slot *s, unsigned line, const char *id, bool full, struct err *err);
	int (*lay)(struct slot *s, const char *id, const char *folder, struct bytes entries,
		struct err *err);
	/* Copies the bytes; on_room follows. bytes.data NULL: it cannot be had. */
	int (*lay_content)(struct slot *s, const char *id, const char *name, struct bytes bytes,
		struct err *err);
	/* Best effort; what is left of that lay's contents is dropped. */
	void (*lay_end)(struct slot *s, const char *id, bool keep);
};

#endif
