#include "gpuqd/util/intern.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/hash.h"

/* Double the table. The keys stay where they are in their own array, so their numbers never
 * change. */
static int grow(struct intern *t)
{
	uint32_t n_slots = t->n_slots ? t->n_slots * 2 : 64;
	struct intern_key *keys;
	uint32_t *slots;

	keys = realloc(t->keys, (size_t)n_slots / 2 * sizeof(*keys));
	if (!keys)
		return -1;
	t->keys = keys;
	t->room = n_slots / 2;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -1;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t at = t->keys[i].hash & (n_slots - 1);

		while (slots[at])
			at = (at + 1) & (n_slots - 1);
		slots[at] = i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->n_slots = n_slots;
	return 0;
}

uint32_t intern(struct intern *t, const void *bytes, size_t n, bool *fresh)
{
	const uint32_t h = hash_bytes(bytes, n);
	uint32_t at;
	void *copy;

	if (fresh)
		*fresh = false;
	if (t->n == t->room && grow(t) < 0)
		return INTERN_FAILED;
	for (at = h & (t->n_slots - 1); t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
		const struct intern_key *k = &t->keys[t->slots[at] - 1];

		if (k->hash == h && k->n == n && memcmp(k->bytes, bytes, n) == 0)
			return t->slots[at] - 1;
	}
	copy = gpuq_arena_alloc(t->arena, n);
	if (!copy)
		return INTERN_FAILED;
	if (n)
		memcpy(copy, bytes, n);
	t->keys[t->n] = (struct intern_key){ copy, (uint32_t)n, h };
	t->slots[at] = ++t->n;
	if (fresh)
		*fresh = true;
	return t->n - 1;
}

void intern_done(struct intern *t)
{
	free(t->keys);
	free(t->slots);
	*t = (struct intern)INTERN_INIT(t->arena);
}
