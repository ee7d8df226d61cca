/* One run as its frames tell it: the request, the facts that the spine adds, its outputs. And the
 * texts that are made from it for git: path, meta.json, commit message. Owns copies. One thread. */
#ifndef COPPICE_HISTORY_RECORD_H
#define COPPICE_HISTORY_RECORD_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"
#include "gateway/base/jmsg.h"
#include "history/history.h"
#include "history/outputs.h"

#define RECORD_CODE_MAX	  (256u << 20)
#define RUN_FOLDER_SIZE	  32
#define SUMMARY_SIZE	  300 /* 72 characters */
#define FILES_REASON_SIZE 200

struct record {
	char msg_id[JMSG_ID_MAX], cell_id[JMSG_ID_MAX], session[JMSG_ID_MAX];
	char retry_of[JMSG_ID_MAX]; /* msg_id of the run that this one repairs, or "" */
	bool silent, store_history;
	bool is_report;	   /* what was learnt of msg_id's run; nothing else of this is set */
	struct buf report; /* that */
	bool imported;	   /* nobody saw it run: it was written from a file */
	bool is_files;	   /* nothing ran: the working folder changed */
	struct buf files;  /* the Change, as it was told; empty: none was */
	bool files_known;  /* it is one, and its node has a files.json */
	uint64_t n_files;  /* how many it changed */
	char files_reason[FILES_REASON_SIZE]; /* why there is none, or "" */
	char files_summary[SUMMARY_SIZE];
	struct buf code;
	char status[16];
	char execution_count[24]; /* digits, or "null" */
	char environment[128];	  /* "": as the run says */
	uint64_t accepted_us, sent_us, running_us, done_us, queue_position;
	uint64_t peak_memory_bytes; /* 0: not known */
	struct buf error;	    /* {"ename":...,"evalue":...}, or empty */
	struct buf exit;	    /* as it was sent, or empty */
	struct buf amends;	    /* elements of meta.json's `amends`, see amend.h */
	struct outputs *outputs;
	struct outputs_counts counts; /* after outputs_write() */
	uint64_t unreadable;	      /* frames that were no messages */
	bool ended; /* the last message held its facts; what came of reading them: */
	int facts;
	struct err facts_err;
};

/* To whom an iopub message goes whose parent is another run, and updates of displays that this run
 * does not have. */
struct record_others {
	/* The outputs of that earlier run, NULL in *ret if it is none of this line. */
	int (*outputs)(
		void *data, const char *msg_id, struct outputs **ret_outputs, struct err *err);
	int (*update)(void *data, const char *display_id, struct bytes content, struct err *err);
	void *data;
};

void record_init(struct record *r);
void record_done(struct record *r);
/* The first frame. E_INVALID: it is none of those that a run begins with. */
int record_begin(struct record *r, const struct history_source *source, struct err *err);
/* The rest. E_INVALID: it ends without its facts. */
int record_rest(struct record *r, const struct history_source *source,
	const struct record_others *others, struct err *err);

/* Adds `"key":` and a string as it was sent, cut to what a list can show. */
void record_add_cut(struct buf *b, const char *key, struct bytes raw);

uint64_t record_started_us(const struct record *r);
uint64_t record_duration_us(const struct record *r);
/* The first line of code that says something. */
void record_summary(const struct record *r, char ret_text[SUMMARY_SIZE]);

/* ---- record_text.c ---- */

struct record_place {
	const struct history_run *run;
	const char *branch;
	uint64_t n, state_version;
	char retry_of[HISTORY_NODE_SIZE]; /* the node that the run repairs, or "" */
	char memory_of[JMSG_ID_MAX];	  /* of a change of files: the run before it, or "" */
};

/* "runs/00/00/07" */
void run_folder(uint64_t n, char ret_path[RUN_FOLDER_SIZE]);
int record_meta(const struct record *r, const struct record_place *place, struct buf *ret_json,
	struct err *err);
/* meta with its displays as outputs has them now. */
int record_meta_amend(
	struct bytes meta, const struct outputs *outputs, struct buf *ret_json, struct err *err);
int record_message(const struct record *r, const struct record_place *place, struct buf *ret_text,
	struct err *err);
int root_message(const struct history_run *run, const char *history_name, int64_t created_us,
	struct buf *ret_text, struct err *err);
/* The value of a trailer of a message; false if it has none. */
bool trailer_find(const char *message, const char *key, char *ret_value, size_t size);

#endif
