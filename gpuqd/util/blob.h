/* blob.h - bytes that never change, once for those who have the same
 *
 * Owns     blocks of bytes, each for as long as somebody has it.
 * Touches  memory only.
 * Used by  state/model, for what many jobs have alike: names, labels, wishes, outlooks.
 *
 * Equal blocks are one where they come close together, as those of jobs do: for each place
 * of a small table the last block that came there is remembered. Equal ones that come far
 * apart may be two, so their addresses say nothing.
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
