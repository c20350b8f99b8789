/* why_log.h - the numbers behind recent decisions of the scheduler
 *
 * Owns     the last decisions, in memory: older ones, and those from before the daemon's start,
 *          are not known here. Actions are recorded with the job itself.
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

/* Record the decisions of a cycle that will be carried out. */
void why_log_note(struct why_log *l, const struct snapshot *s, const struct plan *p);

/* Put the records of one job, newest first, as lists:
 *   starts  {decided_time, waited_s, flavor, backfilled, ahead_of: the job that has a start
 *           reservation where it starts, planned_time: of that, yield_time, queue, allocated,
 *           fair_share, quota, jobs_behind: that were pending in its queue} with its queue's
 *           devices of that flavor, itself included
 *   claims  preemptions, by it or of it: {decided_time, job, flavor, need, sides:
 *           [{queue, before, after, fair_share, quota}], passed {firm, busy, shielded,
 *           not_needed}, victims: [{job, rule, cause}]}
 * Amounts in devices. */
void why_log_put(const struct why_log *l, struct job_key key, struct gpuq_arena *a,
		 struct gpuq_val *v);

#endif
