/* why_try.h - would it start if something were different?
 *
 * Owns     copies of the state for as long as one try lasts.
 * Touches  memory only; the scheduler is the one that decides in earnest. Any thread.
 * Used by  why.c, why_change.c.
 *
 * A try is one scheduling cycle on the state, or on its part that bears on the job, with one
 * thing changed. How many there may be
 * is bounded by how large the state is, never by a clock.
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
	WHY_LIFT, /* what `code` speaks of stands in its way no more */
	WHY_GPUS, /* its pods ask for n devices each, in thousandths */
	WHY_PODS, /* n pods */
	WHY_FLAVOR, /* on the flavor `name` */
	WHY_TIME, /* it runs n us at most */
	WHY_END, /* the jobs `keys` have ended */
	WHY_MOVE, /* the job keys[0] gives its places up and starts elsewhere */
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
	WHY_CLAIMS /* it is given places that others have to leave first */
};

struct why_tries {
	const struct gpuq_buf *packed; /* the state: snapshot/snapshot_pack.h */
	const struct gpuq_buf *near; /* its part that is tried on: why_near.h; NULL = all of it */
	struct snap_key key; /* the job; index -1 of an array: its next element */
	uint32_t n, most;
	bool (*stop)(void *arg); /* may be NULL: nobody waits for the answer any more */
	void *stop_arg;
	bool cut_short;
	int rc; /* not 0: what went wrong is in *err */
	struct gpuq_err *err;
};

/* As many as the size of what is tried on allows. */
uint32_t why_most_tries(uint32_t n_objects);

/* On the part of the state that bears on the job. */
enum why_outcome why_try(struct why_tries *t, const struct why_change *change);

/* On all of it, and not counted: of a change that was found to help. */
enum why_outcome why_confirm(struct why_tries *t, const struct why_change *change);

/* The job's entry in a table of jobs, sealed or not; SNAP_NONE. */
uint32_t why_find(const struct snapshot *s, struct snap_key key);

/* What a plan does with it. */
enum why_outcome why_outcome_of(const struct plan *p, struct snap_key key);

#endif
