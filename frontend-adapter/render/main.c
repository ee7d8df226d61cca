/* coppice-render: load what is needed, put up the wall, read one request, answer, end. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frontend-adapter/render/picture.h"
#include "frontend-adapter/render/render.h"

static const char usage[] =
	"coppice-render: draws one MIME bundle as safe HTML or PNG. Started by `coppice serve`.\n"
	"  stdin   {\"to\": \"png\" or \"html\", \"max_bytes\": N}, a line's end, then the bundle\n"
	"          {\"data\": {MIME type: ...}, \"metadata\": {...}}\n"
	"  stdout  {\"mime\": ..., \"from\": ..., \"cut\": ...}, a line's end, then the result\n"
	"  stderr  one sentence if it could not be done\n"
	"Exit codes: 0 done, 1 a failure, 2 wrong use or a malformed request, 3 nothing can be\n"
	"drawn, 4 it does not fit max_bytes, 5 the sandbox could not be made. Ended by a signal:\n"
	"a limit of time or memory, or a forbidden system call.\n";

static int read_all(struct buf *ret, struct err *err)
{
	uint8_t block[65536];
	ssize_t n;
	while ((n = read(STDIN_FILENO, block, sizeof block)) > 0)
		if (buf_add(ret, block, (size_t)n) != 0)
			return buf_check(ret, "the request", err);
	return n == 0 ? 0 : err_set(err, E_IO, "the request cannot be read");
}

static int write_all(struct bytes b, struct err *err)
{
	while (b.len > 0) {
		ssize_t n = write(STDOUT_FILENO, b.data, b.len);
		if (n <= 0)
			return err_set(err, E_IO, "the result cannot be written");
		b.data += n;
		b.len -= (size_t)n;
	}
	return 0;
}

static int answer(const struct request *r, const struct result *result, struct err *err)
{
	char head[300];
	int len = snprintf(head, sizeof head, "{\"mime\":\"%s\",\"from\":\"%s\",\"cut\":%s}\n",
		r->png ? "image/png" : "text/html; charset=utf-8", result->from,
		result->cut ? "true" : "false");
	int status = write_all((struct bytes){(uint8_t *)head, (size_t)len}, err);
	return status == 0 ? write_all((struct bytes){result->bytes.data, result->bytes.len}, err)
			   : status;
}

static int serve(struct err *err)
{
	struct buf in; /* nothing is freed: the process ends */
	struct request r;
	struct result result = {0};
	buf_init(&in, REQUEST_MAX);
	int status = read_all(&in, err);
	if (status == 0)
		status = request_parse(&in, &r, err);
	if (status != 0)
		return status == E_INVALID || status == E_TOO_BIG ? RENDER_REQUEST : RENDER_FAILED;
	buf_init(&result.bytes, r.max_bytes);
	status = r.png ? render_png(&r, &result, err) : render_html(&r, &result, err);
	if (status == 0)
		status = answer(&r, &result, err);
	return status == 0	       ? RENDER_OK
	       : status == E_NOT_FOUND ? RENDER_NOTHING
	       : status == E_TOO_BIG   ? RENDER_TOO_BIG
				       : RENDER_FAILED;
}

static void say(const char *text)
{
	ssize_t n = write(STDERR_FILENO, text, strlen(text));
	n += write(STDERR_FILENO, "\n", 1);
	(void)n; /* nobody listens */
}

/* _exit: the end needs no order, and its handlers might ask what the wall forbids. */
int main(int argc, char **argv)
{
	struct err err = {0};
	(void)argv;
	if (argc > 1) {
		say(usage);
		_exit(RENDER_REQUEST);
	}
	wall_limits();
	int status = fonts_load(&err);
	if (status == 0)
		status = picture_warm(&err);
	if (status == 0)
		status = wall_up(&err);
	int code = status == 0 ? serve(&err) : RENDER_NO_WALL;
	if (code != RENDER_OK)
		say(err.text);
	_exit(code);
}
