#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/config.h"

/* A place of its own: what the machine's defaults would be is not asked here. */
#define PLACES "--data-dir", "/d", "--run-dir", "/r"

struct result {
	struct config config;
	int status;
	struct err err;
};

/* line and environment end with NULL; argv[0] is put before. */
static struct result read_with(const char *const *line, const char *const *environment)
{
	char *argv[64] = {(char *)"serve"};
	int argc = 1;
	for (; line && *line; line++)
		argv[argc++] = (char *)*line;
	static char *none[] = {NULL};
	struct result r = {.status = -99};
	r.status = config_read(
		&r.config, argc, argv, environment ? (char **)environment : none, &r.err);
	return r;
}

#define READ(...) read_with((const char *const[]){PLACES, __VA_ARGS__, NULL}, NULL)

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* Reads a configuration file of that text, with one more argument and variable if not NULL. */
static struct result read_file(const char *text, const char *argument, const char *variable)
{
	char path[] = "/tmp/coppice-test-config-XXXXXX";
	write_file(path, text);
	const char *line[] = {PLACES, "--config", path, argument, NULL};
	const char *environment[] = {variable, NULL};
	struct result r = read_with(line, environment);
	unlink(path);
	return r;
}

static void expect_fault(struct result r, const char *words)
{
	assert_int_equal(r.status, E_INVALID);
	if (!strstr(r.err.text, words))
		fail_msg("'%s' does not say '%s'", r.err.text, words);
}

TEST(config, defaults)
{
	struct result r = read_with((const char *const[]){PLACES, NULL}, NULL);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.config.listen, "127.0.0.1:8899");
	assert_int_equal(r.config.memory, INT64_C(1) << 30);
	assert_true(r.config.cpus == 0.5);
	assert_int_equal(r.config.start_timeout, 60000);
	assert_true(r.config.auto_restart);
	assert_false(r.config.cull_busy);
	assert_string_equal(r.config.mount, "");
	assert_string_equal(r.config.token_file, "/d/tokens.ini");
	assert_string_equal(r.config.run_dir, "/r");
	assert_int_equal(r.config.n_specs, 0);
	config_done(&r.config);
}

TEST(config, command_line_forms)
{
	struct result r = READ("--listen=0.0.0.0:1", "--max-kernels", "7", "--cull-busy",
		"--auto-restart=no", "--memory", "64M", "--cpus", "2.25", "--cull-idle-timeout",
		"90m", "--cull-connected=1");
	assert_int_equal(r.status, 0);
	assert_string_equal(r.config.listen, "0.0.0.0:1");
	assert_int_equal(r.config.max_kernels, 7);
	assert_true(r.config.cull_busy);
	assert_true(r.config.cull_connected);
	assert_false(r.config.auto_restart);
	assert_int_equal(r.config.memory, INT64_C(64) << 20);
	assert_true(r.config.cpus == 2.25);
	assert_int_equal(r.config.cull_idle_timeout, 90 * 60000);
	config_done(&r.config);
}

TEST(config, units)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {{"1500ms", 1500}, {"2s", 2000}, {"3m", 180000}, {"1h", 3600000}};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct result r = READ("--start-timeout", rows[i].text);
		assert_int_equal(r.status, 0);
		assert_int_equal(r.config.start_timeout, rows[i].ms);
		config_done(&r.config);
	}
}

TEST(config, bounds_and_forms_are_checked)
{
	static const struct {
		const char *option, *good, *bad[8];
	} rows[] = {
		{"--memory", "1024G",
			{"63M", "1025G", "-1", "1T", "1.5G", "", "9999999999999999999G"}},
		{"--cpus", "0.05", {"0.04", "1025", "nan", "inf", "1e3", "-1", "0x10"}},
		{"--max-kernels", "100000",
			{"0", "100001", "5 ", "+5", "five", "99999999999999999999", "5K"}},
		{"--start-timeout", "1000ms", {"999ms", "61m", "5", "1w", "s", "-1s"}},
		{"--auto-restart=", "yes", {"maybe", "TRUE", "2"}},
		{"--log-level", "debug", {"loud", "", "INFO"}},
		{"--base-url", "/x/", {"x", ""}},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char joined[64];
		bool flag = strchr(rows[i].option, '=') != NULL;
		(void)snprintf(joined, sizeof joined, "%s%s", rows[i].option, rows[i].good);
		struct result r = flag ? READ(joined) : READ(rows[i].option, rows[i].good);
		assert_int_equal(r.status, 0);
		config_done(&r.config);
		for (unsigned k = 0; k < 8 && rows[i].bad[k]; k++) {
			(void)snprintf(
				joined, sizeof joined, "%s%s", rows[i].option, rows[i].bad[k]);
			r = flag ? READ(joined) : READ(rows[i].option, rows[i].bad[k]);
			if (r.status != E_INVALID)
				fail_msg("%s %s was taken", rows[i].option, rows[i].bad[k]);
		}
	}
	struct result r = READ("--memory", "7M");
	expect_fault(r, "memory is '7M'");
	expect_fault(r, "from 64M to 1024G");
	expect_fault(r, "command line");
}

TEST(config, wrong_arguments)
{
	expect_fault(READ("--colour", "red"), "--colour is not an option");
	struct result r = READ("--token=SECRET");
	expect_fault(r, "--token is not an option");
	assert_null(strstr(r.err.text, "SECRET"));
	expect_fault(READ("--listen"), "--listen needs a value");
	expect_fault(READ("--cull-busy", "false"), "unexpected argument 'false'");
	expect_fault(READ("extra"), "unexpected argument 'extra'");
	expect_fault(READ("--tls-cert", "/x"), "tls_key");
	expect_fault(READ("--tls-client-ca", "/x"), "tls_client_ca");
}

TEST(config, command_line_beats_environment_beats_file)
{
	const char *file = "[serve]\nmax_kernels = 11\n";
	struct result r = read_file(file, NULL, NULL);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.config.max_kernels, 11);
	config_done(&r.config);
	r = read_file(file, NULL, "COPPICE_MAX_KERNELS=22");
	assert_int_equal(r.config.max_kernels, 22);
	config_done(&r.config);
	r = read_file(file, "--max-kernels=33", "COPPICE_MAX_KERNELS=22");
	assert_int_equal(r.config.max_kernels, 33);
	config_done(&r.config);
	r = read_file(file, NULL, "COPPICE_MAX_KERNELS=");
	assert_int_equal(r.config.max_kernels, 11);
	config_done(&r.config);
	expect_fault(read_file(file, NULL, "COPPICE_MAX_KERNELS=x"), "environment");
}

TEST(config, lists_join_within_a_source)
{
	const char *file = "[serve]\nmount = a=/a:ro\nmount = b=/b:ro,\n  c=/c:ro\n";
	struct result r = read_file(file, NULL, NULL);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.config.mount, "a=/a:ro,b=/b:ro,,c=/c:ro");
	config_done(&r.config);
	r = read_file(file, "--mount=z=/z:ro", NULL);
	assert_string_equal(r.config.mount, "z=/z:ro");
	config_done(&r.config);
	r = READ("--engine", "docker", "--engine=process");
	assert_string_equal(r.config.engine, "docker,process");
	config_done(&r.config);
	r = READ("--listen", "a:1", "--listen", "b:2");
	assert_string_equal(r.config.listen, "b:2");
	config_done(&r.config);
}

TEST(config, file_names_are_found_by_the_environment)
{
	char path[] = "/tmp/coppice-test-config-XXXXXX";
	char variable[64];
	write_file(path, "[serve]\ncull_busy = true ; a comment\n");
	(void)snprintf(variable, sizeof variable, "COPPICE_CONFIG=%s", path);
	struct result r = read_with(
		(const char *const[]){PLACES, NULL}, (const char *const[]){variable, NULL});
	unlink(path);
	assert_int_equal(r.status, 0);
	assert_true(r.config.cull_busy);
	config_done(&r.config);
}

TEST(config, file_faults_name_their_line)
{
	expect_fault(
		read_file("[serve]\nnope = 1\n", NULL, NULL), "line 2: 'nope' is not an option");
	expect_fault(read_file("[serve]\nconfig = /x\n", NULL, NULL), "line 2");
	expect_fault(read_file("[server]\nlisten = x\n", NULL, NULL), "[server] is not known");
	expect_fault(read_file("listen = x\n", NULL, NULL), "section []");
	expect_fault(read_file("[serve]\n\nwhat is this\n", NULL, NULL), "line 3");
	expect_fault(read_file("[serve]\nmemory = 5\n", NULL, NULL), "configuration file");
	char text[512] = "[serve]\nimage = ";
	memset(text + strlen(text), 'x', 300);
	expect_fault(read_file(text, NULL, NULL), "line 2: the line is too long");
	expect_fault(READ("--config", "/nowhere/at/all"), "/nowhere/at/all");
}

TEST(config, kernelspecs_of_the_file)
{
	struct result r = read_file("[kernelspec r-lang]\nimage = r:4\nargv = [\"R\", \"-f\",\n"
				    "  \"{connection_file}\"]\nlanguage = R\n"
				    "[serve]\nmax_kernels = 5\n"
				    "[kernelspec py]\nimage = py:3\ndisplay_name = My Python\n",
		NULL, NULL);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.config.n_specs, 2);
	const struct config_spec *s = &r.config.specs[0];
	assert_string_equal(s->name, "r-lang");
	assert_string_equal(s->image, "r:4");
	assert_string_equal(s->argv, "[\"R\", \"-f\",\"{connection_file}\"]");
	assert_string_equal(s->display_name, "r-lang");
	assert_string_equal(s->language, "R");
	assert_string_equal(s->interrupt_mode, "signal");
	s = &r.config.specs[1];
	assert_string_equal(s->argv, "");
	assert_string_equal(s->display_name, "My Python");
	assert_string_equal(s->language, "python");
	assert_string_equal(s->interrupt_mode, "message");
	assert_int_equal(r.config.max_kernels, 5);
	config_done(&r.config);
}

TEST(config, kernelspec_faults)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{"[kernelspec a/b]\nimage = x\n", "not 'a/b'"},
		{"[kernelspec ..]\nimage = x\n", "not '..'"},
		{"[kernelspec x]\nlanguage = R\n", "needs an image"},
		{"[kernelspec x]\nimage = x\ncolour = red\n", "'colour' is no setting"},
		{"[kernelspec x]\nimage = x\nargv = R -f\n", "JSON array"},
		{"[kernelspec x]\nimage = x\nargv = [1]\n", "JSON array"},
		{"[kernelspec x]\nimage = x\nargv = []\n", "JSON array"},
		{"[kernelspec x]\nimage = x\ninterrupt_mode = poke\n", "message or signal"},
		{"[kernelspec xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]\nimage = x\n",
			"too long"},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		expect_fault(read_file(rows[i].text, NULL, NULL), rows[i].words);
}

TEST(config, relative_paths_become_absolute)
{
	struct result r = read_with((const char *const[]){"--data-dir", "d", "--run-dir", "r/s",
					    "--token-file", "t", NULL},
		NULL);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.config.data_dir[0], '/');
	assert_string_equal(r.config.data_dir + strlen(r.config.data_dir) - 2, "/d");
	assert_string_equal(r.config.run_dir + strlen(r.config.run_dir) - 4, "/r/s");
	assert_string_equal(r.config.token_file + strlen(r.config.token_file) - 2, "/t");
	config_done(&r.config);
}

TEST(config, places_of_the_machine)
{
	const char *const home[] = {"HOME=/home/ana", "XDG_RUNTIME_DIR=/run/user/7", NULL};
	const char *const xdg[] = {"HOME=/home/ana", "XDG_DATA_HOME=/x/data", NULL};
	bool root = geteuid() == 0;
	struct result r = read_with(NULL, home);
	assert_int_equal(r.status, 0);
	assert_string_equal(
		r.config.data_dir, root ? "/var/lib/coppice" : "/home/ana/.local/share/coppice");
	assert_string_equal(r.config.run_dir, root ? "/run/coppice" : "/run/user/7/coppice");
	config_done(&r.config);
	r = read_with(NULL, xdg);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.config.data_dir, root ? "/var/lib/coppice" : "/x/data/coppice");
	assert_string_equal(r.config.run_dir, root ? "/run/coppice" : "/x/data/coppice/run");
	config_done(&r.config);
}

TEST(config, list_items)
{
	const char *at = " a , ,b c,, toolongforit ,d ";
	char item[8], seen[64] = "";
	while (config_list_next(&at, item, sizeof item))
		(void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "<%s>", item);
	assert_string_equal(seen, "<a><b c><d>");
	at = "";
	assert_false(config_list_next(&at, item, sizeof item));
}

RUN(TEST_ROW(config, defaults), TEST_ROW(config, command_line_forms), TEST_ROW(config, units),
	TEST_ROW(config, bounds_and_forms_are_checked), TEST_ROW(config, wrong_arguments),
	TEST_ROW(config, command_line_beats_environment_beats_file),
	TEST_ROW(config, lists_join_within_a_source),
	TEST_ROW(config, file_names_are_found_by_the_environment),
	TEST_ROW(config, file_faults_name_their_line), TEST_ROW(config, kernelspecs_of_the_file),
	TEST_ROW(config, kernelspec_faults), TEST_ROW(config, relative_paths_become_absolute),
	TEST_ROW(config, places_of_the_machine), TEST_ROW(config, list_items))
