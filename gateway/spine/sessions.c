#include "gateway/spine/sessions.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/crypto.h"
#include "gateway/base/list.h"
#include "gateway/spine/survive.h"

#define TEXT_MAX     4096u /* path, name, type */
#define SESSIONS_MAX 10000u

struct session {
	struct list link;
	const struct owner *owner;
	char id[UUID_SIZE];
	char kernel_id[UUID_SIZE];
	char *path, *name, *type;
};

struct sessions {
	struct gateway *gw;
	struct list rows;
	size_t n;
};

static struct session *session_of(struct list *at)
{
	return CONTAINER_OF(at, struct session, link);
}

int sessions_open(struct gateway *gw, struct sessions **ret, struct err *err)
{
	(void)err; /* nothing here can fail yet: rows are in memory */
	struct sessions *ss = xcalloc(1, sizeof *ss);
	ss->gw = gw;
	list_init(&ss->rows);
	*ret = ss;
	return 0;
}

static void drop(struct sessions *ss, struct session *s)
{
	list_remove(&s->link);
	ss->n--;
	free(s->path);
	free(s->name);
	free(s->type);
	free(s);
}

void sessions_free(struct sessions *ss)
{
	if (!ss)
		return;
	while (!list_empty(&ss->rows))
		drop(ss, session_of(ss->rows.next));
	free(ss);
}

void sessions_kernel_gone(struct sessions *ss, const char *kernel_id)
{
	LIST_EACH_SAFE (at, &ss->rows) {
		if (strcmp(session_of(at)->kernel_id, kernel_id) == 0)
			drop(ss, session_of(at));
	}
}

static const char *text_of(const cJSON *body, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, name));
}

/* NULL if there is none. */
static struct desk *desk_of(const struct sessions *ss, const struct session *s)
{
	struct desk *d = NULL;
	return kernels_find(ss->gw->kernels, s->owner, s->kernel_id, &d, NULL) == 0 ? d : NULL;
}

static cJSON *model_of(const struct sessions *ss, const struct session *s)
{
	const struct desk *d = desk_of(ss, s);
	cJSON *model = cJSON_CreateObject();
	cJSON_AddStringToObject(model, "id", s->id);
	cJSON_AddStringToObject(model, "path", s->path);
	cJSON_AddStringToObject(model, "name", s->name);
	cJSON_AddStringToObject(model, "type", s->type);
	cJSON_AddItemToObject(model, "kernel", d ? desk_model(d) : cJSON_CreateNull());
	if (strcmp(s->type, "notebook") == 0) {
		cJSON *notebook = cJSON_AddObjectToObject(model, "notebook");
		cJSON_AddStringToObject(notebook, "path", s->path);
		cJSON_AddStringToObject(notebook, "name", s->name);
	}
	return model;
}

static int check_text(const char *text, const char *what, struct err *err)
{
	if (text && strlen(text) > TEXT_MAX)
		return err_set(
			err, E_INVALID, "session: %s is longer than %u bytes", what, TEXT_MAX);
	return 0;
}

static int check_texts(const cJSON *body, struct err *err)
{
	static const char *const names[] = {"path", "name", "type"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int rc = check_text(text_of(body, names[i]), names[i], err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int start_kernel(struct sessions *ss, const struct owner *owner, const char *spec_name,
	const char *path, struct desk **ret, struct err *err)
{
	if (!bridge_spec(ss->gw->bridge, spec_name))
		return kernels_no_spec(ss->gw->kernels, E_NO_SPEC, spec_name, err);
	struct kernels_start start = {.owner = owner, .spec_name = spec_name, .path = path};
	return kernels_start(ss->gw->kernels, &start, ret, err);
}

/* As Jupyter Server: an id that is not there any more is passed over if a name says what to start.
 */
static int get_kernel(struct sessions *ss, const struct owner *owner, const cJSON *body,
	struct desk **ret, struct err *err)
{
	const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(body, "kernel");
	const char *id = text_of(kernel, "id"), *name = text_of(kernel, "name");
	if (id && *id) {
		int rc = kernels_find(ss->gw->kernels, owner, id, ret, err);
		if (rc == 0 || !name)
			return rc;
	}
	return start_kernel(ss, owner, name, text_of(body, "path"), ret, err);
}

static struct session *add(
	struct sessions *ss, const struct owner *owner, const cJSON *body, const struct desk *d)
{
	const char *name = text_of(body, "name");
	struct session *s = xcalloc(1, sizeof *s);
	s->owner = owner;
	crypto_uuid(s->id);
	(void)copy_text(s->kernel_id, UUID_SIZE, desk_id(d), strlen(desk_id(d))); /* same size */
	s->path = xstrdup(text_of(body, "path"));
	s->name = xstrdup(name ? name : "");
	s->type = xstrdup(text_of(body, "type"));
	list_append(&ss->rows, &s->link);
	ss->n++;
	return s;
}

static struct session *find_path(
	const struct sessions *ss, const struct owner *owner, const char *path)
{
	LIST_EACH (at, &ss->rows) {
		struct session *s = session_of(at);
		if (s->owner == owner && strcmp(s->path, path) == 0)
			return s;
	}
	return NULL;
}

int sessions_create(struct sessions *ss, const struct owner *owner, const struct cJSON *body,
	struct cJSON **ret_model, struct err *err)
{
	struct desk *d = NULL;
	const char *path = text_of(body, "path");
	if (!path || !text_of(body, "type"))
		return err_set(err, E_INVALID, "session: path and type must be strings");
	int rc = check_texts(body, err);
	if (rc != 0)
		return rc;
	struct session *s = find_path(ss, owner, path);
	if (!s && ss->n >= SESSIONS_MAX)
		return err_set(
			err, E_CAPACITY, "the limit of %u sessions is reached", SESSIONS_MAX);
	if (!s) {
		rc = get_kernel(ss, owner, body, &d, err);
		if (rc != 0)
			return rc;
		s = add(ss, owner, body, d);
		survive_record(d);
	}
	*ret_model = model_of(ss, s);
	return 0;
}

struct cJSON *sessions_rows(const struct sessions *ss, const char *kernel_id)
{
	cJSON *rows = cJSON_CreateArray();
	LIST_EACH (at, &ss->rows) {
		const struct session *s = session_of(at);
		if (strcmp(s->kernel_id, kernel_id) != 0)
			continue;
		cJSON *row = cJSON_CreateObject();
		cJSON_AddStringToObject(row, "id", s->id);
		cJSON_AddStringToObject(row, "path", s->path);
		cJSON_AddStringToObject(row, "name", s->name);
		cJSON_AddStringToObject(row, "type", s->type);
		cJSON_AddItemToArray(rows, row);
	}
	return rows;
}

void sessions_restore(struct sessions *ss, const struct owner *owner, const char *kernel_id,
	const struct cJSON *rows)
{
	const cJSON *row;
	cJSON_ArrayForEach (row, rows) {
		const char *id = text_of(row, "id"), *path = text_of(row, "path");
		const char *name = text_of(row, "name"), *type = text_of(row, "type");
		if (!id || !path || !name || !type || strlen(id) >= UUID_SIZE)
			continue;
		struct session *s = xcalloc(1, sizeof *s);
		s->owner = owner;
		(void)copy_text(s->id, UUID_SIZE, id, strlen(id));			/* fits */
		(void)copy_text(s->kernel_id, UUID_SIZE, kernel_id, strlen(kernel_id)); /* fits */
		s->path = xstrdup(path);
		s->name = xstrdup(name);
		s->type = xstrdup(type);
		list_append(&ss->rows, &s->link);
		ss->n++;
	}
}

static int find(const struct sessions *ss, const struct owner *owner, const char *id,
	struct session **ret, struct err *err)
{
	LIST_EACH (at, &ss->rows) {
		struct session *s = session_of(at);
		if (s->owner == owner && strcmp(s->id, id) == 0) {
			*ret = s;
			return 0;
		}
	}
	return err_set(err, E_NOT_FOUND, "Session not found: %.64s", id);
}

int sessions_get(struct sessions *ss, const struct owner *owner, const char *id,
	struct cJSON **ret_model, struct err *err)
{
	struct session *s = NULL;
	int rc = find(ss, owner, id, &s, err);
	if (rc == 0)
		*ret_model = model_of(ss, s);
	return rc;
}

struct cJSON *sessions_list(const struct sessions *ss, const struct owner *owner)
{
	cJSON *list = cJSON_CreateArray();
	LIST_EACH (at, &ss->rows) {
		if (session_of(at)->owner == owner)
			cJSON_AddItemToArray(list, model_of(ss, session_of(at)));
	}
	return list;
}

/* The kernel that the session is to hold from now on; NULL: the same. */
static int new_kernel(struct sessions *ss, const struct session *s, const cJSON *body,
	struct desk **ret, struct err *err)
{
	const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(body, "kernel");
	const char *id = text_of(kernel, "id"), *name = text_of(kernel, "name");
	*ret = NULL;
	if (id && *id) {
		if (kernels_find(ss->gw->kernels, s->owner, id, ret, NULL) == 0)
			return 0;
		return err_set(err, E_INVALID, "No such kernel: %.64s", id);
	}
	return name ? start_kernel(ss, s->owner, name, s->path, ret, err) : 0;
}

static bool is_held(const struct sessions *ss, const char *kernel_id)
{
	LIST_EACH (at, &ss->rows) {
		if (strcmp(session_of(at)->kernel_id, kernel_id) == 0)
			return true;
	}
	return false;
}

/* A kernel that no session holds any more was this one's alone: it goes. */
static void hold(struct sessions *ss, struct session *s, const struct desk *d)
{
	struct desk *old = desk_of(ss, s);
	if (old == d)
		return;
	(void)copy_text(s->kernel_id, UUID_SIZE, desk_id(d), strlen(desk_id(d))); /* same size */
	if (old && !is_held(ss, desk_id(old)))
		desk_end(old, "The session went over to another kernel.", NULL, NULL);
	else if (old)
		survive_record(old);
}

static void set_text(char **text, const char *value)
{
	if (!value)
		return;
	free(*text);
	*text = xstrdup(value);
}

int sessions_patch(struct sessions *ss, const struct owner *owner, const char *id,
	const struct cJSON *body, struct cJSON **ret_model, struct err *err)
{
	struct session *s = NULL;
	struct desk *d = NULL;
	int rc = find(ss, owner, id, &s, err);
	if (rc == 0)
		rc = check_texts(body, err);
	if (rc == 0)
		rc = new_kernel(ss, s, body, &d, err);
	if (rc != 0)
		return rc;
	set_text(&s->path, text_of(body, "path"));
	set_text(&s->name, text_of(body, "name"));
	set_text(&s->type, text_of(body, "type"));
	if (d)
		hold(ss, s, d);
	if (!d)
		d = desk_of(ss, s);
	if (d)
		survive_record(d);
	*ret_model = model_of(ss, s);
	return 0;
}

int sessions_delete(struct sessions *ss, const struct owner *owner, const char *id,
	void (*cb)(void *data), void *data, struct err *err)
{
	struct session *s = NULL;
	int rc = find(ss, owner, id, &s, err);
	if (rc != 0)
		return rc;
	struct desk *d = desk_of(ss, s);
	drop(ss, s);
	if (!d)
		return err_set(err, E_GONE, "Kernel deleted before session");
	desk_end(d, "The session was deleted.", cb, data);
	return 0;
}
