#include "kernel-bridge/kernel_place.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json.h"
#include "kernel-bridge/kernel_adopt.h"
#include "kernel-bridge/kernel_folder.h"
#include "kernel-bridge/kernel_pool.h"
#include "kernel-bridge/kernel_revive.h"

static struct kernel *kernel_at(struct list *at)
{
	return CONTAINER_OF(at, struct kernel, beside);
}

/* NULL: nobody's, or of one that left. */
static struct kernel *of_line(const struct kernel_place *p, unsigned line)
{
	LIST_EACH (at, &p->kernels) {
		struct kernel *k = kernel_at(at);

		if (line > 0 && (k->line == line || kernel_revives_line(k, line)))
			return k;
	}
	return NULL;
}

/* Also one that has ended lately. */
static struct kernel *had_line(const struct kernel_place *p, unsigned line)
{
	LIST_EACH (at, &p->kernels) {
		struct kernel *k = kernel_at(at);

		for (size_t i = 0; line > 0 && i < LINES_KEPT; i++)
			if (k->lines[i] == line)
				return k;
	}
	return NULL;
}

static void note_line(struct kernel *k, unsigned line)
{
	k->lines[k->n_lines++ % LINES_KEPT] = line;
}

/* ---- parks ---- */

struct park *kernel_place_find_park(const struct kernel_place *p, int64_t number)
{
	LIST_EACH (at, &p->parks) {
		struct park *one = CONTAINER_OF(at, struct park, link);

		if (one->number == number)
			return one;
	}
	return NULL;
}

void kernel_place_release(struct kernel_place *p, int64_t park)
{
	if (p->slot->engine->ops->release)
		p->slot->engine->ops->release(p->slot, park);
}

void kernel_place_release_all(struct kernel *k)
{
	struct kernel_place *p = k->place;

	LIST_EACH (at, &p->parks) {
		const struct park *one = CONTAINER_OF(at, struct park, link);

		if (one->of == k) /* each, for supervisors of before, and beside others */
			kernel_place_release(p, one->number);
	}
	if (!kernel_place_is_shared(p))
		kernel_place_release(p, PARK_ALL);
}

void kernel_read_digest(struct bytes text, char ret[DIGEST_SIZE])
{
	struct json_want want = {.key = "digest"};

	ret[0] = '\0';
	if (json_scan(text, &want, 1, NULL) == 0 && want.value.len > 0 &&
		want.value.len < DIGEST_SIZE) {
		memcpy(ret, want.value.data, want.value.len);
		ret[want.value.len] = '\0';
	}
}

/* A supervisor that does not say whose it is has one kernel's alone, as far as it knows. */
static struct kernel *owner_of_park(const struct kernel_place *p, const struct slot_parked *parked)
{
	struct kernel *k = of_line(p, parked->line);

	if (!*parked->kernel_id)
		return k ? k : list_empty(&p->kernels) ? NULL : kernel_at(p->kernels.next);
	LIST_EACH (at, &p->kernels)
		if (strcmp(kernel_at(at)->id, parked->kernel_id) == 0)
			return kernel_at(at);
	return NULL;
}

static bool listens(const struct kernel *k)
{
	return k->wish != WISH_END && !k->unowned;
}

static void park_free(struct park *one)
{
	list_remove(&one->link);
	free(one);
}

static void on_parked(void *data, const struct slot_parked *parked)
{
	struct kernel_place *p = data;
	struct park *one = kernel_place_find_park(p, parked->park);
	struct kernel *k = owner_of_park(p, parked);
	size_t n = 0;

	if (!k) { /* it ended, and what it had parked is nobody's any more */
		kernel_place_release(p, parked->park);
		return;
	}
	LIST_EACH (at, &p->parks)
		n++;
	if (!listens(k) || (!one && n >= PARKS_MAX))
		return;
	if (!one) {
		one = xcalloc(1, sizeof(*one));
		one->number = parked->park;
		one->of = k;
		list_append(&p->parks, &one->link);
	}
	kernel_read_digest(parked->text, one->digest);
	if (k->watcher.on_parked)
		k->watcher.on_parked(k->watcher.data, parked->msg_id, parked->park, parked->text);
}

static void unpark(struct park *one, const char *reason)
{
	struct kernel *k = one->of;
	int64_t number = one->number;

	park_free(one);
	if (listens(k) && k->watcher.on_unparked)
		k->watcher.on_unparked(k->watcher.data, number, reason);
}

static void on_unparked(void *data, int64_t park, const char *reason)
{
	struct park *one = kernel_place_find_park(data, park);

	if (one)
		unpark(one, reason);
}

static void on_not_parked(void *data, unsigned line, const char *msg_id, const char *reason)
{
	const struct kernel *k = of_line(data, line);

	if (k && line == k->line && listens(k) && k->watcher.on_not_parked)
		k->watcher.on_not_parked(k->watcher.data, msg_id, reason);
}

static void drop_parks(struct kernel_place *p, const struct kernel *k, bool gone)
{
	LIST_EACH_SAFE (at, &p->parks) {
		struct park *one = CONTAINER_OF(at, struct park, link);

		if (one->of != k)
			continue;
		if (!gone)
			kernel_place_release(p, one->number);
		unpark(one, gone ? "its container is gone" : "its kernel left its container");
	}
}

/* ---- what is said of a line ---- */

static void kill_line(struct kernel_place *p, unsigned line)
{
	struct err err = {0};

	if (p->slot->engine->ops->kill_line(p->slot, line, &err) < 0)
		log_debug(p->bridge->env.log, "kill_failed line=%u why=%s", line, err.text);
}

static void on_started(void *data, unsigned line, const struct endpoints *endpoints, long pid)
{
	struct kernel_place *p = data;
	struct kernel *k = of_line(p, line);

	if (k)
		kernel_on_started(k, line, endpoints, pid);
	else
		kill_line(p, line);
}

static void on_start_failed(void *data, unsigned line, const struct err *err)
{
	struct kernel *k = of_line(data, line);

	if (k)
		kernel_on_start_failed(k, line, err);
}

static void on_exit_of(void *data, unsigned line, const struct line_exit *exit)
{
	struct kernel *k = of_line(data, line);

	if (k)
		kernel_on_exit(k, line, exit);
}

static void on_kept(void *data, unsigned line, enum channel channel, struct bytes frames)
{
	struct kernel *k = of_line(data, line);

	if (k)
		kernel_on_kept(k, line, channel, frames);
}

static void on_kept_end(void *data, unsigned line, int64_t lost)
{
	struct kernel *k = of_line(data, line);

	if (k)
		kernel_on_kept_end(k, line, lost);
}

static void on_handed_over(void *data, unsigned line)
{
	struct kernel *k = of_line(data, line);

	if (k)
		kernel_on_handed_over(k, line);
}

static void on_report(void *data, unsigned line, const char *msg_id, struct bytes text)
{
	const struct kernel *k = of_line(data, line);

	if (k && line == k->line && k->watcher.on_report)
		k->watcher.on_report(k->watcher.data, msg_id, text);
}

static void on_ask(void *data, unsigned line, int64_t id, const char *what, const char *about)
{
	const struct kernel *k = of_line(data, line);

	if (k && line == k->line && k->watcher.on_ask)
		k->watcher.on_ask(k->watcher.data, id, what, about);
}

static void on_revived(void *data, unsigned line, struct bytes text)
{
	struct kernel *k = of_line(data, line);

	if (k)
		kernel_on_revived(k, line, text);
}

/* ---- what is said of the slot ---- */

/* Any of them may leave as it is told, the last one with the place: they are told from a copy, and
 * a kernel is not freed within the turn. */
static size_t copy_kernels(const struct kernel_place *p, struct kernel *all[BESIDE_MAX])
{
	size_t n = 0;

	LIST_EACH (at, &p->kernels)
		all[n++] = kernel_at(at);
	return n;
}

static void on_warm(void *data)
{
	struct kernel_place *p = data;
	struct kernel *all[BESIDE_MAX];
	size_t n = copy_kernels(p, all);

	p->warm = true;
	for (size_t i = 0; i < n; i++)
		if (all[i]->place == p)
			kernel_on_warm(all[i]);
}

static void on_gone(void *data, const struct line_exit *exit, const struct err *err)
{
	struct kernel_place *p = data;
	struct kernel *all[BESIDE_MAX];
	size_t n = copy_kernels(p, all);

	p->warm = false;
	for (size_t i = 0; i < n; i++)
		if (all[i]->place == p)
			kernel_on_gone(all[i], exit, err);
}

void kernel_place_give_up(struct kernel *k, const char *why)
{
	struct kernel_place *p = k->place;
	const struct line_exit exit = {.text = ""};
	struct kernel *all[BESIDE_MAX];
	size_t n = copy_kernels(p, all);
	struct err err;

	err_set(&err, E_GONE, "%s", why);
	p->warm = false;
	for (size_t i = 0; i < n; i++)
		if (all[i] != k && all[i]->place == p)
			kernel_on_gone(all[i], &exit, &err);
}

/* ---- what is left of a line ---- */

static void on_looked(void *data, const struct err *left)
{
	struct kernel_place *p = data;
	struct kernel *k = TAKE(p->looker);

	p->looks = false;
	if (k)
		kernel_on_looked(k, left);
}

int kernel_place_look(struct kernel *k, struct err *err)
{
	struct kernel_place *p = k->place;
	const struct engine_ops *ops = p->slot->engine->ops;
	int rc;

	if (!ops->look)
		return 1;
	if (p->looks)
		return err_set(err, E_BUSY, "the end of another kernel is being looked for");
	rc = ops->look(p->slot, k->line, on_looked, p, err);
	p->looks = rc == 0;
	p->looker = rc == 0 ? k : NULL;
	return rc;
}

void kernel_place_look_cancel(struct kernel *k)
{
	if (k->place && k->place->looker == k)
		k->place->looker = NULL;
}

/* ---- working files ---- */

static void on_files(void *data, unsigned line, const char *msg_id, struct bytes change)
{
	struct kernel_place *p = data;
	struct kernel *k = had_line(p, line);
	const struct slot_files_ops *ops = p->slot->engine->ops->files;
	const struct kernel_want nothing = {.msg_id = msg_id, .last = true};

	if (k)
		kernel_on_files(k, msg_id, change);
	else if (ops) /* of one that left: nobody wants it, and the next one waits for that word */
		(void)ops->want(p->slot, line, &nothing, NULL); /* else it waits a while */
}

/* It does not say whose: what is named by its hash is what it is, and who did not ask for it passes
 * it over. */
static void on_content(void *data, const char *name, struct bytes bytes)
{
	struct kernel_place *p = data;
	struct kernel *all[BESIDE_MAX];
	size_t n = copy_kernels(p, all);

	for (size_t i = 0; i < n; i++)
		if (all[i]->place == p)
			kernel_on_content(all[i], name, bytes);
}

static void on_laid(void *data, const struct slot_laid *laid)
{
	struct kernel_place *p = data;
	struct kernel *all[BESIDE_MAX];
	size_t n = copy_kernels(p, all);

	for (size_t i = 0; i < n; i++)
		if (all[i]->place == p)
			kernel_on_laid(all[i], laid);
}

static void on_room(void *data)
{
	struct kernel_place *p = data;
	struct kernel *all[BESIDE_MAX];
	size_t n = copy_kernels(p, all);

	for (size_t i = 0; i < n; i++)
		if (all[i]->place == p)
			kernel_on_room(all[i]);
}

static const struct slot_files_watcher files_watcher = {
	.on_files = on_files,
	.on_content = on_content,
	.on_laid = on_laid,
	.on_room = on_room,
};

/* ---- who is in it ---- */

bool kernel_place_is_shared(const struct kernel_place *p)
{
	return p->kernels.next != p->kernels.prev;
}

bool kernel_place_is_full(const struct kernel_place *p)
{
	size_t n = 0;

	LIST_EACH (at, &p->kernels)
		n++;
	return n >= BESIDE_MAX;
}

static struct kernel_place *place_new(struct bridge *b)
{
	struct kernel_place *p = xcalloc(1, sizeof(*p));

	p->bridge = b;
	p->number = ++b->n_places;
	list_init(&p->kernels);
	list_init(&p->parks);
	list_append(&b->places, &p->link);
	return p;
}

static void place_free(struct kernel_place *p)
{
	list_remove(&p->link);
	free(p);
}

void kernel_place_join(struct kernel_place *p, struct kernel *k)
{
	k->place = p;
	k->n_place = p->number;
	memset(k->lines, 0, sizeof(k->lines));
	list_append(&p->kernels, &k->beside);
}

static struct slot_watcher watcher_of(struct kernel_place *p)
{
	return (struct slot_watcher){
		.on_warm = on_warm,
		.on_gone = on_gone,
		.on_started = on_started,
		.on_start_failed = on_start_failed,
		.on_exit = on_exit_of,
		.on_kept = on_kept,
		.on_kept_end = on_kept_end,
		.on_handed_over = on_handed_over,
		.on_report = on_report,
		.on_ask = on_ask,
		.on_parked = on_parked,
		.on_unparked = on_unparked,
		.on_not_parked = on_not_parked,
		.on_revived = on_revived,
		.files = &files_watcher,
		.data = p,
	};
}

int kernel_place_launch(struct kernel *k, struct engine *e, struct err *err)
{
	struct kernel_place *p = place_new(k->bridge);
	const struct slot_watcher watcher = watcher_of(p);
	int rc = e->ops->launch(e, k->spec, k->owner, &watcher, &p->slot, err);

	if (rc < 0)
		place_free(p);
	else
		kernel_place_join(p, k);
	return rc;
}

static bool is_called(const struct kernel_place *p, const struct cJSON *row)
{
	const struct engine_ops *ops = p->slot->engine->ops;
	struct cJSON *own = ops->slot_row ? ops->slot_row(p->slot) : NULL;
	bool same = own && cJSON_Compare(cJSON_GetObjectItemCaseSensitive(own, "slot"),
				   cJSON_GetObjectItemCaseSensitive(row, "slot"), true);

	cJSON_Delete(own);
	return same;
}

static struct kernel_place *find_adopted(
	const struct kernel *k, struct engine *e, const struct cJSON *row)
{
	LIST_EACH (at, &k->bridge->places) {
		struct kernel_place *p = CONTAINER_OF(at, struct kernel_place, link);

		if (p->slot->engine == e && is_called(p, row))
			return p;
	}
	return NULL;
}

static int adopt_beside(
	struct kernel_place *p, struct kernel *k, const struct slot_adopt *adopt, struct err *err)
{
	int rc;

	if (kernel_place_is_full(p) || of_line(p, adopt->line))
		return err_set(err, E_INVALID, "others have its container");
	rc = p->slot->engine->ops->adopt_line(p->slot, adopt, err);
	if (rc < 0)
		return rc;
	kernel_place_join(p, k);
	note_line(k, adopt->line);
	return 0;
}

int kernel_place_adopt(
	struct kernel *k, struct engine *e, const struct slot_adopt *adopt, struct err *err)
{
	struct kernel_place *p = find_adopted(k, e, adopt->row);
	int rc;

	if (p)
		return adopt_beside(p, k, adopt, err);
	p = place_new(k->bridge);
	const struct slot_watcher watcher = watcher_of(p);
	rc = e->ops->adopt(e, k->spec, adopt, &watcher, &p->slot, err);
	if (rc < 0) {
		place_free(p);
		return rc;
	}
	kernel_place_join(p, k);
	note_line(k, adopt->line);
	return 0;
}

bool kernel_place_leave(struct kernel *k)
{
	struct kernel_place *p;
	bool last;

	kernel_place_look_cancel(k);
	p = TAKE(k->place);
	list_remove(&k->beside);
	last = list_empty(&p->kernels);
	drop_parks(p, k, last);
	if (!last && k->alive)
		kill_line(p, k->line);
	if (!last && *k->folder && p->slot->engine->ops->drop_folder)
		p->slot->engine->ops->drop_folder(p->slot, k->folder);
	if (!last)
		return false;
	if (p->left)
		p->slot->engine->ops->leave(p->slot);
	else
		p->slot->engine->ops->remove(p->slot, kernel_on_removed, k);
	last = !p->left;
	place_free(p);
	return last;
}

void kernel_place_let_go(struct kernel *k)
{
	struct kernel_place *p;

	kernel_place_look_cancel(k);
	p = TAKE(k->place);
	list_remove(&k->beside);
	p->left = true;
	LIST_EACH_SAFE (at, &p->parks)
		if (CONTAINER_OF(at, struct park, link)->of == k)
			park_free(CONTAINER_OF(at, struct park, link));
	if (!list_empty(&p->kernels))
		return;
	p->slot->engine->ops->leave(p->slot);
	place_free(p);
}

unsigned kernel_place_next_line(struct kernel *k)
{
	unsigned line = ++k->place->last_line;

	note_line(k, line);
	LIST_EACH (at, &k->place->kernels) {
		const struct kernel *other = kernel_at(at);

		if (other != k && other->watcher.on_record)
			other->watcher.on_record(other->watcher.data);
	}
	return line;
}
