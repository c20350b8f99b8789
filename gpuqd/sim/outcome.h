/* outcome.h - results of a scenario, as a value tree
 *
 * Owns     the format of `gpuq-sim run --json`, and the judging of `expect`.
 * Touches  memory only.
 * Used by  gpuq-sim. One tree serves printing and judging, so that what is judged is
 *          what is shown.
 */
#ifndef GPUQD_SIM_OUTCOME_H
#define GPUQD_SIM_OUTCOME_H

#include <stdbool.h>

#include "gpuqd/sim/world.h"
#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/val.h"

/* Return the present compared to the last mark: lists by fate, jobs, queues, evictions, moves, and
 * `ended`. NULL: out of memory. */
struct gpuq_val *outcome_make(struct gpuq_arena *a, struct world *w);

/* Return a time in the case's unit, as an integer if it is whole. */
struct gpuq_val *outcome_time(struct gpuq_arena *a, const struct world *w, int64_t us);

/* Judge expectations of an outcome. Each one that does not hold adds a line "started: expected [a],
 * is [b]" to out. Returns how many do not hold. */
unsigned expect_judge(struct world *w, const struct gpuq_val *expect,
		      const struct gpuq_val *outcome, bool stable, struct gpuq_buf *out);

#endif
