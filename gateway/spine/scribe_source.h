/* What the recorder reads a run from: a stretch of the journal, whose last entry says more than is
 * in the file. Made in the loop; read and closed in the recorder's thread. */
#ifndef COPPICE_SPINE_SCRIBE_SOURCE_H
#define COPPICE_SPINE_SCRIBE_SOURCE_H

#include "gateway/spine/journal_scan.h"
#include "history/history.h"

/* more: members that the last entry's content gets, beginning with a comma, or "". Copied. */
struct history_source scribe_source(const struct journal_stretch *stretch, const char *more);

#endif
