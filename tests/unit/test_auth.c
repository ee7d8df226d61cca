/* Tokens, scopes, origins, and the paths of the table. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/door/auth.h"
#include "gateway/door/route.h"
#include "tests/lib/fake_clock.c"

#define SECRET "0123456789abcdef"

struct fixture {
	struct gateway gw;
	struct door door;
	struct call *r;
	char path[64];
};

static void setup(struct fixture *f, const char *origins, const char *pattern)
{
	static const char rows[] = "[token reader]\nsecret = " SECRET "\nscopes = read\n";
	memset(f, 0, sizeof *f);
	snprintf(f->path, sizeof f->path, "/tmp/coppice-auth-XXXXXX");
	int fd = mkstemp(f->path); /* 0600 */
	assert_int_equal(write(fd, rows, sizeof rows - 1), sizeof rows - 1);
	close(fd);
	assert_int_equal(owners_open(f->path, &f->gw.owners, NULL), 0);
	f->gw.config.allow_origin = (char *)(uintptr_t)origins;
	f->gw.config.allow_origin_pattern = (char *)(uintptr_t)pattern;
	assert_int_equal(origins_init(&f->door.origins, &f->gw.config, NULL), 0);
	f->gw.clock = clock_new(NULL);
	f->door.gw = &f->gw;
	f->door.base = (char *)(uintptr_t) "/x";
	f->r = call_new(&f->door);
}

static void teardown(struct fixture *f)
{
	call_free(f->r);
	origins_done(&f->door.origins);
	owners_free(f->gw.owners);
	clock_close(f->gw.clock, NULL, NULL);
	unlink(f->path);
}

static int try_header(struct fixture *f, const char *value, unsigned scopes)
{
	free(f->r->header[HEADER_AUTHORIZATION]);
	f->r->header[HEADER_AUTHORIZATION] = value ? xstrdup(value) : NULL;
	return auth_check(f->r, scopes, NULL);
}

TEST(auth, forms_of_a_token)
{
	struct fixture f;
	setup(&f, "", "");
	assert_int_equal(try_header(&f, "token " SECRET, SCOPE_READ), 0);
	assert_string_equal(f.r->owner->name, "reader");
	assert_int_equal(try_header(&f, "Bearer " SECRET, SCOPE_READ), 0);
	assert_int_equal(try_header(&f, "TOKEN  " SECRET, SCOPE_READ), 0);
	assert_int_equal(try_header(&f, NULL, SCOPE_READ), E_UNAUTHORIZED);
	assert_int_equal(try_header(&f, "token ", SCOPE_READ), E_UNAUTHORIZED);
	assert_int_equal(try_header(&f, "token", SCOPE_READ), E_UNAUTHORIZED);
	assert_int_equal(try_header(&f, "Basic " SECRET, SCOPE_READ), E_UNAUTHORIZED);
	assert_int_equal(try_header(&f, "token " SECRET "0", SCOPE_READ), E_UNAUTHORIZED);
	teardown(&f);
}

TEST(auth, the_query_wins)
{
	struct fixture f;
	setup(&f, "", "");
	f.r->query[0] = xstrdup("1795990979000");
	f.r->query[1] = xstrdup("token=" SECRET);
	assert_int_equal(try_header(&f, "token wrong", SCOPE_READ), 0);
	free(f.r->query[1]);
	f.r->query[1] = xstrdup("token=wrong");
	assert_int_equal(try_header(&f, "token " SECRET, SCOPE_READ), E_UNAUTHORIZED);
	free(f.r->query[1]);
	f.r->query[1] = xstrdup("token=");
	assert_int_equal(try_header(&f, "token " SECRET, SCOPE_READ), 0);
	teardown(&f);
}

TEST(auth, a_missing_scope_is_forbidden)
{
	struct fixture f;
	setup(&f, "", "");
	assert_int_equal(try_header(&f, "token " SECRET, SCOPE_RUN), E_FORBIDDEN);
	assert_int_equal(try_header(&f, "token " SECRET, SCOPE_ADMIN), E_FORBIDDEN);
	assert_int_equal(try_header(&f, "token " SECRET, SCOPE_ADMIN | SCOPE_READ), 0);
	teardown(&f);
}

static bool echoed(struct fixture *f, const char *origin)
{
	buf_reset(&f->r->extra);
	free(f->r->header[HEADER_ORIGIN]);
	f->r->header[HEADER_ORIGIN] = xstrdup(origin);
	auth_cors(f->r);
	const char *lines = f->r->extra.data ? (const char *)f->r->extra.data : "";
	return strstr(lines, "Access-Control-Allow-Origin: ") != NULL;
}

TEST(auth, only_allowed_origins_are_echoed)
{
	struct fixture f;
	setup(&f, "http://ui.test, http://b.test", "https://[a-z]+\\.pat\\.test");
	assert_true(echoed(&f, "http://ui.test"));
	assert_true(echoed(&f, "http://b.test"));
	assert_true(echoed(&f, "https://abc.pat.test"));
	assert_false(echoed(&f, "https://abc.pat.test.evil.test"));
	assert_false(echoed(&f, "http://evil.test/https://abc.pat.test"));
	assert_false(echoed(&f, "http://other.test"));
	assert_int_equal(try_header(&f, "token " SECRET, SCOPE_READ), 0);
	assert_false(echoed(&f, "http://other.test"));
	teardown(&f);
}

TEST(auth, where_none_is_configured_a_token_opens_the_answer)
{
	struct fixture f;
	setup(&f, "", "");
	assert_false(echoed(&f, "http://any.test"));
	assert_int_equal(try_header(&f, "token " SECRET, SCOPE_READ), 0);
	assert_true(echoed(&f, "http://any.test"));
	teardown(&f);
}

TEST(auth, a_header_cannot_be_smuggled_through_an_origin)
{
	struct fixture f;
	setup(&f, "*", "");
	assert_true(echoed(&f, "http://any.test"));
	assert_false(echoed(&f, "http://any.test\r\nX: y"));
	teardown(&f);
}

static bool matches(const char *pattern, const char *path, const char *first, const char *second)
{
	char *params[PARAMS_MAX] = {NULL};
	bool yes = route_match(pattern, path, params);
	const char *want[PARAMS_MAX] = {first, second};
	for (unsigned i = 0; i < PARAMS_MAX; i++) {
		if (yes && want[i])
			assert_string_equal(params[i], want[i]);
		else
			assert_null(params[i]);
		free(params[i]);
	}
	return yes;
}

TEST(route, paths_and_their_parameters)
{
	assert_true(matches("/", "/", NULL, NULL));
	assert_true(matches("/api/kernels", "/api/kernels", NULL, NULL));
	assert_true(matches("/api/kernels", "/api/kernels/", NULL, NULL));
	assert_true(matches("/api/kernels/{id}", "/api/kernels/a-b", "a-b", NULL));
	assert_true(matches("/api/kernels/{id}/restart", "/api/kernels/a/restart", "a", NULL));
	assert_true(matches("/kernelspecs/{name}/{file}", "/kernelspecs/a/b.png", "a", "b.png"));
	assert_false(matches("/api/kernels/{id}", "/api/kernels", NULL, NULL));
	assert_false(matches("/api/kernels/{id}", "/api/kernels/", NULL, NULL));
	assert_false(matches("/api/kernels/{id}", "/api/kernels/a/b", NULL, NULL));
	assert_false(matches("/api/kernels/{id}/restart", "/api/kernels/a/restarts", NULL, NULL));
	assert_false(matches("/api/kernels", "/api/kernelspecs", NULL, NULL));
	assert_false(matches("/api", "api", NULL, NULL));
}

TEST(route, base_url_is_taken_off)
{
	struct fixture f;
	setup(&f, "", "");
	f.r->path = xstrdup("/x/api");
	assert_string_equal(call_path(f.r), "/api");
	free(f.r->path);
	f.r->path = xstrdup("/x");
	assert_string_equal(call_path(f.r), "/");
	free(f.r->path);
	f.r->path = xstrdup("/xapi");
	assert_null(call_path(f.r));
	free(f.r->path);
	f.r->path = xstrdup("/api");
	assert_null(call_path(f.r));
	teardown(&f);
}

RUN(TEST_ROW(auth, forms_of_a_token), TEST_ROW(auth, the_query_wins),
	TEST_ROW(auth, a_missing_scope_is_forbidden),
	TEST_ROW(auth, only_allowed_origins_are_echoed),
	TEST_ROW(auth, where_none_is_configured_a_token_opens_the_answer),
	TEST_ROW(auth, a_header_cannot_be_smuggled_through_an_origin),
	TEST_ROW(route, paths_and_their_parameters), TEST_ROW(route, base_url_is_taken_off))
