/* snapshot_take_usage.h - usage, as a cycle sees it
 *
 * Owns     nothing. Touches memory only.
 * Used by  snapshot_take.c and snapshot_take_caps.c.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_USAGE_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_USAGE_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"

/* Usage of one queue, including the queues below it. */
struct queue_usage {
	usage_q32 used; /* as it decays */
	int64_t cluster_milli; /* devices that usage is measured against */
	struct spent spent; /* of its budget */
};

/* Return the usage by queue ix, in mem; NULL: no memory. */
struct queue_usage *snapshot_queue_usage(const struct model *m, int64_t now_us,
					 struct gpuq_arena *mem);

/* Fill in the fields of a queue about usage and budget; in c, when they will have changed. */
void snapshot_fill_usage(const struct model *m, const struct queue *q, const struct queue_usage *u,
			 struct snap_config *c, struct snap_queue *out);

/* Note that time alone changes a budget by then. */
void snapshot_wake(struct snap_config *c, int64_t at_us);

/* Add the users' accounts; queue_of: handles by queue ix. */
void snapshot_add_usages(const struct model *m, int64_t now_us, const uint32_t *queue_of,
			 struct snapshot *s);

/* Set the weights and factors of jobs' priority. */
void snapshot_set_policy(const struct model *m, struct snap_config *c);

#endif
