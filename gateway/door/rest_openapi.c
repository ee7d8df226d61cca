/* The document of our own API, as it lies beside. */
#include <string.h>

#include "gateway/door/route.h"

/* Lies in the binary as the file is: `make` runs at the top of the tree. */
__asm__(".pushsection .rodata\n"
	".global openapi_json\n"
	".hidden openapi_json\n"
	"openapi_json:\n"
	".incbin \"gateway/door/openapi.json\"\n"
	".byte 0\n"
	".popsection\n");

extern const char openapi_json[];

/* Open: a program looks at it before it has a token, and it holds no secret. */
static void openapi_get(struct call *r)
{
	answer_bytes(r, 200, "application/json",
		(struct bytes){(const uint8_t *)openapi_json, strlen(openapi_json)});
}

const struct route rest_openapi_routes[] = {
	{METHOD_GET, "/openapi.json", 0, openapi_get},
	{0},
};
