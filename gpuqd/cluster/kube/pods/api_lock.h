/* api_lock.h - the lock of a node, by which HAMi's schedulers and its plugin take turns
 *
 * Owns     the locks that pods of ours hold or wait for.
 * Touches  an annotation of nodes.
 * Used by  api.c, api_turn.c.
 *
 * The lock is an annotation with a time, a namespace and a pod. A lock of others is respected until it is
 * stale. The plugin removes it when it has served the pod; what is left of ours is removed here.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_API_LOCK_H
#define GPUQD_CLUSTER_KUBE_PODS_API_LOCK_H

#include "gpuqd/cluster/kube/pods/api_int.h"

/* Ask for the lock for a pod; creates_go_on() is called when it is held. */
struct lock *lock_take(struct asks *a, const char *node, const char *namespace_, const char *pod);
/* The same where the pod is there already: an earlier process took it. */
struct lock *lock_assume(struct asks *a, const char *node, const char *namespace_, const char *pod);
/* A node has a lock with this text. One of a pod of ours that is not under way is removed: an earlier process held
 * it, or took it, and the pod is gone or was never made. */
void lock_left(struct asks *a, const char *node, const char *text);
bool lock_is_held(const struct lock *l);
/* Remove it from the node if it names the pod still; after a while if the pod was served, since its plugin removes it.
 * l is gone for the caller. NULL is fine. */
void lock_release(struct lock *l, bool served);
void lock_free_all(struct asks *a); /* they stay on their nodes */

#endif
