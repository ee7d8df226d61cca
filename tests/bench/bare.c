/* The least that can stand between a kernel and a WebSocket: one connection, messages signed and
 * put into frames, and nothing else; no check, no journal, no second client. What it costs is the
 * limit that the gateway is held against. bare SHELL IOPUB KEY     ipc:// addresses; prints its
 * port, ends with its client. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel-bridge/channel_pipe.h"
#include "kernel-bridge/wire.h"

#define ANSWER                                                                                     \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"        \
	"Sec-WebSocket-Protocol: v1.kernel.websocket.jupyter.org\r\n\r\n"
#define FRAMES 64
#define SIZE   (1 << 20)

struct side {
	struct pipe *pipe;
	const char *name;
};

static struct side shell = {.name = "shell"}, iopub = {.name = "iopub"};
static struct sign key;
static int client = -1;
static uint8_t in[SIZE], out[SIZE];
static size_t in_len;
static bool upgraded;

static void put(uint8_t *at, uint64_t value, unsigned bytes, bool big)
{
	for (unsigned i = 0; i < bytes; i++)
		at[big ? bytes - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *at, unsigned bytes, bool big)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[big ? bytes - 1 - i : i] << (8 * i);
	return value;
}

static void to_client(const char *channel, const struct bytes *part)
{
	uint8_t *body = out + 4;
	uint64_t at = 8 * 7, size = strlen(channel);
	put(body, 6, 8, false);
	put(body + 8, at, 8, false);
	memcpy(body + at, channel, size);
	at += size;
	for (int i = 0; i < JMSG_PARTS; i++) {
		put(body + 16 + 8 * i, at, 8, false);
		memcpy(body + at, part[i].data, part[i].len);
		at += part[i].len;
	}
	put(body + 48, at, 8, false);
	bool small = at < 126;
	uint8_t *head = small ? out + 2 : out;
	head[0] = 0x82;
	head[1] = small ? (uint8_t)at : 126;
	if (!small)
		put(head + 2, at, 2, true);
	if (send(client, head, (size_t)(body - head) + at, MSG_NOSIGNAL) < 0)
		exit(1);
}

static void from_kernel(void *data)
{
	const struct side *s = data;
	struct bytes frame[FRAMES];
	size_t n;
	bool up;
	(void)pipe_changed(s->pipe, &up); /* it stays up */
	while (pipe_receive(s->pipe, frame, FRAMES, &n)) {
		size_t at = 0;
		while (at < n && !bytes_equal(frame[at], "<IDS|MSG>"))
			at++;
		if (at + 6 <= n && client >= 0)
			to_client(s->name, frame + at + 2);
	}
}

static void to_kernel(const uint8_t *body)
{
	char hex[HMAC_HEX_SIZE];
	struct bytes frame[WIRE_HEAD] = {{(const uint8_t *)"<IDS|MSG>", 9}, {(uint8_t *)hex, 64}};
	for (int i = 0; i < JMSG_PARTS; i++) {
		uint64_t from = get(body + 16 + 8 * i, 8, false);
		frame[2 + i].data = body + from;
		frame[2 + i].len = get(body + 24 + 8 * i, 8, false) - from;
	}
	sign_hex(&key, frame + 2, hex);
	struct err err;
	if (pipe_send(shell.pipe, frame, WIRE_HEAD, &err) != 0)
		exit(1);
}

/* Bytes of the first frame of the client, whose mask is zeros; 0 if it is not whole. */
static size_t take_frame(void)
{
	bool small = (in[1] & 0x7f) < 126;
	size_t head = small ? 6 : 8;
	if (in_len < head)
		return 0;
	size_t len = small ? in[1] & 0x7f : (size_t)get(in + 2, 2, true);
	if (in_len < head + len)
		return 0;
	if ((in[0] & 15) == 2)
		to_kernel(in + head);
	return head + len;
}

static void from_client(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	ssize_t n = recv(client, in + in_len, SIZE - in_len, 0);
	if (n <= 0)
		uv_stop(poll->loop);
	else
		in_len += (size_t)n;
	if (!upgraded && in_len > 3 && memcmp(in + in_len - 4, "\r\n\r\n", 4) == 0) {
		upgraded = send(client, ANSWER, sizeof ANSWER - 1, MSG_NOSIGNAL) > 0;
		in_len = 0;
	}
	while (upgraded && in_len > 0) {
		size_t used = take_frame();
		if (used == 0)
			break;
		memmove(in, in + used, in_len -= used);
	}
}

static int accept_one(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	if (bind(listener, (struct sockaddr *)&a, size) < 0 || listen(listener, 1) < 0 ||
		getsockname(listener, (struct sockaddr *)&a, &size) < 0)
		return -1;
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	int fd = accept(listener, NULL, NULL);
	close(listener);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static bool open_side(uv_loop_t *loop, struct side *s, const char *address)
{
	struct err err;
	struct pipe_open open = {
		.loop = loop, .subscribes = s == &iopub, .on_change = from_kernel, .data = s};
	s->pipe = pipe_new(&open);
	return pipe_connect(s->pipe, address, &err) == 0;
}

int main(int argc, char **argv)
{
	struct err err;
	uv_loop_t *loop = uv_default_loop();
	uv_poll_t poll;
	if (argc != 4 || crypto_init(&err) != 0 || sign_init(&key, argv[3], &err) != 0)
		return 2;
	client = accept_one();
	if (client < 0 || uv_poll_init(loop, &poll, client) < 0 ||
		uv_poll_start(&poll, UV_READABLE, from_client) < 0 ||
		!open_side(loop, &shell, argv[1]) || !open_side(loop, &iopub, argv[2]))
		return 1;
	uv_run(loop, UV_RUN_DEFAULT);
	return 0;
}
