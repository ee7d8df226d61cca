#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/door/rest.h"
#include "gateway/door/route.h"

#define RESOURCE_MAX (4u << 20)
#define PATH_BYTES   4096

struct resource {
	const char *key, *file, *mime;
};

/* The resource keys in use (wire-contract 1.3). Nothing else in the folder is served. */
static const struct resource resources[] = {
	{"logo-32x32", "logo-32x32.png", "image/png"},
	{"logo-64x64", "logo-64x64.png", "image/png"},
	{"logo-svg", "logo-svg.svg", "image/svg+xml"},
	{"kernel.js", "kernel.js", "application/javascript"},
	{"kernel.css", "kernel.css", "text/css"},
};

static int resource_path(const struct kernelspec *spec, const char *file, struct buf *ret)
{
	if (!spec->resource_dir)
		return E_NOT_FOUND;
	return buf_addf(ret, "%s/%s", spec->resource_dir, file);
}

/* Few and local: looked at without leaving the loop. */
static bool has_resource(const struct kernelspec *spec, const char *file)
{
	AUTO(buf_done) struct buf path;
	buf_init(&path, PATH_BYTES);
	return resource_path(spec, file, &path) == 0 && access((const char *)path.data, R_OK) == 0;
}

static struct cJSON *resource_list(const struct door *d, const struct kernelspec *spec)
{
	struct cJSON *list = cJSON_CreateObject();
	for (unsigned i = 0; i < ARRAY_LEN(resources); i++) {
		if (!has_resource(spec, resources[i].file))
			continue;
		AUTO(buf_done) struct buf url;
		buf_init(&url, PATH_BYTES);
		if (buf_addf(&url, "%s/kernelspecs/%s/%s", d->base, spec->name,
			    resources[i].file) == 0)
			(void)cJSON_AddStringToObject(list, resources[i].key,
				(const char *)url.data); /* left out without memory */
	}
	return list;
}

static struct cJSON *spec_entry(const struct door *d, const struct kernelspec *spec)
{
	struct cJSON *entry = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(entry, "name", spec->name); /* a hole is told by the client */
	(void)cJSON_AddItemToObject(entry, "spec", cJSON_Duplicate(spec->spec, true));
	(void)cJSON_AddItemToObject(entry, "resources", resource_list(d, spec));
	return entry;
}

static void answer_spec(struct call *r, const char *name)
{
	struct err err;
	const struct kernelspec *spec = bridge_spec(r->door->gw->bridge, name);
	if (spec && *name) {
		answer_json(r, 200, spec_entry(r->door, spec));
		return;
	}
	err_set(&err, E_NOT_FOUND, "there is no kernelspec `%s`", name);
	answer_error(r, &err);
}

/* jupyter_server's proxy with KERNEL_USERNAME set asks for one spec as ?user=alice/python3. */
static void list_get(struct call *r)
{
	const char *user = call_query(r, "user");
	const char *slash = user ? strchr(user, '/') : NULL;
	if (slash) {
		answer_spec(r, slash + 1);
		return;
	}
	const struct bridge *bridge = r->door->gw->bridge;
	struct cJSON *tree = cJSON_CreateObject();
	const char *chosen = bridge_default_spec(bridge);
	(void)cJSON_AddStringToObject(tree, "default", chosen ? chosen : ""); /* as spec_entry */
	struct cJSON *specs = cJSON_AddObjectToObject(tree, "kernelspecs");
	LIST_EACH (at, bridge_specs(bridge)) {
		const struct kernelspec *spec = CONTAINER_OF(at, struct kernelspec, link);
		(void)cJSON_AddItemToObject(specs, spec->name, spec_entry(r->door, spec));
	}
	answer_json(r, 200, tree);
}

static void spec_get(struct call *r)
{
	answer_spec(r, r->param[0]);
}

static int read_file(const char *path, struct buf *ret, struct err *err)
{
	struct stat st;
	int status = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_set(err, E_NOT_FOUND, "this file is not here");
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)RESOURCE_MAX)
		status = err_set(err, E_NOT_FOUND, "this file cannot be served");
	while (status == 0) {
		uint8_t block[16384];
		ssize_t n = read(fd, block, sizeof block);
		if (n == 0)
			break;
		if (n > 0)
			status = buf_add(ret, block, (size_t)n);
		else if (errno != EINTR)
			status = err_set(err, E_IO, "this file cannot be read");
	}
	(void)close(fd); /* nothing was written */
	return status;
}

static const struct resource *find_resource(const char *file)
{
	for (unsigned i = 0; i < ARRAY_LEN(resources); i++)
		if (strcmp(resources[i].file, file) == 0)
			return &resources[i];
	return NULL;
}

static void file_get(struct call *r)
{
	struct err err = {0};
	AUTO(buf_done) struct buf path;
	AUTO(buf_done) struct buf body;
	buf_init(&path, PATH_BYTES);
	buf_init(&body, RESOURCE_MAX);
	const struct kernelspec *spec = bridge_spec(r->door->gw->bridge, r->param[0]);
	const struct resource *resource = find_resource(r->param[1]);
	int status = E_NOT_FOUND;
	if (spec && resource)
		status = resource_path(spec, resource->file, &path);
	if (status == 0)
		status = read_file((const char *)path.data, &body, &err);
	if (status != 0) {
		err_set(&err, E_NOT_FOUND, "there is no such file of a kernelspec");
		answer_error(r, &err);
		return;
	}
	answer_header(r, "Cache-Control", "public, max-age=2592000");
	answer_bytes(r, 200, resource->mime, (struct bytes){body.data, body.len});
}

const struct route rest_kernelspecs_routes[] = {
	{METHOD_GET, "/api/kernelspecs", SCOPE_READ, list_get},
	{METHOD_GET, "/api/kernelspecs/{name}", SCOPE_READ, spec_get},
	{METHOD_GET, "/kernelspecs/{name}/{file}", SCOPE_READ, file_get},
	{0},
};
