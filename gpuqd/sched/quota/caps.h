/* caps.h - what jobs of a qos, a user or a group may not exceed together
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  budget.c, eligibility.c, holdings.c, sched.c, timeline_starve.c.
 */
#ifndef GPUQD_SCHED_QUOTA_CAPS_H
#define GPUQD_SCHED_QUOTA_CAPS_H

#include "gpuqd/sched/quota/cycle.h"

/* Limits on what the jobs of a QOS, a user or a group hold together. `starts`: one more job starts,
 * else a running one grows. */
void caps_init(struct cycle *c);
/* Count one more running element of the job's array. */
void caps_array_starts(struct cycle *c, uint32_t job);
void caps_count(struct cycle *c, uint32_t job, int64_t gpus_milli, bool starts);
void caps_hold(struct cycle *c, uint32_t job, int64_t gpu_ms);
bool caps_admit(struct cycle *c, uint32_t job, int64_t gpus_milli, bool starts,
		struct plan_reason *why);
/* True if the throttle of the job's array allows no more running elements. */
bool caps_array_full(struct cycle *c, uint32_t job, struct plan_reason *why);
bool caps_afford(struct cycle *c, uint32_t job, int64_t gpu_ms, struct plan_reason *why);

#endif
