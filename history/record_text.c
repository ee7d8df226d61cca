#include "history/record.h"

#include <stdio.h>
#include <string.h>

#include "history/spliced.h"

/* Three levels of a hundred: what a commit costs stays flat (branching.md 4.1). */
void run_folder(uint64_t n, char ret_path[RUN_FOLDER_SIZE])
{
	(void)snprintf(ret_path, RUN_FOLDER_SIZE, "runs/%02llu/%02u/%02u",
		(unsigned long long)(n / 10000), (unsigned)(n / 100 % 100), (unsigned)(n % 100));
}

static void add_text(struct buf *b, const char *key, const char *text)
{
	(void)buf_addf(b, ",\n\"%s\":", key); /* latched, as below */
	(void)buf_add_json_string(b, text, strlen(text));
}

static void add_number(struct buf *b, const char *key, uint64_t number)
{
	(void)buf_addf(b, ",\n\"%s\":%llu", key, (unsigned long long)number); /* latched */
}

static void add_flag(struct buf *b, const char *key, bool flag)
{
	(void)buf_addf(b, ",\n\"%s\":%s", key, flag ? "true" : "false"); /* latched */
}

static void add_raw(struct buf *b, const char *key, const struct buf *raw)
{
	if (raw->len > 0)
		(void)buf_addf(b, ",\n\"%s\":%s", key, (const char *)raw->data); /* latched */
}

static const char *environment_of(const struct record *r, const struct record_place *place)
{
	return r->environment[0] ? r->environment : place->run->environment;
}

static void add_place(struct buf *b, const struct record *r, const struct record_place *place)
{
	const struct history_run *run = place->run;
	add_text(b, "kernel_id", run->kernel_id);
	add_text(b, "kernelspec", run->kernelspec);
	add_text(b, "environment", environment_of(r, place));
	add_number(b, "epoch", run->epoch);
	add_text(b, "branch", place->branch);
	add_number(b, "n", place->n);
	add_number(b, "state_version", place->state_version);
}

static void add_times(struct buf *b, const struct record *r)
{
	add_number(b, "accepted_us", r->accepted_us);
	add_number(b, "sent_us", r->sent_us);
	add_number(b, "running_us", r->running_us);
	add_number(b, "done_us", r->done_us);
	add_number(b, "started_us", record_started_us(r));
	add_number(b, "duration_us", record_duration_us(r));
	add_number(b, "queue_position", r->queue_position);
	if (r->peak_memory_bytes > 0)
		add_number(b, "peak_memory_bytes", r->peak_memory_bytes);
}

static void add_what_came(struct buf *b, const struct record *r)
{
	add_number(b, "stdout_bytes", r->counts.stdout_bytes);
	add_number(b, "stderr_bytes", r->counts.stderr_bytes);
	add_number(b, "outputs", r->counts.outputs);
	add_raw(b, "error", &r->error);
	add_raw(b, "exit", &r->exit);
	if (r->amends.len > 0)
		(void)buf_addf(b, ",\n\"amends\":[%s]", (const char *)r->amends.data); /* latched */
	if (r->unreadable > 0)
		add_number(b, "unreadable", r->unreadable);
}

static void add_files(struct buf *b, const struct record *r, const struct record_place *place)
{
	if (r->is_files) {
		add_text(b, "kind", "files");
		add_text(b, "memory_of", place->memory_of);
	}
	if (r->files_known)
		add_number(b, "files", r->n_files);
	if (r->files_reason[0])
		add_text(b, "files_reason", r->files_reason);
}

/* The last member, so that it can be replaced. */
static int add_displays(const struct outputs *o, struct buf *b, struct err *err)
{
	(void)buf_add_text(b, ",\n\"displays\":"); /* latched, as below */
	int status = outputs_displays(o, b, err);
	(void)buf_add_text(b, "\n}\n");
	return status != 0 ? status : buf_check(b, "meta.json", err);
}

int record_meta(const struct record *r, const struct record_place *place, struct buf *ret_json,
	struct err *err)
{
	char summary[SUMMARY_SIZE];
	record_summary(r, summary);
	(void)buf_add_text(ret_json, "{\n\"msg_id\":"); /* latched, as below */
	(void)buf_add_json_string(ret_json, r->msg_id, strlen(r->msg_id));
	add_text(ret_json, "session", r->session);
	add_text(ret_json, "cell_id", r->cell_id);
	add_text(ret_json, "status", r->status);
	(void)buf_addf(ret_json, ",\n\"execution_count\":%s", r->execution_count);
	add_text(ret_json, "summary", summary);
	add_flag(ret_json, "silent", r->silent);
	add_flag(ret_json, "store_history", r->store_history);
	if (r->imported)
		add_flag(ret_json, "imported", true);
	add_files(ret_json, r, place);
	add_place(ret_json, r, place);
	add_times(ret_json, r);
	add_what_came(ret_json, r);
	return add_displays(r->outputs, ret_json, err);
}

int record_meta_amend(
	struct bytes meta, const struct outputs *outputs, struct buf *ret_json, struct err *err)
{
	const char *before = "{\n";
	struct member m;
	for (size_t at = 0; object_next(meta, &at, &m);) {
		if (bytes_equal(m.key, "\"displays\""))
			continue;
		(void)buf_add_text(ret_json, before); /* latched, as below */
		(void)buf_add(ret_json, m.key.data, m.key.len);
		(void)buf_add(ret_json, ":", 1);
		(void)buf_add(ret_json, m.value.data, m.value.len);
		before = ",\n";
	}
	return add_displays(outputs, ret_json, err);
}

/* ---- commit messages ---- */

/* One line whatever the value is. */
static void add_trailer(struct buf *b, const char *key, const char *value)
{
	if (!value[0])
		return;
	(void)buf_addf(b, "Coppice-%s: ", key); /* latched, as below */
	for (const char *c = value; *c; c++)
		(void)buf_add(b, (uint8_t)*c < ' ' || *c == 0x7f ? " " : c, 1);
	(void)buf_add(b, "\n", 1);
}

static void add_trailer_number(struct buf *b, const char *key, uint64_t number)
{
	(void)buf_addf(b, "Coppice-%s: %llu\n", key, (unsigned long long)number); /* latched */
}

int record_message(const struct record *r, const struct record_place *place, struct buf *ret_text,
	struct err *err)
{
	char summary[SUMMARY_SIZE];
	record_summary(r, summary);
	(void)buf_addf(ret_text, "%s\n\n",
		summary[0]    ? summary
		: r->is_files ? "files"
			      : "(no code)"); /* latched, as below */
	add_trailer_number(ret_text, "Node-Count", place->n);
	if (strcmp(r->execution_count, "null") != 0)
		add_trailer(ret_text, "Execution-Count", r->execution_count);
	add_trailer(ret_text, "Cell", r->cell_id);
	add_trailer(ret_text, "Status", r->status);
	add_trailer_number(ret_text, "Duration-Ms", record_duration_us(r) / 1000);
	add_trailer(ret_text, "Kernel", place->run->kernel_id);
	add_trailer(ret_text, "Environment", environment_of(r, place));
	add_trailer(ret_text, "Replay", "unknown");
	add_trailer(ret_text, "Retry-Of", place->retry_of);
	return buf_check(ret_text, "commit message", err);
}

int root_message(const struct history_run *run, const char *history_name, int64_t created_us,
	struct buf *ret_text, struct err *err)
{
	(void)buf_add_text(ret_text, "Begin\n\n"); /* latched, as below */
	add_trailer(ret_text, "History", run->history_id);
	add_trailer(ret_text, "Name", history_name);
	add_trailer(ret_text, "Owner", run->owner);
	add_trailer(ret_text, "Kernelspec", run->kernelspec);
	add_trailer_number(ret_text, "Created-Us", created_us > 0 ? (uint64_t)created_us : 0);
	return buf_check(ret_text, "commit message", err);
}

bool trailer_find(const char *message, const char *key, char *ret_value, size_t size)
{
	char head[64];
	int len = snprintf(head, sizeof head, "Coppice-%s: ", key);
	const char *body = strstr(message, "\n\n"); /* the subject is somebody's code */
	for (const char *at = body; at && (at = strstr(at, head)); at++) {
		if (at[-1] != '\n')
			continue;
		at += len;
		return copy_text(ret_value, size, at, strcspn(at, "\n"));
	}
	ret_value[0] = '\0';
	return false;
}
