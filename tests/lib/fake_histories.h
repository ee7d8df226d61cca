/* A recorder that reads what it is given and keeps it in memory, for flow tests of the spine. Its
 * answers come when the test says so. */
#ifndef COPPICE_FAKE_HISTORIES_H
#define COPPICE_FAKE_HISTORIES_H

#include "gateway/base/jmsg.h"
#include "gateway/spine/scribe.h"

struct fake_run {
	struct jmsg *request, *end;
	unsigned n_between;
	uint64_t epoch, after_version;
	char name[64], wanted[64], at[HISTORY_NODE_SIZE], branch[64];
};

struct histories *fake_histories_new(void);
void fake_histories_free(struct histories *h);
/* Answers the oldest run that waits, if one does: status 0 keeps it. */
void fake_histories_answer(struct histories *h, int status);
/* Answers the last question, with NULL as not found. False: there is none that waits. */
bool fake_histories_tell(struct histories *h, const char *json);
bool fake_histories_refuse(struct histories *h, int code);
const struct history_question *fake_histories_asked(const struct histories *h);
/* The node that is to be forgotten, NULL if none is. It is found, as a run of that kernel. */
const char *fake_histories_forgets(const struct histories *h);
void fake_histories_found(struct histories *h, const char *kernel_id, const char *msg_id);
/* The rest was asked for; then it is done, or failed where json is NULL. */
bool fake_histories_forgets_rest(const struct histories *h);
void fake_histories_forgot(struct histories *h, const char *json);
/* What was asked about contents is answered, until nothing is left; not while it is held. What was
 * kept is not lacking; a content that begins with "bad" is refused. */
void fake_histories_work(struct histories *h);
void fake_histories_hold(struct histories *h, bool hold);
/* "NAME=TEXT " for each that was kept, oldest first. */
const char *fake_histories_kept(const struct histories *h);
size_t fake_histories_n(const struct histories *h);
size_t fake_histories_waiting(const struct histories *h);
const struct fake_run *fake_histories_run(const struct histories *h, size_t i);

#endif
