/* grow.h - arrays that double
 *
 * Owns     nothing. Touches memory only.
 * Used by  what collects things whose number is not known before. Not installed.
 */
#ifndef LIBGPUQ_GROW_H
#define LIBGPUQ_GROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/arena.h"

#define GROW_FIRST 16u /* items */

/* The room to make for need items where there is room for this many. */
static inline size_t grow_more(size_t room, size_t need)
{
	size_t more = room ? room : GROW_FIRST;

	while (more < need)
		more = more > SIZE_MAX / 2 ? need : 2 * more;
	return more;
}

static inline bool grow_heap(void *items, size_t *room, size_t need, size_t size)
{
	const size_t more = grow_more(*room, need);
	void *p;

	memcpy(&p, items, sizeof(p));
	p = more > SIZE_MAX / size ? NULL : realloc(p, more * size);
	if (!p)
		return false;
	memcpy(items, &p, sizeof(p));
	*room = more;
	return true;
}

static inline bool grow_heap_u32(void *items, uint32_t *room, size_t need, size_t size)
{
	size_t more = *room;

	if (need > UINT32_MAX / 2 || !grow_heap(items, &more, need, size))
		return false;
	*room = (uint32_t)more;
	return true;
}

/* Make room for need items in an array on the heap: *items is its address, NULL at first, and
 * *room, a size_t or uint32_t, counts the items that it has room for. Without memory it is
 * false, and both are as they were. */
#define grow_to(items, room, need)                                                                 \
	((need) <= *(room) || _Generic(*(room), uint32_t                                           \
				       : grow_heap_u32, size_t                                     \
				       : grow_heap)((items), (room), (need), sizeof(**(items))))

/* The same for an array in an arena, where the earlier one stays until the arena goes. New
 * items are zero. */
static inline bool grow_arena(struct gpuq_arena *a, void *items, size_t *room, size_t need,
			      size_t size)
{
	const size_t more = grow_more(*room, need);
	void *p, *before;

	if (need <= *room)
		return true;
	p = gpuq_arena_calloc(a, more, size);
	if (!p)
		return false;
	memcpy(&before, items, sizeof(before));
	if (before)
		memcpy(p, before, *room * size);
	memcpy(items, &p, sizeof(p));
	*room = more;
	return true;
}

#endif
