/* What a gateway that is killed leaves in memory for the next one: a mapped file beside a kernel's
 * journal, whose pages outlive the process. Per entry its message's id as a hash, since the journal
 * is written a little behind; per client its cursor; the requests that are open; what the kernel
 * was told that it may forget. Blocks only at the opening. Owned by a desk. Loop thread. */
#ifndef COPPICE_SPINE_LIVE_H
#define COPPICE_SPINE_LIVE_H

#include "gateway/base/jmsg.h"

#define LIVE_CLIENTS	   128u
#define LIVE_REQUESTS	   64u
#define LIVE_ENTRIES	   16384u /* more than are ever unwritten, of usual size */
#define LIVE_REQUEST_BYTES (16u << 10)

struct live_entry {
	uint64_t number, to, hash;
};

struct live_client {
	uint64_t number; /* 0: the row is free */
	uint64_t next;	 /* it has everything before this */
	char session_id[JMSG_ID_MAX];
};

struct live_request {
	uint64_t order; /* 0: the row is free; else they came in this order */
	uint64_t client, first;
	uint64_t replied, idled; /* numbers in the journal; 0: not so */
	uint32_t len;
	bool is_sent, is_slim, is_running;
	uint8_t frame[LIVE_REQUEST_BYTES]; /* without content, if is_slim */
};

struct live;

/* Makes the file, or takes up what is there if it fits. */
int live_open(const char *path, struct live **ret, struct err *err);
/* NULL does nothing. */
void live_close(struct live *l);

/* All of these do nothing, or return NULL, where l is NULL or its rows are used up. */
void live_took(struct live *l, const struct jmsg *m, uint64_t number, uint64_t to);
struct live_client *live_client(struct live *l, uint64_t number, const char *session_id);
struct live_request *live_request(struct live *l, const struct jmsg *m, uint64_t client);
void live_request_free(struct live_request *row);
void live_acked(struct live *l, enum channel channel, const char *msg_id);

/* What an earlier gateway left. */
uint64_t live_hash(const struct jmsg *m);
struct live_entry *live_entries(struct live *l); /* LIVE_ENTRIES of them */
struct live_client *live_clients(struct live *l);
struct live_request *live_requests(struct live *l);
const char *live_acked_id(const struct live *l, enum channel channel);
uint64_t live_last_client(const struct live *l);

#endif
