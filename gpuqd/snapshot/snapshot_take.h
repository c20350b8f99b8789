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
/* The queues and what their users have used, without nodes and jobs. */
int snapshot_take_usage(const struct model *m, int64_t now_us, struct snapshot **out,
			struct gpuq_err *err);

#endif
