/* notice.h - what is to be told of a job, written down with what it tells
 *
 * Owns     who hears of what (the owner's notify, the site's hooks), and the form of a
 *          message in TABLE_OUTBOX.
 * Touches  memory only.
 * Used by  core/model (where a job begins, ends, leaves), flow/dispatch (its clock),
 *          flow/outbox (which delivers and then removes them).
 *
 * A message is a map: time (us), event (a word of libgpuq/notify.h), to ("mail", "webhook" or
 * "site"), address (of the mail; the URL; the name of the site's hook), cause (of a requeue),
 * job (as view_job has it, without pods, reasons and the like, and with nodes). Its number
 * is its name for ever: never given to another, and kept over restarts.
 */
#ifndef GPUQD_CORE_NOTICE_H
#define GPUQD_CORE_NOTICE_H

#include "gpuqd/core/model.h"

/* Take whom to tell from the job's description; *spec as its owner wrote it. */
void notice_take(struct model *m, const struct job *j, const struct gpuq_spec *spec,
		 struct wish *w);

/* Is there anybody who wants to hear one of these (enum gpuq_notify_on) of this job? */
bool notice_wanted(const struct model *m, const struct job *j, unsigned on);

/* It runs; it has ended, in the state that it has; it waits again; what it waits for cannot
 * happen any more. */
void notice_started(struct model *m, struct job *j);
void notice_ended(struct model *m, struct job *j);
void notice_requeued(struct model *m, struct job *j, enum gpuq_cause cause);
void notice_never(struct model *m, struct job *j);
/* The part of its time that has passed and was not told, in percent; 0 = none. */
int notice_time_due(const struct model *m, const struct job *j, int64_t now_us);

#endif
