/* One run of code in a turn, and the record that is made of it. Owned by its turn. Loop thread. */
#ifndef COPPICE_ADAPTER_ATTEMPT_H
#define COPPICE_ADAPTER_ATTEMPT_H

#include "frontend-adapter/collect.h"
#include "frontend-adapter/conversation.h"
#include "frontend-adapter/prepare.h"
#include "frontend-adapter/run_log.h"

struct attempt {
	struct prepared is;
	struct collect result;
	struct cJSON *restored;	  /* {restored_by, report} of the way to where it began, or NULL */
	struct cJSON *notes;	  /* [sentence], what one should know beside; NULL: nothing */
	struct model_usage usage; /* of the answer that it came from */
	unsigned number;	  /* from 1 */
	bool runs;
	int64_t started_us;
	uint64_t place_ms;	/* waited for a place for its kernel */
	struct run_facts facts; /* what comes late is told while it is recorded */
	char record[UUID_SIZE]; /* id of its record */
	struct run_log *log;	/* all that it prints */
	char repairs[UUID_SIZE], repairs_msg_id[UUID_SIZE]; /* the one that failed, or "" */
};

void attempt_init(struct attempt *a, const struct collect_sink *sink);
void attempt_done(struct attempt *a);
/* The next one, of that code, which is taken; repairs: in the place of the one before, which
 * failed.
 */
void attempt_next(struct attempt *a, struct prepared *code, bool repairs);
/* It begins, now. */
void attempt_begin(struct attempt *a, const struct conversation *c);
/* Caller owns. */
struct cJSON *attempt_record(
	const struct attempt *a, const struct conversation *c, const struct chat_outcome *outcome);
/* "ename: evalue" without a terminal's colours; NULL: it did not fail. Caller frees. E_NOMEM. */
int attempt_error(const struct attempt *a, char **ret, struct err *err);
void attempt_note(struct attempt *a, const char *sentence);
/* The code ended itself on purpose: SystemExit, without a word or with 0. */
bool attempt_ended_early(const struct attempt *a);
/* It was interrupted: nothing is to be mended. */
bool attempt_was_interrupted(const struct attempt *a);
struct cJSON *usage_tree(const struct model_usage *u);

#endif
