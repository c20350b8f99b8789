/* decode_mig.h - instances of MIG profiles: what a node has, what a pod requests
 *
 * Touches  memory only.
 * Used by  decode_node.c, decode_pod.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_MIG_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_MIG_H

#include "gpuqd/cluster/kube/watch/decode.h"

/* Instances of MIG profiles: what a node has, what a pod asks. In o's arena. 0 or GPUQ_ENOMEM. */
int kube_read_node_mig(struct kube_object *o, struct node_fact *out);
int kube_read_pod_mig(struct kube_object *o, struct pod_fact *out);

#endif
