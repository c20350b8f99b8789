/* snapshot_devices.h - devices of a snapshot being sealed: shares, MIG instances, countable resources
 *
 * Touches  memory only.
 * Used by  snapshot_jobs.c, snapshot_seal.c.
 */
#ifndef GPUQD_SNAPSHOT_SEAL_SNAPSHOT_DEVICES_H
#define GPUQD_SNAPSHOT_SEAL_SNAPSHOT_DEVICES_H

#include "gpuqd/snapshot/snapshot_build.h"

/* snapshot_devices.c: a step of sealing; then marking all countable resources free; the memory that an alloc
 * takes of its devices, where its job requested some; and what a node's MIG instances count as
 * capacity, and by how much that is more than their cards. */
int snapshot_seal_devices(struct seal *w);
void snapshot_seal_extras(struct snapshot *s);
void snapshot_seal_share(const struct snapshot *s, struct snap_alloc *a);
int64_t snapshot_seal_mig_capacity(const struct snapshot *s, uint32_t node, int64_t *rounded);

#endif
