#include <stdio.h>
#include <string.h>

#include "gateway/door/encode.h"
#include "gateway/door/say.h"
#include "gateway/door/socket_parts.h"

#define TURN_BYTES  (1u << 20) /* one socket's share of a loop turn */
#define NOTICES_MAX 32
#define SLACK_BYTES 128 /* pongs since socket_base() */
#define WRAP_BYTES  512 /* what the legacy form adds to a message, beside its ids */

struct notice {
	struct list link;
	struct entry *entry;
};

bool socket_notice(struct socket *s, struct entry *e)
{
	if (!e)
		return true;
	if (s->n_notices == NOTICES_MAX) {
		entry_unref(e);
		return false;
	}
	struct notice *n = xcalloc(1, sizeof *n);
	n->entry = e;
	list_append(&s->notices, &n->link);
	s->n_notices++;
	return true;
}

static struct entry *pop_notice(struct socket *s)
{
	struct notice *n = CONTAINER_OF(s->notices.next, struct notice, link);
	struct entry *e = n->entry;
	list_remove(&n->link);
	s->n_notices--;
	free(n);
	return e;
}

const char *socket_session(const struct socket *s)
{
	return s->session ? s->session : "coppice";
}

static void keep_session(struct socket *s, const struct jmsg *m)
{
	if (m->session[0] == '\0' || (s->session && strcmp(s->session, m->session) == 0))
		return;
	free(s->session);
	s->session = xstrdup(m->session);
}

/* ---- what the peer has ---- */

void socket_base(struct socket *s)
{
	uint64_t acked = 0, unacked = 0;
	if (s->carrier->busy(s->wire) || !s->carrier->positions(s->wire, &acked, &unacked))
		return;
	s->base = acked + unacked - s->sent.total;
	s->based = true;
}

/* While the carrier is busy a part of our last block is not in TCP's count yet. */
uint64_t socket_unacked(const struct socket *s)
{
	uint64_t acked = 0, unacked = 0;
	bool known = s->carrier->positions(s->wire, &acked, &unacked);
	if (!known)
		unacked = OUTBOX_SIZE;
	if (!s->carrier->busy(s->wire))
		return unacked;
	uint64_t waiting = s->sent.total + s->base - (acked + unacked);
	if (!known || !s->based || waiting > OUTBOX_SIZE)
		waiting = OUTBOX_SIZE;
	return unacked + waiting + SLACK_BYTES;
}

uint64_t socket_first_undelivered(struct socket *s)
{
	uint64_t unacked = socket_unacked(s);
	if (unacked > s->unacked_max)
		unacked = s->unacked_max;
	uint64_t first = delivery_first(&s->sent, unacked);
	return first == 0 && s->entry ? s->entry->number : first;
}

void socket_detach(struct socket *s)
{
	struct client *client = TAKE(s->client);
	if (client)
		client_detach(client, socket_first_undelivered(s));
}

/* ---- the next message ---- */

void socket_drop_outgoing(struct socket *s)
{
	while (!list_empty(&s->notices))
		entry_unref(pop_notice(s));
	if (s->entry)
		entry_unref(s->entry);
	s->entry = NULL;
	buf_done(&s->text);
}

/* In the place of a message that this client's program would choke on: for an answer an answer, so
 * that its request ends, and for all of them a line to read. */
static struct entry *substitute(struct socket *s, struct entry *e)
{
	char text[JMSG_ID_MAX + 160];
	const struct jmsg *m = e->msg;
	struct entry *line = NULL, *reply = NULL;
	s->door->counters.kept_back++;
	(void)snprintf(text, sizeof text,
		"coppice: a %s message of %zu bytes was kept back: this client takes at most %u "
		"bytes\n",
		m->msg_type, m->frame.len, CAPPED_MAX); /* fits */
	int status =
		say_stream(socket_session(s), m->part[PART_PARENT], text, e->number, &line, NULL);
	if (status == 0 && m->channel != CHANNEL_IOPUB && m->channel != CHANNEL_STDIN)
		status = say_reply(socket_session(s), m, text, e->number, &reply, NULL);
	if (status != 0)
		socket_close(s, CLOSE_TROUBLE, "out of memory", false);
	entry_unref(e);
	if (!reply)
		return line;
	if (line)
		(void)socket_notice(s, reply); /* too many: the line says it */
	return line ? line : reply;
}

static bool told(struct socket *s)
{
	struct door *d = s->door;
	for (unsigned i = 0; i < DOOR_TOLD; i++)
		if (d->told[i] == s->who)
			return true;
	d->told[d->told_next] = s->who;
	d->told_next = (d->told_next + 1) % DOOR_TOLD;
	return false;
}

/* See docs/decisions/0003: the proxy decodes what it gets as UTF-8 text and the page then parses it
 * as JSON, so bytes cannot pass; the message without them still can. */
static int text_only(struct socket *s, const struct entry *e, struct err *err)
{
	struct entry *line = NULL;
	int status = encode_text(e->msg, &s->text, err);
	if (status != 0)
		return status;
	s->payload = (struct bytes){s->text.data, s->text.len};
	s->binary = false;
	if (!told(s) &&
		say_stream(socket_session(s), e->msg->part[PART_PARENT],
			"coppice: binary data of widgets cannot pass `jupyter lab --gateway-url`: "
			"its "
			"proxy takes text only. Connect the page to Coppice directly to see it.\n",
			0, &line, NULL) == 0)
		(void)socket_notice(s, line); /* too many: it is said another time */
	return 0;
}

static int prepare(struct socket *s, struct err *err)
{
	struct outbound out;
	struct entry *e = s->entry;
	s->at = 0;
	if ((s->traits & TRAIT_NO_BINARY) && e->msg->n_buffers > 0)
		return text_only(s, e, err);
	int status = encode_entry(e, s->framing, &out, err);
	if (status != 0)
		return status;
	s->payload = out.data;
	s->binary = out.binary;
	return 0;
}

/* The legacy form says both ids once more; a character of them may take six there. */
static bool is_too_large(const struct socket *s, const struct jmsg *m)
{
	size_t ids = 6 * (strlen(m->msg_id) + strlen(m->msg_type));
	return (s->traits & TRAIT_CAPPED) && m->frame.len + WRAP_BYTES + ids > CAPPED_MAX;
}

static bool pull(struct socket *s)
{
	struct err err = {0};
	struct entry *e = NULL;
	if (!list_empty(&s->notices))
		e = pop_notice(s);
	else if (!s->client || client_next(s->client, &e) != 1)
		return false;
	keep_session(s, e->msg);
	if (is_too_large(s, e->msg))
		e = substitute(s, e);
	s->entry = e;
	if (e && prepare(s, &err) == 0)
		return true;
	socket_close(s, CLOSE_TROUBLE, e ? err.text : "out of memory", false);
	return false;
}

static void entry_sent(struct socket *s)
{
	uint64_t end = s->sent.total + s->door->out.len;
	if (delivery_full(&s->sent))
		delivery_trim(&s->sent, socket_unacked(s));
	if (s->entry->number != 0)
		delivery_ended(&s->sent, s->entry->number, end);
	entry_unref(s->entry);
	s->entry = NULL;
	buf_done(&s->text);
	s->door->counters.messages_out++;
}

/* True: the block is full and there is more. */
static bool fill(struct socket *s)
{
	struct outbox *out = &s->door->out;
	if (s->ping_due && (!s->entry || s->at == 0))
		s->ping_due = !outbox_add_ping(out);
	while (!s->mute && (s->entry || pull(s))) {
		enum opcode opcode = s->binary ? OPCODE_BINARY : OPCODE_TEXT;
		size_t took = outbox_add(out, opcode, s->payload, s->at);
		if (took == 0)
			return true;
		s->at += took;
		if (s->at == s->payload.len)
			entry_sent(s);
	}
	return false;
}

static int write_block(struct socket *s)
{
	struct outbox *out = &s->door->out;
	size_t len = out->len;
	out->len = 0;
	if (len == 0)
		return 0;
	s->sent.total += len;
	s->door->counters.bytes_out += len;
	struct mmsghdr *note =
		s->client ? client_writes(s->client, s->entry ? s->entry->number : 0, len) : NULL;
	return s->carrier->write(s->wire, outbox_data(out), len, note);
}

/* The next writes go on from here when there is room again. */
static bool must_wait(struct socket *s, uint64_t from)
{
	if (s->carrier->busy(s->wire))
		return true;
	if (s->sent.total - from < TURN_BYTES)
		return false;
	s->carrier->want_writable(s->wire);
	return true;
}

/* All that was to be said was said, or is not to be said any more; not so while the rest is still
 * being read from the journal's file. At the door's end the client is let go of when the
 * carrier is gone: a peer that answers the close has read what came before it, though TCP may not
 * have acknowledged it yet. Before that nobody is to wait for a peer that may never answer. */
static void end(struct socket *s)
{
	if (s->close_code == 0 || s->carrier->busy(s->wire))
		return;
	if (!s->mute && s->client && client_waits(s->client))
		return;
	if (!s->door->closing)
		socket_detach(s);
	s->unacked_max = socket_unacked(s);
	s->peer_closed = true;
	s->carrier->close(s->wire, s->close_code, s->close_reason);
}

/* All that was handed to the carrier is in the system's hands: it arrives without us too. */
static void wrote(struct socket *s)
{
	if (s->client && !s->carrier->busy(s->wire))
		client_wrote(s->client, s->entry ? s->entry->number : 0);
}

void socket_pull(struct socket *s)
{
	uint64_t from = s->sent.total;
	bool more = true;
	if (s->peer_closed || s->carrier->busy(s->wire))
		return;
	wrote(s); /* what it was busy with until now */
	if (!s->based)
		socket_base(s);
	while (more) {
		more = fill(s);
		if (write_block(s) != 0) {
			s->peer_closed = true;
			s->carrier->cut(s->wire);
			return;
		}
		wrote(s);
		if (more && must_wait(s, from))
			return;
	}
	end(s);
}
