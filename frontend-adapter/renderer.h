/* Part of adapter.h.
 * Draws MIME bundles in `coppice-render`, a program behind a wall of its own (render/): one process
 * a bundle, some at once, the others wait in order. Loop thread. */
#ifndef COPPICE_ADAPTER_RENDERER_H
#define COPPICE_ADAPTER_RENDERER_H

#include "gateway/base/base.h"
#include "gateway/base/clock.h"
#include "gateway/base/err.h"
#include "gateway/base/log.h"

struct uv_loop_s;
struct renderer;

struct renderer_setup {
	struct uv_loop_s *loop;
	struct clock *clock;
	const struct log *log;
	const char *program; /* path of coppice-render; copied */
	unsigned limit_ms;   /* 0: 15 s; a process that is not done by then is killed */
};

struct renderer *renderer_open(const struct renderer_setup *setup);
/* What runs is killed; each open question is answered (E_UNAVAILABLE) before `closed` is called. */
void renderer_close(struct renderer *r, void (*closed)(void *data), void *data);

enum render_to { RENDER_TO_PNG, RENDER_TO_HTML };

struct render_request {
	struct bytes bundle; /* JSON {data, metadata}; copied */
	enum render_to to;
	size_t max_bytes; /* 0: the most there is, 32 MiB; at least 16 KiB, of PNG 1 KiB */
};

struct render_result {
	struct bytes body; /* borrowed for the call */
	const char *mime;  /* Content-Type of it */
	const char *from;  /* MIME type of what was drawn */
	bool cut;	   /* something was left out or scaled down to fit */
};

/* Called once, from the loop. E_INVALID: the bundle is malformed, or nothing in it can be drawn;
 * E_TOO_BIG: does not fit; E_TIMEOUT; E_UNAVAILABLE: closing, or the program cannot be run; E_IO.
 */
typedef void render_done(
	void *data, int status, const struct render_result *result, const struct err *err);

/* E_UNAVAILABLE: too many wait; E_INVALID: max_bytes; E_TOO_BIG: the bundle. done is not called
 * then. */
int renderer_ask(struct renderer *r, const struct render_request *q, render_done *done, void *data,
	struct err *err);

#endif
