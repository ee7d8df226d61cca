/* What the engine says of itself, for status and doctor; and the kernelspecs that it can run. */
#include "kernel-bridge/docker_facts.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel-bridge/spec.h"

#define OWN_ARGV "[\"python3\",\"-m\",\"ipykernel_launcher\",\"-f\",\"{connection_file}\"]"

static void on_info(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker *d = data;
	(void)status; /* err says it */
	if (err) {
		log_warn(&d->log, "engine_info_failed reason=%s", err->text);
		return;
	}
	cJSON_Delete(d->info);
	d->info = cJSON_Duplicate(json, true);
}

static void on_image(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker *d = data;
	(void)json; /* that it is there is enough */
	if (!err)
		d->image = IMAGE_THERE;
	else if (status == 404)
		d->image = IMAGE_MISSING;
	if (status == 404)
		log_warn(&d->log, "image_missing image=%s hint=\"make image\"",
			d->env.config->image);
}

void docker_facts_ask(struct docker *d)
{
	char path[DOCKER_PATH_MAX];
	const struct docker_call info = {
		.method = "GET", .path = "/info", .done = on_info, .data = d};
	const struct docker_call image = {
		.method = "GET", .path = path, .done = on_image, .data = d};
	/* A report without them says less, and so does one about a name that is too long. */
	(void)docker_api_send(d->api, &info, NULL);
	int n = snprintf(path, sizeof(path), "/images/%s/json", d->env.config->image);
	if (n > 0 && (size_t)n < sizeof(path))
		(void)docker_api_send(d->api, &image, NULL);
}

static void on_container(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "Image"));
	(void)status, (void)err; /* a record without it names no environment */
	if (!id || !copy_text(s->image_id, sizeof(s->image_id), id, strlen(id)))
		s->image_id[0] = '\0';
}

void docker_slot_ask_image(struct docker_slot *s)
{
	(void)docker_slot_call(s, "GET", "/json", NULL, on_container, NULL); /* as above */
}

const char *docker_environment(const struct slot *slot)
{
	return CONTAINER_OF(slot, const struct docker_slot, base)->image_id;
}

static const cJSON *fact(const struct docker *d, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(d->info, name);
}

/* SecurityOptions are texts like "name=seccomp,profile=default". */
static bool has_security(const struct docker *d, const char *name)
{
	const cJSON *item;
	size_t len = strlen(name);
	cJSON_ArrayForEach (item, fact(d, "SecurityOptions"))
		if (cJSON_IsString(item) && strncmp(item->valuestring, "name=", 5) == 0 &&
			strncmp(item->valuestring + 5, name, len) == 0)
			return true;
	return false;
}

/* A report that lacks a line for want of memory is still a report. */
static void warn(cJSON *warnings, const char *text)
{
	cJSON *item = cJSON_CreateString(text);
	if (!cJSON_AddItemToArray(warnings, item))
		cJSON_Delete(item);
}

static void warn_of_info(const struct docker *d, cJSON *warnings)
{
	static const struct {
		const char *fact, *text;
	} limits[] = {
		{"MemoryLimit", "the engine cannot limit memory"},
		{"SwapLimit",
			"the engine cannot limit swap: a kernel may use more than its memory"},
		{"PidsLimit", "the engine cannot limit processes"},
		{"CpuCfsQuota", "the engine cannot limit processors"},
		{"LiveRestoreEnabled",
			"live-restore is off: kernels end when the container engine restarts"},
	};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (cJSON_IsFalse(fact(d, limits[i].fact)))
			warn(warnings, limits[i].text);
	if (!has_security(d, "seccomp"))
		warn(warnings, "the engine has no seccomp: system calls are not filtered");
	if (has_security(d, "rootless"))
		warn(warnings,
			"the engine is rootless: limits hold only where cgroups are delegated");
}

static cJSON *make_warnings(const struct docker *d)
{
	cJSON *warnings = cJSON_CreateArray();
	const struct err *away = docker_api_away(d->api);
	char text[512];
	if (away)
		warn(warnings, away->text);
	if (d->info)
		warn_of_info(d, warnings);
	if (d->image == IMAGE_MISSING) {
		(void)snprintf(text, sizeof(text), /* cut is good enough for people */
			"image %s is not there: make it with `make image`", d->env.config->image);
		warn(warnings, text);
	}
	return warnings;
}

struct cJSON *docker_report(const struct engine *e)
{
	const struct docker *d = CONTAINER_OF(e, struct docker, engine);
	const struct docker_version *v = docker_api_version(d->api);
	const cJSON *cgroup = fact(d, "CgroupVersion");
	cJSON *o = cJSON_CreateObject(), *warnings = make_warnings(d);
	/* As in warn. */
	(void)cJSON_AddStringToObject(o, "version", v->engine);
	(void)cJSON_AddStringToObject(o, "api", v->api);
	(void)cJSON_AddStringToObject(
		o, "cgroup", cJSON_IsString(cgroup) ? cgroup->valuestring : "");
	(void)cJSON_AddBoolToObject(o, "live_restore", cJSON_IsTrue(fact(d, "LiveRestoreEnabled")));
	(void)cJSON_AddBoolToObject(o, "seccomp", has_security(d, "seccomp"));
	(void)cJSON_AddBoolToObject(o, "isolates", true);
	(void)cJSON_AddBoolToObject(o, "answers", v->api[0] && !docker_api_away(d->api));
	(void)cJSON_AddStringToObject(o, "image", d->env.config->image);
	if (d->image == IMAGE_UNKNOWN)
		(void)cJSON_AddNullToObject(o, "image_there");
	else
		(void)cJSON_AddBoolToObject(o, "image_there", d->image == IMAGE_THERE);
	if (!cJSON_AddItemToObject(o, "warnings", warnings))
		cJSON_Delete(warnings);
	return o;
}

/* ---- kernelspecs ---- */

/* Logos lie beside the image's recipe in a build tree, in share/ once installed. */
static bool find_resources(char ret_path[PATH_MAX])
{
	static const char *const places[] = {
		"../images/kernel/kernelspec", "../share/coppice/kernelspec"};
	char self[PATH_MAX / 2], path[PATH_MAX];
	struct stat st;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return false;
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", self, places[i]); /* sized for it */
		if (realpath(path, ret_path) && stat(ret_path, &st) == 0 && S_ISDIR(st.st_mode))
			return true;
	}
	return false;
}

static const char * or (const char *text, const char *otherwise)
{
	return text && text[0] ? text : otherwise;
}

static int add_spec(
	const struct config_spec *c, const char *resources, struct list *specs, struct err *err)
{
	bool foreign = c->argv && c->argv[0];
	struct kernelspec *s = NULL;
	cJSON *tree = cJSON_CreateObject();
	cJSON *argv = cJSON_Parse(foreign ? c->argv : OWN_ARGV);
	cJSON *metadata = cJSON_CreateObject();
	/* spec_new says what is missing in the tree. */
	if (!cJSON_AddItemToObject(tree, "argv", argv))
		cJSON_Delete(argv);
	(void)cJSON_AddStringToObject(tree, "display_name", or (c->display_name, c->name));
	(void)cJSON_AddStringToObject(tree, "language", or (c->language, foreign ? "" : "python"));
	(void)cJSON_AddStringToObject(
		tree, "interrupt_mode", or (c->interrupt_mode, foreign ? "signal" : "message"));
	if (!foreign)
		(void)cJSON_AddTrueToObject(metadata, "debugger");
	if (!cJSON_AddItemToObject(tree, "metadata", metadata))
		cJSON_Delete(metadata);
	int rc = spec_new(c->name, "docker", tree, foreign ? NULL : resources, &s, err);
	if (rc == 0)
		list_append(specs, &s->link);
	return rc;
}

static bool is_configured(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->n_specs; i++)
		if (strcmp(config->specs[i].name, name) == 0)
			return true;
	return false;
}

int docker_specs(struct engine *e, struct list *specs, struct err *err)
{
	struct docker *d = CONTAINER_OF(e, struct docker, engine);
	const struct config *config = d->env.config;
	char path[PATH_MAX];
	const char *resources = find_resources(path) ? path : NULL;
	struct config_spec own = {
		.name = (char[]){"python3"}, .display_name = (char[]){"Python 3 (ipykernel)"}};
	int rc = is_configured(config, own.name) ? 0 : add_spec(&own, resources, specs, err);
	for (size_t i = 0; rc == 0 && i < config->n_specs; i++)
		rc = add_spec(&config->specs[i], resources, specs, err);
	return rc;
}
