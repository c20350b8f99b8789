#include "gpuqd/util/sort.h"

#include <string.h>

/* True if nothing is to be done: tables are mostly sorted when they come. */
static bool in_order(const uint32_t *ix, size_t n, sort_cmp_fn cmp, const void *ctx)
{
	for (size_t i = 1; i < n; i++)
		if (cmp(ctx, ix[i - 1], ix[i]) > 0)
			return false;
	return true;
}

/* Merge two sorted runs; of equals those of the first come first, which makes the sort stable. */
static void merge(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, uint32_t *out,
		  sort_cmp_fn cmp, const void *ctx)
{
	size_t i = 0, j = 0, k = 0;

	/* Runs that are in order stay as they are, for one comparison. */
	if (na > 0 && nb > 0 && cmp(ctx, a[na - 1], b[0]) <= 0) {
		memcpy(out, a, na * sizeof(*out));
		memcpy(out + na, b, nb * sizeof(*out));
		return;
	}
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

void sort_pairs(struct sort_pair *p, struct sort_pair *scratch, size_t n)
{
	struct sort_pair *from = p, *to = scratch;
	uint64_t differ = 0;
	bool ordered = true;

	for (size_t i = 1; i < n; i++) {
		differ |= p[i].key ^ p[0].key;
		ordered &= p[i - 1].key <= p[i].key;
	}
	for (unsigned shift = 0; !ordered && shift < 64; shift += 8) {
		size_t count[256] = { 0 }, at = 0;
		struct sort_pair *swap;

		if ((differ >> shift & 0xff) == 0)
			continue;
		for (size_t i = 0; i < n; i++)
			count[from[i].key >> shift & 0xff]++;
		for (unsigned d = 0; d < 256; d++) {
			const size_t here = count[d];

			count[d] = at;
			at += here;
		}
		for (size_t i = 0; i < n; i++)
			to[count[from[i].key >> shift & 0xff]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	if (from != p)
		memcpy(p, from, n * sizeof(*p));
}
