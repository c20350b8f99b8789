/* snapshot_take.h - the model as a snapshot
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  flow/schedule, flow/advise/whatif, flow/advise/estimate, rpc methods.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/err.h"

/* Take a sealed snapshot of the model; free with snapshot_free(). packed: the bytes of the snapshot
 * (snapshot_pack.h) are appended there; NULL = nowhere. out may be NULL where the bytes are enough.
 * Pure. */
int snapshot_take_packed(const struct model *m, int64_t now_us, struct gpuq_buf *packed,
			 struct snapshot **out, struct gpuq_err *err);
int snapshot_take(const struct model *m, int64_t now_us, struct snapshot **out,
		  struct gpuq_err *err);
/* The same, but only the first `most` of equivalent pending jobs have entries of their own; all
 * others share one, like the elements of an array (snap_job.alike). A plan made on it is the one
 * that would be made on the whole as long as it decides nothing about such an entry: then all jobs
 * behind it are pending for the same reason as the last one before it (plan_few_enough). */
int snapshot_take_few(const struct model *m, int64_t now_us, uint32_t most, struct gpuq_buf *packed,
		      struct snapshot **out, struct gpuq_err *err);
/* Most of a snapshot of very different jobs is their requests, which do not change while they are
 * pending: they can be put into the snapshot before it is taken, some of them in each turn.
 * Requests that come or go meanwhile are handled when it is taken. It must be dropped when the site
 * changes, or the model is replaced. */
struct snapshot_early;
/* NULL: not worth it, or no memory. */
struct snapshot_early *snapshot_early_begin(const struct model *m);
bool snapshot_early_go_on(struct snapshot_early *e, uint32_t most); /* true = that was all */
void snapshot_early_drop(struct snapshot_early *e); /* NULL is fine */
/* As snapshot_take_few(), with the requests added early (NULL = none); drops e. The remaining steps
 * of sealing are left to the caller: snapshot_seal_step(). */
int snapshot_take_late(struct snapshot_early *e, const struct model *m, int64_t now_us,
		       uint32_t most, struct gpuq_buf *packed, struct snapshot **out,
		       struct gpuq_err *err);
/* Take the queues and the usage of their users, without nodes and jobs. */
int snapshot_take_usage(const struct model *m, int64_t now_us, struct snapshot **out,
			struct gpuq_err *err);

#endif
