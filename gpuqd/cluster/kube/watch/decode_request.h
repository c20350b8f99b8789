/* decode_request.h - a ProvisioningRequest of the apiserver
 *
 * Owns     nothing; facts point into the parsed object and its arena.
 * Touches  memory only.
 * Used by  watch_requests.c; tests and fuzz targets.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_REQUEST_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_REQUEST_H

#include "gpuqd/cluster/kube/watch/decode.h"

/* cluster_id tells our own from those of others, whose token is "". Returns 0; GPUQ_EINVAL (no name),
 * GPUQ_ENOMEM. */
int kube_read_request(struct kube_object *o, const char *cluster_id, struct capacity_fact *out,
		      struct gpuq_err *err);

#endif
