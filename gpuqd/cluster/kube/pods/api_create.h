/* api_create.h - a pod and what it needs beside it, created once
 *
 * Owns     the creates and what is beside pods, until the server has answered for them.
 * Touches  the apiserver.
 * Used by  kube.c; api*.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_API_CREATE_H
#define GPUQD_CLUSTER_KUBE_PODS_API_CREATE_H

#include "gpuqd/cluster/cluster.h"

struct asks;
struct rest;

void asks_create(struct asks *a, const struct pod_order *order);

/* Creates that wait for a turn look again. */
void creates_go_on(struct asks *a);

/* The pod of a create was seen, or has gone already. */
void create_shown(struct asks *a, const struct pod_fact *f);

/* A pod that is being created is to leave: true = seen to, sink->deleted will follow. */
bool create_leave(struct asks *a, const struct pod_ref *ref, int64_t grace_us);
void create_free_all(struct asks *a);
/* It is not wanted any more. true: it is being made, and is removed for rest after that. */
bool beside_forget(struct asks *a, const char *path, struct rest *rest);
void beside_free_all(struct asks *a);

#endif
