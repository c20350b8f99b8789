/* timeline_pack.h - placing jobs beside start reservations
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, emit.c, gangs.c, nominated.c, relocate.c and others. */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_PACK_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_PACK_H

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline.h"

struct booked;

/* True if a start reservation or a reservation begins before the job would end, if it started
 * now. */
bool timeline_binds(struct cycle *c, uint32_t job);
/* As pack_job, leaving start reservations what they count on; *bar = one of those in the way. */
bool timeline_pack(struct cycle *c, uint32_t job, uint32_t flavor, struct future_bar *bar);
/* As pack_job; start reservations are not touched, not even for a time. */
bool timeline_pack_strictly(struct cycle *c, uint32_t job, uint32_t flavor);
/* After that: when the places must be yielded to a start reservation; 0 = never. */
int64_t timeline_yield_us(const struct cycle *c);
/* ...and the job's time limit there, when that is less than requested; 0 = as requested. For a job
 * that was not placed by timeline_pack(): what its deadline leaves it. */
int64_t timeline_given_us(const struct cycle *c, uint32_t job);
/* Find nodes that start reservations count on, at whatever time, where the job would be in the
 * way. */
void timeline_keep_off(struct cycle *c, uint32_t job, uint64_t *set);

/* True if what the current places take of the node of a hold leaves it what it counts on. */
bool timeline_spares(const struct cycle *c, const struct booked *b, uint32_t job);
/* As pack_job, honouring reservations only; within: on the nodes of this one alone, SNAP_NONE =
 * anywhere. */
bool timeline_pack_on_planned(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t within);

/* Preempt jobs that run ahead of start reservations in time for those. */
void timeline_yield(struct cycle *c);
void timeline_evict(struct cycle *c, uint32_t job, enum gpuq_cause cause, uint32_t claimant,
		    const char *rule);
/* True if it was signalled in this cycle. */
bool timeline_leaves(const struct cycle *c, uint32_t job);
/* Note that another plan may come out at t. */
void timeline_wake(struct cycle *c, int64_t t);

#endif
