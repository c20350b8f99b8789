/* export_queue.h - queues and what users have used, as a scenario says them
 *
 * Touches  memory only.
 * Used by  export.c.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_QUEUE_H
#define GPUQD_FLOW_REPORT_EXPORT_QUEUE_H

#include "gpuqd/flow/report/export_int.h"

/* export_queue.c: a queue; what users have used in all of them. */
void export_queue(struct export *x, uint32_t queue);
void export_users(struct export *x);

#endif
