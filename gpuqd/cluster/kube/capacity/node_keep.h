/* node_keep.h - nodes that autoscalers are to leave alone
 *
 * Owns     those that are being marked, or whose mark is being removed.
 * Touches  the apiserver through http.h.
 * Used by  kube.c.
 *
 * The mark is an annotation for each autoscaler, and one of our own beside them: what others have set stays
 * as it is.
 */
#ifndef GPUQD_CLUSTER_KUBE_CAPACITY_NODE_KEEP_H
#define GPUQD_CLUSTER_KUBE_CAPACITY_NODE_KEEP_H

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/http.h"
#include "libgpuq/err.h"

struct node_keeps;

int node_keeps_new(struct loop *l, struct http *h, struct node_keeps **out, struct gpuq_err *err);
void node_keeps_free(struct node_keeps *k); /* NULL is allowed */

/* Have the node marked, or not: the last word counts. */
void node_keep(struct node_keeps *k, const char *node, bool on);

#endif
