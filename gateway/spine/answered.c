#include "gateway/spine/answered.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/spine/msg_key.h"
#include "gateway/spine/notice.h"

#define REPLY_BYTES (64u << 10) /* largest reply that is kept */

void answers_init(struct answers *as)
{
	*as = (struct answers){0};
	list_init(&as->all);
}

static void forget_oldest(struct answers *as)
{
	struct answered *old = CONTAINER_OF(as->all.next, struct answered, link);
	HASH_DEL(as->by_key, old);
	list_remove(&old->link);
	jmsg_unref(old->reply);
	free((char *)(uintptr_t)old->session); /* msg_id and msg_type lie behind it */
	free(old);
	as->n--;
}

void answers_done(struct answers *as)
{
	while (!list_empty(&as->all))
		forget_oldest(as);
}

struct answered *answers_find(const struct answers *as, const char *session, const char *msg_id)
{
	struct answered *a;
	struct msg_key key = msg_key_of(session, msg_id);
	HASH_FIND(hh, as->by_key, key.text, key.len, a);
	return a;
}

struct answered *answers_execution(const struct answers *as, const char *msg_id)
{
	LIST_EACH (at, &as->all) {
		struct answered *a = CONTAINER_OF(at, struct answered, link);
		if (a->status != EXECUTION_OPEN && strcmp(a->msg_id, msg_id) == 0)
			return a;
	}
	return NULL;
}

static void keep_texts(struct answered *a, const struct answered *what)
{
	struct msg_key key = msg_key_of(what->session, what->msg_id);
	size_t type_len = strlen(what->msg_type);
	char *text = xcalloc(1, key.len + 1 + type_len + 1);
	memcpy(text, key.text, key.len);
	memcpy(text + key.len + 1, what->msg_type, type_len);
	a->session = text;
	a->msg_id = text + strlen(text) + 1;
	a->msg_type = text + key.len + 1;
}

/* Only the last few replies are kept: reply_from is the oldest that may still have its own. */
static void drop_old_reply(struct answers *as, struct answered *now)
{
	if (!as->reply_from)
		as->reply_from = now;
	if (++as->n_replies <= ANSWERED_REPLIES)
		return;
	struct answered *old = as->reply_from;
	jmsg_unref(old->reply);
	old->reply = NULL;
	as->n_replies--;
	as->reply_from = CONTAINER_OF(old->link.next, struct answered, link);
}

void answers_add(struct answers *as, const struct answered *what)
{
	struct answered *old = answers_find(as, what->session, what->msg_id);
	if (old) {
		old->idle_at = what->idle_at;
		return;
	}
	if (as->n == ANSWERED_MAX)
		forget_oldest(as);
	struct answered *now = xcalloc(1, sizeof *now);
	*now = *what;
	keep_texts(now, what);
	bool fits = what->reply && what->reply->frame.len <= REPLY_BYTES;
	now->reply = fits ? jmsg_ref(what->reply) : NULL;
	size_t key_len = (size_t)(now->msg_type - now->session) - 1;
	HASH_ADD_KEYPTR(hh, as->by_key, now->session, key_len, now);
	list_append(&as->all, &now->link);
	as->n++;
	drop_old_reply(as, now);
}

void answers_add_reply(struct answers *as, struct jmsg *m, uint64_t number, uint64_t client)
{
	static const char tail[] = "_reply";
	size_t len = strlen(m->msg_type), tail_len = sizeof tail - 1;
	bool is_reply = len > tail_len && strcmp(m->msg_type + len - tail_len, tail) == 0;
	if (!is_reply || m->channel == CHANNEL_STDIN || !*m->parent_id ||
		answers_find(as, m->parent_session, m->parent_id))
		return;
	struct outcome outcome = {.status = EXECUTION_OPEN, .execution_count = -1};
	if (strcmp(m->msg_type, "execute_reply") == 0)
		(void)outcome_read(m, &outcome); /* false: nothing is known of it */
	struct answered a = {
		.session = m->parent_session,
		.msg_id = m->parent_id,
		.msg_type = m->parent_type,
		.channel = m->channel,
		.client = client,
		.reply_at = number,
		.idle_at = number,
		.status = outcome.status,
		.execution_count = outcome.execution_count,
		.reply = m,
	};
	answers_add(as, &a);
}

void answers_forget(struct answers *as, const char *msg_id)
{
	LIST_EACH (at, &as->all) {
		struct answered *a = CONTAINER_OF(at, struct answered, link);
		if (a->reply && strcmp(a->msg_id, msg_id) == 0)
			jmsg_unref(TAKE(a->reply));
	}
}

struct jmsg *answered_request(const struct answered *a)
{
	AUTO(buf_done) struct buf header;
	struct jmsg *m = NULL;
	buf_init(&header, 32 * JMSG_ID_MAX); /* an id may grow sixfold by its escapes */
	/* Every result is in the latch. */
	(void)buf_add_text(&header, "{\"msg_id\":");
	(void)buf_add_json_string(&header, a->msg_id, strlen(a->msg_id));
	(void)buf_add_text(&header, ",\"session\":");
	(void)buf_add_json_string(&header, a->session, strlen(a->session));
	(void)buf_add_text(&header, ",\"msg_type\":");
	(void)buf_add_json_string(&header, a->msg_type, strlen(a->msg_type));
	(void)buf_add_text(&header, ",\"username\":\"\",\"version\":\"5.3\"}");
	if (header.failed)
		return NULL;
	struct jmsg_source source = {.channel = a->channel};
	source.part[PART_HEADER] = (struct bytes){header.data, header.len};
	source.part[PART_CONTENT] = (struct bytes){(const uint8_t *)"{}", 2};
	return jmsg_new(&source, false, &m, NULL) == 0 ? m : NULL;
}

char *answered_content(const struct answered *a)
{
	static const char lost[] = "was cut from the journal before this client read it, which was "
				   "too far behind";
	char text[256];
	if (a->status == EXECUTION_ABORTED || a->status == EXECUTION_DIED)
		return xstrdup(NOTICE_ABORTED);
	if (a->status == EXECUTION_OK && a->execution_count >= 0) {
		(void)snprintf(text, sizeof text,
			"{\"status\":\"ok\",\"execution_count\":%lld,\"payload\":[],"
			"\"user_expressions\":{}}",
			(long long)a->execution_count); /* fits */
		return xstrdup(text);
	}
	(void)snprintf(text, sizeof text, "%s %s",
		a->status == EXECUTION_ERROR ? "the cell failed; what it failed of" : "the reply",
		lost); /* fits */
	return notice_error_content("ReplyLost", text);
}
