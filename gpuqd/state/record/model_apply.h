/* model_apply.h - the entry to the model: events in, records out
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  flow/journal, flow/advise (on copies), the daemon at its start, tests.
 *
 * model_apply() is the only writer of a model. Changes are marked (model_int.h), and
 * anything that would be lost by the time records are made is written at once: the log of
 * jobs, messages, charges, and the history of jobs that leave.
 */
#ifndef GPUQD_STATE_RECORD_MODEL_APPLY_H
#define GPUQD_STATE_RECORD_MODEL_APPLY_H

#include "gpuqd/state/model.h"

/* Apply one event. Return 0; GPUQ_EINVAL (not applicable in this state), GPUQ_ENOENT (no such
 * object), and then nothing has changed; GPUQ_ENOMEM must end the process. */
int model_apply(struct model *m, const struct event *ev, struct gpuq_err *err);

/* The same for a model that is never stored: no log of jobs, no messages and no history are written,
 * which take most of the time of a replay. */
int model_apply_unrecorded(struct model *m, const struct event *ev, struct gpuq_err *err);

/* Append the changes since the last call to out and forget them. The changes of the call
 * before must be durable by now. */
void model_collect(struct model *m, struct batch *out);

/* True if the job left memory so recently that its record of history may not be durable: how it
 * ended. */
bool model_departed(const struct model *m, struct job_key key, enum gpuq_job_state *state);

#endif
