/* reservations.h - reservations keep their capacity
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  rules.c, sched.c, timeline.c, timeline_free.c, timeline_pack.c and others. */
#ifndef GPUQD_SCHED_TIMELINE_RESERVATIONS_H
#define GPUQD_SCHED_TIMELINE_RESERVATIONS_H

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline.h"

/* Before the first job is served: clear the nodes of reservations that have begun, and give
 * starving jobs their start reservations. */
void reservations_begin(struct cycle *c);

/* Set the reason "a reservation keeps the capacity". */
void reservations_name(struct cycle *c, uint32_t reservation, struct plan_reason *why);

/* Enter the sets of nodes, before the timeline is made; the amounts, before anything is planned. */
void reservations_enter_nodes(struct cycle *c);
void reservations_enter_amounts(struct cycle *c);
/* True if the job may use what the reservation keeps (SNAP_NONE: false). */
bool reservations_owns(const struct cycle *c, uint32_t reservation, uint32_t job);
/* True if the pod is in what the reservation keeps; of an amount: of a job that owns it, and has
 * since it began. */
bool reservations_has(const struct cycle *c, uint32_t reservation, const struct snap_alloc *al);
/* True if the job runs in a reservation of its own that the preemptor does not own. */
bool reservations_shields(const struct cycle *c, uint32_t job, uint32_t claimant);
/* Return a reservation of whole nodes that keeps the job from some of them during [t, end);
 * SNAP_NONE = none. out (may be NULL) gets all those nodes, c->n_words words. */
uint32_t reservations_bars(const struct cycle *c, uint32_t job, int64_t t, int64_t end,
			   uint64_t *out);
/* Return when a reservation of whole nodes takes that node from the job, at the earliest (now, when
 * it has begun); `before` when that is sooner. */
int64_t reservations_takes(const struct cycle *c, uint32_t job, uint32_t node, int64_t before);
/* Return when a begun reservation will preempt a running job, but for its grace period;
 * GPUQ_UNLIMITED = none does. */
int64_t reservations_clears(const struct cycle *c, uint32_t job);
/* Return the next moment after t and before next at which a reservation begins or ends; else
 * next. */
int64_t reservations_next(const struct cycle *c, int64_t t, int64_t next);
/* Return a reservation that has begun and keeps capacity for the job, as much as that takes in whole
 * devices; SNAP_NONE = none does. */
uint32_t reservations_open(const struct cycle *c, uint32_t job);
/* True if the current places of the job are all within what that reservation keeps. */
bool reservations_holds_places(const struct cycle *c, uint32_t reservation);
/* Add the nodes outside of a reservation of whole nodes. */
void reservations_bar_others(const struct cycle *c, uint32_t reservation, uint64_t *set);
/* Return how many more nodes like that one, which does not exist yet, amounts that have begun take as they come,
 * before the job may use one. */
uint32_t reservations_takes_new(const struct cycle *c, uint32_t job, uint32_t node);
/* Note that an owner's pod was started: its reservation keeps that much less. */
void reservations_used(struct cycle *c, uint32_t job, uint32_t node, uint32_t whole);

#endif
