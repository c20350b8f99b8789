/* why_change.h - the cheapest changes that would let a pending job start
 *
 * Owns     nothing. Touches memory only. Any thread.
 * Used by  why.c.
 *
 * From changes that cost its owner nothing (a hold that is released) to those that cost others:
 * another flavor, less of a resource, a smaller size, less time, a running job that moves, jobs that end.
 */
#ifndef GPUQD_FLOW_ADVISE_WHY_CHANGE_H
#define GPUQD_FLOW_ADVISE_WHY_CHANGE_H

#include "gpuqd/flow/advise/why_try.h"
#include "libgpuq/arena.h"
#include "libgpuq/val.h"

struct why_case {
	const struct snapshot *s; /* sealed, as it is */
	const struct plan *p; /* of it */
	uint32_t job; /* of s; pending */
	struct why_tries *tries;
	struct gpuq_arena *a;
};

/* Return the changes found, cheapest first: maps of `change` (the word) and its parameters. lift
 * {code, object, who}; gpus {from, to}; pods {from, to}; amount {object, unit, from, to}; flavor {to}; time {to_s}; move {jobs}; end
 * {jobs, end_time}. `how`: "now", or "claim" where jobs would have to be preempted. */
struct gpuq_val *why_changes(struct why_case *c);

/* Return a running job as it appears in such a list. */
struct gpuq_val *why_job(struct gpuq_arena *a, const struct snapshot *s, uint32_t job);

/* Return when it is gone at the latest; GPUQ_UNLIMITED. */
int64_t why_ends_us(const struct snap_job *j);

#endif
