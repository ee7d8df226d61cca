/* The figures of admin.h in Prometheus' text format. */
#include <cjson/cJSON.h>
#include <malloc.h>
#include <string.h>

#include "frontend-adapter/adapter.h"
#include "gateway/base/buf.h"
#include "gateway/spine/admin.h"
#include "gateway/spine/desk.h"

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
	(void)buf_addf(b, "# HELP coppice_%s %s\n# TYPE coppice_%s %s\n", name, help, name, type);
}

static void one(struct buf *b, const char *name, const char *type, const char *help, uint64_t value)
{
	head(b, name, type, help);
	(void)buf_addf(b, "coppice_%s %llu\n", name, (unsigned long long)value);
}

static void kernels_by_state(struct buf *b, const struct kernels *ks)
{
	static const char *const states[] = {"starting", "idle", "busy", "dead"};
	head(b, "kernels", "gauge", "Kernels by state.");
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		unsigned n = 0;
		LIST_EACH (at, &ks->desks)
			n += strcmp(desk_state(CONTAINER_OF(at, struct desk, link)), states[i]) ==
			     0;
		(void)buf_addf(b, "coppice_kernels{state=\"%s\"} %u\n", states[i], n);
	}
}

static void executions_by_status(struct buf *b, const struct spine_counters *c)
{
	head(b, "executions_total", "counter", "Executions that ended, by status.");
	for (unsigned i = EXECUTION_OK; i < EXECUTION_STATUSES; i++)
		(void)buf_addf(b, "coppice_executions_total{status=\"%s\"} %llu\n",
			execution_status_name(i), (unsigned long long)c->executions[i]);
}

static void add_number_of(const cJSON *report, const char *name, uint64_t *sum)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(report, name);
	if (cJSON_IsNumber(item) && item->valuedouble > 0)
		*sum += (uint64_t)item->valuedouble;
}

static void pool(struct buf *b, const struct kernels *ks)
{
	struct pool_figures f;
	pool_figures(ks->pool, &f);
	one(b, "pool_ready", "gauge", "Kernels that are ready and nobody's.", f.ready);
	one(b, "pool_starting", "gauge", "Kernels on their way there.", f.starting);
	one(b, "pool_wanted", "gauge", "How many are kept ready at present.", f.wanted);
	one(b, "pool_taken_total", "counter", "Starts that the pool served.", f.taken);
	one(b, "pool_missed_total", "counter", "Starts that found no kernel in it.", f.missed);
	one(b, "pool_idled_total", "counter", "Kernels that nobody took.", f.idled);
	one(b, "pool_failed_total", "counter", "Kernels that did not live to be taken.", f.failed);
	one(b, "starts_waiting", "gauge", "Starts that wait for a place.", ks->waiting.n);
	one(b, "starts_refused_total", "counter", "Starts that waited in vain.",
		ks->waiting.refused);
}

static void sums(struct buf *b, const struct kernels *ks)
{
	uint64_t memory = 0, disk = 0, held = 0, requests = 0, bad_frames = 0;
	LIST_EACH (at, &ks->desks) {
		const struct desk *d = CONTAINER_OF(at, struct desk, link);
		struct journal_figures figures;
		journal_figures(d->journal, &figures);
		memory += figures.memory_bytes;
		disk += figures.disk_bytes;
		held += d->held ? 1 : 0;
		requests += d->requests.n;
		cJSON *report = d->kernel ? kernel_report(d->kernel) : NULL;
		add_number_of(report, "bad_frames", &bad_frames);
		cJSON_Delete(report);
	}
	one(b, "journal_memory_bytes", "gauge", "Journals in memory.", memory);
	one(b, "journal_disk_bytes", "gauge", "Journals on disk.", disk);
	one(b, "kernels_held", "gauge", "Kernels that are not read from until the disk caught up.",
		held);
	one(b, "requests_open", "gauge", "Requests of clients that have no answer yet.", requests);
	one(b, "bad_frames", "gauge", "Frames dropped of kernels that are listed.", bad_frames);
}

static void counters(struct buf *b, const struct spine_counters *c)
{
	one(b, "messages_in_total", "counter", "Messages from clients.", c->messages_in);
	one(b, "bytes_in_total", "counter", "Bytes of messages from clients.", c->bytes_in);
	one(b, "messages_out_total", "counter", "Messages from kernels.", c->messages_out);
	one(b, "bytes_out_total", "counter", "Bytes of messages from kernels.", c->bytes_out);
	one(b, "bad_messages_total", "counter", "Statuses of kernels that are none.",
		c->bad_messages);
	one(b, "refused_total", "counter", "Requests refused since too much waited.", c->refused);
	one(b, "duplicates_total", "counter", "Requests whose msg_id was used before.",
		c->duplicates);
	one(b, "synthesised_total", "counter", "Requests the gateway answered itself.",
		c->synthesised);
	one(b, "deaths_total", "counter", "Kernels that died unwanted.", c->deaths);
	one(b, "restarts_total", "counter", "Kernels started again.", c->restarts);
	one(b, "culled_total", "counter", "Kernels ended for idleness.", c->culled);
	one(b, "missed_total", "counter", "Entries cut before a client read them.", c->missed);
}

/* What the allocator handed out: what is resident differs from run to run by what it keeps back. */
static uint64_t heap_bytes(void)
{
	struct mallinfo2 heap = mallinfo2();
	return heap.uordblks + heap.hblkhd;
}

/* Of one name, a row for each label. */
static void row(struct buf *b, const char *name, const char *label, const char *value, uint64_t n)
{
	(void)buf_addf(b, "coppice_%s{%s=\"%s\"} %llu\n", name, label, value,
		(unsigned long long)n); /* latched */
}

static void chat(struct buf *b, const struct chats_figures *f)
{
	head(b, "chat_answers_total", "counter", "Answers in conversations, by how they ended.");
	for (unsigned i = 0; i < CHAT_STATUSES; i++)
		row(b, "chat_answers_total", "status", chat_status_name(i), f->answers[i]);
	one(b, "chat_executions_total", "counter", "Executions of conversations.", f->runs);
	one(b, "chat_repairs_total", "counter", "Times that a model was to mend code.", f->repairs);
	one(b, "chat_pictures_scaled_total", "counter",
		"Pictures that were made smaller to fit into a record.", f->pictures_scaled);
	one(b, "chat_model_calls_total", "counter", "Questions to a model.", f->model_calls);
	one(b, "chat_model_milliseconds_total", "counter", "How long its answers took.",
		f->model_ms);
	head(b, "chat_tokens_total", "counter", "Tokens, as the model's server counts them.");
	row(b, "chat_tokens_total", "kind", "prompt", f->prompt_tokens);
	row(b, "chat_tokens_total", "kind", "completion", f->completion_tokens);
	head(b, "chat_output_bytes_total", "counter", "What executions of conversations put out.");
	row(b, "chat_output_bytes_total", "kind", "stdout", f->stdout_bytes);
	row(b, "chat_output_bytes_total", "kind", "stderr", f->stderr_bytes);
	row(b, "chat_output_bytes_total", "kind", "outputs", f->outputs_bytes);
}

void admin_metrics(const struct gateway *gw, struct buf *ret)
{
	const struct kernels *ks = gw->kernels;
	kernels_by_state(ret, ks);
	one(ret, "clients", "gauge", "WebSockets on kernels.", kernels_connections(ks, NULL));
	executions_by_status(ret, &ks->count);
	costs_metrics(&ks->count.costs, ret);
	if (gw->chats)
		chat(ret, chats_figures(gw->chats));
	pool(ret, ks);
	sums(ret, ks);
	one(ret, "heap_bytes", "gauge", "Memory that was asked for and not given back.",
		heap_bytes());
	counters(ret, &ks->count);
}
