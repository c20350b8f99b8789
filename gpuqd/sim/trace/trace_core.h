/* trace_core.h - the policy `default`: gpuqd itself
 *
 * Owns     a model of gpuqd's own (state/model.h) in virtual time.
 * Touches  memory only.
 * Used by  trace.c.
 *
 * Jobs are submitted to the model, a cycle is gpuqd's (snapshot, sched_cycle(), carry_plan()), and
 * the cluster obeys at once (carry/obey.h), as in a scenario (sim/world.h).
 */
#ifndef GPUQD_SIM_TRACE_TRACE_CORE_H
#define GPUQD_SIM_TRACE_TRACE_CORE_H

#include "gpuqd/sim/trace/trace_log.h"

extern const struct trace_policy trace_core; /* variant 0 */

#endif
