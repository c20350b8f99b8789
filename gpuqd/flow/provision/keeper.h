/* keeper.h - which nodes an autoscaler is to leave alone
 *
 * Owns     since when nodes of pools of an autoscaler are idle, and the cluster's last word about each.
 * Touches  the cluster, through its node_keep.
 * Used by  asker.c.
 *
 * A node stays while pods are on it or a request awaits it, until it was idle for min_idle, and where
 * fewer than min_nodes would stay.
 */
#ifndef GPUQD_FLOW_PROVISION_KEEPER_H
#define GPUQD_FLOW_PROVISION_KEEPER_H

#include "gpuqd/cluster/cluster.h"

struct journal;
struct keeper;

struct keeper *keeper_new(struct journal *j); /* NULL = no memory */
void keeper_free(struct keeper *k); /* NULL is allowed */
void keeper_set_cluster(struct keeper *k, struct cluster *c); /* NULL = there is none */
/* Evaluate all nodes; the cluster may be changed. */
void keeper_tick(struct keeper *k);

#endif
