/* decode_pod.h - a pod of the apiserver
 *
 * Touches  memory only.
 * Used by  watch.c; tests and fuzz targets.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_DECODE_POD_H
#define GPUQD_CLUSTER_KUBE_WATCH_DECODE_POD_H

#include "gpuqd/cluster/kube/watch/decode.h"

int kube_read_pod(struct kube_object *o, const char *cluster_id, struct pod_fact *out,
		  struct gpuq_err *err);

/* How a pod ended or why it cannot start: fault, reason, message, exit_code,
 * waiting_bad and end_us of out, from status (and phase of out). */
void kube_read_outcome(struct gpuq_arena *a, const json_t *status, struct pod_fact *out);

/* Set trouble and whose of out to the object that the kubelet's words name as missing. False: they
 * name none. */
bool kube_missing_object(struct gpuq_arena *a, const char *words, struct pod_fact *out);

#endif
