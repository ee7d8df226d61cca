#include "history/reindex.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/hash.h"
#include "history/forget.h"
#include "history/index.h"
#include "history/record.h"
#include "history/spliced.h"

#define NODES_MAX (1u << 28) /* bytes of pointers */

/* A node that the index lacks. */
struct found {
	char node[HISTORY_NODE_SIZE], parent[HISTORY_NODE_SIZE];
	uint64_t n;
	int64_t when_us; /* never less than its parent's, whatever the clock did */
	size_t order;	 /* parents first */
	UT_hash_handle hh;
};

struct reindexing {
	struct db *db;
	struct repo *repo;
	const char *history;
	struct buf nodes; /* struct found *, those of one line after the other */
	struct found *by_node;
	size_t order;
	bool met_tip;	     /* of the branch as the index has it */
	const char *reading; /* the node whose commit is being read */
};

static size_t count_of(const struct reindexing *r)
{
	return r->nodes.len / sizeof(struct found *);
}

static struct found **found_at(const struct reindexing *r, size_t i)
{
	return (struct found **)(void *)r->nodes.data + i;
}

static void forget_found(struct reindexing *r)
{
	HASH_CLEAR(hh, r->by_node);
	for (size_t i = 0; i < count_of(r); i++)
		free(*found_at(r, i));
	buf_reset(&r->nodes);
}

static int add_was(void *data, const char *was, struct err *err)
{
	const struct reindexing *r = data;
	return index_add_was(r->db, r->history, was, r->reading, err);
}

static int read_found(
	struct reindexing *r, const char *node, struct found *ret_found, struct err *err)
{
	AUTO(buf_done) struct buf keep;
	struct commit_view view;
	char count[24];
	int status = repo_read_commit(r->repo, node, &view, err);
	keep = view.message;
	if (status != 0)
		return status;
	*ret_found = (struct found){.when_us = view.author_us};
	(void)snprintf(ret_found->node, HISTORY_NODE_SIZE, "%s", node);
	(void)snprintf(ret_found->parent, HISTORY_NODE_SIZE, "%s", view.parent);
	if (trailer_find((const char *)keep.data, "Node-Count", count, sizeof count))
		(void)number_u64((struct bytes){(uint8_t *)count, strlen(count)}, &ret_found->n);
	r->reading = ret_found->node;
	return forget_each_was((const char *)keep.data, add_was, r, err);
}

/* Nodes from `from` on were found tip first. */
static void turn_round(struct reindexing *r, size_t from)
{
	size_t n = count_of(r);
	for (size_t i = from, j = n; i + 1 < j; i++) {
		struct found *keep = *found_at(r, i);
		*found_at(r, i) = *found_at(r, --j);
		*found_at(r, j) = keep;
	}
	int64_t last = 0;
	for (size_t i = from; i < n; i++) {
		struct found *f = *found_at(r, i);
		f->order = r->order++;
		f->when_us = f->when_us > last ? f->when_us : last;
		last = f->when_us;
	}
}

static int keep_found(struct reindexing *r, struct found *f, struct err *err)
{
	int status = buf_add(&r->nodes, &f, sizeof(struct found *));
	if (status != 0) {
		free(f);
		return buf_check(&r->nodes, "nodes", err);
	}
	HASH_ADD_STR(r->by_node, node, f);
	return 0;
}

/* From a tip back to what the index has. */
static int walk(
	struct reindexing *r, const struct branch_tip *tip, const char *old_tip, struct err *err)
{
	char node[HISTORY_NODE_SIZE];
	size_t before = count_of(r);
	int status = 0;
	memcpy(node, tip->node, sizeof node);
	r->met_tip = old_tip[0] == '\0';
	while (status == 0 && node[0]) {
		struct found *f = NULL;
		r->met_tip = r->met_tip || strcmp(node, old_tip) == 0;
		HASH_FIND_STR(r->by_node, node, f);
		if (f || (status = index_has_node(r->db, r->history, node, err)) != 0)
			break;
		f = xcalloc(1, sizeof *f);
		status = read_found(r, node, f, err);
		memcpy(node, f->parent, sizeof node);
		if (status == 0)
			status = keep_found(r, f, err);
		else
			free(f);
	}
	if (status < 0)
		return status;
	turn_round(r, before);
	return 0;
}

static int add_root(struct reindexing *r, const struct found *f, struct err *err)
{
	struct commit_view view;
	int status = repo_read_commit(r->repo, f->node, &view, err);
	if (status == 0)
		status = index_add_history(
			r->db, r->history, f->node, (const char *)view.message.data, err);
	buf_done(&view.message);
	return status;
}

static int add_found(struct reindexing *r, const struct found *f, struct err *err)
{
	AUTO(buf_done) struct buf meta;
	char path[RUN_FOLDER_SIZE + 16], folder[RUN_FOLDER_SIZE];
	buf_init(&meta, 16u << 20);
	if (!f->parent[0])
		return add_root(r, f, err);
	run_folder(f->n, folder);
	(void)snprintf(path, sizeof path, "%s/meta.json", folder);
	int status = repo_read_file(r->repo, f->node, path, &meta, err);
	if (status != 0)
		return status;
	struct index_node node = {r->history, f->node, f->parent, {meta.data, meta.len}};
	return index_add_node(r->db, &node, err);
}

static int by_time(const void *a, const void *b)
{
	const struct found *x = *(struct found *const *)a, *y = *(struct found *const *)b;
	if (x->when_us != y->when_us)
		return x->when_us < y->when_us ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int add_all(struct reindexing *r, struct err *err)
{
	size_t n = count_of(r);
	int status = 0;
	if (n > 0)
		qsort(r->nodes.data, n, sizeof(struct found *), by_time);
	for (size_t i = 0; status == 0 && i < n; i++)
		status = add_found(r, *found_at(r, i), err);
	return status;
}

/* *ret_lost: the index has something that the refs have not. */
static int compare(struct reindexing *r, const struct branch_tip *tips, size_t n, bool *ret_lost,
	struct err *err)
{
	int status = 0;
	*ret_lost = false;
	for (size_t i = 0; status == 0 && i < n; i++) {
		char old[HISTORY_NODE_SIZE] = "";
		status = index_find_tip(r->db, r->history, tips[i].name, old, err);
		if (status < 0 || strcmp(old, tips[i].node) == 0) {
			status = status < 0 ? status : 0;
			continue;
		}
		status = walk(r, &tips[i], old, err);
		*ret_lost = *ret_lost || !r->met_tip;
	}
	return status;
}

/* A branch of the index that no ref has. */
static int find_gone(struct reindexing *r, const struct branch_tip *tips, size_t n, bool *ret_lost,
	struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(r->db, "SELECT name FROM branches WHERE history = ?",
		DB_VALUES(DB_T(r->history)), &rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		bool there = false;
		for (size_t i = 0; i < n; i++)
			there = there || strcmp(tips[i].name, db_text(rows, 0)) == 0;
		*ret_lost = *ret_lost || !there;
		status = 0;
	}
	return status;
}

/* Records of a history that nobody can find: its adoption was cut off. */
static int drop_half_adopted(struct reindexing *r, struct err *err)
{
	char root[HISTORY_NODE_SIZE];
	int status = index_find_root(r->db, r->history, root, err);
	if (status == 0)
		return index_forget(r->db, r->history, err);
	return status < 0 ? status : 0;
}

static int apply(struct reindexing *r, const struct branch_tip *tips, size_t n, struct err *err)
{
	bool lost = false;
	int status = drop_half_adopted(r, err);
	if (status == 0)
		status = compare(r, tips, n, &lost, err);
	if (status == 0)
		status = find_gone(r, tips, n, &lost, err);
	if (status == 0 && lost) {
		forget_found(r);
		status = index_forget(r->db, r->history, err);
		if (status == 0)
			status = compare(r, tips, n, &lost, err);
	}
	if (status == 0)
		status = add_all(r, err);
	for (size_t i = 0; status == 0 && i < n; i++)
		status = index_set_branch(r->db, r->history, tips[i].name, tips[i].node, err);
	return status;
}

int reindex_history(
	struct db *db, struct repo *repo, const char *history, size_t *ret_added, struct err *err)
{
	AUTO(freep) struct branch_tip *tips = NULL;
	struct reindexing r = {.db = db, .repo = repo, .history = history};
	size_t n = 0;
	buf_init(&r.nodes, NODES_MAX);
	int status = repo_branches(repo, &tips, &n, err);
	if (status == 0)
		status = apply(&r, tips, n, err);
	*ret_added = count_of(&r);
	forget_found(&r);
	buf_done(&r.nodes);
	return status;
}
