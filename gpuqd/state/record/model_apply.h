/* model_apply.h - the model's door: events in, records out
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  flow/journal, flow/advise (on copies), the daemon at its start, tests.
 *
 * model_apply() is the only writer of a model. What it changes is marked (model_int.h), and
 * what would not be known any more when records are made is written down at once: the log of
 * jobs, messages, charges, and the history of jobs that leave.
 */
#ifndef GPUQD_STATE_RECORD_MODEL_APPLY_H
#define GPUQD_STATE_RECORD_MODEL_APPLY_H

#include "gpuqd/state/model.h"

/* Apply one event. Returns 0; GPUQ_EINVAL (it cannot happen in this state),
 * GPUQ_ENOENT (no such object), and then nothing has changed; GPUQ_ENOMEM must end
 * the process. */
int model_apply(struct model *m, const struct event *ev, struct gpuq_err *err);

/* Append what changed since the last call to out and forget it. */
void model_collect(struct model *m, struct batch *out);

#endif
