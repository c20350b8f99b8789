/* export_queue.h - queues and usage in a scenario
 *
 * Touches  memory only.
 * Used by  export.c.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_QUEUE_H
#define GPUQD_FLOW_REPORT_EXPORT_QUEUE_H

#include "gpuqd/flow/report/export_int.h"

/* Write a queue; write what users have used in all queues. */
void export_queue(struct export *x, uint32_t queue);
void export_users(struct export *x);

#endif
