/* A scripted kernel that costs next to nothing, so that what is measured is what stands before it.
 * scripted CONNECTION_FILE. Each code is answered ok; `flood COUNT` prints so many lines first,
 * each a message; `flood COUNT RATE` so many a second. A flood is signed before its first line is
 * sent. */
#include <sys/prctl.h>

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "kernel-bridge/sign.h"

#define PARTS	    16
#define HEADER_SIZE 256
#define TEXT_SIZE   512
#define INFO                                                                                       \
	"{\"status\": \"ok\", \"protocol_version\": \"5.4\", \"implementation\": \"scripted\", "   \
	"\"implementation_version\": \"1\", \"banner\": \"\", \"language_info\": {\"name\": "      \
	"\"python\", \"version\": \"3\", \"mimetype\": \"text/x-python\", \"file_extension\": "    \
	"\".py\"}, \"help_links\": []}"

enum { SHELL, CONTROL, STDIN, IOPUB, HB, SOCKETS };

static const struct {
	const char *port;
	int kind;
} sockets[SOCKETS] = {{"shell_port", ZMQ_ROUTER}, {"control_port", ZMQ_ROUTER},
	{"stdin_port", ZMQ_ROUTER}, {"iopub_port", ZMQ_PUB}, {"hb_port", ZMQ_REP}};

struct message {
	zmq_msg_t part[PARTS];
	int n, delimiter; /* parts; the one after the addresses */
};

struct kernel {
	void *socket[SOCKETS];
	struct sign sign;
	char session[UUID_SIZE];
	unsigned long long sent;
	unsigned executed;
};

static struct bytes text(const char *s)
{
	return (struct bytes){(const uint8_t *)s, strlen(s)};
}

static struct bytes part(struct message *m, int i)
{
	return (struct bytes){zmq_msg_data(&m->part[i]), zmq_msg_size(&m->part[i])};
}

static void put(void *socket, struct bytes b, bool more)
{
	if (zmq_send(socket, b.data, b.len, more ? ZMQ_SNDMORE : 0) < 0)
		exit(3);
}

static void header(struct kernel *k, char to[HEADER_SIZE], const char *type)
{
	(void)snprintf(to, HEADER_SIZE,
		"{\"msg_id\": \"%s_%llu\", \"msg_type\": \"%s\", \"username\": \"scripted\", "
		"\"session\": \"%s\", \"date\": \"2026-01-01T00:00:00.000000Z\", \"version\": "
		"\"5.4\"}",
		k->session, k->sent++, type, k->session);
}

static void put_parts(void *socket, const char *hex, const struct bytes p[JMSG_PARTS])
{
	put(socket, text("<IDS|MSG>"), true);
	put(socket, text(hex), true);
	for (int i = 0; i < JMSG_PARTS; i++)
		put(socket, p[i], i < JMSG_PARTS - 1);
}

/* to: the address frames go first, or NULL for iopub, where the type does. */
static void say(struct kernel *k, int on, struct message *to, const char *type, struct bytes parent,
	const char *content)
{
	char head[HEADER_SIZE], hex[HMAC_HEX_SIZE];
	header(k, head, type);
	struct bytes p[JMSG_PARTS] = {text(head), parent, text("{}"), text(content)};
	sign_hex(&k->sign, p, hex);
	for (int i = 0; to && i < to->delimiter; i++)
		put(k->socket[on], part(to, i), true);
	if (!to)
		put(k->socket[on], text(type), true);
	put_parts(k->socket[on], hex, p);
}

static void status(struct kernel *k, struct bytes parent, const char *state)
{
	char content[TEXT_SIZE];
	(void)snprintf(content, sizeof content, "{\"execution_state\": \"%s\"}", state);
	say(k, IOPUB, NULL, "status", parent, content);
}

static void line(char to[TEXT_SIZE], unsigned long i)
{
	(void)snprintf(to, TEXT_SIZE, "{\"name\": \"stdout\", \"text\": \"%lu\\n\"}", i);
}

/* Parts of line i of a flood. */
static void flood_parts(struct kernel *k, unsigned long i, struct bytes parent,
	char head[HEADER_SIZE], char content[TEXT_SIZE], struct bytes ret_parts[JMSG_PARTS])
{
	header(k, head, "stream");
	line(content, i);
	ret_parts[PART_HEADER] = text(head);
	ret_parts[PART_PARENT] = parent;
	ret_parts[PART_METADATA] = text("{}");
	ret_parts[PART_CONTENT] = text(content);
}

static void wait_until(const struct timespec *start, double seconds)
{
	struct timespec t = *start;
	long long ns = t.tv_nsec + (long long)(seconds * 1e9);
	t.tv_sec += (time_t)(ns / 1000000000);
	t.tv_nsec = (long)(ns % 1000000000);
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void flood(struct kernel *k, struct bytes parent, unsigned long count, double rate)
{
	char head[HEADER_SIZE], content[TEXT_SIZE];
	struct bytes p[JMSG_PARTS];
	struct timespec start;
	unsigned long long first = k->sent;
	char(*hex)[HMAC_HEX_SIZE] = calloc(count + 1, sizeof *hex);
	if (!hex)
		exit(4);
	for (unsigned long i = 0; i < count; i++) {
		flood_parts(k, i, parent, head, content, p);
		sign_hex(&k->sign, p, hex[i]);
	}
	k->sent = first;
	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	for (unsigned long i = 0; i < count; i++) {
		if (rate > 0)
			wait_until(&start, (double)i / rate);
		flood_parts(k, i, parent, head, content, p);
		put(k->socket[IOPUB], text("stream"), true);
		put_parts(k->socket[IOPUB], hex[i], p);
	}
	free(hex);
}

static void execute(struct kernel *k, int on, struct message *m, const cJSON *content)
{
	const char *code = cJSON_GetStringValue(cJSON_GetObjectItem(content, "code"));
	struct bytes parent = part(m, m->delimiter + 2);
	char input[TEXT_SIZE], reply[TEXT_SIZE];
	unsigned long count = 0;
	double rate = 0;
	k->executed++;
	(void)snprintf(
		input, sizeof input, "{\"code\": \"\", \"execution_count\": %u}", k->executed);
	say(k, IOPUB, NULL, "execute_input", parent, input);
	if (code && sscanf(code, "flood %lu %lf", &count, &rate) >= 1)
		flood(k, parent, count, rate);
	(void)snprintf(reply, sizeof reply,
		"{\"status\": \"ok\", \"execution_count\": %u, \"user_expressions\": {}, "
		"\"payload\": []}",
		k->executed);
	say(k, on, m, "execute_reply", parent, reply);
}

static void answer(struct kernel *k, int on, struct message *m)
{
	struct bytes head = part(m, m->delimiter + 2), body = part(m, m->delimiter + 5);
	cJSON *h = cJSON_ParseWithLength((const char *)head.data, head.len);
	cJSON *content = cJSON_ParseWithLength((const char *)body.data, body.len);
	const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(h, "msg_type"));
	status(k, head, "busy");
	if (type && strcmp(type, "kernel_info_request") == 0)
		say(k, on, m, "kernel_info_reply", head, INFO);
	else if (type && strcmp(type, "execute_request") == 0)
		execute(k, on, m, content);
	else if (type && strcmp(type, "interrupt_request") == 0)
		say(k, on, m, "interrupt_reply", head, "{\"status\": \"ok\"}");
	else if (type && strcmp(type, "shutdown_request") == 0)
		say(k, on, m, "shutdown_reply", head, "{\"status\": \"ok\", \"restart\": false}");
	status(k, head, "idle");
	if (type && strcmp(type, "shutdown_request") == 0) {
		for (int i = 0; i < SOCKETS; i++)
			(void)zmq_close(
				k->socket[i]); /* what waits goes out while the context ends */
		exit(0);
	}
	cJSON_Delete(h);
	cJSON_Delete(content);
}

static void take(struct kernel *k, int on)
{
	struct message m = {.delimiter = -1};
	bool more = true;
	while (more && m.n < PARTS) {
		zmq_msg_t *p = &m.part[m.n];
		(void)zmq_msg_init(p);
		if (zmq_msg_recv(p, k->socket[on], 0) < 0)
			exit(3);
		if (m.delimiter < 0 && bytes_equal(part(&m, m.n), "<IDS|MSG>"))
			m.delimiter = m.n;
		more = zmq_msg_more(p) != 0;
		m.n++;
	}
	if (on == HB)
		put(k->socket[HB], part(&m, 0), false);
	else if (m.delimiter >= 0 && m.n >= m.delimiter + 6)
		answer(k, on, &m);
	for (int i = 0; i < m.n; i++)
		(void)zmq_msg_close(&m.part[i]);
}

static cJSON *read_file(const char *path)
{
	static char data[8192];
	FILE *f = fopen(path, "re");
	if (!f)
		return NULL;
	size_t n = fread(data, 1, sizeof data - 1, f);
	(void)fclose(f);
	return cJSON_ParseWithLength(data, n);
}

static bool open_all(struct kernel *k, const cJSON *connection)
{
	void *context = zmq_ctx_new();
	int none = 0, linger = 1000;
	for (int i = 0; i < SOCKETS; i++) {
		char address[64];
		const char *ip = cJSON_GetStringValue(cJSON_GetObjectItem(connection, "ip"));
		const cJSON *port = cJSON_GetObjectItem(connection, sockets[i].port);
		if (!ip || !port)
			return false;
		k->socket[i] = zmq_socket(context, sockets[i].kind);
		(void)zmq_setsockopt(k->socket[i], ZMQ_SNDHWM, &none, sizeof none);
		(void)zmq_setsockopt(k->socket[i], ZMQ_LINGER, &linger, sizeof linger);
		(void)snprintf(address, sizeof address, "tcp://%s:%d", ip, port->valueint);
		if (zmq_bind(k->socket[i], address) < 0)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct kernel k = {0};
	struct err err;
	zmq_pollitem_t item[SOCKETS] = {0};
	/* Nobody else ends it when its server is killed. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	cJSON *connection = argc == 2 ? read_file(argv[1]) : NULL;
	const char *key = cJSON_GetStringValue(cJSON_GetObjectItem(connection, "key"));
	if (!key || crypto_init(&err) != 0 || sign_init(&k.sign, key, &err) != 0)
		return 2;
	crypto_uuid(k.session);
	if (!open_all(&k, connection))
		return 1;
	for (int i = 0; i < SOCKETS; i++) {
		item[i].socket = k.socket[i];
		item[i].events = i == IOPUB ? 0 : ZMQ_POLLIN;
	}
	while (zmq_poll(item, SOCKETS, -1) >= 0)
		for (int i = 0; i < SOCKETS; i++)
			if (item[i].revents & ZMQ_POLLIN)
				take(&k, i);
	return 3;
}
