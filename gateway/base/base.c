#include "gateway/base/base.h"

#include <string.h>

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);
	if (!p)
		abort();
	return p;
}

char *xstrdup(const char *s)
{
	size_t size = strlen(s) + 1;
	return memcpy(xcalloc(1, size), s, size);
}

void freep(void *pointer_to_pointer)
{
	void **p = pointer_to_pointer;
	free(*p);
	*p = NULL;
}

bool bytes_equal(struct bytes b, const char *text)
{
	size_t len = strlen(text);
	return b.len == len && (len == 0 || memcmp(b.data, text, len) == 0);
}

bool copy_text(char *to, size_t size, const char *from, size_t from_len)
{
	if (size == 0)
		return false;
	size_t len = from_len < size ? from_len : size - 1;
	if (len > 0)
		memcpy(to, from, len);
	to[len] = '\0';
	return len == from_len;
}
