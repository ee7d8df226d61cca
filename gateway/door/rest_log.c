/* The full log of a run, from its file: read a block at a time, as fast as it goes out. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "frontend-adapter/adapter.h"
#include "gateway/door/call.h"
#include "gateway/door/route.h"
#include "gateway/gateway.h"

#define BEHIND_MAX (4u << 20)

struct reading {
	struct call *call;
	int fd;
	uv_fs_t request;
	bool reads, gone;
	char block[65536];
};

static void read_on(struct reading *g);

static void end(struct reading *g)
{
	struct call *r = g->call;
	(void)close(g->fd); /* read only */
	free(g);
	answer_end(r);
}

static void on_read(uv_fs_t *request)
{
	struct reading *g = request->data;
	ssize_t n = request->result;
	uv_fs_req_cleanup(request);
	g->reads = false;
	if (n > 0 && !g->gone)
		g->gone = !answer_add(g->call, (struct bytes){(uint8_t *)g->block, (size_t)n});
	if (n < 0) /* hangs up: what looks whole would not be */
		g->call->answer.failed = true;
	if (n <= 0 || g->gone)
		end(g);
	else
		read_on(g);
}

static void read_on(struct reading *g)
{
	uv_buf_t block = uv_buf_init(g->block, sizeof g->block);
	if (g->reads || answer_backlog(g->call) > BEHIND_MAX)
		return; /* on_drained goes on */
	g->request.data = g;
	g->reads = uv_fs_read(g->call->door->gw->loop, &g->request, g->fd, &block, 1, -1,
			   on_read) == 0;
	if (!g->reads)
		end(g);
}

static void on_drained(void *data)
{
	read_on(data);
}

static void on_gone(void *data)
{
	struct reading *g = data;
	g->gone = true;
	if (!g->reads)
		end(g);
}

static void log_get(struct call *r)
{
	char path[PATH_MAX];
	struct err err;
	if (chat_log(r->door->gw->chats, r->owner->name, r->param[0], path, &err) != 0) {
		answer_error(r, &err);
		return;
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) { /* it printed nothing */
		answer_bytes(r, 200, "text/plain; charset=utf-8", (struct bytes){0});
		return;
	}
	if (fd < 0) {
		err_set(&err, E_IO, "the log cannot be read: %s", strerror(errno));
		answer_error(r, &err);
		return;
	}
	struct reading *g = xcalloc(1, sizeof *g);
	g->call = r;
	g->fd = fd;
	answer_header(r, "Content-Disposition", "attachment; filename=\"log.txt\"");
	r->on_drained = on_drained;
	answer_begin(r, "text/plain; charset=utf-8", on_gone, g);
	read_on(g);
}

const struct route rest_log_routes[] = {
	{METHOD_GET, "/chat/records/{r}/log", SCOPE_READ, log_get},
	{0},
};
