#include "history/sweep.h"

#include <string.h>

#include "gateway/base/hash.h"
#include "history/chunk.h"
#include "history/files_walk.h"

struct named {
	char name[CHUNK_NAME_LEN + 1];
	UT_hash_handle hh;
};

struct sweeping {
	struct named *named;
	struct pins *pins;
	const char *history;
};

static void note(void *data, const char *name)
{
	struct sweeping *s = data;
	struct named *n;
	HASH_FIND_STR(s->named, name, n);
	if (n)
		return;
	n = xcalloc(1, sizeof *n);
	(void)copy_text(n->name, sizeof n->name, name, strlen(name)); /* of that length */
	HASH_ADD_STR(s->named, name, n);
}

static bool keeps(void *data, const char *name)
{
	struct sweeping *s = data;
	struct named *n;
	HASH_FIND_STR(s->named, name, n);
	return n || (s->pins && pins_has(s->pins, s->history, name));
}

int sweep_chunks(const char *repository, struct pins *pins, const char *history, int64_t older_s,
	struct err *err)
{
	struct sweeping s = {.pins = pins, .history = history};
	const struct chunk_sweep sweep = {keeps, &s, older_s};
	struct named *n, *next;
	struct repo repo;
	if (!chunks_any(repository))
		return 0;
	int status = repo_open(repository, &repo, err);
	if (status != 0)
		return status;
	/* What cannot be read may name any of them. */
	status = files_each_chunk(&repo, note, &s, err);
	if (status == 0)
		status = chunks_sweep(repository, &sweep, err);
	HASH_ITER (hh, s.named, n, next) {
		HASH_DEL(s.named, n);
		free(n);
	}
	repo_close(&repo);
	return status;
}
