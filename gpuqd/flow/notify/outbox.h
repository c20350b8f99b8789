/* outbox.h - sends the notifications that owners of jobs and the site requested
 *
 * Owns     which message is sent when: one at a time and in order to each receiver, a few at
 *          once in all, with growing pauses after failures, until it is accepted, refused for
 *          good, or too old.
 * Touches  the journal (removes finished messages; what is given up is recorded in the audit),
 *          the store (messages are read from there when their turn comes), net/.
 * Used by  daemon.c; rpc (its statistics).
 *
 * Messages are made by the model (state/notify.h) in the transaction of the event they report,
 * and read from the store only: nothing is reported that could still be lost. After a crash each
 * message that was not removed is sent again, under the same id.
 */
#ifndef GPUQD_FLOW_NOTIFY_OUTBOX_H
#define GPUQD_FLOW_NOTIFY_OUTBOX_H

#include <stdint.h>

#include "libgpuq/err.h"
#include "libgpuq/schema.h"

struct journal;
struct outbox;

struct outbox_hook {
	const char *name, *url;
};

struct outbox_opts {
	struct gpuq_strlist mail_command; /* none = no mail is sent */
	const char *mail_from;
	int64_t mail_timeout_us, webhook_timeout_us;
	const char *proxy; /* for webhooks; NULL none */
	int64_t keep_us; /* messages not delivered for this long are given up */
	const struct outbox_hook *hooks; /* the site's, under the names that the policy uses */
	size_t n_hooks;
	const char *agent;
};

int outbox_new(struct journal *j, const struct outbox_opts *o, struct outbox **out,
	       struct gpuq_err *err);
/* Change the settings; receivers that pause after a failure are tried at once. */
void outbox_set_opts(struct outbox *o, const struct outbox_opts *opts);
void outbox_free(struct outbox *o); /* messages in progress are sent again after the next start */
/* The model was loaded again: forget what is known and read on from the store. */
void outbox_reload(struct outbox *o);

struct outbox_stats {
	uint64_t n_waiting, n_receivers, n_under_way;
	uint64_t n_mails, n_webhooks; /* delivered since the start */
	uint64_t n_failed; /* tries */
	uint64_t n_given_up; /* messages, including those dropped because the outbox was full */
	int64_t oldest_us; /* of the pending ones; 0 = none */
	int64_t failed_us; /* last failure; 0 = never */
	char why[160]; /* its reason */
};
void outbox_stats(const struct outbox *o, struct outbox_stats *out);

#endif
