/* reasons.h - why a job found no place, in numbers
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  eligibility.c, sched.c.
 */
#ifndef GPUQD_SCHED_REASONS_H
#define GPUQD_SCHED_REASONS_H

#include "gpuqd/sched/quota/cycle.h"

void reasons_init(struct cycle *c);
/* Add reasons why the job's gang found no place on any of its flavors. */
void reasons_no_place(struct cycle *c, uint32_t job, uint32_t flavor);
/* True if no node of that flavor could hold it, not even if nothing ran. */
bool reasons_never_there(struct cycle *c, uint32_t job, uint32_t flavor);
/* True if it could not be placed even if nothing ran (all nodes, whatever their state). */
bool reasons_never(struct cycle *c, uint32_t job, struct plan_reason *why);
/* True if it is known already that the request can be met when enough has ended. */
bool reasons_some_time(const struct cycle *c, uint32_t request);

/* Report that the job does not use all of its flavors yet, and for how long; where it uses all, nothing. */
void reasons_flavor_wait(struct cycle *c, uint32_t job);

#endif
