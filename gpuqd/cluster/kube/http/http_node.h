/* http_node.h - requests about one node
 *
 * Touches  the apiserver through http.h.
 * Used by  api_lock.c, node_keep.c, node_label.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_HTTP_HTTP_NODE_H
#define GPUQD_CLUSTER_KUBE_HTTP_HTTP_NODE_H

#include <jansson.h>

#include "gpuqd/cluster/kube/http/http.h"

typedef void (*http_node_fn)(void *arg, const struct http_answer *answer);

/* Read the node; its metadata is enough. */
struct http_req *http_node_read(struct http *h, const char *node, http_node_fn fn, void *arg);
/* Write a merge patch to it, which is taken over. */
struct http_req *http_node_patch(struct http *h, const char *node, json_t *patch, http_node_fn fn,
				 void *arg);

#endif
