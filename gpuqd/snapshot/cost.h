/* cost.h - what quotas count for shares of devices and for MIG instances
 *
 * Owns     the table of MIG profiles whose devices are not cut into sevenths.
 * Touches  memory only.
 * Used by  snapshot sealing, holdings.c.
 */
#ifndef GPUQD_SNAPSHOT_COST_H
#define GPUQD_SNAPSHOT_COST_H

#include "gpuqd/snapshot/snapshot.h"

/* Thousandths of a device that one instance of a MIG profile counts: its compute slices
 * of seven (four on devices that have four), rounded up; 1000 for a name that is no
 * profile. */
int64_t cost_of_profile(const char *profile);

/* Thousandths of devices that one pod of the group counts on a flavor (SNAP_NONE: at most,
 * over all flavors). */
int64_t cost_of_pod(const struct snapshot *s, const struct snap_group *g, uint32_t flavor);

/* The same for the minimum of all groups of a request. */
int64_t cost_of_request(const struct snapshot *s, const struct snap_request *r, uint32_t flavor);

/* What a pod that holds something counts: what it holds, where that is known. */
int64_t cost_of_alloc(const struct snapshot *s, const struct snap_alloc *a);

/* The flavor that n pods of one job are charged to: that of their devices. A pod without
 * any may stand beside others. SNAP_NONE = none of them has devices. */
uint32_t cost_flavor(const struct snapshot *s, const struct snap_alloc *pods, uint32_t n);

/* Work that the end of pods of a job would undo, in device-milliseconds: since its last
 * checkpoint or its start, and what a start takes. gpus_milli: that they have. */
int64_t cost_of_loss(const struct snapshot *s, const struct snap_job *j, int64_t gpus_milli);

#endif
