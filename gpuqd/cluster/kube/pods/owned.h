/* owned.h - do the objects that a pod names belong to its owner?
 *
 * Owns     the look-ups of one pod that is about to be created.
 * Touches  the apiserver: metadata of Secrets, ConfigMaps and claims, never their content.
 * Used by  api_create.c.
 *
 * An object belongs to the user that its label gpuq.io/user names (label.h). One that does not
 * exist yet is waited for: made later, it could be another user's.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_OWNED_H
#define GPUQD_CLUSTER_KUBE_PODS_OWNED_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"

struct loop;
struct owned;

struct owned_sink {
	void *arg;
	void (*trying)(void *arg, const char *why); /* it goes on; each reason once */
	void (*done)(void *arg, const char *why); /* "" = all are; the look-ups are gone then */
};

/* Begin, where the queue says `owner` of a kind that the pod names; NULL = nothing to look up. No
 * callback is made from inside. */
struct owned *owned_start(struct loop *l, struct http *h, const char *namespace_,
			  const struct pod_order *o, const struct owned_sink *sink);
void owned_cancel(struct owned *w); /* NULL is fine */

#endif
