/* snapshot_take_caps.h - the limits of qos, users and groups as caps of a snapshot
 *
 * Owns     the caps while a snapshot is taken: one for each qos, user, group, user of a qos
 *          and user of a queue that is limited and has a job.
 * Touches  memory only.
 * Used by  snapshot/snapshot_take.c.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_CAPS_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_CAPS_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"

struct snap_caps;

/* Return the caps, which live in mem. NULL: no memory. */
struct snap_caps *snapshot_caps_new(const struct model *m, struct snapshot *s, int64_t now_us,
				    struct gpuq_arena *mem);
void snapshot_caps_done(struct snap_caps *c);

/* Fill in the caps that a job of that queue, user and qos counts against, and whether a soft budget
 * of its user is exhausted: then the job ranks behind all others of its queue. */
void snapshot_caps_fill(struct snap_caps *c, const struct queue *q, const char *user,
			const char *qos, struct snap_job *out);

#endif
