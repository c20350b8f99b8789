/* export_foreign.h - foreign use of devices in a scenario
 *
 * Touches  memory only.
 * Used by  export.c.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_FOREIGN_H
#define GPUQD_FLOW_REPORT_EXPORT_FOREIGN_H

#include "gpuqd/flow/report/export_int.h"

/* True if devices of the node are in foreign use; write the jobs that stand for such use; write the
 * queue of these jobs. */
bool export_is_shared(const struct export *x, const struct snap_node *n);
void export_foreign(struct export *x, const struct snap_node *n);
void export_foreign_queue(struct export *x);

#endif
