/* provision.h - pending jobs on nodes that do not exist yet
 *
 * Owns     the set of these nodes, and which requests they make.
 * Touches  memory only.
 * Used by  sched.c, as the last of its phases.
 *
 * Jobs that found no place are served once more, in queue order and within quotas and limits, now also
 * on nodes that were requested and on ones that could be: a job gets the free nodes there are, then
 * those that were requested, and requests as few further ones as will do, all in one pool. Nothing is
 * preempted, and nothing starts: the result are requests (plan.h) and reasons. */
#ifndef GPUQD_SCHED_PROVISION_H
#define GPUQD_SCHED_PROVISION_H

#include "gpuqd/sched/quota/cycle.h"

void provision_begin(struct cycle *c);
/* Serve one job. False: none is left, no node is left for any, or the bound on work is reached. */
bool provision_next(struct cycle *c);
/* Restore what jobs and queues have without these nodes. */
void provision_end(struct cycle *c);

#endif
