/* joblog_read.h - the recorded events of a job, a piece at a time
 *
 * Owns     the position of one reading.
 * Touches  the store (reads committed records), the monotonic clock.
 * Used by  rpc methods (event.list).
 *
 * Events come in the order in which they happened; for a whole array its own first, then those of
 * each element. Keys are remembered between two pieces, never a transaction.
 */
#ifndef GPUQD_FLOW_REPORT_JOBLOG_READ_H
#define GPUQD_FLOW_REPORT_JOBLOG_READ_H

#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/record/change.h"
#include "gpuqd/state/event.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct store;

struct joblog_read {
	struct job_key job;
	unsigned char from[CHANGE_KEY_BYTES_MAX];
	size_t from_len; /* 0 = from the first on */
};

/* Begin. index -1: the job and, for an array, all its elements. An element: the events of the array
 * before it was separate, then its own. */
void joblog_read_init(struct joblog_read *r, struct job_key job);

enum { JOBLOG_LATER = 1 }; /* not taken: to be passed again in the next piece */
typedef int (*joblog_fn)(void *arg, const struct gpuq_val *entry);

/* Read the next piece. Returns 1 when there is more, 0 at the end, a negative code when the store
 * fails. */
int joblog_read_run(struct store *st, struct joblog_read *r, int64_t budget_us, joblog_fn fn,
		    void *arg, struct gpuq_err *err);

#endif
