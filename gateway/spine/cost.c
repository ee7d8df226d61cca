#include "gateway/spine/cost.h"

#include <math.h>
#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/spine/desk.h"

#define MIB 1048576.0

static const struct {
	const char *name, *help;
	double bound[COST_BOUNDS]; /* the last one is +Inf */
} kinds[COST_KINDS] = {
	[COST_QUEUE_POSITION] = {"execution_queue_position",
		"Executions that were before one when it came.",
		{0, 1, 2, 5, 10, 20, 50, 100, INFINITY}},
	[COST_WAIT_SECONDS] = {"execution_wait_seconds",
		"From an execution's coming until its kernel began it.",
		{0.001, 0.01, 0.1, 0.5, 1, 5, 10, 60, INFINITY}},
	[COST_RUN_SECONDS] = {"execution_run_seconds", "From there to its end.",
		{0.001, 0.01, 0.1, 0.5, 1, 5, 10, 60, INFINITY}},
	[COST_RECORD_SECONDS] = {"execution_record_seconds", "From there until it was a commit.",
		{0.01, 0.05, 0.1, 0.2, 0.5, 1, 5, 60, INFINITY}},
	[COST_OUTPUT_BYTES] = {"execution_output_bytes",
		"Of all messages that a kernel sent for an execution.",
		{1e3, 1e4, 1e5, 1e6, 3e6, 1e7, 1e8, 1e9, INFINITY}},
	[COST_MEMORY_BYTES] = {"execution_peak_memory_bytes",
		"The most memory that the kernel's process had during an execution.",
		{64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, 1024 * MIB, 2048 * MIB, 4096 * MIB,
			16384 * MIB, INFINITY}},
};

void costs_add(struct costs *c, enum cost_kind kind, double value)
{
	c->of[kind].n++;
	c->of[kind].sum += value;
	for (size_t i = 0; i < COST_BOUNDS; i++)
		c->of[kind].at_most[i] += value <= kinds[kind].bound[i];
}

static double seconds(int64_t from_us, int64_t to_us)
{
	return to_us > from_us ? (double)(to_us - from_us) / 1e6 : 0; /* clocks are set back */
}

void costs_add_execution(struct costs *c, const struct execution *x)
{
	costs_add(c, COST_QUEUE_POSITION, x->queue_position);
	costs_add(c, COST_WAIT_SECONDS, seconds(x->accepted_us, x->running_us));
	costs_add(c, COST_RUN_SECONDS, seconds(x->running_us, x->done_us));
	costs_add(c, COST_OUTPUT_BYTES, (double)x->output_bytes);
	if (x->peak_bytes > 0)
		costs_add(c, COST_MEMORY_BYTES, (double)x->peak_bytes);
}

static void metrics_of(const struct costs *c, enum cost_kind kind, struct buf *ret)
{
	const char *name = kinds[kind].name;
	(void)buf_addf(ret, "# HELP coppice_%s %s\n# TYPE coppice_%s histogram\n", name,
		kinds[kind].help, name); /* latched, as below */
	for (size_t i = 0; i < COST_BOUNDS - 1; i++)
		(void)buf_addf(ret, "coppice_%s_bucket{le=\"%.12g\"} %llu\n", name,
			kinds[kind].bound[i], (unsigned long long)c->of[kind].at_most[i]);
	(void)buf_addf(ret,
		"coppice_%s_bucket{le=\"+Inf\"} %llu\ncoppice_%s_sum %.17g\ncoppice_%s_count "
		"%llu\n",
		name, (unsigned long long)c->of[kind].n, name, c->of[kind].sum, name,
		(unsigned long long)c->of[kind].n);
}

void costs_metrics(const struct costs *c, struct buf *ret)
{
	for (unsigned kind = 0; kind < COST_KINDS; kind++)
		metrics_of(c, kind, ret);
}
