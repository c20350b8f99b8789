/* api_turn.h - pods of nodes that share devices, created one after another
 *
 * Owns     the turns: pods that their node's plugin has not served yet.
 * Used by  api.c, api_create.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_API_TURN_H
#define GPUQD_CLUSTER_KUBE_PODS_API_TURN_H

#include "gpuqd/cluster/kube/pods/api_int.h"

/* May a pod that requests units on node (below 0: all of the node's attention) be created now? Then it
 * holds that turn, until it is over: with units after a while, else when it is served or gone. With UNSERVED_LOCK
 * it needs the lock of the node as well. */
bool turn_take(struct asks *a, const char *node, int64_t units, const char *namespace_,
	       const char *pod);
/* A pod is there that has not been served: one of an earlier process, or of others, whose turn always ends after a
 * while: nothing here makes an end of it. */
void turn_seen(struct asks *a, const char *node, int64_t units, const char *namespace_,
	       const char *pod, bool theirs);
/* Also of a pod that holds none. served: the plugin allocated its devices. */
void turn_over(struct asks *a, const char *pod, bool served);
void turn_free_all(struct asks *a);

#endif
