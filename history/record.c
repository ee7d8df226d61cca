#include "history/record.h"

#include <string.h>

#include "gateway/base/json.h"
#include "history/change.h"
#include "history/spliced.h"

#define FACT_MAX   4096u
#define REPORT_MAX (128u << 10)

static const char files_too_big[] = "what was told of them is too much";

void record_init(struct record *r)
{
	*r = (struct record){.store_history = true, .execution_count = "null"};
	buf_init(&r->code, RECORD_CODE_MAX);
	buf_init(&r->error, 4 * FACT_MAX);
	buf_init(&r->exit, FACT_MAX);
	buf_init(&r->report, REPORT_MAX);
	buf_init(&r->amends, 16u << 20);
	buf_init(&r->files, CHANGE_MAX);
	r->outputs = outputs_new();
}

void record_done(struct record *r)
{
	buf_done(&r->code);
	buf_done(&r->error);
	buf_done(&r->exit);
	buf_done(&r->report);
	buf_done(&r->amends);
	buf_done(&r->files);
	outputs_free(r->outputs);
	r->outputs = NULL;
}

static bool is_true(struct bytes raw)
{
	return bytes_equal(raw, "true");
}

static int read_request(struct record *r, const struct jmsg *m, struct err *err)
{
	struct bytes content = m->part[PART_CONTENT];
	struct bytes store = object_find(content, "store_history");
	(void)copy_text(r->msg_id, sizeof r->msg_id, m->msg_id, strlen(m->msg_id));
	(void)copy_text(r->session, sizeof r->session, m->session, strlen(m->session));
	/* An id that is too long or none is as good as absent. */
	if (!json_text(
		    object_find(m->part[PART_METADATA], "cellId"), r->cell_id, sizeof r->cell_id))
		r->cell_id[0] = '\0';
	struct bytes coppice = object_find(m->part[PART_METADATA], "coppice");
	if (!json_text(object_find(coppice, "retry_of"), r->retry_of, sizeof r->retry_of))
		r->retry_of[0] = '\0';
	r->silent = is_true(object_find(content, "silent"));
	r->store_history = store.len == 0 ? !r->silent : is_true(store) && !r->silent;
	(void)string_unescape(object_find(content, "code"), &r->code); /* latched */
	return buf_check(&r->code, "code", err);
}

/* Of one that was forgotten nothing is left. */
static int read_report(struct record *r, const struct jmsg *m, struct err *err)
{
	struct bytes report = object_find(m->part[PART_CONTENT], "report");
	r->is_report = true;
	(void)copy_text(r->msg_id, sizeof r->msg_id, m->parent_id, strlen(m->parent_id));
	(void)buf_add(&r->report, report.data, report.len); /* latched */
	return buf_check(&r->report, "report", err);
}

/* 1: *ret_msg is the next message; 0: no more. What cannot be read is counted and left out. */
static int next_message(struct record *r, const struct history_source *source,
	struct jmsg **ret_msg, struct err *err)
{
	for (;;) {
		struct bytes frame;
		struct err why;
		int status = source->next(source->data, &frame, err);
		if (status != 1)
			return status;
		status = jmsg_from_frame(frame, ret_msg, &why);
		if (status == 0)
			return 1;
		if (status == E_NOMEM)
			return err_set(err, E_NOMEM, "%s", why.text);
		r->unreadable++;
	}
}

static uint64_t fact(struct bytes content, const char *key)
{
	uint64_t number = 0;
	(void)number_u64(object_find(content, key), &number); /* else it was not reached */
	return number;
}

/* One that is too large is none; the last of two counts, as with the other facts. */
static void read_files(struct record *r, struct bytes content)
{
	struct bytes files = object_find(content, "files");
	struct bytes reason = object_find(content, "files_reason");
	buf_done(&r->files);
	buf_init(&r->files, CHANGE_MAX);
	if (!json_text(reason, r->files_reason, sizeof r->files_reason))
		r->files_reason[0] = '\0';
	if (is_object(files) && buf_add(&r->files, files.data, files.len) != 0)
		(void)copy_text(r->files_reason, sizeof r->files_reason, files_too_big,
			strlen(files_too_big)); /* fits */
}

/* Nothing ran, so there is nothing else to be told. */
static int read_files_alone(struct record *r, const struct jmsg *m)
{
	struct bytes content = m->part[PART_CONTENT];
	(void)copy_text(r->msg_id, sizeof r->msg_id, m->msg_id, strlen(m->msg_id));
	(void)copy_text(r->session, sizeof r->session, m->session, strlen(m->session));
	(void)copy_text(r->status, sizeof r->status, "ok", 2); /* fits */
	r->is_files = r->ended = true;
	r->store_history = false;
	r->done_us = r->accepted_us = fact(content, "done_us");
	read_files(r, content);
	return 0;
}

int record_begin(struct record *r, const struct history_source *source, struct err *err)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	int status = next_message(r, source, &m, err);
	if (status < 0)
		return status;
	if (status == 1 && strcmp(m->msg_type, "coppice_report") == 0)
		return read_report(r, m, err);
	if (status == 1 && strcmp(m->msg_type, "coppice_files") == 0)
		return read_files_alone(r, m);
	if (status == 0 || strcmp(m->msg_type, "execute_request") != 0)
		return err_set(err, E_INVALID, "the run does not begin with an execute_request");
	return read_request(r, m, err);
}

void record_add_cut(struct buf *b, const char *key, struct bytes raw)
{
	char text[1024];
	AUTO(buf_done) struct buf whole;
	buf_init(&whole, 64u << 20);
	(void)string_unescape(raw, &whole); /* what fits */
	if (whole.code == E_NOMEM)
		b->failed = true, b->code = E_NOMEM;
	if (!copy_text(text, sizeof text, whole.data ? (char *)whole.data : "", whole.len))
		for (size_t n = strlen(text); n > 0 && ((uint8_t)text[n] & 0x80);)
			text[--n] = '\0';  /* no half of a character at the cut */
	(void)buf_addf(b, "\"%s\":", key); /* latched, as below */
	(void)buf_add_json_string(b, text, strlen(text));
}

/* A kernel may send such a message too: only the last message of a run is the spine's, so a later
 * one counts whole, and what is wrong with one counts if no other follows. */
static int read_facts(struct record *r, struct bytes content, struct err *err)
{
	buf_reset(&r->error);
	buf_reset(&r->exit);
	(void)copy_text(r->execution_count, sizeof r->execution_count, "null", 4); /* fits */
	struct bytes ename = object_find(content, "ename"), exit = object_find(content, "exit");
	struct bytes count = object_find(content, "execution_count");
	uint64_t number;
	if (!json_text(object_find(content, "status"), r->status, sizeof r->status))
		return err_set(err, E_INVALID, "the facts of the run have no status");
	if (number_u64(count, &number))
		(void)copy_text(r->execution_count, sizeof r->execution_count,
			(const char *)count.data, count.len);
	r->accepted_us = fact(content, "accepted_us");
	r->sent_us = fact(content, "sent_us");
	r->running_us = fact(content, "running_us");
	r->done_us = fact(content, "done_us");
	r->queue_position = fact(content, "queue_position");
	r->peak_memory_bytes = fact(content, "peak_memory_bytes");
	if (!json_text(object_find(content, "environment"), r->environment, sizeof r->environment))
		r->environment[0] = '\0';
	if (is_string(ename)) {
		(void)buf_add_text(&r->error, "{"); /* latched, as below */
		record_add_cut(&r->error, "ename", ename);
		(void)buf_add_text(&r->error, ",");
		record_add_cut(&r->error, "evalue", object_find(content, "evalue"));
		(void)buf_add_text(&r->error, "}");
	}
	if (is_object(exit))
		(void)buf_add(&r->exit, exit.data, exit.len); /* latched */
	read_files(r, content);
	int rc = buf_check(&r->error, "the error of the run", err);
	return rc == 0 ? buf_check(&r->exit, "the exit of the run", err) : rc;
}

/* An update concerns every output of that display, of this run and of earlier ones. */
static int take_update(
	struct record *r, const struct jmsg *m, const struct record_others *others, struct err *err)
{
	char id[DISPLAY_ID_SIZE];
	struct bytes content = m->part[PART_CONTENT];
	outputs_display_id(content, id);
	if (!id[0])
		return 0;
	int status = outputs_update(r->outputs, id, content, err);
	return status == 0 ? others->update(others->data, id, content, err) : status;
}

static int take(
	struct record *r, const struct jmsg *m, const struct record_others *others, struct err *err)
{
	struct outputs *outputs = NULL;
	r->ended = strcmp(m->msg_type, "coppice_execution") == 0;
	if (r->ended) {
		r->facts = read_facts(r, m->part[PART_CONTENT], &r->facts_err);
		return 0;
	}
	if (m->channel != CHANNEL_IOPUB || !m->parent_id[0])
		return 0;
	if (strcmp(m->msg_type, "update_display_data") == 0)
		return take_update(r, m, others, err);
	if (!outputs_is_output(m->msg_type))
		return 0;
	if (strcmp(m->parent_id, r->msg_id) == 0)
		return outputs_message(r->outputs, m->msg_type, m->part[PART_CONTENT], err);
	int status = others->outputs(others->data, m->parent_id, &outputs, err);
	if (status == 0 && outputs)
		status = outputs_message(outputs, m->msg_type, m->part[PART_CONTENT], err);
	return status;
}

int record_rest(struct record *r, const struct history_source *source,
	const struct record_others *others, struct err *err)
{
	int status = 1;
	while (status == 1) {
		AUTO(jmsg_unrefp) struct jmsg *m = NULL;
		status = next_message(r, source, &m, err);
		if (status == 1) {
			status = take(r, m, others, err);
			if (status == 0)
				status = 1;
		}
	}
	if (status == 0 && !r->ended)
		return err_set(err, E_INVALID, "the run ends without its facts");
	return status == 0 && r->facts != 0 ? err_set(err, r->facts, "%s", r->facts_err.text)
					    : status;
}

uint64_t record_started_us(const struct record *r)
{
	return r->running_us ? r->running_us : r->sent_us ? r->sent_us : r->accepted_us;
}

/* A clock that went back gives 0. */
uint64_t record_duration_us(const struct record *r)
{
	uint64_t from = record_started_us(r);
	return from && r->done_us > from ? r->done_us - from : 0;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

void record_summary(const struct record *r, char ret_text[SUMMARY_SIZE])
{
	if (r->is_files) {
		(void)copy_text(ret_text, SUMMARY_SIZE, r->files_summary, strlen(r->files_summary));
		return;
	}
	const uint8_t *at = r->code.data, *end = at ? at + r->code.len : NULL;
	size_t n = 0, characters = 0;
	while (at && at < end && (is_blank(*at) || *at == '\n'))
		at++;
	for (; at && at < end && *at != '\n' && n < SUMMARY_SIZE - 1; at++) {
		if ((*at & 0xc0) != 0x80 && ++characters > 72)
			break;
		ret_text[n++] = (char)(*at < ' ' || *at == 0x7f ? ' ' : *at);
	}
	while (n > 0 && ret_text[n - 1] == ' ')
		n--;
	ret_text[n] = '\0';
}
