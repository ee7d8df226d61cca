/* What the kernel may forget: its messages that are in the journal's file, by channel. The kernel
 * keeps each until it is told so (docs/PROTOCOL-ctl.md, outbox). At most one word per channel in a
 * second, or per 8 MiB or 8,192 messages. Owned by a desk. Loop thread. */
#ifndef COPPICE_SPINE_ACKS_H
#define COPPICE_SPINE_ACKS_H

#include "gateway/base/clock.h"
#include "gateway/base/jmsg.h"

struct desk;

/* A message of the kernel and its number in the journal; 0: none. */
struct ack_mark {
	uint64_t number;
	char msg_id[JMSG_ID_MAX];
};

/* Under a flood the latest is never written yet: then an older one is what can be told. */
struct acks {
	struct ack_mark older[CHANNEL_HB], latest[CHANNEL_HB];
	uint64_t written;
	size_t bytes, messages; /* taken since the last word */
	struct timer timer;
};

void acks_init(struct acks *a);
void acks_stop(struct desk *d);
/* A message of the kernel is in the journal, its last piece as number. */
void acks_took(struct desk *d, const struct jmsg *m, uint64_t number);
/* Everything up to this number is in the file. */
void acks_written(struct desk *d, uint64_t last);
/* Another process: what the last one sent is of no interest. */
void acks_forget(struct desk *d);

#endif
