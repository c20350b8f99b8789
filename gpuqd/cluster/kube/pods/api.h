/* api.h - what is asked of the cluster, carried through
 *
 * Owns     every ask that has not ended yet, and the back-off between its tries.
 * Touches  the apiserver through http.h.
 * Used by  kube.c.
 *
 * A pod is made exactly once: its name says which attempt it is, its token says that
 * it is ours. A reply that was lost is looked for under that name before the same
 * request is sent again, and what the watch has shown is never requested again, as it may
 * have ended and gone by then; a name that is taken by another token is a conflict. Deletes
 * carry the uid, so that they never meet a pod that took the name later.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_API_H
#define GPUQD_CLUSTER_KUBE_PODS_API_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"

struct asks;

/* namespace_ is that of orders and references which name none; it and sink must
 * outlive the result. creates_per_s: 0 = as fast as the server takes them. */
int asks_new(struct loop *l, struct http *h, const char *namespace_, const char *cluster_id,
	     int64_t creates_per_s, const struct cluster_sink *sink, struct asks **out,
	     struct gpuq_err *err);
void asks_free(struct asks *a); /* nothing is reported any more */
/* How long the plugin of a node may take to serve a pod that holds the node's lock, after how long a lock
 * of others is stale, and how long turns last that end by themselves (api_turn.h); before any create. */
void asks_plugin_times(struct asks *a, int64_t plugin_us, int64_t lock_us, int64_t turn_us);

/* A pod of ours was seen, or has gone. Whatever becomes of the request that made it, there is
 * nothing to be made any more; and what shares the devices of its node may have served it. */
void asks_shown(struct asks *a, const struct pod_fact *f, bool gone);
/* The same for a pod of others: it may keep the plugin of its node from serving ours. */
void asks_shown_foreign(struct asks *a, const struct pod_fact *f, bool gone);
/* All pods that are there have been shown: until then no pod is created that must wait for another. */
void asks_listed(struct asks *a);
/* A node was seen: a lock that an earlier process left there is removed. */
void asks_shown_node(struct asks *a, const struct node_fact *n);

void asks_job_forget(struct asks *a, uint32_t job, int64_t array_index, const char *namespace_);

#endif
