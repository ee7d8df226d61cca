/* The folder of one kernel: what is told of it goes to its watcher, what is asked of it to its
 * container; one lay at a time. */
#include "kernel-bridge/kernel_folder.h"
#include "kernel-bridge/kernel_place.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

struct laying {
	struct kernel *kernel;
	char id[UUID_SIZE];
	struct kernel_lay want;
	bool is_told; /* on_laid was called */
	struct timer lost;
};

static const struct slot_files_ops *ops_of(const struct kernel *k)
{
	return k->place && k->place->warm && !k->slot_gone ? k->place->slot->engine->ops->files
							   : NULL;
}

bool kernel_has_files(const struct kernel *k)
{
	const struct slot_files_ops *ops = ops_of(k);

	return ops && ops->has(k->place->slot);
}

uint64_t kernel_place(const struct kernel *k)
{
	return k->n_place;
}

static int check(const struct kernel *k, struct err *err)
{
	return kernel_has_files(k) ? 0
				   : err_set(err, E_UNAVAILABLE,
					     "the kernel's container tells nothing of its files");
}

int kernel_want(struct kernel *k, const struct kernel_want *want, struct err *err)
{
	int rc = check(k, err);

	return rc < 0 ? rc : ops_of(k)->want(k->place->slot, k->line, want, err);
}

int kernel_scan(struct kernel *k, const char *id, bool full, struct err *err)
{
	int rc = check(k, err);

	return rc < 0 ? rc : ops_of(k)->scan(k->place->slot, k->line, id, full, err);
}

/* ---- what is told ---- */

static bool listens(const struct kernel *k)
{
	return k->wish != WISH_END && !k->unowned;
}

void kernel_on_files(struct kernel *k, const char *msg_id, struct bytes change)
{
	if (listens(k) && k->watcher.on_files)
		k->watcher.on_files(k->watcher.data, msg_id, change);
}

void kernel_on_content(struct kernel *k, const char *name, struct bytes bytes)
{
	if (listens(k) && k->watcher.on_content)
		k->watcher.on_content(k->watcher.data, name, bytes);
}

/* ---- a lay ---- */

void kernel_laying_drop(struct kernel *k)
{
	struct laying *l = TAKE(k->laying);

	if (!l)
		return;
	timer_stop(kernel_clock(k), &l->lost);
	free(l);
}

static void tell(struct laying *l, const struct err *err)
{
	l->is_told = true;
	l->want.on_laid(l->want.data, err);
}

static void on_lost(struct timer *t)
{
	struct laying *l = CONTAINER_OF(t, struct laying, lost);
	struct err err;

	err_set(&err, E_UNAVAILABLE, "the kernel's container is gone");
	tell(l, &err);
}

void kernel_laying_lost(struct kernel *k)
{
	if (!listens(k))
		kernel_laying_drop(k);
	else if (k->laying && !k->laying->is_told)
		timer_start(kernel_clock(k), &k->laying->lost, 0);
}

void kernel_on_laid(struct kernel *k, const struct slot_laid *laid)
{
	struct laying *l = k->laying;
	struct err err;

	if (!l || l->is_told || strcmp(l->id, laid->id) != 0)
		return; /* of one that was given up */
	if (laid->names) {
		l->want.on_needs(l->want.data, laid->names, laid->last);
		return;
	}
	err_set(&err, E_UNAVAILABLE, "%s",
		laid->reason ? laid->reason : "its supervisor does not say why");
	tell(l, laid->ready ? NULL : &err);
}

void kernel_on_room(struct kernel *k)
{
	if (k->laying && !k->laying->is_told)
		k->laying->want.on_room(k->laying->want.data);
}

/* For the row: a gateway that is killed now may not come to say so in lay_end, or not be heard. It
 * stays until the next one, since that of an ended lay tells nobody anything. */
void kernel_laying_counts(struct kernel *k)
{
	if (k->laying)
		memcpy(k->lay, k->laying->id, sizeof(k->lay));
}

int kernel_lay(struct kernel *k, const struct kernel_lay *lay, struct err *err)
{
	int rc = check(k, err);

	if (rc < 0)
		return rc;
	assert(!k->laying);
	k->laying = xcalloc(1, sizeof(*k->laying));
	k->laying->kernel = k;
	k->laying->want = *lay;
	crypto_uuid(k->laying->id);
	timer_init(&k->laying->lost, on_lost);
	rc = ops_of(k)->lay(k->place->slot, k->laying->id, lay->folder, lay->entries, err);
	if (rc < 0)
		kernel_laying_drop(k);
	return rc;
}

int kernel_lay_content(struct kernel *k, const char *name, struct bytes bytes, struct err *err)
{
	int rc = check(k, err);

	if (rc < 0)
		return rc;
	assert(k->laying);
	return ops_of(k)->lay_content(k->place->slot, k->laying->id, name, bytes, err);
}

void kernel_lay_end(struct kernel *k, bool keep)
{
	if (!k->laying)
		return;
	if (kernel_has_files(k))
		ops_of(k)->lay_end(k->place->slot, k->laying->id, keep);
	if (!keep && strcmp(k->lay, k->laying->id) == 0)
		k->lay[0] = '\0';
	kernel_laying_drop(k);
}
