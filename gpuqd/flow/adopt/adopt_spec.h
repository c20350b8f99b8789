/* adopt_spec.h - pods that were not submitted, as a job
 *
 * Touches  memory only.
 * Used by  adopt.c; tests.
 */
#ifndef GPUQD_FLOW_ADOPT_ADOPT_SPEC_H
#define GPUQD_FLOW_ADOPT_ADOPT_SPEC_H

#include "gpuqd/cluster/cluster.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/spec.h"

/* Read pods of one owner into one job: a group for those that request the same. pods is put in the order of
 * the groups. warnings: a line for each thing that is not used. Returns 0; GPUQ_EINVAL: as a text for the
 * pods' owner. */
int adopt_spec(struct gpuq_arena *a, const struct adopt_fact **pods, size_t n, int64_t now_us,
	       struct gpuq_spec *out, struct gpuq_buf *warnings, struct gpuq_err *err);

#endif
