#include "history/lanes.h"

#include <stdio.h>

/* Under the lock. */
static void give_back(struct histories *h, struct asking *asking)
{
	list_append(&h->askings_done, &asking->link);
	(void)uv_async_send(&h->async); /* cannot fail: neither lane has ended while this runs */
}

/* Under the lock: it is written, and nobody is left who could answer. */
static void give_up(struct histories *h, struct asking *asking)
{
	asking->status = err_set(&asking->err, E_UNAVAILABLE,
		"the history %s is written and is listed when the gateway is there again",
		asking->made);
	give_back(h, asking);
}

void adoption_add(struct histories *h, struct asking *asking)
{
	/* The answer of an import is the id. */
	(void)copy_text(asking->made, sizeof asking->made, (const char *)asking->json.data,
		asking->json.len);
	pthread_mutex_lock(&h->lock);
	if (h->record_ended) {
		give_up(h, asking);
	} else {
		list_append(&h->adoptions, &asking->link);
		pthread_cond_signal(&h->record_wake);
	}
	pthread_mutex_unlock(&h->lock);
}

bool adoptions_wait(const struct histories *h)
{
	return !list_empty(&h->adoptions);
}

/* The bulk lane tells what has come of it. */
static void ask_again(struct histories *h, struct asking *asking)
{
	asking->question.what = HISTORY_ONE;
	asking->question.history = asking->made;
	buf_done(&asking->json);
	if (h->ask_ended) {
		give_up(h, asking);
		return;
	}
	list_append(&h->askings, &asking->link);
	pthread_cond_signal(&h->ask_wake);
}

void adoptions_turn(struct histories *h)
{
	pthread_mutex_lock(&h->lock);
	while (!list_empty(&h->adoptions)) {
		struct asking *asking = CONTAINER_OF(h->adoptions.next, struct asking, link);
		list_remove(&asking->link);
		pthread_mutex_unlock(&h->lock);
		asking->status = recorder_adopt(h->recorder, asking->made, &asking->err);
		if (asking->status != 0)
			err_wrap(&asking->err, "the history %s is written and cannot be listed yet",
				asking->made);
		else
			keeper_note(h->keeper, asking->made);
		pthread_mutex_lock(&h->lock);
		if (asking->status == 0)
			ask_again(h, asking);
		else
			give_back(h, asking);
	}
	pthread_mutex_unlock(&h->lock);
}
