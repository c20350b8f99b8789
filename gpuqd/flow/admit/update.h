/* update.h - changes of the description of a submitted job
 *
 * Owns     how a change gets into the stored spec; which keys may change: update_keys.h.
 * Touches  the journal, the stored spec; the checks are those of a submission.
 * Used by  rpc (job.update).
 */
#ifndef GPUQD_FLOW_ADMIT_UPDATE_H
#define GPUQD_FLOW_ADMIT_UPDATE_H

#include <stdbool.h>

#include "gpuqd/state/job_keys.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/admit/submit.h"

/* Put the pairs of `set` (keys of a job file with their values; null = unset) into the description
 * of the job with this key and pass it through the checks of a submission. key may be an element
 * that is still pending inside its array.
 *
 * A pending job may change everything that does not make it another job (script, context, hold);
 * one element of an array only what its record holds; a running job only what leaves its pods as
 * they are. rights (enum access_right): those of `who` over the job; ACCESS_MANAGE may lengthen the
 * time limit of a running job. whole: key is one of several parts of an array, all of which get the
 * change; 1 is returned where it does not apply to this part. Returns 0; GPUQ_EINVAL, GPUQ_ENOENT,
 * GPUQ_EPERM, GPUQ_ELIMIT (with err->field), GPUQ_ECONFLICT (not in this state), GPUQ_ESTORAGE:
 * nothing has changed then. warnings: a list in a, one line each; may be NULL. */
int update_job(struct journal *j, struct cluster *c, const struct submit_who *who, unsigned rights,
	       struct job_key key, bool whole, const struct gpuq_val *set, bool dry_run,
	       struct gpuq_arena *a, struct gpuq_val **warnings, struct gpuq_err *err);

/* Rank a pending job before all other pending jobs of its owner in its queue: its nice falls by as
 * much as the nice of those before it rises in total, so that other users' jobs are passed no more
 * than before. Rivals can be many, so they are changed one by one, one per step, and the job itself
 * last. */
struct top {
	struct job_key key;
	struct job_keys rivals; /* those that rank before it */
	size_t at; /* next of them */
	int64_t gain, share; /* what the job gains; what each rival loses */
};
/* Returns 0; GPUQ_ECONFLICT (not pending, or a nice would leave its range), GPUQ_ENOMEM: no
 * top_done() is needed then. */
int top_begin(struct journal *j, struct job_key key, struct top *t, struct gpuq_err *err);
bool top_step(struct journal *j, struct top *t); /* false: that was the last one */
void top_done(struct top *t);

#endif
