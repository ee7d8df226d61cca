/* What shown.c and shown_scale.c share. */
#ifndef COPPICE_ADAPTER_SHOWN_SCALE_H
#define COPPICE_ADAPTER_SHOWN_SCALE_H

#include "frontend-adapter/shown.h"

/* That representation of one output is not there, though it came. */
void shown_note(struct shown *s, const char *what);
/* The PNG or JPEG of it, a string; NULL: it has none. */
struct cJSON *shown_picture(const struct shown_output *o);
/* More is held than should be: begins to scale. */
void shown_scale_held(struct shown *s);
/* Tells what was withheld. */
void shown_tell_rest(struct shown *s);

#endif
