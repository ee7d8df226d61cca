#include <string.h>

#include "gateway/door/route.h"

/* What a browser shows, and what VS Code asks for before it trusts the URL. Nothing secret. */
static const char page[] =
	"<!doctype html>\n"
	"<html lang=\"en\"><meta charset=\"utf-8\"><title>Coppice</title>\n"
	"<style>body{font:16px/1.5 sans-serif;max-width:42em;margin:3em auto;padding:0 1em}"
	"code{background:#eee;padding:.1em .3em}</style>\n"
	"<h1>Coppice</h1>\n"
	"<p>This is a Jupyter kernel gateway: it runs Python kernels for other programs and has no "
	"notebook page of its own.</p>\n"
	"<p>JupyterLab: <code>jupyter lab --gateway-url=URL "
	"--GatewayClient.auth_token=TOKEN</code></p>\n"
	"<p>VS Code: <em>Existing Jupyter Server</em>, with the URL <code>URL/?token=TOKEN</code>."
	"</p>\n"
	"<p>URL and token were printed where the gateway was started.</p></html>\n";

static void page_get(struct call *r)
{
	answer_header(
		r, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
	answer_bytes(r, 200, "text/html; charset=utf-8",
		(struct bytes){(const uint8_t *)page, sizeof page - 1});
}

const struct route rest_page_routes[] = {
	{METHOD_GET, "/", 0, page_get},
	{METHOD_GET, "/tree", 0, page_get},
	{0},
};
