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

/* The model as a sealed snapshot; free with snapshot_free(). packed: what was sealed is
 * appended there (snapshot_pack.h); NULL = nowhere. out may be NULL where that is enough. Pure. */
int snapshot_take_packed(const struct model *m, int64_t now_us, struct gpuq_buf *packed,
			 struct snapshot **out, struct gpuq_err *err);
int snapshot_take(const struct model *m, int64_t now_us, struct snapshot **out,
		  struct gpuq_err *err);
/* The same, but of waiting jobs that are alike the first `most` stand by themselves and all
 * others in one entry, like the elements of an array (snap_job.alike). A plan made on it is
 * the one that would be made on the whole as long as nothing is decided about such an entry:
 * then all those behind it wait for what the last one before it waits for (plan_few_enough). */
int snapshot_take_few(const struct model *m, int64_t now_us, uint32_t most, struct gpuq_buf *packed,
		      struct snapshot **out, struct gpuq_err *err);
/* Most of a snapshot of very different jobs is what they ask for, which stays as it is while
 * they wait: it can be put into the snapshot before that is taken, some of it in each turn. What
 * comes or goes meanwhile is made up for then. It must be dropped when the site changes, or the
 * model is replaced. */
struct snapshot_early;
/* NULL: not worth it, or no memory. */
struct snapshot_early *snapshot_early_begin(const struct model *m);
bool snapshot_early_go_on(struct snapshot_early *e, uint32_t most); /* true = that was all */
void snapshot_early_drop(struct snapshot_early *e); /* NULL is fine */
/* As snapshot_take_few(), with what was done early (NULL = nothing); drops that. What is still to
 * be sealed is left to the caller: snapshot_seal_step(). */
int snapshot_take_late(struct snapshot_early *e, const struct model *m, int64_t now_us,
		       uint32_t most, struct gpuq_buf *packed, struct snapshot **out,
		       struct gpuq_err *err);
/* The queues and what their users have used, without nodes and jobs. */
int snapshot_take_usage(const struct model *m, int64_t now_us, struct snapshot **out,
			struct gpuq_err *err);

#endif
