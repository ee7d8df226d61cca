/* Asks the engine directly, so that doctor helps where the gateway does not start. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/cli.h"
#include "gateway/cli_finding.h"

enum { ASK_VERSION, ASK_INFO, ASK_IMAGE, ASKS };

static const char *text_of(const cJSON *tree, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, name));
	return text ? text : "unknown";
}

static bool is_true(const cJSON *tree, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(tree, name));
}

static bool has_seccomp(const cJSON *info)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(info, "SecurityOptions")) {
		if (cJSON_IsString(item) && strncmp(item->valuestring, "name=seccomp", 12) == 0)
			return true;
	}
	return false;
}

static void tell_limits(struct findings *f, const cJSON *info)
{
	static const struct {
		const char *member, *what;
	} limits[] = {
		{"MemoryLimit", "memory"}, {"PidsLimit", "processes"}, {"CpuCfsQuota", "CPU"}};
	for (unsigned i = 0; i < ARRAY_LEN(limits); i++)
		if (!is_true(info, limits[i].member))
			finding(f, GRADE_FAIL, "limits",
				"enable that cgroup controller on this machine",
				"the engine cannot limit %s", limits[i].what);
	if (!has_seccomp(info))
		finding(f, GRADE_FAIL, "seccomp", "use an engine that was built with seccomp",
			"the engine does not filter system calls");
	finding(f, GRADE_OK, "cgroup", "", "version %s", text_of(info, "CgroupVersion"));
	if (is_true(info, "LiveRestoreEnabled"))
		finding(f, GRADE_OK, "engine", "",
			"live-restore is on: kernels outlive its restart");
	else
		finding(f, GRADE_WARN, "engine",
			"set \"live-restore\": true in /etc/docker/daemon.json and reload the "
			"engine",
			"live-restore is off: a restart of the engine ends all kernels");
}

static void tell_image(struct findings *f, const char *image, const struct cli_question *q)
{
	if (q->status == 200)
		finding(f, GRADE_OK, "image", "", "%s is there (%.19s)", image,
			text_of(q->tree, "Id"));
	else if (q->status == 404)
		finding(f, GRADE_FAIL, "image", "make image",
			"%s is not in the engine; no kernel of it can start", image);
	else
		finding(f, GRADE_FAIL, "image", "", "%s: the engine answered with HTTP %d", image,
			q->status);
}

static void tell_all(struct findings *f, const struct config *config, const struct cli_question *q)
{
	if (q[ASK_VERSION].status == 0) {
		finding(f, GRADE_FAIL, "engine",
			"start it (systemctl start docker), or join the group of its socket",
			"%s does not answer: %s", config->engine_socket, q[ASK_VERSION].err.text);
		return;
	}
	if (q[ASK_VERSION].status != 200) {
		finding(f, GRADE_FAIL, "engine",
			"is --engine-socket the socket of a container engine?",
			"%s answered with HTTP %d", config->engine_socket, q[ASK_VERSION].status);
		return;
	}
	finding(f, GRADE_OK, "engine", "", "docker %s, API %s",
		text_of(q[ASK_VERSION].tree, "Version"),
		text_of(q[ASK_VERSION].tree, "ApiVersion"));
	if (q[ASK_INFO].status == 200)
		tell_limits(f, q[ASK_INFO].tree);
	tell_image(f, config->image, &q[ASK_IMAGE]);
}

/* An image's name goes into a URL. */
static bool is_image_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
	return *name && strspn(name, letters) == strlen(name);
}

void doctor_engine(struct findings *f, const struct config *config)
{
	char image_url[512];
	struct err err;
	if (!is_image_name(config->image)) {
		finding(f, GRADE_FAIL, "image", "correct --image", "'%s' is not an image's name",
			config->image);
		return;
	}
	(void)snprintf(image_url, sizeof image_url, "http://engine/images/%s/json",
		config->image); /* cut, it is no image's name either */
	struct cli_question q[ASKS] = {
		[ASK_VERSION] = {.unix_socket = config->engine_socket,
			.url = "http://engine/version"},
		[ASK_INFO] = {.unix_socket = config->engine_socket, .url = "http://engine/info"},
		[ASK_IMAGE] = {.unix_socket = config->engine_socket, .url = image_url},
	};
	if (cli_ask(q, ASKS, &err) == 0)
		tell_all(f, config, q);
	else
		finding(f, GRADE_FAIL, "engine", "", "%s", err.text);
	cli_questions_done(q, ASKS);
}
