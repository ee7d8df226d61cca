#include "gateway/spine/facts.h"

#include <ctype.h>
#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/base/json.h"
#include "gateway/spine/desk.h"

#define FACTS_MAX   65536u
#define REPORT_MAX  131072u
#define FACT_MAX    16384u /* of the error's name or value; the whole is among the outputs */
#define PEAK_DIGITS 15u	   /* readers of JSON round what is larger */

static void add_exit(struct buf *b, const struct kernel_death *death)
{
	(void)buf_addf(b,
		",\"exit\":{\"%s\":%d,\"cause\":", death->cause == DEATH_EXIT ? "code" : "signal",
		death->code);
	(void)buf_add_json_string(b, death->text, strlen(death->text));
	(void)buf_addf(b, "}");
}

/* As the reply says it; what is no text is left out. */
static void add_error(struct buf *b, const struct jmsg *reply)
{
	struct json_want wants[] = {{.key = "ename"}, {.key = "evalue"}};
	if (!reply || json_scan(reply->part[PART_CONTENT], wants, ARRAY_LEN(wants), NULL) != 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
		struct bytes value = wants[i].value;
		if (value.len == 0 || value.data[0] != '"' || value.len > FACT_MAX)
			continue;
		(void)buf_addf(b, ",\"%s\":", wants[i].key); /* checked by the caller */
		(void)buf_add(b, value.data, value.len);
	}
}

/* Our own kernels say such things in the reply's metadata, so that they are there for each cell of
 * a burst. */
static struct bytes said_by(const struct jmsg *reply, const char *key)
{
	struct json_want ours = {.key = "coppice"}, want = {.key = key};
	if (json_scan(reply->part[PART_METADATA], &ours, 1, NULL) != 0 ||
		!json_is_object(ours.value) || json_scan(ours.value, &want, 1, NULL) != 0)
		return (struct bytes){0};
	return want.value;
}

uint64_t facts_peak(const struct jmsg *reply)
{
	const struct bytes peak = said_by(reply, "peak_bytes");
	uint64_t bytes = 0;
	if (peak.len > PEAK_DIGITS)
		return 0;
	for (size_t i = 0; i < peak.len; i++) {
		if (!isdigit(peak.data[i]))
			return 0;
		bytes = 10 * bytes + (uint64_t)(peak.data[i] - '0');
	}
	return bytes;
}

enum facts_files facts_files(const struct jmsg *reply)
{
	struct bytes said = said_by(reply, "files");
	if (bytes_equal(said, "\"same\""))
		return FACTS_FILES_SAME;
	return bytes_equal(said, "\"changed\"") || bytes_equal(said, "\"later\"")
		       ? FACTS_FILES_CHANGED
		       : FACTS_FILES_UNSAID;
}

static void add_history(struct buf *b, const char *history)
{
	if (!history || !*history)
		return;
	(void)buf_addf(b, ",\"history\":"); /* checked by the caller */
	(void)buf_add_json_string(b, history, strlen(history));
}

static void add_stand(struct buf *b, const struct stand_at *at)
{
	if (at->version == 0)
		return;
	/* Checked by the caller. */
	(void)buf_addf(b, ",\"at\":\"%s\",\"branch\":\"%s\",\"after_version\":%llu", at->node,
		at->branch, (unsigned long long)at->version);
}

/* By hand: cJSON writes a time in microseconds as 1.7e15. */
static void add_facts(
	struct buf *b, const struct execution *x, const char *environment, int64_t now_us)
{
	const struct request *r = x->request;
	const char *status =
		execution_status_name(x->status == EXECUTION_OPEN ? EXECUTION_ERROR : x->status);
	(void)buf_addf(b, "{\"msg_id\":");
	(void)buf_add_json_string(b, x->msg_id, strlen(x->msg_id));
	(void)buf_addf(b, ",\"first\":%llu,\"epoch\":%llu,\"status\":\"%s\",\"execution_count\":",
		(unsigned long long)x->first, (unsigned long long)x->desk->epoch, status);
	if (x->execution_count >= 0)
		(void)buf_addf(b, "%lld", (long long)x->execution_count);
	else
		(void)buf_addf(b, "null");
	(void)buf_addf(b,
		",\"accepted_us\":%lld,\"sent_us\":%lld,\"running_us\":%lld,\"done_us\":%lld",
		(long long)x->accepted_us, (long long)x->sent_us, (long long)x->running_us,
		(long long)(x->ended_us > 0 ? x->ended_us : now_us));
	(void)buf_addf(b, ",\"queue_position\":%u,\"environment\":", x->queue_position);
	(void)buf_add_json_string(b, environment, strlen(environment));
	add_history(b, x->history);
	add_stand(b, &x->desk->at);
	uint64_t peak = r->reply ? facts_peak(r->reply) : 0;
	if (peak > 0)
		(void)buf_addf(b, ",\"peak_memory_bytes\":%llu", (unsigned long long)peak);
	if (x->status == EXECUTION_ERROR || x->status == EXECUTION_TIMED_OUT)
		add_error(b, r->reply);
	bool ended = x->status == EXECUTION_DIED || x->status == EXECUTION_TIMED_OUT;
	if (ended && x->desk->death.known)
		add_exit(b, &x->desk->death.how);
	(void)buf_addf(b, "}");
}

/* On a channel that no message of a kernel has: it cannot be forged. */
struct jmsg *facts_end(const struct execution *x, const char *environment, struct err *err)
{
	AUTO(buf_done) struct buf b;
	struct jmsg *m = NULL;
	buf_init(&b, FACTS_MAX);
	add_facts(&b, x, environment, clock_wall_us(x->desk->gw->clock));
	(void)buf_add(&b, "", 1);
	if (buf_check(&b, "facts", err) == 0)
		(void)jmsg_make(CHANNEL_HB, SCRIBE_END, x->desk->session, x->request->msg,
			(const char *)b.data, &m, err); /* NULL then: told by the caller */
	return m;
}

struct jmsg *facts_folder(const struct desk *d, struct err *err)
{
	AUTO(buf_done) struct buf b;
	struct jmsg *m = NULL;
	buf_init(&b, FACTS_MAX);
	(void)buf_addf(&b, "{\"done_us\":%lld", (long long)clock_wall_us(d->gw->clock));
	add_history(&b, d->scribe.history);
	(void)buf_addf(&b, "}");
	if (buf_check(&b, "facts", err) == 0)
		(void)jmsg_make(CHANNEL_HB, SCRIBE_FILES, d->session, NULL, (const char *)b.data,
			&m, err); /* NULL then: told by the caller */
	return m;
}

struct jmsg *facts_report(
	const struct desk *d, const char *msg_id, const char *history, struct bytes text)
{
	AUTO(buf_done) struct buf b, header;
	struct jmsg *m = NULL;
	buf_init(&b, REPORT_MAX);
	buf_init(&header, REPORT_MAX);
	if (json_scan(text, NULL, 0, NULL) != 0 || !json_is_object(text))
		return NULL;
	(void)buf_addf(&header, "{\"msg_id\":"); /* latched, as below */
	(void)buf_add_json_string(&header, msg_id, strlen(msg_id));
	(void)buf_addf(&header, "}");
	(void)buf_addf(&b, "{\"report\":");
	(void)buf_add(&b, text.data, text.len);
	add_history(&b, history);
	(void)buf_addf(&b, "}");
	struct jmsg parent = {0};
	parent.part[PART_HEADER] = (struct bytes){header.data, header.len};
	if (buf_check(&header, "header", NULL) == 0 && buf_check(&b, "report", NULL) == 0)
		(void)jmsg_make(CHANNEL_HB, SCRIBE_REPORT, d->session, &parent,
			(const char *)b.data, &m, NULL); /* NULL then */
	return m;
}
