/* outbox_text.h - a message as the text of a webhook or a mail
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

/* Write the id, "CLUSTER-NUMBER", into 64 bytes: the same at each try, and unique to the
 * message. */
void outbox_id(const char *cluster_id, uint64_t number, char *id);

/* Write msg (state/notify.h) as JSON on one line, as gpuq-json(5) describes it. */
void outbox_json(const struct gpuq_val *msg, const char *id, const char *cluster_id,
		 struct gpuq_buf *out);

/* Write headers and text for a command like sendmail -t. Text from a job cannot begin a header, and
 * is printable ASCII only. from: a checked address. */
void outbox_mail(const struct gpuq_val *msg, const char *id, const char *cluster_id,
		 const char *from, struct gpuq_buf *out);

#endif
