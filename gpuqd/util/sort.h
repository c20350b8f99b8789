/* sort.h - sorting that gives the same answer everywhere
 *
 * Owns     nothing. Touches memory only.
 * Used by  snapshot sealing, order of service.
 *
 * The C library's qsort has been a merge sort, then not, then again, and takes no
 * context; this one is a stable merge sort over indexes, and costs one pass when the
 * input is in order already, which it mostly is.
 */
#ifndef GPUQD_UTIL_SORT_H
#define GPUQD_UTIL_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* < 0, 0, > 0 as x stands before, with or behind y. */
typedef int (*sort_cmp_fn)(const void *ctx, uint32_t x, uint32_t y);

/* Sort ix[0..n); scratch has room for n. */
void sort_ix(uint32_t *ix, uint32_t *scratch, size_t n, sort_cmp_fn cmp, const void *ctx);

/* A number to sort by and what it belongs to. */
struct sort_pair {
	uint64_t key; /* compared first */
	uint32_t ix; /* decides among equals */
};

/* Sort p[0..n) by key, equal ones left as they stand; scratch has room for n. One pass
 * for each byte in which keys differ. */
void sort_pairs(struct sort_pair *p, struct sort_pair *scratch, size_t n);

/* Compare numbers without the overflow of a subtraction. */
static inline int sort_i64(int64_t x, int64_t y)
{
	return (x > y) - (x < y);
}

#endif
