/* estimate_int.h - a snapshot that is lived on
 *
 * Owns     the copy, and what becomes of it as jobs begin and end.
 * Touches  memory only.
 * Used by  estimate.c, which has the clock; estimate_life.c is its world.
 *
 * Of a long line only the front is in the copy (estimate_config.front). The copy's tables of jobs, pods, nodes and devices are its own; everything else is
 * shared with the original. A job that has ended stays in the table as one of which
 * nothing waits, so that indexes hold. Elements of arrays that start get entries of their
 * own, right behind their array.
 */
#ifndef GPUQD_SCHED_ESTIMATE_ESTIMATE_INT_H
#define GPUQD_SCHED_ESTIMATE_ESTIMATE_INT_H

#include "gpuqd/sched/estimate/estimate.h"

/* What the table of jobs does not say. */
struct life {
	uint32_t origin; /* job of the original snapshot */
	int64_t end_us; /* of what runs or leaves; GPUQ_UNLIMITED = never */
	struct snap_alloc *pods;
	uint32_t n_pods;
	bool shrinks; /* it runs on, and some of its pods are gone at lived.soon_us */
};

struct lived {
	const struct snapshot *from;
	const struct estimate_config *config;
	struct gpuq_arena *mem;
	struct snapshot s;
	struct life *lives; /* by job of s */
	uint32_t room_jobs, room_allocs;
	uint32_t *now_of; /* by job of the original: its index in s; SNAP_NONE = out of sight */
	struct aside *aside; /* NULL = all are in sight */
	struct estimate *out;
	uint32_t n_out, n_left;
	uint64_t steps;
	bool first; /* nothing has been decided yet */
	int64_t soon_us; /* when those are gone that were evicted before it began */
	int64_t *grace_us; /* by job of the original: until its claim is free; -1 = none */
	int64_t *planned_us; /* by job of the original: start as planned; GPUQ_UNLIMITED */
	struct gpuq_err *err;
};

/* Keeps l->err and returns GPUQ_ENOMEM. */
/* n items with zeroed room for more, in l->mem; NULL: no memory. */
void *estimate_lived_copy(struct lived *l, const void *items, size_t n, size_t room, size_t size);

/* estimate_aside.c. Before the first plan is carried out, where indexes are those of the
 * original: line up what stands too far behind to be looked at from now on. */
int estimate_aside_begin(struct lived *l, const struct priority *p);
/* After a plan was carried out: bring in what stands in front now. *renewed: it has to be settled. */
int estimate_aside_renew(struct lived *l, bool *renewed);

/* From l->from; no claims are made in it unless switched on again. */
int estimate_lived_begin(struct lived *l);
/* The table of pods, and what is free, after jobs have started or ended. */
int estimate_lived_settle(struct lived *l);
/* These leave the tables to be settled. A job (an element of an array) starts; one gets
 * more pods; one ends; one has to leave and waits again; one loses pods; one loses those
 * that were told to leave; one stands elsewhere and begins anew; nobody keeps places for
 * it any more. */
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
