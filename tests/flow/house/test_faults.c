/* The whole gateway, in which each call fails in turn (tests/lib/faults.h). Whatever fails: it
 * lives; who asked gets what is right, or an error that says what happened, or loses the
 * connection; nothing is left behind; and then the same again works. FAULTS=all or each in the
 * environment: deeper. */
#define FAKE_OWN(begins) faults_own(begins)
#include "tests/lib/faults.h"

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <sys/socket.h>

#include "tests/lib/house.h"
#include "tests/lib/test.h"

#define TURNS	   4000
#define ANSWER_MAX (1u << 20)
#define FLOOD	   300
#define KERNEL	   "/api/kernels/" HOUSE_KERNEL
#define JSON	   "Content-Type: application/json\r\n"

#define START "{\"name\":\"python3\",\"env\":{\"KERNEL_ID\":\"" HOUSE_KERNEL "\"}}"

static enum faults_depth depth(void)
{
	const char *wish = getenv("FAULTS");
	if (!wish)
		return FAULTS_SOME;
	return strcmp(wish, "each") == 0 ? FAULTS_EACH : FAULTS_ALL;
}

static void stuck(const char *what)
{
	faults_tell(what);
	abort();
}

/* Time goes on where nothing else does. */
static void turn(struct house *h, int i)
{
	house_turn(h);
	if (i % 3 == 2)
		fake_clock_advance(h->gw.clock, 1000);
}

/* ---- a client ---- */

static int dial(struct house *h)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)door_port(h->gw.door)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	faults_own(true);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
		stuck("the door is shut");
	faults_own(false);
	return fd;
}

static void put(int fd, const void *data, size_t len)
{
	faults_own(true);
	ssize_t n = send(fd, data, len, MSG_NOSIGNAL); /* fails where the door hung up */
	(void)n;
	faults_own(false);
}

/* 1: more came; 0: nothing yet; -1: the door has closed. */
static int get(int fd, struct buf *b)
{
	static uint8_t data[65536];
	ssize_t n = recv(fd, data, sizeof data, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	faults_own(true);
	if (buf_add(b, data, (size_t)n) != 0)
		abort();
	faults_own(false);
	return n > 0 ? 1 : -1;
}

static const char *text_of(const struct buf *b)
{
	return b->data ? (const char *)b->data : "";
}

static int status_of(const struct buf *answer)
{
	return answer->len > 12 ? (int)strtol(text_of(answer) + 9, NULL, 10) : 0;
}

/* An error says what happened. */
static void check_answer(const char *path, const struct buf *answer)
{
	const char *text = text_of(answer), *body = strstr(text, "\r\n\r\n");
	int status = status_of(answer);
	if (status < 400)
		return;
	cJSON *tree = body ? cJSON_Parse(body + 4) : NULL;
	const char *message = cJSON_GetStringValue(cJSON_GetObjectItem(tree, "message"));
	const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(tree, "reason"));
	if (!message || !*message || !reason || strcmp(reason, "none") == 0) {
		fprintf(stderr, "%s: %s\n", path, text);
		stuck("an error without a word");
	}
	cJSON_Delete(tree);
}

/* The connection ends with the answer. Status 0: it ended without. */
static int ask_with(struct house *h, const char *method, const char *path, const char *headers,
	const char *body, struct buf *ret)
{
	char text[1024];
	int n = snprintf(text, sizeof text,
		"%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: token s\r\nConnection: close\r\n"
		"%sContent-Length: %zu\r\n\r\n%s",
		method, path, headers, strlen(body), body);
	int fd = dial(h), got = 0;
	put(fd, text, (size_t)n); /* at once: a second piece would wait for an acknowledgement */
	for (int i = 0; got >= 0; i++) {
		if (i == TURNS)
			stuck(path);
		turn(h, got == 0 ? i : 0);
		got = get(fd, ret);
	}
	close(fd);
	check_answer(path, ret);
	return status_of(ret);
}

/* What comes is status (0: it does not matter), with text in it, if nothing failed. */
static void ask(struct house *h, bool strict, const char *method, const char *path,
	const char *body, int status, const char *text)
{
	AUTO(buf_done) struct buf answer;
	buf_init(&answer, ANSWER_MAX);
	int got = ask_with(h, method, path, *body ? JSON : "", body, &answer);
	bool good = got == status && strstr(text_of(&answer), text);
	if (strict && !good) {
		fprintf(stderr, "%s %s: %s\n", method, path, text_of(&answer));
		stuck("a wrong answer");
	}
	/* The record that it names says it. */
	bool says_why = strstr(text_of(&answer), "\"error\":{") ||
			strstr(text_of(&answer), "died") ||
			strstr(text_of(&answer), "\"records\":[\"");
	if (!strict && got == status && !good && !says_why) {
		fprintf(stderr, "%s %s: %s\n", method, path, text_of(&answer));
		stuck("an answer that only looks right");
	}
}

/* ---- a page ---- */

struct page {
	int fd;
	struct buf in;
	size_t at; /* of the first frame that was not looked at; 0: no head yet */
	bool closed;
};

/* Past the frame at `at`; 0: not all of it is there. */
static size_t frame_end(const struct page *p, size_t at)
{
	const uint8_t *f = p->in.data + at;
	size_t there = p->in.len - at, len = there >= 2 ? f[1] & 0x7f : 0, head = 2;
	if (len == 126 && there >= 4)
		len = (size_t)f[2] << 8 | f[3], head = 4;
	else if (len == 127 && there >= 10)
		len = (size_t)f[6] << 24 | (size_t)f[7] << 16 | (size_t)f[8] << 8 | f[9], head = 10;
	else if (len >= 126)
		return 0;
	return there >= 2 && there >= head + len ? at + head + len : 0;
}

/* A page answers a close frame by going. */
static bool is_told_to_go(struct page *p)
{
	if (p->at == 0) {
		const char *end = strstr(text_of(&p->in), "\r\n\r\n");
		p->at = end ? (size_t)(end + 4 - text_of(&p->in)) : 0;
	}
	bool closes = false;
	for (size_t end; p->at > 0 && !closes && (end = frame_end(p, p->at)) > 0; p->at = end)
		closes = p->in.data[p->at] == 0x88;
	return closes;
}

static void page_turn(struct house *h, struct page *p, int i)
{
	int got = p->closed ? -1 : get(p->fd, &p->in);
	p->closed = got < 0 || is_told_to_go(p);
	turn(h, got == 0 ? i : 0);
}

/* False: the door has closed. */
static bool page_await(struct house *h, struct page *p, const char *text)
{
	for (int i = 0;; i++) {
		if (p->in.len > 0 && memmem(p->in.data, p->in.len, text, strlen(text)))
			return true;
		if (p->closed)
			return false;
		if (i == TURNS)
			stuck(text);
		page_turn(h, p, i);
	}
}

static bool page_open(struct house *h, struct page *p)
{
	static const char hello[] =
		"GET " KERNEL "/channels?session_id=page HTTP/1.1\r\nHost: x\r\n"
		"Authorization: token s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
	*p = (struct page){.fd = dial(h)};
	buf_init(&p->in, 64 * ANSWER_MAX);
	put(p->fd, hello, sizeof hello - 1);
	return page_await(h, p, "\r\n\r\n") && status_of(&p->in) == 101;
}

static void page_leave(struct page *p)
{
	close(p->fd);
	buf_done(&p->in);
}

static void page_execute(struct page *p, const char *id)
{
	/* Its length, then four zeros that mask nothing. */
	char frame[512] = {(char)0x81, (char)(0x80 | 126)};
	int n = snprintf(frame + 8, sizeof frame - 8,
		"{\"channel\":\"shell\",\"header\":{\"msg_id\":\"%s\",\"msg_type\":\"execute_"
		"request\",\"session\":\"page\",\"username\":\"u\",\"version\":\"5.3\"},"
		"\"parent_header\":{},\"metadata\":{},\"content\":{\"code\":\"1\",\"silent\":false,"
		"\"store_history\":true}}",
		id);
	frame[2] = (char)(n >> 8);
	frame[3] = (char)n;
	put(p->fd, frame, 8 + (size_t)n);
}

static void flood(struct house *h, const char *last)
{
	char content[256];
	struct kernel *k = NULL; /* the conversation has another */
	for (size_t i = 0; (k = fake_kernel(h->gw.bridge, i)); i++)
		if (strcmp(k->id, HOUSE_KERNEL) == 0 && !k->ending)
			break;
	if (!k || k->ending || k->state == KERNEL_DEAD)
		return;
	for (int i = 0; i < FLOOD; i++) {
		(void)snprintf(content, sizeof content,
			"{\"name\":\"stdout\",\"text\":\"%0128d\\n\"}", i); /* fits */
		fake_kernel_say(k, CHANNEL_IOPUB, "stream", NULL, content);
	}
	(void)snprintf(content, sizeof content, "{\"name\":\"stdout\",\"text\":\"%s\"}", last);
	fake_kernel_say(k, CHANNEL_IOPUB, "stream", NULL, content);
	fake_kernel_turn(k);
}

/* A page that was closed opens again, as pages do. */
static void use_page(struct house *h, bool strict, const char *id)
{
	struct page p;
	char last[64];
	(void)snprintf(last, sizeof last, "last of %s", id); /* fits */
	for (int tries = 0; tries < 3; tries++) {
		bool good = page_open(h, &p);
		if (good)
			page_execute(&p, id);
		good = good && page_await(h, &p, "execute_reply") && page_await(h, &p, "\"idle\"");
		if (good)
			flood(h, last);
		good = good && page_await(h, &p, last);
		page_leave(&p);
		if (good)
			return;
		if (strict)
			stuck("a page that is closed");
	}
}

/* ---- what is done ---- */

/* The recorder's thread keeps real time: where it is slow, waits of the fake clock are over first.
 */
static void until_recorded(struct house *h)
{
	for (int i = 0; h->gw.kernels->n_unrecorded > 0; i++) {
		if (i == TURNS)
			stuck("what is not recorded stays so");
		turn(h, i);
	}
}

static void use_history(struct house *h, bool strict, const char *id)
{
	char path[128];
	until_recorded(h);
	ask(h, strict, "GET", "/history", "", 200, "histories");
	ask(h, strict, "GET", "/history/" HOUSE_KERNEL, "", 200, "nodes");
	(void)snprintf(path, sizeof path, "/history/%s/nodes/HEAD", HOUSE_KERNEL); /* fits */
	ask(h, strict, "GET", path, "", 200, strict ? id : "outputs");
}

/* ---- a conversation ---- */

static bool has(const struct buf *answer, const char *text)
{
	return strstr(text_of(answer), text) != NULL;
}

static bool says_that_it_lost(const struct buf *answer)
{
	return has(answer, "out of memory") || has(answer, "out_of_memory") ||
	       has(answer, "not_recorded") || has(answer, "not all is in it");
}

static void wrong(const char *path, const struct buf *answer, const char *what)
{
	fprintf(stderr, "%s: %s\n", path, text_of(answer));
	stuck(what);
}

/* What was asked is answered, or the answer says that it is not; an answer as events that came to
 * its end says how it ended. */
static void check_said(const char *path, bool strict, bool events, int got, const struct buf *said)
{
	bool whole = !events ||
		     (said->len > 5 && strcmp(text_of(said) + said->len - 5, "0\r\n\r\n") == 0);
	bool good = got == 200 && whole && has(said, "It is one.") &&
		    has(said, "\"status\":\"ok\"") && (!events || has(said, "event: message.end"));
	bool told = got != 200 || !whole || has(said, "\"error\":{") || has(said, "event: error") ||
		    has(said, "\"status\":\"not_fixed\"") || says_that_it_lost(said);
	if (strict ? !good : !good && !told)
		wrong(path, said, "a question that was not answered");
	if (got >= 500 && has(said, "\"records\":[\""))
		wrong(path, said, "it ran, and clients ask for it again");
}

/* What it ran and put out is there, or it is said that it is not. */
static void check_records(struct house *h, const char *chat, bool strict, bool answered)
{
	AUTO(buf_done) struct buf records, log;
	char path[160], record[UUID_SIZE];
	buf_init(&records, ANSWER_MAX);
	buf_init(&log, ANSWER_MAX);
	(void)snprintf(path, sizeof path, "%s/records", chat); /* fits */
	int got = ask_with(h, "GET", path, "", "", &records);
	bool good = got == 200 && has(&records, "\"stdout\":\"out\\n\"") &&
		    has(&records, "\"text/plain\":\"1\"");
	bool told = says_that_it_lost(&records) || has(&records, "\"error\":{") ||
		    has(&records, "\"status\":\"died\"");
	if (strict ? !good : answered && got == 200 && !good && !told)
		wrong(path, &records, "a record that is less than what ran");
	const char *id = strstr(text_of(&records), "\"id\":\"");
	if (!id || !copy_text(record, sizeof record, id + 6, UUID_SIZE - 1))
		return;
	(void)snprintf(path, sizeof path, "/chat/records/%s/log", record); /* fits */
	got = ask_with(h, "GET", path, "", "", &log);
	if (strict ? !has(&log, "out\n")
		   : good && got == 200 && log.len > 0 && !has(&log, "out\n") &&
				!says_that_it_lost(&records))
		wrong(path, &log, "a log that is less than what was printed");
}

/* Time is the test's, the recorder's thread is not: while that still has the history in hand the
 * gateway's patience may be over, and says so. */
static void remove_chat(struct house *h, bool strict, const char *chat)
{
	int got = 409;
	for (int i = 0; got == 409; i++) {
		AUTO(buf_done) struct buf answer;
		buf_init(&answer, ANSWER_MAX);
		if (i == TURNS)
			stuck("a history that stays in use");
		got = ask_with(h, "DELETE", chat, "", "", &answer);
		if (strict && got != 204 && (got != 409 || !has(&answer, "try again")))
			wrong(chat, &answer, "not removed");
	}
}

static void use_chat(struct house *h, bool strict, bool events)
{
	AUTO(buf_done) struct buf made, said;
	char chat[96] = "/chat/conversations/", path[128];
	size_t at = strlen(chat);
	buf_init(&made, ANSWER_MAX);
	buf_init(&said, ANSWER_MAX);
	int got = ask_with(h, "POST", "/chat/conversations", JSON, "{\"title\":\"t\"}", &made);
	const char *id = strstr(text_of(&made), "\"id\":\"");
	if (got != 201 || !id) {
		if (strict)
			wrong("/chat/conversations", &made, "no conversation");
		return;
	}
	(void)copy_text(chat + at, sizeof chat - at, id + 6, UUID_SIZE - 1); /* fits */
	(void)snprintf(path, sizeof path, "%s/messages", chat);		     /* fits */
	got = ask_with(h, "POST", path, events ? JSON "Accept: text/event-stream\r\n" : JSON,
		"{\"content\":\"What is one?\"}", &said);
	check_said(path, strict, events, got, &said);
	check_records(h, chat, strict, got == 200 && !has(&said, "\"error\":{"));
	ask(h, strict, "GET", chat, "", 200, "messages");
	ask(h, strict, "PATCH", chat, "{\"title\":\"u\"}", 200, "\"title\":\"u\"");
	until_recorded(h);
	remove_chat(h, strict, chat);
}

static void live(struct house *h, bool strict, const char *id)
{
	ask(h, strict, "POST", "/api/kernels", START, 201, HOUSE_KERNEL);
	use_page(h, strict, id);
	use_page(h, strict, id); /* again, of the same msg_id: it has run */
	ask(h, strict, "GET", "/api/kernels", "", 200, "[");
	ask(h, strict, "GET", "/admin/show/executions", "", 200, "[");
	ask(h, strict, "GET", "/metrics", "", 200, "coppice");
	use_history(h, strict, id);
	use_chat(h, strict, false);
	use_chat(h, strict, true);
	ask(h, strict, "DELETE", KERNEL, "", 204, "");
	for (int i = 0; i < TURNS && !list_empty(&h->gw.kernels->unlisted); i++)
		turn(h, i);
}

static size_t descriptors(void)
{
	size_t n = 0;
	faults_own(true);
	DIR *dir = opendir("/proc/self/fd");
	while (dir && readdir(dir))
		n++;
	closedir(dir);
	faults_own(false);
	return n;
}

/* One gateway: perhaps with a fault, then without one. */
static void one_house(void)
{
	struct house h = {0};
	struct err err = {0};
	faults_own(true);
	house_begin(&h);
	faults_own(false);
	int status = house_open(&h, &err);
	if (status == 0)
		live(&h, false, "e1");
	else if (!err.text[0])
		stuck("a start that failed without a word");
	faults_disarm();
	if (status == 0)
		live(&h, true, "e2");
	faults_own(true);
	house_end(&h, false);
	house_remove_folder(&h);
	faults_own(false);
}

/* ---- another gateway takes up what one that was killed has left ---- */

static void copy_folder(const char *from, const char *to)
{
	char command[256];
	(void)snprintf(command, sizeof command, "cp -r '%s' '%s'", from, to); /* fits */
	if (system(command) != 0)
		abort();
}

/* A kernel, and a cell that has run there. */
static void make_estate(char ret_folder[64])
{
	struct house h = {0};
	struct err err;
	house_begin(&h);
	fake_bridge_survive(h.gw.bridge);
	if (house_open(&h, &err) != 0)
		abort();
	ask(&h, true, "POST", "/api/kernels", START, 201, HOUSE_KERNEL);
	use_page(&h, true, "e0");
	use_history(&h, true, "e0"); /* all is in the file: this bridge says nothing again */
	(void)snprintf(ret_folder, 64, "%.50s-estate", h.folder); /* fits */
	copy_folder(h.folder, ret_folder);
	house_end(&h, false);
	house_remove_folder(&h);
}

static int take_up(struct house *h, struct err *err)
{
	faults_own(true);
	house_begin(h);
	fake_bridge_survive(h->gw.bridge);
	fake_bridge_leave(h->gw.bridge);
	faults_own(false);
	return house_open(h, err);
}

static void end_heir(struct house *h, bool leave)
{
	faults_own(true);
	house_end(h, leave);
	faults_own(false);
}

/* A start that fails ends nothing: the next one finds all of it. */
static void one_heir(const char *estate)
{
	struct house h = {0}, second = {0};
	struct err err = {0};
	faults_own(true);
	(void)snprintf(h.folder, sizeof h.folder, "%.50s-heir", estate); /* fits */
	copy_folder(estate, h.folder);
	faults_own(false);
	int status = take_up(&h, &err);
	if (status == 0) {
		ask(&h, false, "GET", "/api/kernels", "", 200, HOUSE_KERNEL);
		use_page(&h, false, "e1");
	}
	faults_disarm();
	if (status != 0) {
		end_heir(&h, true);
		memcpy(second.folder, h.folder, sizeof h.folder);
		h = second;
		if (take_up(&h, &err) != 0)
			stuck("a start after one that failed");
	}
	ask(&h, true, "GET", "/api/kernels", "", 200, HOUSE_KERNEL);
	use_page(&h, true, "e2");
	/* A journal whose disk failed keeps nothing more, which is told and counted. */
	use_history(&h, h.gw.kernels->count.not_recorded == 0, "e2");
	end_heir(&h, false);
	house_remove_folder(&h);
}

static void sweep_heirs(enum faults_kind kind)
{
	char estate[64];
	struct house folder = {0};
	make_estate(estate);
	for (faults_sweep(kind, depth()); faults_next();)
		one_heir(estate);
	(void)snprintf(folder.folder, sizeof folder.folder, "%s", estate);
	house_remove_folder(&folder);
	printf("%zu faults\n", faults_fired());
	assert_true(faults_fired() > 2);
}

static void sweep(enum faults_kind kind)
{
	one_house(); /* what libraries keep for good is there */
	size_t before = descriptors();
	for (faults_sweep(kind, depth()); faults_next();) {
		one_house();
		size_t now = descriptors();
		const char *name = faults_name();
		if (now == before + 1 && name && strcmp(name, "fsync") == 0)
			before =
				now; /* libgit2 1.5 leaves a ref's file open if it cannot sync it */
		if (now != before)
			stuck("a descriptor was left");
	}
	printf("%zu faults\n", faults_fired());
	assert_true(faults_fired() > 10);
}

TEST(faults, memory)
{
	sweep(FAULTS_MEMORY);
}

TEST(faults, calls)
{
	sweep(FAULTS_CALLS);
}

TEST(faults, memory_of_a_start_after_a_kill)
{
	sweep_heirs(FAULTS_MEMORY);
}

TEST(faults, calls_of_a_start_after_a_kill)
{
	sweep_heirs(FAULTS_CALLS);
}

RUN(TEST_ROW(faults, calls), TEST_ROW(faults, memory),
	TEST_ROW(faults, memory_of_a_start_after_a_kill),
	TEST_ROW(faults, calls_of_a_start_after_a_kill))
