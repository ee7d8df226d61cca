#include "history/pointer.h"

#include <stdio.h>
#include <string.h>

#include "history/spliced.h"

static const char head_file[] = "coppice-file 1\n";
static const char head_lost[] = "coppice-lost 1\n";

bool is_hex_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
	return len > 0;
}

size_t pointer_chunks(uint64_t bytes)
{
	return (size_t)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES);
}

void pointer_add(struct buf *b, uint64_t bytes, const char *names, size_t n)
{
	(void)buf_addf(b, "%s%llu\n", head_file, (unsigned long long)bytes); /* latched, as below */
	for (size_t i = 0; i < n; i++) {
		(void)buf_add(b, names + i * CHUNK_NAME_LEN, CHUNK_NAME_LEN);
		(void)buf_add(b, "\n", 1);
	}
}

/* Of one length, filled up: what has another is not looked at by who reads a folder. */
void pointer_add_lost(struct buf *b, unsigned mode, uint64_t bytes, const char *reason)
{
	char text[POINTER_LOST + 1];
	int n = snprintf(text, sizeof text, "%s%o %llu\n%.*s", head_lost, mode,
		(unsigned long long)bytes, (int)POINTER_REASON - 1, reason); /* fits */
	memset(text + n, ' ', POINTER_LOST - (size_t)n - 1);
	text[POINTER_LOST - 1] = '\n';
	(void)buf_add(b, text, POINTER_LOST); /* latched */
}

static size_t digits(uint64_t number)
{
	size_t n = 1;
	while ((number /= 10) > 0)
		n++;
	return n;
}

bool pointer_may_be(uint64_t size)
{
	const size_t line = CHUNK_NAME_LEN + 1, head = sizeof head_file - 1;
	if (size == POINTER_LOST)
		return true;
	if (size <= head || size > POINTER_MAX)
		return false;
	uint64_t n = (size - head) / line, most = n * CHUNK_BYTES;
	if (n == 0)
		return false;
	uint64_t least = most - CHUNK_BYTES + 1, rest = size - head - n * line - 1;
	return rest >= digits(least) && rest <= digits(most);
}

/* "DIGITS\n" at the front, which go; false: it is something else. */
static bool take_number(struct bytes *text, unsigned char end, uint64_t *ret)
{
	const uint8_t *at = memchr(text->data, end, text->len < 24 ? text->len : 24);
	size_t n = at ? (size_t)(at - text->data) : 0;
	if (!at || (n > 1 && text->data[0] == '0') ||
		!number_u64((struct bytes){text->data, n}, ret))
		return false;
	*text = (struct bytes){at + 1, text->len - n - 1};
	return true;
}

static bool read_chunks(struct bytes text, struct pointer *p)
{
	const size_t line = CHUNK_NAME_LEN + 1;
	if (!take_number(&text, '\n', &p->bytes) || text.len % line != 0)
		return false;
	p->n = text.len / line;
	p->chunks = text;
	if (p->n == 0 || p->n > POINTER_CHUNKS || p->n != pointer_chunks(p->bytes))
		return false;
	for (size_t i = 0; i < p->n; i++) {
		const char *name = (const char *)text.data + i * line;
		if (!is_hex_name(name, CHUNK_NAME_LEN) || name[CHUNK_NAME_LEN] != '\n')
			return false;
	}
	return true;
}

static bool read_lost(struct bytes text, struct pointer *p)
{
	static const struct {
		const char *text;
		unsigned mode;
	} modes[] = {{"100644 ", MODE_FILE}, {"100755 ", MODE_EXECUTABLE}, {"120000 ", MODE_LINK}};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (text.len > 7 && memcmp(text.data, modes[i].text, 7) == 0)
			p->mode = modes[i].mode;
	if (p->mode == 0)
		return false;
	text = (struct bytes){text.data + 7, text.len - 7};
	if (!take_number(&text, '\n', &p->bytes) || text.len == 0 ||
		text.data[text.len - 1] != '\n')
		return false;
	size_t n = text.len - 1;
	while (n > 0 && text.data[n - 1] == ' ')
		n--;
	p->is_lost = true;
	return n > 0 && copy_text(p->reason, sizeof p->reason, (const char *)text.data, n) &&
	       strlen(p->reason) == n && !strchr(p->reason, '\n');
}

bool pointer_read(struct bytes text, struct pointer *ret)
{
	size_t n = sizeof head_file - 1; /* both are as long */
	*ret = (struct pointer){0};
	if (text.len <= n || text.len > POINTER_MAX)
		return false;
	struct bytes rest = {text.data + n, text.len - n};
	if (memcmp(text.data, head_file, n) == 0)
		return read_chunks(rest, ret);
	return text.len == POINTER_LOST && memcmp(text.data, head_lost, n) == 0 &&
	       read_lost(rest, ret);
}
