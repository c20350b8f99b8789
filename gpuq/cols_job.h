/* cols_job.h - the columns of a list of jobs
 *
 * Used by  cmd_queue.c, cmd_history.c.
 */
#ifndef GPUQ_COLS_JOB_H
#define GPUQ_COLS_JOB_H

#include "gpuq/out.h"

extern const struct out_def job_list;
extern const struct out_def job_history; /* those that have ended */
extern const char job_history_long[];
extern const char job_list_long[]; /* columns of --long */

#endif
