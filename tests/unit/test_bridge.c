/* Opening the bridge: which engines and kernelspecs there are, and which of them is meant. */
#include <cjson/cJSON.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/buf.h"
#include "kernel-bridge/bridge_internal.h"
#include "tests/lib/test.h"

struct fixture {
	char root[64], run_dir[128], specs[128];
	uv_loop_t loop;
	struct config config;
	struct log_sink sink;
	struct log log;
	struct buf logged;
	struct bridge_env env;
	struct bridge *bridge;
	struct err err;
};

static void on_line(void *data, const char *line, size_t len)
{
	(void)buf_add(data, line, len); /* a lost line fails the test that looks for it */
}

/* names: kernelspecs that lie on the search path; ends with NULL. */
static void setup(struct fixture *fx, const char *const *names)
{
	char path[512];

	*fx = (struct fixture){.root = "/tmp/test-bridge-XXXXXX"};
	assert_non_null(mkdtemp(fx->root));
	(void)snprintf(fx->run_dir, sizeof(fx->run_dir), "%s/a/b/run", fx->root);
	(void)snprintf(fx->specs, sizeof(fx->specs), "%s/jupyter", fx->root);
	assert_int_equal(mkdir(fx->specs, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/kernels", fx->specs);
	assert_int_equal(mkdir(path, 0700), 0);
	for (; *names; names++) {
		FILE *f;

		(void)snprintf(path, sizeof(path), "%s/kernels/%s", fx->specs, *names);
		assert_int_equal(mkdir(path, 0700), 0);
		(void)snprintf(path, sizeof(path), "%s/kernels/%s/kernel.json", fx->specs, *names);
		f = fopen(path, "we");
		assert_non_null(f);
		assert_true(fputs("{\"argv\":[\"x\"]}", f) >= 0);
		assert_int_equal(fclose(f), 0);
	}
	assert_int_equal(setenv("JUPYTER_PATH", fx->specs, 1), 0);
	assert_int_equal(setenv("JUPYTER_DATA_DIR", "/nowhere", 1), 0);
	assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
	buf_init(&fx->logged, 65536);
	fx->sink = (struct log_sink){.level = LOG_INFO, .write = on_line, .data = &fx->logged};
	log_init(&fx->log, &fx->sink);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	fx->config = (struct config){.engine = "process",
		.run_dir = fx->run_dir,
		.data_dir = fx->root,
		.default_kernel = "",
		.max_kernels = 4};
	fx->env = (struct bridge_env){.loop = &fx->loop,
		.clock = clock_new(&fx->loop),
		.config = &fx->config,
		.log = &fx->log};
}

static int when_opened(struct fixture *fx)
{
	return bridge_open(&fx->env, &fx->bridge, &fx->err);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
	(void)st;
	(void)flag;
	(void)where;
	return remove(path);
}

static void on_done(void *data)
{
	*(bool *)data = true;
}

static void teardown(struct fixture *fx)
{
	bool closed = false;

	if (fx->bridge) {
		bridge_close(fx->bridge, on_done, &closed);
		assert_false(closed);
	}
	/* The loop ends by itself once all is closed; only the clock's timer stays, unarmed. */
	(void)uv_run(&fx->loop, UV_RUN_DEFAULT);
	assert_true(closed == (fx->bridge != NULL));
	clock_close(fx->env.clock, NULL, NULL);
	assert_int_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	assert_int_equal(nftw(fx->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	buf_done(&fx->logged);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(bridge, run_folder_is_made_for_us_alone)
{
	struct fixture fx;
	struct stat st;

	setup(&fx, NAMES("python3"));
	assert_int_equal(when_opened(&fx), 0);
	assert_int_equal(stat(fx.run_dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	teardown(&fx);
}

TEST(bridge, an_unknown_engine_is_named_in_the_error)
{
	struct fixture fx;

	setup(&fx, NAMES("python3"));
	fx.config.engine = "process,vat";
	assert_int_equal(when_opened(&fx), E_INVALID);
	assert_non_null(strstr(fx.err.text, "'vat'"));
	teardown(&fx);
}

TEST(bridge, no_engine_at_all_is_an_error)
{
	struct fixture fx;

	setup(&fx, NAMES("python3"));
	fx.config.engine = "";
	assert_int_equal(when_opened(&fx), E_INVALID);
	teardown(&fx);
}

TEST(bridge, an_engine_named_twice_is_opened_once)
{
	struct fixture fx;

	setup(&fx, NAMES("python3"));
	fx.config.engine = "process,process";
	assert_int_equal(when_opened(&fx), 0);
	assert_int_equal(fx.bridge->n_engines, 1);
	teardown(&fx);
}

TEST(bridge, a_run_folder_too_long_for_sockets_is_refused)
{
	struct fixture fx;
	char path[256];

	setup(&fx, NAMES("python3"));
	(void)snprintf(path, sizeof(path), "%s/%090d", fx.root, 1);
	fx.config.run_dir = path;
	assert_int_equal(when_opened(&fx), E_INVALID);
	assert_non_null(strstr(fx.err.text, "too long"));
	teardown(&fx);
}

TEST(bridge, python_means_python3_and_nothing_means_the_default)
{
	struct fixture fx;

	setup(&fx, NAMES("julia", "python3"));
	assert_int_equal(when_opened(&fx), 0);
	assert_string_equal(bridge_spec(fx.bridge, "python")->name, "python3");
	assert_string_equal(bridge_spec(fx.bridge, "JULIA")->name, "julia");
	assert_string_equal(bridge_spec(fx.bridge, NULL)->name, "python3");
	assert_string_equal(bridge_spec(fx.bridge, "")->name, "python3");
	assert_null(bridge_spec(fx.bridge, "nosuch"));
	teardown(&fx);
}

TEST(bridge, a_kernelspec_that_is_called_python_is_itself)
{
	struct fixture fx;

	setup(&fx, NAMES("python", "python3"));
	assert_int_equal(when_opened(&fx), 0);
	assert_string_equal(bridge_spec(fx.bridge, "python")->name, "python");
	teardown(&fx);
}

TEST(bridge, configured_default_is_used)
{
	struct fixture fx;

	setup(&fx, NAMES("julia", "python3"));
	fx.config.default_kernel = "Julia";
	assert_int_equal(when_opened(&fx), 0);
	assert_string_equal(bridge_default_spec(fx.bridge), "julia");
	teardown(&fx);
}

TEST(bridge, an_unknown_default_is_told_and_replaced)
{
	struct fixture fx;

	setup(&fx, NAMES("julia", "python3"));
	fx.config.default_kernel = "nosuch";
	assert_int_equal(when_opened(&fx), 0);
	assert_string_equal(bridge_default_spec(fx.bridge), "python3");
	assert_non_null(strstr((const char *)fx.logged.data, "default_kernel_unknown name=nosuch"));
	teardown(&fx);
}

TEST(bridge, default_names_a_present_spec_without_python)
{
	struct fixture fx;

	setup(&fx, NAMES("julia"));
	assert_int_equal(when_opened(&fx), 0);
	assert_string_equal(bridge_default_spec(fx.bridge), "julia");
	teardown(&fx);
}

TEST(bridge, sweep_answers_once_from_the_loop)
{
	struct fixture fx;
	bool swept = false;

	setup(&fx, NAMES("python3"));
	assert_int_equal(when_opened(&fx), 0);
	bridge_sweep(fx.bridge, on_done, &swept);
	assert_false(swept);
	(void)uv_run(&fx.loop, UV_RUN_DEFAULT); /* ends when nothing is armed any more */
	assert_true(swept);
	teardown(&fx);
}

TEST(bridge, report_has_a_member_for_each_engine)
{
	struct fixture fx;
	cJSON *report;

	setup(&fx, NAMES("python3"));
	assert_int_equal(when_opened(&fx), 0);
	report = bridge_report(fx.bridge);
	assert_true(cJSON_IsFalse(
		cJSON_GetObjectItem(cJSON_GetObjectItem(report, "process"), "isolates")));
	cJSON_Delete(report);
	assert_non_null(bridge_engine(fx.bridge, "process"));
	assert_null(bridge_engine(fx.bridge, "docker"));
	teardown(&fx);
}

RUN(TEST_ROW(bridge, run_folder_is_made_for_us_alone),
	TEST_ROW(bridge, an_unknown_engine_is_named_in_the_error),
	TEST_ROW(bridge, no_engine_at_all_is_an_error),
	TEST_ROW(bridge, an_engine_named_twice_is_opened_once),
	TEST_ROW(bridge, a_run_folder_too_long_for_sockets_is_refused),
	TEST_ROW(bridge, python_means_python3_and_nothing_means_the_default),
	TEST_ROW(bridge, a_kernelspec_that_is_called_python_is_itself),
	TEST_ROW(bridge, configured_default_is_used),
	TEST_ROW(bridge, an_unknown_default_is_told_and_replaced),
	TEST_ROW(bridge, default_names_a_present_spec_without_python),
	TEST_ROW(bridge, sweep_answers_once_from_the_loop),
	TEST_ROW(bridge, report_has_a_member_for_each_engine))
