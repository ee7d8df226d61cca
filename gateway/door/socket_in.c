#include <stdio.h>

#include "gateway/door/say.h"
#include "gateway/door/socket_parts.h"

static void take_message(struct socket *s, struct bytes data, bool binary)
{
	struct err err = {0};
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct inbound in = {s->framing, binary, data};
	s->door->counters.messages_in++;
	int status = decode_message(&in, &m, &err);
	if (status != 0) {
		s->door->counters.bad_messages++;
		socket_close(s, decode_close_code(status), err.text, false);
		return;
	}
	if (client_receive(s->client, m, &err) != 0)
		socket_close(s, CLOSE_POLICY, err.text, false);
}

/* The request gets an end, so that its cell does not stay [*] for ever. */
static int refuse_request(struct socket *s, const struct jmsg *request, const char *text)
{
	struct entry *reply = NULL, *idle = NULL;
	int status = say_refusal(socket_session(s), request, text, &reply, NULL);
	if (status == E_INVALID)
		return 0; /* no request, no reply */
	if (status == 0)
		status = say_idle(socket_session(s), request, &idle, NULL);
	bool ok = socket_notice(s, reply);
	ok = socket_notice(s, idle) && ok;
	return ok ? status : E_TOO_BIG;
}

/* A message over the limit is dropped, not the socket, as long as that can be said. */
static void drop_message(struct socket *s, bool binary)
{
	char text[160];
	struct entry *e = NULL;
	AUTO(jmsg_unrefp) struct jmsg *head = NULL;
	struct inbound in = {s->framing, binary, {s->in.data, s->in.len}};
	struct bytes parent = {0};
	(void)snprintf(text, sizeof text,
		"coppice: a message of more than %lld bytes was not taken (option message_limit)\n",
		(long long)s->door->gw->config.message_limit); /* fits */
	if (decode_head(&in, &head, NULL) == 0)
		parent = head->part[PART_HEADER];
	s->door->counters.kept_back++;
	s->in_dropped = true;
	int status = say_stream(socket_session(s), parent, text, 0, &e, NULL);
	if (status != 0 || !socket_notice(s, e) || (head && refuse_request(s, head, text) != 0))
		socket_close(s, CLOSE_TOO_BIG, text, false);
	buf_done(&s->in);
	socket_wake(s);
}

static bool deaf(const struct socket *s)
{
	return !s->client || s->close_code != 0;
}

void socket_receive(struct socket *s, const struct piece *piece)
{
	socket_heard(s);
	s->door->counters.bytes_in += piece->data.len;
	if (deaf(s))
		return;
	if (piece->first) {
		buf_reset(&s->in);
		s->in_dropped = false;
		if (piece->final && piece->data.len <= s->in.max) {
			take_message(s, piece->data, piece->binary);
			return;
		}
	}
	if (s->in_dropped)
		return;
	int status = buf_add(&s->in, piece->data.data, piece->data.len);
	if (status == E_NOMEM)
		socket_close(s, CLOSE_TROUBLE, "out of memory", false);
	else if (status != 0)
		drop_message(s, piece->binary);
	else if (piece->final)
		take_message(s, (struct bytes){s->in.data, s->in.len}, piece->binary);
	if (piece->final)
		buf_done(&s->in); /* an idle socket holds no buffer */
}
