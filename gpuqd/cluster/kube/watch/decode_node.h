/* decode_node.h - a node of the apiserver
 *
 * Touches  memory only.
 * Used by  watch.c; tests and fuzz targets.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_NODE_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_NODE_H

#include "gpuqd/cluster/kube/watch/decode.h"

/* Read o->object. cluster_id tells our own pods from those of another gpuqd.
 * Returns 0; GPUQ_EINVAL (no name), GPUQ_ENOMEM. The fact lives as long as o. */
int kube_read_node(struct kube_object *o, struct node_fact *out, struct gpuq_err *err);

#endif
