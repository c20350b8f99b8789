/* podspec_int.h - what podspec.c and podspec_container.c share; private to them */
#ifndef GPUQD_CLUSTER_KUBE_PODS_PODSPEC_INT_H
#define GPUQD_CLUSTER_KUBE_PODS_PODSPEC_INT_H

#include "gpuqd/cluster/kube/pods/podspec.h"

#define SCRIPT_DIR "/gpuq"
#define SCRIPT_VOLUME "gpuq-script"

/* Containers of spec: made (own form) or completed (template). */
int podspec_containers(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
		       struct gpuq_err *err);

/* Where the node shares its devices: its own resource in the place of all others in the
 * container that has the device, and what its plugin reads from the pod. */
int podspec_share(const struct pod_order *o, json_t *meta, json_t *containers,
		  struct gpuq_err *err);
/* Say in all containers what the Pod Security Standard `restricted` wants to be said, where
 * the owner did not. */
void podspec_restrict(json_t *spec);

/* Does a container ask for devices, in any dialect? */
bool podspec_asks_devices(const json_t *containers);

/* obj[key], made as an empty object or array when it is missing or something else. */
json_t *podspec_object(json_t *obj, const char *key);
json_t *podspec_array(json_t *obj, const char *key);

#endif
