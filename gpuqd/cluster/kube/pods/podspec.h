/* podspec.h - an order to the objects that fulfil it
 *
 * Owns     nothing: what is returned belongs to the caller (json_decref).
 * Touches  memory only.
 * Used by  api.c; tests.
 *
 * A group in gpuq's own form becomes a pod of one container; a manifest's template
 * goes through as its owner wrote it, except for what gpuq decides: name, node,
 * scheduler, restart policy, service account, limits of time. Labels and annotations
 * of the owner stay, those under gpuq.io/ that gpuqd sets are gpuqd's.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_PODSPEC_H
#define GPUQD_CLUSTER_KUBE_PODS_PODSPEC_H

#include <jansson.h>
#include <stdbool.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/devices/backend.h"

#define PODSPEC_NAME_ROOM 64

/* The pod. Returns 0; GPUQ_EINVAL when the order makes no pod (no image, a share of
 * a device), with the field; GPUQ_ENOMEM. */
int podspec_pod(const struct pod_order *o, json_t **out, struct gpuq_err *err);

/* True if the backend of the node writes down the devices of the pod, rather than that they are
 * requested as they are. Sets the backend, and how it places the pod, but for what is written on it; either may be
 * NULL. */
bool podspec_shared(const struct pod_order *o, const struct backend **which,
		    struct backend_place *out);

/* The script, and the archive that the job carries, as an immutable ConfigMap, one for all pods of a job. archive: its
 * bytes in base64; NULL = it carries none. */
bool podspec_has_files(const struct pod_order *o);
int podspec_files(const struct pod_order *o, const char *archive, json_t **out,
		  struct gpuq_err *err);

/* The headless Service that gives the pods of a gang names: POD.SERVICE. Variables of
 * order->env that hold a pod's name are given that name. */
bool podspec_has_service(const struct pod_order *o);
int podspec_service(const struct pod_order *o, json_t **out, struct gpuq_err *err);

/* "gpuq-CLUSTER-JOB-script" and "gpuq-CLUSTER-JOB[-ARRAYINDEX]". */
void podspec_script_name(const char *cluster_id, uint32_t job, char out[PODSPEC_NAME_ROOM]);
void podspec_service_name(const char *cluster_id, uint32_t job, int64_t array_index,
			  char out[PODSPEC_NAME_ROOM]);

/* A tree of values as JSON; NULL when there is no memory or a string is not UTF-8. */
json_t *podspec_json(const struct gpuq_val *v);

#endif
