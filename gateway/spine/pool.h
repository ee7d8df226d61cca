/* Kernels that are ready before anybody asks (docs/decisions/0011): how many, and who gets which.
 * Of the default kernelspec, if its engine can hand kernels over. Owned by struct kernels; owns its
 * kernels until they are taken. Loop thread. */
#ifndef COPPICE_SPINE_POOL_H
#define COPPICE_SPINE_POOL_H

#include "gateway/gateway.h"

struct cJSON;
struct pool;

/* n_owned, borrowed: places that are taken; see pool_places_changed. */
struct pool *pool_new(struct gateway *gw, const size_t *n_owned);
/* From now on it holds kernels. After bridge_sweep. */
void pool_begin(struct pool *p);
/* True: that kernel is the caller's, as after kernel_start. False: it has none that fits, or the
 * request is wrong, which kernel_start then says. What fits and finds none is demand too. */
bool pool_take(struct pool *p, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret);
/* n_owned is another. */
void pool_places_changed(struct pool *p);
/* Ends a kernel that its desk has no use for any more. */
void pool_end_kernel(struct pool *p, struct kernel *k);
/* Ends all; emptied from the loop, once, when the last is gone. */
void pool_end(struct pool *p, void (*emptied)(void *data), void *data);
bool pool_is_empty(const struct pool *p);
void pool_free(struct pool *p);

struct pool_figures {
	size_t ready, starting, ending, wanted;
	uint64_t started, taken, missed, idled, failed;
};
void pool_figures(const struct pool *p, struct pool_figures *ret);
/* {on, spec, wanted, trouble, figures..., kernels: [...]}; caller owns. */
struct cJSON *pool_show(const struct pool *p);

#endif
