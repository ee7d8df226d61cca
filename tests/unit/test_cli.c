#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/crypto.h"
#include "gateway/base/file.h"
#include "gateway/cli.h"
#include "gateway/cli_ready.h"

TEST(cli, own_options_are_taken_out)
{
	char *argv[] = {(char *)"status", (char *)"--json", (char *)"--url", (char *)"http://x",
		(char *)"--memory", (char *)"1G", (char *)"--token=T", (char *)"--json", NULL};
	int argc = 8;
	assert_true(cli_take_flag(&argc, argv, "--json"));
	assert_false(cli_take_flag(&argc, argv, "--json"));
	assert_string_equal(cli_take_value(&argc, argv, "--url"), "http://x");
	assert_string_equal(cli_take_value(&argc, argv, "--token"), "T");
	assert_null(cli_take_value(&argc, argv, "--mem"));
	assert_int_equal(argc, 3);
	assert_string_equal(argv[1], "--memory");
	assert_string_equal(argv[2], "1G");
	assert_null(argv[3]);
}

TEST(cli, a_missing_value_is_empty)
{
	char *argv[] = {(char *)"status", (char *)"--url", NULL};
	int argc = 2;
	assert_string_equal(cli_take_value(&argc, argv, "--url"), "");
	assert_int_equal(argc, 1);
	assert_null(argv[1]);
}

TEST(cli, urls_are_reachable_ones)
{
	static const struct {
		const char *listen, *base, *cert, *url;
	} rows[] = {
		{"127.0.0.1:8899", "/", "", "http://127.0.0.1:7"},
		{"0.0.0.0:0", "/", "", "http://127.0.0.1:7"},
		{":8899", "/", "", "http://127.0.0.1:7"},
		{"[::]:8899", "/a/", "", "http://[::1]:7/a"},
		{"[::1]:8899", "/a", "/c.pem", "https://[::1]:7/a"},
		{"host.example:1", "//", "", "http://host.example:7"},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char url[256];
		struct config config = {.listen = (char *)rows[i].listen,
			.base_url = (char *)rows[i].base,
			.tls_cert = (char *)rows[i].cert};
		cli_url(&config, 7, url, sizeof url);
		assert_string_equal(url, rows[i].url);
	}
}

struct fixture {
	char folder[64], tokens[128], server[128];
	struct config config;
};

static int setup(void **state)
{
	struct fixture *fx = calloc(1, sizeof *fx);
	static const char text[] = "[token reader]\nsecret = rrr\nscopes = run\n"
				   "[token root]\nsecret = aaa\nscopes = admin\n";
	assert_int_equal(crypto_init(NULL), 0);
	(void)snprintf(fx->folder, sizeof fx->folder, "/tmp/coppice-test-cli-XXXXXX");
	assert_non_null(mkdtemp(fx->folder));
	(void)snprintf(fx->tokens, sizeof fx->tokens, "%s/tokens.ini", fx->folder);
	(void)snprintf(fx->server, sizeof fx->server, "%s/server.json", fx->folder);
	assert_int_equal(file_write(fx->tokens, text, sizeof text - 1, NULL), 0);
	fx->config.data_dir = fx->folder;
	fx->config.token_file = fx->tokens;
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;
	unlink(fx->tokens);
	unlink(fx->server);
	assert_int_equal(rmdir(fx->folder), 0);
	free(fx);
	return 0;
}

static void cli_server_is_found_by_its_file(void **state)
{
	struct fixture *fx = *state;
	struct cli_server found;
	struct err err;
	struct stat st;
	assert_int_equal(cli_server_find(&fx->config, NULL, NULL, &found, &err), E_NOT_FOUND);
	assert_non_null(strstr(err.text, "`make run` or `build/coppice serve`"));
	assert_int_equal(server_file_write(&fx->config, "http://127.0.0.1:5", &err), 0);
	assert_int_equal(stat(fx->server, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(cli_server_find(&fx->config, NULL, NULL, &found, &err), 0);
	assert_string_equal(found.url, "http://127.0.0.1:5");
	assert_string_equal(found.token, "aaa"); /* the one that may see /admin */
	assert_int_equal(found.pid, getpid());
	assert_int_equal(cli_server_find(&fx->config, "http://other/", "ttt", &found, &err), 0);
	assert_string_equal(found.url, "http://other");
	assert_string_equal(found.token, "ttt");
	server_file_remove(&fx->config);
	assert_int_equal(cli_server_find(&fx->config, NULL, NULL, &found, &err), E_NOT_FOUND);
}

static void cli_server_file_of_another_is_left(void **state)
{
	static const char others[] = "{\"url\":\"http://127.0.0.1:6\",\"pid\":1}";
	struct fixture *fx = *state;
	struct cli_server found;
	assert_int_equal(file_write(fx->server, others, strlen(others), NULL), 0);
	server_file_remove(&fx->config);
	assert_int_equal(cli_server_find(&fx->config, NULL, "t", &found, NULL), 0);
	assert_string_equal(found.url, "http://127.0.0.1:6");
}

static void cli_server_file_names_the_certificate(void **state)
{
	struct fixture *fx = *state;
	static const struct {
		const char *url;
		bool any_name;
	} rows[] = {{"https://127.0.0.1:5", true}, {"https://[::1]:5/x", true},
		{"https://host.example:5", false}, {"https://1host:5", false}};
	struct cli_server found;
	char cert[160];
	fx->config.tls_cert = cert;
	(void)snprintf(cert, sizeof cert, "%s/./tokens.ini", fx->folder); /* any file */
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(server_file_write(&fx->config, rows[i].url, NULL), 0);
		assert_int_equal(cli_server_find(&fx->config, NULL, NULL, &found, NULL), 0);
		assert_string_equal(found.ca_file, fx->tokens);
		assert_int_equal(found.any_name, rows[i].any_name);
	}
	assert_int_equal(cli_server_find(&fx->config, "https://127.0.0.1", "t", &found, NULL), 0);
	assert_string_equal(found.ca_file, "");
	assert_false(found.any_name);
	fx->config.tls_cert = NULL;
	assert_int_equal(server_file_write(&fx->config, "http://127.0.0.1:5", NULL), 0);
	assert_int_equal(cli_server_find(&fx->config, NULL, NULL, &found, NULL), 0);
	assert_string_equal(found.ca_file, "");
}

static void cli_server_file_may_be_stale_or_malformed(void **state)
{
	struct fixture *fx = *state;
	static const struct {
		const char *text;
		int code;
	} rows[] = {
		{"", E_INVALID}, {"[]", E_INVALID}, {"{\"url\":5,\"pid\":1}", E_INVALID},
		{"{\"url\":\"http://x\"}", E_INVALID},
		{"{\"url\":\"http://x\",\"pid\":-1}", E_INVALID},
		{"{\"url\":\"http://x\",\"pid\":99999999}", E_NOT_FOUND}, /* above pid_max */
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct cli_server found;
		struct err err;
		assert_int_equal(
			file_write(fx->server, rows[i].text, strlen(rows[i].text), &err), 0);
		assert_int_equal(
			cli_server_find(&fx->config, NULL, "t", &found, &err), rows[i].code);
	}
}

static void cli_makes_no_token_file(void **state)
{
	struct fixture *fx = *state;
	struct cli_server found;
	struct err err;
	unlink(fx->tokens);
	assert_int_equal(cli_server_find(&fx->config, "http://x", NULL, &found, &err), E_NOT_FOUND);
	assert_int_not_equal(access(fx->tokens, F_OK), 0);
}

static void cli_asking_nobody_says_so(void **state)
{
	(void)state;
	char socket[] = "/tmp/coppice-test-cli-no-such-socket";
	struct cli_question q[2] = {{.unix_socket = socket, .url = "http://engine/version"},
		{.unix_socket = socket, .url = "http://engine/info", .token = "t"}};
	struct err err;
	assert_int_equal(cli_ask(q, 2, &err), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(q[i].status, 0);
		assert_int_equal(q[i].err.code, E_UNAVAILABLE);
		assert_null(q[i].tree);
	}
	cli_questions_done(q, 2);
}

#define ROW(name) cmocka_unit_test_setup_teardown(cli_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ROW(cli, own_options_are_taken_out),
		TEST_ROW(cli, a_missing_value_is_empty),
		TEST_ROW(cli, urls_are_reachable_ones),
		ROW(server_is_found_by_its_file),
		ROW(server_file_of_another_is_left),
		ROW(server_file_names_the_certificate),
		ROW(server_file_may_be_stale_or_malformed),
		ROW(makes_no_token_file),
		ROW(asking_nobody_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
