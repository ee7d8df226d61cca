/* Inside of a turn: its struct, and what its files share. */
#ifndef COPPICE_ADAPTER_TURN_PARTS_H
#define COPPICE_ADAPTER_TURN_PARTS_H

#include "frontend-adapter/attempt.h"
#include "frontend-adapter/back.h"
#include "frontend-adapter/place.h"
#include "frontend-adapter/prompt.h"
#include "gateway/base/sm.h"

enum turn_state { TURN_BEGUN, TURN_ASKING, TURN_RUNNING, TURN_EXPLAINING, TURN_OVER, TURN_STATES };

struct turn {
	struct conversation *c; /* NULL: it is gone */
	struct sm sm;
	struct cJSON *messages;		 /* for the model; NULL: it is not asked */
	const struct cJSON *question;	 /* the one among them that is being answered */
	struct prompt_left_out left_out; /* of what was said, not told to the model */
	struct model_call *call;
	struct buf text;	  /* of the answer that is coming */
	struct buf said;	  /* all of the answer's text */
	struct attempt attempt;	  /* what runs, or ran last */
	struct cJSON *tried;	  /* codes and errors so far: none of them is worth another try */
	struct model_usage usage; /* of all answers */
	struct place_wait *place; /* a kernel of it waits for one */
	struct back_wait *back;	  /* it goes to where the repair begins */
	double timeout_s;	  /* of the code, as chat_run's */
	uint64_t place_since_ms;
	struct chat_outcome outcome; /* of the run, while its pictures are scaled */
	char status[16];	     /* of it */
	unsigned settling;	     /* what is waited for: they, the end of its log */
	bool untold;		     /* memory was out: what the model said is not all told */
	unsigned repairs;
	bool failed; /* the last run did */
	char *error; /* of it, if the kernel told one */
	bool stopped;
	struct timer flush; /* of what was printed */
	struct timer step;  /* from begun, and to the end: never within the call */
};

static inline struct clock *turn_clock(const struct turn *t)
{
	return t->c->chats->setup.clock;
}

/* {key: text} */
struct cJSON *turn_text(const char *key, const char *text);
void turn_notice(struct turn *t, const char *text);
/* It ends: told, saved, freed. err: what it failed for, or NULL. */
void turn_over(struct turn *t, const struct err *err);
void turn_free(struct turn *t);

#endif
