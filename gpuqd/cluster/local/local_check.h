/* local_check.h - what a job requests that this machine cannot give
 *
 * Touches  memory only.
 * Used by  local.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_CHECK_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_CHECK_H

#include "gpuqd/cluster/local/local_int.h"

int local_spec_check(struct cluster *c, const struct gpuq_spec *spec, const struct gpuq_spec *whole,
		     const char *queue_image, const struct site_walls *walls,
		     struct gpuq_buf *warnings, struct gpuq_err *err);

#endif
