/* outbox.h - what jobs' owners and the site asked to be told leaves the house
 *
 * Owns     which message goes when: one at a time and in order to each receiver, a few at
 *          once in all, with growing pauses after failures, until it is taken, refused for
 *          good, or too old.
 * Touches  the journal (removes what is done; the audit hears of what is given up), the
 *          store (messages are read from there when their turn comes), net/.
 * Used by  daemon.c; rpc (its figures).
 *
 * Messages are made by the model (state/notify.h) in the transaction of what they tell, and
 * read from the store only: nothing is told that could still be forgotten. After a crash
 * whatever was not removed is told again, under the same id.
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
	int64_t keep_us; /* what could not be delivered for so long is given up */
	const struct outbox_hook *hooks; /* of the site, by the names of the policy's */
	size_t n_hooks;
	const char *agent;
};

int outbox_new(struct journal *j, const struct outbox_opts *o, struct outbox **out,
	       struct gpuq_err *err);
/* Other settings from now on; who is waiting for a better time is tried at once. */
void outbox_set_opts(struct outbox *o, const struct outbox_opts *opts);
void outbox_free(struct outbox *o); /* what is under way is told again after the next start */
/* The model was loaded anew: forget what is known and read on from the store. */
void outbox_reload(struct outbox *o);

struct outbox_stats {
	uint64_t n_waiting, n_receivers, n_under_way;
	uint64_t n_mails, n_webhooks; /* that were taken, since the start */
	uint64_t n_failed; /* tries */
	uint64_t n_given_up; /* messages, those that found no room included */
	int64_t oldest_us; /* of those that wait; 0 = none */
	int64_t failed_us; /* the last time; 0 = never */
	char why[160]; /* of that */
};
void outbox_stats(const struct outbox *o, struct outbox_stats *out);

#endif
