/* snapshot_take_more.h - settings of a scenario that a site and a job file lack
 *
 * Owns     the struct only.
 * Touches  memory only.
 * Used by  gpuqd/sim (scenarios that begin in states that gpuqd never reaches).
 *
 * Each function sees an object as the model gave it, before it enters the snapshot, and may
 * change it. It adds settings of a file, and decides nothing. Any may be NULL.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_MORE_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_MORE_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/err.h"

struct snapshot_more {
	void (*config)(void *arg, struct snap_config *c);
	/* shares: by flavor, then cpu and memory */
	void (*queue)(void *arg, const struct queue *q, struct snap_queue *sq,
		      struct snap_share *shares, uint32_t n_flavors);
	void (*node)(void *arg, const struct node *n, struct snap_node *sn);
	void (*request)(void *arg, const struct request *r, struct snap_group *groups);
	void (*job)(void *arg, const struct job *j, struct snap_job *sj);
	/* Nodes that do not exist yet may be added. */
	void (*made_up)(void *arg, struct snapshot *s);
	void *arg;
};

/* As snapshot_take(), of m and the additions of more. */
int snapshot_take_with(const struct model *m, int64_t now_us, const struct snapshot_more *more,
		       struct snapshot **out, struct gpuq_err *err);

#endif
