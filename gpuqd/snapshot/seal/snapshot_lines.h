/* snapshot_lines.h - the pending jobs of a snapshot in queue order, as runs of like jobs
 *
 * Touches  memory only.
 * Used by  snapshot_seal.c, sched/estimate, sim/trace.
 */
#ifndef GPUQD_SNAPSHOT_SEAL_SNAPSHOT_LINES_H
#define GPUQD_SNAPSHOT_SEAL_SNAPSHOT_LINES_H

#include "gpuqd/snapshot/snapshot.h"

struct seal;

/* Rebuild the lines after jobs of a sealed snapshot were changed (estimate.c alone does that, to a
 * copy). Their tables are reused; new ones live in mem. False: no memory. */
bool snapshot_line_up(struct snapshot *s, struct gpuq_arena *mem);

int snapshot_seal_lines(struct seal *w); /* a step of sealing */

#endif
