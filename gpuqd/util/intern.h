/* intern.h - equal contents get equal numbers
 *
 * Owns     a table from byte strings to 0, 1, 2, ... in order of first appearance.
 * Touches  memory only. The hash decides where a key is looked for, never an order.
 * Used by  snapshot building: requests, users, node classes; job classes of a cycle.
 */
#ifndef GPUQD_UTIL_INTERN_H
#define GPUQD_UTIL_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"

struct intern_key {
	const void *bytes; /* in the arena of the table */
	uint32_t n;
	uint32_t hash;
};

struct intern {
	struct gpuq_arena *arena; /* where keys are copied to */
	struct intern_key *keys; /* by number; malloc'ed */
	uint32_t *slots; /* number + 1, 0 = empty; malloc'ed */
	uint32_t n, room, n_slots;
};

#define INTERN_INIT(a)                                                                             \
	{                                                                                          \
		.arena = (a)                                                                       \
	}
#define INTERN_FAILED UINT32_MAX

/* The number of bytes[0..n); *fresh (may be NULL) tells whether it is a new one.
 * INTERN_FAILED when there is no memory. */
uint32_t intern(struct intern *t, const void *bytes, size_t n, bool *fresh);

void intern_done(struct intern *t);

#endif
