/* export_job.h - jobs in a scenario
 *
 * Touches  memory only.
 * Used by  export.c.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_JOB_H
#define GPUQD_FLOW_REPORT_EXPORT_JOB_H

#include "gpuqd/flow/report/export_int.h"

/* Write a job that runs or is leaving; write a pending one, or one range of a pending array. */
void export_running(struct export *x, const struct snap_job *j);
void export_waiting(struct export *x, const struct snap_job *j, uint32_t range);

#endif
