/* Conversations: somebody asks in words, a model writes code, a kernel runs it, the model is shown
 * what failed, and explains what came out. A client of the spine like any other: kernels are
 * reached through struct chat_runner. Owns conversations and their files. Loop thread. */
#ifndef COPPICE_ADAPTER_H
#define COPPICE_ADAPTER_H

#include <limits.h>

#include "frontend-adapter/figures.h"
#include "frontend-adapter/renderer.h"
#include "frontend-adapter/runner.h"
#include "gateway/base/base.h"
#include "gateway/base/clock.h"
#include "gateway/base/crypto.h"
#include "gateway/base/err.h"
#include "gateway/base/log.h"

struct cJSON;
struct uv_loop_s;
struct chats;

#define CHAT_REPAIRS	 3 /* at most, of one message */
#define PREPARE_TEXT_MAX (1u << 20)

struct chats_setup {
	struct uv_loop_s *loop;
	struct clock *clock;
	const struct log *log;
	const char *folder;    /* of the conversations; made if absent */
	const char *model_url; /* "": there is no model, code can still be run */
	const char *model_name;
	const char *model_key; /* NULL: none */
	uint64_t model_timeout_ms;
	size_t model_history;	   /* bytes of what was said that the model is told at most */
	struct renderer *renderer; /* scales pictures; NULL: those that do not fit are left out */
	const struct chat_runner *runner;
	void *runner_data;
};

int chats_open(const struct chats_setup *setup, struct chats **ret, struct err *err);
/* Turns under way end; cb from the loop, once. */
void chats_close(struct chats *cs, void (*cb)(void *data), void *data);
/* The execution of that msg_id, if it is one of ours, became that node of its history. */
void chats_recorded(struct chats *cs, const char *msg_id, const char *node);

/* What of a model's text is to be run: ret_tree, which the caller owns, is
 * {verdict: "code" | "no-code" | "incomplete",
 *  blocks: [{code, language, changes: [{rule, before, after}]}], prose}.
 * Blocks of language "python" are the runs, in order; others are listed only. Any bytes are taken,
 * any thread. E_TOO_BIG: longer than PREPARE_TEXT_MAX, or of more parts than anybody writes. */
int prepare_text(struct bytes text, struct cJSON **ret_tree, struct err *err);

/* ---- conversations: trees are the caller's; another owner's is E_NOT_FOUND ---- */

int chat_create(struct chats *cs, const char *owner, const struct cJSON *wish, struct cJSON **ret,
	struct err *err);
/* Where a page begins: `next` of the one before, or NULL; and how many it has at most. */
struct chat_page {
	const char *cursor;
	unsigned limit;
};
int chat_list(const struct chats *cs, const char *owner, const struct chat_page *page,
	struct cJSON **ret, struct err *err);
int chat_find(const struct chats *cs, const char *owner, const char *id, struct err *err);
/* A page of its records, and if `whole` all else of it. */
int chat_get(const struct chats *cs, const char *owner, const char *id, bool whole,
	const struct chat_page *page, struct cJSON **ret, struct err *err);
/* The last message, or the last record. */
int chat_last(const struct chats *cs, const char *owner, const char *id, bool record,
	struct cJSON **ret, struct err *err);
int chat_rename(
	struct chats *cs, const char *owner, const char *id, const char *title, struct err *err);
/* Its kernels, their histories and its files go too. cb from the loop, once, unless an error is
 * returned; with one it is still there, to be deleted again. */
int chat_delete(struct chats *cs, const char *owner, const char *id,
	void (*cb)(void *data, const struct err *err), void *data, struct err *err);
int chat_record(const struct chats *cs, const char *owner, const char *record, struct cJSON **ret,
	struct err *err);
/* All that conversations keep of what that kernel ran of that code: its records, the answers that
 * they belong to and what was asked there, what is kept of events. E_IO: it is not all on the disk.
 */
int chats_forget(struct chats *cs, const char *kernel_id, struct bytes code, struct err *err);
/* Nodes have other ids: now_of is that of a node, or NULL where it is as it was. */
void chats_renamed(struct chats *cs, const char *(*now_of)(const void *data, const char *node),
	const void *data);
/* Where the whole of what it printed is; there is no file if that is nothing. */
int chat_log(const struct chats *cs, const char *owner, const char *record, char ret_path[PATH_MAX],
	struct err *err);
int chat_interrupt(struct chats *cs, const char *owner, const char *id, struct err *err);

/* Who listens to a turn. The turn goes on without it. */
struct chat_listener {
	/* json is an object's text, borrowed; ids rise within a conversation. */
	void (*on_event)(void *data, uint64_t id, const char *name, const char *json);
	/* Once, last: the turn is over. failure: it ran nothing, for that reason; else NULL. */
	void (*on_end)(void *data, const struct err *failure);
	void *data;
};

struct chat_message {
	const char *content; /* what a person says (model), or code to be run as it is */
	bool model;
	double timeout_s; /* of that code, as chat_run's */
};
/* Begins a turn. E_BUSY: one is under way. listener is copied; callbacks from the loop. */
int chat_say(struct chats *cs, const char *owner, const char *id,
	const struct chat_message *message, const struct chat_listener *listener, struct err *err);
/* Events after that id, then those to come until the turn ends. */
int chat_listen(struct chats *cs, const char *owner, const char *id, uint64_t after,
	const struct chat_listener *listener, struct err *err);
/* The listener of that data has left: nothing more is told. */
void chat_unlisten(struct chats *cs, const char *id, const void *data);

#endif
