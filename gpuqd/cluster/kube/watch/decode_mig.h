/* decode_mig.h - instances of MIG profiles: what a node has, what a pod requests
 *
 * Touches  memory only.
 * Used by  decode_node.c, decode_pod.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_MIG_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_MIG_H

#include "gpuqd/cluster/kube/watch/decode.h"
#include "libgpuq/limits.h"

#define MIG_REPLICAS_MAX 65536 /* of all instances of a profile */
#define MIG_MAX                                                                                    \
	(GPUQ_MIG_SLICES * (int64_t)GPUQ_GPUS_PER_POD_MAX +                                        \
	 1) /* of a profile at a node: beyond belief */

/* Instances of MIG profiles: what a node has, what a pod asks. In o's arena. 0 or GPUQ_ENOMEM. */
int kube_read_node_mig(struct kube_object *o, struct node_fact *out);
int kube_read_pod_mig(struct kube_object *o, struct pod_fact *out);

/* True for what can be the name of a profile. */
bool kube_profile_ok(const char *profile);
/* Return in how many replicas each instance, or device, of the resource is offered, by the labels of feature discovery;
 * 1 = whole, 0 = in an unknown number. renamed: the resource is that of replicas. */
uint32_t kube_replicas(const struct node_fact *n, const char *resource, bool renamed);
/* Return why the instances of a node are not to be believed; NULL = they are. In o's arena. */
const char *kube_mig_lie(struct kube_object *o, const struct node_fact *n);

#endif
