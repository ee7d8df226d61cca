#include "gateway/spine/parks.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/move_text.h"

#define PARKED_TEXT_MAX (64u << 10)
#define LIST_MAX	(1u << 20)
#define LOST_MAX	200
#define LOST_TEXT_MAX	300

void parks_init(struct parks *p)
{
	list_init(&p->parked);
	list_init(&p->refused);
}

static void parked_free(struct parked *p)
{
	list_remove(&p->link);
	free(p->msg_id);
	free(p->text);
	free(p);
}

static void refusal_free(struct parks *p, struct refusal *r)
{
	list_remove(&r->link);
	free(r->msg_id);
	free(r);
	p->n_refused--;
}

void parks_done(struct parks *p)
{
	LIST_EACH_SAFE (at, &p->parked)
		parked_free(CONTAINER_OF(at, struct parked, link));
	LIST_EACH_SAFE (at, &p->refused)
		refusal_free(p, CONTAINER_OF(at, struct refusal, link));
}

const struct parked *parks_find(const struct parks *p, const char *msg_id)
{
	LIST_EACH (at, &p->parked) {
		const struct parked *one = CONTAINER_OF(at, struct parked, link);
		if (strcmp(one->msg_id, msg_id) == 0)
			return one;
	}
	return NULL;
}

const char *parks_refusal(const struct parks *p, const char *msg_id)
{
	LIST_EACH (at, &p->refused) {
		const struct refusal *r = CONTAINER_OF(at, struct refusal, link);
		if (strcmp(r->msg_id, msg_id) == 0)
			return r->reason;
	}
	return NULL;
}

/* A list with something in it; what is no list says nothing. */
static bool loses(struct bytes text)
{
	struct json_want want = {.key = "lost"};
	return json_scan(text, &want, 1, NULL) == 0 && want.value.len > 0 &&
	       want.value.data[0] == '[' && memchr(want.value.data, '{', want.value.len);
}

void parks_on_parked(void *desk, const char *msg_id, int64_t park, struct bytes text)
{
	struct desk *d = desk;
	LIST_EACH_SAFE (at, &d->parks.parked) {
		struct parked *told = CONTAINER_OF(at, struct parked, link);
		if (told->park == park) /* it is told anew */
			parked_free(told);
	}
	if (text.len > PARKED_TEXT_MAX || json_scan(text, NULL, 0, NULL) != 0)
		return; /* no kernel of ours says that */
	struct parked *p = xcalloc(1, sizeof *p);
	p->msg_id = xstrdup(msg_id);
	p->park = park;
	p->text = xcalloc(1, text.len + 1);
	memcpy(p->text, text.data, text.len);
	p->is_partial = loses(text);
	list_append(&d->parks.parked, &p->link);
	log_debug(&d->log, "parked msg_id=%s park=%lld", msg_id, (long long)park);
}

void parks_on_unparked(void *desk, int64_t park, const char *reason)
{
	struct desk *d = desk;
	LIST_EACH_SAFE (at, &d->parks.parked) {
		struct parked *p = CONTAINER_OF(at, struct parked, link);
		if (p->park != park)
			continue;
		/* Asked for, its report says why it is not there any more. */
		parks_on_not_parked(d, p->msg_id, reason);
		parked_free(p);
	}
}

void parks_on_not_parked(void *desk, const char *msg_id, const char *reason)
{
	struct desk *d = desk;
	struct parks *p = &d->parks;
	struct refusal *r = xcalloc(1, sizeof *r);
	LIST_EACH_SAFE (at, &p->refused) {
		struct refusal *earlier = CONTAINER_OF(at, struct refusal, link);
		if (strcmp(earlier->msg_id, msg_id) == 0)
			refusal_free(p, earlier);
	}
	if (p->n_refused == REFUSALS_MAX)
		refusal_free(p, CONTAINER_OF(p->refused.next, struct refusal, link));
	r->msg_id = xstrdup(msg_id);
	(void)copy_text(r->reason, sizeof r->reason, reason, strlen(reason)); /* may be cut */
	list_append(&p->refused, &r->link);
	p->n_refused++;
	log_debug(&d->log, "not_parked msg_id=%s reason=\"%s\"", msg_id, r->reason);
}

void parks_forget(struct desk *d, const char *msg_id)
{
	const struct parked *p = parks_find(&d->parks, msg_id);
	if (p && d->kernel && !d->ending)
		kernel_release(d->kernel, p->park);
}

int parks_release_all(struct desk *d, unsigned *ret_n, struct err *err)
{
	if (!d->kernel || d->ending)
		return err_set(err, E_GONE, "the kernel is ended");
	if (d->move)
		return err_set(err, E_BUSY, "the kernel is on its way to another node");
	*ret_n = 0;
	kernel_release(d->kernel, PARK_ALL);
	while (!list_empty(&d->parks.parked)) {
		const struct parked *p = CONTAINER_OF(d->parks.parked.next, struct parked, link);
		parks_on_unparked(d, p->park, "it was released");
		(*ret_n)++;
	}
	log_info(&d->log, "released parks=%u", *ret_n);
	return 0;
}

/* A line each; an id that is none of a line's is nobody's that we know. */
static void list_one(const struct desk *d, struct buf *ret_text)
{
	LIST_EACH (at, &d->parks.parked) {
		const struct parked *p = CONTAINER_OF(at, struct parked, link);
		if (strpbrk(p->msg_id, "\n\r"))
			continue;
		/* Without memory the list ends early: less is said to be parked than is. */
		(void)buf_addf(ret_text, "%s %s\n", p->is_partial ? "partial" : "exact", p->msg_id);
	}
}

void parks_list_all(const struct kernels *ks, const struct owner *owner, struct buf *ret_text)
{
	buf_init(ret_text, LIST_MAX);
	if (!ks)
		return;
	LIST_EACH (at, &ks->desks) {
		const struct desk *d = CONTAINER_OF(at, struct desk, link);
		if (d->owner == owner)
			list_one(d, ret_text);
	}
}

/* ---- the way to one ---- */

static const char *member_of(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	return text ? text : "";
}

static struct desk *ran_by(struct kernels *ks, const struct owner *owner, const char *kernel_id)
{
	struct desk *d;
	HASH_FIND_STR(ks->by_id, kernel_id, d);
	return d && d->owner == owner && d->kernel ? d : NULL;
}

static bool may_use(const struct desk *d, const struct desk *of)
{
	return !d || d == of || (d->kernel && kernel_is_beside(d->kernel, of->kernel));
}

int parks_find_way(struct kernels *ks, const struct owner *owner, const struct desk *d,
	const struct cJSON *way, struct parks_found *ret, struct err *err)
{
	const cJSON *node = cJSON_GetObjectItemCaseSensitive(way, "node");
	const char *msg_id = member_of(node, "msg_id");
	struct desk *of = ran_by(ks, owner, member_of(node, "kernel_id"));
	const char *why = of ? parks_refusal(&of->parks, msg_id) : NULL;
	*ret = (struct parks_found){.of = of};
	if (of && may_use(d, of) && *msg_id)
		ret->park = parks_find(&of->parks, msg_id);
	if (ret->park)
		return 0;
	if (strcmp(member_of(node, "kind"), "root") == 0)
		why = "it is the beginning: a restart of the kernel leads there";
	else if (!of && !d)
		why = "the kernel that ran it is not there any more";
	else if (!of || !may_use(d, of))
		why = "another kernel ran it";
	else if (!why)
		why = "no process that stood there is parked";
	ret->report = move_code_only(way, why);
	return err_set(
		err, E_PARTIAL, "%.12s cannot be gone back to, %s", member_of(node, "id"), why);
}

void parks_list_of(const struct desk *d, struct buf *ret_text)
{
	buf_init(ret_text, LIST_MAX);
	LIST_EACH (at, &d->kernels->desks) {
		const struct desk *of = CONTAINER_OF(at, struct desk, link);
		if (of->owner == d->owner && of->kernel && may_use(d, of))
			list_one(of, ret_text);
	}
}

/* ---- reports ---- */

static const char *const names[] = {
	[FIDELITY_EXACT] = "exact",
	[FIDELITY_PARTIAL] = "partial",
	[FIDELITY_CODE_ONLY] = "code-only",
};

const char *fidelity_name(enum fidelity f)
{
	return names[f];
}

bool fidelity_read(const char *name, enum fidelity *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		*ret = (enum fidelity)i;
		return true;
	}
	return false;
}

struct cJSON *report_new(enum fidelity f)
{
	cJSON *report = cJSON_CreateObject();
	cJSON_AddStringToObject(report, "fidelity", fidelity_name(f));
	cJSON_AddArrayToObject(report, "lost");
	cJSON_AddArrayToObject(report, "approximate");
	cJSON_AddArrayToObject(report, "notes");
	return report;
}

enum fidelity report_fidelity(const struct cJSON *report)
{
	enum fidelity f = FIDELITY_CODE_ONLY;
	(void)fidelity_read(
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(report, "fidelity")), &f);
	return f;
}

void report_lower(struct cJSON *report, enum fidelity f)
{
	if (f > report_fidelity(report))
		cJSON_ReplaceItemInObjectCaseSensitive(
			report, "fidelity", cJSON_CreateString(fidelity_name(f)));
}

static const char *text_of(const cJSON *o, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
}

static bool is_listed(const cJSON *list, const char *name, const char *kind)
{
	const cJSON *one;
	cJSON_ArrayForEach (one, list) {
		if (strcmp(text_of(one, "name"), name) == 0 &&
			strcmp(text_of(one, "kind"), kind) == 0)
			return true;
	}
	return false;
}

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

/* A guest's text may be long; no character is cut in two. */
static void add_cut(cJSON *row, const char *key, const char *text)
{
	char cut[LOST_TEXT_MAX + 1];
	size_t len = strlen(text);
	if (len > LOST_TEXT_MAX)
		for (len = LOST_TEXT_MAX; len > 0 && (text[len] & 0xc0) == 0x80;)
			len--;
	(void)copy_text(cut, sizeof cut, text, len); /* fits */
	cJSON_AddStringToObject(row, key, cut);
}

/* A list of a guest's. */
static void add_things(cJSON *list, const cJSON *things)
{
	const cJSON *one;
	cJSON_ArrayForEach (one, things) {
		const char *name = text_of(one, "name"), *kind = text_of(one, "kind");
		const char *reason = text_of(one, "reason");
		if (!name || !kind || !reason || is_listed(list, name, kind) ||
			cJSON_GetArraySize(list) >= LOST_MAX)
			continue;
		cJSON *row = cJSON_CreateObject();
		add_cut(row, "name", name);
		add_cut(row, "kind", kind);
		add_cut(row, "reason", reason);
		cJSON_AddArrayToObject(row, "rebuild");
		cJSON_AddItemToArray(list, row);
	}
}

void report_add_lost(struct cJSON *report, struct bytes text)
{
	AUTO(delete_tree) cJSON *said = json_parse(text, NULL, NULL);
	const cJSON *things = cJSON_GetObjectItemCaseSensitive(said, "lost");
	if (cJSON_GetArraySize(things) > 0)
		report_lower(report, FIDELITY_PARTIAL);
	add_things(cJSON_GetObjectItemCaseSensitive(report, "lost"), things);
}

/* As the new line will say what it has lost. */
void report_add_lost_files(struct cJSON *report, const struct cJSON *entries)
{
	AUTO(delete_tree) cJSON *list = cJSON_CreateArray();
	const cJSON *one;
	cJSON_ArrayForEach (one, entries) {
		if (!*member_of(one, "lost"))
			continue;
		cJSON *row = cJSON_CreateObject();
		cJSON_AddStringToObject(row, "name", member_of(one, "path"));
		cJSON_AddStringToObject(row, "kind", "file");
		cJSON_AddStringToObject(row, "reason", member_of(one, "lost"));
		cJSON_AddItemToArray(list, row);
	}
	if (cJSON_GetArraySize(list) > 0)
		report_lower(report, FIDELITY_PARTIAL);
	add_things(cJSON_GetObjectItemCaseSensitive(report, "lost"), list);
}

void report_add_approximate(struct cJSON *report, const struct cJSON *things)
{
	add_things(cJSON_GetObjectItemCaseSensitive(report, "approximate"), things);
}

void report_note(struct cJSON *report, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args); /* may be cut */
	va_end(args);
	cJSON_AddItemToArray(
		cJSON_GetObjectItemCaseSensitive(report, "notes"), cJSON_CreateString(text));
}
