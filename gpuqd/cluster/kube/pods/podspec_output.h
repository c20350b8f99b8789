/* podspec_output.h - output and input files of a job that lie on a volume of its pods
 *
 * Owns     nothing. Touches memory only.
 * Used by  podspec_container (the command), check.c (which files have no effect).
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_PODSPEC_OUTPUT_H
#define GPUQD_CLUSTER_KUBE_PODS_PODSPEC_OUTPUT_H

#include <stdbool.h>

#include <jansson.h>

#include "gpuqd/cluster/cluster.h"

/* True if a file named by a job, before its marks are replaced, lies on a volume of the group that
 * outlives the pod. */
bool podspec_output_kept(const struct gpuq_group *g, const char *pattern);

/* Have the command of a container read and write such files, as a shell redirects them; without a command
 * of its own a container stays as it is. */
void podspec_output(const struct pod_order *o, const struct gpuq_group *g, json_t *container);

#endif
