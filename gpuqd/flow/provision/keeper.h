/* keeper.h - which nodes an autoscaler is to leave alone
 *
 * Owns     since when nodes of pools of an autoscaler are idle, and the cluster's last word about each.
 * Touches  the cluster, through its node_keep.
 * Used by  asker.c.
 *
 * A node stays while pods are on it, or are to come: a request awaits it, or some job has a nominated placement
 * there; until it was idle for min_idle, and where fewer than min_nodes would stay. While no job can be
 * placed, since the cluster is not known, no node is idle.
 */
#ifndef GPUQD_FLOW_PROVISION_KEEPER_H
#define GPUQD_FLOW_PROVISION_KEEPER_H

#include "gpuqd/cluster/cluster.h"

struct journal;
struct keeper;
struct schedule;

struct keeper *keeper_new(struct journal *j, const struct schedule *s); /* NULL = no memory */
void keeper_free(struct keeper *k); /* NULL is allowed */
void keeper_set_cluster(struct keeper *k, struct cluster *c); /* NULL = there is none */
/* Evaluate all nodes; the cluster may be changed. */
void keeper_tick(struct keeper *k);
/* The same for those that have come for a request, at once: all others stay as they are. */
void keeper_came(struct keeper *k);

#endif
