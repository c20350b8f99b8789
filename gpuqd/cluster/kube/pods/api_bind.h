/* api_bind.h - a node for a claim, a node for a pod that was created without one
 *
 * Owns     these writes, until they have ended.
 * Touches  the apiserver through http.h.
 * Used by  kube.c, api.c.
 *
 * Both may be requested again: a claim keeps the last node written to it, and a pod that has a node
 * keeps that (409). How it went is seen in the object, so only a refusal is reported.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_API_BIND_H
#define GPUQD_CLUSTER_KUBE_PODS_API_BIND_H

#include "gpuqd/cluster/kube/pods/api_int.h"

/* Write to a claim of devices; all but the making of one hold only while it has the version that was decided
 * on. version: of the API, "v1". */
void asks_claim(struct asks *a, const char *version, const struct claim_ask *ask);
void asks_claim_select(struct asks *a, const struct pod_ref *ref, const char *claim);
void asks_claim_volume(struct asks *a, const struct pod_ref *ref, const char *claim,
		       const char *volume);
void asks_bind(struct asks *a, const struct pod_ref *ref);
void bindings_free_all(struct asks *a);

#endif
