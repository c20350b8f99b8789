/* snapshot_take_pools.h - nodes of a pool that grows, and do not exist yet; nodes that may be cut
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  snapshot_take.c.
 *
 * A pool with `provisioning: {kind: request}` adds a node for each that was asked for and has not come,
 * and for each that could be asked for: no more than max_nodes in all, than a new request is allowed
 * (max_requests), and than all pending jobs together could use. While its requests fail, while there are
 * max_requests of them, and while none can be made at all, those that could be asked for are down. */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_POOLS_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_POOLS_H

#include "gpuqd/snapshot/snapshot_taking.h"

/* Find out for which of the asks nodes have come. */
void snapshot_pools_begin(struct taking *t);
/* Set for how long jobs may run on a node that is taken away. */
void snapshot_pools_end(const struct taking *t, const struct node *n, struct snap_node *sn);
/* Set what a node that has come for an ask is: open to jobs, or not yet. */
void snapshot_pools_node(const struct taking *t, const struct node *n, struct snap_node *sn);
/* Add the nodes that do not exist. */
void snapshot_pools_add(struct taking *t);

/* Set the layouts of MIG instances that the node may get now: those of its pool, without the one that its
 * label names, and the one that it was given last for as long as it is not given that again. While its
 * layout is being changed it is suspended, and has that one alone. */
void snapshot_cuts_node(struct taking *t, const struct node *n, struct snap_node *sn);

#endif
