#include "frontend-adapter/turn.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/turn_parts.h"

#define FLUSH_MS 20u /* what is printed within so long is one event */

/*
 *   begun --words--> asking --code--> running --ok--> explaining --> over
 *     |                ^  \             |  |                          ^^^
 *     |                |   +--no code---|--|--------------------------+||
 *     |                +----repair------+  +---no model, no more tries-+|
 *     +--code------------------------> running      all: it is to stop, the model failed,
 *                                                   no place for a kernel, no memory
 */

static const struct sm_state states[TURN_STATES] = {
	[TURN_BEGUN] = {"begun", TO(TURN_ASKING) | TO(TURN_RUNNING) | TO(TURN_OVER)},
	[TURN_ASKING] = {"asking", TO(TURN_RUNNING) | TO(TURN_OVER)},
	[TURN_RUNNING] = {"running", TO(TURN_ASKING) | TO(TURN_EXPLAINING) | TO(TURN_OVER)},
	[TURN_EXPLAINING] = {"explaining", TO(TURN_OVER)},
	[TURN_OVER] = {"over", 0},
};

static void on_step(struct timer *t);
static void ask(struct turn *t);

/* ---- the run ---- */

/* False: it was tried before. NULL never was. */
static bool is_new(struct turn *t, const char *text)
{
	const struct cJSON *at;
	if (!text)
		return true;
	cJSON_ArrayForEach (at, t->tried)
		if (strcmp(at->valuestring, text) == 0)
			return false;
	(void)cJSON_AddItemToArray(t->tried, cJSON_CreateString(text));
	return true;
}

/* False: it makes no sense to let the model try again. */
static bool may_repair(struct turn *t, const char *status)
{
	bool failed = t->error &&
		      ((strcmp(status, "error") == 0 && !attempt_was_interrupted(&t->attempt)) ||
			      strcmp(status, "timed_out") == 0);
	return failed && t->messages && !t->stopped && t->repairs < CHAT_REPAIRS &&
	       is_new(t, t->error);
}

static void repair(struct turn *t)
{
	struct err err;
	AUTO(freep) char *asked = prompt_repair(t->attempt.is.code, &t->attempt.result, &err);
	struct cJSON *tree = cJSON_CreateObject();
	if (!asked) {
		cJSON_Delete(tree);
		turn_over(t, &err);
		return;
	}
	t->repairs++;
	t->c->chats->figures.repairs++;
	(void)cJSON_AddNumberToObject(tree, "number", t->repairs);
	(void)cJSON_AddStringToObject(tree, "reason", t->error);
	conversation_tell(t->c, "repair", tree);
	prompt_add(t->messages, "user", asked);
	sm_move(&t->sm, TURN_ASKING);
	ask(t);
}

static void explain(struct turn *t)
{
	struct err err;
	AUTO(freep) char *asked = prompt_explain(&t->attempt.result, &err);
	if (!asked) {
		turn_over(t, &err);
		return;
	}
	prompt_add(t->messages, "user", asked);
	sm_move(&t->sm, TURN_EXPLAINING);
	ask(t);
}

static void interrupt(const struct conversation *c)
{
	const struct chats_setup *s = &c->chats->setup;
	s->runner->interrupt(s->runner_data, c->owner, c->kernel_id);
}

static void tell_output(void *data, const char *name, struct cJSON *tree)
{
	struct turn *t = data;
	if (t->c)
		conversation_tell(t->c, name, tree);
	else
		cJSON_Delete(tree);
}

static void on_message(void *data, const char *msg_type, struct bytes content)
{
	struct turn *t = data;
	if (!t->c)
		return;
	/* What waited for its kernel when it was to stop has begun after all. */
	if (t->stopped && strcmp(msg_type, "execute_input") == 0)
		interrupt(t->c);
	collect_add(&t->attempt.result, msg_type, content);
}

static void print(void *data, struct bytes text)
{
	struct turn *t = data;
	if (t->attempt.log)
		run_log_add(t->attempt.log, text);
}

static void on_flush(struct timer *timer)
{
	collect_flush(&CONTAINER_OF(timer, struct turn, flush)->attempt.result);
}

static void on_waits(void *data)
{
	struct turn *t = data;
	timer_start(turn_clock(t), &t->flush, FLUSH_MS);
}

static bool lags(void *data)
{
	const struct turn *t = data;
	return collect_scales(&t->attempt.result) ||
	       (t->attempt.log && run_log_lags(t->attempt.log));
}

static void note(struct turn *t, const char *sentence)
{
	attempt_note(&t->attempt, sentence);
	turn_notice(t, sentence);
}

/* What happened to the kernel beside. */
static void note_kernel(struct turn *t)
{
	struct conversation *c = t->c;
	char now[sizeof c->ran_in];
	if (t->outcome.epoch == 0)
		return;
	(void)snprintf(now, sizeof now, "%s %llu", c->kernel_id,
		(unsigned long long)t->outcome.epoch); /* fits */
	if (*c->ran_in && strcmp(c->ran_in, now) != 0 && t->outcome.revived)
		note(t, "The kernel went back before this: its variables are those of an earlier "
			"node.");
	else if (*c->ran_in && strcmp(c->ran_in, now) != 0)
		note(t, "The kernel was started anew before this: variables of before are gone.");
	memcpy(c->ran_in, now, sizeof now);
	if (t->outcome.leaves)
		note(t, "The code ended the kernel: its variables are gone.");
}

static void note_early_end(struct turn *t)
{
	if (strcmp(t->status, "error") != 0 || !attempt_ended_early(&t->attempt))
		return;
	(void)copy_text(t->status, sizeof t->status, "ok", 2); /* fits */
	note(t, "It ended early, as the code wants it: SystemExit.");
}

static void count(struct chats_figures *f, const struct collect *result)
{
	f->runs++;
	f->stdout_bytes += result->out.bytes;
	f->stderr_bytes += result->err.bytes;
	f->outputs_bytes += result->output_bytes;
	f->pictures_scaled += result->shown.n_scaled;
}

static void keep_record(struct turn *t)
{
	struct attempt *a = &t->attempt;
	struct cJSON *tree = cJSON_CreateObject(), *record = attempt_record(a, t->c, &t->outcome);
	struct err err;
	run_log_close(TAKE(a->log));
	int rc = conversation_add_record(t->c, record, &a->facts, &err);
	conversation_save(t->c);
	count(&t->c->chats->figures, &a->result);
	(void)cJSON_AddStringToObject(tree, "record", a->record);
	(void)cJSON_AddStringToObject(tree, "status", t->outcome.status);
	if (rc != 0)
		(void)cJSON_AddStringToObject(tree, "not_recorded", err.text);
	conversation_tell(t->c, "execution.end", tree);
}

/* Its pictures have their size, its log is written. */
static void on_settled(void *data)
{
	struct turn *t = data;
	struct err err;
	if (--t->settling > 0)
		return;
	t->attempt.runs = false;
	if (!t->c) {
		turn_free(t);
		return;
	}
	note_early_end(t);
	note_kernel(t);
	keep_record(t);
	bool good = strcmp(t->outcome.status, "ok") == 0;
	t->failed = !good;
	free(t->error);
	if (attempt_error(&t->attempt, &t->error, &err) != 0)
		turn_over(t, &err);
	else if (may_repair(t, t->outcome.status))
		repair(t);
	else if (t->messages && good && !t->stopped)
		explain(t);
	else
		turn_over(t, NULL);
}

static void on_end(void *data, const struct chat_outcome *outcome)
{
	struct turn *t = data;
	t->outcome = *outcome;
	(void)copy_text(t->status, sizeof t->status, outcome->status,
		strlen(outcome->status)); /* adapter.h names them */
	t->outcome.status = t->status;
	if (!t->c && !collect_scales(&t->attempt.result)) {
		turn_free(t);
		return;
	}
	if (t->c)
		conversation_ended(t->c, t->attempt.facts.msg_id);
	t->settling = 1;
	t->settling += collect_end(&t->attempt.result, on_settled, t);
	t->settling += t->attempt.log && run_log_finish(t->attempt.log, on_settled, t);
	on_settled(t);
}

/* *ret_full: a start found no place. */
static int kernel_for(struct turn *t, const struct chat_run *run, bool *ret_full, struct err *err)
{
	struct conversation *c = t->c;
	const struct chats_setup *s = &c->chats->setup;
	int rc = E_NOT_FOUND;
	if (*c->kernel_id)
		rc = s->runner->run(
			s->runner_data, c->owner, c->kernel_id, run, t->attempt.facts.msg_id, err);
	if (rc != E_NOT_FOUND && rc != E_GONE)
		return rc;
	bool lost = *c->kernel_id != '\0';
	rc = s->runner->start(s->runner_data, c->owner, c->kernel_name, c->kernel_id, err);
	*ret_full = rc == E_CAPACITY;
	if (rc != 0)
		return rc;
	conversation_has_kernel(c);
	if (lost) {
		c->ran_in[0] = '\0'; /* it is said */
		note(t, "The kernel was not there any more: a fresh one runs this, without the "
			"variables of before.");
	}
	return s->runner->run(
		s->runner_data, c->owner, c->kernel_id, run, t->attempt.facts.msg_id, err);
}

static void send_code(struct turn *t);

static void on_place(void *data, const struct err *err)
{
	struct turn *t = data;
	t->place = NULL;
	t->attempt.place_ms += clock_now_ms(turn_clock(t)) - t->place_since_ms;
	if (err)
		turn_over(t, err);
	else
		send_code(t);
}

/* In order, with a deadline, as whoever starts a kernel. */
static bool wait_for_place(struct turn *t)
{
	t->place = place_await(&t->c->chats->setup, on_place, t);
	t->place_since_ms = clock_now_ms(turn_clock(t));
	if (t->place)
		turn_notice(
			t, "There is no place for one more kernel at present: this waits for one.");
	return t->place != NULL;
}

static void send_code(struct turn *t)
{
	struct attempt *a = &t->attempt;
	const struct chat_run run = {.code = a->is.code,
		.retry_of = *a->repairs_msg_id ? a->repairs_msg_id : NULL,
		.timeout_s = t->timeout_s,
		.on_message = on_message,
		.lags = lags,
		.on_end = on_end,
		.data = t};
	struct err err;
	bool full = false;
	a->runs = true;
	a->started_us = clock_wall_us(turn_clock(t));
	if (kernel_for(t, &run, &full, &err) == 0) {
		conversation_tell(t->c, "execution.start", cJSON_CreateObject());
		conversation_expect(t->c, a->facts.msg_id);
		conversation_save(t->c);
		return;
	}
	a->runs = false;
	if (!full || !wait_for_place(t))
		turn_over(t, &err);
}

static void on_back(void *data, const struct cJSON *told, const struct err *err)
{
	struct turn *t = data;
	char text[sizeof err->text + 128];
	t->back = NULL;
	if (err) {
		(void)snprintf(text, sizeof text, /* fits */
			"This runs in the state that the failed code left behind: %s.", err->text);
		note(t, text);
	} else {
		t->attempt.restored = told ? cJSON_Duplicate(told, true) : NULL;
		t->c->ran_in[0] = '\0'; /* it is said in the record */
	}
	send_code(t);
}

/* Its code is that of the attempt. One that repairs begins where the one that failed began; after a
 * time limit that may be so already. */
static void run(struct turn *t)
{
	struct attempt *a = &t->attempt;
	sm_move(&t->sm, TURN_RUNNING);
	attempt_begin(a, t->c);
	if (*a->repairs_msg_id)
		t->back = back_ask(t->c, a->repairs_msg_id, on_back, t);
	else
		send_code(t);
}

void turn_recorded(struct conversation *c, const char *msg_id, const char *node, uint64_t record_ms)
{
	struct run_facts *f = &c->turn->attempt.facts;
	if (strcmp(f->msg_id, msg_id) != 0)
		return;
	(void)copy_text(f->node, sizeof f->node, node, strlen(node)); /* it fits */
	f->record_ms = record_ms;
}

void turn_renamed(struct conversation *c, const char *(*now_of)(const void *data, const char *node),
	const void *data)
{
	struct run_facts *f = &c->turn->attempt.facts;
	const char *now = *f->node ? now_of(data, f->node) : NULL;
	if (now)
		(void)copy_text(f->node, sizeof f->node, now, strlen(now)); /* it fits */
}

/* ---- the model ---- */

static void on_text(void *data, struct bytes text)
{
	struct turn *t = data;
	AUTO(freep) char *copy = strndup((const char *)text.data, text.len);
	(void)buf_add(&t->text, text.data, text.len); /* latched: on_answer() looks */
	t->untold = t->untold || !copy;
	conversation_tell(t->c, "text.delta", turn_text("text", copy ? copy : ""));
}

static void try_code(struct turn *t, struct prepared *code, const struct model_usage *usage)
{
	struct cJSON *tree = turn_text("code", code->code);
	bool again = !is_new(t, code->code);
	(void)cJSON_AddNumberToObject(tree, "attempt", t->repairs + 1);
	conversation_tell(t->c, "code", tree);
	if (again) { /* it would fail anew */
		prepared_done(code);
		turn_notice(t, "The model wrote code that has failed before: it is not run again.");
		turn_over(t, NULL);
		return;
	}
	attempt_next(&t->attempt, code, t->repairs > 0);
	t->attempt.usage = *usage;
	run(t);
}

static void answered(struct turn *t, const struct model_usage *usage)
{
	struct prepared code = {0};
	const char *text = t->text.data ? (const char *)t->text.data : "";
	enum prepared_is is = PREPARED_NONE;
	struct err err;
	int rc = 0;
	prompt_add(t->messages, "assistant", text);
	if (t->sm.state == TURN_ASKING && !t->stopped)
		rc = prepare_code(text, &is, &code, &err);
	if (rc == E_TOO_BIG) /* about what we were asked it would be */
		err.code = E_PROTOCOL;
	if (rc != 0) {
		err_wrap(&err, "the model's answer");
		turn_over(t, &err);
		return;
	}
	if (is == PREPARED_CUT)
		turn_notice(t, "The model's code is cut off: it is not run.");
	if (is == PREPARED_CODE)
		try_code(t, &code, usage);
	else
		turn_over(t, NULL);
}

static void add_usage(struct turn *t, const struct model_usage *usage)
{
	struct chats_figures *f = &t->c->chats->figures;
	t->usage.prompt_tokens += usage->prompt_tokens;
	t->usage.completion_tokens += usage->completion_tokens;
	f->prompt_tokens += usage->prompt_tokens;
	f->completion_tokens += usage->completion_tokens;
	f->model_calls += usage->asked;
	f->model_ms += usage->whole_ms;
}

/* What the model said is in the answer and was told, or the turn says that it is not. */
static int check_said(const struct turn *t, struct err *err)
{
	int rc = buf_check(&t->text, "the model's answer", err);
	if (rc == 0)
		rc = buf_check(&t->said, "the model's answer", err);
	if (rc == 0 && t->untold)
		rc = err_set(err, E_NOMEM, "the model's answer was not told whole: out of memory");
	return rc;
}

static void on_answer(void *data, const struct model_usage *usage, const struct err *err)
{
	struct turn *t = data;
	t->call = NULL;
	add_usage(t, usage);
	if (t->text.len > 0)
		(void)buf_addf(&t->said, "%s%s", t->said.len > 0 ? "\n\n" : "",
			(const char *)t->text.data); /* latched */
	struct err why;
	if (err)
		turn_over(t, err);
	else if (check_said(t, &why) != 0)
		turn_over(t, &why);
	else
		answered(t, usage);
}

static int bound(struct turn *t, struct err *err)
{
	size_t max = t->c->chats->setup.model_history;
	struct prompt_left_out before = t->left_out;
	char text[200];
	int rc = prompt_bound(t->messages, t->question, max, &t->left_out, err);
	if (rc != 0 || t->left_out.bytes == before.bytes)
		return rc;
	(void)snprintf(text, sizeof text,
		"The model is told at most %zu bytes (model_history): %u earlier messages, %zu "
		"bytes, are left out.",
		max, t->left_out.messages, t->left_out.bytes);
	turn_notice(t, text);
	return 0;
}

static void ask(struct turn *t)
{
	const struct model_ask ask = {
		.messages = t->messages, .on_text = on_text, .on_end = on_answer, .data = t};
	struct err err;
	buf_reset(&t->text);
	int rc = bound(t, &err);
	if (rc == 0)
		rc = model_ask(t->c->chats->model, &ask, &t->call, &err);
	if (rc != 0)
		turn_over(t, &err);
}

/* ---- the beginning ---- */

static void on_step(struct timer *timer)
{
	struct turn *t = CONTAINER_OF(timer, struct turn, step);
	if (t->stopped) {
		turn_over(t, NULL);
		return;
	}
	conversation_tell(t->c, "message.start", cJSON_CreateObject());
	if (!t->messages) {
		run(t);
		return;
	}
	conversation_save(t->c); /* what was asked */
	sm_move(&t->sm, TURN_ASKING);
	ask(t);
}

/* E_TOO_BIG: nothing was said. */
static int take_words(struct turn *t, const char *content, struct err *err)
{
	int rc = prompt_fits(content, t->c->chats->setup.model_history, err);
	if (rc != 0)
		return rc;
	struct cJSON *message = turn_text("role", "user");
	(void)cJSON_AddStringToObject(message, "content", content);
	conversation_said(t->c, message);
	t->messages = prompt_messages(t->c->messages);
	t->question = t->messages->child->prev; /* cJSON: the first one's is the last */
	return 0;
}

int turn_begin(struct conversation *c, const struct chat_message *message, struct err *err)
{
	const char *content = message->content;
	bool model = message->model;
	if (c->turn)
		return err_set(err, E_BUSY, "an answer is under way in this conversation");
	if (model && !c->chats->model)
		return err_set(err, E_UNAVAILABLE,
			"no model is configured: set model_url and model_name (docs/CHAT.md)");
	struct turn *t = xcalloc(1, sizeof *t);
	t->c = c;
	if (model && take_words(t, content, err) != 0) {
		free(t);
		return E_TOO_BIG;
	}
	sm_init(&t->sm, "turn", states, TURN_STATES, TURN_BEGUN, &c->chats->log);
	buf_init(&t->text, MODEL_TEXT_MAX);
	buf_init(&t->said, 8 * MODEL_TEXT_MAX);
	const struct collect_sink sink = {.tell = tell_output,
		.print = print,
		.waits = on_waits,
		.data = t,
		.renderer = c->chats->setup.renderer,
		.clock = turn_clock(t)};
	attempt_init(&t->attempt, &sink);
	t->tried = cJSON_CreateArray();
	t->timeout_s = message->timeout_s;
	c->turn = t;
	if (!model) {
		struct prepared code = {.code = xstrdup(content)};
		attempt_next(&t->attempt, &code, false);
	}
	timer_init(&t->flush, on_flush);
	timer_init(&t->step, on_step);
	timer_start(turn_clock(t), &t->step, 0);
	return 0;
}

void turn_stop(struct conversation *c)
{
	struct turn *t = c->turn;
	t->stopped = true;
	if (t->call) {
		model_cancel(TAKE(t->call));
		timer_start(turn_clock(t), &t->step, 0);
	}
	if (t->place) {
		place_leave(TAKE(t->place));
		timer_start(turn_clock(t), &t->step, 0);
	}
	if (t->back) {
		back_leave(TAKE(t->back));
		timer_start(turn_clock(t), &t->step, 0);
	}
	if (t->attempt.runs && t->settling == 0)
		interrupt(c);
}

/* The run has its end to come, after which the turn is freed. */
void turn_drop(struct conversation *c)
{
	struct turn *t = TAKE(c->turn);
	timer_stop(turn_clock(t), &t->step);
	timer_stop(turn_clock(t), &t->flush);
	if (t->call)
		model_cancel(t->call);
	if (t->place)
		place_leave(TAKE(t->place));
	if (t->back)
		back_leave(TAKE(t->back));
	t->c = NULL;
	if (!t->attempt.runs)
		turn_free(t);
}
