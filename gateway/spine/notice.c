#include "gateway/spine/notice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/base/json.h"
#include "gateway/spine/desk.h"

#define CONTENT_MAX (64u << 10)

/* Nobody may miss something unsaid: whom it was for connects anew and reads on from the journal. */
static void post_or_close(struct desk *d, struct jmsg *m, uint64_t to)
{
	uint64_t number;
	if (m)
		(void)desk_post(d, m, to, &number); /* closes by itself */
	else
		clients_close(d, to, 1011, "out of memory");
}

static struct jmsg *make(enum channel channel, const char *type, const char *session,
	const struct jmsg *parent, const char *content)
{
	struct jmsg *m;
	if (!content || jmsg_make(channel, type, session, parent, content, &m, NULL) != 0)
		return NULL;
	return m;
}

static struct jmsg *make_status(const char *session, const char *state, const struct jmsg *parent)
{
	char content[64];
	(void)snprintf(content, sizeof content, "{\"execution_state\":\"%s\"}", state); /* fits */
	return make(CHANNEL_IOPUB, "status", session, parent, content);
}

struct jmsg *notice_status_message(
	const struct desk *d, const char *state, const struct jmsg *parent)
{
	return make_status(d->session, state, parent);
}

void notice_status(struct desk *d, const char *state, const struct jmsg *parent, uint64_t to)
{
	AUTO(jmsg_unrefp) struct jmsg *m = make_status(d->session, state, parent);
	post_or_close(d, m, to);
}

void notice_break(struct desk *d, const char *state, uint64_t to)
{
	char session[UUID_SIZE];
	crypto_uuid(session);
	AUTO(jmsg_unrefp) struct jmsg *m = make_status(session, state, NULL);
	post_or_close(d, m, to);
}

void notice_restart(struct desk *d)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	(void)jmsg_make(CHANNEL_IOPUB, "shutdown_reply", d->session, NULL,
		"{\"status\":\"ok\",\"restart\":true}", &m, NULL); /* NULL then: closed below */
	post_or_close(d, m, JOURNAL_TO_ALL);
	notice_status(d, "starting", NULL, JOURNAL_TO_ALL);
}

/* Texts come from us, from engines and from exit reports: not all of them are UTF-8. */
static void add_string(struct buf *b, const char *text)
{
	char plain[1024];
	size_t before = b->len;
	(void)buf_add_json_string(b, text, strlen(text));
	struct bytes added = {.data = b->data + before, .len = b->len - before};
	if (b->failed || json_scan(added, NULL, 0, NULL) == 0)
		return;
	b->len = before;
	(void)copy_text(plain, sizeof plain, text, strlen(text));
	for (char *c = plain; *c; c++) {
		if ((unsigned char)*c > 0x7e)
			*c = '?';
	}
	(void)buf_add_json_string(b, plain, strlen(plain));
}

struct jmsg *notice_stream_message(
	const struct desk *d, const struct jmsg *parent, const char *text)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, CONTENT_MAX);
	(void)buf_add_text(&b, "{\"name\":\"stderr\",\"text\":");
	add_string(&b, text);
	(void)buf_add_text(&b, "}");
	if (b.failed)
		return NULL;
	return make(CHANNEL_IOPUB, "stream", d->session, parent, (const char *)b.data);
}

PRINTF(4, 0)
static void say(
	struct desk *d, uint64_t to, const struct jmsg *parent, const char *format, va_list args)
{
	char text[1024];
	int len = vsnprintf(text, sizeof text - 1, format, args); /* cut, never overrun */
	size_t end = len < 0 ? 0 : (size_t)len;
	if (end > sizeof text - 2)
		end = sizeof text - 2;
	text[end] = '\n';
	text[end + 1] = '\0';
	AUTO(jmsg_unrefp) struct jmsg *m = notice_stream_message(d, parent, text);
	post_or_close(d, m, to);
}

void notice_text(struct desk *d, uint64_t to, const char *format, ...)
{
	struct execution *x = queue_running(&d->queue);
	va_list args;
	va_start(args, format);
	say(d, to, x ? x->request->msg : NULL, format, args);
	va_end(args);
}

void notice_about(struct desk *d, const struct jmsg *parent, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(d, JOURNAL_TO_ALL, parent, format, args);
	va_end(args);
}

/* "execute_request" -> "execute_reply". */
static bool reply_type(const char *type, char ret_text[JMSG_ID_MAX + 8])
{
	static const char request[] = "_request";
	size_t len = strlen(type), tail = sizeof request - 1;
	if (len < tail || strcmp(type + len - tail, request) != 0)
		return false;
	(void)snprintf(ret_text, JMSG_ID_MAX + 8, "%.*s_reply", (int)(len - tail), type); /* fits */
	return true;
}

struct jmsg *notice_reply_message(
	const struct desk *d, const struct jmsg *request, const char *content)
{
	char type[JMSG_ID_MAX + 8];
	if (!reply_type(request->msg_type, type))
		return NULL;
	return make(request->channel, type, d->session, request, content);
}

void notice_reply(struct desk *d, const struct jmsg *request, const char *content, uint64_t to,
	struct jmsg **ret_reply)
{
	char type[JMSG_ID_MAX + 8];
	if (!reply_type(request->msg_type, type))
		return;
	AUTO(jmsg_unrefp) struct jmsg *m = notice_reply_message(d, request, content);
	post_or_close(d, m, to);
	if (ret_reply)
		*ret_reply = TAKE(m);
}

char *notice_error_content(const char *ename, const char *evalue)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, CONTENT_MAX);
	(void)buf_add_text(&b, "{\"status\":\"error\",\"ename\":");
	add_string(&b, ename);
	(void)buf_add_text(&b, ",\"evalue\":");
	add_string(&b, evalue);
	(void)buf_add_text(&b, ",\"traceback\":[]}");
	size_t len;
	return b.failed ? NULL : (char *)buf_take(&b, &len);
}
