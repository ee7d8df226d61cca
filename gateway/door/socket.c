#include "gateway/door/socket.h"

#include <stdio.h>
#include <string.h>

#include "gateway/door/socket_parts.h"

#define CLOSE_PATIENCE_MS 10000
#define REASON_MAX	  123 /* of a close frame, in bytes */

static void on_readable(void *data)
{
	struct socket *s = data;
	socket_wake(s);
}

static void on_close(void *data, unsigned code, const char *reason)
{
	struct socket *s = data;
	socket_close(s, code, reason, true);
}

static uint64_t undelivered(void *data)
{
	struct socket *s = data;
	return socket_first_undelivered(s);
}

/* Code 1000, so that a page that lives on does not take the session back from its successor. */
static void on_replaced_late(struct timer *t)
{
	struct socket *s = CONTAINER_OF(t, struct socket, patience);
	socket_close(s, CLOSE_NORMAL, "a newer connection of this session took over", false);
}

static void on_replaced(void *data)
{
	struct socket *s = data;
	s->client = NULL;
	s->mute = true;
	if (s->close_code != 0)
		return; /* it is patient already */
	s->patience.fire = on_replaced_late;
	timer_start(s->door->gw->clock, &s->patience, CLOSE_PATIENCE_MS);
}

static void on_patience(struct timer *t)
{
	struct socket *s = CONTAINER_OF(t, struct socket, patience);
	s->carrier->cut(s->wire);
}

/* A ping waits for the end of the message that is under way: until then the peer lives as long as
 * it takes bytes of that. */
static void look_at_progress(struct socket *s)
{
	uint64_t acked = 0, unacked = 0;
	if (!s->carrier->positions(s->wire, &acked, &unacked))
		return;
	if (s->ping_due && acked > s->acked)
		socket_heard(s);
	s->acked = acked;
}

/* A peer that answers nothing for ws_ping_timeout is gone. Only pings that were sent count, so that
 * a machine which slept is asked first. */
static void on_ping(struct timer *t)
{
	struct socket *s = CONTAINER_OF(t, struct socket, ping);
	const struct config *config = &s->door->gw->config;
	look_at_progress(s);
	if (s->unanswered * config->ws_ping_interval >= config->ws_ping_timeout) {
		socket_close(s, CLOSE_TROUBLE, "no answer to pings", false);
		return;
	}
	s->unanswered++;
	s->ping_due = true;
	socket_base(s);
	socket_wake(s);
	timer_start(s->door->gw->clock, t, (uint64_t)config->ws_ping_interval);
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return h;
}

static void init(struct socket *s, struct door *d, const struct socket_setup *setup)
{
	s->door = d;
	s->carrier = setup->carrier;
	s->wire = setup->wire;
	s->framing = setup->framing;
	s->traits = setup->traits;
	s->unacked_max = UINT64_MAX;
	s->who = hash_text(UINT64_C(0xcbf29ce484222325), desk_id(setup->desk));
	s->who = hash_text(s->who, setup->session_id ? setup->session_id : "");
	log_child(&s->log, &d->log, "kernel", desk_id(setup->desk));
	list_init(&s->link);
	list_init(&s->ready);
	list_init(&s->notices);
	buf_init(&s->in, (size_t)d->gw->config.message_limit);
	buf_init(&s->text, (size_t)JMSG_FRAME_MAX + JMSG_FRAME_MAX / 2);
	delivery_init(&s->sent);
	timer_init(&s->ping, on_ping);
	timer_init(&s->patience, on_patience);
}

int socket_open(
	struct door *d, const struct socket_setup *setup, struct socket **ret, struct err *err)
{
	struct socket *s = xcalloc(1, sizeof *s);
	init(s, d, setup);
	list_append(&d->sockets, &s->link);
	d->counters.sockets++;
	d->counters.sockets_opened++;
	struct client_socket side = {
		.on_readable = on_readable,
		.on_close = on_close,
		.on_replaced = on_replaced,
		.undelivered = undelivered,
		.data = s,
	};
	int status = client_attach(setup->desk, setup->session_id, &side, &s->client, err);
	if (status != 0) {
		socket_free(s);
		return status;
	}
	socket_wake(s); /* on_readable may have come before there was a client */
	if (d->gw->config.ws_ping_interval > 0)
		timer_start(d->gw->clock, &s->ping, (uint64_t)d->gw->config.ws_ping_interval);
	*ret = s;
	return 0;
}

void socket_free(struct socket *s)
{
	struct door *d = s->door;
	socket_detach(s);
	socket_drop_outgoing(s);
	timer_stop(d->gw->clock, &s->ping);
	timer_stop(d->gw->clock, &s->patience);
	socket_in_done(s);
	delivery_done(&s->sent);
	free(s->session);
	free(s->close_reason);
	list_remove(&s->ready);
	list_remove(&s->link);
	d->counters.sockets--;
	free(s);
	door_socket_gone(d);
}

void socket_wake(struct socket *s)
{
	if (!list_empty(&s->ready))
		return;
	list_append(&s->door->ready, &s->ready);
	door_wake(s->door);
}

void socket_heard(struct socket *s)
{
	s->unanswered = 0;
}

void socket_peer_closed(struct socket *s)
{
	s->peer_closed = true;
	s->unacked_max = socket_unacked(s);
}

/* Close reasons are UTF-8 and short; ours are plain text, but may quote what a client sent. */
static char *plain_reason(const char *reason)
{
	char text[REASON_MAX + 1];
	(void)copy_text(text, sizeof text, reason, strlen(reason)); /* cut is fine */
	for (char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return xstrdup(text);
}

void socket_close(struct socket *s, unsigned code, const char *reason, bool flush)
{
	if (s->close_code != 0)
		return;
	s->close_code = code;
	s->close_reason = plain_reason(reason ? reason : "");
	s->mute = s->mute || !flush;
	timer_stop(s->door->gw->clock, &s->ping);
	s->patience.fire = on_patience;
	timer_start(s->door->gw->clock, &s->patience, CLOSE_PATIENCE_MS);
	log_info(&s->log, "socket_closing code=%u reason=\"%s\"", code, s->close_reason);
	socket_wake(s);
}
