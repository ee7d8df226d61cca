#include "frontend-adapter/back.h"

struct back_wait {
	void (*cb)(void *data, const struct cJSON *told, const struct err *err); /* NULL: left */
	void *data;
};

static void on_back(void *data, const struct cJSON *told, const struct err *err)
{
	struct back_wait w = *(struct back_wait *)data;
	free(data);
	if (w.cb)
		w.cb(w.data, told, err);
}

struct back_wait *back_ask(const struct conversation *c, const char *msg_id,
	void (*cb)(void *data, const struct cJSON *told, const struct err *err), void *data)
{
	const struct chats_setup *s = &c->chats->setup;
	struct back_wait *w = xcalloc(1, sizeof *w);
	w->cb = cb;
	w->data = data;
	s->runner->back(s->runner_data, &(const struct chat_back){.owner = c->owner,
						.kernel_id = c->kernel_id,
						.msg_id = msg_id,
						.cb = on_back,
						.data = w});
	return w;
}

void back_leave(struct back_wait *w)
{
	w->cb = NULL;
}
