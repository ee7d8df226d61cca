#include "gateway/spine/input.h"

#include <string.h>

#include "gateway/spine/desk.h"

void input_asked(struct request *r, const struct jmsg *input_request)
{
	live_request_free(r->desk->live, TAKE(r->input));
	if (r->row)
		r->row->asks = live_hash(input_request);
}

/* Many clients name the question as the parent, some the request, some nothing. */
static bool answers(const struct request *r, const struct jmsg *m, uint64_t client)
{
	if (!r->row || r->row->asks == 0)
		return false;
	if (!*m->parent_id)
		return r->client == client;
	return live_hash_of(m->parent_id, CHANNEL_STDIN) == r->row->asks ||
	       strcmp(m->parent_id, r->msg->msg_id) == 0;
}

/* The first one counts: the kernel throws away what else comes. */
void input_keep(struct desk *d, const struct jmsg *m, uint64_t client)
{
	LIST_EACH (at, &d->requests.all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		if (!answers(r, m, client))
			continue;
		if (!r->input)
			r->input = live_input(d->live, m, client, r->row);
		return;
	}
}

static struct request *find_asker(const struct desk *d, const struct live_request *row)
{
	LIST_EACH (at, &d->requests.all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		if (r->row && r->row->order == row->of && r->is_sent && !r->input)
			return r;
	}
	return NULL;
}

void input_restore(struct desk *d, struct live_request *row)
{
	struct request *r = find_asker(d, row);
	if (r)
		r->input = row;
	else
		live_request_free(d->live, row);
}

void input_send_again(const struct request *r)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct bytes frame = {.data = r->input->frame, .len = r->input->len};
	struct err err;
	if (frame.len > sizeof r->input->frame || jmsg_from_frame(frame, &m, &err) != 0 ||
		m->channel != CHANNEL_STDIN)
		return;
	if (kernel_send(r->desk->kernel, m, &err) != 0)
		log_warn(&r->desk->log, "input_not_sent_again error=\"%s\"", err.text);
}
