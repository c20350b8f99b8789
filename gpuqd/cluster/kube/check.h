/* check.h - whether a job can run in pods at all, before it is stored
 *
 * Owns     nothing. Touches memory only.
 * Used by  kube.c (cluster_ops.spec_check). */
#ifndef GPUQD_CLUSTER_KUBE_CHECK_H
#define GPUQD_CLUSTER_KUBE_CHECK_H

#include "gpuqd/cluster/cluster.h"

/* code_store: pods may fetch code that no ConfigMap takes. The rest as cluster_ops has it. */
int kube_spec_check(bool code_store, const struct gpuq_spec *spec, const struct gpuq_spec *whole,
		    const char *queue_image, const struct site_walls *walls,
		    struct gpuq_buf *warnings, struct gpuq_err *err);

#endif
