/* podspec_share.h - pods of nodes that share devices
 *
 * Touches  memory only.
 * Used by  podspec.c, podspec_container.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_PODSPEC_SHARE_H
#define GPUQD_CLUSTER_KUBE_PODS_PODSPEC_SHARE_H

#include "gpuqd/cluster/kube/pods/podspec.h"

/* Where the backend of the node writes down devices: its own resources in the place of all others in the
 * container that has them, and what its plugin reads from the pod. */
int podspec_share(const struct pod_order *o, json_t *meta, json_t *spec, struct gpuq_err *err);

/* Write the device that the plugin of the node will choose on a pod that names one, in a new text, which the caller
 * frees; unless it is certain the pod does not demand it. Returns 0; GPUQ_ENOMEM. */
int podspec_choice(const char *pod, const struct backend *b, int device, bool certain, char **out);

/* Does a container request devices, in any dialect? */
bool podspec_asks_devices(const struct pod_order *o, const json_t *containers);
bool podspec_container_asks(const struct pod_order *o, const json_t *container);

#endif
