/* cut.h - what of a pod matters to its placement
 *
 * Touches  memory only.
 * Used by  adopt.c; tests.
 */
#ifndef GPUQD_CLUSTER_KUBE_ADOPT_CUT_H
#define GPUQD_CLUSTER_KUBE_ADOPT_CUT_H

#include <jansson.h>
#include <stdbool.h>

/* Return a v1 Pod as it might have been submitted, with what other programs put there or only its containers
 * read left out; NULL: no memory. A right of its own. */
json_t *adopt_cut(const json_t *pod);
/* True if a container asks its runtime for devices by NVIDIA_VISIBLE_DEVICES. */
bool adopt_sees_devices(const json_t *pod);
/* Fill in the controller of a pod, or the pod itself where it has none: a ReplicaSet's pods are those of its
 * Deployment. name: 254 bytes. */
void adopt_owner(const json_t *pod, const char **kind, char *name, const char **uid);

#endif
