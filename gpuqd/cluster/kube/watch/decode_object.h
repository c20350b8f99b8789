/* decode_object.h - what pods depend on: limits, runtimes, claims, volumes, storage classes
 *
 * Owns     nothing; facts point into the parsed object and its arena.
 * Used by  watch_objects.c; tests and fuzz targets.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_OBJECT_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_OBJECT_H

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/state/objects/object.h"

/* The annotation of a claim by which its provisioner knows the node. */
#define KUBE_A_SELECTED_NODE "volume.kubernetes.io/selected-node"

/* Returns 0; GPUQ_EINVAL with what is wrong. */
int kube_read_object(struct kube_object *o, enum object_kind kind, struct object_fact *out,
		     struct gpuq_err *err);

#endif
