/* metrics_nodes.h - use of pods, from the kubelets of their nodes
 *
 * Owns     the requests of one round.
 * Touches  the apiserver through http.h, which passes them on (the right get nodes/proxy).
 * Used by  metrics.c.
 *
 * Nodes with a running pod of gpuqd's are asked for /metrics/resource, so many in a round; then it is
 * the turn of the others.
 */
#ifndef GPUQD_CLUSTER_KUBE_METRICS_NODES_H
#define GPUQD_CLUSTER_KUBE_METRICS_NODES_H

#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/metrics_text.h"
#include "gpuqd/cluster/kube/watch/watch.h"

#define METRICS_NODES_A_ROUND 128u

struct metrics_nodes;

/* amount: as metrics_text.h has it. done: once for each metrics_nodes_ask(), maybe from inside it, with the first
 * trouble in words, or "". */
int metrics_nodes_new(struct loop *l, struct http *http, const struct watch *watch,
		      metrics_amount_fn amount, void (*done)(void *arg, const char *why), void *arg,
		      struct metrics_nodes **out, struct gpuq_err *err);
void metrics_nodes_free(struct metrics_nodes *n); /* NULL is allowed; no callback after this */

/* Begin a round; the previous one is done. */
void metrics_nodes_ask(struct metrics_nodes *n);

#endif
