/* outbox_text.h - a message as a webhook and as a mail get it
 *
 * Owns     both forms. Touches memory only.
 * Used by  outbox.c.
 */
#ifndef GPUQD_FLOW_NOTIFY_OUTBOX_TEXT_H
#define GPUQD_FLOW_NOTIFY_OUTBOX_TEXT_H

#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/val.h"

/* id: 64 bytes, "CLUSTER-NUMBER": the same at each try, and of no other message. */
void outbox_id(const char *cluster_id, uint64_t number, char *id);

/* msg as state/notify.h has it. JSON as gpuq-json(5) describes it, on one line. */
void outbox_json(const struct gpuq_val *msg, const char *id, const char *cluster_id,
		 struct gpuq_buf *out);

/* Headers and text, for a command like sendmail -t. Nothing that a job carries can begin a
 * header, or is anything but printable ASCII. from: a checked address. */
void outbox_mail(const struct gpuq_val *msg, const char *id, const char *cluster_id,
		 const char *from, struct gpuq_buf *out);

#endif
