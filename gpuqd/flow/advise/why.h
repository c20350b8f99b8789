/* why.h - why a job is pending at its rank, and what would let it start
 *
 * Owns     nothing. Touches memory only. Any thread.
 * Used by  rpc/method/m_why.c.
 *
 * Its rank in the queue order is reported by line.h. The predicates are those of the scheduler
 * itself: a question is answered by running it on a copy of the state, as it is and with one
 * thing changed (why_try.h).
 */
#ifndef GPUQD_FLOW_ADVISE_WHY_H
#define GPUQD_FLOW_ADVISE_WHY_H

#include <stdbool.h>

#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct why_question {
	const struct gpuq_buf *packed; /* the state: snapshot/snapshot_pack.h */
	struct snap_key key; /* a pending job; index -1: the next element of an array */
	bool (*stop)(void *arg); /* may be NULL; true: the reply is no longer wanted */
	void *stop_arg;
};

/* A map made in mem:
 *   next      what the scheduler would do with it now: "start", "claim" or "wait"
 *   victims   jobs that would be preempted for it: {job, user, queue, gpus, end_time, cause, rule}
 *   standing  its request is within the "quota" of its queue and of those above, within the
 *             "fair_share" of its queue, or "beyond"; null = it requests no devices, or must
 *             be within the quota and is not
 *   free      {gpus, largest}: whole devices that it might get, and the most of them on one
 *             node; null = it requests none
 *   queues    those with pending jobs, and those above them: {name, depth, waiting,
 *             allocated, fair_share, quota, limit} in devices of the flavors that it may use
 *   missing   what keeps it off all nodes: why_missing.h
 *   changes   that would let it start, cheapest first: why_change.h
 *   bounds    at which the scheduler stopped short of something for it: {bound, most}
 *   tries, cut_short   how many changes were tried; the bound on them was reached
 * Returns 0, GPUQ_ENOENT (the job is not pending in that state), GPUQ_ENOMEM. */
int why_explain(const struct why_question *q, struct gpuq_arena *mem, struct gpuq_val **out,
		struct gpuq_err *err);

#endif
