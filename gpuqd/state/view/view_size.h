/* view_size.h - how large a job is: pods, devices, cores, memory and countable resources
 *
 * Touches  memory only; reads the model, never changes it.
 * Used by  view_job.c.
 *
 * The size of a job that runs and may grow is that of its present pods; of any other, that of its request.
 */
#ifndef GPUQD_STATE_VIEW_VIEW_SIZE_H
#define GPUQD_STATE_VIEW_VIEW_SIZE_H

#include <stdint.h>

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

struct view_size {
	int64_t pods, gpus_milli, cpu_milli, memory_bytes; /* of all its pods together */
};

/* Return what the pods of a spec request together, at their least number. */
struct view_size view_size_of_spec(const struct gpuq_spec *spec);
/* Return the present size of a job; an elastic one may have more than one start of it requests. */
struct view_size view_size_of_job(const struct job *j);
/* Return the devices that a job is charged: of its pods, or, before they are placed, of its request. */
int64_t view_size_charged(const struct model *m, const struct job *j);
/* Return the countable resources of all pods together, {name: count}; NULL when a is exhausted: of a spec's at their
 * least number, of a job's at its present size. */
struct gpuq_val *view_size_resources_of_spec(struct gpuq_arena *a, const struct gpuq_spec *spec);
struct gpuq_val *view_size_resources(struct gpuq_arena *a, const struct model *m,
				     const struct job *j);

#endif
