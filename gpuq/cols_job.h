/* cols_job.h - the columns of a list of jobs
 *
 * Used by  cmd_queue.c, cmd_history.c; cmd_report.c for what it used.
 */
#ifndef GPUQ_COLS_JOB_H
#define GPUQ_COLS_JOB_H

#include "gpuq/out.h"

extern const struct out_def job_list;
extern const struct out_def job_history; /* those that have ended */
extern const char job_history_long[];
extern const char job_list_long[]; /* columns of --long */

/* Columns of the member `used` of a row; - where that is not known. */
double cols_max_memory_rank(const struct row *r);
void cols_max_memory_text(struct gpuq_buf *out, const struct row *r);
double cols_gpu_busy_rank(const struct row *r);
void cols_gpu_busy_text(struct gpuq_buf *out, const struct row *r);

#endif
