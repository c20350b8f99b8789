/* podspec_restrict.h - completes a pod as the Pod Security Standard `restricted` requires
 *
 * Touches  memory only.
 * Used by  podspec.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_PODSPEC_RESTRICT_H
#define GPUQD_CLUSTER_KUBE_PODS_PODSPEC_RESTRICT_H

#include <jansson.h>

/* Add to all containers what the Pod Security Standard `restricted` requires, where the owner
 * did not. */
void podspec_restrict(json_t *spec);

#endif
