/* notify.h - which events of a job are reported, and when
 *
 * Owns     the recipients: the owner's notify, the site's hooks.
 * Touches  memory only: marks a message, which view/notice writes.
 * Used by  state (where a job begins, ends, is requeued), view/notice, flow/dispatch (its clock).
 */
#ifndef GPUQD_STATE_NOTIFY_H
#define GPUQD_STATE_NOTIFY_H

#include "gpuqd/state/model.h"

/* Take the recipients from the job's description; *spec as its owner wrote it. */
void notify_take(struct model *m, const struct job *j, const struct gpuq_spec *spec,
		 struct wish *w);

/* True if any recipient requested one of these events (enum gpuq_notify_on) of this job. */
bool notify_wanted(const struct model *m, const struct job *j, unsigned on);

/* True if a setting (enum gpuq_notify_on, or'ed) includes one of these events of this job. */
bool notify_wants(unsigned on, const struct job *j, unsigned what);

/* Report that it runs; has ended, in its present state; is pending again; has a dependency that can
 * never be met. */
void notify_started(struct model *m, struct job *j);
void notify_ended(struct model *m, struct job *j);
void notify_requeued(struct model *m, struct job *j, enum gpuq_cause cause);
/* The cluster refuses it and others like it; only hooks of the site are told. */
void notify_refused(struct model *m, struct job *j);
/* Report that the nodes which were requested for it are there, or were requested for the last time in vain. */
void notify_provision(struct model *m, struct job_key owner, bool failed);
void notify_never(struct model *m, struct job *j);
/* Return the part of its time that has passed and was not reported, in percent; 0 = none. */
int notify_time_due(const struct model *m, const struct job *j, int64_t now_us);

#endif
