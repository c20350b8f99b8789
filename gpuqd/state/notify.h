/* notify.h - what is to be told of a job, written down with what it tells
 *
 * Owns     who hears of what (the owner's notify, the site's hooks), and the form of a
 *          message in TABLE_OUTBOX.
 * Touches  memory only.
 * Used by  state/model (where a job begins, ends, leaves), flow/dispatch (its clock),
 *          flow/notify/outbox (which delivers and then removes them).
 *
 * A message is a map: time (us), event (a word of libgpuq/notify.h), to ("mail", "webhook" or
 * "site"), address (of the mail; the URL; the name of the site's hook), cause (of a requeue),
 * job (as view_job has it, without pods, reasons and the like, and with nodes). Its number
 * is its name for ever: never given to another, and kept over restarts.
 */
#ifndef GPUQD_STATE_NOTIFY_H
#define GPUQD_STATE_NOTIFY_H

#include "gpuqd/state/model.h"

/* Take whom to tell from the job's description; *spec as its owner wrote it. */
void notify_take(struct model *m, const struct job *j, const struct gpuq_spec *spec,
		 struct wish *w);

/* Is there anybody who wants to hear one of these (enum gpuq_notify_on) of this job? */
bool notify_wanted(const struct model *m, const struct job *j, unsigned on);

/* It runs; it has ended, in the state that it has; it waits again; what it waits for cannot
 * happen any more. */
void notify_started(struct model *m, struct job *j);
void notify_ended(struct model *m, struct job *j);
void notify_requeued(struct model *m, struct job *j, enum gpuq_cause cause);
void notify_never(struct model *m, struct job *j);
/* The part of its time that has passed and was not told, in percent; 0 = none. */
int notify_time_due(const struct model *m, const struct job *j, int64_t now_us);

#endif
