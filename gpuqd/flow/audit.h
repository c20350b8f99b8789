/* audit.h - record of changes: by which user, when, from what to what
 *
 * Owns     the form of a record, and how long records are kept.
 * Touches  the journal (writes, in the transaction of the change itself), the store (reads).
 * Used by  flow/admit/apply (site objects), rpc methods (acts on others' jobs, drains; audit.list),
 *          daemon.c (audit_trim, now and then).
 *
 * A record is a map: time (us), who, action ("site.changed", "job.cancel", "node.drain"...),
 * object ("queue/research", "job/17_3", "node/n1"), old and new (any value, null = did not or
 * does not exist), note (the reason, if given), and for jobs and queues owner and queue, which
 * decide the users that can see it. Members without a value are left out.
 */
#ifndef GPUQD_FLOW_AUDIT_H
#define GPUQD_FLOW_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct journal;
struct store;

struct audit_note {
	const char *who, *action;
	const char *kind, *name; /* "queue", "research" */
	const char *owner, *queue, *note; /* NULL = none */
	const struct gpuq_val *before, *after; /* NULL = none */
};

/* Record a change, in one transaction with all that is applied in this turn. Returns 0,
 * GPUQ_ENOMEM, GPUQ_ESTORAGE. */
int audit_add(struct journal *j, const struct audit_note *n, struct gpuq_err *err);

/* Read committed records from since_us until until_us (0 = no bound), oldest first, or newest first
 * with backwards. `from` is the key to continue from (AUDIT_KEY_BYTES, NULL = the first). At most
 * max at once (0 = all). A non-zero result of fn stops and is returned; the record lives until fn
 * returns. */
typedef int (*audit_fn)(void *arg, const unsigned char *key, const struct gpuq_val *record);
int audit_each(struct store *st, int64_t since_us, int64_t until_us, const unsigned char *from,
	       bool backwards, size_t max, audit_fn fn, void *arg, struct gpuq_err *err);

/* Drop the oldest records beyond GPUQ_AUDIT_KEEP_S and GPUQ_AUDIT_MAX, a bounded number of
 * them at a time. Returns how many were dropped. */
size_t audit_trim(struct journal *j, int64_t now_us);

#endif
