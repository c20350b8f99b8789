/* policy_sched.h - the scheduler's policy as a snapshot has it
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  config.c, config_sched.c, model.c, snapshot_take_usage.c, trace_core.c and others.
 */
#ifndef GPUQD_SNAPSHOT_POLICY_SCHED_H
#define GPUQD_SNAPSHOT_POLICY_SCHED_H

#include "gpuqd/site/policy.h"

/* What a snapshot has by itself, and a snapshot's part of it. */
struct policy_sched policy_sched_default(void);
void policy_sched_set(const struct policy_sched *p, struct snap_config *c);

struct policy policy_default(void);

#endif
