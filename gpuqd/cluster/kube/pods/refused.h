/* refused.h - what was refused for the cluster's sake, and whether it still would be
 *
 * Owns     the last request of each such refusal, until it is forgotten.
 * Touches  the apiserver: the same request as a dry run, which passes all of its checks and
 *          creates nothing.
 * Used by  api_post.c (notes), kube.c (asks).
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_REFUSED_H
#define GPUQD_CLUSTER_KUBE_PODS_REFUSED_H

#include "gpuqd/cluster/kube/pods/api_int.h"

/* True if the pod violates a Pod Security Standard that its queue demands anyway: its own fields
 * are at fault, not the namespace. */
bool refused_by_policy(const struct status *st, const char *pod_policy);

/* Keep the request. out is valid until it is forgotten, or noted again. */
void refused_note(struct asks *a, const struct post_call *call, const char *collection,
		  const struct status *st, struct refusal *out);

/* sink->probed follows. Returns false if there is no such refusal. */
bool refused_probe(struct asks *a, const char *key);
void refused_forget(struct asks *a, const char *key);
void refused_free_all(struct asks *a);

#endif
