/* notify.h - what is to be told of a job, and when
 *
 * Owns     who hears of what: the owner's notify, the site's hooks.
 * Touches  memory only: marks a message, which view/notice writes.
 * Used by  state (where a job begins, ends, leaves), view/notice, flow/dispatch (its clock).
 */
#ifndef GPUQD_STATE_NOTIFY_H
#define GPUQD_STATE_NOTIFY_H

#include "gpuqd/state/model.h"

/* Take whom to tell from the job's description; *spec as its owner wrote it. */
void notify_take(struct model *m, const struct job *j, const struct gpuq_spec *spec,
		 struct wish *w);

/* Is there anybody who wants to hear one of these (enum gpuq_notify_on) of this job? */
bool notify_wanted(const struct model *m, const struct job *j, unsigned on);

/* Does a setting (enum gpuq_notify_on, or'ed) ask for one of these of this job? */
bool notify_wants(unsigned on, const struct job *j, unsigned what);

/* It runs; it has ended, in the state that it has; it waits again; what it waits for cannot
 * happen any more. */
void notify_started(struct model *m, struct job *j);
void notify_ended(struct model *m, struct job *j);
void notify_requeued(struct model *m, struct job *j, enum gpuq_cause cause);
void notify_never(struct model *m, struct job *j);
/* The part of its time that has passed and was not told, in percent; 0 = none. */
int notify_time_due(const struct model *m, const struct job *j, int64_t now_us);

#endif
