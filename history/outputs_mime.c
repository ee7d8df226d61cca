#include "history/outputs_parts.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/crypto.h"
#include "history/spliced.h"

static const struct {
	const char *type, *ending;
} binary_types[] = {
	{"image/png", "png"},
	{"image/jpeg", "jpg"},
	{"image/gif", "gif"},
	{"image/webp", "webp"},
	{"image/bmp", "bmp"},
	{"image/tiff", "tiff"},
	{"application/pdf", "pdf"},
	{"application/zip", "zip"},
	{"application/octet-stream", "bin"},
	{"audio/wav", "wav"},
	{"audio/mpeg", "mp3"},
	{"audio/ogg", "ogg"},
	{"video/mp4", "mp4"},
	{"video/webm", "webm"},
};

/* NULL: not a type of binary data. */
static const char *ending_of(struct bytes type)
{
	for (size_t i = 0; i < ARRAY_LEN(binary_types); i++)
		if (bytes_equal(type, binary_types[i].type))
			return binary_types[i].ending;
	return NULL;
}

bool mime_is_json(struct bytes inside_key)
{
	static const char end[] = "+json";
	size_t n = sizeof end - 1;
	return bytes_equal(inside_key, "application/json") ||
	       (inside_key.len > n && memcmp(inside_key.data + inside_key.len - n, end, n) == 0);
}

void out_files_free(struct out_file *files)
{
	while (files) {
		struct out_file *next = files->next;
		free(files->data);
		free(files);
		files = next;
	}
}

static struct out_file *file_put(struct out_file **files, const char *name)
{
	struct out_file *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	(void)snprintf(f->name, sizeof f->name, "%s", name);
	f->next = *files;
	*files = f;
	return f;
}

bool mime_reference(struct bytes value, char ret_name[OUTPUTS_NAME_SIZE])
{
	struct bytes name = string_inside(object_find(value, OUTPUTS_FILE_KEY));
	if (name.len < 6 || memcmp(name.data, "out-", 4) != 0 || memchr(name.data, '/', name.len) ||
		memchr(name.data, '\\', name.len))
		return false;
	return copy_text(ret_name, OUTPUTS_NAME_SIZE, (const char *)name.data, name.len);
}

int mime_files(struct outputs *o, struct bytes data, struct out_file **files)
{
	struct member m;
	for (size_t at = 0; object_next(data, &at, &m);) {
		char name[OUTPUTS_NAME_SIZE];
		if (!is_object(m.value) || !mime_reference(m.value, name))
			continue;
		if (!file_put(files, name))
			return E_NOMEM;
		unsigned long number = strtoul(name + 4, NULL, 10);
		if (number > o->last_file && number < 1u << 31)
			o->last_file = (unsigned)number;
	}
	return 0;
}

/* The text is base64 of more than OUTPUTS_FILE_BYTES and comes back the same: it is a file. */
static bool add_file(struct outputs *o, struct member m, struct out_file **files, struct buf *ret)
{
	struct bytes text = string_inside(m.value);
	const char *ending = ending_of(string_inside(m.key));
	char name[OUTPUTS_NAME_SIZE];
	AUTO(buf_done) struct buf content;
	buf_init(&content, text.len);
	if (!ending || text.len <= OUTPUTS_FILE_BYTES / 3 * 4)
		return false;
	bool newline = memcmp(text.data + text.len - 2, "\\n", 2) == 0;
	if (newline)
		text.len -= 2;
	if (base64_decode(text, &content) != 0)
		return false; /* without memory it stays text */
	(void)snprintf(name, sizeof name, "out-%u.%s", o->last_file + 1, ending);
	struct out_file *f = file_put(files, name);
	if (!f)
		return false;
	o->last_file++;
	f->data = buf_take(&content, &f->len);
	(void)buf_addf(ret, "{\"" OUTPUTS_FILE_KEY "\":\"%s\"%s}", name,
		newline ? ",\"end\":\"\\n\"" : ""); /* latched */
	return true;
}

/* Past the next line of the inside of a string. */
static size_t line_end(struct bytes inside, size_t at)
{
	while (at < inside.len) {
		const uint8_t *escape = memchr(inside.data + at, '\\', inside.len - at);
		if (!escape)
			return inside.len;
		at = (size_t)(escape - inside.data) + 2;
		if (escape[1] == 'n')
			return at;
	}
	return inside.len;
}

int lines_add(struct bytes inside, struct buf *ret)
{
	(void)buf_add(ret, "[", 1); /* the latch is read at the end */
	for (size_t at = 0; at < inside.len && !ret->failed;) {
		size_t end = line_end(inside, at);
		(void)buf_add_text(ret, at == 0 ? "\n\"" : ",\n\""); /* latched, as below */
		(void)buf_add(ret, inside.data + at, end - at);
		(void)buf_add(ret, "\"", 1);
		at = end;
	}
	return buf_add(ret, "]", 1);
}

static void add_value(struct outputs *o, struct member m, struct out_file **files, struct buf *ret)
{
	struct bytes inside = string_inside(m.value);
	if (is_string(m.value) && add_file(o, m, files, ret))
		return;
	/* All latched. */
	if (inside.len > 0 && !mime_is_json(string_inside(m.key)) &&
		line_end(inside, 0) < inside.len)
		(void)lines_add(inside, ret);
	else
		(void)buf_add(ret, m.value.data, m.value.len);
}

int mime_add(struct outputs *o, struct bytes data, struct out_file **files, struct buf *ret)
{
	const char *before = "\n";
	struct member m;
	(void)buf_add_text(ret, "\"data\":{"); /* the latch is read at the end */
	for (size_t at = 0; object_next(data, &at, &m) && !ret->failed; before = ",\n") {
		(void)buf_add_text(ret, before); /* latched, as below */
		(void)buf_add(ret, m.key.data, m.key.len);
		(void)buf_add(ret, ":", 1);
		add_value(o, m, files, ret);
	}
	return buf_add(ret, "}", 1);
}
