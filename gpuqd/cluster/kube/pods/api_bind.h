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

/* A write whose outcome is seen in the object. */
struct asks_write {
	const char *method, *content_type; /* of static words */
	const char *key; /* one of a key is under way at a time; the next is asked for again */
	const char *path;
	json_t *body; /* taken over */
	const char *pod; /* that waits for it; "" none */
	const char *claim; /* the resource of a claim of devices, a static word; NULL = of none */
};

void asks_write(struct asks *a, const struct asks_write *w);
void asks_claim_select(struct asks *a, const struct pod_ref *ref, const char *claim);
void asks_bind(struct asks *a, const struct pod_ref *ref);
void bindings_free_all(struct asks *a);

#endif
