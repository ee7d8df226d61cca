/* The runs of a kernel that were forgotten: what its threads and its pauses still say of them is
 * not kept. In a file beside the journal, so that the next gateway knows too. Owned by a desk.
 * Loop thread. */
#ifndef COPPICE_SPINE_FORGOTTEN_H
#define COPPICE_SPINE_FORGOTTEN_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

#define FORGOTTEN_MAX  1024u /* the last ones of a kernel */
#define FORGOTTEN_FILE "forgotten"

struct forgotten_run;

/* Of zeros: none. */
struct forgotten {
	struct forgotten_run *runs; /* by msg_id, oldest first */
};

void forgotten_done(struct forgotten *f);
bool forgotten_has(const struct forgotten *f, const char *msg_id);
/* folder is the journal's. E_IO, E_NOMEM: it is known here, and not to the next gateway. */
int forgotten_add(struct forgotten *f, const char *folder, const char *msg_id, struct err *err);
/* What an earlier gateway forgot; a file that is none names nothing. */
void forgotten_read(struct forgotten *f, const char *folder);

#endif
