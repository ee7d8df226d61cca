#include "gateway/door/start_wait.h"

#include <cjson/cJSON.h>
#include <stdio.h>

struct start_waiter {
	struct call *call;
	struct cJSON *body;
	void (*again)(struct call *r, struct cJSON *body);
};

void start_refuse(struct call *r, const struct err *err)
{
	char seconds[32];
	int64_t wait_ms = r->door->gw->config.pool_wait;
	if (err->code == E_CAPACITY || err->code == E_QUEUE_TIMEOUT) {
		/* 32 hold any number. */
		(void)snprintf(seconds, sizeof seconds, "%lld",
			(long long)(wait_ms < 1000 ? 1 : wait_ms / 1000));
		answer_header(r, "Retry-After", seconds);
	}
	answer_error(r, err);
}

/* Nobody reads an answer to a client that is gone: its place is the next one's. */
static void on_place(void *data, const struct err *err)
{
	struct start_waiter *w = data;
	struct err gone;
	if (!err && w->call->carrier) {
		w->again(w->call, w->body);
	} else {
		(void)err_set(&gone, E_GONE, "the client is gone");
		cJSON_Delete(w->body);
		start_refuse(w->call, err ? err : &gone);
	}
	free(w);
}

bool start_wait(struct call *r, struct cJSON *body, const struct err *err,
	void (*again)(struct call *r, struct cJSON *body))
{
	struct kernels *ks = r->door->gw->kernels;
	if (err->code != E_CAPACITY || !kernels_may_wait(ks))
		return false;
	struct start_waiter *w = xcalloc(1, sizeof *w);
	*w = (struct start_waiter){.call = r, .body = body, .again = again};
	kernels_await_place(ks, on_place, w);
	return true;
}
