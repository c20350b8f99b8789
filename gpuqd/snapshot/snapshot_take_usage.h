/* snapshot_take_usage.h - what was used, as a cycle is told of it
 *
 * Owns     nothing. Touches memory only.
 * Used by  snapshot_take.c and snapshot_take_caps.c.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_USAGE_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_USAGE_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"

/* Of one queue, what it has below it included. */
struct queue_usage {
	usage_q32 used; /* as it fades */
	int64_t cluster_milli; /* devices that use is measured by */
	struct spent spent; /* of its budget */
};

/* By queue ix, in mem; NULL when there is no memory. */
struct queue_usage *snapshot_queue_usage(const struct model *m, int64_t now_us,
					 struct gpuq_arena *mem);

/* The fields of a queue that speak of usage and budget; in c, when they will have changed. */
void snapshot_fill_usage(const struct model *m, const struct queue *q, const struct queue_usage *u,
			 struct snap_config *c, struct snap_queue *out);

/* By then time alone has changed what is said of a budget. */
void snapshot_wake(struct snap_config *c, int64_t at_us);

/* Users' accounts; queue_of: handles by queue ix. */
void snapshot_add_usages(const struct model *m, int64_t now_us, const uint32_t *queue_of,
			 struct snapshot *s);

/* What jobs' places in their lines are made of. */
void snapshot_set_policy(const struct model *m, struct snap_config *c);

#endif
