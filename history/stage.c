/* The objects of a repository that is written to, by libgit2's interface for stores of objects: in
 * memory until repo_flush(), above packs, above files of their own. It stands alone in the
 * repository, in place of libgit2's own list of stores. */
#include <stdio.h>
#include <string.h>
#include <git2.h>
#include <git2/sys/odb_backend.h>
#include <git2/sys/repository.h>

#include "gateway/base/hash.h"
#include "history/packfile.h"
#include "history/repo.h"

#define LEVEL	    1		/* git's own takes 5 s for 100 MB; packing does it again anyhow */
#define LARGE_BYTES (1u << 20)	/* from here on an object is a file of its own at once */
#define STAGE_MAX   (16u << 20) /* bytes in memory; what is beyond likewise */
#define PACK_FROM   32u		/* objects, of some four executions; fewer are files of their own */
/* Packing removes a folder of objects in which nothing lies; libgit2 may have made it just then, to
 * put an object there, and does not try again as git does. */
#define OBJECT_TRIES 3

struct staged {
	git_oid id;
	git_object_t type;
	size_t size;
	UT_hash_handle hh;
	uint8_t data[];
};

struct stage {
	git_odb_backend base;
	git_odb_backend *packs, *loose;
	char folder[4096];
	struct staged *objects; /* in the order in which they were written */
	size_t bytes;
	bool on;
	/* One is a file of its own already. The rest stay with it: `git repack` passes over what a
	 * packed commit leads to, and that file would lie there for ever. */
	bool spilled;
	bool freshens; /* what is asked is whether an object is there that is to be written */
};

static int git_fail(const char *what, struct err *err)
{
	const git_error *e = git_error_last();
	return err_set(
		err, E_IO, "git: %s: %s", what, e && e->message ? e->message : "no reason given");
}

static struct stage *of(git_odb_backend *base)
{
	return CONTAINER_OF(base, struct stage, base);
}

static struct staged *find(const struct stage *s, const git_oid *id)
{
	struct staged *o = NULL;
	HASH_FIND(hh, s->objects, id->id, sizeof id->id, o);
	return o;
}

static void clear(struct stage *s)
{
	struct staged *o, *next;
	HASH_ITER (hh, s->objects, o, next) {
		HASH_DEL(s->objects, o);
		free(o);
	}
	s->bytes = 0;
}

/* ---- what libgit2 asks ---- */

static int stage_read(void **ret, size_t *ret_len, git_object_t *ret_type, git_odb_backend *base,
	const git_oid *id)
{
	struct stage *s = of(base);
	const struct staged *o = find(s, id);
	if (!o) {
		int code = s->packs->read(ret, ret_len, ret_type, s->packs, id);
		return code == 0 ? 0 : s->loose->read(ret, ret_len, ret_type, s->loose, id);
	}
	void *copy = git_odb_backend_data_alloc(base, o->size + 1);
	if (!copy)
		return GIT_ERROR;
	memcpy(copy, o->data, o->size + 1); /* with the NUL behind it, as other stores have it */
	*ret = copy;
	*ret_len = o->size;
	*ret_type = o->type;
	return 0;
}

static int stage_read_header(
	size_t *ret_len, git_object_t *ret_type, git_odb_backend *base, const git_oid *id)
{
	struct stage *s = of(base);
	const struct staged *o = find(s, id);
	if (!o) {
		int code = s->packs->read_header(ret_len, ret_type, s->packs, id);
		return code == 0 ? 0 : s->loose->read_header(ret_len, ret_type, s->loose, id);
	}
	*ret_len = o->size;
	*ret_type = o->type;
	return 0;
}

static int stage_exists(git_odb_backend *base, const git_oid *id)
{
	struct stage *s = of(base);
	return find(s, id) || s->packs->exists(s->packs, id) || s->loose->exists(s->loose, id);
}

/* 0: it is there, and is young from now on. If not, libgit2 goes on with a refresh. Files are asked
 * for when one is to be written: in a pack it may be once more, and nearly all are new. */
static int stage_freshen(git_odb_backend *base, const git_oid *id)
{
	struct stage *s = of(base);
	if (find(s, id) || s->packs->freshen(s->packs, id) == 0)
		return 0;
	int code = s->on ? GIT_ENOTFOUND : s->loose->freshen(s->loose, id);
	s->freshens = code != 0;
	return code;
}

/* Looks for new packs where an object is missed that was there. Not for each that is to be written
 * and, nearly always, is new: one that came into a pack a moment ago is there twice then. */
static int stage_refresh(git_odb_backend *base)
{
	struct stage *s = of(base);
	bool skips = s->freshens;
	s->freshens = false;
	return skips ? GIT_ENOTFOUND : s->packs->refresh(s->packs);
}

static int write_loose(
	struct stage *s, const git_oid *id, const void *data, size_t len, git_object_t type)
{
	int code = GIT_ERROR;
	for (int i = 0; code != 0 && i < OBJECT_TRIES; i++)
		code = s->loose->write(s->loose, id, data, len, type);
	return code;
}

static int stage_write(
	git_odb_backend *base, const git_oid *id, const void *data, size_t len, git_object_t type)
{
	struct stage *s = of(base);
	bool fits = s->on && len < LARGE_BYTES && s->bytes + len <= STAGE_MAX;
	struct staged *o = fits ? malloc(sizeof *o + len + 1) : NULL;
	if (!o) {
		s->spilled = s->on;
		return write_loose(s, id, data, len, type);
	}
	o->id = *id;
	o->type = type;
	o->size = len;
	memcpy(o->data, data, len);
	o->data[len] = '\0';
	HASH_ADD(hh, s->objects, id.id, sizeof o->id.id, o);
	s->bytes += len;
	return 0;
}

static void stage_free(git_odb_backend *base)
{
	struct stage *s = of(base);
	clear(s);
	if (s->packs)
		s->packs->free(s->packs);
	if (s->loose)
		s->loose->free(s->loose);
	free(s);
}

/* ---- opening ---- */

static int make_stage(git_repository *git, git_odb *odb, struct stage **ret)
{
	struct stage *s = xcalloc(1, sizeof *s);
	int code = git_odb_init_backend(&s->base, GIT_ODB_BACKEND_VERSION);
	s->base.read = stage_read;
	s->base.read_header = stage_read_header;
	s->base.exists = stage_exists;
	s->base.freshen = stage_freshen;
	s->base.refresh = stage_refresh;
	s->base.write = stage_write;
	s->base.free = stage_free;
	(void)snprintf(
		s->folder, sizeof s->folder, "%sobjects", git_repository_path(git)); /* fits */
	if (code == 0)
		code = git_odb_backend_pack(&s->packs, s->folder);
	if (code == 0)
		code = git_odb_backend_loose(&s->loose, s->folder, LEVEL, 0, 0700, 0400);
	if (code == 0) {
		s->packs->odb = s->loose->odb = odb;
		code = git_odb_add_backend(odb, &s->base, 1);
	}
	if (code == 0)
		*ret = s;
	else
		stage_free(&s->base);
	return code;
}

int repo_open_to_write(const char *path, struct repo *ret_repo, struct err *err)
{
	struct repo repo = {NULL, NULL};
	git_odb *odb = NULL;
	int status = repo_open(path, &repo, err);
	if (status != 0)
		return status;
	int code = git_odb_new(&odb);
	if (code == 0)
		code = make_stage(repo.git, odb, &repo.stage);
	if (code == 0)
		code = git_repository_set_odb(repo.git, odb);
	git_odb_free(odb); /* the repository's now */
	if (code != 0) {
		status = git_fail("a repository cannot be opened", err);
		repo_close(&repo);
		return status;
	}
	*ret_repo = repo;
	return 0;
}

/* ---- from memory to the disk ---- */

void repo_begin(struct repo *repo)
{
	repo->stage->on = true;
}

bool repo_freshen(struct repo *repo, const char *id)
{
	struct stage *s = repo->stage;
	git_oid oid;
	return git_oid_fromstr(&oid, id) == 0 &&
	       (s->packs->freshen(s->packs, &oid) == 0 || s->loose->freshen(s->loose, &oid) == 0);
}

void repo_spill(struct repo *repo)
{
	repo->stage->spilled = repo->stage->on;
}

size_t repo_staged_bytes(const struct repo *repo)
{
	return repo->stage->bytes;
}

void repo_drop(struct repo *repo)
{
	clear(repo->stage);
	repo->stage->on = repo->stage->spilled = false;
}

static int flush_loose(struct stage *s, struct err *err)
{
	struct staged *o, *next;
	HASH_ITER (hh, s->objects, o, next) {
		bool there = s->loose->freshen(s->loose, &o->id) == 0;
		if (!there && write_loose(s, &o->id, o->data, o->size, o->type) != 0)
			return git_fail("an object cannot be written", err);
	}
	return 0;
}

static int flush_pack(struct stage *s, struct err *err)
{
	size_t n = 0;
	struct staged *o, *next;
	AUTO(freep) struct pack_object *objects = calloc(HASH_COUNT(s->objects), sizeof *objects);
	if (!objects)
		return err_set(err, E_NOMEM, "a pack: out of memory");
	HASH_ITER (hh, s->objects, o, next) {
		objects[n++] = (struct pack_object){
			o->id.id, (unsigned)o->type, {o->data, o->size}}; /* git's own numbers */
	}
	int status = packfile_write(s->folder, objects, n, err);
	if (status == 0)
		(void)s->packs->refresh(s->packs); /* else it is found when it is missed */
	return status;
}

int repo_flush(struct repo *repo, struct err *err)
{
	struct stage *s = repo->stage;
	bool packs = !s->spilled && HASH_COUNT(s->objects) >= PACK_FROM;
	int status = packs ? flush_pack(s, err) : flush_loose(s, err);
	repo_drop(repo);
	return status;
}
