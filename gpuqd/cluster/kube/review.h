/* review.h - tokens that the apiserver judges
 *
 * Owns     the request of one TokenReview.
 * Touches  the apiserver; the right to it is in etc/kubernetes/optional/identity.yaml.
 * Used by  kube.c (cluster_ops.token_review).
 */
#ifndef GPUQD_CLUSTER_KUBE_REVIEW_H
#define GPUQD_CLUSTER_KUBE_REVIEW_H

#include "gpuqd/cluster/cluster.h"

struct http;

struct cluster_review *review_start(struct http *h, const char *token, const char *audience,
				    cluster_review_fn fn, void *arg);
void review_cancel(struct cluster_review *r);

#endif
