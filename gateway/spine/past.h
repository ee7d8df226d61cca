/* What was in the journal when the earlier gateway was killed, beyond what its file holds: so that
 * a message which comes a second time out of the kernel's own store is not taken for a new one.
 * Owned by an adopted desk. Loop thread. */
#ifndef COPPICE_SPINE_PAST_H
#define COPPICE_SPINE_PAST_H

#include "gateway/spine/live.h"

struct past;

/* last: the number of the file's last entry. Takes the rows beyond it out of l. */
struct past *past_new(struct live *l, uint64_t last);
void past_free(struct past *p);

/* All of these take NULL for p. The replay is over: nothing comes twice any more. */
void past_end(struct past *p);
/* It is in the file already. */
bool past_has(const struct past *p, const struct jmsg *m);
/* Whom it was for; false if it is not known. */
bool past_receiver(const struct past *p, const struct jmsg *m, uint64_t *ret_to);
/* It is in the journal again, as number. */
void past_again(struct past *p, const struct jmsg *m, uint64_t number);
/* What the journal says as now, the earlier gateway had said as then: an answer of its own, which
 * comes from no kernel. In order of now. */
void past_said(struct past *p, uint64_t now, uint64_t then);
/* A client that had everything before `had` has this entry too. */
bool past_had(const struct past *p, uint64_t number, uint64_t had);

#endif
