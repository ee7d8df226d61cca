/* A bundle as a fragment of safe HTML: one box that holds all it paints, with the few rules its
 * kind needs. JupyterLab's order for output that is not trusted: HTML (sanitised here), Markdown,
 * LaTeX, JSON, PNG, JPEG, GIF, SVG, text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/render/ansi.h"
#include "frontend-adapter/render/picture.h"
#include "frontend-adapter/render/render.h"
#include "frontend-adapter/render/sanitise.h"
#include "gateway/base/crypto.h"

#define BOX_SPARE 6000u /* box and rules */

static const char *const texts[] = {"text/markdown", "text/latex", "application/json"};
static const char *const last_texts[] = {
	"text/plain", "application/vnd.jupyter.stdout", "application/vnd.jupyter.stderr"};

/* Whatever is in it: it paints nothing outside, and what is positioned stays in. */
static const char box_style[] = "\" style=\"contain:content;overflow:auto;max-width:100%\">";

static const char table_rules[] =
	"<style>.coppice-output table{border-collapse:collapse;border:none;"
	"font:13px/1.4 system-ui,sans-serif;"
	"color:#1f2328}.coppice-output th,.coppice-output td{padding:.3em .6em;border:none;"
	"vertical-align:top}.coppice-output .dataframe th,.coppice-output .dataframe td,"
	".coppice-output [id^=u-T_] th,.coppice-output [id^=u-T_] td" /* a Styler's */
	"{text-align:right}.coppice-output thead{border-bottom:1px solid #bdbdbd}"
	".coppice-output tbody tr:nth-child(odd){background:#f5f5f5}"
	".coppice-output img{max-width:100%}</style>";

static const char text_rules[] =
	"<style>.coppice-output pre{margin:0;font:13px/1.4 ui-monospace,'DejaVu Sans Mono',Menlo,"
	"Consolas,monospace;white-space:pre-wrap;overflow-wrap:anywhere;color:#1f2328}";

static const char style_rules[] =
	".coppice-output .ansi-bold{font-weight:bold}.coppice-output .ansi-italic{font-style:"
	"italic}.coppice-output .ansi-underline{text-decoration:underline}.coppice-output "
	".ansi-faint{opacity:.7}.coppice-output .ansi-inverse{background:#1f2328;color:#fff}";

static void put_style_rules(struct buf *out)
{
	static const char *const names[] = {
		"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"};
	(void)buf_add_text(out, style_rules); /* latched, as below */
	for (unsigned i = 0; i < 16; i++) {
		const char *intense = i & 8 ? "-intense" : "";
		unsigned rgb = ansi_rgb(ANSI_PALETTE | i);
		(void)buf_addf(out,
			".coppice-output .ansi-%s%s-fg{color:#%06x}"
			".coppice-output .ansi-%s%s-bg{background:#%06x}",
			names[i & 7], intense, rgb, names[i & 7], intense, rgb);
	}
}

static void put_text_rules(const struct buf *body, struct buf *out)
{
	static const char styled[] = "class=\"ansi-";
	(void)buf_add_text(out, text_rules); /* latched, as below */
	if (memmem(body->data, body->len, styled, sizeof styled - 1))
		put_style_rules(out);
	(void)buf_add_text(out, "</style>");
}

static int end_box(struct buf *body, const char *mime, const char *scope, struct result *ret)
{
	bool text = body->len > 4 && memcmp(body->data, "<pre", 4) == 0;
	(void)buf_addf(&ret->bytes, "<div class=\"coppice-output%s%s%s", *scope ? " " : "", scope,
		box_style); /* latched, as below */
	if (text)
		put_text_rules(body, &ret->bytes);
	else if (strcmp(mime, "text/html") == 0)
		(void)buf_add_text(&ret->bytes, table_rules);
	(void)buf_add(&ret->bytes, body->data, body->len);
	(void)buf_add_text(&ret->bytes, "</div>\n");
	ret->from = mime;
	return ret->bytes.failed ? ret->bytes.code : 0;
}

static size_t room(const struct request *r)
{
	return r->max_bytes - BOX_SPARE;
}

/* A class that no other output on a page has, since its sheet must not reach into that one: the
 * same name is the same output. (FNV-1a, 64 bits.) */
static void name_scope(struct bytes html, char *ret, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < html.len; i++)
		hash = (hash ^ html.data[i]) * 0x100000001b3u;
	(void)snprintf(ret, size, "c-%016" PRIx64, hash); /* fits */
}

/* ---- kinds ---- */

/* Nothing that can be seen in it (a script that would have drawn) is as if it were not there. */
static int html(const struct request *r, struct result *ret)
{
	AUTO(buf_done) struct buf body;
	struct sanitised said;
	const char *text = request_text(r, "text/html");
	char scope[32];
	buf_init(&body, room(r));
	if (!text)
		return E_NOT_FOUND;
	struct bytes bytes = {(const uint8_t *)text, strlen(text)};
	name_scope(bytes, scope, sizeof scope);
	int status = sanitise_html(bytes, scope, &body, &said);
	if (status == 0 && !said.visible)
		return E_NOT_FOUND;
	ret->cut = said.cut;
	return status == 0 ? end_box(&body, "text/html", scope, ret) : status;
}

static int write_text(struct bytes text, size_t max, struct buf *body, bool *ret_cut)
{
	AUTO(buf_done) struct buf fitting;
	struct ansi ansi;
	buf_init(&fitting, max + 200);
	*ret_cut = text_cut(text, max, &fitting);
	int status = ansi_parse((struct bytes){fitting.data, fitting.len}, &ansi);
	(void)buf_add_text(body, "<pre>\n"); /* latched, as below */
	if (status == 0)
		ansi_html(&ansi, body);
	(void)buf_add_text(body, "</pre>");
	ansi_done(&ansi);
	return status != 0 ? status : body->failed ? body->code : 0;
}

/* Escapes and spans make it longer: less of it is tried until it fits. */
static int text(const struct request *r, const char *mime, struct result *ret)
{
	const char *text = request_text(r, mime);
	int status = E_NOT_FOUND;
	for (size_t max = text ? room(r) : 0; max > 64; max /= 2) {
		AUTO(buf_done) struct buf body;
		buf_init(&body, room(r));
		status = write_text(
			(struct bytes){(const uint8_t *)text, strlen(text)}, max, &body, &ret->cut);
		if (status == 0)
			return end_box(&body, mime, "", ret);
		if (status != E_TOO_BIG)
			break;
	}
	return status;
}

/* A side that the kernel named, for figures that are denser than the screen. */
static void put_side(const struct request *r, const char *mime, const char *key, struct buf *body)
{
	int side = request_side(r, mime, key);
	if (side > 0)
		(void)buf_addf(body, " %s=\"%d\"", key, side); /* latched */
}

/* from: what the bundle had; mime: what it has become. */
static int put_picture(const struct request *r, const char *from, struct bytes bytes,
	const char *mime, struct result *ret)
{
	AUTO(buf_done) struct buf body;
	buf_init(&body, ret->bytes.max);
	(void)buf_add_text(&body, "<img alt=\"output\" style=\"max-width:100%\"");
	put_side(r, from, "width", &body);
	if (request_side(r, from, "width") == 0)
		put_side(r, from, "height", &body); /* the other one follows */
	(void)buf_addf(&body, " src=\"data:%s;base64,", mime);
	(void)base64_encode(bytes, &body); /* latched, as above and below */
	(void)buf_add_text(&body, "\">");
	return body.failed ? body.code : end_box(&body, from, "", ret);
}

/* Scaled down if it is too long. A JPEG or GIF that fits stays what it is. */
static int raster(const struct request *r, const char *mime, const char *magic, struct result *ret)
{
	AUTO(buf_done) struct buf bytes, small;
	size_t max = room(r) / 4 * 3;
	buf_init(&bytes, REQUEST_MAX);
	buf_init(&small, max);
	int status = request_picture(r, mime, &bytes);
	struct bytes in = {bytes.data, bytes.len};
	if (status != 0 || in.len < 4 || memcmp(in.data, magic, 3) != 0)
		return status != 0 ? status : E_INVALID;
	if (in.len <= max)
		return put_picture(r, mime, in, mime, ret);
	status = picture_shrink(in, max, &small, &ret->cut, NULL);
	if (status == 0)
		status = put_picture(
			r, mime, (struct bytes){small.data, small.len}, "image/png", ret);
	return status;
}

static int svg(const struct request *r, struct result *ret)
{
	AUTO(buf_done) struct buf clean, png;
	const char *text = request_text(r, "image/svg+xml");
	size_t max = room(r) / 4 * 3;
	buf_init(&clean, REQUEST_MAX);
	buf_init(&png, max);
	if (!text)
		return E_NOT_FOUND;
	int status = sanitise_svg((struct bytes){(const uint8_t *)text, strlen(text)}, &clean);
	struct bytes in = {clean.data, clean.len};
	if (status == 0 && clean.len <= max)
		return put_picture(r, "image/svg+xml", in, "image/svg+xml", ret);
	if (status == 0)
		status = picture_svg(in, max, &png, &ret->cut, NULL);
	if (status == 0)
		status = put_picture(
			r, "image/svg+xml", (struct bytes){png.data, png.len}, "image/png", ret);
	return status;
}

static int pictures(const struct request *r, struct result *ret)
{
	static const char *const types[][2] = {
		{"image/png", "\x89PNG"}, {"image/jpeg", "\xff\xd8\xff"}, {"image/gif", "GIF8"}};
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		int status = raster(r, types[i][0], types[i][1], ret);
		if (status == 0)
			return 0;
		buf_reset(&ret->bytes);
	}
	return svg(r, ret);
}

/* What fails leaves the next one its place. */
int render_html(const struct request *r, struct result *ret, struct err *err)
{
	int status = html(r, ret);
	for (size_t i = 0; status != 0 && i < ARRAY_LEN(texts); i++) {
		buf_reset(&ret->bytes);
		status = text(r, texts[i], ret);
	}
	if (status != 0) {
		buf_reset(&ret->bytes);
		status = pictures(r, ret);
	}
	for (size_t i = 0; status != 0 && i < ARRAY_LEN(last_texts); i++) {
		buf_reset(&ret->bytes);
		status = text(r, last_texts[i], ret);
	}
	return status == 0 ? 0 : err_set(err, status, "nothing in the bundle can be drawn");
}
