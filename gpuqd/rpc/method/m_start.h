/* m_start.h - when a job will start, as it is reported
 *
 * Owns     nothing. Touches memory only.
 * Used by  m_why.c, m_plan.c.
 */
#ifndef GPUQD_RPC_METHOD_M_START_H
#define GPUQD_RPC_METHOD_M_START_H

#include "gpuqd/flow/advise/estimate.h"
#include "libgpuq/arena.h"
#include "libgpuq/val.h"

/* {by, start_time, likely_time, flavor, pods: [{node, group, index, devices, gpus}], victims:
 * [{job, user, queue, rule, moves, pods, gpus, grace_s, lost_gpu_seconds}], waits: [{from_time,
 * code, object, unit, have, need}], assumed {at_time, until_time, events, cut_short, running, endless,
 * learned}}. Times are null where they are not known. */
struct gpuq_val *start_val(struct gpuq_arena *a, const struct start_answer *s,
			   const struct start_assumed *assumed);

/* How good such answers were in that queue: {queue, jobs, unknown, late, early, half_s,
 * most_s}; null when none has been tried yet. */
struct gpuq_val *start_record_val(struct gpuq_arena *a, const struct estimator *e,
				  const char *queue);

#endif
