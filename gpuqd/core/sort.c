#include "gpuqd/core/sort.h"

#include <string.h>

static bool in_order(const uint32_t *ix, size_t n, sort_cmp_fn cmp, const void *ctx)
{
	for (size_t i = 1; i < n; i++)
		if (cmp(ctx, ix[i - 1], ix[i]) > 0)
			return false;
	return true;
}

static void merge(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, uint32_t *out,
		  sort_cmp_fn cmp, const void *ctx)
{
	size_t i = 0, j = 0, k = 0;

	while (i < na && j < nb)
		out[k++] = cmp(ctx, a[i], b[j]) <= 0 ? a[i++] : b[j++];
	while (i < na)
		out[k++] = a[i++];
	while (j < nb)
		out[k++] = b[j++];
}

void sort_ix(uint32_t *ix, uint32_t *scratch, size_t n, sort_cmp_fn cmp, const void *ctx)
{
	uint32_t *from = ix, *to = scratch;

	if (in_order(ix, n, cmp, ctx))
		return;
	for (size_t width = 1; width < n; width *= 2) {
		uint32_t *swap;

		for (size_t at = 0; at < n; at += 2 * width) {
			size_t na = n - at < width ? n - at : width;
			size_t nb = n - at - na < width ? n - at - na : width;

			merge(from + at, na, from + at + na, nb, to + at, cmp, ctx);
		}
		swap = from;
		from = to;
		to = swap;
	}
	if (from != ix)
		memcpy(ix, from, n * sizeof(*ix));
}
