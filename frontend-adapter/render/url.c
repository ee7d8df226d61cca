/* Addresses: links that somebody may follow, and pictures that are their own bytes. */
#include "frontend-adapter/render/render.h"
#include "frontend-adapter/render/sanitise.h"
#include "gateway/base/crypto.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define LINK_MAX_LEN 4096u
#define SVG_MAX	     (8u << 20)

static bool starts(struct bytes b, const char *with)
{
	size_t len = strlen(with);
	return b.len >= len && strncasecmp((const char *)b.data, with, len) == 0;
}

/* Browsers pass over blanks and control characters in schemes: none may be there at all. */
bool url_is_link(struct bytes url)
{
	if (url.len > LINK_MAX_LEN)
		return false;
	for (size_t i = 0; i < url.len; i++)
		if (url.data[i] <= 0x20 || url.data[i] == 0x7f || url.data[i] == '\\')
			return false;
	return starts(url, "http://") || starts(url, "https://") || starts(url, "mailto:");
}

static int hex(uint8_t c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

static void percent_decode(struct bytes in, struct buf *out)
{
	for (size_t i = 0; i < in.len; i++) {
		bool is_code = in.data[i] == '%' && in.len - i > 2 && hex(in.data[i + 1]) >= 0 &&
			       hex(in.data[i + 2]) >= 0;
		uint8_t c = in.data[i];
		if (is_code) {
			c = (uint8_t)(hex(in.data[i + 1]) << 4 | hex(in.data[i + 2]));
			i += 2;
		}
		(void)buf_add(out, &c, 1); /* latched */
	}
}

/* The body of a data: URL and whether it is base64; false if it is of another type. */
static bool split(struct bytes url, const char *type, bool *ret_base64, struct bytes *ret)
{
	if (!starts(url, "data:") || !starts((struct bytes){url.data + 5, url.len - 5}, type))
		return false;
	size_t head = 5 + strlen(type);
	const uint8_t *comma = memchr(url.data, ',', url.len);
	if (!comma || (size_t)(comma - url.data) < head ||
		(url.data[head] != ',' && url.data[head] != ';'))
		return false;
	size_t at = (size_t)(comma - url.data);
	*ret_base64 = at >= 7 && strncasecmp((const char *)comma - 7, ";base64", 7) == 0;
	*ret = (struct bytes){comma + 1, url.len - at - 1};
	return true;
}

static void write_url(const char *type, const struct buf *bytes, struct buf *out)
{
	(void)buf_addf(out, "data:%s;base64,", type);			   /* latched */
	(void)base64_encode((struct bytes){bytes->data, bytes->len}, out); /* latched */
}

/* A picture must begin as its type says, or a browser would guess. */
static bool is_type(const struct buf *b, const char *type)
{
	if (strcmp(type, "image/png") == 0)
		return b->len > 8 && memcmp(b->data, "\x89PNG\r\n\x1a\n", 8) == 0;
	if (strcmp(type, "image/gif") == 0)
		return b->len > 6 && memcmp(b->data, "GIF8", 4) == 0;
	return b->len > 3 && memcmp(b->data, "\xff\xd8\xff", 3) == 0;
}

static bool raster(struct bytes url, const char *type, struct buf *out)
{
	AUTO(buf_done) struct buf bytes;
	struct bytes body;
	bool base64;
	buf_init(&bytes, url.len + 8);
	if (!split(url, type, &base64, &body) || !base64 ||
		base64_decode_loose(body, &bytes) != 0 || !is_type(&bytes, type))
		return false;
	write_url(strcmp(type, "image/jpg") == 0 ? "image/jpeg" : type, &bytes, out);
	return true;
}

static bool vector(struct bytes url, struct buf *out)
{
	AUTO(buf_done) struct buf bytes, clean;
	struct bytes body;
	bool base64;
	buf_init(&bytes, SVG_MAX);
	buf_init(&clean, SVG_MAX);
	if (!split(url, "image/svg+xml", &base64, &body))
		return false;
	if (!base64)
		percent_decode(body, &bytes);
	else if (base64_decode_loose(body, &bytes) != 0)
		return false;
	if (bytes.failed || sanitise_svg((struct bytes){bytes.data, bytes.len}, &clean) != 0)
		return false;
	write_url("image/svg+xml", &clean, out);
	return true;
}

bool url_picture(struct bytes url, bool svg_too, struct buf *out)
{
	static const char *const types[] = {"image/png", "image/jpeg", "image/jpg", "image/gif"};
	while (url.len > 0 && isspace(url.data[0])) {
		url.data++;
		url.len--;
	}
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (raster(url, types[i], out))
			return true;
	return svg_too && vector(url, out);
}
