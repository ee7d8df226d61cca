/* A socket of the door between a carrier and a spine that are both scripted; included by
 * test_socket.c. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#include "gateway/door/socket.h"
#include "tests/lib/fake_clock.c"

#define WIRE_MAX (64u << 20)

struct client {
	struct client_socket side;
	struct entry *waiting[2048];
	size_t head, count;
	struct jmsg *received; /* the last one */
	unsigned n_received;
	bool detached, reads_file;
	uint64_t undelivered; /* as told at the detach */
};

struct fixture {
	struct gateway gw;
	struct door door;
	struct client client;
	struct socket *s;
	/* the wire */
	struct buf wire; /* what was written */
	bool busy, cut, wanted;
	unsigned close_code;
	uint64_t acked, unacked;
	size_t looked; /* how far messages were read */
};

/* ---- the spine ---- */

const char *desk_id(const struct desk *d)
{
	(void)d;
	return "kernel-1";
}

static struct client *client_of(struct desk *d)
{
	return &((struct fixture *)(void *)d)->client;
}

int client_attach(struct desk *d, const char *session_id, const struct client_socket *socket,
	struct client **ret, struct err *err)
{
	(void)session_id, (void)err;
	*ret = client_of(d);
	(*ret)->side = *socket;
	return 0;
}

void client_detach(struct client *c, uint64_t first_undelivered)
{
	assert_false(c->detached);
	c->detached = true;
	c->undelivered = first_undelivered;
}

int client_receive(struct client *c, struct jmsg *m, struct err *err)
{
	if (strcmp(m->msg_type, "forbidden_request") == 0)
		return err_set(err, E_FORBIDDEN, "not this");
	jmsg_unref(c->received);
	c->received = jmsg_ref(m);
	c->n_received++;
	return 0;
}

int client_next(struct client *c, struct entry **ret)
{
	assert_false(c->detached);
	if (c->head == c->count || c->reads_file)
		return 0;
	*ret = c->waiting[c->head++];
	return 1;
}

struct mmsghdr *client_writes(struct client *c, uint64_t unsent, size_t block)
{
	(void)c, (void)unsent, (void)block;
	return NULL;
}

void client_wrote(struct client *c, uint64_t unsent)
{
	(void)c, (void)unsent;
}

bool client_waits(const struct client *c)
{
	return c->head < c->count;
}

void door_wake(struct door *d)
{
	(void)d;
}

void door_socket_gone(struct door *d)
{
	(void)d;
}

/* ---- the wire ---- */

static int wire_write(void *wire, uint8_t *data, size_t len, struct mmsghdr *out)
{
	(void)out;
	struct fixture *f = wire;
	memset(data - OUTBOX_HEADROOM, 0xee, OUTBOX_HEADROOM);
	assert_int_equal(buf_add(&f->wire, data, len), 0);
	f->unacked += len;
	return 0;
}

static bool wire_busy(void *wire)
{
	return ((struct fixture *)wire)->busy;
}

static void wire_want_writable(void *wire)
{
	((struct fixture *)wire)->wanted = true;
}

static void wire_close(void *wire, unsigned code, const char *reason)
{
	assert_true(strlen(reason) <= 123);
	((struct fixture *)wire)->close_code = code;
}

static void wire_cut(void *wire)
{
	((struct fixture *)wire)->cut = true;
}

static bool wire_positions(void *wire, uint64_t *ret_acked, uint64_t *ret_unacked)
{
	struct fixture *f = wire;
	*ret_acked = f->acked;
	*ret_unacked = f->unacked;
	return true;
}

static const struct carrier carrier = {
	wire_write, wire_busy, wire_want_writable, wire_close, wire_cut, wire_positions};

static void acknowledge(struct fixture *f, uint64_t bytes)
{
	f->acked += bytes;
	f->unacked -= bytes;
}

/* ---- a fixture ---- */

static struct fixture *setup(enum framing framing, unsigned traits)
{
	struct fixture *f = xcalloc(1, sizeof *f);
	f->gw.clock = clock_new(NULL);
	f->gw.config.message_limit = 4096;
	f->gw.config.ws_ping_interval = 30000;
	f->gw.config.ws_ping_timeout = 90000;
	f->door.gw = &f->gw;
	f->acked = 129; /* the handshake */
	list_init(&f->door.sockets);
	list_init(&f->door.ready);
	outbox_init(&f->door.out);
	buf_init(&f->wire, WIRE_MAX);
	struct socket_setup how = {(struct desk *)(void *)f, "S", framing, traits, &carrier, f};
	assert_int_equal(socket_open(&f->door, &how, &f->s, NULL), 0);
	return f;
}

static void teardown(struct fixture *f)
{
	if (f->s)
		socket_free(f->s);
	while (f->client.head < f->client.count)
		entry_unref(f->client.waiting[f->client.head++]);
	jmsg_unref(f->client.received);
	outbox_done(&f->door.out);
	buf_done(&f->wire);
	clock_close(f->gw.clock, NULL, NULL);
	free(f);
}

static void pull(struct fixture *f)
{
	while (!list_empty(&f->door.ready)) {
		struct list *at = f->door.ready.next;
		list_remove(at);
		socket_pull(CONTAINER_OF(at, struct socket, ready));
	}
}

struct says {
	enum channel channel;
	const char *type;
	size_t text_len; /* of content.text */
	size_t n_buffers;
};

static void journal(struct fixture *f, const struct says *says)
{
	static const uint8_t bytes[] = {0xff, 0xfe};
	const struct bytes buffers[] = {{bytes, 2}, {bytes, 1}};
	struct buf content;
	struct jmsg *made = NULL, *m = NULL;
	struct jmsg_source source = {.channel = says->channel, .buffers = buffers};
	buf_init(&content, WIRE_MAX);
	assert_int_equal(buf_add_text(&content, "{\"text\":\""), 0);
	for (size_t i = 0; i < says->text_len; i++)
		assert_int_equal(buf_add(&content, "z", 1), 0);
	assert_int_equal(buf_add_text(&content, "\"}"), 0);
	assert_int_equal(jmsg_make(says->channel, says->type, "kernel-session", NULL,
				 (const char *)content.data, &made, NULL),
		0);
	for (unsigned i = 0; i < JMSG_PARTS; i++)
		source.part[i] = made->part[i];
	static const char parent[] = "{\"msg_id\":\"asked\",\"msg_type\":\"x_request\"}";
	source.part[PART_PARENT] = (struct bytes){(const uint8_t *)parent, sizeof parent - 1};
	source.n_buffers = says->n_buffers;
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	f->client.waiting[f->client.count] = entry_new(m, f->client.count + 1, JOURNAL_TO_ALL);
	f->client.count++;
	jmsg_unref(made);
	jmsg_unref(m);
	buf_done(&content);
	f->client.side.on_readable(f->client.side.data);
}

static void stream(struct fixture *f, size_t text_len)
{
	journal(f, &(struct says){CHANNEL_IOPUB, "stream", text_len, 0});
}

/* ---- what came over the wire: frames back into messages ---- */

/* The next frame; returns its first byte, payload in *ret. -1: none. */
static int next_frame(struct fixture *f, struct bytes *ret)
{
	const uint8_t *at = f->wire.data + f->looked;
	if (f->looked == f->wire.len)
		return -1;
	size_t len = at[1], head = 2;
	if (len >= 126) {
		size_t digits = len == 126 ? 2 : 8;
		len = 0;
		for (size_t i = 0; i < digits; i++)
			len = len << 8 | at[2 + i];
		head += digits;
	}
	*ret = (struct bytes){at + head, len};
	f->looked += head + len;
	assert_true(f->looked <= f->wire.len);
	return at[0];
}

static struct jmsg *next_message(struct fixture *f, bool *ret_binary)
{
	struct buf whole;
	struct bytes piece;
	struct jmsg *m = NULL;
	int first;
	buf_init(&whole, WIRE_MAX);
	do {
		first = next_frame(f, &piece);
		if (first < 0) {
			buf_done(&whole);
			return NULL;
		}
		if ((first & 0x0f) != 0)
			*ret_binary = (first & 0x0f) == OPCODE_BINARY;
		assert_int_equal(buf_add(&whole, piece.data, piece.len), 0);
	} while (!(first & 0x80));
	/* decode refuses iopub, since clients do not send there: put shell in its place. */
	char *channel = memmem(whole.data, whole.len, "\"channel\":\"iopub\"", 17);
	if (channel)
		memcpy(channel, "\"channel\":\"shell\"", 17);
	struct inbound in = {FRAMING_LEGACY, *ret_binary, {whole.data, whole.len}};
	assert_int_equal(decode_message(&in, &m, NULL), 0);
	buf_done(&whole);
	return m;
}

static void expect(struct fixture *f, const char *type, const char *in_content)
{
	bool binary = false;
	struct jmsg *m = next_message(f, &binary);
	if (!m)
		fail_msg("no %s came", type);
	assert_string_equal(m->msg_type, type);
	if (in_content)
		assert_non_null(memmem(m->part[PART_CONTENT].data, m->part[PART_CONTENT].len,
			in_content, strlen(in_content)));
	jmsg_unref(m);
}

static void send_text(struct fixture *f, const char *text, bool first, bool final)
{
	struct piece piece = {{(const uint8_t *)text, strlen(text)}, false, first, final};
	socket_receive(f->s, &piece);
}

#define REQUEST(type) "{\"header\":{\"msg_id\":\"m\",\"msg_type\":\"" type "\"},\"content\":{}}"
