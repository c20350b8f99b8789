/* volume_warn.h - a warning about volumes that cannot be used by as many pods as a job has
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/submit.
 */
#ifndef GPUQD_FLOW_ADMIT_WARN_VOLUME_WARN_H
#define GPUQD_FLOW_ADMIT_WARN_VOLUME_WARN_H

#include "gpuqd/state/model.h"
#include "libgpuq/buf.h"
#include "libgpuq/spec.h"

/* Append a line to warnings for each volume claim which one pod can be using at a time (ReadWriteOncePod), where a
 * group of several pods names it: the job is accepted and stays pending, since claims come and go. */
void volume_warn(const struct model *m, const struct queue *q, const struct gpuq_spec *spec,
		 struct gpuq_buf *warnings);

#endif
