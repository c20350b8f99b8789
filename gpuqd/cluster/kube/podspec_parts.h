/* podspec_parts.h - what podspec.c and podspec_container.c share; private to them */
#ifndef GPUQD_CLUSTER_KUBE_PODSPEC_PARTS_H
#define GPUQD_CLUSTER_KUBE_PODSPEC_PARTS_H

#include "gpuqd/cluster/kube/podspec.h"

#define SCRIPT_DIR "/gpuq"
#define SCRIPT_VOLUME "gpuq-script"

/* Containers of spec: made (own form) or completed (template). */
int podspec_containers(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
		       struct gpuq_err *err);

/* obj[key], made as an empty object or array when it is missing or something else. */
json_t *podspec_object(json_t *obj, const char *key);
json_t *podspec_array(json_t *obj, const char *key);

#endif
