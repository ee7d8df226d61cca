#include "gateway/door/say.h"

#include <string.h>

#include "gateway/base/buf.h"

#define TEXT_MAX 4096

struct making {
	enum channel channel;
	const char *type;
	const char *session;
	struct bytes parent;
	const struct buf *content;
	uint64_t number;
};

static int make(const struct making *m, struct entry **ret, struct err *err)
{
	AUTO(jmsg_unrefp) struct jmsg *made = NULL;
	struct jmsg parent = {.part = {[PART_HEADER] = m->parent}};
	int status = buf_check(m->content, "a notice", err);
	if (status == 0)
		status = jmsg_make(m->channel, m->type, m->session,
			m->parent.len > 0 ? &parent : NULL, (const char *)m->content->data, &made,
			err);
	if (status != 0)
		return status;
	struct entry *e = entry_new(made, m->number, JOURNAL_TO_ALL);
	if (!e)
		return err_set(err, E_NOMEM, "a notice: out of memory");
	*ret = e;
	return 0;
}

int say_stream(const char *session, struct bytes parent, const char *text, uint64_t number,
	struct entry **ret, struct err *err)
{
	AUTO(buf_done) struct buf content;
	buf_init(&content, TEXT_MAX);
	(void)buf_add_text(&content, "{\"name\":\"stderr\",\"text\":"); /* make() checks */
	(void)buf_add_json_string(&content, text, strlen(text));
	(void)buf_add_text(&content, "}");
	struct making m = {CHANNEL_IOPUB, "stream", session, parent, &content, number};
	return make(&m, ret, err);
}

static void put_failure(struct buf *content, const char *text)
{
	/* make() checks the latch. */
	(void)buf_addf(content,
		"{\"status\":\"error\",\"ename\":\"%s\",\"evalue\":", err_ename(E_TOO_BIG));
	(void)buf_add_json_string(content, text, strlen(text));
	(void)buf_add_text(content, ",\"traceback\":[]}");
}

int say_reply(const char *session, const struct jmsg *reply, const char *text, uint64_t number,
	struct entry **ret, struct err *err)
{
	AUTO(buf_done) struct buf content;
	buf_init(&content, TEXT_MAX);
	put_failure(&content, text);
	struct making m = {reply->channel, reply->msg_type, session, reply->part[PART_PARENT],
		&content, number};
	return make(&m, ret, err);
}

int say_refusal(const char *session, const struct jmsg *request, const char *text,
	struct entry **ret, struct err *err)
{
	static const char suffix[] = "_request";
	char type[JMSG_ID_MAX + 8];
	size_t len = strlen(request->msg_type), cut = sizeof suffix - 1;
	if (len <= cut || strcmp(request->msg_type + len - cut, suffix) != 0)
		return err_set(err, E_INVALID, "%s is no request", request->msg_type);
	memcpy(type, request->msg_type, len - cut);
	memcpy(type + len - cut, "_reply", sizeof "_reply");
	AUTO(buf_done) struct buf content;
	buf_init(&content, TEXT_MAX);
	put_failure(&content, text);
	struct making m = {
		request->channel, type, session, request->part[PART_HEADER], &content, 0};
	return make(&m, ret, err);
}

int say_idle(const char *session, const struct jmsg *request, struct entry **ret, struct err *err)
{
	AUTO(buf_done) struct buf content;
	buf_init(&content, TEXT_MAX);
	(void)buf_add_text(&content, "{\"execution_state\":\"idle\"}"); /* make() checks */
	struct making m = {
		CHANNEL_IOPUB, "status", session, request->part[PART_HEADER], &content, 0};
	return make(&m, ret, err);
}
