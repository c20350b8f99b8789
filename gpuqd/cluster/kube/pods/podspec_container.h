/* podspec_container.h - the containers of a pod
 *
 * Touches  memory only.
 * Used by  podspec.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_PODSPEC_CONTAINER_H
#define GPUQD_CLUSTER_KUBE_PODS_PODSPEC_CONTAINER_H

#include "gpuqd/cluster/kube/pods/podspec.h"

/* Containers of spec: made (own form) or completed (template). */
int podspec_containers(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
		       struct gpuq_err *err);
/* Let no container be given a resource that it does not name. */
void podspec_none(const struct pod_order *o, json_t *spec);

#endif
