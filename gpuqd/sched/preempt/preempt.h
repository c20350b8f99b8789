/* preempt.h - victims, so that a blocked job can start
 *
 * Owns     the units that can be preempted, the entitlement of running work, and the search for
 *          victims; preempt_int.h has the tables.
 * Touches  memory only.
 * Used by  sched.c; the words below by the other headers of preempt/ as well.
 *
 * A unit is preempted as a whole: all pods that a job requires (its gang), or a pod beyond that
 * (surplus; where pods must be together, a set of them). A queue holds for good what runs there and
 * is not ending, and what was nominated.
 *
 * Entitlement of running work inside a subtree y: its units in order of entitlement (not
 * preemptible first; by entitlement in the leaf; gangs before surplus; priority; the longer
 * running; id) are filled first-fit into a line: the quota of y, or the larger of quota and fair
 * share. A unit that fits is inside. */
#ifndef GPUQD_SCHED_PREEMPT_PREEMPT_H
#define GPUQD_SCHED_PREEMPT_PREEMPT_H

#include "gpuqd/sched/quota/cycle.h"

enum line { LINE_QUOTA, LINE_SHARE /* the larger of quota and fair share */, N_LINES };

/* The rules by which a victim is preempted; gpuqd-scheduling(7), Rules. */
enum claim_rule { RULE_NONE, RULE_QUOTA, RULE_SHARE, RULE_BORROW, RULE_OWN };

/* Cpu, memory: what a preemptor may lack on nodes where it has devices. */
enum claim_short { SHORT_CPU = 1, SHORT_MEMORY = 2 };

/* The entitlement of a unit in its leaf. */
enum claim_depth { DEPTH_QUOTA, DEPTH_SHARE, DEPTH_BEYOND };

/* Make room for a blocked job: places of its victims are nominated for it. *flavor = on which. All
 * actions are in the plan. */
bool preempt_job(struct cycle *c, uint32_t job, uint32_t *flavor);

#endif
