/* pod_events.h - volumes and sandboxes that a node cannot set up
 *
 * Owns     the list of own pods that have been pending for a while without a word of the kubelet.
 * Touches  the apiserver: the events of such a pod, where nothing else reports its trouble.
 * Used by  kube.c.
 *
 * The right to list events is optional (etc/kubernetes/optional/events.yaml). The log says once
 * that it is missing.
 */
#ifndef GPUQD_CLUSTER_KUBE_POD_EVENTS_H
#define GPUQD_CLUSTER_KUBE_POD_EVENTS_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"

struct loop;
struct pod_events;

/* sink->troubled is called for each event found. */
int pod_events_new(struct loop *l, struct http *h, const struct cluster_sink *sink,
		   struct pod_events **out, struct gpuq_err *err);
void pod_events_free(struct pod_events *m); /* NULL is allowed */

/* An own pod was seen, or has gone. */
void pod_events_shown(struct pod_events *m, const struct pod_fact *f, bool gone);

#endif
