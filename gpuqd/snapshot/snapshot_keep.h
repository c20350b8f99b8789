/* snapshot_keep.h - a snapshot that is kept from one cycle to the next
 *
 * Owns     the sealed snapshot, and the entries of jobs that have not changed since.
 * Touches  memory only.
 * Used by  sim/trace, which runs hundreds of thousands of cycles.
 *
 * It is the snapshot that snapshot_take() would give, of the pending jobs that the caller chooses,
 * and costs what has changed: nodes, queues and requests are taken once, and a job when it is new or
 * an event has changed it. When the site, a node, or the set of requests and of users with usage
 * changes, all is taken anew.
 *
 * For replays: jobs are no arrays, and the site limits neither users nor classes of jobs. There is
 * one such snapshot of a model, and no other is taken beside it.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_KEEP_H
#define GPUQD_SNAPSHOT_SNAPSHOT_KEEP_H

#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/model.h"
#include "libgpuq/err.h"

struct snapshot_keep;

/* A pending job that is to have an entry. */
struct keep_pending {
	uint32_t id; /* of the job */
	uint32_t n_rest; /* the entry stands for this many jobs, like an array; 0 = for this one */
};

/* Return NULL without memory. m outlives it. */
struct snapshot_keep *snapshot_keep_new(const struct model *m);
void snapshot_keep_free(struct snapshot_keep *k); /* NULL is fine */

/* Note that an event changed the job, began or ended it. False: no memory. */
bool snapshot_keep_changed(struct snapshot_keep *k, uint32_t id);

/* Bring the snapshot up to date: all jobs that hold devices, and these pending ones, by ascending
 * id. *out belongs to k and holds until the next call. */
int snapshot_keep_take(struct snapshot_keep *k, int64_t now_us, const struct keep_pending *pending,
		       uint32_t n_pending, struct snapshot **out, struct gpuq_err *err);

#endif
