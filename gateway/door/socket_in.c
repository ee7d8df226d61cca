#include <stdio.h>

#include "gateway/door/head.h"
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

static void forget_dropped(struct socket *s)
{
	if (s->dropped)
		head_done(s->dropped);
	free(s->dropped);
	s->dropped = NULL;
}

/* A message over the limit is dropped, not the socket, as long as that can be said. */
static void tell_dropped(struct socket *s)
{
	char text[160];
	struct entry *e = NULL;
	AUTO(jmsg_unrefp) struct jmsg *head = NULL;
	struct bytes parent = {0};
	(void)snprintf(text, sizeof text,
		"coppice: a message of more than %lld bytes was not taken (option message_limit)\n",
		(long long)s->door->gw->config.message_limit); /* fits */
	if (head_message(s->dropped, &head, NULL) == 0)
		parent = head->part[PART_HEADER];
	s->door->counters.kept_back++;
	int status = say_stream(socket_session(s), parent, text, 0, &e, NULL);
	if (status != 0 || !socket_notice(s, e) || (head && refuse_request(s, head, text) != 0))
		socket_close(s, CLOSE_TOO_BIG, text, false);
	socket_wake(s);
}

static void drop_message(struct socket *s)
{
	s->dropped = xcalloc(1, sizeof *s->dropped);
	head_init(s->dropped, s->framing);
	head_add(s->dropped, (struct bytes){s->in.data, s->in.len});
	buf_done(&s->in);
}

void socket_in_done(struct socket *s)
{
	forget_dropped(s);
	buf_done(&s->in); /* an idle socket holds no buffer */
}

static void message_ended(struct socket *s, bool binary)
{
	if (s->dropped)
		tell_dropped(s);
	else
		take_message(s, (struct bytes){s->in.data, s->in.len}, binary);
	socket_in_done(s);
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
	if (piece->first)
		socket_in_done(s); /* nothing is there, unless the carrier is at fault */
	if (piece->first && piece->final && piece->data.len <= s->in.max) {
		take_message(s, piece->data, piece->binary);
		return;
	}
	int status = 0;
	if (!s->dropped)
		status = buf_add(&s->in, piece->data.data, piece->data.len);
	if (status == E_NOMEM) {
		socket_close(s, CLOSE_TROUBLE, "out of memory", false);
		return;
	}
	if (status != 0)
		drop_message(s);
	if (s->dropped)
		head_add(s->dropped, piece->data);
	if (piece->final)
		message_ended(s, piece->binary);
}
