#include "frontend-adapter/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/buf.h"
#include "gateway/base/file.h"

#define WAITING_MAX (16u << 20) /* more than one message of a kernel holds in stream text */
#define LAGS	    (4u << 20)

struct run_log {
	uv_loop_t *loop;
	const struct log *log;
	char *path;
	int fd; /* -1: not made yet */
	uint64_t bytes;
	struct buf waiting, block; /* block is being written */
	size_t written;		   /* of block */
	uv_fs_t request;
	bool writes, closing, full;
	char trouble[160]; /* "": none */
	void (*finished)(void *data);
	void *finished_data;
};

static void step(struct run_log *l);

struct run_log *run_log_new(struct uv_loop_s *loop, const struct log *log, const char *path)
{
	struct run_log *l = xcalloc(1, sizeof *l);
	l->loop = loop;
	l->log = log;
	l->path = xstrdup(path);
	l->fd = -1;
	buf_init(&l->waiting, WAITING_MAX);
	buf_init(&l->block, WAITING_MAX);
	return l;
}

static void run_log_free(struct run_log *l)
{
	if (l->fd >= 0)
		(void)close(l->fd); /* a late fault of the disk is nobody's to mend */
	buf_done(&l->waiting);
	buf_done(&l->block);
	free(l->path);
	free(l);
}

static void fail(struct run_log *l, const char *why)
{
	log_warn(l->log, "run_log_not_written path=%s error=\"%s\"", l->path, why);
	(void)copy_text(l->trouble, sizeof l->trouble, why, strlen(why)); /* cut is fine */
	l->full = true;
	buf_reset(&l->waiting);
	if (l->writes)
		return; /* what is being written stays */
	buf_reset(&l->block);
	l->written = 0;
}

static void on_written(uv_fs_t *request)
{
	struct run_log *l = request->data;
	ssize_t n = request->result;
	uv_fs_req_cleanup(request);
	l->writes = false;
	if (n < 0)
		fail(l, uv_strerror((int)n));
	else
		l->written += (size_t)n;
	step(l);
}

static void write_block(struct run_log *l)
{
	uv_buf_t rest = uv_buf_init((char *)l->block.data + l->written,
		(unsigned)(l->block.len - l->written)); /* at most WAITING_MAX */
	l->request.data = l;
	l->writes = uv_fs_write(l->loop, &l->request, l->fd, &rest, 1, -1, on_written) == 0;
	if (!l->writes)
		fail(l, "it cannot be asked for");
}

static void step(struct run_log *l)
{
	if (l->writes)
		return;
	if (l->written == l->block.len) {
		struct buf done = l->block;
		buf_reset(&done);
		l->block = l->waiting;
		l->waiting = done;
		l->written = 0;
	}
	if (l->written < l->block.len)
		write_block(l);
	if (!l->writes && l->closing)
		run_log_free(l);
	else if (!l->writes && l->finished)
		TAKE(l->finished)(l->finished_data); /* which may close it */
}

static bool make_file(struct run_log *l)
{
	struct err err;
	if (l->fd >= 0)
		return true;
	if (file_folder_make(l->path, &err) != 0) {
		fail(l, err.text);
		return false;
	}
	l->fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (l->fd < 0)
		fail(l, strerror(errno));
	return l->fd >= 0;
}

void run_log_add(struct run_log *l, struct bytes text)
{
	static const char mark[] = "\n[... the log ends here: 256 MB]\n";
	if (l->full || text.len == 0 || !make_file(l))
		return;
	l->bytes += text.len;
	l->full = l->bytes > RUN_LOG_MAX || l->waiting.len + text.len > WAITING_MAX - sizeof mark;
	if (l->full)
		text = (struct bytes){(const uint8_t *)mark, sizeof mark - 1};
	if (buf_add(&l->waiting, text.data, text.len) != 0) { /* there was room */
		fail(l, "out of memory");
		return;
	}
	if (l->full)
		(void)copy_text(l->trouble, sizeof l->trouble, "it ends at 256 MB", 17); /* fits */
	step(l);
}

bool run_log_finish(struct run_log *l, void (*cb)(void *data), void *data)
{
	if (!l->writes)
		return false;
	l->finished = cb;
	l->finished_data = data;
	return true;
}

const char *run_log_trouble(const struct run_log *l)
{
	return *l->trouble ? l->trouble : NULL;
}

bool run_log_lags(const struct run_log *l)
{
	return l->waiting.len > LAGS;
}

void run_log_close(struct run_log *l)
{
	if (!l)
		return;
	l->closing = true;
	step(l);
}
