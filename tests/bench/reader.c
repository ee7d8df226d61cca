/* Reads what a kernel sends as fast as a program can, and says what came: in a flood the reader
 * must not be what is measured. It counts lines, since a gateway may join the texts of several
 * messages. reader ws FD v1|legacy MSG_ID         a WebSocket that is open and upgraded reader zmq
 * ADDRESS MSG_ID [PUBLIC SECRET]   a SUB of its own, CURVE keys as Z85 Prints "up" once it reads
 * (zmq: once a first message came); at the idle of MSG_ID, or after QUIET_MS without any message,
 * one JSON object. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cjson/cJSON.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "gateway/base/base.h"

#define QUIET_MS   15000
#define LATE_MS	   1000
#define CHUNK	   (256u << 10)
#define ZMQ_PARTS  64
#define JMSG_IOPUB "iopub"

struct seen {
	const char *msg_id;			    /* of the request */
	unsigned long messages, lines, bytes, late; /* late: lines after the idle */
	double first, last; /* seconds, of what the cell printed or showed */
	bool idle, up;
};

struct ws {
	int fd;
	bool v1;
	uint8_t *data;
	size_t len, at, size;
	/* Pieces of a message that came in several frames; together they lie before `at`. */
	size_t joined, joined_len;
	unsigned opcode;
};

static double now(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool holds(struct bytes b, const char *text)
{
	return memmem(b.data, b.len, text, strlen(text)) != NULL;
}

/* True if the value of that member, a text that needs no escapes, is `wanted`. */
static bool is(struct bytes json, const char *member, const char *wanted)
{
	char name[64];
	int n = snprintf(name, sizeof name, "\"%s\"", member);
	const uint8_t *p = memmem(json.data, json.len, name, (size_t)n),
		      *end = json.data + json.len;
	if (!p)
		return false;
	p += n;
	while (p < end && (*p == ':' || *p == ' '))
		p++;
	size_t len = strlen(wanted);
	return (size_t)(end - p) >= len + 2 && p[0] == '"' && memcmp(p + 1, wanted, len) == 0 &&
	       p[len + 1] == '"';
}

static unsigned long count_lines(struct bytes content)
{
	unsigned long n = 0;
	const uint8_t *p = content.data, *end = p + content.len;
	while ((p = memchr(p, '\\', (size_t)(end - p))) && p + 1 < end) {
		n += p[1] == 'n';
		p += 2;
	}
	return n;
}

static void came(struct seen *s, struct bytes header, struct bytes parent, struct bytes content)
{
	s->up = true;
	if (!holds(parent, s->msg_id))
		return;
	if (is(header, "msg_type", "status")) {
		s->idle = s->idle || is(content, "execution_state", "idle");
		return;
	}
	bool stream = is(header, "msg_type", "stream");
	if (!(stream && is(content, "name", "stdout")) && !is(header, "msg_type", "display_data"))
		return;
	s->last = now();
	if (s->messages++ == 0)
		s->first = s->last;
	s->bytes += content.len;
	unsigned long lines = stream ? count_lines(content) : 1;
	s->lines += lines;
	s->late += s->idle ? lines : 0;
}

/* ---- WebSocket ---- */

static uint64_t little(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v); /* the machines that this runs on are little-endian */
	return v;
}

static void came_v1(struct seen *s, struct bytes body)
{
	struct bytes part[5];
	for (size_t i = 0; i < 5; i++) {
		uint64_t from = little(body.data + 8 + 8 * i), to = little(body.data + 16 + 8 * i);
		if (to > body.len || from > to)
			exit(3);
		part[i] = (struct bytes){body.data + from, to - from};
	}
	if (bytes_equal(part[0], JMSG_IOPUB))
		came(s, part[1], part[2], part[4]);
}

static char *print(const cJSON *tree, const char *member, struct bytes *ret)
{
	char *json = cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, member));
	*ret = (struct bytes){(uint8_t *)json, json ? strlen(json) : 0};
	return json;
}

static void came_legacy(struct seen *s, struct bytes body)
{
	cJSON *tree = cJSON_ParseWithLength((const char *)body.data, body.len);
	const char *channel = cJSON_GetStringValue(cJSON_GetObjectItem(tree, "channel"));
	struct bytes header, parent, content;
	if (channel && strcmp(channel, JMSG_IOPUB) == 0) {
		char *h = print(tree, "header", &header),
		     *p = print(tree, "parent_header", &parent);
		char *c = print(tree, "content", &content);
		came(s, header, parent, content);
		free(h);
		free(p);
		free(c);
	}
	cJSON_Delete(tree);
}

/* False: no whole frame is there. */
static bool frame(const struct ws *w, size_t *ret_head, size_t *ret_len)
{
	const uint8_t *p = w->data + w->at;
	size_t have = w->len - w->at;
	if (have < 2)
		return false;
	size_t len = p[1] & 0x7f, extra = len == 126 ? 2 : len == 127 ? 8 : 0;
	if (have < 2 + extra)
		return false;
	if (extra)
		len = 0;
	for (size_t i = 0; i < extra; i++)
		len = len << 8 | p[2 + i];
	*ret_head = 2 + extra;
	*ret_len = len;
	return have >= 2 + extra + len;
}

static void pong(const struct ws *w, struct bytes body)
{
	uint8_t out[6 + 125] = {0x8a, (uint8_t)(0x80 | body.len)}; /* the mask is zeros */
	if (body.len > 125)
		exit(3);
	memcpy(out + 6, body.data, body.len);
	if (send(w->fd, out, 6 + body.len, MSG_NOSIGNAL) < 0)
		exit(3);
}

/* A frame that is not the whole message: its body is moved to those before it. True: that was the
 * last one, *ret_body is all of it. */
static bool join(struct ws *w, unsigned opcode, bool last, struct bytes *ret_body)
{
	if (opcode != 0) {
		w->opcode = opcode;
		w->joined = (size_t)(ret_body->data - w->data);
		w->joined_len = 0;
	}
	memmove(w->data + w->joined + w->joined_len, ret_body->data, ret_body->len);
	w->joined_len += ret_body->len;
	*ret_body = (struct bytes){w->data + w->joined, w->joined_len};
	if (last)
		w->joined_len = 0;
	return last;
}

static void message(struct ws *w, struct seen *s, unsigned opcode, struct bytes body)
{
	if (opcode == 2 && w->v1)
		came_v1(s, body);
	else if (opcode == 1 && !w->v1)
		came_legacy(s, body);
}

/* What was taken goes, but not what is joined already. */
static void compact(struct ws *w)
{
	size_t keep = w->joined_len;
	memmove(w->data, w->data + w->joined, keep);
	memmove(w->data + keep, w->data + w->at, w->len - w->at);
	w->len = w->len - w->at + keep;
	w->at = keep;
	w->joined = 0;
}

static bool take_frames(struct ws *w, struct seen *s)
{
	size_t head, len;
	while (frame(w, &head, &len)) {
		bool last = w->data[w->at] & 0x80;
		unsigned opcode = w->data[w->at] & 15;
		struct bytes body = {w->data + w->at + head, len};
		w->at += head + len;
		if (opcode == 8)
			return false;
		if (opcode == 9)
			pong(w, body);
		else if (opcode != 0 && last)
			message(w, s, opcode, body);
		else if (opcode <= 2 && join(w, opcode, last, &body))
			message(w, s, w->opcode, body);
	}
	compact(w);
	return true;
}

static void read_ws(struct ws *w, struct seen *s)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};
	int one = 1;
	puts("up");
	(void)fflush(stdout);
	while (poll(&p, 1, s->idle ? LATE_MS : QUIET_MS) > 0) {
		if (w->size - w->len < CHUNK) {
			w->size = 2 * w->size + 2 * CHUNK;
			w->data = realloc(w->data, w->size);
			if (!w->data)
				exit(4);
		}
		(void)setsockopt(w->fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);
		ssize_t n = recv(w->fd, w->data + w->len, w->size - w->len, 0);
		if (n <= 0)
			return;
		w->len += (size_t)n;
		if (!take_frames(w, s))
			return;
	}
}

/* ---- ZeroMQ ---- */

static bool take_zmq(void *sub, struct seen *s)
{
	zmq_msg_t m[ZMQ_PARTS];
	struct bytes b[ZMQ_PARTS];
	int n = 0, at = 0;
	do {
		(void)zmq_msg_init(&m[n]);
		if (zmq_msg_recv(&m[n], sub, 0) < 0)
			return false;
		b[n] = (struct bytes){zmq_msg_data(&m[n]), zmq_msg_size(&m[n])};
	} while (zmq_msg_more(&m[n++]) && n < ZMQ_PARTS);
	while (at < n && !bytes_equal(b[at], "<IDS|MSG>"))
		at++;
	if (at + 5 < n)
		came(s, b[at + 2], b[at + 3], b[at + 5]);
	for (int i = 0; i < n; i++)
		(void)zmq_msg_close(&m[i]);
	return true;
}

static bool read_zmq(int argc, char **argv, struct seen *s)
{
	void *sub = zmq_socket(zmq_ctx_new(), ZMQ_SUB);
	int none = 0, quiet = QUIET_MS, late = LATE_MS;
	(void)zmq_setsockopt(sub, ZMQ_RCVHWM, &none, sizeof none);
	(void)zmq_setsockopt(sub, ZMQ_RCVTIMEO, &quiet, sizeof quiet);
	(void)zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "", 0);
	if (argc == 6) {
		(void)zmq_setsockopt(sub, ZMQ_CURVE_PUBLICKEY, argv[4], 40);
		(void)zmq_setsockopt(sub, ZMQ_CURVE_SERVERKEY, argv[4], 40);
		(void)zmq_setsockopt(sub, ZMQ_CURVE_SECRETKEY, argv[5], 40);
	}
	if (zmq_connect(sub, argv[2]) < 0 || !take_zmq(sub, s))
		return false;
	puts("up");
	(void)fflush(stdout);
	while (take_zmq(sub, s))
		if (s->idle)
			(void)zmq_setsockopt(sub, ZMQ_RCVTIMEO, &late, sizeof late);
	return true;
}

int main(int argc, char **argv)
{
	struct seen s = {0};
	if (argc == 5 && strcmp(argv[1], "ws") == 0) {
		struct ws w = {
			.fd = (int)strtol(argv[2], NULL, 10), .v1 = strcmp(argv[3], "v1") == 0};
		s.msg_id = argv[4];
		read_ws(&w, &s);
		free(w.data);
	} else if (argc >= 4 && strcmp(argv[1], "zmq") == 0) {
		s.msg_id = argv[3];
		if (!read_zmq(argc, argv, &s))
			return 1;
	} else {
		return 2;
	}
	printf("{\"messages\": %lu, \"lines\": %lu, \"bytes\": %lu, \"late\": %lu, \"seconds\": "
	       "%.6f, \"last\": "
	       "%.6f, "
	       "\"idle\": %s}\n",
		s.messages, s.lines, s.bytes, s.late, s.last - s.first, s.last,
		s.idle ? "true" : "false");
	return 0;
}
