/* node_label.h - labels of a node, set until the apiserver has them or refuses them
 *
 * Owns     the requests under way. Touches the apiserver.
 * Used by  kube.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_CAPACITY_NODE_LABEL_H
#define GPUQD_CLUSTER_KUBE_CAPACITY_NODE_LABEL_H

#include "gpuqd/cluster/cluster.h"

struct http;
struct node_label; /* one request; the next follows it */

/* Set the labels; fn is called once, unless it is freed before. */
void node_label_set(struct loop *l, struct http *h, struct node_label **list,
		    const struct node_labels *labels, cluster_labels_fn fn, void *arg);
void node_label_free_all(struct node_label **list);

#endif
