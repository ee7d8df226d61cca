/* Kernelspecs: what is found, in which order, and that malformed ones cost nothing but themselves.
 */
#include <cjson/cJSON.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/buf.h"
#include "kernel-bridge/spec.h"
#include "tests/lib/test.h"

#define GOOD                                                                                       \
	"{\"argv\":[\"prog\",\"{connection_file}\"],\"display_name\":\"Good\",\"language\":\"c\"}"

/* A search path of two folders, and the log of what was skipped. */
struct fixture {
	char root[64];
	struct spec_dirs dirs;
	struct list specs;
	struct log_sink sink;
	struct log log;
	struct buf logged;
};

static void on_line(void *data, const char *line, size_t len)
{
	(void)buf_add(data, line, len); /* a lost line fails the test that looks for it */
}

static void setup(struct fixture *fx)
{
	*fx = (struct fixture){.root = "/tmp/test-spec-XXXXXX"};
	assert_non_null(mkdtemp(fx->root));
	list_init(&fx->specs);
	buf_init(&fx->logged, 65536);
	fx->sink = (struct log_sink){.level = LOG_INFO, .write = on_line, .data = &fx->logged};
	log_init(&fx->log, &fx->sink);
	for (const char *name = "ab"; *name; name++)
		assert_true(asprintf(&fx->dirs.at[fx->dirs.n++], "%s/%c", fx->root, *name) > 0);
}

static void make_dirs(const char *path)
{
	char part[512];

	for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		assert_true(copy_text(part, sizeof(part), path, (size_t)(at - path)));
		(void)mkdir(part, 0700); /* most exist */
	}
}

static void put(const char *path, const char *text, mode_t mode)
{
	FILE *f;

	make_dirs(path);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void given(struct fixture *fx, const char *below, const char *text)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", fx->root, below);
	put(path, text, 0600);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
	(void)st;
	(void)flag;
	(void)where;
	return remove(path);
}

static void teardown(struct fixture *fx)
{
	assert_int_equal(nftw(fx->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	spec_dirs_done(&fx->dirs);
	spec_list_free(&fx->specs);
	buf_done(&fx->logged);
}

static void when_read(struct fixture *fx, const char *prefix)
{
	spec_read(&fx->dirs, prefix, "process", &fx->specs, &fx->log);
}

static int count(const struct list *specs)
{
	int n = 0;

	LIST_EACH (at, specs)
		n++;
	return n;
}

static const char *text_of(const struct kernelspec *s, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(s->spec, key));
}

static bool logged(const struct fixture *fx, const char *word)
{
	return fx->logged.data && strstr((const char *)fx->logged.data, word);
}

TEST(spec, first_of_a_name_wins_and_names_are_lower_case)
{
	struct fixture fx;

	setup(&fx);
	given(&fx, "a/kernels/Mine/kernel.json", GOOD);
	given(&fx, "b/kernels/mine/kernel.json",
		"{\"argv\":[\"other\"],\"display_name\":\"Other\",\"language\":\"c\"}");
	given(&fx, "b/kernels/second/kernel.json", GOOD);
	when_read(&fx, "");
	assert_int_equal(count(&fx.specs), 2);
	assert_string_equal(text_of(spec_find(&fx.specs, "MINE"), "display_name"), "Good");
	assert_string_equal(spec_find(&fx.specs, "Mine")->name, "mine");
	assert_non_null(strstr(spec_find(&fx.specs, "mine")->resource_dir, "/a/kernels/Mine"));
	teardown(&fx);
}

TEST(spec, prefix_goes_before_the_name)
{
	struct fixture fx;

	setup(&fx);
	given(&fx, "a/kernels/r/kernel.json", GOOD);
	when_read(&fx, "process-");
	assert_non_null(spec_find(&fx.specs, "process-r"));
	assert_null(spec_find(&fx.specs, "r"));
	teardown(&fx);
}

TEST(spec, malformed_ones_are_logged_and_left_out)
{
	static const struct {
		const char *folder, *text;
	} bad[] = {
		{"notjson", "{"},
		{"empty", ""},
		{"list", "[]"},
		{"noargv", "{}"},
		{"emptyargv", "{\"argv\":[]}"},
		{"numbers", "{\"argv\":[\"a\",1]}"},
		{"mode", "{\"argv\":[\"a\"],\"interrupt_mode\":\"shout\"}"},
		{"modekind", "{\"argv\":[\"a\"],\"interrupt_mode\":1}"},
		{"utf8", "{\"argv\":[\"\xff\"]}"},
		{"bad name", GOOD},
	};
	struct fixture fx;

	setup(&fx);
	given(&fx, "b/kernels/good/kernel.json", GOOD);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char path[256];

		(void)snprintf(path, sizeof(path), "a/kernels/%s/kernel.json", bad[i].folder);
		given(&fx, path, bad[i].text);
	}
	when_read(&fx, "");
	assert_int_equal(count(&fx.specs), 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_true(logged(&fx, bad[i].folder));
	teardown(&fx);
}

TEST(spec, a_malformed_one_does_not_hide_a_later_good_one)
{
	struct fixture fx;

	setup(&fx);
	given(&fx, "a/kernels/mine/kernel.json", "nonsense");
	given(&fx, "b/kernels/mine/kernel.json", GOOD);
	when_read(&fx, "");
	assert_string_equal(text_of(spec_find(&fx.specs, "mine"), "display_name"), "Good");
	teardown(&fx);
}

TEST(spec, a_folder_without_kernel_json_is_no_kernelspec)
{
	struct fixture fx;

	setup(&fx);
	given(&fx, "a/kernels/logos/logo-64x64.png", "picture");
	when_read(&fx, "");
	assert_int_equal(count(&fx.specs), 0);
	assert_false(logged(&fx, "logos"));
	teardown(&fx);
}

TEST(spec, a_fifo_does_not_hold_the_start)
{
	struct fixture fx;
	char path[512];

	setup(&fx);
	(void)snprintf(path, sizeof(path), "%s/a/kernels/pipe/kernel.json", fx.root);
	make_dirs(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	when_read(&fx, "");
	assert_int_equal(count(&fx.specs), 0);
	assert_true(logged(&fx, "pipe"));
	teardown(&fx);
}

TEST(spec, absent_members_get_what_clients_check_for)
{
	struct kernelspec *s = NULL;
	struct err err = {0};
	cJSON *tree = cJSON_Parse("{\"argv\":[\"a\"],\"env\":{\"A\":\"1\",\"B\":2,\"C=D\":\"x\"},"
				  "\"display_name\":7,\"metadata\":[],\"secret\":1}");

	assert_int_equal(spec_new("X", "process", tree, NULL, &s, &err), 0);
	assert_string_equal(text_of(s, "display_name"), "x");
	assert_string_equal(text_of(s, "language"), "");
	assert_string_equal(text_of(s, "interrupt_mode"), "signal");
	assert_true(cJSON_IsObject(cJSON_GetObjectItem(s->spec, "metadata")));
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(s->spec, "env")), 1);
	assert_null(cJSON_GetObjectItem(s->spec, "secret"));
	assert_int_equal(s->interrupt_mode, INTERRUPT_SIGNAL);
	assert_int_equal(s->cull_idle_ms, -1);
	assert_null(s->resource_dir);
	spec_free(s);
}

TEST(spec, interrupt_mode_and_culling_are_read)
{
	struct kernelspec *s = NULL;
	struct err err = {0};
	cJSON *tree = cJSON_Parse("{\"argv\":[\"a\"],\"interrupt_mode\":\"message\","
				  "\"metadata\":{\"cull_idle_timeout\":1.5}}");

	assert_int_equal(spec_new("x", "process", tree, "/r", &s, &err), 0);
	assert_int_equal(s->interrupt_mode, INTERRUPT_MESSAGE);
	assert_int_equal(s->cull_idle_ms, 1500);
	assert_string_equal(s->resource_dir, "/r");
	spec_free(s);
}

TEST(spec, python_of_an_environment_is_its_own)
{
	struct fixture fx;
	char python[512], dir[512];
	const cJSON *argv;

	setup(&fx);
	(void)snprintf(python, sizeof(python), "%s/venv/bin/python", fx.root);
	put(python, "#!/bin/true\n", 0700);
	given(&fx, "venv/share/jupyter/kernels/python3/kernel.json",
		"{\"argv\":[\"python\",\"-m\",\"ipykernel_launcher\"]}");
	given(&fx, "venv/share/jupyter/kernels/other/kernel.json", "{\"argv\":[\"pythonista\"]}");
	(void)snprintf(dir, sizeof(dir), "%s/venv/share/jupyter", fx.root);
	fx.dirs.at[fx.dirs.n++] = xstrdup(dir);
	when_read(&fx, "");
	argv = cJSON_GetObjectItem(spec_find(&fx.specs, "python3")->spec, "argv");
	assert_string_equal(cJSON_GetArrayItem(argv, 0)->valuestring, python);
	argv = cJSON_GetObjectItem(spec_find(&fx.specs, "other")->spec, "argv");
	assert_string_equal(cJSON_GetArrayItem(argv, 0)->valuestring, "pythonista");
	teardown(&fx);
}

static size_t place_of(const struct spec_dirs *d, const char *path)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->at[i], path) == 0)
			return i;
	fail_msg("%s is not on the search path", path);
	return 0;
}

TEST(spec, search_path_is_in_jupyters_order)
{
	struct fixture fx;
	struct spec_dirs d;
	char bin[512], share[512], path[1024];

	setup(&fx);
	(void)snprintf(bin, sizeof(bin), "%s/env/bin/python3", fx.root);
	(void)snprintf(share, sizeof(share), "%s/env/share/jupyter", fx.root);
	put(bin, "#!/bin/true\n", 0700);
	*strrchr(bin, '/') = '\0';
	(void)snprintf(path, sizeof(path), "/nowhere:%s", bin);
	assert_int_equal(setenv("PATH", path, 1), 0);
	assert_int_equal(setenv("JUPYTER_PATH", "/one:/two::relative:/one", 1), 0);
	assert_int_equal(setenv("VIRTUAL_ENV", "/venv", 1), 0);
	assert_int_equal(setenv("HOME", "/home/u", 1), 0);
	assert_int_equal(unsetenv("JUPYTER_DATA_DIR"), 0);
	assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
	spec_dirs_init(&d);
	assert_int_equal(place_of(&d, "/one"), 0);
	assert_int_equal(place_of(&d, "/two"), 1);
	assert_int_equal(place_of(&d, "/venv/share/jupyter"), 2);
	assert_int_equal(place_of(&d, "/home/u/.local/share/jupyter"), 3);
	assert_int_equal(place_of(&d, share), 4);
	assert_int_equal(place_of(&d, "/usr/local/share/jupyter"), 5);
	assert_int_equal(place_of(&d, "/usr/share/jupyter"), 6);
	assert_int_equal(d.n, 7);
	spec_dirs_done(&d);
	teardown(&fx);
}

TEST(spec, data_dir_replaces_the_users_folder)
{
	struct spec_dirs d;

	assert_int_equal(setenv("HOME", "/home/u", 1), 0);
	assert_int_equal(setenv("JUPYTER_DATA_DIR", "/data/jupyter", 1), 0);
	spec_dirs_init(&d);
	(void)place_of(&d, "/data/jupyter");
	for (size_t i = 0; i < d.n; i++)
		assert_string_not_equal(d.at[i], "/home/u/.local/share/jupyter");
	spec_dirs_done(&d);
	assert_int_equal(unsetenv("JUPYTER_DATA_DIR"), 0);
}

RUN(TEST_ROW(spec, first_of_a_name_wins_and_names_are_lower_case),
	TEST_ROW(spec, prefix_goes_before_the_name),
	TEST_ROW(spec, malformed_ones_are_logged_and_left_out),
	TEST_ROW(spec, a_malformed_one_does_not_hide_a_later_good_one),
	TEST_ROW(spec, a_folder_without_kernel_json_is_no_kernelspec),
	TEST_ROW(spec, a_fifo_does_not_hold_the_start),
	TEST_ROW(spec, absent_members_get_what_clients_check_for),
	TEST_ROW(spec, interrupt_mode_and_culling_are_read),
	TEST_ROW(spec, python_of_an_environment_is_its_own),
	TEST_ROW(spec, search_path_is_in_jupyters_order),
	TEST_ROW(spec, data_dir_replaces_the_users_folder))
