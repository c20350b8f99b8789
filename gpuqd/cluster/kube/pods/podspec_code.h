/* podspec_code.h - the containers that unpack what a job carries, and copy gpuq into its pod
 *
 * Owns     nothing. Touches memory only.
 * Used by  podspec_container.c; watch/decode_pod.c knows the containers by their names.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_PODSPEC_CODE_H
#define GPUQD_CLUSTER_KUBE_PODS_PODSPEC_CODE_H

#include "gpuqd/cluster/kube/pods/podspec.h"

/* Give the pod of this main container a directory with the files, filled by an init container. */
void podspec_code(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
		  json_t *container);

/* The pods of a gang start tasks together by srun, which few images have: give the pod of this main container the srun
 * of an image that has it, if its order names one. It comes with its loader and libraries, whatever the job's image is
 * made of. A job that launches runs its command by that srun, or the one of its image. */
void podspec_steps(const struct pod_order *o, const struct gpuq_group *g, json_t *spec,
		   json_t *container);

/* True if the pod gets the archive by a ConfigMap, should it have one. */
bool podspec_code_is_file(const struct pod_order *o);

/* Put the CPUs and memory of the group into a container. (podspec_container.c) */
void podspec_machine(const struct gpuq_group *g, json_t *container);

#endif
