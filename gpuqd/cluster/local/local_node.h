/* local_node.h - this machine as a node: its devices, as the driver reports them
 *
 * Owns     the look at the driver under way.
 * Touches  the driver's own program, /proc.
 * Used by  local.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_NODE_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_NODE_H

#include "gpuqd/cluster/local/local_int.h"

int local_node_init(struct local *l, struct gpuq_err *err);
void local_node_check(struct local *l); /* begins a look; reports what changed */
void local_node_report(struct local *l);
void local_node_free(struct local *l);

#endif
