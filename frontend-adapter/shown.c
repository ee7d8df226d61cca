#include "frontend-adapter/shown.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/shown_scale.h"
#include "gateway/base/json_tree.h"

#define NAMED_MAX 100u

void shown_init(struct shown *s, size_t max, const struct shown_to *to)
{
	*s = (struct shown){.max = max, .to = *to};
	list_init(&s->outputs);
}

static struct shown_output *output_at(struct list *at)
{
	return CONTAINER_OF(at, struct shown_output, link);
}

static void count(struct shown *s, const struct shown_output *o, bool comes)
{
	s->plain = comes ? s->plain + o->plain : s->plain - o->plain;
	s->pictures = comes ? s->pictures + o->picture : s->pictures - o->picture;
}

static void output_free(struct shown_output *o)
{
	list_remove(&o->link);
	cJSON_Delete(o->tree);
	free(o->display_id);
	free(o);
}

static void drop_outputs(struct shown *s)
{
	LIST_EACH_SAFE (at, &s->outputs)
		output_free(output_at(at));
}

void shown_done(struct shown *s)
{
	drop_outputs(s);
	cJSON_Delete(s->truncated);
}

void shown_clear(struct shown *s)
{
	struct shown fresh;
	shown_done(s);
	shown_init(&fresh, s->max, &s->to);
	*s = fresh;
	list_init(&s->outputs);
}

/* ---- what fits ---- */

static const char *text_of(const cJSON *tree, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, key));
	return text ? text : "";
}

static int size_of(const cJSON *item, size_t *ret)
{
	struct err err;
	AUTO(freep) char *text = json_print(item, &err);
	*ret = text ? strlen(text) : 0;
	return text ? 0 : err.code;
}

void shown_note(struct shown *s, const char *what)
{
	char text[160];
	if (!s->truncated)
		s->truncated = cJSON_CreateArray();
	(void)snprintf(text, sizeof text, "%.80s did not fit into 3 MB: the history has it", what);
	if (s->n_truncated++ < NAMED_MAX)
		(void)cJSON_AddItemToArray(
			s->truncated, cJSON_CreateString(text)); /* both are there */
}

cJSON *shown_picture(const struct shown_output *o)
{
	cJSON *data = cJSON_GetObjectItemCaseSensitive(o->tree, "data");
	cJSON *png = cJSON_GetObjectItemCaseSensitive(data, "image/png");
	cJSON *item = png ? png : cJSON_GetObjectItemCaseSensitive(data, "image/jpeg");
	return cJSON_IsString(item) ? item : NULL;
}

static int measure(struct shown_output *o)
{
	const cJSON *picture = shown_picture(o);
	size_t all = 0;
	int rc = size_of(o->tree, &all);
	if (rc == 0 && picture)
		rc = size_of(picture, &o->picture);
	else
		o->picture = 0;
	o->plain = all - o->picture;
	return rc;
}

/* Of all but the picture. */
static cJSON *largest(const struct shown_output *o)
{
	cJSON *item, *found = NULL, *picture = shown_picture(o);
	size_t most = 0, size;
	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(o->tree, "data")) {
		if (item != picture && size_of(item, &size) == 0 && size > most)
			found = item, most = size;
	}
	return found;
}

static int leave_out(struct shown *s, struct shown_output *o, cJSON *item)
{
	cJSON *data = cJSON_GetObjectItemCaseSensitive(o->tree, "data");
	shown_note(s, item->string);
	cJSON_Delete(cJSON_DetachItemViaPointer(data, item));
	return measure(o);
}

/* Pictures that are there, or come with it, have half of all in any case. */
static size_t plain_max(const struct shown *s, const struct shown_output *o)
{
	size_t pictures = s->pictures + o->picture;
	return s->max - (pictures < s->max / 2 ? pictures : s->max / 2);
}

/* Representations go until it fits beside what is there. E_TOO_BIG: nothing is left of it. */
static int fit(struct shown *s, struct shown_output *o)
{
	cJSON *item;
	int rc = measure(o);
	size_t held_max = s->to.renderer ? 2 * SHOWN_HELD_MAX : s->max - s->plain;
	if (rc == 0 && o->picture > 0 && s->pictures + o->picture > held_max)
		rc = leave_out(s, o, shown_picture(o));
	while (rc == 0 && s->plain + o->plain > plain_max(s, o) && (item = largest(o)))
		rc = leave_out(s, o, item);
	if (rc != 0)
		return rc;
	const cJSON *data = cJSON_GetObjectItemCaseSensitive(o->tree, "data");
	if (s->plain + o->plain > plain_max(s, o)) {
		shown_note(s, text_of(o->tree, "output_type"));
		return E_TOO_BIG;
	}
	return data && !data->child ? E_TOO_BIG : 0;
}

/* ---- what is told ---- */

static void tell(struct shown *s, struct shown_output *o, bool updates)
{
	cJSON *event = cJSON_Duplicate(o->tree, true);
	if (*o->display_id)
		(void)cJSON_AddStringToObject(
			event, "display_id", o->display_id); /* cannot fail (json_tree.h) */
	if (updates)
		(void)cJSON_AddTrueToObject(event, "update");
	s->to.tell(s->to.data, event);
	o->told = true;
	o->update_owed = false;
}

/* Live only as long as all of it fits into the budget: what comes then waits for its final size. */
static bool may_tell(struct shown *s, const struct shown_output *o)
{
	size_t bytes = o->plain + o->picture;
	s->withholds = s->withholds || s->told + bytes > s->max;
	if (!s->withholds)
		s->told += bytes;
	return !s->withholds;
}

void shown_tell_rest(struct shown *s)
{
	LIST_EACH (at, &s->outputs) {
		struct shown_output *o = output_at(at);
		if (!o->told || o->update_owed)
			tell(s, o, o->told);
	}
}

/* ---- what comes ---- */

static cJSON *tree_of(const char *msg_type, const cJSON *content)
{
	static const char *const keys[] = {
		"data", "metadata", "execution_count", "ename", "evalue", "traceback"};
	cJSON *output = cJSON_CreateObject();
	bool updates = strcmp(msg_type, "update_display_data") == 0;
	(void)cJSON_AddStringToObject(
		output, "output_type", updates ? "display_data" : msg_type); /* as in tell() */
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(content, keys[i]);
		if (item)
			(void)cJSON_AddItemToObject(output, keys[i], cJSON_Duplicate(item, true));
	}
	return output;
}

static struct shown_output *output_new(struct shown *s, cJSON *tree, const char *display_id)
{
	struct shown_output *o = xcalloc(1, sizeof *o);
	list_init(&o->link);
	o->shown = s;
	o->tree = tree;
	o->display_id = xstrdup(display_id);
	return o;
}

static int append(struct shown *s, struct shown_output *o)
{
	int rc = fit(s, o);
	if (rc != 0) {
		output_free(o);
		return rc == E_TOO_BIG ? 0 : rc;
	}
	list_append(&s->outputs, &o->link);
	count(s, o, true);
	if (may_tell(s, o))
		tell(s, o, false);
	return 0;
}

/* All outputs of that display. None: it is of an earlier run, and not shown anew. */
static int update(struct shown *s, const char *id, const char *msg_type, const cJSON *content)
{
	int rc = 0;
	bool told = false;
	LIST_EACH_SAFE (at, &s->outputs) {
		struct shown_output *o = output_at(at);
		if (!*id || strcmp(o->display_id, id) != 0)
			continue;
		count(s, o, false);
		cJSON_Delete(o->tree);
		o->tree = tree_of(msg_type, content);
		int fits = fit(s, o);
		if (fits != 0) {
			output_free(o);
			rc = fits == E_TOO_BIG ? rc : fits;
			continue;
		}
		count(s, o, true);
		o->update_owed = o->told;
		if (o->told && !told && may_tell(s, o)) {
			tell(s, o, true);
			told = true;
		}
		o->update_owed = o->update_owed && !told;
	}
	return rc;
}

int shown_add(struct shown *s, const char *msg_type, const struct cJSON *content)
{
	const char *id =
		text_of(cJSON_GetObjectItemCaseSensitive(content, "transient"), "display_id");
	bool updates = strcmp(msg_type, "update_display_data") == 0;
	int rc = updates ? update(s, id, msg_type, content)
			 : append(s, output_new(s, tree_of(msg_type, content), id));
	shown_scale_held(s);
	return rc;
}

/* ---- the record ---- */

struct cJSON *shown_list(const struct shown *s)
{
	cJSON *list = cJSON_CreateArray();
	LIST_EACH (at, &s->outputs)
		(void)cJSON_AddItemToArray(
			list, cJSON_Duplicate(output_at(at)->tree, true)); /* both are there */
	return list;
}

void shown_add_truncated(const struct shown *s, struct cJSON *list)
{
	char text[120];
	const cJSON *at;
	cJSON_ArrayForEach (at, s->truncated)
		(void)cJSON_AddItemToArray(list, cJSON_Duplicate(at, true)); /* both are there */
	if (s->n_truncated > NAMED_MAX) {
		(void)snprintf(text, sizeof text,
			"%u more did not fit into 3 MB: the history has them",
			s->n_truncated - NAMED_MAX);
		(void)cJSON_AddItemToArray(list, cJSON_CreateString(text));
	}
	if (s->n_scaled > 0) {
		(void)snprintf(text, sizeof text,
			"%u picture%s scaled down to fit into 3 MB: the history has the whole",
			s->n_scaled, s->n_scaled == 1 ? " was" : "s were");
		(void)cJSON_AddItemToArray(list, cJSON_CreateString(text));
	}
}
