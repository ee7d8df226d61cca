#include "gateway/spine/magic.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"
#include "gateway/spine/branches.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/forget.h"
#include "gateway/spine/move_text.h"
#include "gateway/spine/moves.h"
#include "gateway/spine/survive.h"

#define WAIT_MS	   3000u /* for what is not recorded yet */
#define LOG_NODES  50u
#define ANSWER_MAX (512u << 10) /* beyond it outputs are left out */

/* waiting --recorded, or WAIT_MS--> asked --history's answer--> gone
 *                                     \---of a node to forget--> forgetting --done--> gone */
struct magic {
	struct desk *desk; /* NULL: it went */
	int64_t id;
	bool is_log, brief, forgets, goes;
	struct err missed; /* no such node; it is asked whether there are any */
	char about[HISTORY_NAME_SIZE];
	struct timer timer;
};

static void say(struct desk *d, int64_t id, const char *status, const char *text)
{
	if (d->kernel && !d->ending)
		kernel_answer(
			d->kernel, id, status, (struct bytes){(const uint8_t *)text, strlen(text)});
}

static void say_err(struct desk *d, int64_t id, const struct err *err)
{
	say(d, id, err_name(err->code), err->text);
}

static void ask(struct magic *m);

static void finish(struct magic *m)
{
	if (m->desk)
		m->desk->magic = NULL;
	free(m);
}

static bool asks_again(struct magic *m, int status, struct bytes json, const struct err *err)
{
	if (!m->desk || m->is_log)
		return false;
	if (status == 0 && json.len > ANSWER_MAX && !m->brief) {
		m->brief = true;
	} else if (status == E_NOT_FOUND) {
		m->is_log = true;
		m->missed = *err;
	} else {
		return false;
	}
	ask(m);
	return true;
}

/* Where many nodes have new ids they are not listed: the old ones lead there. */
static void say_forgotten(const struct magic *m, struct bytes json)
{
	struct desk *d = m->desk;
	struct json_want wants[] = {{.key = "node"}, {.key = "same_code"}, {.key = "shown_in"}};
	AUTO(buf_done) struct buf b;
	buf_init(&b, ANSWER_MAX);
	if (json.len > ANSWER_MAX && json_scan(json, wants, ARRAY_LEN(wants), NULL) == 0) {
		(void)buf_add_text(&b, "{\"node\":"); /* latched, as below */
		(void)buf_add(&b, wants[0].value.data, wants[0].value.len);
		(void)buf_add_text(&b, ",\"rewritten\":null,\"same_code\":");
		(void)buf_add(&b, wants[1].value.data, wants[1].value.len);
		(void)buf_add_text(&b, ",\"shown_in\":");
		(void)buf_add(&b, wants[2].value.data, wants[2].value.len);
		(void)buf_add_text(&b, "}");
		json = (struct bytes){b.data, b.len};
	}
	if (d->kernel && !d->ending)
		kernel_answer(d->kernel, m->id, "ok", json);
}

static void on_forgotten(void *data, int status, struct bytes json, const struct err *err)
{
	struct magic *m = data;
	if (m->desk && status != 0)
		say_err(m->desk, m->id, err);
	else if (m->desk)
		say_forgotten(m, json);
	finish(m);
}

/* By its id: what is meant by HEAD or In[7] may be another node by the time that it is done. One
 * that was forgotten is not done again, since it holds up all recording. */
static void forget(struct magic *m, struct bytes json)
{
	struct desk *d = m->desk;
	struct json_want wants[] = {{.key = "id"}, {.key = "forgotten"}};
	char node[HISTORY_NODE_SIZE] = "";
	const struct history_question q = {.what = HISTORY_NODE,
		.owner = d->owner->name,
		.history = scribe_history(d),
		.node = node,
		.kernel_id = d->id};
	bool found = json_scan(json, wants, ARRAY_LEN(wants), NULL) == 0 &&
		     json_text(wants[0].value, node, sizeof node);
	if (found && wants[1].value.len == 0) {
		forget_node(d->gw, &q, on_forgotten, m);
		return;
	}
	say(d, m->id, found ? "gone" : "io",
		found ? "that node was forgotten before" : "the node cannot be read");
	finish(m);
}

/* What it may be told now is whether there is a way; where it leads, once it was gone. */
static void file(struct magic *m, struct bytes json)
{
	struct err err;
	cJSON *way = json_parse(json, NULL, &err), *told = cJSON_CreateObject();
	AUTO(freep) char *text = NULL;
	if (way && move_file(m->desk, way, &err) == 0) {
		cJSON_AddItemToObject(
			told, "node", cJSON_DetachItemFromObjectCaseSensitive(way, "node"));
		text = json_print(told, &err);
	}
	if (text)
		say(m->desk, m->id, "ok", text);
	else
		say_err(m->desk, m->id, &err);
	cJSON_Delete(told);
	cJSON_Delete(way);
}

static void on_answer(void *data, int status, struct bytes json, const struct err *err)
{
	struct magic *m = data;
	struct desk *d = m->desk;
	if (asks_again(m, status, json, err))
		return;
	if (d && status == 0 && m->forgets && !m->is_log) {
		forget(m, json);
		return;
	}
	if (d && status == E_NOT_FOUND)
		say(d, m->id, "not_found",
			"nothing is recorded in this history yet: run a cell first");
	else if (d && status != 0)
		say_err(d, m->id, err);
	else if (d && m->missed.code != 0)
		say_err(d, m->id, &m->missed);
	else if (d && m->goes)
		file(m, json);
	else if (d && d->kernel && !d->ending)
		kernel_answer(d->kernel, m->id, "ok", json);
	finish(m);
}

static void ask(struct magic *m)
{
	const struct desk *d = m->desk;
	AUTO(buf_done) struct buf parked, stands;
	if (m->goes)
		parks_list_of(d, &parked);
	else
		parks_list_all(d->kernels, d->owner, &parked);
	branches_standing(d->kernels, d->owner, &stands);
	const struct history_question q = {
		.what = m->is_log ? HISTORY_ONE
			: m->goes ? HISTORY_WAY
				  : HISTORY_NODE,
		.epoch = d->epoch,
		.at = d->at.node,
		.parked = parked.data ? (const char *)parked.data : "",
		.stands = stands.data ? (const char *)stands.data : "",
		.owner = d->owner->name,
		.history = scribe_history(d),
		.node = m->about,
		.kernel_id = d->id,
		.limit = LOG_NODES,
		.brief = m->brief || m->forgets,
	};
	history_ask(d->gw->histories, &q, on_answer, m);
}

static void on_timer(struct timer *t)
{
	ask(CONTAINER_OF(t, struct magic, timer));
}

void magic_recorded(struct desk *d)
{
	struct magic *m = d->magic;
	if (!m || d->ending || d->scribe.n > 0 || !timer_running(&m->timer))
		return;
	timer_stop(d->gw->clock, &m->timer);
	ask(m);
}

void magic_drop(struct desk *d)
{
	struct magic *m = TAKE(d->magic);
	if (!m)
		return;
	m->desk = NULL;
	if (!timer_running(&m->timer))
		return; /* it is freed with its answer */
	timer_stop(d->gw->clock, &m->timer);
	free(m);
}

enum wish { WISH_LOG, WISH_SHOW, WISH_FORGET, WISH_GO };

static void look(struct desk *d, int64_t id, enum wish wish, const char *about)
{
	if (d->magic) {
		say(d, id, "busy", "another question is being answered");
		return;
	}
	struct magic *m = xcalloc(1, sizeof *m);
	m->desk = d;
	m->id = id;
	m->is_log = wish == WISH_LOG;
	m->forgets = wish == WISH_FORGET;
	m->goes = wish == WISH_GO;
	timer_init(&m->timer, on_timer);
	if (!copy_text(m->about, sizeof m->about, about, strlen(about))) {
		free(m);
		say(d, id, "invalid", "that is too long for the name of a node");
		return;
	}
	d->magic = m;
	if (d->scribe.n > 0)
		timer_start(d->gw->clock, &m->timer, WAIT_MS);
	else
		ask(m);
}

/* ---- a branch: it is begun while the cell runs, which it leaves alone ---- */

struct magic_branch {
	struct kernels *ks;
	const struct owner *owner;
	char kernel[UUID_SIZE];
	int64_t id;
};

static void on_branch(void *data, const struct cJSON *answer, const struct err *err)
{
	AUTO(freep) struct magic_branch *b = data;
	struct desk *d;
	struct err shown, why;
	if (kernels_find(b->ks, b->owner, b->kernel, &d, &why) != 0)
		return; /* it was ended meanwhile */
	d->branching = false;
	AUTO(freep) char *text = err ? NULL : json_print(answer, &shown);
	if (text) {
		say(d, b->id, "ok", text);
		return;
	}
	if (err)
		shown = *err;
	const cJSON *report = cJSON_GetObjectItemCaseSensitive(answer, "report");
	if (err && err->code == E_PARTIAL && report)
		move_add_last_note(&shown, report);
	say_err(d, b->id, &shown);
}

/* about: the node, a space, the name; either may be empty. */
static void branch(struct desk *d, int64_t id, const char *about)
{
	char node[HISTORY_NAME_SIZE];
	size_t len = strcspn(about, " ");
	if (d->branching) {
		say(d, id, "busy", "another branch is on its way");
		return;
	}
	if (!copy_text(node, sizeof node, about, len)) {
		say(d, id, "invalid", "that is too long for the name of a node");
		return;
	}
	const struct branch_order order = {.history = scribe_history(d),
		.at = node,
		.name = about[len] ? about + len + 1 : NULL,
		.accept = FIDELITY_PARTIAL,
		.who = d};
	struct magic_branch *b = xcalloc(1, sizeof *b);
	*b = (struct magic_branch){.ks = d->kernels, .owner = d->owner, .id = id};
	memcpy(b->kernel, d->id, sizeof b->kernel);
	d->branching = true;
	branch_begin(d->kernels, d->owner, &order, on_branch, b);
}

static void say_status(struct desk *d, int64_t id)
{
	cJSON *model = desk_model(d);
	/* Without memory it says less. */
	(void)cJSON_AddNumberToObject(model, "unrecorded", (double)d->scribe.n);
	(void)cJSON_AddStringToObject(model, "history", scribe_history(d));
	AUTO(freep) char *text = cJSON_PrintUnformatted(model);
	cJSON_Delete(model);
	say(d, id, "ok", text ? text : "{}");
}

static void use(struct desk *d, int64_t id, const char *name)
{
	struct err err;
	if (!*name)
		say(d, id, "invalid", "which history is to go on?");
	else if (scribe_check_name(name, &err) != 0)
		say_err(d, id, &err);
	else {
		scribe_continue(d, strcmp(name, d->id) == 0 ? NULL : name);
		survive_record(d);
		say(d, id, "ok", "{}");
	}
}

static void release(struct desk *d, int64_t id)
{
	char text[64];
	unsigned n;
	struct err err;
	if (parks_release_all(d, &n, &err) != 0) {
		say_err(d, id, &err);
		return;
	}
	(void)snprintf(text, sizeof text, "{\"released\":%u}", n); /* fits */
	say(d, id, "ok", text);
}

void magic_ask(void *desk, int64_t id, const char *what, const char *about)
{
	struct desk *d = desk;
	if (!d->gw->histories)
		say(d, id, "not_recorded", "nothing is recorded here: `record` is off");
	else if (strcmp(what, "log") == 0)
		look(d, id, WISH_LOG, "");
	else if (strcmp(what, "show") == 0)
		look(d, id, WISH_SHOW, about);
	else if (strcmp(what, "forget") == 0 && *about)
		look(d, id, WISH_FORGET, about);
	else if (strcmp(what, "checkout") == 0 && *about)
		look(d, id, WISH_GO, about);
	else if (strcmp(what, "undo") == 0)
		look(d, id, WISH_GO, HISTORY_BEFORE); /* this cell is no node yet */
	else if (strcmp(what, "release") == 0)
		release(d, id);
	else if (strcmp(what, "branch") == 0)
		branch(d, id, about);
	else if (strcmp(what, "status") == 0)
		say_status(d, id);
	else if (strcmp(what, "use") == 0)
		use(d, id, about);
	else
		say(d, id, "invalid",
			"this gateway does not know that; it knows log, show NODE, forget NODE, "
			"checkout NODE, undo, branch, release, status and use NAME");
}
