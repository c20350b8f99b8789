/* capacity.h - ProvisioningRequests and the PodTemplates that they name; placeholders
 *
 * Owns     those that are being made or removed, and the back-off between their tries.
 * Touches  the apiserver through http.h.
 * Used by  kube.c.
 *
 * The template comes first, since an autoscaler fails a request without one; then the request, which then
 * owns the template. Where the request is refused the template is removed. A name that is taken by an
 * object with our token is ours: what was made by a process that has ended is not made again. A placeholder
 * is marked as a pod that fits on no node once it was created: that is all that autoscalers look at.
 */
#ifndef GPUQD_CLUSTER_KUBE_CAPACITY_CAPACITY_H
#define GPUQD_CLUSTER_KUBE_CAPACITY_CAPACITY_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/watch/watch.h"

struct capacity;

/* namespace_ and cluster_id must outlive the result, as must w. */
int capacity_new(struct loop *l, struct http *h, struct watch *w, const char *namespace_,
		 const char *cluster_id, struct capacity **out, struct gpuq_err *err);
void capacity_free(struct capacity *c); /* NULL is allowed; before the watch */

/* As in cluster_ops. */
void capacity_watch(struct capacity *c, const struct capacity_sink *sink, bool requests);
void capacity_ask(struct capacity *c, const struct capacity_order *o);
void capacity_drop(struct capacity *c, const char *namespace_, const char *name, const char *token);
/* placeholder_make and placeholder_drop. */
void capacity_stand(struct capacity *c, const struct capacity_order *o);
void capacity_leave(struct capacity *c, const char *namespace_, const char *name,
		    const char *token);

#endif
