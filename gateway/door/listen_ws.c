#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "gateway/door/listen_parts.h"
#include "gateway/door/tcp_position.h"

_Static_assert(OUTBOX_HEADROOM >= LWS_PRE, "lws_write() wants room before the data");

/* In one call with the note of it (live.h). Nothing of an earlier block waits in lws. What does not
 * go, or fails, lws meets itself. */
static size_t send_at_once(struct conn *c, uint8_t *data, size_t len, struct mmsghdr *out)
{
	struct iovec part = {.iov_base = data, .iov_len = len};
	out->msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
	int n = sendmmsg(lws_get_socket_fd(c->wsi), out, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	out->msg_hdr = (struct msghdr){0};
	return n == 1 ? out->msg_len : 0;
}

/* The block holds whole WebSocket frames already, so lws passes it on as it is. */
static int carrier_write(void *wire, uint8_t *data, size_t len, struct mmsghdr *out)
{
	struct conn *c = wire;
	size_t sent = out && !lws_is_ssl(c->wsi) ? send_at_once(c, data, len, out) : 0;
	if (sent == len)
		return 0;
	return lws_write(c->wsi, data + sent, len - sent, LWS_WRITE_HTTP) < 0 ? -1 : 0;
}

static bool carrier_busy(void *wire)
{
	struct conn *c = wire;
	return lws_partial_buffered(c->wsi) != 0;
}

static void carrier_want_writable(void *wire)
{
	struct conn *c = wire;
	(void)lws_callback_on_writable(c->wsi); /* it cannot be refused for a socket that lives */
}

/* By the timeout, since a callback's -1 closes twice in builds of lws with _DEBUG, such as
 * Debian's, and the second time before the close frame went out. */
static void carrier_close(void *wire, unsigned code, const char *reason)
{
	struct conn *c = wire;
	unsigned char text[128];
	size_t len = strlen(reason) < sizeof text ? strlen(reason) : sizeof text;
	memcpy(text, reason, len);
	lws_close_reason(c->wsi, (enum lws_close_status)code, text, len);
	lws_set_timeout(c->wsi, PENDING_TIMEOUT_CLOSE_SEND, LWS_TO_KILL_SYNC);
}

static void carrier_cut(void *wire)
{
	struct conn *c = wire;
	lws_set_timeout(c->wsi, PENDING_TIMEOUT_CLOSE_SEND, LWS_TO_KILL_ASYNC);
}

static bool carrier_positions(void *wire, uint64_t *ret_acked, uint64_t *ret_unacked)
{
	struct conn *c = wire;
	return tcp_position(lws_get_socket_fd(c->wsi), ret_acked, ret_unacked);
}

static const struct carrier carrier = {
	.write = carrier_write,
	.busy = carrier_busy,
	.want_writable = carrier_want_writable,
	.close = carrier_close,
	.cut = carrier_cut,
	.positions = carrier_positions,
};

/* What lws would hang up on without an answer. */
static int check_handshake(struct conn *c, struct err *err)
{
	char version[8] = "";
	if (http_check_text(c, err) != 0)
		return E_INVALID;
	if (c->r->method != METHOD_GET || c->r->head)
		return err_set(err, E_METHOD, "a WebSocket begins with GET");
	if (lws_hdr_copy(c->wsi, version, sizeof version, WSI_TOKEN_VERSION) <= 0 ||
		strcmp(version, "13") != 0)
		return err_set(err, E_INVALID, "only version 13 of WebSocket is spoken here");
	if (lws_hdr_total_length(c->wsi, WSI_TOKEN_HOST) <= 0)
		return err_set(err, E_INVALID, "the request has no Host");
	int key = lws_hdr_total_length(c->wsi, WSI_TOKEN_KEY);
	if (key < 16 || key > 64)
		return err_set(err, E_INVALID, "no proper Sec-WebSocket-Key");
	char connection[64] = "";
	if (lws_hdr_copy(c->wsi, connection, sizeof connection, WSI_TOKEN_CONNECTION) <= 0 ||
		!strcasestr(connection, "upgrade"))
		return err_set(err, E_INVALID, "Connection does not name the upgrade");
	return 0;
}

/* Taking the word out of the header makes lws go on with plain HTTP: the answer is then written
 * like any other. So it is with upgrades that we do not know (h2c), which HTTP lets a server
 * ignore. */
int ws_confirm(struct conn *c, char *in)
{
	struct socket_setup setup = {0};
	struct err err = {0};
	bool websocket = strcasecmp(in, "websocket") == 0;
	if (!http_read_request(c)) {
		in[0] = '\0';
		return 0;
	}
	if (websocket && check_handshake(c, &err) == 0 && channels_admit(c->r, &setup, &err) == 0)
		return 0;
	in[0] = '\0';
	if (!websocket) {
		call_free(TAKE(c->r));
		return 0;
	}
	c->r->close = true;
	answer_error(c->r, &err);
	return 0;
}

/* Asked for again: the kernel is the same, this being the same turn of the loop. */
int ws_established(struct conn *c)
{
	struct err err = {0};
	struct call *r = TAKE(c->r);
	struct socket_setup setup = {.carrier = &carrier, .wire = c};
	int status = E_INVALID;
	if (r) {
		status = channels_admit(r, &setup, &err);
		if (status == 0)
			status = socket_open(c->door, &setup, &c->socket, &err);
		if (status == 0)
			log_info(&c->socket->log,
				"socket_opened owner=%s session=%s protocol=%s agent=\"%s\"",
				r->owner->name, setup.session_id ? setup.session_id : "-",
				setup.framing == FRAMING_V1 ? "v1" : "legacy",
				r->header[HEADER_USER_AGENT] ? r->header[HEADER_USER_AGENT] : "-");
		call_free(r);
	}
	if (status == 0)
		return 0;
	log_warn(&c->door->log, "socket_refused reason=\"%s\"", err.text);
	return -1;
}

int ws_receive(struct conn *c, struct bytes data)
{
	struct piece piece = {
		.data = data,
		.binary = lws_frame_is_binary(c->wsi) != 0,
		.first = lws_is_first_fragment(c->wsi) != 0,
		.final = lws_is_final_fragment(c->wsi) != 0,
	};
	if (c->socket)
		socket_receive(c->socket, &piece);
	return 0;
}

int ws_writable(struct conn *c)
{
	if (c->socket)
		socket_wake(c->socket);
	return 0;
}

void ws_gone(struct conn *c)
{
	struct socket *s = TAKE(c->socket);
	if (!s)
		return;
	log_info(&s->log, "socket_closed bytes_out=%llu", (unsigned long long)s->sent.total);
	socket_free(s);
}
