/* blob.h - immutable bytes, stored once for all holders of equal ones
 *
 * Owns     blocks of bytes, each for as long as it is referenced.
 * Touches  memory only.
 * Used by  state/model, for values that many jobs share: names, labels, requests, estimates.
 *
 * Equal blocks are merged when they arrive close together, as those of jobs do: each slot
 * of a small table remembers the last block. Equal ones that arrive far apart may be two,
 * so their addresses prove nothing.
 */
#ifndef GPUQD_UTIL_BLOB_H
#define GPUQD_UTIL_BLOB_H

#include <stddef.h>

struct shared_block;

struct shared {
	struct shared_block **last; /* NULL before the first */
};

/* A block of these bytes, aligned for any of them. One that has it more: blob_put(). */
const void *blob_get(struct shared *s, const void *bytes, size_t n);
const void *blob_more(const void *block); /* the same block, for one more */
void blob_put(struct shared *s, const void *block); /* NULL is fine */
void blob_done(struct shared *s); /* all have been put */

#endif
