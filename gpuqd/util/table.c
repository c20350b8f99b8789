#include "gpuqd/util/table.h"

#include <stdlib.h>

#define ROOM_MIN 64u

/* Seven eighths may be taken. */
static bool is_full(uint32_t n, uint32_t room)
{
	return n > room / 8 * 7;
}

/* Put an item into the next free slot; the caller keeps some free. */
static void put(struct slots *s, void *item, uint32_t hash)
{
	uint32_t at = hash & (s->room - 1);

	while (s->at[at])
		at = (at + 1) & (s->room - 1);
	s->at[at] = item;
}

void table_reserve(struct slots *s, uint32_t n, slots_hash_fn hash)
{
	const struct slots old = *s;
	uint32_t room = old.room ? old.room : ROOM_MIN;

	while (is_full(n, room))
		room *= 2;
	if (room == old.room)
		return;
	s->at = calloc(room, sizeof(*s->at));
	if (!s->at)
		abort(); /* the ledger is on disk: a restart is the recovery */
	s->room = room;
	for (uint32_t i = 0; i < old.room; i++)
		if (old.at[i])
			put(s, old.at[i], hash(old.at[i]));
	free(old.at);
}

void table_add(struct slots *s, void *item, slots_hash_fn hash)
{
	table_reserve(s, ++s->n, hash);
	put(s, item, hash(item));
}

/* Those behind it that were looked for where it was, or before, move up. */
void table_remove(struct slots *s, const void *item, slots_hash_fn hash)
{
	const uint32_t mask = s->room - 1;
	uint32_t hole = hash(item) & mask;

	while (s->at[hole] != item)
		hole = (hole + 1) & mask;
	for (uint32_t at = (hole + 1) & mask; s->at[at]; at = (at + 1) & mask) {
		const uint32_t home = hash(s->at[at]) & mask;

		if (((at - home) & mask) < ((at - hole) & mask))
			continue; /* its home is behind the hole */
		s->at[hole] = s->at[at];
		hole = at;
	}
	s->at[hole] = NULL;
	s->n--;
}

void table_done(struct slots *s)
{
	free(s->at);
	*s = (struct slots){ 0 };
}
