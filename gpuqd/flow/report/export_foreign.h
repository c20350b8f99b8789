/* export_foreign.h - what others hold, as a scenario says it
 *
 * Touches  memory only.
 * Used by  export.c.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_FOREIGN_H
#define GPUQD_FLOW_REPORT_EXPORT_FOREIGN_H

#include "gpuqd/flow/report/export_int.h"

/* export_foreign.c: does anybody else hold devices of the node; a job that stands for them,
 * where there are; and the queue of these jobs. */
bool export_is_shared(const struct export *x, const struct snap_node *n);
void export_foreign(struct export *x, const struct snap_node *n);
void export_foreign_queue(struct export *x);

#endif
