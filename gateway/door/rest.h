/* Small things that the rest_*.c share. */
#ifndef COPPICE_DOOR_REST_H
#define COPPICE_DOOR_REST_H

#include "gateway/door/call.h"

/* A member of a body, NULL if absent or of another kind; borrowed. body may be NULL. */
const char *rest_text(const struct cJSON *body, const char *key);
const struct cJSON *rest_object(const struct cJSON *body, const char *key);

/* Location: base_url, path, id. */
void rest_location(struct call *r, const char *path, const char *id);

#endif
