/* A request's path, query and chunked body, without a connection: the first byte of the input is
 * the length of the pieces in which the body comes, then a line for path?query&query, then chunks.
 * In whatever pieces it comes, it is the same body. fuzz_http has the same with libwebsockets. */
#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/door/chunked.h"
#include "gateway/door/rest.h"
#include "gateway/door/route.h"
#include "tests/lib/fake_clock.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct rest_member members[] = {
	{"name", REST_TEXT}, {"env", REST_TEXTS}, {"kernel", REST_OBJECT}, {"path", REST_TEXT}};

/* False: the chunks are malformed, or the body is too large. */
static bool add_chunks(struct buf *b, struct bytes all, size_t piece, struct chunked *c)
{
	while (all.len > 0 && c->at < CHUNK_DONE) {
		struct bytes part = {all.data, all.len < piece ? all.len : piece}, body;
		size_t used = chunked_next(c, part, &body);
		if (used > part.len || (used == 0 && part.len > 0))
			abort(); /* it would overrun, or spin */
		if (body.len > 0 && buf_add(b, body.data, body.len) != 0)
			return false;
		all.data += used;
		all.len -= used;
	}
	return c->at != CHUNK_BROKEN;
}

static void read_chunks(struct call *r, struct bytes all, size_t piece)
{
	struct chunked whole = {0}, pieces = {0};
	AUTO(buf_done) struct buf other;
	buf_init(&other, BODY_MAX);
	bool fine = add_chunks(&r->body, all, SIZE_MAX, &whole);
	bool same = add_chunks(&other, all, piece, &pieces);
	assert(fine == same && whole.at == pieces.at && r->body.len == other.len);
	assert(other.len == 0 || memcmp(r->body.data, other.data, other.len) == 0);
}

static char *copy(const uint8_t *from, size_t len)
{
	char *text = xcalloc(1, len + 1);
	return memcpy(text, from, len);
}

static void read_line(struct call *r, struct bytes line)
{
	size_t n = 0;
	const uint8_t *end = line.len ? memchr(line.data, '?', line.len) : NULL;
	size_t len = end ? (size_t)(end - line.data) : line.len;
	r->path = copy(line.data, len);
	while (end && n < QUERY_MAX) {
		size_t at = (size_t)(end - line.data) + 1;
		end = memchr(line.data + at, '&', line.len - at);
		len = end ? (size_t)(end - line.data) - at : line.len - at;
		r->query[n++] = copy(line.data + at, len);
	}
}

static void try_routes(struct call *r)
{
	static const struct route *const tables[] = {rest_kernels_routes, rest_sessions_routes,
		rest_channels_routes, rest_kernelspecs_routes, rest_admin_routes};
	const char *path = call_path(r);
	for (size_t i = 0; path && i < ARRAY_LEN(tables); i++)
		for (const struct route *row = tables[i]; row->path; row++)
			if (route_match(row->path, path, r->param) && r->param[0])
				assert(r->param[0][0] != '\0' && !strchr(r->param[0], '/'));
	(void)call_query(r, "token");
	(void)call_query(r, "session_id"); /* must only not overrun */
}

static void try_body(const struct call *r)
{
	struct err err;
	cJSON *body = NULL;
	if (call_json(r, &body, &err) == 0 && body) {
		assert(cJSON_IsObject(body));
		(void)rest_check(body, "", members, ARRAY_LEN(members), &err);
		(void)rest_check(rest_object(body, "kernel"), "kernel.", members, 1, &err);
		(void)rest_text(body, "name");
	}
	cJSON_Delete(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	struct gateway gw = {.clock = clock_new(NULL)};
	struct door door = {.gw = &gw, .base = ""};
	struct call *r = call_new(&door);
	struct bytes rest = {data + 1, len - 1};
	const uint8_t *end = rest.len ? memchr(rest.data, '\n', rest.len) : NULL;
	size_t line = end ? (size_t)(end - rest.data) : rest.len, used = line + (end != NULL);
	read_line(r, (struct bytes){rest.data, line});
	try_routes(r);
	read_chunks(r, (struct bytes){rest.data + used, rest.len - used}, data[0] ? data[0] : 1);
	try_body(r);
	call_free(r);
	clock_close(gw.clock, NULL, NULL);
	return 0;
}
