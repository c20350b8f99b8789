/* displaced.h - what pods of gpuq hold of a node that offers its devices otherwise than when they started
 *
 * Touches  memory only.
 * Used by  snapshot/snapshot_take.c, state/view/ (cards, census).
 *
 * A node may be labelled or cut anew under its pods: their devices or instances are then not among what it offers,
 * but are on its cards. They count until the pods end.
 */
#ifndef GPUQD_SNAPSHOT_DISPLACED_H
#define GPUQD_SNAPSHOT_DISPLACED_H

#include "gpuqd/state/model.h"

/* Return the thousandths of cards that they have as devices which the node no longer offers. */
int64_t displaced_devices(const struct node *n);
/* Return the same of instances: of profiles that it no longer has, or of which it has fewer than they hold. */
int64_t displaced_instances(const struct node *n);
/* Return how many devices, or replicas of them, its kubelet has left, by the name that they are offered under;
 * GPUQ_UNLIMITED = it does not count them so. A pod that holds one which does not work leaves another. */
int64_t displaced_left(const struct model *m, const struct node *n);
/* Return how many replicas of a device, of so many thousandths each, the pods there hold; *milli: what they are
 * charged. One has one replica at least, however small those were when it started. */
int64_t displaced_replicas(const struct node *n, uint32_t device, int64_t replica_milli,
			   int64_t *milli);

#endif
