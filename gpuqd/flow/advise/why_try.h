/* why_try.h - whether a job would start with one thing changed
 *
 * Owns     copies of the state for as long as one try lasts.
 * Touches  memory only; runs the scheduler itself. Any thread.
 * Used by  why.c, why_change.c.
 *
 * A try is one scheduling cycle on the state, or on its part that bears on the job, with one
 * thing changed. The number of tries is bounded by the size of the state, never by a clock.
 */
#ifndef GPUQD_FLOW_ADVISE_WHY_TRY_H
#define GPUQD_FLOW_ADVISE_WHY_TRY_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/names.h"

enum why_kind {
	WHY_LIFT, /* the obstacle that `code` names is removed */
	WHY_GPUS, /* its pods request n devices each, in thousandths */
	WHY_PODS, /* n pods */
	WHY_AMOUNT, /* its pods request n of `name` each: why_amount_of() */
	WHY_FLAVOR, /* on the flavor `name` */
	WHY_TIME, /* it runs n us at most */
	WHY_END, /* the jobs `keys` have ended */
	WHY_MOVE, /* the job keys[0] releases its places and restarts elsewhere */
	N_WHY_KINDS
};

struct why_change {
	enum why_kind kind;
	enum gpuq_reason code;
	int64_t n;
	const char *name;
	const struct snap_key *keys;
	uint32_t n_keys;
};

enum why_outcome {
	WHY_NOT_TRIED, /* the bound was reached, or memory ran out: t->rc */
	WHY_WAITS,
	WHY_STARTS,
	WHY_CLAIMS /* it gets nominated placements: jobs are preempted for it */
};

struct why_tries {
	const struct gpuq_buf *packed; /* the state: snapshot/snapshot_pack.h */
	const struct gpuq_buf *near; /* its part for tries: why_near.h; NULL = all of it */
	struct snap_key key; /* the job; index -1: the next element of an array */
	uint32_t n, most;
	bool (*stop)(void *arg); /* may be NULL; true: the reply is no longer wanted */
	void *stop_arg;
	bool cut_short;
	int rc; /* not 0: the error is in *err */
	struct gpuq_err *err;
};

/* Return the bound on tries for a state of that size. */
uint32_t why_most_tries(uint32_t n_objects);

/* Try it on the part of the state that bears on the job. */
enum why_outcome why_try(struct why_tries *t, const struct why_change *change);

/* Try it on the whole state, uncounted: for a change that was found to help. */
enum why_outcome why_confirm(struct why_tries *t, const struct why_change *change);

/* Return how much of an amount, as reasons call it (cpu, memory, gpu_memory, the name of a resource), a pod of the
 * group requests, in thousandths of cores, bytes, or as it is counted; 0 = none. */
int64_t why_amount_of(const struct snap_group *g, const char *name);

/* Return the job's entry in a table of jobs, sealed or not; SNAP_NONE. */
uint32_t why_find(const struct snapshot *s, struct snap_key key);

/* Return what a plan does with it. */
enum why_outcome why_outcome_of(const struct plan *p, struct snap_key key);

#endif
