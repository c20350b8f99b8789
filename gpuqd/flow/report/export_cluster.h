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

#endif
