#include "frontend-adapter/turn.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/attempt.h"
#include "frontend-adapter/prompt.h"
#include "gateway/base/sm.h"

#define FLUSH_MS 20u /* what is printed within so long is one event */

/*
 *   begun --words--> asking --code--> running --ok--> explaining --> over
 *     |                ^  \             |  |                          ^^^
 *     |                |   +--no code---|--|--------------------------+||
 *     |                +----repair------+  +---no model, no more tries-+|
 *     +--code------------------------> running      all: it is to stop, the model failed
 */
enum turn_state { TURN_BEGUN, TURN_ASKING, TURN_RUNNING, TURN_EXPLAINING, TURN_OVER, TURN_STATES };

static const struct sm_state states[TURN_STATES] = {
	[TURN_BEGUN] = {"begun", TO(TURN_ASKING) | TO(TURN_RUNNING) | TO(TURN_OVER)},
	[TURN_ASKING] = {"asking", TO(TURN_RUNNING) | TO(TURN_OVER)},
	[TURN_RUNNING] = {"running", TO(TURN_ASKING) | TO(TURN_EXPLAINING) | TO(TURN_OVER)},
	[TURN_EXPLAINING] = {"explaining", TO(TURN_OVER)},
	[TURN_OVER] = {"over", 0},
};

struct turn {
	struct conversation *c; /* NULL: it is gone */
	struct sm sm;
	struct cJSON *messages; /* for the model; NULL: it is not asked */
	struct model_call *call;
	struct buf text;	  /* of the answer that is coming */
	struct buf said;	  /* all of the answer's text */
	struct attempt attempt;	  /* what runs, or ran last */
	struct cJSON *tried;	  /* codes and errors so far: none of them is worth another try */
	struct model_usage usage; /* of all answers */
	unsigned repairs;
	bool failed; /* the last run did */
	char *error; /* of it, if the kernel told one */
	bool stopped;
	struct timer flush; /* of what was printed */
	struct timer step;  /* from begun, and to the end: never within the call */
};

static void on_step(struct timer *t);
static void ask(struct turn *t);

static struct clock *clock_of(const struct turn *t)
{
	return t->c->chats->setup.clock;
}

static struct cJSON *text_event(const char *key, const char *text)
{
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, key, text); /* {} without memory */
	return tree;
}

static void notice(struct turn *t, const char *text)
{
	conversation_tell(t->c, "notice", text_event("text", text));
}

/* ---- the end ---- */

static void turn_free(struct turn *t)
{
	attempt_done(&t->attempt);
	cJSON_Delete(t->messages);
	cJSON_Delete(t->tried);
	buf_done(&t->text);
	buf_done(&t->said);
	free(t->error);
	free(t);
}

static const char *status_of(const struct turn *t, const struct err *err)
{
	if (err)
		return "failed";
	if (t->stopped)
		return "stopped";
	return t->failed ? "not_fixed" : "ok";
}

static struct cJSON *error_tree(const struct err *err)
{
	struct cJSON *tree = text_event("message", err->text);
	(void)cJSON_AddStringToObject(tree, "reason", err_name(err->code)); /* as above */
	return tree;
}

/* The message and the event that ends it say the same. */
static struct cJSON *ending(const struct turn *t, const struct err *err)
{
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddItemToObject(tree, "records", conversation_unsaid(t->c)); /* as above */
	(void)cJSON_AddStringToObject(tree, "status", status_of(t, err));
	if (err)
		(void)cJSON_AddItemToObject(tree, "error", error_tree(err));
	if (t->messages)
		(void)cJSON_AddItemToObject(tree, "usage", usage_tree(&t->usage));
	return tree;
}

static void over(struct turn *t, const struct err *err)
{
	struct conversation *c = t->c;
	struct cJSON *end = ending(t, err), *message = cJSON_Duplicate(end, true);
	bool ran = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(end, "records")) > 0;
	sm_move(&t->sm, TURN_OVER);
	if (err)
		conversation_tell(c, "error", error_tree(err));
	(void)cJSON_AddStringToObject(message, "role", "assistant"); /* as above */
	(void)cJSON_AddStringToObject(
		message, "content", t->said.data ? (const char *)t->said.data : "");
	conversation_said(c, message);
	conversation_tell(c, "message.end", end);
	timer_stop(clock_of(t), &t->step);
	timer_stop(clock_of(t), &t->flush);
	c->turn = NULL;
	turn_free(t);
	conversation_save(c);
	conversation_rest(c, ran ? NULL : err);
}

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
	(void)cJSON_AddItemToArray(t->tried, cJSON_CreateString(text)); /* it is tried again then */
	return true;
}

/* False: it makes no sense to let the model try again. */
static bool may_repair(struct turn *t, const char *status)
{
	bool failed = strcmp(status, "error") == 0 && t->error && !attempt_was_ended(&t->attempt);
	return failed && t->messages && !t->stopped && t->repairs < CHAT_REPAIRS &&
	       is_new(t, t->error);
}

static void repair(struct turn *t)
{
	AUTO(freep) char *asked = prompt_repair(t->attempt.is.code, &t->attempt.result);
	struct cJSON *tree = cJSON_CreateObject();
	t->repairs++;
	(void)cJSON_AddNumberToObject(tree, "number", t->repairs); /* {} without memory */
	(void)cJSON_AddStringToObject(tree, "reason", t->error);
	conversation_tell(t->c, "repair", tree);
	prompt_add(t->messages, "user", asked);
	sm_move(&t->sm, TURN_ASKING);
	ask(t);
}

static void explain(struct turn *t)
{
	AUTO(freep) char *asked = prompt_explain(&t->attempt.result);
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
	conversation_tell(t->c, name, tree);
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
	timer_start(clock_of(t), &t->flush, FLUSH_MS);
}

static bool lags(void *data)
{
	const struct turn *t = data;
	return t->attempt.log && run_log_lags(t->attempt.log);
}

static void keep_record(struct turn *t, const struct chat_outcome *outcome)
{
	struct attempt *a = &t->attempt;
	struct cJSON *tree = cJSON_CreateObject();
	run_log_close(TAKE(a->log));
	conversation_add_record(t->c, attempt_record(a, t->c, outcome), a->msg_id, a->node);
	conversation_save(t->c);
	(void)cJSON_AddStringToObject(tree, "record", a->record); /* {} without memory */
	(void)cJSON_AddStringToObject(tree, "status", outcome->status);
	conversation_tell(t->c, "execution.end", tree);
}

static void on_end(void *data, const struct chat_outcome *outcome)
{
	struct turn *t = data;
	t->attempt.runs = false;
	if (!t->c) {
		turn_free(t);
		return;
	}
	collect_end(&t->attempt.result);
	keep_record(t, outcome);
	t->failed = strcmp(outcome->status, "ok") != 0;
	free(t->error);
	t->error = attempt_error(&t->attempt);
	if (may_repair(t, outcome->status))
		repair(t);
	else if (t->messages && strcmp(outcome->status, "ok") == 0 && !t->stopped)
		explain(t);
	else
		over(t, NULL);
}

static int kernel_for(struct turn *t, const struct chat_run *run, struct err *err)
{
	struct conversation *c = t->c;
	const struct chats_setup *s = &c->chats->setup;
	int rc = E_NOT_FOUND;
	if (*c->kernel_id)
		rc = s->runner->run(
			s->runner_data, c->owner, c->kernel_id, run, t->attempt.msg_id, err);
	if (rc != E_NOT_FOUND && rc != E_GONE)
		return rc;
	bool lost = *c->kernel_id != '\0';
	rc = s->runner->start(s->runner_data, c->owner, c->kernel_name, c->kernel_id, err);
	if (rc != 0)
		return rc;
	conversation_has_kernel(c);
	if (lost)
		notice(t, "The kernel was not there any more: a fresh one runs this, without the "
			  "variables of before.");
	return s->runner->run(s->runner_data, c->owner, c->kernel_id, run, t->attempt.msg_id, err);
}

/* Its code is that of the attempt. */
static void run(struct turn *t)
{
	struct attempt *a = &t->attempt;
	const struct chat_run run = {.code = a->is.code,
		.retry_of = *a->repairs_msg_id ? a->repairs_msg_id : NULL,
		.on_message = on_message,
		.lags = lags,
		.on_end = on_end,
		.data = t};
	struct err err;
	sm_move(&t->sm, TURN_RUNNING);
	attempt_begin(a, t->c);
	conversation_tell(t->c, "execution.start", cJSON_CreateObject());
	a->runs = true;
	if (kernel_for(t, &run, &err) == 0) {
		conversation_expect(t->c, a->msg_id);
		conversation_save(t->c);
		return;
	}
	a->runs = false;
	over(t, &err);
}

void turn_recorded(struct conversation *c, const char *msg_id, const char *node)
{
	struct attempt *a = &c->turn->attempt;
	if (strcmp(a->msg_id, msg_id) == 0)
		(void)copy_text(a->node, sizeof a->node, node, strlen(node)); /* it fits */
}

void turn_renamed(struct conversation *c, const char *(*now_of)(const void *data, const char *node),
	const void *data)
{
	struct attempt *a = &c->turn->attempt;
	const char *now = a->node[0] ? now_of(data, a->node) : NULL;
	if (now)
		(void)copy_text(a->node, sizeof a->node, now, strlen(now)); /* it fits */
}

/* ---- the model ---- */

static void on_text(void *data, struct bytes text)
{
	struct turn *t = data;
	AUTO(freep) char *copy = strndup((const char *)text.data, text.len);
	(void)buf_add(&t->text, text.data, text.len); /* model.h bounds it */
	conversation_tell(t->c, "text.delta", text_event("text", copy ? copy : ""));
}

static void try_code(struct turn *t, struct prepared *code, const struct model_usage *usage)
{
	struct cJSON *tree = text_event("code", code->code);
	bool again = !is_new(t, code->code);
	(void)cJSON_AddNumberToObject(tree, "attempt", t->repairs + 1); /* or not */
	conversation_tell(t->c, "code", tree);
	if (again) { /* it would fail anew */
		prepared_done(code);
		notice(t, "The model wrote code that has failed before: it is not run again.");
		over(t, NULL);
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
	prompt_add(t->messages, "assistant", text);
	if (t->sm.state == TURN_ASKING && !t->stopped)
		is = prepare_code(text, &code);
	if (is == PREPARED_CUT)
		notice(t, "The model's code is cut off: it is not run.");
	if (is == PREPARED_CODE)
		try_code(t, &code, usage);
	else
		over(t, NULL);
}

static void add_usage(struct turn *t, const struct model_usage *usage)
{
	t->usage.prompt_tokens += usage->prompt_tokens;
	t->usage.completion_tokens += usage->completion_tokens;
}

static void on_answer(void *data, const struct model_usage *usage, const struct err *err)
{
	struct turn *t = data;
	t->call = NULL;
	add_usage(t, usage);
	if (t->text.len > 0)
		(void)buf_addf(&t->said, "%s%s", t->said.len > 0 ? "\n\n" : "",
			(const char *)t->text.data); /* latched */
	if (err)
		over(t, err);
	else
		answered(t, usage);
}

static void ask(struct turn *t)
{
	const struct model_ask ask = {
		.messages = t->messages, .on_text = on_text, .on_end = on_answer, .data = t};
	struct err err;
	buf_reset(&t->text);
	if (model_ask(t->c->chats->model, &ask, &t->call, &err) != 0)
		over(t, &err);
}

/* ---- the beginning ---- */

static void on_step(struct timer *timer)
{
	struct turn *t = CONTAINER_OF(timer, struct turn, step);
	if (t->stopped) {
		over(t, NULL);
		return;
	}
	conversation_tell(t->c, "message.start", cJSON_CreateObject());
	if (!t->messages) {
		run(t);
		return;
	}
	sm_move(&t->sm, TURN_ASKING);
	ask(t);
}

static void take_words(struct turn *t, const char *content)
{
	struct cJSON *message = text_event("role", "user");
	(void)cJSON_AddStringToObject(message, "content", content); /* as in text_event() */
	conversation_said(t->c, message);
	t->messages = prompt_messages(t->c->messages);
	conversation_save(t->c);
}

int turn_begin(struct conversation *c, const char *content, bool model, struct err *err)
{
	if (c->turn)
		return err_set(err, E_BUSY, "an answer is under way in this conversation");
	if (model && !c->chats->model)
		return err_set(err, E_UNAVAILABLE,
			"no model is configured: set model_url and model_name (docs/CHAT.md)");
	struct turn *t = xcalloc(1, sizeof *t);
	t->c = c;
	sm_init(&t->sm, "turn", states, TURN_STATES, TURN_BEGUN, &c->chats->log);
	buf_init(&t->text, MODEL_TEXT_MAX);
	buf_init(&t->said, 8 * MODEL_TEXT_MAX);
	const struct collect_sink sink = {
		.tell = tell_output, .print = print, .waits = on_waits, .data = t};
	attempt_init(&t->attempt, &sink);
	t->tried = cJSON_CreateArray();
	c->turn = t;
	if (model) {
		take_words(t, content);
	} else {
		struct prepared code = {.code = xstrdup(content)};
		attempt_next(&t->attempt, &code, false);
	}
	timer_init(&t->flush, on_flush);
	timer_init(&t->step, on_step);
	timer_start(clock_of(t), &t->step, 0);
	return 0;
}

void turn_stop(struct conversation *c)
{
	struct turn *t = c->turn;
	t->stopped = true;
	if (t->call) {
		model_cancel(TAKE(t->call));
		timer_start(clock_of(t), &t->step, 0);
	}
	if (t->attempt.runs)
		interrupt(c);
}

/* The run has its end to come, after which the turn is freed. */
void turn_drop(struct conversation *c)
{
	struct turn *t = TAKE(c->turn);
	timer_stop(clock_of(t), &t->step);
	timer_stop(clock_of(t), &t->flush);
	if (t->call)
		model_cancel(t->call);
	t->c = NULL;
	if (!t->attempt.runs)
		turn_free(t);
}
