#include "frontend-adapter/place.h"

struct place_wait {
	void (*cb)(void *data, const struct err *err); /* NULL: left */
	void *data;
};

static void on_place(void *data, const struct err *err)
{
	struct place_wait w = *(struct place_wait *)data;
	free(data);
	if (w.cb)
		w.cb(w.data, err);
}

struct place_wait *place_await(
	const struct chats_setup *setup, void (*cb)(void *data, const struct err *err), void *data)
{
	struct place_wait *w = xcalloc(1, sizeof *w);
	w->cb = cb;
	w->data = data;
	if (setup->runner->await_place(setup->runner_data, on_place, w))
		return w;
	free(w);
	return NULL;
}

void place_leave(struct place_wait *w)
{
	w->cb = NULL;
}
