/* estimate_int.h - a snapshot that is run forward in virtual time
 *
 * Owns     the copy, and its changes as jobs begin and end.
 * Touches  memory only.
 * Used by  estimate.c, which has the clock; estimate_life.c is its world.
 *
 * Only the front of a long queue is in the copy (estimate_config.front). The copy's tables of jobs,
 * pods, nodes and devices are its own; everything else is shared with the original. A job that has
 * ended stays in the table with nothing pending, so that indexes hold. Elements of arrays that
 * start get entries of their own, right after their array. */
#ifndef GPUQD_SCHED_ESTIMATE_ESTIMATE_INT_H
#define GPUQD_SCHED_ESTIMATE_ESTIMATE_INT_H

#include "gpuqd/sched/estimate/estimate.h"

/* State that the table of jobs does not hold. */
struct life {
	uint32_t origin; /* job of the original snapshot */
	int64_t end_us; /* of a running or ending job; GPUQ_UNLIMITED = never */
	struct snap_alloc *pods;
	uint32_t n_pods;
	bool shrinks; /* it keeps running, and some of its pods are gone at lived.soon_us */
};

struct lived {
	const struct snapshot *from; /* that the estimate begins with */
	const struct estimate_config *config;
	struct gpuq_arena *mem;
	struct snapshot s; /* the copy that is changed */
	struct life *lives; /* by job of s */
	uint32_t room_jobs, room_allocs;
	uint32_t *now_of; /* by job of the original: its index in s; SNAP_NONE = not in the table */
	struct aside *aside; /* NULL = all are in the table */
	struct estimate *out;
	uint32_t n_out, n_left;
	uint64_t steps; /* work so far, against its bound */
	bool first; /* nothing has been decided yet */
	int64_t soon_us; /* when pods that were evicted before the simulation began are gone */
	int64_t *grace_us; /* by job of the original: until its nominated places are free; -1 =
			    * none */
	int64_t *planned_us; /* by job of the original: planned start; GPUQ_UNLIMITED */
	struct gpuq_err *err;
};

/* Keeps l->err and returns GPUQ_ENOMEM. */
/* Copy n items with zeroed room for more, in l->mem; NULL: no memory. */
void *estimate_lived_copy(struct lived *l, const void *items, size_t n, size_t room, size_t size);

/* estimate_aside.c. Before the first plan is carried out, while indexes are those of the original:
 * set aside the jobs that are too far back to be evaluated from now on. */
int estimate_aside_begin(struct lived *l, const struct priority *p);
/* After a plan was carried out: let the jobs enter that are in the front now. *renewed: the copy
 * has to be settled. */
int estimate_aside_renew(struct lived *l, bool *renewed);

/* Copy l->from; no claims are made in the copy unless switched on again. */
int estimate_lived_begin(struct lived *l);
/* Recompute the table of pods and free capacity after jobs have started or ended. */
int estimate_lived_settle(struct lived *l);
/* These leave the tables to be settled. A job (an element of an array) starts; one gets more pods;
 * one ends; one is evicted and pending again; one loses pods; one loses those that were signalled;
 * one is relocated and begins anew; one loses its nominated placement. */
int estimate_lived_start(struct lived *l, uint32_t job, const struct plan *p,
			 const struct plan_action *a,
			 uint32_t *at); /* of s: the job, or its element */
int estimate_lived_grow(struct lived *l, uint32_t job, const struct plan *p,
			const struct plan_action *a);
void estimate_lived_end(struct lived *l, uint32_t job);
void estimate_lived_evict(struct lived *l, uint32_t job);
void estimate_lived_shrink(struct lived *l, uint32_t job, const struct plan *p,
			   const struct plan_action *a);
void estimate_lived_shed(struct lived *l, uint32_t job);
int estimate_lived_move(struct lived *l, uint32_t job, const struct plan *p,
			const struct plan_action *a);
void estimate_lived_drop_promises(struct lived *l, uint32_t job);

#endif
