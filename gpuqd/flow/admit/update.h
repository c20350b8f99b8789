/* update.h - changes of the description of a submitted job
 *
 * Owns     the way of a change into the stored spec; which keys may change: update_keys.h.
 * Touches  the journal, the stored spec; the checks are those of a submission.
 * Used by  rpc (job.update).
 */
#ifndef GPUQD_FLOW_ADMIT_UPDATE_H
#define GPUQD_FLOW_ADMIT_UPDATE_H

#include <stdbool.h>

#include "gpuqd/state/job_keys.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/admit/submit.h"

/* Put the pairs of `set` (keys of a job file with their values; null = as if it were not
 * given) into the description of the job with this key and pass it through the checks of
 * a submission. key may be an element that still waits inside its array.
 *
 * A job that waits may change everything but what makes it another job (script, context,
 * hold); one element of an array only what its record holds; one that runs what does not
 * change its pods. rights (enum access_right): those of `who` over the job; ACCESS_MANAGE may
 * lengthen the time limit of a job that runs. whole: key is one of all parts of an array, which
 * is told something; 1 is returned where that does not concern this part.
 * Returns 0; GPUQ_EINVAL, GPUQ_ENOENT, GPUQ_EPERM, GPUQ_ELIMIT (with err->field),
 * GPUQ_ECONFLICT (not in this state), GPUQ_ESTORAGE; and then nothing has changed.
 * warnings: a list in a, a line each; may be NULL. */
int update_job(struct journal *j, struct cluster *c, const struct submit_who *who, unsigned rights,
	       struct job_key key, bool whole, const struct gpuq_val *set, bool dry_run,
	       struct gpuq_arena *a, struct gpuq_val **warnings, struct gpuq_err *err);

/* Put a job that waits before all other waiting jobs of its owner in its queue: it becomes
 * less nice by as much as those before it become nicer together, so that nobody else is
 * passed over by more than before. Those may be many, so they are told one by one, a step
 * each, and the job itself last. */
struct top {
	struct job_key key;
	struct job_keys rivals; /* that stand before it */
	size_t at; /* the next of them */
	int64_t gain, share; /* the job's; of each of the others */
};
/* Returns 0; GPUQ_ECONFLICT (it does not wait, or the nices would leave their range),
 * GPUQ_ENOMEM; and then there is nothing for top_done(). */
int top_begin(struct journal *j, struct job_key key, struct top *t, struct gpuq_err *err);
bool top_step(struct journal *j, struct top *t); /* false: that was the last one */
void top_done(struct top *t);

#endif
