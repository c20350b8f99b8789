/* export_job.h - jobs, as a scenario says them
 *
 * Touches  memory only.
 * Used by  export.c.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_JOB_H
#define GPUQD_FLOW_REPORT_EXPORT_JOB_H

#include "gpuqd/flow/report/export_int.h"

/* export_job.c: one that runs or leaves; one that waits, or one range of a waiting array. */
void export_running(struct export *x, const struct snap_job *j);
void export_waiting(struct export *x, const struct snap_job *j, uint32_t range);

#endif
