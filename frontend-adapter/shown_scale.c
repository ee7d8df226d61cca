/* The pictures of a run that together are too long: the long ones become shorter until all fit, as
 * `coppice-render` draws them. */
#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/shown_scale.h"
#include "gateway/base/buf.h"
#include "gateway/base/crypto.h"
#include "gateway/base/json_tree.h"

#define AT_ONCE	    2u
#define LEAST	    6144u  /* bytes as JSON: a smaller picture shows nothing */
#define PATIENCE_MS 60000u /* for all of them; then the rest is left out */

static struct shown_output *output_at(struct list *at)
{
	return CONTAINER_OF(at, struct shown_output, link);
}

/* An output whose last representation goes stays, so that its place is seen. */
static void leave_out(struct shown *s, struct shown_output *o)
{
	cJSON *item = shown_picture(o);
	shown_note(s, item->string);
	cJSON_Delete(cJSON_DetachItemViaPointer(
		cJSON_GetObjectItemCaseSensitive(o->tree, "data"), item));
	s->pictures -= o->picture;
	o->picture = 0;
}

/* The last ones go of which even the smallest would not fit. Returns how many stay. */
static size_t leave_out_last(struct shown *s, size_t room)
{
	size_t used = 0, n = 0;
	LIST_EACH (at, &s->outputs) {
		struct shown_output *o = output_at(at);
		size_t least = o->picture < LEAST ? o->picture : LEAST;
		if (o->picture == 0)
			continue;
		if (used + least > room) {
			leave_out(s, o);
			continue;
		}
		used += least;
		n++;
	}
	return n;
}

static int compare(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return x < y ? -1 : x > y;
}

/* How long each may be: short ones leave their share to the others. */
static size_t share_of(const struct shown *s, size_t n, size_t room)
{
	AUTO(freep) size_t *sizes = xcalloc(n + 1, sizeof *sizes);
	size_t i = 0;
	LIST_EACH (at, &s->outputs)
		if (output_at(at)->picture > 0)
			sizes[i++] = output_at(at)->picture;
	qsort(sizes, n, sizeof *sizes, compare);
	for (i = 0; i < n; i++) {
		if (sizes[i] > room / (n - i))
			return room / (n - i);
		room -= sizes[i];
	}
	return SIZE_MAX;
}

static void step(struct shown *s);

static size_t room_of(const struct shown *s)
{
	return s->plain < s->max ? s->max - s->plain : 0;
}

/* All that are too long for their share; some may be left out at once. */
static void begin(struct shown *s)
{
	size_t n = leave_out_last(s, room_of(s));
	s->picture_max = share_of(s, n, room_of(s));
	s->began_ms = clock_now_ms(s->to.clock);
	s->next = s->outputs.next;
	step(s);
}

static void end_if_last(struct shown *s)
{
	if (s->n_out > 0 || !s->settled)
		return;
	if (s->pictures > room_of(s)) /* more text came since they were scaled */
		begin(s);
	if (s->n_out > 0)
		return;
	void (*settled)(void *data) = s->settled;
	s->settled = NULL;
	shown_tell_rest(s);
	settled(s->settled_data);
}

/* A JPEG becomes a PNG too. */
static int put(struct shown *s, struct shown_output *o, struct bytes png)
{
	AUTO(buf_done) struct buf text;
	cJSON *data = cJSON_GetObjectItemCaseSensitive(o->tree, "data");
	buf_init(&text, 2 * png.len + 8);
	int rc = base64_encode(png, &text);
	if (rc != 0 || text.len == 0)
		return E_NOMEM;
	cJSON_Delete(cJSON_DetachItemViaPointer(data, shown_picture(o)));
	(void)cJSON_AddStringToObject(
		data, "image/png", (const char *)text.data); /* cannot fail (json_tree.h) */
	s->pictures -= o->picture;
	o->picture = text.len + 2;
	s->pictures += o->picture;
	s->n_scaled++;
	return 0;
}

static void on_scaled(
	void *data, int status, const struct render_result *result, const struct err *err)
{
	struct shown_output *o = data;
	struct shown *s = o->shown;
	(void)err; /* the renderer's log has it, the record says that it is not there */
	s->n_out--;
	if (status != 0 || put(s, o, result->body) != 0)
		leave_out(s, o);
	step(s);
	end_if_last(s);
}

static int ask(struct shown *s, struct shown_output *o)
{
	cJSON *picture = shown_picture(o), *bundle = cJSON_CreateObject();
	cJSON *data = cJSON_AddObjectToObject(bundle, "data");
	struct err err;
	(void)cJSON_AddItemReferenceToObject(
		data, picture->string, picture); /* cannot fail (json_tree.h) */
	AUTO(freep) char *text = json_print(bundle, &err);
	cJSON_Delete(bundle);
	if (!text)
		return err.code;
	const struct render_request request = {
		.bundle = {(const uint8_t *)text, strlen(text)},
		.to = RENDER_TO_PNG,
		.max_bytes = s->picture_max / 4 * 3 - 8, /* before base64, its padding and quotes */
	};
	return renderer_ask(s->to.renderer, &request, on_scaled, o, &err);
}

/* Some at once: what waits in the renderer's line is other people's too. */
static void step(struct shown *s)
{
	while (s->next != &s->outputs && s->n_out < AT_ONCE) {
		struct shown_output *o = output_at(s->next);
		s->next = s->next->next;
		bool late = clock_now_ms(s->to.clock) > s->began_ms + PATIENCE_MS;
		if (o->picture <= s->picture_max)
			continue;
		if (late || ask(s, o) != 0)
			leave_out(s, o);
		else
			s->n_out++;
	}
}

bool shown_scales(const struct shown *s)
{
	return s->n_out > 0;
}

void shown_scale_held(struct shown *s)
{
	if (s->to.renderer && s->pictures > SHOWN_HELD_MAX && s->n_out == 0)
		begin(s);
}

bool shown_settle(struct shown *s, void (*cb)(void *data), void *data)
{
	if (s->n_out == 0 && s->to.renderer && s->pictures > room_of(s))
		begin(s);
	if (s->n_out == 0) {
		shown_tell_rest(s);
		return false;
	}
	s->settled = cb;
	s->settled_data = data;
	return true;
}
