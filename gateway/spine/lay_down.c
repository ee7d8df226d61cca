#include "gateway/spine/lay_down.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json_tree.h"
#include "gateway/spine/desk.h"

#define FOLDER	  "/work" /* of a kernel that has no other */
#define LAY_MS	  30000u  /* without a sign of it */
#define AHEAD	  16	  /* contents that are in memory at once */
#define NEEDS_MAX FOLDER_NAMES_MAX

static void lay_down_free(struct lay_down *l)
{
	if (l->expects > 0)
		return; /* its last callback does */
	cJSON_Delete(l->needs);
	free(l);
}

static void over(struct lay_down *l, const struct err *err)
{
	timer_stop(l->desk->gw->clock, &l->timer);
	if (l->is_over)
		return;
	l->is_over = true;
	l->cb(l->data, err);
}

static void on_late(struct timer *t)
{
	struct err err;
	err_set(&err, E_TIMEOUT, "the kernel's container did not lay down the files in time");
	over(CONTAINER_OF(t, struct lay_down, timer), &err);
}

static void go_on(struct lay_down *l)
{
	timer_start(l->desk->gw->clock, &l->timer, LAY_MS);
}

static void on_content(void *data, int status, struct bytes content, const struct err *err)
{
	struct lay_down *l = data;
	struct err why;
	l->expects--;
	if (!l->desk) {
		lay_down_free(l);
		return;
	}
	if (l->is_over)
		return;
	/* Its container tells what follows from one that is missing. */
	if (status != 0) {
		log_warn(&l->desk->log, "content_missing error=\"%s\"", err->text);
		content = (struct bytes){0};
	}
	cJSON *name = cJSON_DetachItemFromArray(l->needs, 0);
	int rc = kernel_lay_content(l->desk->kernel, name->valuestring, content, &why);
	cJSON_Delete(name);
	if (rc != 0)
		over(l, &why);
}

/* In portions: the next one once this one has left. History answers in order. */
static void feed(struct lay_down *l)
{
	struct desk *d = l->desk;
	const struct history_whose whose = {.history_id = d->id,
		.wanted = *d->scribe.history ? d->scribe.history : NULL,
		.owner = d->owner->name};
	const cJSON *name = l->needs->child;
	for (int i = 0; name && i < AHEAD; i++, name = name->next) {
		l->expects++;
		history_content(d->gw->histories, &whose, name->valuestring, on_content, l);
	}
}

static void on_needs(void *data, const struct cJSON *names, bool last)
{
	struct lay_down *l = data;
	const cJSON *one;
	struct err err = {.code = E_PROTOCOL, .text = "its container asks for more than there is"};
	if (l->is_over)
		return;
	go_on(l);
	if (cJSON_GetArraySize(l->needs) + cJSON_GetArraySize(names) > (int)NEEDS_MAX) {
		over(l, &err);
		return;
	}
	cJSON_ArrayForEach (one, names)
		cJSON_AddItemToArray(l->needs, cJSON_CreateString(one->valuestring));
	if (last)
		feed(l);
}

static void on_room(void *data)
{
	struct lay_down *l = data;
	if (l->is_over)
		return;
	go_on(l);
	if (l->expects == 0)
		feed(l);
}

static void on_laid(void *data, const struct err *err)
{
	over(data, err);
}

int lay_down_begin(struct desk *d, const struct cJSON *entries,
	void (*cb)(void *data, const struct err *err), void *data, struct lay_down **ret,
	struct err *err)
{
	struct lay_down *l = xcalloc(1, sizeof *l);
	const char *own = kernel_folder(d->kernel);
	cJSON *order = cJSON_CreateObject();
	/* Not changed: cJSON has no const here. */
	cJSON_AddItemReferenceToObject(order, "entries", (cJSON *)entries);
	AUTO(freep) char *text = json_print(order, err);
	cJSON_Delete(order);
	const struct kernel_lay what = {.folder = *own ? own : FOLDER,
		.entries = {(const uint8_t *)text, text ? strlen(text) : 0},
		.on_needs = on_needs,
		.on_room = on_room,
		.on_laid = on_laid,
		.data = l};
	l->desk = d;
	l->cb = cb;
	l->data = data;
	l->needs = cJSON_CreateArray();
	timer_init(&l->timer, on_late);
	int rc = text ? kernel_lay(d->kernel, &what, err) : err->code;
	if (rc != 0) {
		lay_down_free(l);
		return rc;
	}
	go_on(l);
	*ret = l;
	return 0;
}

void lay_down_end(struct lay_down *l, bool keep)
{
	if (!l)
		return;
	struct desk *d = TAKE(l->desk);
	timer_stop(d->gw->clock, &l->timer);
	if (d->kernel)
		kernel_lay_end(d->kernel, keep);
	lay_down_free(l);
}
