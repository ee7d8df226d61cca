#include "gateway/door/chat_back.h"

#include <string.h>

#include "gateway/door/chat_client.h"
#include "gateway/gateway.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/limits.h"
#include "gateway/spine/moves.h"
#include "gateway/spine/owners.h"

#define LOOK_MS 50u

struct wanted {
	struct timer timer;
	struct gateway *gw;
	struct chat_back back;
	char owner[sizeof(((struct owner *)NULL)->name)];
	char kernel_id[UUID_SIZE], msg_id[UUID_SIZE];
};

/* It ran out of time, and what was done for that has led back already. */
static bool is_there(const struct desk *d, const char *msg_id)
{
	const struct execution *x = execution_find(d, msg_id);
	return x && x->timed_out && *x->before && strcmp(d->stands, x->before) == 0;
}

/* Where it stands is told by what ran last: if somebody else ran something since, what they did is
 * not thrown away. */
static int check(const struct desk *d, const char *msg_id, struct err *err)
{
	if (strcmp(d->stands, msg_id) == 0)
		return 0;
	if (!*d->stands)
		return err_set(err, E_STALE, "the kernel was started anew since");
	return err_set(err, E_STALE, "something else ran in the kernel since");
}

/* From the loop. While the kernel of a run that had to be killed goes back by itself that is waited
 * for: it is bounded, as each of its steps is. */
static void on_turn(struct timer *t)
{
	/* What is lost is named in the record; without the state before nothing would be won. */
	static const struct move_order order = {.state_version = -1, .accept = FIDELITY_PARTIAL};
	struct wanted *w = CONTAINER_OF(t, struct wanted, timer);
	const struct chat_back back = w->back;
	struct desk *d = NULL;
	struct err err;
	int rc = chat_client_find(w->gw, w->owner, w->kernel_id, &d, &err);
	if (rc == 0 && limit_holds(d)) {
		timer_start(w->gw->clock, &w->timer, LOOK_MS);
		return;
	}
	bool there = rc == 0 && is_there(d, w->msg_id);
	if (rc == 0 && !there)
		rc = check(d, w->msg_id, &err);
	free(w);
	if (rc != 0 || there)
		back.cb(back.data, NULL, rc != 0 ? &err : NULL);
	else
		desk_checkout(d, &order, back.cb, back.data);
}

void chat_back(void *gateway, const struct chat_back *back)
{
	struct wanted *w = xcalloc(1, sizeof *w);
	w->gw = gateway;
	w->back = *back;
	/* A token's name and two uuids: all fit. */
	(void)copy_text(w->owner, sizeof w->owner, back->owner, strlen(back->owner));
	(void)copy_text(
		w->kernel_id, sizeof w->kernel_id, back->kernel_id, strlen(back->kernel_id));
	(void)copy_text(w->msg_id, sizeof w->msg_id, back->msg_id, strlen(back->msg_id));
	timer_init(&w->timer, on_turn);
	timer_start(w->gw->clock, &w->timer, 0);
}
