/* decode_amounts.h - countable resources: what a node has, what a pod requests
 *
 * Owns     nothing: amounts live in the object's arena, names in its JSON.
 * Touches  memory only.
 * Used by  decode_node.c, decode_pod.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_AMOUNTS_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_AMOUNTS_H

#include "gpuqd/cluster/kube/watch/decode.h"
#include "libgpuq/spec/resource.h"

#define KUBE_RESOURCES_MAX 128 /* of one node; one that lists more is left alone */

/* Every resource of a node but its cpu, memory and pods, words of dialects and MIG instances; by
 * name. Returns 0; GPUQ_ETOOBIG: it lists too many, and none are taken; GPUQ_ENOMEM. */
int kube_read_node_amounts(struct kube_object *o, struct node_fact *out);
/* All of a list of resources but cpu, memory and pods: devices and words of dialects as well. The same codes. */
int kube_read_amounts(struct kube_object *o, const json_t *list, const struct gpuq_amount **out,
		      size_t *n);
/* The same of a pod, all containers together, at most GPUQ_RESOURCES_MAX. 0 or GPUQ_ENOMEM. */
int kube_read_pod_amounts(struct kube_object *o, struct pod_fact *out);
#define KUBE_WORDS_MAX 8
/* The words of dialects that a pod requests (nvidia.com/gpumem, tencent.com/vcuda-core), with the sum of
 * its containers. Returns how many; names are static. */
size_t kube_pod_words(const json_t *pod, struct gpuq_amount out[KUBE_WORDS_MAX]);
/* The resource that a kubelet's refusal names, and how much of it is free there. The name is in a. */
void kube_read_shortage(struct gpuq_arena *a, struct pod_fact *out);

#endif
