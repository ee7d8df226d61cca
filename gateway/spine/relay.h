/* Everything that is no execution: messages of clients on their way in, messages of the kernel on
 * their way to whom they are for. Loop thread. */
#ifndef COPPICE_SPINE_RELAY_H
#define COPPICE_SPINE_RELAY_H

#include "gateway/base/jmsg.h"

struct desk;
struct request;
struct answered;

/* From a client; borrowed. E_NOMEM: it can be neither carried nor answered. */
int relay_from_client(struct desk *d, uint64_t client, struct jmsg *m, struct err *err);
/* From the kernel; borrowed. */
void relay_from_kernel(struct desk *d, struct jmsg *m);
/* Answers a kernel_info_request from the kept reply, then says the present status. False: there is
 * no kept reply. The request is gone if true. */
bool relay_answer_info(struct request *r);
/* Nobody has asked the kernel anything since it said what it is, moments ago: asking it again would
 * keep a page waiting that holds its first cell until it knows. */
bool relay_info_is_fresh(const struct desk *d);
/* Answers a request that proves to be a second copy of an answered one. It is gone then. */
void relay_answer_again(struct request *r, const struct answered *a);
/* A complete_request or inspect_request whose cursor_pos lies outside its code gets the nearest
 * position inside: kernels do not answer otherwise. *ret is m itself (referenced) or a new one. */
int relay_clamp_cursor(struct jmsg *m, struct jmsg **ret, struct err *err);
#define REPEATS_MAX 64u

/* What its client asked a second time while the kernel was taken over. Embedded in a desk. */
struct repeats {
	struct {
		struct jmsg *msg;
		uint64_t client;
	} of[REPEATS_MAX];
	size_t n;
};

/* Answers them. */
void relay_repeats(struct desk *d);
void repeats_done(struct repeats *repeats);
/* Parent types that move neither status nor last_activity (wire-contract 1.11). */
bool relay_is_untracked(const char *msg_type);

#endif
