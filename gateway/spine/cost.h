/* What happened so often, and what executions cost, as Prometheus' histograms: how long they waited
 * and ran, how many were before them, what they sent, the memory they took, how long until they
 * were recorded. Owned by struct kernels. Loop thread. */
#ifndef COPPICE_SPINE_COST_H
#define COPPICE_SPINE_COST_H

#include "gateway/spine/execution.h"

struct buf;

#define COST_BOUNDS 9

enum cost_kind {
	COST_QUEUE_POSITION,
	COST_WAIT_SECONDS,
	COST_RUN_SECONDS,
	COST_RECORD_SECONDS,
	COST_OUTPUT_BYTES,
	COST_MEMORY_BYTES,
	COST_KINDS
};

struct costs {
	struct {
		uint64_t n, at_most[COST_BOUNDS]; /* cumulative */
		double sum;
	} of[COST_KINDS];
};

struct spine_counters {
	uint64_t messages_in, bytes_in;	  /* from clients */
	uint64_t messages_out, bytes_out; /* from kernels */
	uint64_t bad_messages;		  /* of kernels: a status that is none */
	uint64_t executions[EXECUTION_STATUSES];
	uint64_t refused, duplicates, synthesised, deaths, restarts, culled, missed;
	uint64_t recorded, not_recorded; /* executions in history; lost to it */
	struct costs costs;
};

void costs_add(struct costs *c, enum cost_kind kind, double value);
/* One that has run is over. */
void costs_add_execution(struct costs *c, const struct execution *x);
void costs_metrics(const struct costs *c, struct buf *ret);

#endif
