/* capacity_body.h - an order as objects of Kubernetes
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  capacity.c; tests.
 */
#ifndef GPUQD_CLUSTER_KUBE_CAPACITY_CAPACITY_BODY_H
#define GPUQD_CLUSTER_KUBE_CAPACITY_CAPACITY_BODY_H

#include "gpuqd/cluster/cluster.h"

#define CAPACITY_GROUP "autoscaling.x-k8s.io"

/* JSON, to be freed; NULL = no memory. */
char *capacity_template(const struct capacity_order *o, const char *namespace_);
/* A placeholder, and the condition by which autoscalers know it. */
#define CAPACITY_PRIORITY_CLASS "gpuq-placeholder"
char *capacity_placeholder(const struct capacity_order *o, const char *namespace_);
char *capacity_unschedulable(int64_t wall_us);
char *capacity_request(const struct capacity_order *o, const char *namespace_, const char *version);

#endif
