/* snapshot_seal.h - the tables of a snapshot, put in order
 *
 * Touches  memory only.
 * Used by  snapshot_*.c.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_SEAL_H
#define GPUQD_SNAPSHOT_SNAPSHOT_SEAL_H

#include "gpuqd/snapshot/snapshot_build.h"

/* The order of n items under cmp in *order, and where each went in *map. */
int snapshot_seal_sorted(struct seal *w, uint32_t n, sort_cmp_fn cmp, const void *ctx,
			 uint32_t **order, uint32_t **map);

/* Bring a malloc'ed table into that order. table is the address of its pointer. */
int snapshot_seal_permute(struct seal *w, void *table, uint32_t n, size_t size,
			  const uint32_t *order);
int snapshot_seal_calendar(struct seal *w);

#endif
