/* Inside of conversations: their struct, their events, their files. A conversation is
 * FOLDER/ID.json: what was said and which records there are; each record is a file of its own,
 * FOLDER/ID/RECORD.json, written once. Loop thread. */
#ifndef COPPICE_ADAPTER_CONVERSATION_H
#define COPPICE_ADAPTER_CONVERSATION_H

#include <cjson/cJSON.h>

#include "frontend-adapter/adapter.h"
#include "frontend-adapter/model.h"
#include "gateway/base/hash.h"
#include "gateway/base/list.h"

#define EVENTS_MAX   4096u	 /* kept for who comes back, */
#define EVENTS_BYTES (16u << 20) /* and not more than so much */
#define NODE_SIZE    41

struct turn;

struct event {
	struct list link;
	uint64_t id;
	char *name, *json;
	size_t bytes;
};

struct listener {
	struct list link;
	struct chat_listener to;
};

/* What becomes known of a run once its record is written. */
struct run_facts {
	char msg_id[UUID_SIZE]; /* of its request */
	char node[NODE_SIZE];	/* "": no commit yet */
	uint64_t record_ms;	/* from its end until it was one; 0: not known */
};

/* A run whose node is not known yet. */
struct expected {
	UT_hash_handle hh; /* chats.expected, by msg_id */
	char msg_id[UUID_SIZE];
	struct conversation *c;
	uint64_t ended_ms; /* 0: it has not */
};

struct conversation {
	UT_hash_handle hh; /* chats.by_id */
	struct chats *chats;
	char id[UUID_SIZE], kernel_id[UUID_SIZE]; /* "": none yet */
	char ran_in[UUID_SIZE + 24]; /* kernel and its process that ran the last code; "": none */
	char *owner, *title, *kernel_name;
	int64_t created_us;
	struct cJSON *messages; /* [{role, content, records?, status?, error?, usage?}] */
	struct cJSON *records;	/* [{id, msg_id, node, record_ms?, not_recorded?}] */
	struct cJSON *kernels;	/* ids of all that it ever had */
	bool leaving;		/* it is being deleted */
	struct list events, listeners;
	size_t n_events, event_bytes;
	uint64_t last_event;
	bool unsaved; /* its file could not be written, which was told */
	struct turn *turn;
};

struct chats {
	struct chats_setup setup;
	char *folder;
	struct model *model; /* NULL: none is configured */
	struct conversation *by_id;
	struct expected *expected;
	struct list deletions;
	struct chats_figures figures;
	struct log log;
	void (*closed)(void *data);
	void *closed_data;
};

/* ---- conversation.c ---- */

/* Tells listeners and keeps it; takes the tree. Without memory for its text it says that. */
void conversation_tell(struct conversation *c, const char *name, struct cJSON *tree);
/* The turn is over: listeners are told and leave. failure: it ran nothing, or NULL. */
void conversation_rest(struct conversation *c, const struct err *failure);
void listener_free(struct listener *l);
/* Adds a message, {role, content, ...}; takes it. */
void conversation_said(struct conversation *c, struct cJSON *message);
/* An array of the records that no message names: those of the turn that is under way. */
struct cJSON *conversation_unsaid(const struct conversation *c);
/* The row of a record; NULL: there is none. */
struct cJSON *conversation_find(const struct conversation *c, const char *key, const char *value);
/* It has another kernel from now on, that of its kernel_id. */
void conversation_has_kernel(struct conversation *c);
struct conversation *conversation_new(
	struct chats *cs, const char *id, const char *owner, const char *title);
/* Listeners are told; its files stay. */
void conversation_free(struct conversation *c);

/* ---- expected.c ---- */

/* Its msg_id will be told with its node. */
void conversation_expect(struct conversation *c, const char *msg_id);
void conversation_ended(struct conversation *c, const char *msg_id);
/* Runs of earlier gateways that may still be told of. */
void conversation_expect_all(struct conversation *c);
void conversation_expect_nothing(struct conversation *c);

/* ---- conversation_files.c ---- */

/* What lists show. */
struct cJSON *conversation_head(const struct conversation *c);
/* Nobody who comes back gets what was told so far. */
void conversation_forget_events(struct conversation *c);
/* To its file. */
int conversation_save_or(const struct conversation *c, struct err *err);
/* A failure is logged and told, once; the conversation goes on. */
void conversation_save(struct conversation *c);
/* Takes the record. The row is saved with the conversation. An error: the record could not be kept,
 * which its row says. */
int conversation_add_record(struct conversation *c, struct cJSON *record,
	const struct run_facts *facts, struct err *err);
/* The record of that row as its text, with what its row knows. E_GONE: its file is not there. */
int conversation_record(
	const struct conversation *c, const struct cJSON *row, struct cJSON **ret, struct err *err);
/* The same as a tree; and in the place of what is there. */
int conversation_read_record(
	const struct conversation *c, const char *id, struct cJSON **ret, struct err *err);
int conversation_write_record(
	const struct conversation *c, const char *id, const struct cJSON *record, struct err *err);
/* FOLDER/ID/RECORD.WORD; false: too long. */
bool conversation_path(
	const struct conversation *c, const char *record, const char *word, char *ret, size_t size);
/* Its files go. */
void conversation_remove(const struct conversation *c);
/* All that the folder holds. What is no conversation is passed over with a warning; one that cannot
 * be read is an error. */
int conversations_load(struct chats *cs, struct err *err);

static inline const char *tree_text(const struct cJSON *tree, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, key));
	return text ? text : "";
}

#endif
