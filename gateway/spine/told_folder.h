/* Inside of the spine: what a kernel's working folder holds, as its container has told it by
 * Changes (docs/decisions/0028), so that a whole one can be recorded at any time. Owns its entries.
 * What is read here is a guest's: checked, and bounded. Loop thread. */
#ifndef COPPICE_SPINE_TOLD_FOLDER_H
#define COPPICE_SPINE_TOLD_FOLDER_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

struct cJSON;
struct folder_entry;

#define FOLDER_ENTRIES_MAX 20000u
#define FOLDER_NAMES_MAX   16384u
#define CONTENT_NAME_SIZE  65

struct folder {
	struct folder_entry *by_path;
	size_t n, bytes;
	struct cJSON *lost; /* as the last Change had it, or NULL */
};

void folder_clear(struct folder *f);
/* A Change; the caller owns the tree. E_INVALID: it is none; E_TOO_BIG; E_NOMEM. */
int told_read(struct bytes text, struct cJSON **ret, struct err *err);
/* Of a Change that was read: it says that nothing has changed. */
bool told_is_empty(const struct cJSON *change);
bool told_is_full(const struct cJSON *change);
/* What was read is so now. E_TOO_BIG: it would be too much; then nothing has changed. */
int folder_apply(struct folder *f, const struct cJSON *change, struct err *err);
/* The whole of it as a Change to nothing; the caller owns it. */
struct cJSON *folder_change(const struct folder *f);

struct content_name {
	char name[CONTENT_NAME_SIZE];
	uint32_t bytes; /* as it was told; more of it are not taken */
};

/* The contents that a Change names, each entry's own; the caller frees the array. E_TOO_BIG. */
int told_contents(
	const struct cJSON *change, struct content_name **ret, size_t *ret_n, struct err *err);

#endif
