#include "gateway/spine/branches.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"
#include "gateway/spine/desk_new.h"
#include "gateway/spine/lay_down.h"
#include "gateway/spine/move_text.h"
#include "gateway/spine/moves.h"
#include "gateway/spine/survive.h"

#define RECORD_MS    3000u /* for what is not recorded yet */
#define FOLDERS	     "/branches/"
#define STANDING_MAX (64u << 10)

/*
 *   waits --its turn, recorded--> asks --the way--> lays --> revives --it stands--> names --> over
 *     |                            |  \____________ without a kernel ____________/  |
 *     +-- refused, partial, taken, the gateway ends: nothing is left ----------------+------> over
 *
 * lays: what the node's folder held, where the container tells of files and it is recorded.
 */
enum branching_state {
	BRANCH_WAITS,
	BRANCH_ASKS,
	BRANCH_LAYS,
	BRANCH_REVIVES,
	BRANCH_NAMES,
	BRANCH_OVER,
	BRANCH_STATES
};

static const struct sm_state states[BRANCH_STATES] = {
	[BRANCH_WAITS] = {"waits", TO(BRANCH_ASKS) | TO(BRANCH_OVER)},
	[BRANCH_ASKS] = {"asks",
		TO(BRANCH_LAYS) | TO(BRANCH_REVIVES) | TO(BRANCH_NAMES) | TO(BRANCH_OVER)},
	[BRANCH_LAYS] = {"lays", TO(BRANCH_REVIVES) | TO(BRANCH_OVER)},
	[BRANCH_REVIVES] = {"revives", TO(BRANCH_NAMES) | TO(BRANCH_OVER)},
	[BRANCH_NAMES] = {"names", TO(BRANCH_OVER)},
	[BRANCH_OVER] = {"over", 0},
};

struct branching {
	struct list link; /* in kernels.branchings, oldest first */
	struct sm sm;
	struct kernels *ks; /* NULL: it was given up; freed once nobody calls back any more */
	const struct owner *owner;
	struct timer timer;
	char *history, *at, *name, *who;
	char who_at[HISTORY_NODE_SIZE];
	uint64_t who_epoch, began_ms;
	bool without_kernel;
	enum fidelity accept;
	bool expects; /* history or the bridge will call back */
	cJSON *way, *report;
	char *parked; /* what was told of the park */
	int64_t park;
	struct lay_down *laying; /* NULL: its folder is empty */
	cJSON *entries;		 /* what is laid there */
	bool laid;
	struct desk *desk; /* that is to be: nobody sees it yet */
	void (*cb)(void *data, const struct cJSON *answer, const struct err *err);
	void *data;
};

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

static const char *text_of(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	return text ? text : "";
}

static const cJSON *node_of(const struct branching *b)
{
	return cJSON_GetObjectItemCaseSensitive(b->way, "node");
}

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static char *copy_or_null(const char *text)
{
	return text && *text ? xstrdup(text) : NULL;
}

/* ---- the end ---- */

static void branching_free(struct branching *b)
{
	if (b->expects)
		return; /* its last callback does */
	cJSON_Delete(b->way);
	cJSON_Delete(b->report);
	cJSON_Delete(b->entries);
	free(b->parked);
	free(b->history);
	free(b->at);
	free(b->name);
	free(b->who);
	free(b);
}

static void serve(struct kernels *ks);

/* Takes it off the list; who waits behind it goes on. */
static void over(struct branching *b)
{
	struct kernels *ks = b->ks;
	timer_stop(ks->gw->clock, &b->timer);
	sm_move(&b->sm, BRANCH_OVER);
	list_remove(&b->link);
	b->ks = NULL;
	branching_free(b);
	serve(ks);
}

static void fail(struct branching *b, const struct err *err)
{
	struct desk *d = TAKE(b->desk);
	AUTO(delete_tree) cJSON *told = NULL;
	lay_down_end(TAKE(b->laying), false);
	log_info(&b->ks->gw->log, "no_branch state=%s reason=\"%s\"", sm_name(&b->sm), err->text);
	if (d)
		desk_end_unborn(d);
	if (err->code == E_PARTIAL && b->report) {
		told = cJSON_CreateObject();
		cJSON_AddItemToObject(told, "report", TAKE(b->report));
	}
	b->cb(b->data, told, err);
	over(b);
}

static void succeed(struct branching *b, const char *name)
{
	struct desk *d = TAKE(b->desk);
	AUTO(delete_tree) cJSON *told = cJSON_CreateObject();
	lay_down_end(TAKE(b->laying), true);
	if (d)
		desk_is_born(d, name);
	cJSON_AddStringToObject(told, "name", name);
	cJSON_AddStringToObject(told, "node", text_of(node_of(b), "id"));
	cJSON_AddItemToObject(told, "kernel", d ? desk_model(d) : cJSON_CreateNull());
	cJSON_AddItemToObject(
		told, "restored_by", d ? cJSON_CreateString("parked") : cJSON_CreateNull());
	cJSON_AddItemToObject(told, "report", TAKE(b->report));
	log_info(&b->ks->gw->log, "branch name=%s node=%.8s kernel=%s ms=%llu", name,
		text_of(node_of(b), "id"), d ? d->id : "none",
		(unsigned long long)(clock_now_ms(b->ks->gw->clock) - b->began_ms));
	b->cb(b->data, told, NULL);
	over(b);
}

/* ---- names ---- */

static void on_named(void *data, int status, struct bytes json, const struct err *err)
{
	struct branching *b = data;
	char name[HISTORY_BRANCH_SIZE];
	struct json_want want = {.key = "name"};
	struct err why;
	b->expects = false;
	if (!b->ks) {
		branching_free(b);
	} else if (status != 0) {
		fail(b, err);
	} else if (json_scan(json, &want, 1, NULL) != 0 ||
		   !json_text(want.value, name, sizeof name)) {
		err_set(&why, E_IO, "what history answered makes no sense");
		fail(b, &why);
	} else {
		succeed(b, name);
	}
}

/* By the node's id: what is meant by HEAD or In[7] may be another one by now. */
static void give_name(struct branching *b)
{
	const struct history_question q = {
		.what = HISTORY_BRANCH,
		.owner = b->owner->name,
		.history = text_of(b->way, "history"),
		.node = text_of(node_of(b), "id"),
		.name = b->name,
		.exact = true,
	};
	b->expects = true;
	sm_move(&b->sm, BRANCH_NAMES);
	history_ask(b->ks->gw->histories, &q, on_named, b);
}

/* ---- revives ---- */

/* Names that hold paths of the other line's folder: they are as they were, and mean another place
 * than the person may think. */
static void add_paths(struct branching *b, struct bytes text)
{
	AUTO(delete_tree) cJSON *said = json_parse(text, NULL, NULL);
	report_add_approximate(b->report, cJSON_GetObjectItemCaseSensitive(said, "paths"));
}

static int check(void *data, struct bytes text, struct err *err)
{
	struct branching *b = data;
	if (!b->ks)
		return err_set(err, E_GONE, "nobody waits for it");
	report_add_lost(b->report, text);
	add_paths(b, text);
	const char *folder = kernel_folder(b->desk->kernel);
	if (b->laid) {
		report_note(b->report,
			"Its working folder is %s, with the files of the node as they were then.",
			folder);
	} else if (!move_same_folder(bytes_of(b->parked), text)) {
		report_lower(b->report, FIDELITY_PARTIAL);
		report_note(b->report,
			"Its working folder is %s, and empty: nothing is recorded of the files "
			"that the node had.",
			folder);
	}
	if (report_fidelity(b->report) <= b->accept)
		return 0;
	return err_set(err, E_PARTIAL, "less than %s would come back: see the report",
		fidelity_name(b->accept));
}

static void on_switch(void *data)
{
	struct branching *b = data;
	struct stand_at to = {.version = 1};
	const char *node = text_of(node_of(b), "id");
	if (!b->ks)
		return; /* the bridge was told to give it up */
	(void)copy_text(to.node, sizeof to.node, node, strlen(node)); /* an id */
	desk_new_epoch(b->desk);
	scribe_moved(b->desk, &to);
	if (b->laid)
		files_laid(b->desk, b->entries);
}

static void refuse(struct branching *b, const struct err *cause)
{
	struct err err = *cause;
	if (cause->code == E_GONE || cause->code == E_CONFLICT || cause->code == E_TIMEOUT) {
		cJSON_Delete(b->report);
		b->report = move_code_only(b->way, cause->text);
		err_set(&err, E_PARTIAL, "%s; its code can be run again: see the report",
			cause->text);
	}
	fail(b, &err);
}

static void on_revived(void *data, const struct err *err)
{
	struct branching *b = data;
	b->expects = false;
	if (!b->ks)
		branching_free(b);
	else if (err)
		refuse(b, err);
	else
		give_name(b);
}

static int begin_desk(struct branching *b, struct desk *of, struct err *err)
{
	char folder[HISTORY_BRANCH_SIZE + sizeof FOLDERS], id[UUID_SIZE];
	const char *name = b->name ? b->name : text_of(b->way, "fresh");
	const struct kernels_start start = {
		.owner = b->owner, .history = text_of(b->way, "history")};
	(void)snprintf(folder, sizeof folder, FOLDERS "%s", name); /* was checked */
	crypto_uuid(id);
	int rc = kernels_reserve(b->ks, err);
	return rc == 0 ? desk_beside(of, &start, id, folder, &b->desk, err) : rc;
}

static void revive(struct branching *b)
{
	const struct kernel_revival revival = {.park = b->park,
		.check = check,
		.on_switch = on_switch,
		.cb = on_revived,
		.data = b};
	b->expects = true;
	sm_move(&b->sm, BRANCH_REVIVES);
	kernel_revive(b->desk->kernel, &revival);
}

/* ---- lays ---- */

static void on_laid(void *data, const struct err *cause)
{
	struct branching *b = data;
	struct err err;
	if (cause) {
		err_set(&err, cause->code, "its files could not be laid down: %.400s", cause->text);
		fail(b, &err);
		return;
	}
	b->laid = true;
	revive(b);
}

static int take_entries(struct branching *b, struct bytes json, struct err *err)
{
	cJSON *answer = json_parse(json, NULL, err);
	if (!answer)
		return err->code;
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "recorded")))
		b->entries = cJSON_DetachItemFromObjectCaseSensitive(answer, "entries");
	cJSON_Delete(answer);
	if (!b->entries)
		return 0;
	report_add_lost_files(b->report, b->entries);
	if (report_fidelity(b->report) > b->accept)
		return err_set(err, E_PARTIAL, "less than %s would come back: see the report",
			fidelity_name(b->accept));
	return lay_down_begin(b->desk, b->entries, on_laid, b, &b->laying, err);
}

static void on_entries(void *data, int status, struct bytes json, const struct err *failure)
{
	struct branching *b = data;
	struct err err;
	b->expects = false;
	if (!b->ks)
		branching_free(b);
	else if (status != 0)
		fail(b, failure);
	else if (take_entries(b, json, &err) != 0)
		fail(b, &err);
	else if (!b->entries)
		revive(b);
}

static void fetch(struct branching *b)
{
	const struct history_question q = {
		.what = HISTORY_FILES,
		.owner = b->owner->name,
		.history = text_of(b->way, "history"),
		.node = text_of(node_of(b), "id"),
		.kernel_id = b->desk->id,
	};
	b->expects = true;
	sm_move(&b->sm, BRANCH_LAYS);
	history_ask(b->ks->gw->histories, &q, on_entries, b);
}

static void begin_kernel(struct branching *b, const struct parks_found *found)
{
	struct err err;
	b->park = found->park->park;
	b->parked = xstrdup(found->park->text);
	b->report = report_new(FIDELITY_EXACT);
	report_add_lost(b->report, bytes_of(b->parked));
	if (report_fidelity(b->report) > b->accept) {
		err_set(&err, E_PARTIAL, "less than %s would come back: see the report",
			fidelity_name(b->accept));
		fail(b, &err);
	} else if (begin_desk(b, found->of, &err) != 0) {
		b->desk = NULL;
		refuse(b, &err);
	} else if (files_are_on(b->desk)) {
		fetch(b);
	} else {
		revive(b);
	}
}

/* ---- asks ---- */

/* Nothing comes back by it: the report says what could. */
static void name_alone(struct branching *b, struct parks_found *found)
{
	cJSON_Delete(b->report);
	b->report = TAKE(found->report);
	if (!b->report) {
		b->report = report_new(FIDELITY_EXACT);
		report_add_lost(b->report, bytes_of(found->park->text));
	}
	give_name(b);
}

static void look_at_way(struct branching *b)
{
	struct parks_found found = {0};
	struct err err;
	int rc = parks_find_way(b->ks, b->owner, NULL, b->way, &found, &err);
	if (b->without_kernel) {
		name_alone(b, &found);
		return;
	}
	if (rc != 0) {
		b->report = TAKE(found.report);
		fail(b, &err);
		return;
	}
	begin_kernel(b, &found);
}

static void on_way(void *data, int status, struct bytes json, const struct err *failure)
{
	struct branching *b = data;
	struct err err;
	b->expects = false;
	if (!b->ks) {
		branching_free(b);
		return;
	}
	b->way = status == 0 ? json_parse(json, NULL, &err) : NULL;
	if (b->way)
		look_at_way(b);
	else
		fail(b, status != 0 ? failure : &err);
}

static void ask(struct branching *b)
{
	AUTO(buf_done) struct buf parked;
	parks_list_all(b->ks, b->owner, &parked);
	const struct history_question q = {
		.what = HISTORY_WAY,
		.owner = b->owner->name,
		.history = b->history,
		.node = b->at,
		.kernel_id = b->who,
		.epoch = b->who_epoch,
		.at = b->who_at,
		.name = b->name,
		.parked = parked.data ? (const char *)parked.data : "",
	};
	b->expects = true;
	sm_move(&b->sm, BRANCH_ASKS);
	history_ask(b->ks->gw->histories, &q, on_way, b);
}

/* ---- waits ---- */

static bool is_recorded(const struct branching *b)
{
	LIST_EACH (at, &b->ks->desks) {
		const struct desk *d = CONTAINER_OF(at, struct desk, link);
		if (d->owner == b->owner && d->scribe.n > 0)
			return false;
	}
	return true;
}

static bool is_first(const struct branching *b)
{
	LIST_EACH (at, &b->ks->branchings) {
		const struct branching *other = CONTAINER_OF(at, struct branching, link);
		if (other->owner == b->owner)
			return other == b;
	}
	return false;
}

/* Two that begin at once would be given one name. What is not recorded in time is not waited for.
 */
static void serve(struct kernels *ks)
{
	LIST_EACH_SAFE (at, &ks->branchings) {
		struct branching *b = CONTAINER_OF(at, struct branching, link);
		if (b->sm.state == BRANCH_WAITS && is_first(b) && !timer_running(&b->timer))
			timer_start(ks->gw->clock, &b->timer, is_recorded(b) ? 0 : RECORD_MS);
	}
}

void branches_look(struct kernels *ks)
{
	LIST_EACH_SAFE (at, &ks->branchings) {
		struct branching *b = CONTAINER_OF(at, struct branching, link);
		if (b->sm.state == BRANCH_WAITS && is_first(b) && is_recorded(b))
			timer_start(ks->gw->clock, &b->timer, 0);
	}
}

static void on_timer(struct timer *t)
{
	ask(CONTAINER_OF(t, struct branching, timer));
}

/* ---- the beginning ---- */

struct refused {
	struct timer timer;
	struct err err;
	void (*cb)(void *data, const struct cJSON *answer, const struct err *err);
	void *data;
};

static void on_refused(struct timer *t)
{
	struct refused *r = CONTAINER_OF(t, struct refused, timer);
	r->cb(r->data, NULL, &r->err);
	free(r);
}

static int may_begin(const struct kernels *ks, const struct branch_order *order, struct err *err)
{
	if (!ks->gw->histories)
		return err_set(err, E_NOT_FOUND, "nothing is recorded here: `record` is off");
	if (ks->ended)
		return err_set(err, E_UNAVAILABLE, "the gateway is ending");
	if (order->own_container)
		return err_set(err, E_UNAVAILABLE,
			"own_container: a container of its own needs snapshots, which there are "
			"none of yet; without it the branch shares the container of its parent");
	return move_check_branch(order->name, err);
}

void branch_begin(struct kernels *ks, const struct owner *owner, const struct branch_order *order,
	void (*cb)(void *data, const struct cJSON *answer, const struct err *err), void *data)
{
	struct err err;
	if (may_begin(ks, order, &err) != 0) {
		struct refused *r = xcalloc(1, sizeof *r);
		*r = (struct refused){.err = err, .cb = cb, .data = data};
		timer_init(&r->timer, on_refused);
		timer_start(ks->gw->clock, &r->timer, 0);
		return;
	}
	struct branching *b = xcalloc(1, sizeof *b);
	sm_init(&b->sm, "branching", states, BRANCH_STATES, BRANCH_WAITS, &ks->gw->log);
	timer_init(&b->timer, on_timer);
	b->ks = ks;
	b->owner = owner;
	b->history = xstrdup(order->history);
	b->at = xstrdup(order->at && *order->at ? order->at : "HEAD");
	b->name = copy_or_null(order->name);
	b->without_kernel = order->without_kernel;
	b->accept = order->accept;
	if (order->who) {
		b->who = xstrdup(order->who->id);
		b->who_epoch = order->who->epoch;
		memcpy(b->who_at, order->who->at.node, sizeof b->who_at);
	}
	b->began_ms = clock_now_ms(ks->gw->clock);
	b->cb = cb;
	b->data = data;
	list_append(&ks->branchings, &b->link);
	serve(ks);
}

void branches_end(struct kernels *ks)
{
	struct err err;
	err_set(&err, E_UNAVAILABLE, "the gateway is ending");
	while (!list_empty(&ks->branchings)) {
		struct branching *b = CONTAINER_OF(ks->branchings.next, struct branching, link);
		fail(b, &err);
	}
}

void branches_standing(const struct kernels *ks, const struct owner *owner, struct buf *ret_text)
{
	buf_init(ret_text, STANDING_MAX);
	LIST_EACH (at, &ks->desks) {
		const struct desk *d = CONTAINER_OF(at, struct desk, link);
		if (d->owner == owner && d->at.node[0] && d->at.branch[0] &&
			strcmp(d->scribe.node, d->at.node) == 0)
			/* Without memory fewer are said to stand somewhere. */
			(void)buf_addf(ret_text, "%s %s %s\n", d->id, d->at.node, d->at.branch);
	}
}
