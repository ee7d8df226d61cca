#include "history/lanes.h"

#include <string.h>

#include "history/import.h"

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

void adoption_add(struct histories *h, struct asking *asking, struct importing *im)
{
	(void)copy_text(asking->made, sizeof asking->made, import_id(im), strlen(import_id(im)));
	asking->nodes = import_nodes(im);
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

static struct asking *first(struct histories *h)
{
	struct asking *asking = NULL;
	pthread_mutex_lock(&h->lock);
	if (adoptions_wait(h))
		asking = CONTAINER_OF(h->adoptions.next, struct asking, link);
	pthread_mutex_unlock(&h->lock);
	return asking; /* only we take it off */
}

/* So few rows that nobody waits for it; then what waits to be recorded is. */
void adoptions_turn(struct histories *h)
{
	struct asking *asking = first(h);
	if (!asking)
		return;
	const struct adopting a = {.history = asking->made,
		.nodes = (const struct imported_node *)(const void *)asking->nodes.data,
		.n = asking->nodes.len / sizeof(struct imported_node)};
	asking->status = recorder_adopt(h->recorder, &a, &asking->adopted, &asking->err);
	if (asking->status == 0 && asking->adopted < a.n)
		return;
	if (asking->status != 0)
		err_wrap(&asking->err, "the history %s is written and cannot be listed yet",
			asking->made);
	else
		keeper_note(h->keeper, asking->made);
	pthread_mutex_lock(&h->lock);
	list_remove(&asking->link);
	if (asking->status == 0)
		ask_again(h, asking);
	else
		give_back(h, asking);
	pthread_mutex_unlock(&h->lock);
}
