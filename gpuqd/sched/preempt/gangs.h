/* gangs.h - the units that are preempted as a whole
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, entitlement.c, minimise.c, preempt.c, preempt_why.c and others.
 */
#ifndef GPUQD_SCHED_PREEMPT_GANGS_H
#define GPUQD_SCHED_PREEMPT_GANGS_H

#include "gpuqd/sched/preempt/preempt.h"
#include "gpuqd/sched/quota/cycle.h"

bool gangs_make(struct cycle *c); /* once in a cycle; false without memory */
/* Count pods that a running job gets in this cycle as held from now on; by resource. */
void gangs_add_more(struct cycle *c, uint32_t job, const int64_t *amounts, bool surplus);
int64_t gangs_amount(const struct cycle *c, uint32_t unit, uint32_t res);
/* Tentatively remove a unit: its places are free and its queues hold less. */
void gangs_take(struct cycle *c, uint32_t unit);
void gangs_put_back(struct cycle *c, uint32_t unit);

bool gangs_index(struct cycle *c); /* line_units and node_units; false without memory */
/* Count what was started or nominated as held from now on. */
void gangs_add_started(struct cycle *c, uint32_t job, uint32_t flavor);

#endif
