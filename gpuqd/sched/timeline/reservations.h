/* reservations.h - reservations keep their capacity
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  rules.c, sched.c, timeline.c, timeline_free.c, timeline_pack.c and others.
 */
#ifndef GPUQD_SCHED_TIMELINE_RESERVATIONS_H
#define GPUQD_SCHED_TIMELINE_RESERVATIONS_H

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline.h"

/* Before the first job is served: reservations that have begun get their nodes, and jobs
 * that have waited too long get planned starts. */
void reservations_begin(struct cycle *c);

/* "a reservation keeps the capacity". */
void reservations_name(struct cycle *c, uint32_t reservation, struct plan_reason *why);

/* Its sets of nodes; before the timeline. Its amounts; before anything is planned. */
void reservations_enter_nodes(struct cycle *c);
void reservations_enter_amounts(struct cycle *c);
/* May the job (SNAP_NONE: may not) use what the reservation keeps? */
bool reservations_owns(const struct cycle *c, uint32_t reservation, uint32_t job);
/* Does the job run on what is reserved for it, and not for the claimant? */
bool reservations_shields(const struct cycle *c, uint32_t job, uint32_t claimant);
/* A reservation of whole nodes that keeps the job from some of them during [t, end);
 * SNAP_NONE = none. out (may be NULL) gets all those nodes, c->n_words words. */
uint32_t reservations_bars(const struct cycle *c, uint32_t job, int64_t t, int64_t end,
			   uint64_t *out);
/* When a reservation of whole nodes takes that node from the job, at the earliest (now,
 * when it has begun); `before` when that is sooner. */
int64_t reservations_takes(const struct cycle *c, uint32_t job, uint32_t node, int64_t before);
/* When a begun reservation will tell a running job to leave, but for its grace;
 * GPUQ_UNLIMITED = none does. */
int64_t reservations_clears(const struct cycle *c, uint32_t job);
/* The next moment after t and before next at which a reservation begins or ends; else
 * next. */
int64_t reservations_next(const struct cycle *c, int64_t t, int64_t next);
/* An owner's pod was started: its reservation keeps as much less. */
void reservations_used(struct cycle *c, uint32_t job, uint32_t node, uint32_t whole);

#endif
