/* What clients send to the door, from its first byte on: heads, queries, bodies, chunks, upgrades
 * and frames, over a real connection through libwebsockets. The input is sent as it is; the byte
 * before it is the length of its pieces (0: all at once). A kernel is there, with a history that
 * holds a few runs, and a conversation; git's own server is started for clones. */
#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <sys/socket.h>

#include "tests/lib/house.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define RUNS	 3
#define TURNS	 20000 /* far more than any exchange takes */
#define READ_MAX 65536

/* One gateway for all runs of this process; kernels and sessions end with each. */
static struct house house;

static void remove_folder(void)
{
	house_remove_folder(&house);
}

static void end_kernels(void)
{
	struct kernels *ks = house.gw.kernels;
	while (!list_empty(&ks->desks))
		desk_end(CONTAINER_OF(ks->desks.next, struct desk, link), "over", NULL, NULL);
	for (int i = 0; ks->n_alive > 0; i++) {
		if (i == TURNS)
			abort(); /* somebody holds a kernel whose page is gone */
		house_turn(&house);
		fake_clock_advance(house.gw.clock, i % 3 == 2 ? 200 : 0); /* to be recorded */
	}
}

static void start_kernel(void)
{
	const struct kernels_start start = {
		.owner = owners_first(house.owners), .kernel_id = HOUSE_KERNEL};
	struct desk *d;
	if (kernels_start(house.gw.kernels, &start, &d, NULL) != 0)
		abort();
	house_turn(&house); /* it is ready */
}

static void on_run_ended(void *data, const struct chat_outcome *outcome)
{
	(void)outcome; /* it is of the fake */
	++*(int *)data;
}

static void on_run_message(void *data, const char *type, struct bytes content)
{
	(void)data, (void)type, (void)content;
}

static bool never_lags(void *data)
{
	(void)data;
	return false;
}

/* So that its history has something to show. */
static void run_some(void)
{
	int n = 0;
	char msg_id[UUID_SIZE];
	const struct chat_run run = {.code = "x = 1",
		.on_message = on_run_message,
		.lags = never_lags,
		.on_end = on_run_ended,
		.data = &n};
	start_kernel();
	for (int i = 0; i < RUNS; i++)
		if (chat_client_runner.run(&house.gw, "ada", HOUSE_KERNEL, &run, msg_id, NULL))
			abort();
	for (int i = 0; i < TURNS && n < RUNS; i++)
		house_turn(&house);
	end_kernels();
	if (n < RUNS)
		abort();
}

static void open_gateway(void)
{
	if (house.gw.loop)
		return;
	house_begin(&house);
	if (house_open(&house, NULL) != 0 || atexit(remove_folder) != 0)
		abort();
	run_some();
}

static bool is_as_it_was(const cJSON *conversation)
{
	const cJSON *title = cJSON_GetObjectItem(conversation, "title");
	return cJSON_GetArraySize(cJSON_GetObjectItem(conversation, "messages")) == 0 &&
	       cJSON_GetArraySize(cJSON_GetObjectItem(conversation, "records")) == 0 &&
	       cJSON_IsNull(cJSON_GetObjectItem(conversation, "kernel_id")) &&
	       strcmp(cJSON_GetStringValue(title), "t") == 0;
}

static void on_deleted(void *data, const struct err *err)
{
	(void)err; /* it is looked at again after the next input */
	house_on_step(data);
}

static void delete_conversations(const cJSON *list)
{
	const cJSON *at;
	cJSON_ArrayForEach (at, list) {
		const char *id = cJSON_GetStringValue(cJSON_GetObjectItem(at, "id"));
		if (chat_delete(house.gw.chats, "ada", id, on_deleted, &house, NULL) == 0)
			house_await(&house);
	}
}

/* One conversation, to which nobody has said anything. */
static void reset_chats(void)
{
	const struct chat_page page = {.limit = 1000};
	cJSON *one = NULL, *all = NULL;
	if (chat_list(house.gw.chats, "ada", &page, &all, NULL) != 0)
		abort();
	const cJSON *list = cJSON_GetObjectItem(all, "conversations");
	bool clean =
		cJSON_GetArraySize(list) == 1 &&
		chat_get(house.gw.chats, "ada", HOUSE_CONVERSATION, true, &page, &one, NULL) == 0 &&
		is_as_it_was(one);
	if (!clean) {
		delete_conversations(list);
		chats_close(TAKE(house.gw.chats), house_on_step, &house);
		house_await(&house);
		house_put_conversation(&house);
		if (house_open_chats(&house, NULL) != 0)
			abort();
	}
	cJSON_Delete(all);
	cJSON_Delete(one);
}

/* With nobody there the loop sleeps. */
static void fall_asleep(void)
{
	for (int i = 0; uv_backend_timeout(&house.loop) == 0; i++) {
		if (i == TURNS)
			abort(); /* it would spin */
		house_turn(&house);
	}
}

/* ---- the client ---- */

struct peer {
	int fd;
	struct bytes rest;
	size_t piece;
	bool said; /* the first bytes of an answer were looked at */
};

static void peer_open(struct peer *p)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)door_port(house.gw.door)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	/* The door closes first, so a port of ours rests for a minute: another address has others.
	 */
	static unsigned n;
	struct sockaddr_in from = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + n++ / 10000 % 200)};
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0 || bind(p->fd, (struct sockaddr *)&from, sizeof from) != 0 ||
		connect(p->fd, (struct sockaddr *)&to, sizeof to) != 0)
		abort();
}

static void peer_send(struct peer *p)
{
	size_t len = p->rest.len < p->piece ? p->rest.len : p->piece;
	if (len == 0)
		return;
	ssize_t n = send(p->fd, p->rest.data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == EAGAIN)
		return;
	size_t used = n < 0 ? p->rest.len : (size_t)n; /* the door hung up */
	p->rest.data += used;
	p->rest.len -= used;
	if (p->rest.len == 0)
		(void)shutdown(p->fd, SHUT_WR); /* fails where the door hung up */
}

/* False once the door has closed. */
static bool peer_read(struct peer *p)
{
	static uint8_t data[READ_MAX];
	ssize_t n = recv(p->fd, data, sizeof data, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN;
	if (n >= 5 && !p->said && memcmp(data, "HTTP/", 5) != 0)
		abort(); /* no such answer */
	p->said = p->said || n > 0;
	return n > 0;
}

static void exchange(struct peer *p)
{
	for (int i = 0; peer_read(p); i++) {
		if (i == TURNS)
			abort(); /* the door does not let go of who has left */
		peer_send(p);
		house_turn(&house);
	}
	(void)close(p->fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	struct peer p = {.rest = {data + 1, len - 1}, .piece = data[0] ? data[0] : SIZE_MAX};
	open_gateway();
	start_kernel();
	peer_open(&p);
	exchange(&p);
	reset_chats();
	end_kernels();
	fall_asleep();
	return 0;
}
