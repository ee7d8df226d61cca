/* A bundle as PNG: a picture that is there; else tables and text, drawn. */
#include <string.h>

#include "frontend-adapter/render/page.h"
#include "frontend-adapter/render/picture.h"
#include "frontend-adapter/render/render.h"
#include "frontend-adapter/render/sanitise.h"

static const char *const texts[] = {"text/markdown", "text/latex", "application/json", "text/plain",
	"application/vnd.jupyter.stdout", "application/vnd.jupyter.stderr"};

static const char note[] = "Drawn from its text: the HTML itself is not shown here.";

static int raster(const struct request *r, const char *mime, struct result *ret)
{
	AUTO(buf_done) struct buf bytes;
	buf_init(&bytes, REQUEST_MAX);
	int status = request_picture(r, mime, &bytes);
	if (status == 0)
		status = picture_shrink((struct bytes){bytes.data, bytes.len}, r->max_bytes,
			&ret->bytes, &ret->cut, NULL);
	ret->from = mime;
	return status;
}

static int vector(const struct request *r, struct result *ret)
{
	AUTO(buf_done) struct buf clean;
	const char *svg = request_text(r, "image/svg+xml");
	buf_init(&clean, REQUEST_MAX);
	if (!svg)
		return E_NOT_FOUND;
	int status = sanitise_svg((struct bytes){(const uint8_t *)svg, strlen(svg)}, &clean);
	if (status == 0)
		status = picture_svg((struct bytes){clean.data, clean.len}, r->max_bytes,
			&ret->bytes, &ret->cut, NULL);
	ret->from = "image/svg+xml";
	return status;
}

/* A picture that cannot be drawn is no reason to show nothing. */
static int pictures(const struct request *r, struct result *ret)
{
	static const char *const types[] = {"image/png", "image/jpeg"};
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		int status = raster(r, types[i], ret);
		if (status == 0 || status == E_NOMEM)
			return status;
		buf_reset(&ret->bytes);
	}
	int status = vector(r, ret);
	if (status != 0)
		buf_reset(&ret->bytes);
	return status;
}

static int add_text(const struct request *r, struct page *p, struct result *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *text = request_text(r, texts[i]);
		if (!text)
			continue;
		ret->from = texts[i];
		return page_add_text(
			p, BLOCK_MONO, (struct bytes){(const uint8_t *)text, strlen(text)});
	}
	return E_NOT_FOUND;
}

static int add_html(const struct request *r, struct page **p, struct result *ret)
{
	const char *html = request_text(r, "text/html");
	if (!html)
		return E_NOT_FOUND;
	ret->from = "text/html";
	int status = page_add_html(*p, (struct bytes){(const uint8_t *)html, strlen(html)});
	if (status == 0 || status == E_NOT_FOUND)
		return status;
	page_free(*p);
	*p = page_new();
	status = add_text(r, *p, ret);
	if (status == 0)
		status = page_add_text(
			*p, BLOCK_NOTE, (struct bytes){(const uint8_t *)note, sizeof note - 1});
	ret->cut = true;
	return status;
}

static int draw(const struct request *r, struct result *ret, struct err *err)
{
	struct page *p = page_new();
	bool marked = false, cut = false;
	int status = add_html(r, &p, ret);
	marked = ret->cut;
	if (status == E_NOT_FOUND)
		status = add_text(r, p, ret);
	if (status == 0)
		status = page_draw(p, r->max_bytes, &ret->bytes, &cut, err);
	else
		err_set(err, status, "nothing in the bundle can be drawn");
	ret->cut = marked || cut;
	page_free(p);
	return status;
}

int render_png(const struct request *r, struct result *ret, struct err *err)
{
	int status = pictures(r, ret);
	ret->cut = status == 0 && ret->cut;
	return status == 0 ? 0 : draw(r, ret, err);
}
