/* Jupyter sessions: path, name, type and the kernel they hold. Owns its rows. Loop thread. */
#ifndef COPPICE_SPINE_SESSIONS_H
#define COPPICE_SPINE_SESSIONS_H

#include "gateway/spine/kernels.h"

int sessions_open(struct gateway *gw, struct sessions **ret, struct err *err);
void sessions_free(struct sessions *ss);

/* body: the parsed request ({path, type, name?, kernel:{id?, name?}}), borrowed. ret_model: caller
 * owns. An existing session of that owner and path is returned instead of a new one. E_INVALID path
 * or type missing, E_NO_SPEC unknown spec, E_CONFLICT kernel id, E_NOT_FOUND. */
int sessions_create(struct sessions *ss, const struct owner *owner, const struct cJSON *body,
	struct cJSON **ret_model, struct err *err);
int sessions_get(struct sessions *ss, const struct owner *owner, const char *id,
	struct cJSON **ret_model, struct err *err);
struct cJSON *sessions_list(const struct sessions *ss, const struct owner *owner);
/* {path?, name?, type?, kernel:{id or name}?}: id wins; name starts a new kernel, shuts the old. */
int sessions_patch(struct sessions *ss, const struct owner *owner, const char *id,
	const struct cJSON *body, struct cJSON **ret_model, struct err *err);
/* Ends the kernel too. E_GONE: its kernel went before it. cb when the kernel is gone (not called on
 * error). */
int sessions_delete(struct sessions *ss, const struct owner *owner, const char *id,
	void (*cb)(void *data), void *data, struct err *err);
/* Those that hold that kernel, to be written down; and as they were written down. */
struct cJSON *sessions_rows(const struct sessions *ss, const char *kernel_id);
void sessions_restore(struct sessions *ss, const struct owner *owner, const char *kernel_id,
	const struct cJSON *rows);
/* Called by desk_end: the sessions that hold it are dropped. */
void sessions_kernel_gone(struct sessions *ss, const char *kernel_id);

#endif
