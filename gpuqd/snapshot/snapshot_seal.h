/* snapshot_seal.h - sorting the tables of a snapshot
 *
 * Touches  memory only.
 * Used by  snapshot_*.c.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_SEAL_H
#define GPUQD_SNAPSHOT_SNAPSHOT_SEAL_H

#include "gpuqd/snapshot/snapshot_build.h"

/* Sort n items by cmp: their order in *order, and the new position of each in *map. */
int snapshot_seal_sorted(struct seal *w, uint32_t n, sort_cmp_fn cmp, const void *ctx,
			 uint32_t **order, uint32_t **map);

/* Permute a malloc'ed table into that order. table is the address of its pointer. */
int snapshot_seal_permute(struct seal *w, void *table, uint32_t n, size_t size,
			  const uint32_t *order);
int snapshot_seal_calendar(struct seal *w);

#endif
