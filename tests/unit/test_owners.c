#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/crypto.h"
#include "gateway/spine/owners.h"

struct fixture {
	char folder[64];
	char path[128];
};

static int setup(void **state)
{
	struct fixture *fx = calloc(1, sizeof *fx);
	assert_int_equal(crypto_init(NULL), 0);
	(void)snprintf(fx->folder, sizeof fx->folder, "/tmp/coppice-test-owners-XXXXXX");
	assert_non_null(mkdtemp(fx->folder));
	(void)snprintf(fx->path, sizeof fx->path, "%s/tokens.ini", fx->folder);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;
	unlink(fx->path);
	rmdir(fx->folder);
	free(fx);
	return 0;
}

static int open_text(struct fixture *fx, const char *text, struct owners **ret, struct err *err)
{
	unlink(fx->path);
	int fd = open(fx->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return owners_open(fx->path, ret, err);
}

static void owners_makes_a_private_file(void **state)
{
	struct fixture *fx = *state;
	struct owners *o = NULL, *again = NULL;
	struct stat st;
	assert_int_equal(owners_open(fx->path, &o, NULL), 0);
	assert_int_equal(stat(fx->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(owners_count(o), 1);
	const struct owner *first = owners_first(o);
	assert_string_equal(first->name, "owner");
	assert_string_equal(first->tier, "none");
	assert_int_equal(first->scopes, SCOPE_READ | SCOPE_RUN | SCOPE_ADMIN);
	assert_int_equal(strlen(first->secret), 64);
	assert_int_equal(owners_open(fx->path, &again, NULL), 0);
	assert_string_equal(owners_first(again)->secret, first->secret);
	owners_free(o);
	owners_free(again);
}

static void owners_makes_missing_folders(void **state)
{
	struct fixture *fx = *state;
	char folder[160], deep[160], path[200];
	struct owners *o = NULL;
	struct stat st;
	(void)snprintf(folder, sizeof folder, "%s/a", fx->folder);
	(void)snprintf(deep, sizeof deep, "%s/a/b", fx->folder);
	(void)snprintf(path, sizeof path, "%s/tokens.ini", deep);
	assert_int_equal(owners_open(path, &o, NULL), 0);
	assert_int_equal(stat(deep, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	owners_free(o);
	unlink(path);
	rmdir(deep);
	rmdir(folder);
}

static void owners_reads_rows(void **state)
{
	struct fixture *fx = *state;
	struct owners *o = NULL;
	assert_int_equal(open_text(fx,
				 "; who\n[token ana]\nsecret = aaa\ntier=premium\nscopes = read\n"
				 "[token bob@x.org]\nsecret = bbb\nscopes = run, admin\n"
				 "[token c]\nsecret = ccc\n[token nobody]\nsecret=ddd\nscopes =\n",
				 &o, NULL),
		0);
	assert_int_equal(owners_count(o), 4);
	const struct owner *ana = owners_find(o, "aaa"), *bob = owners_find(o, "bbb");
	assert_string_equal(ana->name, "ana");
	assert_string_equal(ana->tier, "premium");
	assert_int_equal(ana->scopes, SCOPE_READ);
	assert_string_equal(bob->name, "bob@x.org");
	assert_string_equal(bob->tier, "standard");
	assert_int_equal(bob->scopes, SCOPE_RUN | SCOPE_ADMIN);
	assert_int_equal(owners_find(o, "ccc")->scopes, SCOPE_READ | SCOPE_RUN);
	assert_int_equal(owners_find(o, "ddd")->scopes, 0);
	assert_ptr_equal(owners_first(o), bob);
	assert_ptr_equal(owners_first_with(o, SCOPE_READ), ana);
	static const char *const names[] = {"ana", "bob@x.org", "c", "nobody"};
	const struct owner *at = NULL;
	for (unsigned i = 0; i < 4; i++) {
		at = owners_next(o, at);
		assert_string_equal(at->name, names[i]);
	}
	assert_null(owners_next(o, at));
	assert_null(owners_find(o, "aa"));
	assert_null(owners_find(o, "aaaa"));
	assert_null(owners_find(o, ""));
	owners_free(o);
}

static void owners_without_scope_run_have_no_first(void **state)
{
	struct owners *o = NULL;
	assert_int_equal(open_text(*state, "[token a]\nsecret=x\nscopes=read\n", &o, NULL), 0);
	assert_null(owners_first(o));
	owners_free(o);
}

static void owners_refuses_malformed_files(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{"", "holds no token"},
		{"# nothing\n", "holds no token"},
		{"[token a]\nsecret =\n", "secret is empty"},
		{"[token a]\ntier = none\n", "has no secret"},
		{"[token a]\nsecret = x\n[token b]\nsecret = x\n", "have the same secret"},
		{"[token a]\nsecret = x\n[token a]\nsecret = y\n", "two secrets"},
		{"[token a]\nsecret = x\ntier = gold\n", "not 'gold'"},
		{"[token a]\nsecret = x\nscopes = read write\n", "not 'write'"},
		{"[token a]\nsecret = x\ncolour = red\n", "'colour'"},
		{"[token a]\nsecret = x y\n", "without spaces"},
		{"[token a]\nsecret = \xc3\xa4\n", "printable ASCII"},
		{"[tokens a]\nsecret = x\n", "[tokens a]"},
		{"[token ]\nsecret = x\n", "is not [token NAME]"},
		{"[token a/b]\nsecret = x\n", "[token a/b]"},
		{"secret = x\n", "section []"},
		{"[token a]\nsecret\n", "line 2"},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct owners *o = NULL;
		struct err err = {0};
		assert_int_equal(open_text(*state, rows[i].text, &o, &err), E_INVALID);
		assert_null(o);
		if (!strstr(err.text, rows[i].words))
			fail_msg("row %u: '%s' does not say '%s'", i, err.text, rows[i].words);
	}
}

static void owners_never_repeats_a_secret(void **state)
{
	static const char *const texts[] = {"[token a]\nsecret = HIDDEN HIDDEN\n",
		"[token a]\nsecret = HIDDEN\n[token b]\nsecret = HIDDEN\n",
		"[token a]\nsecret = HIDDEN\nsecret = HIDDEN2\n", "[token a]\nHIDDEN\n"};
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		struct owners *o = NULL;
		struct err err = {0};
		assert_int_equal(open_text(*state, texts[i], &o, &err), E_INVALID);
		assert_null(strstr(err.text, "HIDDEN"));
	}
}

static void owners_refuses_open_files(void **state)
{
	struct fixture *fx = *state;
	static const mode_t modes[] = {0640, 0604, 0620, 0602, 0644, 0666};
	for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
		struct owners *o = NULL;
		struct err err = {0};
		assert_int_equal(open_text(fx, "[token a]\nsecret=x\n", &o, &err), 0);
		owners_free(o);
		o = NULL;
		assert_int_equal(chmod(fx->path, modes[i]), 0);
		assert_int_equal(owners_open(fx->path, &o, &err), E_INVALID);
		assert_null(o);
		assert_non_null(strstr(err.text, "chmod 600"));
	}
	struct err err = {0};
	struct owners *o = NULL;
	assert_int_not_equal(owners_open(fx->folder, &o, &err), 0);
	assert_null(o);
}

#define ROW(name) cmocka_unit_test_setup_teardown(owners_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(makes_a_private_file),
		ROW(makes_missing_folders),
		ROW(reads_rows),
		ROW(without_scope_run_have_no_first),
		ROW(refuses_malformed_files),
		ROW(never_repeats_a_secret),
		ROW(refuses_open_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
