/* Python as a model wrote it, made such that it can run: only where Python could not read it, or
 * where this kernel could not do what is meant. Pure, any thread. */
#ifndef COPPICE_FRONTEND_ADAPTER_MEND_H
#define COPPICE_FRONTEND_ADAPTER_MEND_H

#include "gateway/base/buf.h"

struct cJSON;

/* Adds the mended code to ret; each change goes to changes, an array, as {rule, before, after}. */
int mend_python(struct bytes code, struct buf *ret, struct cJSON *changes, struct err *err);
/* One more change; false: out of memory. */
bool mend_note(struct cJSON *changes, const char *rule, struct bytes before, struct bytes after);

#endif
