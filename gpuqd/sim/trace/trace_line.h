/* trace_line.h - the pending jobs of a replay, by kind
 *
 * Owns     the order of the jobs that are alike.
 * Touches  memory only.
 * Used by  trace_core.c.
 *
 * A replay takes hundreds of thousands of cycles, and tens of thousands of jobs may be pending.
 * Among jobs that are alike (same queue, user, size and kind) only the first ones in order of
 * service are entries of their own in a snapshot; the others are one entry like a job array. When
 * the order is fresh this does not change decisions, see trace_line_exact(); where many of a kind
 * are pending they are ordered again every five minutes.
 */
#ifndef GPUQD_SIM_TRACE_TRACE_LINE_H
#define GPUQD_SIM_TRACE_TRACE_LINE_H

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/sim/trace/trace_read.h"
#include "gpuqd/snapshot/snapshot_keep.h"

#define TRACE_NONE UINT32_MAX

/* Pending jobs that are alike, the first to be served first. */
struct trace_kind {
	uint32_t first, last, n;
};

struct trace_pending {
	uint32_t kind, before, after; /* its kind; neighbours while it is pending */
	uint32_t n_evictions; /* so far: they count as waiting */
};

struct trace_line {
	const struct trace *t;
	struct trace_pending *jobs; /* by job */
	struct trace_kind *kinds;
	uint32_t n_kinds, n; /* n: pending jobs */
	int64_t ranked_us; /* when they were last ordered */
	uint32_t *order, *scratch; /* n_jobs each */
	int64_t *points; /* scratch, by job */
	struct keep_pending *picked, *entries; /* scratch; as they are picked, and by id */
};

bool trace_line_init(struct trace_line *l, const struct trace *t);
void trace_line_done(struct trace_line *l);

/* Append a job to its kind; an evicted job goes first, so that it is always an entry of its own. */
void trace_line_enter(struct trace_line *l, uint32_t job, bool evicted);
void trace_line_leave(struct trace_line *l, uint32_t job);

/* Order the jobs of each kind anew, if that was long ago. */
void trace_line_rank(struct trace_line *l, const struct snap_weights *w, int64_t now_us);

/* Choose the entries: of every kind the first `most`, and one for the others; job i has the id i + 1.
 * They are in l->entries; returns their number. */
uint32_t trace_line_pick(struct trace_line *l, uint32_t most);

/* True if the decision would be the same with every job as an entry of its own. n_free: GPUs. */
bool trace_line_exact(const struct trace_line *l, const struct plan *p, uint32_t most,
		      uint32_t n_free);

#endif
