/* why.h - why a job waits where it does, and what would let it start
 *
 * Owns     nothing. Touches memory only. Any thread.
 * Used by  rpc/method/m_why.c.
 *
 * Where it stands in line is told by line.h. The same predicates decide here as in earnest: a question is answered by running the
 * scheduler on a copy of the state, as it is and with one thing changed (why_try.h).
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
	struct snap_key key; /* a waiting job; index -1 of an array: its next element */
	bool (*stop)(void *arg); /* may be NULL: nobody waits for the answer any more */
	void *stop_arg;
};

/* A map made in mem:
 *   next      what the scheduler would do with it now: "start", "claim" or "wait"
 *   victims   jobs that would leave for it: {job, user, queue, gpus, end_time, cause, rule}
 *   standing  what it asks for is inside the "quota" of its queue and of those above, inside
 *             the "fair_share" of its queue, or "beyond"; null = it asks for no devices, or has
 *             to stand inside the quota and does not
 *   free      {gpus, largest}: whole devices that it might have, most of them on one node;
 *             null = it asks for none
 *   queues    of those with waiting jobs, and those above them: {name, depth, waiting,
 *             allocated, fair_share, quota, limit} in devices of the flavors that it may use
 *   changes   what would let it start, cheapest first: why_change.h
 *   bounds    at which the scheduler stopped short of something for it: {bound, most}
 *   tries, cut_short   how many changes were tried; the bound on them was reached
 * Returns 0, GPUQ_ENOENT (the job does not wait in that state), GPUQ_ENOMEM. */
int why_explain(const struct why_question *q, struct gpuq_arena *mem, struct gpuq_val **out,
		struct gpuq_err *err);

#endif
