/* arena.h - memory that is freed all at once
 *
 * Owns     chains of blocks; what is allocated from one lives until it is reset.
 * Touches  malloc.
 * Used by  value trees, specs, scheduler cycles.
 *
 * An arena has a maximum, because what fills one is often a peer's message.
 */
#ifndef LIBGPUQ_ARENA_H
#define LIBGPUQ_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct gpuq_arena_block;

struct gpuq_arena {
	struct gpuq_arena_block *head; /* newest block, NULL when empty */
	size_t used_bytes; /* allocated so far */
	size_t max_bytes; /* 0 = no maximum */
};

#define GPUQ_ARENA_INIT(max)                                                                       \
	{                                                                                          \
		NULL, 0, (max)                                                                     \
	}

/* n zeroed bytes, aligned for any type; NULL when malloc fails or the maximum
 * would be passed. n = 0 gives a valid pointer. */
void *gpuq_arena_alloc(struct gpuq_arena *a, size_t n);

/* Room for count elements of size bytes each, zeroed; NULL also on overflow. */
void *gpuq_arena_calloc(struct gpuq_arena *a, size_t count, size_t size);

/* A NUL-terminated copy of n bytes (which may hold NULs); NULL as above. */
char *gpuq_arena_strndup(struct gpuq_arena *a, const char *s, size_t n);
char *gpuq_arena_strdup(struct gpuq_arena *a, const char *s);
char *gpuq_arena_printf(struct gpuq_arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* True if something had no room since the arena was last empty: what was made in it since may lack parts. */
bool gpuq_arena_failed(const struct gpuq_arena *a);

/* Free everything; the arena can be used again. */
void gpuq_arena_done(struct gpuq_arena *a);

/* Forget everything but keep the newest block for reuse. */
void gpuq_arena_reset(struct gpuq_arena *a);

#endif
