/* reasons.h - why a job found no place, in numbers
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  eligibility.c, sched.c.
 */
#ifndef GPUQD_SCHED_REASONS_H
#define GPUQD_SCHED_REASONS_H

#include "gpuqd/sched/quota/cycle.h"

/* Why the job's gang found no place on any of its flavors. Adds reasons. */
void reasons_no_place(struct cycle *c, uint32_t job, uint32_t flavor);
/* No node of that flavor could hold it, not even if nothing ran. */
bool reasons_never_there(struct cycle *c, uint32_t job, uint32_t flavor);
/* Could it be placed if nothing ran? (all nodes, whatever their state) */
bool reasons_never(struct cycle *c, uint32_t job, struct plan_reason *why);

#endif
