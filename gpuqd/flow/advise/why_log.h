/* why_log.h - the numbers behind what the scheduler decided lately
 *
 * Owns     the last decisions, in memory: what is older, or from before the daemon's start,
 *          is not known here. What was done stands with the job itself.
 * Touches  memory only.
 * Used by  rpc (job.why reads), daemon.c through schedule_on_plan (writes).
 */
#ifndef GPUQD_FLOW_ADVISE_WHY_LOG_H
#define GPUQD_FLOW_ADVISE_WHY_LOG_H

#include "gpuqd/state/event.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"
#include "libgpuq/val.h"

struct why_log;

struct why_log *why_log_new(void); /* NULL without memory */
void why_log_free(struct why_log *l); /* NULL is fine */

/* What a cycle decided that will be done. */
void why_log_note(struct why_log *l, const struct snapshot *s, const struct plan *p);

/* Of one job, newest first, as lists:
 *   starts  {decided_time, waited_s, flavor, backfilled, ahead_of: whose start is planned where it
 *           starts, planned_time: of that, yield_time, queue, allocated, fair_share, quota, jobs_behind: that waited in its queue} with its queue's devices of that
 *           flavor, itself included
 *   claims  on what others had, by it or at its cost: {decided_time, job, flavor, need, sides:
 *           [{queue, before, after, fair_share, quota}], passed {firm, busy, shielded,
 *           not_needed}, victims: [{job, rule, cause}]}
 * Amounts in devices. */
void why_log_put(const struct why_log *l, struct job_key key, struct gpuq_arena *a,
		 struct gpuq_val *v);

#endif
