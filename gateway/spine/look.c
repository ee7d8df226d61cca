#include "gateway/spine/look.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json_tree.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/limits.h"

struct look {
	struct desk *desk; /* NULL: it went */
};

static const char *text_of(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	return text ? text : "";
}

/* What was recorded meanwhile is newer. */
static void take(struct desk *d, const cJSON *way)
{
	struct scribe *s = &d->scribe;
	const char *msg_id = text_of(cJSON_GetObjectItemCaseSensitive(way, "node"), "msg_id");
	limit_stands(d, msg_id);
	const cJSON *node = cJSON_GetObjectItemCaseSensitive(way, "node");
	const cJSON *version = cJSON_GetObjectItemCaseSensitive(way, "state_version");
	const char *id = text_of(node, "id"), *branch = text_of(way, "branch");
	/* The node is of another branch where one was begun at it. */
	if (d->at.branch[0] && strcmp(id, d->at.node) == 0)
		branch = d->at.branch;
	const char *kind = text_of(node, "kind");
	if (s->node[0] || (strcmp(kind, "execution") != 0 && strcmp(kind, "files") != 0))
		return;
	(void)copy_text(s->node, sizeof s->node, id, strlen(id)); /* fits, as the branch does */
	(void)copy_text(s->branch, sizeof s->branch, branch, strlen(branch));
	if (cJSON_IsNumber(version) && s->state_version < (uint64_t)version->valuedouble)
		s->state_version = (uint64_t)version->valuedouble;
}

static void on_way(void *data, int status, struct bytes json, const struct err *err)
{
	struct look *look = data;
	cJSON *way = status == 0 && look->desk ? json_parse(json, NULL, NULL) : NULL;
	(void)err; /* where nothing was recorded it stands nowhere */
	if (look->desk) {
		take(look->desk, way);
		look->desk->look = NULL;
	}
	cJSON_Delete(way);
	free(look);
}

void look_ask(struct desk *d)
{
	if (!d->gw->histories)
		return;
	struct look *look = xcalloc(1, sizeof *look);
	look->desk = d;
	d->look = look;
	const struct history_question q = {
		.what = HISTORY_WAY,
		.owner = d->owner->name,
		.history = scribe_history(d),
		.node = "HEAD",
		.kernel_id = d->id,
		.epoch = d->epoch,
		.at = d->at.node,
	};
	history_ask(d->gw->histories, &q, on_way, look);
}

void look_drop(struct desk *d)
{
	if (d->look)
		d->look->desk = NULL;
	d->look = NULL;
}
