/* A part of frontend-adapter's public header: what runs code for conversations. Loop thread. */
#ifndef COPPICE_ADAPTER_RUNNER_H
#define COPPICE_ADAPTER_RUNNER_H

#include "gateway/base/base.h"
#include "gateway/base/crypto.h"
#include "gateway/base/err.h"

struct cJSON;

struct chat_outcome {
	const char *status;	    /* ok, error, aborted, timed_out or died */
	uint64_t waited_ms, ran_ms; /* until the kernel began; from there to its end */
	uint64_t peak_memory_bytes; /* of its process meanwhile; 0: not known */
	unsigned queue_position;    /* how many were before it when it came */
	uint64_t epoch;		    /* of the kernel's process; 0: it did not begin */
	bool revived;		    /* that process began at a node of its history */
	bool leaves;		    /* the code asked the kernel to end */
	char lost[160];		    /* why not all that it said came; "": it did */
};

/* One run of code. Callbacks from the loop, on_end once and last. */
struct chat_run {
	const char *code;
	const char *retry_of; /* msg_id of the run that this one repairs, or NULL */
	double timeout_s;     /* less than its owner's tier has; 0: as that says */
	/* What the kernel published for it, or in the end the error that only its reply tells;
	 * content is a JSON object, borrowed. */
	void (*on_message)(void *data, const char *msg_type, struct bytes content);
	bool (*lags)(void *data); /* true: no more for now */
	void (*on_end)(void *data, const struct chat_outcome *outcome);
	void *data;
};

/* To before a run: texts are borrowed for the call. cb from the loop, once: told is {restored_by,
 * report}, borrowed, or NULL: it was there already; with err nothing has moved. */
struct chat_back {
	const char *owner, *kernel_id, *msg_id;
	void (*cb)(void *data, const struct cJSON *told, const struct err *err);
	void *data;
};

/* What runs code; the gateway's. data is chats_setup.runner_data. */
struct chat_runner {
	int (*start)(void *data, const char *owner, const char *kernel_name, char ret_id[UUID_SIZE],
		struct err *err);
	/* After a start that was E_CAPACITY. False: nobody may wait. Else cb from the loop, once:
	 * with NULL when there is a place, which a start within the call takes. */
	bool (*await_place)(
		void *data, void (*cb)(void *data, const struct err *err), void *cb_data);
	/* E_GONE, E_NOT_FOUND: that kernel is not there any more. run is copied, its texts are
	 * borrowed for the call. */
	int (*run)(void *data, const char *owner, const char *kernel_id, const struct chat_run *run,
		char ret_msg_id[UUID_SIZE], struct err *err);
	void (*interrupt)(void *data, const char *owner, const char *kernel_id);
	void (*back)(void *data, const struct chat_back *back);
	/* The kernel ends and its history goes, unless somebody else uses them. cb from the loop,
	 * once; err NULL: all that was to go is gone. */
	void (*drop)(void *data, const char *owner, const char *kernel_id,
		void (*cb)(void *data, const struct err *err), void *cb_data);
};

#endif
