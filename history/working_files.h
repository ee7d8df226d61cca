/* Part of history.h, which includes it: what the working folder of a node holds
 * (docs/decisions/0028). All of it comes from a guest and is checked again here. Loop thread; the
 * bulk lane does it.
 *
 * How a run brings its files: the facts that end its source (`coppice_execution`) carry `files`,
 * the Change as it was told, or `files_reason`, a sentence, where it was not. Without either the
 * node has the files of its parent. A run that nobody asked for (kind `files`) is one frame alone,
 * of type `coppice_files`, whose header has a msg_id of its own and whose content is
 * {"files": Change, "done_us"}; it is handed over by history_record() as any other. A content that
 * is not there when the run is recorded makes that entry `lost`, never a failed record; the same
 * goes for a path that cannot be kept. What was refused stands in the node's files.json and in
 * HISTORY_FILES. In the answer of HISTORY_WAY the msg_id of a node of kind `files` is that of the
 * execution before it, in whose memory it is. */
#ifndef COPPICE_HISTORY_WORKING_FILES_H
#define COPPICE_HISTORY_WORKING_FILES_H

#include "history/history.h"

#define HISTORY_CONTENT_MAX   (1u << 20)  /* bytes of one content */
#define HISTORY_CONTENTS_MAX  16384u	  /* names in one history_lacks() */
#define HISTORY_CONTENTS_WAIT (32u << 20) /* bytes that may wait for history_keep() at once */

/* The history that a run will be recorded in, by what its history_run says. */
struct history_whose {
	const char *history_id;
	const char *wanted; /* or NULL */
	const char *owner;  /* NULL: the history of that id, whosever */
};

/* Which of these contents are not there. names: 40 or 64 lower-case hex digits each, what is
 * neither is told as lacking. cb once, from the loop: lacking are indices into names, in order.
 * What is there, or is kept below, stays for an hour at least, also if it is forgotten or
 * collected meanwhile. Copies the texts. */
void history_lacks(struct histories *h, const struct history_whose *whose, const char *const *names,
	size_t n,
	void (*cb)(void *data, int status, const size_t *lacking, size_t n, const struct err *err),
	void *data);

/* Keeps one content under its name; copies both. cb once, from the loop, in the order of the calls:
 * 0; E_INVALID: the name is none, or not this content's, or the content cannot be told from a
 * pointer of ours; E_TOO_BIG; E_CAPACITY: HISTORY_CONTENTS_WAIT waits already, so ask for contents
 * in portions; E_IO; E_UNAVAILABLE: everything ends. The history is made if there is none yet. */
void history_keep(struct histories *h, const struct history_whose *whose, const char *name,
	struct bytes content, void (*cb)(void *data, int status, const struct err *err),
	void *data);

/* cb once, from the loop, in the order of the calls: the bytes that a name stands for, whose hash
 * was checked; borrowed. E_NOT_FOUND, E_IO (damaged). */
void history_content(struct histories *h, const struct history_whose *whose, const char *name,
	void (*cb)(void *data, int status, struct bytes content, const struct err *err),
	void *data);

/* HISTORY_FILES is asked by history_ask(), as HISTORY_NODE is. Its answer:
 * {history, node, recorded, entries: [Entry], lost: [{path, reason}]}
 * recorded false: nothing is known of that node's folder (it has no `files/`), entries is empty;
 * entries: the whole folder as 0028 says, sorted by path, ready to be laid; with "lost" where its
 * content is not kept, in whichever node that was; lost: of this node's Change, what is no entry.
 * E_TOO_BIG: more than HISTORY_FILES_MAX entries. */
#define HISTORY_FILES_MAX 20000u

#endif
