#include "kernel-bridge/docker_create.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

static struct config some_config(const char *mount)
{
	struct config c = {0};
	c.memory = 1 << 30;
	c.work_size = 512 << 20;
	c.branches_size = 64 << 20;
	c.work_inodes = 1000;
	c.tmp_size = 128 << 20;
	c.pids = 152;
	c.cpus = 0.5;
	c.mount = (char *)(uintptr_t)mount;
	return c;
}

static cJSON *make_body(const struct config *config, const cJSON *argv, const cJSON *env)
{
	const struct docker_create create = {
		.config = config,
		.image = "coppice-kernel",
		.run = "/run/coppice",
		.slot = "0123abcd",
		.sockets = "/run/coppice/0123abcd/s",
		.argv = argv,
		.env = env,
	};
	cJSON *body = NULL;
	assert_int_equal(docker_create_body(&create, &body, NULL), 0);
	return body;
}

static const cJSON *at(const cJSON *body, const char *name)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(body, name);
	if (!v)
		v = cJSON_GetObjectItemCaseSensitive(
			cJSON_GetObjectItemCaseSensitive(body, "HostConfig"), name);
	assert_non_null(v);
	return v;
}

static void assert_text(const cJSON *body, const char *name, const char *text)
{
	assert_string_equal(at(body, name)->valuestring, text);
}

static void assert_json(const cJSON *v, const char *text)
{
	char *is = cJSON_PrintUnformatted(v);
	assert_string_equal(is, text);
	free(is);
}

TEST(docker_create, builds_the_whole_wall)
{
	const struct config config = some_config("");
	cJSON *body = make_body(&config, NULL, NULL);

	assert_text(body, "User", "1000:1000");
	assert_text(body, "NetworkMode", "none");
	assert_true(cJSON_IsTrue(at(body, "NetworkDisabled")));
	assert_true(cJSON_IsTrue(at(body, "ReadonlyRootfs")));
	assert_true(cJSON_IsFalse(at(body, "Privileged")));
	assert_json(at(body, "CapDrop"), "[\"ALL\"]");
	cJSON_Delete(body);
}

TEST(docker_create, hands_the_seccomp_profile_over_inline)
{
	const struct config config = some_config("");
	cJSON *body = make_body(&config, NULL, NULL);
	const cJSON *security = at(body, "SecurityOpt");
	const char *profile = cJSON_GetArrayItem(security, 1)->valuestring;

	assert_string_equal(cJSON_GetArrayItem(security, 0)->valuestring, "no-new-privileges");
	assert_int_equal(strncmp(profile, "seccomp=", 8), 0);
	cJSON *parsed = cJSON_Parse(profile + 8);
	assert_non_null(cJSON_GetObjectItemCaseSensitive(parsed, "defaultAction"));
	cJSON_Delete(parsed);
	cJSON_Delete(body);
}

TEST(docker_create, sets_the_limits)
{
	const struct config config = some_config("");
	cJSON *body = make_body(&config, NULL, NULL);
	double memory = (double)((1 << 30) + (512 << 20) + (64 << 20));

	assert_true(at(body, "Memory")->valuedouble >= memory);
	assert_true(at(body, "Memory")->valuedouble <= memory);
	assert_true(at(body, "MemorySwap")->valuedouble <= memory); /* no swap */
	assert_int_equal(at(body, "PidsLimit")->valueint, 152);
	assert_null(cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(body, "HostConfig"), "NanoCpus"));
	assert_non_null(
		strstr(cJSON_GetObjectItemCaseSensitive(at(body, "Tmpfs"), "/work")->valuestring,
			"size=536870912,nr_inodes=1000,uid=1000,gid=1000,mode=0700"));
	assert_non_null(strstr(
		cJSON_GetObjectItemCaseSensitive(at(body, "Tmpfs"), "/branches")->valuestring,
		"size=67108864,nr_inodes=1000,uid=1000,gid=1000,mode=0700"));
	assert_non_null(
		strstr(cJSON_GetObjectItemCaseSensitive(at(body, "Tmpfs"), "/dev/shm")->valuestring,
			"nr_inodes=1000,mode=1777"));
	assert_json(at(body, "LogConfig"),
		"{\"Type\":\"json-file\",\"Config\":{\"max-size\":\"1m\",\"max-file\":\"1\"}}");
	cJSON_Delete(body);

	body = docker_update_body(&config);
	assert_json(body, "{\"NanoCpus\":500000000}");
	cJSON_Delete(body);
}

TEST(docker_create, labels_are_run_and_slot)
{
	const struct config config = some_config("");
	cJSON *body = make_body(&config, NULL, NULL);

	assert_json(at(body, "Labels"),
		"{\"coppice.run\":\"/run/coppice\",\"coppice.slot\":\"0123abcd\"}");
	cJSON_Delete(body);
}

TEST(docker_create, mounts_are_read_only)
{
	const struct config config = some_config("tables=/srv/tables:ro,more=/srv/a=b:ro");
	cJSON *body = make_body(&config, NULL, NULL);
	const cJSON *mounts = at(body, "Mounts"), *m;

	assert_int_equal(cJSON_GetArraySize(mounts), 3);
	cJSON_ArrayForEach (m, mounts)
		assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(m, "ReadOnly")));
	assert_json(cJSON_GetArrayItem(mounts, 1),
		"{\"Type\":\"bind\",\"Source\":\"/srv/tables\",\"Target\":\"/data/tables\","
		"\"ReadOnly\":true,\"BindOptions\":{\"Propagation\":\"rprivate\","
		"\"NonRecursive\":true}}");
	assert_text(cJSON_GetArrayItem(mounts, 2), "Source", "/srv/a=b");
	cJSON_Delete(body);
}

TEST(docker_create, refuses_mounts_that_it_does_not_understand)
{
	static const char *const bad[] = {"x", "x=/a", "x=/a:rw", "x=a:ro", "=/a:ro", "..=/a:ro",
		"a/b=/a:ro", "x=:ro", "x=/a:ro,x=/b:ro", ":ro"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct config config = some_config(bad[i]);
		if (docker_mounts_check(&config, NULL) != E_INVALID)
			fail_msg("taken: %s", bad[i]);
	}
	const struct config good = some_config("x=/proc:ro,y=/dev/null:ro");
	assert_int_equal(docker_mounts_check(&good, NULL), 0);
}

/* Else each kernel would die at its start, and only the log would know why. */
TEST(docker_create, refuses_mounts_that_are_not_there)
{
	static const char *const bad[] = {"/proc/none", "/dev/null/below"};
	char item[64];
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)snprintf(item, sizeof(item), "x=/proc:ro,books=%s:ro", bad[i]);
		const struct config config = some_config(item);
		assert_int_equal(docker_mounts_check(&config, &err), E_INVALID);
		assert_non_null(strstr(err.text, bad[i]));
		assert_non_null(strstr(err.text, "--mount books="));
	}
}

TEST(docker_create, foreign_kernels_get_a_command_and_a_small_tmpfs)
{
	const struct config config = some_config("");
	cJSON *argv = cJSON_Parse("[\"ark\",\"--file\",\"/run/coppice/c.json\"]");
	cJSON *env = cJSON_Parse("{\"HOME\":\"/home/coppice\"}");
	cJSON *body = make_body(&config, argv, env);

	assert_json(at(body, "Cmd"), "[\"ark\",\"--file\",\"/run/coppice/c.json\"]");
	assert_json(at(body, "Env"), "[\"HOME=/home/coppice\"]");
	const cJSON *volume = cJSON_GetArrayItem(at(body, "Mounts"), 1);
	assert_text(volume, "Target", "/run/kernel");
	assert_text(volume, "Type", "volume");
	assert_null(cJSON_GetObjectItemCaseSensitive(at(body, "Tmpfs"), "/branches"));
	assert_true(at(body, "Memory")->valuedouble <= (double)((1 << 30) + (512 << 20)));
	cJSON_Delete(body);
	cJSON_Delete(argv);
	cJSON_Delete(env);
}

RUN(TEST_ROW(docker_create, builds_the_whole_wall),
	TEST_ROW(docker_create, hands_the_seccomp_profile_over_inline),
	TEST_ROW(docker_create, sets_the_limits), TEST_ROW(docker_create, labels_are_run_and_slot),
	TEST_ROW(docker_create, mounts_are_read_only),
	TEST_ROW(docker_create, refuses_mounts_that_it_does_not_understand),
	TEST_ROW(docker_create, refuses_mounts_that_are_not_there),
	TEST_ROW(docker_create, foreign_kernels_get_a_command_and_a_small_tmpfs))
