/* notice.h - messages about jobs, as stored in TABLE_OUTBOX
 *
 * Owns     the form of a message.
 * Touches  memory only.
 * Used by  state/record/model_apply (writes), flow/notify/outbox (delivers, then removes them).
 *
 * A message is a map: time (us), event (a word of libgpuq/notify.h), to ("mail", "webhook" or
 * "site"), address (of the mail; the URL; the name of the site's hook), cause (of a requeue),
 * job (as view_job has it, without pods, reasons and the like, and with nodes). Its number
 * is permanent: never reused, and kept over restarts.
 */
#ifndef GPUQD_STATE_VIEW_NOTICE_H
#define GPUQD_STATE_VIEW_NOTICE_H

#include "gpuqd/state/model.h"

/* Write a message to each address that requested it; what: enum gpuq_notify_on. */
void notice_write(struct model *m, const struct job *j, unsigned what, enum gpuq_cause cause);

#endif
