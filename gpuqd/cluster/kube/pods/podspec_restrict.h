/* podspec_restrict.h - what the Pod Security Standard `restricted` wants
 *
 * Touches  memory only.
 * Used by  podspec.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_PODSPEC_RESTRICT_H
#define GPUQD_CLUSTER_KUBE_PODS_PODSPEC_RESTRICT_H

#include <jansson.h>

/* Say in all containers what the Pod Security Standard `restricted` wants to be said, where
 * the owner did not. */
void podspec_restrict(json_t *spec);

#endif
