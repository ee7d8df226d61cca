#include "gateway/spine/stream_text.h"

#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/base/json.h"

#define FRAME_BYTES 64 /* {"name":"...","text":"..."} without the two, with room to spare */

/* What lies between the values, blanks left out, is to be this and nothing else. */
static bool is_only(struct bytes content, struct bytes a, struct bytes b, const char *shape)
{
	const uint8_t *at = content.data, *end = content.data + content.len;
	struct bytes first = a.data < b.data ? a : b, second = a.data < b.data ? b : a;
	while (at < end) {
		if (at == first.data)
			at += first.len;
		else if (at == second.data)
			at += second.len;
		else if (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
			at++;
		else if (*shape && *at == (uint8_t)*shape)
			at++, shape++;
		else
			return false;
	}
	return *shape == '\0';
}

static bool is_string(struct bytes raw)
{
	return raw.len >= 2 && raw.data[0] == '"';
}

bool stream_text_read(const struct jmsg *m, struct stream_text *ret)
{
	struct json_want wants[] = {{.key = "name"}, {.key = "text"}};
	struct bytes content = m->part[PART_CONTENT];
	if (m->channel != CHANNEL_IOPUB || strcmp(m->msg_type, "stream") != 0 || m->n_buffers > 0)
		return false;
	if (json_scan(content, wants, ARRAY_LEN(wants), NULL) != 0)
		return false;
	struct bytes name = wants[0].value, text = wants[1].value;
	if (!is_string(name) || !is_string(text))
		return false;
	if (!is_only(content, name, text, "{\"name\":,\"text\":}") &&
		!is_only(content, name, text, "{\"text\":,\"name\":}"))
		return false;
	ret->name = name;
	ret->text = (struct bytes){text.data + 1, text.len - 2};
	return true;
}

int stream_text_make(
	const struct jmsg *like, const struct stream_text *what, struct jmsg **ret, struct err *err)
{
	AUTO(buf_done) struct buf content;
	size_t size = what->name.len + what->text.len + FRAME_BYTES;
	buf_init(&content, size);
	(void)buf_reserve(&content, size); /* latched, as the rest */
	(void)buf_add_text(&content, "{\"name\":");
	(void)buf_add(&content, what->name.data, what->name.len);
	(void)buf_add_text(&content, ",\"text\":\"");
	(void)buf_add(&content, what->text.data, what->text.len);
	(void)buf_add_text(&content, "\"}");
	int rc = buf_check(&content, "stream text", err);
	if (rc != 0)
		return rc;
	struct jmsg_source source = {.channel = like->channel};
	memcpy(source.part, like->part, sizeof source.part);
	source.part[PART_CONTENT] = (struct bytes){content.data, content.len};
	return jmsg_new(&source, false, ret, err);
}
