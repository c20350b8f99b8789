/* export_cluster.h - nodes and scheduler settings in a scenario
 *
 * Touches  memory only.
 * Used by  export.c.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_CLUSTER_H
#define GPUQD_FLOW_REPORT_EXPORT_CLUSTER_H

#include "gpuqd/flow/report/export_int.h"

/* export_cluster.c */
void export_config(struct export *x);
void export_node(struct export *x, const struct snap_node *n);
/* Write a pool that grows, unless it has all its nodes: what it could still get. */
void export_pool(struct export *x, const struct site_pool *p);

#endif
