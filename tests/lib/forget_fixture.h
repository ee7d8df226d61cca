/* A history with a secret in all places that a run can put one, and the forgetting of it. Included
 * by one file per program. */
#ifndef COPPICE_FORGET_FIXTURE_H
#define COPPICE_FORGET_FIXTURE_H

#include "gateway/base/crypto.h"
#include "history/repo.h"
#include "tests/lib/history_fixture.h"

#define FINE	    ",\"silent\":false,\"store_history\":true"
#define SECRET	    "sk-4f1d9c77e0"
#define PIXELS	    "pixels-of-4f1d9c77e0"
#define SECRET_CODE "key = '" SECRET "'\nprint(key)"

/* What came of a forgetting. */
struct forgot {
	struct hfix *fx;
	bool done, leaves; /* leaves: after the first half */
	int status;
	char why[512], code[256], kernel_id[64], msg_id[64];
	char *json;
	size_t n;
	struct history_rewritten pairs[64];
};

static inline void on_forgot(void *data, const struct history_forgotten *told)
{
	struct forgot *g = data;
	g->done = true;
	g->status = told->status;
	assert_int_equal(told->status == 0, told->err == NULL);
	(void)snprintf(g->why, sizeof g->why, "%s", told->err ? told->err->text : "");
	g->json = told->status == 0 ? strndup((const char *)told->json.data, told->json.len) : NULL;
	assert_true(told->n_rewritten <= ARRAY_LEN(g->pairs));
	g->n = told->n_rewritten;
	for (size_t i = 0; i < g->n; i++)
		g->pairs[i] = told->rewritten[i];
}

static inline void on_found(void *data, struct forgetting *f, const struct history_run_found *what)
{
	struct forgot *g = data;
	(void)snprintf(g->code, sizeof g->code, "%.*s", (int)what->code.len,
		what->code.data ? (const char *)what->code.data : "");
	(void)snprintf(g->kernel_id, sizeof g->kernel_id, "%s", what->kernel_id);
	(void)snprintf(g->msg_id, sizeof g->msg_id, "%s", what->msg_id);
	if (!g->leaves) {
		assert_int_equal(history_forget_rest(f, NULL), 0);
		return;
	}
	history_forget_leave(f);
	g->done = true;
}

static inline void begin_forget(
	struct hfix *fx, struct forgot *g, const char *owner, const char *node)
{
	struct history_question q = {
		.what = HISTORY_NODE, .owner = owner, .history = HISTORY_A, .node = node};
	struct history_forget_watcher w = {on_found, on_forgot, g};
	bool leaves = g->leaves;
	free(g->json);
	*g = (struct forgot){.fx = fx, .leaves = leaves};
	history_forget(fx->h, &q, &w);
	assert_false(g->done);
}

static inline int forget(struct hfix *fx, struct forgot *g, const char *node)
{
	begin_forget(fx, g, NULL, node);
	while (!g->done)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	return g->status;
}

static inline void forget_fine(struct hfix *fx, struct forgot *g, const char *node)
{
	if (forget(fx, g, node) != 0)
		fail_msg("%s: %s", node, g->why);
}

/* The id that a node has now. */
static inline const char *now_of(const struct forgot *g, const char *was)
{
	for (size_t i = 0; i < g->n; i++)
		if (strcmp(g->pairs[i].was, was) == 0)
			return g->pairs[i].now;
	return was;
}

static inline bool shell_finds(const char *command)
{
	int status = system(command);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	return WEXITSTATUS(status) == 0;
}

/* In any byte of any file, and in any object of git however it is packed. */
static inline bool is_found(struct hfix *fx, const char *text)
{
	char command[512];
	(void)snprintf(command, sizeof command, "grep -rqaF '%s' '%s'", text, fx->folder);
	if (shell_finds(command))
		return true;
	(void)snprintf(command, sizeof command,
		"for r in '%s'/*.git; do git -C $r cat-file --batch-all-objects --batch; done"
		" | grep -qaF '%s'",
		fx->folder, text);
	return shell_finds(command);
}

static inline void assert_gone(struct hfix *fx)
{
	assert_false(is_found(fx, SECRET));
	assert_false(is_found(fx, PIXELS));
	assert_sound(fx, HISTORY_A);
}

/* A picture that is a file beside, with the words in its bytes. */
static inline void tape_picture(struct tape *t, const char *display_id)
{
	static uint8_t bytes[6001]; /* of one test at a time */
	AUTO(buf_done) struct buf base64, content;
	memset(bytes, 'x', sizeof bytes);
	memcpy(bytes + 3000, PIXELS, sizeof PIXELS - 1);
	buf_init(&base64, 1 << 16);
	buf_init(&content, 1 << 16);
	assert_int_equal(base64_encode((struct bytes){bytes, sizeof bytes}, &base64), 0);
	(void)buf_addf(&content,
		"{\"data\":{\"image/png\":\"%s\",\"text/plain\":\"" SECRET "\"},\"metadata\":{},"
		"\"transient\":{\"display_id\":\"%s\"}}",
		(char *)base64.data, display_id);
	tape_say(t, "display_data", (const char *)content.data);
}

/* Runs of one history, by what they do:
 *
 *   root - first - secret - later - last   (main, kernel k1)
 *        \ other                           (main.2, kernel k2)
 *
 * `secret` has it in code, text, picture, a display's id, error, traceback and a file; it writes it
 * into a display of `first`; `later` brings late text of it; `last` updates its own display. */
struct story {
	struct tape *first, *secret, *later, *last, *other;
};

static inline struct tape *tell_secret(struct hfix *fx)
{
	struct tape *t = tape_new(fx, "m-secret", SECRET_CODE, FINE);
	tape_stream(t, "stdout", SECRET "\n");
	tape_picture(t, SECRET "-shown");
	tape_say(t, "update_display_data",
		"{\"data\":{\"text/plain\":\"" SECRET "\"},\"metadata\":{},"
		"\"transient\":{\"display_id\":\"of-first\"}}");
	tape_say(t, "error",
		"{\"ename\":\"ValueError\",\"evalue\":\"" SECRET "\","
		"\"traceback\":[\"line 1: " SECRET "\"]}");
	/* It left its own code in a file. */
	char facts[400], blob[HISTORY_NODE_SIZE];
	struct bytes code = {(const uint8_t *)SECRET_CODE, sizeof SECRET_CODE - 1};
	assert_true(repo_blob_name(code, blob));
	(void)snprintf(facts, sizeof facts,
		",\"ename\":\"ValueError\",\"evalue\":\"" SECRET "\",\"files\":{\"changed\":["
		"{\"path\":\"left.py\",\"mode\":\"100644\",\"blob\":\"%s\"}]}",
		blob);
	tape_end(t, "error", 2, facts);
	return t;
}

static inline void tell_story(struct hfix *fx, struct story *s)
{
	s->first = tape_new(fx, "m-first", "a = 1", FINE);
	tape_say(s->first, "display_data",
		"{\"data\":{\"text/plain\":\"as it was\"},\"metadata\":{},"
		"\"transient\":{\"display_id\":\"of-first\"}}");
	tape_end(s->first, "ok", 1, "");
	s->secret = tell_secret(fx);
	s->later = tape_new(fx, "m-later", "b = 2", FINE);
	tape_say_to(s->later, "m-secret", "stream",
		"{\"name\":\"stdout\",\"text\":\"late " SECRET "\"}");
	tape_stream(s->later, "stdout", "of later\n");
	tape_end(s->later, "ok", 3, "");
	s->last = tape_new(fx, "m-last", "c = 3", FINE);
	tape_stream(s->last, "stdout", "of last\n");
	tape_end(s->last, "ok", 4, "");
	s->other = tape_new(fx, "m-other", "d = 4", FINE);
	tape_end(s->other, "ok", 1, "");
}

static inline void record_story(struct hfix *fx, struct story *s)
{
	tell_story(fx, s);
	struct tape *const all[] = {s->first, s->secret, s->later, s->last};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		hand_over(fx, all[i]);
		await_fine(fx, all[i]);
	}
	assert_int_equal(hand_over_to(fx, s->other, HISTORY_A, "k2", 1), 0);
	await_fine(fx, s->other);
	assert_true(is_found(fx, SECRET) && is_found(fx, PIXELS));
}

static inline void assert_code(
	struct hfix *fx, const char *node, const char *code, const char *parent, const char *output)
{
	cJSON *tree = ask_node(fx, node);
	assert_string_equal(text_at(tree, "code"), code);
	if (parent)
		assert_string_equal(text_at(tree, "parent"), parent);
	char *outputs = cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, "outputs"));
	if (output ? !strstr(outputs, output) : strcmp(outputs, "[]") != 0)
		fail_msg("%s: %s", node, outputs);
	free(outputs);
	cJSON_Delete(tree);
}

/* Whatever went before, the secret is gone and all else is there. */
static inline void assert_forgotten(struct hfix *fx)
{
	assert_gone(fx);
	assert_git(fx, HISTORY_A, "show main:files/left.py | head -1", "coppice-lost 1\n");
	assert_git(
		fx, HISTORY_A, "log --format=%s main", "c = 3\nb = 2\n(forgotten)\na = 1\nBegin\n");
	assert_git(fx, HISTORY_A, "log --format=%s main.2", "d = 4\nBegin\n");
	assert_code(fx, "main.2", "d = 4", NULL, NULL);
	assert_code(fx, "main", "c = 3", NULL, "of last");
	cJSON *last = ask_node(fx, "main");
	assert_code(fx, text_at(last, "parent"), "b = 2", NULL, "of later");
	cJSON *later = ask_node(fx, text_at(last, "parent"));
	assert_code(fx, text_at(later, "parent"), "# forgotten\n", NULL, NULL);
	cJSON_Delete(later);
	cJSON_Delete(last);
}

#endif
