#include "gateway/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/base.h"

struct err_row {
	int code;
	const char *name;
	int status;
	const char *ename;
};

static const struct err_row err_rows[] = {
	{E_NONE, "none", 200, "None"},
	{E_NOMEM, "out_of_memory", 500, "OutOfMemory"},
	{E_INVALID, "invalid", 400, "Invalid"},
	{E_UNAUTHORIZED, "unauthorized", 401, "Unauthorized"},
	{E_FORBIDDEN, "forbidden", 403, "Forbidden"},
	{E_NOT_FOUND, "not_found", 404, "NotFound"},
	{E_CONFLICT, "conflict", 409, "Conflict"},
	{E_GONE, "gone", 410, "Gone"},
	{E_TOO_BIG, "too_large", 413, "TooBig"},
	{E_NO_SPEC, "no_such_kernelspec", 501, "NoSuchKernel"},
	{E_UNAVAILABLE, "unavailable", 503, "Unavailable"},
	{E_TIMEOUT, "timeout", 504, "Timeout"},
	{E_IO, "io", 500, "InputOutputError"},
	{E_ENGINE, "engine", 502, "EngineError"},
	{E_PROTOCOL, "protocol", 502, "ProtocolError"},
	{E_METHOD, "method_not_allowed", 405, "MethodNotAllowed"},
	{E_DEAD, "dead", 503, "DeadKernelError"},
	{E_BUSY, "busy", 409, "Busy"},
	{E_AMBIGUOUS, "ambiguous", 409, "Ambiguous"},
	{E_CAPACITY, "over_capacity", 503, "OverCapacity"},
	{E_QUEUE_TIMEOUT, "queue_timeout", 503, "QueueTimeout"},
	{E_ENGINE_DOWN, "engine_down", 503, "EngineDown"},
	{E_STALE, "stale", 409, "Stale"},
	{E_PARTIAL, "partial", 409, "Partial"},
};

static const struct err_row *err_row(int code)
{
	for (size_t i = 0; i < ARRAY_LEN(err_rows); i++)
		if (err_rows[i].code == code)
			return &err_rows[i];
	return &err_rows[1];
}

/* A sentence that was cut may end inside a character; such a rest would make JSON answers invalid.
 */
static void drop_half_character(char *text, size_t len)
{
	size_t i = len;
	while (i > 0 && len - i < 3 && ((unsigned char)text[i - 1] & 0xc0) == 0x80)
		i--;
	if (i == 0)
		return;
	unsigned char lead = (unsigned char)text[i - 1];
	size_t need = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
	if (len - i < need)
		text[i - 1] = '\0';
}

__attribute__((format(printf, 3, 0))) static void print_cut(
	char *text, size_t size, const char *format, va_list args)
{
	int len = vsnprintf(text, size, format, args);
	if (len >= 0 && (size_t)len >= size)
		drop_half_character(text, size - 1);
}

int err_set(struct err *err, int code, const char *format, ...)
{
	if (!err)
		return code;
	char text[sizeof err->text]; /* the arguments may point into err->text */
	va_list args;
	va_start(args, format);
	print_cut(text, sizeof text, format, args);
	va_end(args);
	err->code = code;
	memcpy(err->text, text, sizeof text);
	return code;
}

int err_wrap(struct err *err, const char *format, ...)
{
	if (!err)
		return E_IO; /* nobody lent a place for the code; any fault is still a fault */
	char context[sizeof err->text];
	va_list args;
	va_start(args, format);
	print_cut(context, sizeof context, format, args);
	va_end(args);
	return err_set(err, err->code, "%s: %s", context, err->text);
}

const char *err_name(int code)
{
	return err_row(code)->name;
}

int err_http_status(int code)
{
	return err_row(code)->status;
}

const char *err_ename(int code)
{
	return err_row(code)->ename;
}
