#include "gpuqd/snapshot/seal/snapshot_sort.h"

#include <stdlib.h>
#include <string.h>

int snapshot_seal_sorted(struct seal *w, uint32_t n, sort_cmp_fn cmp, const void *ctx,
			 uint32_t **order, uint32_t **map)
{
	uint32_t *ix = gpuq_arena_calloc(&w->mem, n, sizeof(*ix));
	uint32_t *to = gpuq_arena_calloc(&w->mem, n, sizeof(*to));

	if (!ix || !to)
		return gpuq_no_memory(w->err);
	for (uint32_t i = 0; i < n; i++)
		ix[i] = i;
	sort_ix(ix, to, n, cmp, ctx);
	for (uint32_t i = 0; i < n; i++)
		to[ix[i]] = i;
	*order = ix;
	*map = to;
	return 0;
}

int snapshot_seal_permute(struct seal *w, void *table, uint32_t n, size_t size,
			  const uint32_t *order)
{
	char **items = table;
	char *moved;
	uint32_t i;

	/* The model's objects are usually in order already: then nothing is moved. */
	for (i = 0; i < n && order[i] == i; i++)
		;
	if (i == n)
		return 0;
	moved = malloc(n * size);
	if (!moved)
		return gpuq_no_memory(w->err);
	for (i = 0; i < n; i++)
		memcpy(moved + i * size, *items + order[i] * size, size);
	free(*items);
	*items = moved;
	return 0;
}
