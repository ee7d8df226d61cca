/* Everything that is no execution: messages of clients on their way in, messages of the kernel on
 * their way to whom they are for. Loop thread. */
#ifndef COPPICE_SPINE_RELAY_H
#define COPPICE_SPINE_RELAY_H

#include "gateway/base/jmsg.h"

struct desk;
struct request;

/* From a client; borrowed. E_NOMEM: it can be neither carried nor answered. */
int relay_from_client(struct desk *d, uint64_t client, struct jmsg *m, struct err *err);
/* From the kernel; borrowed. */
void relay_from_kernel(struct desk *d, struct jmsg *m);
/* Answers a kernel_info_request from the kept reply, then says the present status. False: there is
 * no kept reply. The request is gone if true. */
bool relay_answer_info(struct request *r);
/* A complete_request or inspect_request whose cursor_pos lies outside its code gets the nearest
 * position inside: kernels do not answer otherwise. *ret is m itself (referenced) or a new one. */
int relay_clamp_cursor(struct jmsg *m, struct jmsg **ret, struct err *err);
/* Parent types that move neither status nor last_activity (wire-contract 1.11). */
bool relay_is_untracked(const char *msg_type);

#endif
