/* api_remove.h - deleting and forgetting pods
 *
 * Owns     the removals that have not ended.
 * Touches  the apiserver.
 * Used by  kube.c; api*.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_API_REMOVE_H
#define GPUQD_CLUSTER_KUBE_PODS_API_REMOVE_H

#include "gpuqd/cluster/cluster.h"

struct asks;
struct rest;

void asks_delete(struct asks *a, const struct pod_ref *ref, int64_t grace_us);
void asks_forget(struct asks *a, const struct pod_ref *ref);

void removal_free_all(struct asks *a);

/* Delete one object by path, whatever its uid; rest is reported. */
void removal_path(struct asks *a, const char *path, struct rest *rest);

#endif
