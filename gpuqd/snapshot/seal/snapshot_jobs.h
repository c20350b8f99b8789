/* snapshot_jobs.h - requests, jobs and what they hold, in a snapshot being sealed
 *
 * Touches  memory only.
 * Used by  snapshot_seal.c, sched/estimate, sim/trace.
 */
#ifndef GPUQD_SNAPSHOT_SEAL_SNAPSHOT_JOBS_H
#define GPUQD_SNAPSHOT_SEAL_SNAPSHOT_JOBS_H

#include "gpuqd/snapshot/snapshot_build.h"

/* Seal requests, jobs and usage: steps of snapshot_jobs.c and snapshot_usage.c, in this order. */
int snapshot_seal_requests(struct seal *w);
int snapshot_seal_jobs(struct seal *w);
int snapshot_seal_allocs(struct seal *w);
int snapshot_seal_capacity(struct seal *w);

/* Derive the free capacity of nodes and devices from allocatable and held. */
void snapshot_derive_free(struct snapshot *s);

#endif
