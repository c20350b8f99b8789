/* filter.h - the options that say which jobs, as parameters of a call
 *
 * Touches  memory; the server, to see whether there are such jobs.
 * Used by  list.c, cmd_queue.c, cmd_history.c, act.c.
 */
#ifndef GPUQ_FILTER_H
#define GPUQ_FILTER_H

#include <stdbool.h>

#include "gpuq/cli.h"
#include "libgpuq/spec.h"

/* Put the filters that were given into params (a map). Returns 0, or
 * GPUQ_EINVAL with what was expected. Needs a connection for --me. */
int filter_put(struct cli *c, struct gpuq_val *params, struct gpuq_err *err);

/* The same for a list of jobs: the arguments are ids too, and of several one that is no job's
 * is GPUQ_ENOENT. */
int filter_put_jobs(struct cli *c, struct gpuq_val *params, struct gpuq_err *err);

/* A list of nothing does not tell a job that is not there from one that never was: ask.
 * GPUQ_ENOENT for an id of params that is no job's. */
int filter_check_ids(struct cli *c, const struct gpuq_val *params, struct gpuq_err *err);

/* An instant of the past as the options --since and --until take it: "2026-12-01T09:00Z",
 * "09:00" (the last one), or a duration, so long ago. option is its name without dashes.
 * Returns 0 or GPUQ_EINVAL. */
int filter_instant(const char *option, const char *text, int64_t *us, struct gpuq_err *err);
/* --since and --until as since_us and until_us, where they are given. 0 or GPUQ_EINVAL. */
int filter_put_times(struct gpuq_arena *a, struct gpuq_val *params, const struct args *args,
		     struct gpuq_err *err);

/* Some filter was given. */
bool filter_given(const struct args *args);

/* Append job ids in the server's form to list: "17" and "17_3" as they are,
 * "17_[4-9,12]" one by one; several separated by commas (outside brackets).
 * Returns 0 or GPUQ_EINVAL. */
int filter_ids(struct gpuq_arena *a, const char *text, struct gpuq_val *list, struct gpuq_err *err);

/* "17_[4-9]": the array and the indices of its elements; false for other forms. */
bool filter_set(struct gpuq_arena *a, const char *text, int64_t *id, struct gpuq_array *set);

/* "17_3": its two numbers; *index -1 without one. GPUQ_EINVAL for other forms. */
int filter_id(const char *text, int64_t *id, int64_t *index, struct gpuq_err *err);

#endif
