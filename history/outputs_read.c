#include "history/outputs.h"

#include <string.h>

#include "gateway/base/crypto.h"
#include "history/outputs_parts.h"
#include "history/spliced.h"

#define FILE_MAX (256u << 20)

struct reading {
	int (*file)(void *data, const char *name, struct buf *ret_content, struct err *err);
	void *data;
	struct buf *ret;
};

static void join(struct bytes list, struct buf *ret)
{
	struct bytes line;
	(void)buf_add(ret, "\"", 1); /* latched, as below */
	for (size_t at = 0; array_next(list, &at, &line);) {
		struct bytes inside = string_inside(line);
		(void)buf_add(ret, inside.data, inside.len);
	}
	(void)buf_add(ret, "\"", 1);
}

static bool is_text_list(struct bytes value)
{
	struct bytes line;
	for (size_t at = 0; array_next(value, &at, &line);)
		if (!is_string(line))
			return false;
	return is_array(value);
}

/* False: there is no such file; the value stands as it is. */
static bool add_file(const struct reading *r, struct bytes value)
{
	AUTO(buf_done) struct buf content;
	char name[OUTPUTS_NAME_SIZE];
	struct err err; /* a kernel may have sent what looks like a reference */
	buf_init(&content, FILE_MAX);
	if (!mime_reference(value, name) || r->file(r->data, name, &content, &err) != 0)
		return false;
	(void)buf_add(r->ret, "\"", 1); /* latched, as below */
	(void)base64_encode((struct bytes){content.data, content.len}, r->ret);
	(void)buf_add_text(r->ret, object_find(value, "end").len ? "\\n\"" : "\"");
	return true;
}

static void add_data(const struct reading *r, struct bytes data)
{
	const char *before = "";
	struct member m;
	(void)buf_add(r->ret, "{", 1); /* latched, as below */
	for (size_t at = 0; object_next(data, &at, &m); before = ",") {
		(void)buf_add_text(r->ret, before);
		(void)buf_add(r->ret, m.key.data, m.key.len);
		(void)buf_add(r->ret, ":", 1);
		if (is_text_list(m.value) && !mime_is_json(string_inside(m.key)))
			join(m.value, r->ret);
		else if (!is_object(m.value) || !add_file(r, m.value))
			(void)buf_add(r->ret, m.value.data, m.value.len);
	}
	(void)buf_add(r->ret, "}", 1);
}

static void add_output(const struct reading *r, struct bytes output)
{
	const char *before = "";
	struct member m;
	(void)buf_add(r->ret, "{", 1); /* latched, as below */
	for (size_t at = 0; object_next(output, &at, &m); before = ",") {
		struct bytes key = string_inside(m.key);
		(void)buf_add_text(r->ret, before);
		(void)buf_add(r->ret, m.key.data, m.key.len);
		(void)buf_add(r->ret, ":", 1);
		if (bytes_equal(key, "data"))
			add_data(r, m.value);
		else if (bytes_equal(key, "text") && is_array(m.value))
			join(m.value, r->ret);
		else
			(void)buf_add(r->ret, m.value.data, m.value.len);
	}
	(void)buf_add(r->ret, "}", 1);
}

int outputs_expand(struct bytes stored,
	int (*file)(void *data, const char *name, struct buf *ret_content, struct err *err),
	void *data, struct buf *ret_json, struct err *err)
{
	struct reading r = {file, data, ret_json};
	const char *before = "";
	struct bytes output;
	(void)buf_add(ret_json, "[", 1); /* the latch is read at the end */
	for (size_t at = 0; array_next(stored, &at, &output) && !ret_json->failed; before = ",") {
		(void)buf_add_text(ret_json, before); /* latched */
		add_output(&r, output);
	}
	(void)buf_add(ret_json, "]", 1); /* latched */
	return buf_check(ret_json, "outputs", err);
}
