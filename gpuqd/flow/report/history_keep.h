/* history_keep.h - how long and how many ended jobs are kept
 *
 * Owns     the timer of the search for expired jobs.
 * Touches  the journal (forgets), the store (reads; at start also writes).
 * Used by  daemon.c.
 *
 * The oldest go first, a few at a time, so that the loop is not held up.
 */
#ifndef GPUQD_FLOW_REPORT_HISTORY_KEEP_H
#define GPUQD_FLOW_REPORT_HISTORY_KEEP_H

#include <stdint.h>

#include "libgpuq/err.h"

struct history_keep;
struct journal;
struct store;

/* Make the entries of TABLE_PAST for a database that has none, because it was written before there
 * were any. Blocking, before the loop runs. */
int history_index(struct store *st, struct gpuq_err *err);

/* Limits on ended jobs; 0 = no limit. */
struct history_limits {
	int64_t keep_us; /* jobs that ended this long ago are forgotten */
	int64_t max; /* number of ended jobs */
	int64_t max_bytes; /* of the pages of all jobs, those that have not ended included */
};

int history_keep_new(struct journal *j, const struct history_limits *limits,
		     struct history_keep **out, struct gpuq_err *err);
/* Change them, from the next search on. */
void history_keep_set(struct history_keep *k, const struct history_limits *limits);
void history_keep_free(struct history_keep *k); /* NULL is fine */

#endif
