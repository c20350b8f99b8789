/* watch.h - what the cluster has, kept up to date
 *
 * Owns     two lists-and-watches (nodes, pods) and what is known of their objects.
 * Touches  the apiserver through http.h.
 * Used by  kube.c.
 *
 * List once in pages, then follow the changes from the list's version on; a broken
 * stream is taken up at the last version heard; a version that the server has
 * forgotten, or one that it has never had (its store was restored), means one new
 * list, whose differences are reported as changes. Algorithm: the Kubernetes
 * documentation, "Efficient detection of changes".
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_WATCH_H
#define GPUQD_CLUSTER_KUBE_WATCH_WATCH_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/watch/known.h"

struct watch;

/* Begin; sink and cluster_id must outlive the result. */
int watch_new(struct loop *l, struct http *h, const char *cluster_id,
	      const struct cluster_sink *sink, struct watch **out, struct gpuq_err *err);
void watch_free(struct watch *w);

/* Called before the sink is: for each pod whenever it is seen or has gone, for each node that is seen, and when all
 * pods have been listed. */
struct watch_before {
	void (*pod)(void *arg, const struct pod_fact *f, bool gone);
	void (*node)(void *arg, const struct node_fact *n);
	void (*listed)(void *arg);
	void *arg;
};
void watch_before_sink(struct watch *w, const struct watch_before *before);

/* Called for each placeholder of ours, of which the sink hears nothing: its names, token and uid. */
typedef void (*watch_placeholder_fn)(void *arg, const struct known_thing *t, bool gone);
void watch_on_placeholder(struct watch *w, watch_placeholder_fn fn, void *arg);

/* Each is called as the sink's are. gone: f has its name and token alone. */
struct capacity_fact;
typedef void (*watch_request_fn)(void *arg, const struct capacity_fact *f, bool gone);
/* A complete list has come, or why there is none. */
typedef void (*watch_requests_fn)(void *arg, bool known, const char *why);
/* List and watch ProvisioningRequests of that API version ("v1"), from now on; NULL = no longer. */
void watch_requests(struct watch *w, const char *version, watch_request_fn seen,
		    watch_requests_fn known, void *arg);

const struct known_thing *watch_pod(const struct watch *w, const char *namespace_,
				    const char *name);

/* Call fn for each pod, those of others as well; it changes nothing. */
void watch_each_pod(const struct watch *w, void (*fn)(void *arg, const struct known_thing *t),
		    void *arg);

#endif
