/* draft_devices.h - parts of devices that a job requests, against the systems that share devices
 *
 * Touches  the model (reads).
 * Used by  submit.c.
 */
#ifndef GPUQD_FLOW_ADMIT_DRAFT_DEVICES_H
#define GPUQD_FLOW_ADMIT_DRAFT_DEVICES_H

#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/spec.h"

struct model;
struct queue;

/* Check the parts of devices against the nodes that share some. Returns 0, with warnings, a line each,
 * of what is not limited where the job may run; GPUQ_ERANGE with the group's path, where there are
 * such nodes and none of them could ever serve it. */
int draft_devices(const struct model *m, const struct queue *q, const struct gpuq_spec *spec,
		  struct gpuq_buf *warnings, struct gpuq_err *err);

#endif
