#include "gateway/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BUF_FIRST_SIZE 256

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.max = b->max};
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	b->code = 0;
	if (b->data)
		b->data[0] = '\0';
}

static int buf_fail(struct buf *b, int code)
{
	b->failed = true;
	b->code = code;
	return code;
}

/* Doubles, but never past max and its end mark. need <= max. */
static int buf_grow(struct buf *b, size_t need)
{
	size_t size = b->size ? b->size : BUF_FIRST_SIZE;
	while (size <= need)
		size = size > SIZE_MAX / 2 ? SIZE_MAX : size * 2;
	if (size - 1 > b->max)
		size = b->max + 1;
	uint8_t *data = realloc(b->data, size);
	if (!data)
		return buf_fail(b, E_NOMEM);
	data[b->len] = '\0';
	b->data = data;
	b->size = size;
	return 0;
}

int buf_reserve(struct buf *b, size_t more)
{
	if (b->failed)
		return b->code;
	if (b->max == SIZE_MAX || more > b->max - b->len)
		return buf_fail(b, E_TOO_BIG);
	size_t need = b->len + more;
	return need < b->size ? 0 : buf_grow(b, need);
}

int buf_add(struct buf *b, const void *data, size_t len)
{
	int status = buf_reserve(b, len);
	if (status != 0 || len == 0)
		return status;
	memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buf_add_text(struct buf *b, const char *text)
{
	return buf_add(b, text, strlen(text));
}

int buf_addf(struct buf *b, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	int status = len < 0 ? buf_fail(b, E_NOMEM) : buf_reserve(b, (size_t)len);
	if (status == 0) {
		(void)vsnprintf(
			(char *)b->data + b->len, (size_t)len + 1, format, again); /* measured */
		b->len += (size_t)len;
	}
	va_end(again);
	return status;
}

static void buf_add_escaped(struct buf *b, uint8_t c)
{
	static const char short_names[] = "\bb\ff\nn\rr\tt\"\"\\\\";
	for (const char *at = short_names; *at; at += 2) {
		if ((uint8_t)at[0] == c) {
			(void)buf_add(b, (char[]){'\\', at[1]}, 2); /* latched */
			return;
		}
	}
	(void)buf_addf(b, "\\u%04x", c); /* latched */
}

int buf_add_json_string(struct buf *b, const char *text, size_t len)
{
	size_t from = 0;
	(void)buf_add(b, "\"", 1); /* the latch is read at the end */
	for (size_t i = 0; i < len && !b->failed; i++) {
		uint8_t c = (uint8_t)text[i];
		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		(void)buf_add(b, text + from, i - from); /* latched */
		buf_add_escaped(b, c);
		from = i + 1;
	}
	if (from < len)
		(void)buf_add(b, text + from, len - from); /* latched */
	return buf_add(b, "\"", 1);
}

int buf_check(const struct buf *b, const char *what, struct err *err)
{
	if (!b->failed)
		return 0;
	if (b->code == E_NOMEM)
		return err_set(err, E_NOMEM, "%s: out of memory", what);
	return err_set(err, b->code, "%s: longer than %zu bytes", what, b->max);
}

uint8_t *buf_take(struct buf *b, size_t *ret_len)
{
	if (!b->data)
		(void)buf_reserve(b, 0); /* without memory the caller gets NULL */
	uint8_t *data = b->data;
	if (ret_len)
		*ret_len = b->len;
	*b = (struct buf){.max = b->max};
	return data;
}
