/* snapshot_sort.h - sorting the tables of a snapshot
 *
 * Touches  memory only.
 * Used by  snapshot_seal.c and the steps of sealing.
 */
#ifndef GPUQD_SNAPSHOT_SEAL_SNAPSHOT_SORT_H
#define GPUQD_SNAPSHOT_SEAL_SNAPSHOT_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/util/sort.h"

/* Sort n items by cmp: their order in *order, and the new position of each in *map. */
int snapshot_seal_sorted(struct seal *w, uint32_t n, sort_cmp_fn cmp, const void *ctx,
			 uint32_t **order, uint32_t **map);
/* Permute a malloc'ed table into that order. table is the address of its pointer. */
int snapshot_seal_permute(struct seal *w, void *table, uint32_t n, size_t size,
			  const uint32_t *order);

#endif
