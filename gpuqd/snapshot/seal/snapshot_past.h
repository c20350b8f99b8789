/* snapshot_past.h - past losses of jobs, in a snapshot being sealed
 *
 * Touches  memory only.
 * Used by  snapshot_seal.c, snapshot_keep.c.
 */
#ifndef GPUQD_SNAPSHOT_SEAL_SNAPSHOT_PAST_H
#define GPUQD_SNAPSHOT_SEAL_SNAPSHOT_PAST_H

#include "gpuqd/snapshot/snapshot_build.h"

/* Seal the losses: a step of sealing, in snapshot_past.c. */
int snapshot_seal_losses(struct seal *w);
/* Sort them by time, all other handles being in order. */
int snapshot_past_sort(struct seal *w);

#endif
