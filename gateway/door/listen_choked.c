/* Who sends requests and does not read the answers. While an answer cannot be written lws 4.1 reads
 * nothing, but goes on asking whether there is something to read, and so wakes the loop without
 * end. So its reading is stopped as long as the line is full. Stopped, it does not look at
 * writability either, though it wakes the loop; hence the line is asked once per turn. */
#include <poll.h>

#include "gateway/door/listen_parts.h"

/* A line that broke counts: lws meets the error itself. */
static bool can_write(struct conn *c)
{
	struct pollfd line = {.fd = lws_get_socket_fd(c->wsi), .events = POLLOUT};
	return poll(&line, 1, 0) != 0;
}

/* For a reason of our own, so that it does not undo `held`; it cannot fail for one that lives. */
static void set_reading(struct conn *c, bool on)
{
	int what = on ? LWS_RXFLOW_REASON_APPLIES_ENABLE : LWS_RXFLOW_REASON_APPLIES_DISABLE;
	(void)lws_rx_flow_control(c->wsi,
		what | LWS_RXFLOW_REASON_HTTP_RXBUFFER | LWS_RXFLOW_REASON_FLAG_PROCESS_NOW);
	(void)lws_callback_on_writable(c->wsi);
}

void choked_look(struct conn *c)
{
	if (list_empty(&c->choked) && (lws_partial_buffered(c->wsi) || !can_write(c)))
		list_append(&c->door->choked, &c->choked);
}

void choked_turn(struct door *d)
{
	LIST_EACH_SAFE (at, &d->choked) {
		struct conn *c = CONTAINER_OF(at, struct conn, choked);
		bool on = can_write(c);
		if (on == c->stopped)
			set_reading(c, on);
		c->stopped = !on;
		if (on && !lws_partial_buffered(c->wsi))
			list_remove(at);
	}
}
