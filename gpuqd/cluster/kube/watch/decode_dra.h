/* decode_dra.h - objects of resource.k8s.io: slices, classes, claims and templates
 *
 * Owns     nothing; facts point into the parsed object and its arena.
 * Used by  watch_objects.c; tests and fuzz targets.
 *
 * Versions v1 and v1beta2 have the same fields. A field that changes what is allocated and that gpuqd does
 * not know makes the device, the class or the claim odd: it is not used, and which field it was is told.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_DRA_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_DRA_H

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/state/objects/object.h"

/* The pod for whose claim of that name it was made. */
#define KUBE_A_POD_CLAIM "resource.kubernetes.io/pod-claim-name"
/* The cluster_id of the gpuqd that allocated it. */
#define KUBE_A_ALLOCATED "gpuq.io/allocated"
#define KUBE_CLAIM_FINALIZER "resource.kubernetes.io/delete-protection"

/* cluster_id tells which claims are our own. Returns 0; GPUQ_EINVAL with what is wrong. */
int kube_read_dra(struct kube_object *o, enum object_kind kind, const char *cluster_id,
		  struct object_fact *out, struct gpuq_err *err);

#endif
