/* block.h - an object and all that it points to in one block of memory
 *
 * Owns     struct block.
 * Touches  memory only.
 * Used by  requests (state/record), objects of the cluster (state/objects).
 *
 * The same code runs twice over a block: without memory it adds up how much is needed, with memory it
 * copies. So a block is as large as what it holds, and one free() gives all of it back.
 */
#ifndef GPUQD_UTIL_BLOCK_H
#define GPUQD_UTIL_BLOCK_H

#include <stddef.h>
#include <string.h>

/* The next free place in a block; at NULL: nothing is written, sizes are added up. */
struct block {
	unsigned char *at; /* NULL in the pass that only counts */
	size_t n; /* bytes so far; always a multiple of 8 */
};

/* Take n bytes and copy them from `from`, unless that is NULL. Return their place; NULL while sizes
 * are added up. */
static inline void *block_take(struct block *b, const void *from, size_t n)
{
	void *to = b->at ? b->at + b->n : NULL;

	if (to && from)
		memcpy(to, from, n);
	b->n += (n + 7) & ~(size_t)7;
	return to;
}

/* Take a copy of a string; of NULL it is NULL. */
static inline const char *block_take_str(struct block *b, const char *s)
{
	return s ? block_take(b, s, strlen(s) + 1) : NULL;
}

#endif
