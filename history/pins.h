/* Contents that a run is going to name which is not recorded yet: the loop was told that they are
 * there, so what removes contents that no node names leaves them. For an hour, and as many as
 * PINS_MAX; the oldest go first. Any thread. */
#ifndef COPPICE_HISTORY_PINS_H
#define COPPICE_HISTORY_PINS_H

#include "gateway/base/base.h"

#define PINS_MAX 65536u

struct pins;

struct pins *pins_new(void);
void pins_free(struct pins *pins);
void pins_add(struct pins *pins, const char *history, const char *name);
/* A node names it. */
void pins_drop(struct pins *pins, const char *history, const char *name);
bool pins_has(struct pins *pins, const char *history, const char *name);
/* Under the lock: on_name calls nothing of this. */
void pins_each(struct pins *pins, const char *history,
	void (*on_name)(void *data, const char *name), void *data);

#endif
