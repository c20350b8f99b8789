/* table.h - where things are found by a key: an open table of their addresses
 *
 * Owns     the table; the things, their keys and how those are hashed are the caller's.
 * Touches  memory only.
 * Used by  state/model (jobs, interned strings), state/record/keys.
 *
 * Eight bytes for a thing and little more, where a chained table takes sixty: for things of
 * which there are hundreds of thousands.
 */
#ifndef GPUQD_UTIL_TABLE_H
#define GPUQD_UTIL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slots {
	void **at; /* open addressing; NULL = free */
	uint32_t n, room; /* room: a power of two; 0 = none yet */
};

typedef uint32_t (*slots_hash_fn)(const void *item); /* of its key */

/* Every thing that may be the one with that hash. The body tells, and leaves the loop. */
#define table_each(s, hash, it)                                                                    \
	for (uint32_t it##_at = (s)->room ? (hash) & ((s)->room - 1) : 0;                          \
	     ((it) = (s)->room ? (s)->at[it##_at] : NULL);                                         \
	     it##_at = (it##_at + 1) & ((s)->room - 1))

/* There is none with its key. */
void table_add(struct slots *s, void *item, slots_hash_fn hash);
void table_remove(struct slots *s, const void *item, slots_hash_fn hash); /* it is there */
/* Reserve space for n more entries. */
void table_reserve(struct slots *s, uint32_t n, slots_hash_fn hash);
void table_done(struct slots *s);

#endif
