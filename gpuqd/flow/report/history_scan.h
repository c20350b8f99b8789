/* history_scan.h - search of ended jobs by filters, a piece at a time
 *
 * Owns     the positions of one scan.
 * Touches  the store (reads committed records), the monotonic clock.
 * Used by  rpc methods (history.list, job.list).
 *
 * Newest first, or by the ids in the order in which they were given. The narrowest filter (ids,
 * name, user, queue, state, else all) chooses the entries that are read, so that a list costs what
 * that filter selects, not the size of the history. No read transaction is left open between two
 * pieces: a scan remembers keys, and continues after them.
 */
#ifndef GPUQD_FLOW_REPORT_HISTORY_SCAN_H
#define GPUQD_FLOW_REPORT_HISTORY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"
#include "libgpuq/val.h"

struct history_scan;
struct store;

/* Filters that can narrow a scan; empty lists do not. Borrowed as long as the scan lives. The
 * caller must still compare each job with all its filters. */
struct history_query {
	const struct gpuq_strlist *names, *users, *queues, *states; /* states: long words */
	const struct job_key *ids; /* index -1 = all of the job */
	size_t n_ids;
	int64_t since_us, until_us; /* of the end; until 0 = up to the newest */
};

/* An ended job that is still in memory, to be merged into the order. */
struct history_live {
	int64_t end_us;
	struct job_key key;
};

/* Make a scan in the arena a. live (borrowed, may be NULL) is sorted here: its jobs are reported at
 * their place in the order, and not again from the store. NULL: out of memory. */
struct history_scan *history_scan_new(struct gpuq_arena *a, const struct history_query *q,
				      struct history_live *live, size_t n_live);

enum {
	HISTORY_NEXT, /* taken */
	HISTORY_LATER, /* not taken: to be passed again in the next piece */
	HISTORY_ENOUGH, /* no more is wanted */
};
/* job is NULL for one of the live ones. It lives until this returns. */
typedef int (*history_fn)(void *arg, struct job_key key, const struct gpuq_val *job);

/* False while the check at the start has not come to the tables that it reads: then it would wait
 * for them. */
bool history_scan_may_read(struct store *st);

/* Process the next piece, for at most budget_us. Returns 1 when there is more, 0 at the end, a
 * negative code when the store fails. */
int history_scan_run(struct store *st, struct history_scan *s, int64_t budget_us, history_fn fn,
		     void *arg, struct gpuq_err *err);

#endif
