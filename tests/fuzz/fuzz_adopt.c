/* What an earlier gateway left of a kernel, damaged: a line with its row (JSON), two bytes with the
 * length of a journal's segment (little-endian), the segment, then pieces of the mapped file
 * `live`: a byte 0 head, 1 client, 2 entry, 3 request; which; two bytes offset in it; length; so
 * many bytes. A gateway takes it up, a page of the session `page` reads all of it, and all ends. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/crypto.h"
#include "gateway/spine/client.h"
#include "gateway/spine/live.h"
#include "gateway/spine/sessions.h"
#include "tests/lib/fake_bridge.c"
#include "tests/lib/fake_clock.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define ID	  "11111111-2222-4333-8444-555555555555"
#define NUMBERS	  24 /* bytes of the head before the ids that a kernel was told to forget */
#define PIECE	  5u
#define PULLS_MAX 1000

struct setting {
	uv_loop_t loop;
	struct gateway gw;
	bool ended, readable;
};

/* ---- the files ---- */

static char folder[64], row_file[160], journal_folder[160], segment_file[192], live_file[192];
static struct owners *owners; /* as the folder, of all runs of this process */

static void put(const char *path, struct bytes what)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, what.data, what.len) != (ssize_t)what.len)
		abort();
	(void)close(fd);
}

static void remove_folder(void)
{
	static const char *const names[] = {"kernels", "journals"};
	char path[96];
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		(void)rmdir(path); /* what is in it is for who looks after a failure */
	}
	(void)rmdir(folder);
	owners_free(owners);
}

static void make_folder(void)
{
	static const char token[] = "[token ada]\nsecret = 0123456789abcdef\nscopes = read run\n";
	char path[96];
	if (folder[0])
		return;
	(void)snprintf(folder, sizeof folder, "/tmp/coppice-fuzz-XXXXXX");
	if (!mkdtemp(folder) || crypto_init(NULL) != 0)
		abort();
	(void)snprintf(path, sizeof path, "%s/tokens", folder);
	put(path, (struct bytes){(const uint8_t *)token, sizeof token - 1});
	if (owners_open(path, &owners, NULL) != 0)
		abort();
	(void)unlink(path);
	if (atexit(remove_folder) != 0)
		abort();
	(void)snprintf(row_file, sizeof row_file, "%s/kernels/" ID ".json", folder);
	(void)snprintf(journal_folder, sizeof journal_folder, "%s/journals/" ID, folder);
	(void)snprintf(segment_file, sizeof segment_file, "%s/journals/" ID "/000000.seg", folder);
	(void)snprintf(live_file, sizeof live_file, "%s/journals/" ID "/live", folder);
}

static uint8_t *place(struct live *l, const uint8_t *piece, size_t *ret_room)
{
	size_t which = piece[1], offset = (size_t)piece[2] | (size_t)piece[3] << 8, size;
	const void *row;
	if (piece[0] % 4 == 0) {
		row = live_acked_id(l, CHANNEL_SHELL) - NUMBERS;
		size = NUMBERS + (size_t)CHANNEL_HB * JMSG_ID_MAX;
	} else if (piece[0] % 4 == 1) {
		row = &live_clients(l)[which % LIVE_CLIENTS];
		size = sizeof(struct live_client);
	} else if (piece[0] % 4 == 2) {
		row = &live_entries(l)[which];
		size = sizeof(struct live_entry);
	} else {
		row = live_request_at(l, which % LIVE_BLOCK);
		size = sizeof(struct live_request);
	}
	*ret_room = size - offset % size;
	return (uint8_t *)(uintptr_t)row + offset % size;
}

static void put_live(struct bytes pieces)
{
	struct live *l;
	if (live_open(live_file, &l, NULL) != 0)
		abort();
	while (pieces.len > PIECE) {
		size_t n = pieces.data[4], room;
		n = n < pieces.len - PIECE ? n : pieces.len - PIECE;
		uint8_t *to = place(l, pieces.data, &room);
		memcpy(to, pieces.data + PIECE, n < room ? n : room);
		pieces.data += PIECE + n;
		pieces.len -= PIECE + n;
	}
	live_close(l);
}

static void put_files(struct bytes in)
{
	const uint8_t *end = in.len ? memchr(in.data, '\n', in.len) : NULL;
	size_t row = end ? (size_t)(end - in.data) : in.len, used = row + (end != NULL);
	struct bytes rest = {in.data + used, in.len - used};
	size_t segment = 0;
	if (rest.len >= 2) {
		segment = (size_t)rest.data[0] | (size_t)rest.data[1] << 8;
		rest = (struct bytes){rest.data + 2, rest.len - 2};
		segment = segment < rest.len ? segment : rest.len;
	}
	put(row_file, (struct bytes){in.data, row});
	(void)mkdir(journal_folder, 0700); /* may be there */
	put(segment_file, (struct bytes){rest.data, segment});
	put_live((struct bytes){rest.data + segment, rest.len - segment});
}

/* ---- the gateway ---- */

static void open_gateway(struct setting *s)
{
	struct config *c = &s->gw.config;
	if (uv_loop_init(&s->loop) != 0)
		abort();
	c->data_dir = folder;
	c->max_kernels = 3;
	c->auto_restart = true;
	c->restart_limit = 1;
	c->cull_interval = 60000;
	c->journal_memory = 1 << 20;
	c->journal_disk = 1 << 24;
	log_init(&s->gw.log, NULL);
	s->gw.loop = &s->loop;
	s->gw.clock = clock_new(NULL);
	s->gw.owners = owners;
	s->gw.bridge = fake_bridge_new(s->gw.clock);
	if (kernels_open(&s->gw, &s->gw.kernels, NULL) != 0 ||
		sessions_open(&s->gw, &s->gw.sessions, NULL) != 0)
		abort();
}

static void settle(struct setting *s)
{
	for (int i = 0; i < 3; i++) {
		fake_bridge_run(s->gw.bridge);
		fake_clock_advance(s->gw.clock, 0);
		(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	}
}

static void on_readable(void *data)
{
	((struct setting *)data)->readable = true;
}

static void on_close(void *data, unsigned code, const char *reason)
{
	(void)data, (void)code, (void)reason;
}

static void on_replaced(void *data)
{
	(void)data;
}

static void read_all(struct setting *s, struct client *c)
{
	struct entry *e;
	unsigned pulls = 0;
	do {
		s->readable = false;
		while (client_next(c, &e) == 1) {
			entry_unref(e);
			if (++pulls > PULLS_MAX)
				abort(); /* there is no end of it */
		}
		client_wrote(c, 0);
		settle(s);
	} while (s->readable);
}

static struct client *open_page(struct setting *s)
{
	const struct client_socket socket = {.on_readable = on_readable,
		.on_close = on_close,
		.on_replaced = on_replaced,
		.data = s};
	struct desk *d;
	struct client *c = NULL;
	const struct owner *owner = owners_first(owners);
	if (kernels_find(s->gw.kernels, owner, ID, &d, NULL) != 0)
		return NULL;
	cJSON_Delete(desk_model(d));
	return client_attach(d, "page", &socket, &c, NULL) == 0 ? c : NULL;
}

static void live_on(struct setting *s)
{
	struct client *c = open_page(s);
	struct kernel *k = fake_kernel(s->gw.bridge, 0);
	if (c)
		read_all(s, c);
	if (k && k->state == KERNEL_STARTING) {
		fake_kernel_ready(k);
		fake_kernel_say(k, CHANNEL_IOPUB, "status", NULL, "{\"execution_state\":\"idle\"}");
		fake_kernel_turn(k);
	}
	settle(s);
	cJSON_Delete(sessions_list(s->gw.sessions, owners_first(owners)));
	if (c) {
		read_all(s, c);
		client_detach(c, 0);
	}
}

static void on_ended(void *data)
{
	*(bool *)data = true;
}

static void end(struct setting *s)
{
	kernels_end_all(s->gw.kernels, on_ended, &s->ended);
	for (int i = 0; i < 10 && !s->ended; i++)
		settle(s);
	if (!s->ended)
		abort();
	sessions_free(s->gw.sessions);
	kernels_free(s->gw.kernels);
	fake_bridge_free(s->gw.bridge);
	clock_close(s->gw.clock, NULL, NULL);
	if (uv_loop_close(&s->loop) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct setting *s = xcalloc(1, sizeof *s);
	make_folder();
	open_gateway(s);
	put_files((struct bytes){data, len});
	if (len > 0 && data[0] == '{') /* else it is gone, and one is started anew */
		fake_bridge_survive(s->gw.bridge);
	if (kernels_adopt(s->gw.kernels, NULL) != 0)
		abort();
	live_on(s);
	end(s);
	free(s);
	return 0;
}
