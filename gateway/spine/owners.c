#include "gateway/spine/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/crypto.h"
#include "gateway/base/file.h"
#include "gateway/base/ini_file.h"
#include "gateway/base/list.h"

#define OWNERS_MAX 10000

struct owner_row {
	struct owner owner;
	bool has_scopes;
	struct list link;
};

struct owners {
	struct list rows;
	size_t n;
};

static struct owner_row *row_of(struct list *link)
{
	return CONTAINER_OF(link, struct owner_row, link);
}

/* A name is part of records, labels and lists. */
static bool is_name(const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-";
	return *text && strspn(text, letters) == strlen(text);
}

static struct owner_row *row_named(struct owners *o, const char *name)
{
	LIST_EACH (at, &o->rows)
		if (strcmp(row_of(at)->owner.name, name) == 0)
			return row_of(at);
	if (o->n == OWNERS_MAX)
		return NULL;
	struct owner_row *row = xcalloc(1, sizeof *row);
	(void)copy_text(row->owner.name, sizeof row->owner.name, name, strlen(name)); /* < 49 */
	/* The strictest limits for who wrote no tier. */
	(void)copy_text(row->owner.tier, sizeof row->owner.tier, "standard", 8); /* it fits */
	list_append(&o->rows, &row->link);
	o->n++;
	return row;
}

/* A secret travels in a header and in a URL; its text is never repeated in a sentence. */
static int set_secret(struct owner *owner, const char *value, struct err *err)
{
	if (*owner->secret)
		return err_set(err, E_INVALID, "[token %s] has two secrets", owner->name);
	for (const char *c = value; *c; c++)
		if (*c <= ' ' || *c > '~')
			return err_set(err, E_INVALID,
				"[token %s] secret may hold printable ASCII without spaces only",
				owner->name);
	if (!*value || !copy_text(owner->secret, sizeof owner->secret, value, strlen(value)))
		return err_set(
			err, E_INVALID, "[token %s] secret is empty or too long", owner->name);
	return 0;
}

static int set_tier(struct owner *owner, const char *value, struct err *err)
{
	static const char *const tiers[] = {"none", "standard", "premium"};
	for (unsigned i = 0; i < ARRAY_LEN(tiers); i++) {
		if (strcmp(tiers[i], value) == 0) {
			(void)copy_text(
				owner->tier, sizeof owner->tier, value, strlen(value)); /* fits */
			return 0;
		}
	}
	return err_set(err, E_INVALID, "[token %s] tier is none, standard or premium, not '%.40s'",
		owner->name, value);
}

static unsigned scope_of(const char *word, size_t len)
{
	static const struct {
		const char *name;
		enum scope scope;
	} scopes[] = {{"read", SCOPE_READ}, {"run", SCOPE_RUN}, {"admin", SCOPE_ADMIN}};
	for (unsigned i = 0; i < ARRAY_LEN(scopes); i++)
		if (strlen(scopes[i].name) == len && strncmp(scopes[i].name, word, len) == 0)
			return scopes[i].scope;
	return 0;
}

static int set_scopes(struct owner_row *row, const char *value, struct err *err)
{
	row->has_scopes = true;
	while (*(value += strspn(value, " ,\t"))) {
		size_t len = strcspn(value, " ,\t");
		unsigned scope = scope_of(value, len);
		if (scope == 0)
			return err_set(err, E_INVALID,
				"[token %s] scopes are of read, run and admin, not '%.*s'",
				row->owner.name, (int)(len < 40 ? len : 40), value);
		row->owner.scopes |= scope;
		value += len;
	}
	return 0;
}

static int on_row(
	void *data, const char *section, const char *name, const char *value, struct err *err)
{
	if (strncmp(section, "token ", 6) != 0 || !is_name(section + 6))
		return err_set(err, E_INVALID,
			"section [%s] is not [token NAME] with a NAME of letters, digits, . _ @ -",
			section);
	struct owner_row *row = row_named(data, section + 6);
	if (!row)
		return err_set(err, E_INVALID, "more than %d tokens", OWNERS_MAX);
	if (strcmp(name, "secret") == 0)
		return set_secret(&row->owner, value, err);
	if (strcmp(name, "tier") == 0)
		return set_tier(&row->owner, value, err);
	if (strcmp(name, "scopes") == 0)
		return set_scopes(row, value, err);
	return err_set(err, E_INVALID, "[token %s] '%s' is not one of secret, tier, scopes",
		row->owner.name, name);
}

static int check_rows(struct owners *o, const char *path, struct err *err)
{
	if (o->n == 0)
		return err_set(err, E_INVALID,
			"%s holds no token; remove it and a new one is made at the next start",
			path);
	LIST_EACH (at, &o->rows) {
		struct owner_row *row = row_of(at);
		if (!*row->owner.secret)
			return err_set(err, E_INVALID, "%s: [token %s] has no secret", path,
				row->owner.name);
		if (!row->has_scopes)
			row->owner.scopes = SCOPE_READ | SCOPE_RUN;
		for (struct list *other = at->next; other != &o->rows; other = other->next)
			if (strcmp(row->owner.secret, row_of(other)->owner.secret) == 0)
				return err_set(err, E_INVALID,
					"%s: [token %s] and [token %s] have the same secret", path,
					row->owner.name, row_of(other)->owner.name);
	}
	return 0;
}

static int write_first(int fd, const char *path, struct err *err)
{
	char secret[65];
	crypto_random_hex(secret, 32);
	bool good =
		dprintf(fd,
			"# Who may come in. One section a token: secret, tier (none, standard,\n"
			"# premium), scopes (read, run, admin). Read at the start of coppice.\n"
			"[token owner]\n"
			"secret = %s\n"
			"tier = none\n"
			"scopes = read run admin\n",
			secret) > 0;
	if (good && fsync(fd) == 0)
		return 0;
	return err_set(err, E_IO, "token file %s cannot be written: %s", path, strerror(errno));
}

/* O_EXCL: two gateways that start at once do not overwrite each other's token. */
static int make_file(const char *path, struct err *err)
{
	int status = file_folder_make(path, err);
	if (status != 0)
		return status;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0)
		return err_set(
			err, E_IO, "token file %s cannot be made: %s", path, strerror(errno));
	status = write_first(fd, path, err);
	if (status != 0)
		(void)unlink(path); /* half a file would be refused at the next start */
	close(fd);
	return status;
}

static int check_mode(FILE *file, const char *path, struct err *err)
{
	struct stat st;
	if (fstat(fileno(file), &st) != 0)
		return err_set(err, E_IO, "token file %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, E_INVALID, "token file %s is not a file", path);
	if (st.st_mode & 077)
		return err_set(err, E_INVALID,
			"token file %s may be read or written by others (mode %04o); run: chmod "
			"600 %s",
			path, (unsigned)(st.st_mode & 07777), path);
	return 0;
}

static int open_file(const char *path, FILE **ret, struct err *err)
{
	FILE *file = fopen(path, "re");
	if (!file && errno == ENOENT) {
		int status = make_file(path, err);
		if (status != 0)
			return status;
		file = fopen(path, "re");
	}
	if (!file)
		return err_set(
			err, E_IO, "token file %s cannot be read: %s", path, strerror(errno));
	int status = check_mode(file, path, err);
	if (status != 0) {
		fclose(file);
		return status;
	}
	*ret = file;
	return 0;
}

static void owners_freep(struct owners **o)
{
	owners_free(*o);
}

int owners_open(const char *path, struct owners **ret, struct err *err)
{
	FILE *file = NULL;
	int status = open_file(path, &file, err);
	if (status != 0)
		return status;
	AUTO(owners_freep) struct owners *o = xcalloc(1, sizeof *o);
	list_init(&o->rows);
	status = ini_file_read(file, path, on_row, o, err);
	fclose(file);
	if (status == 0)
		status = check_rows(o, path, err);
	if (status == 0)
		*ret = TAKE(o);
	return status;
}

void owners_free(struct owners *o)
{
	if (!o)
		return;
	LIST_EACH_SAFE (at, &o->rows) {
		struct owner_row *row = row_of(at);
		explicit_bzero(&row->owner, sizeof row->owner);
		free(row);
	}
	free(o);
}

/* Every row is compared, so that time does not tell which one was near. */
const struct owner *owners_find(const struct owners *o, const char *secret)
{
	const struct owner *found = NULL;
	LIST_EACH (at, &o->rows)
		if (crypto_equal(row_of(at)->owner.secret, secret))
			found = &row_of(at)->owner;
	return found;
}

const struct owner *owners_first(const struct owners *o)
{
	return owners_first_with(o, SCOPE_RUN);
}

const struct owner *owners_first_with(const struct owners *o, enum scope scope)
{
	LIST_EACH (at, &o->rows)
		if (row_of(at)->owner.scopes & scope)
			return &row_of(at)->owner;
	return NULL;
}

const struct owner *owners_next(const struct owners *o, const struct owner *after)
{
	struct list *at = o->rows.next;
	if (after)
		at = CONTAINER_OF(after, struct owner_row, owner)->link.next;
	return at == &o->rows ? NULL : &row_of(at)->owner;
}

size_t owners_count(const struct owners *o)
{
	return o->n;
}
