#include "gateway/spine/queue.h"

#include <assert.h>
#include <string.h>

#include "gateway/spine/desk.h"
#include "gateway/spine/moves.h"
#include "gateway/spine/notice.h"
#include "gateway/spine/relay.h"

static struct lane *lane_of(struct queue *q, const char *subshell_id)
{
	struct lane *lane;
	HASH_FIND_STR(q->lanes, subshell_id, lane);
	if (lane)
		return lane;
	lane = xcalloc(1, sizeof *lane);
	lane->subshell_id = xstrdup(subshell_id);
	list_init(&lane->held);
	HASH_ADD_KEYPTR(hh, q->lanes, lane->subshell_id, strlen(lane->subshell_id), lane);
	return lane;
}

static void lane_release(struct queue *q, struct lane *lane)
{
	if (lane->n_requests > 0 || lane->pumping)
		return;
	assert(!lane->running && list_empty(&lane->held));
	HASH_DEL(q->lanes, lane);
	free(lane->subshell_id);
	free(lane);
}

void queue_done(struct queue *q)
{
	assert(!q->lanes);
	(void)q;
}

static bool is_info(const struct request *r)
{
	return strcmp(r->msg->msg_type, "kernel_info_request") == 0;
}

static void go(struct desk *d, struct lane *lane, struct request *r)
{
	struct err err;
	if (r->x) {
		lane->running = r->x;
		r->x->free_lane = true;
		execution_step(r->x);
		return;
	}
	bool is_known = queue_busy(&d->queue) || relay_info_is_fresh(d);
	if (is_info(r) && is_known && relay_answer_info(r))
		return;
	if (request_send(r, &err) == 0)
		return;
	AUTO(freep) char *content = notice_error_content(err_ename(err.code), err.text);
	request_end(r, content, JOURNAL_TO_ALL);
}

/* Sends from the lane's head up to an execute that must wait. What it sends may fail and end at
 * once, which comes back here: then the outer loop goes on. */
static void pump(struct desk *d, struct lane *lane)
{
	if (lane->pumping)
		return;
	lane->pumping = true;
	while (d->open && !list_empty(&lane->held)) {
		struct request *r = CONTAINER_OF(lane->held.next, struct request, held);
		if (r->x && lane->running)
			break;
		list_remove(&r->held);
		go(d, lane, r);
	}
	lane->pumping = false;
	lane_release(&d->queue, lane);
}

void queue_push(struct desk *d, struct request *r)
{
	struct lane *lane = lane_of(&d->queue, r->msg->subshell_id);
	r->lane = lane;
	lane->n_requests++;
	if (r->x) {
		r->x->queue_position = lane->n_executions++;
		execution_step(r->x);
	}
	list_append(&lane->held, &r->held);
	pump(d, lane);
}

void queue_restore(struct desk *d, struct request *r)
{
	struct lane *lane = lane_of(&d->queue, r->msg->subshell_id);
	r->lane = lane;
	lane->n_requests++;
	if (!r->x)
		return;
	lane->n_executions++;
	execution_step(r->x);
	lane->running = r->x;
	r->x->free_lane = true;
	execution_step(r->x);
}

static struct request *first_held_info(const struct lane *lane)
{
	LIST_EACH (at, &lane->held) {
		struct request *r = CONTAINER_OF(at, struct request, held);
		if (is_info(r))
			return r;
	}
	return NULL;
}

/* A kernel that was taken up amid a cell: a page that came back before it was asks what it is, and
 * would wait for all cells that are held. */
static void answer_infos(struct lane *lane)
{
	bool pumping = lane->pumping;
	lane->pumping = true;
	for (struct request *r; (r = first_held_info(lane)) && relay_answer_info(r);)
		;
	lane->pumping = pumping;
}

void queue_open(struct desk *d)
{
	struct lane *next;
	for (struct lane *lane = d->queue.lanes; lane; lane = next) {
		next = lane->hh.next; /* an emptied lane goes */
		if (queue_busy(&d->queue))
			answer_infos(lane);
		pump(d, lane);
	}
}

static struct request *first_held_execute(const struct lane *lane)
{
	LIST_EACH (at, &lane->held) {
		struct request *r = CONTAINER_OF(at, struct request, held);
		if (r->x)
			return r;
	}
	return NULL;
}

static void abort_held(struct lane *lane)
{
	bool pumping = lane->pumping;
	lane->pumping = true;
	for (struct request *r; (r = first_held_execute(lane));)
		request_end(r, NOTICE_ABORTED, JOURNAL_TO_ALL);
	lane->pumping = pumping;
}

void queue_left(struct desk *d, struct request *r, bool stops)
{
	struct lane *lane = r->lane;
	if (!lane)
		return;
	list_remove(&r->held);
	lane->n_requests--;
	lane->n_executions -= r->x ? 1 : 0;
	if (r->x && lane->running == r->x)
		lane->running = NULL;
	if (stops)
		abort_held(lane);
	if (r->x)
		move_cell_over(d, r);
	pump(d, lane);
}

bool queue_busy(const struct queue *q)
{
	return queue_running(q) != NULL;
}

struct execution *queue_running(const struct queue *q)
{
	struct execution *first = NULL;
	for (struct lane *lane = q->lanes; lane; lane = lane->hh.next) {
		struct execution *x = lane->running;
		if (x && x->request && (!first || x->first < first->first))
			first = x;
	}
	return first;
}
