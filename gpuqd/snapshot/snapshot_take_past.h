/* snapshot_take_past.h - recent preemptions of jobs and queues, for the snapshot
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  snapshot/snapshot_take.c.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_PAST_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_PAST_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"

/* Inputs of the functions below. */
struct snap_past {
	const struct model *m;
	int64_t now_us;
	const uint32_t *queue_of; /* handle of a queue, by its ix */
	struct gpuq_arena *mem;
	/* Nodes whose kubelets refused a resource, and have not been seen to serve it since. */
	const struct node *const *doubtful;
	uint32_t n_doubtful;
};

/* Count, by queue ix, how often others reclaimed what the queue, or one below it, had beyond its
 * guarantee in the last hour; each claim once, however many victims it had. NULL = no memory. */
const uint32_t *snapshot_claims(const struct model *m, int64_t now_us, struct gpuq_arena *mem);

/* Add the jobs preempted for claims of other queues in the last hour, at most SNAP_LOSSES_MOST. */
#define SNAP_LOSSES_MOST 4096
void snapshot_losses(const struct snap_past *t, struct snapshot *s);

/* Return when the next pending job stops avoiding a node; GPUQ_UNLIMITED = never. */
int64_t snapshot_avoided_end(const struct model *m, int64_t now_us);

/* Fill in all past losses that a snapshot has of a job. Nodes have their handles. */
void snapshot_past_fill(const struct snap_past *t, const struct job *j, struct snap_job *sj);

#endif
