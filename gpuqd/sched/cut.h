/* cut.h - idle nodes that get another layout of MIG instances
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched.c, after all jobs have been served on the nodes as they are.
 *
 * Jobs that found no place are evaluated in queue order, within quotas and limits: one that the nodes of a
 * flavor could not hold even if they were empty, whole devices or instances of its profile, gets a node of
 * that flavor which is idle, and nothing is planned for, cut into the first layout of its pool that gives
 * what the job requests. A pool has one node at a time that is being cut. The results are plan.cuts and
 * reasons. */
#ifndef GPUQD_SCHED_CUT_H
#define GPUQD_SCHED_CUT_H

#include "gpuqd/sched/quota/cycle.h"

void cut_decide(struct cycle *c);

#endif
