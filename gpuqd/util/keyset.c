#include "gpuqd/util/keyset.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

struct keyset_item {
	UT_hash_handle hh;
	unsigned char key[]; /* as many bytes as the set's keys have */
};

/* Return the item with the key; NULL = none. */
static struct keyset_item *find(const struct keyset *s, const void *key)
{
	struct keyset_item *it = NULL;

	HASH_FIND(hh, s->items, key, s->bytes, it);
	return it;
}

bool keyset_has(const struct keyset *s, const void *key)
{
	return find(s, key);
}

void keyset_add(struct keyset *s, const void *key)
{
	struct keyset_item *it;

	if (find(s, key))
		return;
	it = malloc(sizeof(*it) + s->bytes);
	if (!it)
		abort();
	memcpy(it->key, key, s->bytes);
	HASH_ADD_KEYPTR(hh, s->items, it->key, s->bytes, it);
}

void keyset_remove(struct keyset *s, const void *key)
{
	struct keyset_item *it = find(s, key);

	if (!it)
		return;
	HASH_DEL(s->items, it);
	free(it);
}

void keyset_clear(struct keyset *s)
{
	struct keyset_item *it, *next;

	HASH_ITER(hh, s->items, it, next) {
		HASH_DEL(s->items, it);
		free(it);
	}
}
