/* What a gateway that is killed leaves in memory for the next one: a mapped file beside a kernel's
 * journal, whose pages outlive the process. Per entry its message's id as a hash, since the journal
 * is written a little behind; per client its cursor; the requests that are open; what the kernel
 * was told that it may forget. Blocks only at the opening. Owned by a desk. Loop thread. */
#ifndef COPPICE_SPINE_LIVE_H
#define COPPICE_SPINE_LIVE_H

#include <sys/socket.h>

#include "gateway/base/jmsg.h"

#define LIVE_CLIENTS	   128u
#define LIVE_BLOCK	   64u /* rows of requests are made by so many, as they are needed */
#define LIVE_BLOCKS	   160u
#define LIVE_ENTRIES	   16384u /* more than are ever unwritten, of usual size */
#define LIVE_REQUEST_BYTES (16u << 10)

struct live_entry {
	uint64_t number, to, hash;
};

struct live_client {
	uint64_t number; /* 0: the row is free */
	uint64_t next;	 /* it has everything before this */
	/* While a block is written: how long it is, and `next` once all of it went. How much went
	 * the system notes in out.msg_len within the call that sends: whoever has read the block
	 * may kill us before we have noted anything. */
	uint64_t block, after;
	struct mmsghdr out;
	char session_id[JMSG_ID_MAX];
};

struct live_request {
	uint64_t order; /* 0: the row is free; else they came in this order */
	uint64_t client, first;
	uint64_t replied, idled; /* numbers in the journal; 0: not so */
	uint32_t len;
	uint8_t is_sent, is_slim, is_running; /* 0 or not: what a damaged file holds is no bool */
	uint8_t is_private;		      /* what we answered was for its client alone */
	uint8_t is_timed_out;		      /* its deadline came */
	uint32_t answer_len; /* of our reply's content, which is behind frame[len] */
	uint64_t busied;
	uint64_t
		noted; /* number of the entry that ends its stretch for history; 0: there is none */
	uint64_t ended;	     /* by us: number of the last that we said for it; 0: not so */
	int64_t deadline_us; /* by the wall clock; 0: it may take as long as it likes */
	uint64_t asks; /* hash of the input_request that its cell waits at; 0: it asked nothing */
	uint64_t of;   /* the row is an input_reply, to the request of that order; 0: a request */
	/* Without content, if is_slim. The last, so that a small one uses one page of the row. */
	uint8_t frame[LIVE_REQUEST_BYTES];
};

struct live;

/* Makes the file, or takes up what is there if it fits. */
int live_open(const char *path, struct live **ret, struct err *err);
/* NULL does nothing. */
void live_close(struct live *l);

/* All of these do nothing, or return NULL, where l is NULL or its rows are used up. Rows of
 * requests are used up when the disk is: the file grows for them, which blocks. */
void live_took(struct live *l, const struct jmsg *m, uint64_t number, uint64_t to);
struct live_client *live_client(struct live *l, uint64_t number, const char *session_id);
/* Before a block is written, by sendmmsg with what is returned: then it has all before `after`. */
struct mmsghdr *live_client_writes(struct live_client *row, uint64_t after, size_t block);
void live_client_wrote(struct live_client *row, uint64_t next);
/* It has everything before this, whenever its gateway was killed. */
uint64_t live_client_had(const struct live_client *row);
struct live_request *live_request(struct live *l, const struct jmsg *m, uint64_t client);
/* The answer to what `of` asks. NULL also: it is too long. */
struct live_request *live_input(
	struct live *l, const struct jmsg *m, uint64_t client, const struct live_request *of);
void live_request_free(struct live *l, struct live_request *row);
/* We answered it, with number as the last: no kernel says that again, so the row stays until the
 * journal is written so far. It is not the caller's any more. content: of our reply; NULL: as it
 * is. */
void live_request_ended(
	struct live *l, struct live_request *row, uint64_t number, const char *content);
/* Its end is noted in the journal under that number: the row stays until the file is so far.
 * in_line: it stays already. It is not the caller's any more. */
void live_request_noted(struct live *l, struct live_request *row, uint64_t number, bool in_line);
void live_written(struct live *l, uint64_t last);
/* The content of our reply. Caller frees; NULL: it had no room. */
char *live_answer(const struct live_request *row);
/* One more request has no row, or (change -1) one of these has ended. */
void live_unkept(struct live *l, int change);
void live_acked(struct live *l, enum channel channel, const char *msg_id);
/* A restart was asked for: what was in flight is said to be aborted, so it is to be carried out,
 * whoever does it. Until the kernel is ready again. */
void live_restarts(struct live *l, bool restarts);

/* What an earlier gateway left. */
uint64_t live_hash(const struct jmsg *m);
uint64_t live_hash_of(const char *msg_id, enum channel channel);
struct live_entry *live_entries(struct live *l); /* LIVE_ENTRIES of them */
struct live_client *live_clients(struct live *l);
/* Row i of the requests; NULL: there are fewer. */
struct live_request *live_request_at(struct live *l, size_t i);
/* How many requests without a row were open; it is 0 then. */
uint64_t live_take_unkept(struct live *l);
const char *live_acked_id(const struct live *l, enum channel channel);
uint64_t live_last_client(const struct live *l);
/* What history has of the kernel, and which process of it that is. */
void live_recorded(struct live *l, uint64_t number);
uint64_t live_recorded_to(const struct live *l);
/* Nothing is left in it of requests that have ended. */
void live_wipe(struct live *l);
void live_epoch(struct live *l, uint64_t epoch);
uint64_t live_epoch_of(const struct live *l);
bool live_is_restarting(const struct live *l);
/* A kernel is killed since a cell's time is up: what follows is to be carried out likewise. */
void live_kills(struct live *l, bool kills);
bool live_is_killed(const struct live *l);

#endif
