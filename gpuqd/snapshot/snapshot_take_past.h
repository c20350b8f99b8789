/* snapshot_take_past.h - what jobs and queues lost to others of late, for the snapshot
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  snapshot/snapshot_take.c.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_PAST_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_PAST_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"

/* What the functions below stand on. */
struct snap_past {
	const struct model *m;
	int64_t now_us;
	const uint32_t *queue_of; /* handle of a queue, by its ix */
	struct gpuq_arena *mem;
};

/* By queue ix: how often others took what it, or one below it, had beyond its guarantee in
 * the last hour; each claim once, however many left for it. NULL = no memory. */
const uint32_t *snapshot_claims(const struct model *m, int64_t now_us, struct gpuq_arena *mem);

/* Who had to leave for which claim of another queue in the last hour, at most
 * SNAP_LOSSES_MOST. */
#define SNAP_LOSSES_MOST 4096
void snapshot_losses(const struct snap_past *t, struct snapshot *s);

/* When the next job that waits stops avoiding a node; GPUQ_UNLIMITED = none does. */
int64_t snapshot_avoided_end(const struct model *m, int64_t now_us);

/* Everything of that kind that a snapshot says of a job. Nodes have their handles. */
void snapshot_past_fill(const struct snap_past *t, const struct job *j, struct snap_job *sj);

#endif
