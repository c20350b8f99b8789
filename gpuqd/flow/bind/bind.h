/* bind.h - pods that were created without their node, until they have it
 *
 * Owns     the pods that the cluster reports without a node, and what they mount.
 * Touches  the cluster: claims and bindings, never the decision where a pod runs.
 * Used by  daemon.c (reports of reconcile.h go here).
 *
 * Pods of queues with start: bind have no claims to wait for, or others, and are bound at once. A claim
 * whose class waits for its first consumer is provisioned once a node is selected. So its pod is created without one, the node of the placement is written to the claim, and when all claims are
 * bound the pod is bound to that node. Each step can be repeated: after a restart the list of pods
 * tells which are still without a node. A volume that came into being elsewhere sends the job back to
 * its queue; it is then placed where the volume is.
 */
#ifndef GPUQD_FLOW_BIND_BIND_H
#define GPUQD_FLOW_BIND_BIND_H

#include "gpuqd/state/event.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"

struct bind;
struct cluster;
struct journal;
struct reconcile;

int bind_new(struct journal *j, struct reconcile *r, struct bind **out, struct gpuq_err *err);
void bind_free(struct bind *b); /* NULL is fine */
/* NULL = there is none. */
void bind_set_cluster(struct bind *b, struct cluster *c);

/* A pod is pending: reconcile_on_unbound(). */
void bind_seen(void *bind, struct pod_key pod, const struct gpuq_strlist *claims);

/* A job was told to give its places back since a pod of it could not be bound: reconcile_on_released(). Pods
 * that were not submitted stay as they are, and wait for another placement, unless one has its node. */
void bind_release(void *bind, struct job_key job);

#endif
