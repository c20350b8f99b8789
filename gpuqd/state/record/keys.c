#include "gpuqd/state/record/keys.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/hash.h"

#define CHUNK_BYTES 65536u

struct key_chunk {
	struct key_chunk *next;
	int64_t oldest_us; /* of the keys in this block */
	uint32_t used, n_keys;
	_Alignas(8) unsigned char bytes[CHUNK_BYTES -
					24]; /* keys one behind the other, each with its head */
};

static size_t size_of(size_t len)
{
	return (sizeof(struct idem_key) + len + 7) & ~(size_t)7;
}

static uint32_t hash_of(const void *item)
{
	const struct idem_key *k = item;

	return hash_bytes(k->bytes, k->len);
}

struct idem_key *keys_find(const struct keys *k, const void *bytes, size_t n)
{
	struct idem_key *it;

	table_each(&k->slots, hash_bytes(bytes, n), it)
		if (it->len == n && memcmp(it->bytes, bytes, n) == 0)
			return it;
	return NULL;
}

/* Return the chunk that new keys go to. Keys expire in the order in which they came, so a chunk
 * becomes free as a whole. */
static struct key_chunk *chunk_with_room(struct keys *k, size_t size, int64_t at_us)
{
	struct key_chunk *c = k->last;

	if (c && sizeof(c->bytes) - c->used >= size)
		return c;
	c = malloc(sizeof(*c));
	if (!c)
		abort(); /* the ledger is on disk: a restart is the recovery */
	c->next = NULL;
	c->oldest_us = at_us;
	c->used = c->n_keys = 0;
	*(k->last ? &k->last->next : &k->first) = c;
	k->last = c;
	return c;
}

struct idem_key *keys_add(struct keys *k, const void *bytes, size_t n, int64_t at_us)
{
	struct key_chunk *c = chunk_with_room(k, size_of(n), at_us);
	struct idem_key *it = (struct idem_key *)(c->bytes + c->used);

	*it = (struct idem_key){ .at_us = at_us, .len = (uint16_t)n };
	memcpy(it->bytes, bytes, n);
	c->used += (uint32_t)size_of(n);
	c->n_keys++;
	if (at_us < c->oldest_us)
		c->oldest_us = at_us;
	table_add(&k->slots, it, hash_of);
	return it;
}

void keys_reserve(struct keys *k, uint32_t n)
{
	table_reserve(&k->slots, n, hash_of);
}

/* Forget the keys of a chunk that are older than until_us, and note the oldest of the others:
 * until then the chunk need not be read again. */
static void expire_in(struct keys *k, struct key_chunk *c, int64_t until_us, keys_gone_fn fn,
		      void *arg)
{
	int64_t oldest_us = INT64_MAX;
	struct idem_key *it;

	for (uint32_t at = 0; at < c->used; at += (uint32_t)size_of(it->len)) {
		it = (struct idem_key *)(c->bytes + at);
		if (it->expired)
			continue;
		if (it->at_us > until_us) {
			oldest_us = it->at_us < oldest_us ? it->at_us : oldest_us;
			continue;
		}
		fn(arg, it);
		table_remove(&k->slots, it, hash_of);
		it->expired = true;
		c->n_keys--;
	}
	c->oldest_us = oldest_us;
}

void keys_expire(struct keys *k, int64_t until_us, keys_gone_fn fn, void *arg)
{
	struct key_chunk **at = &k->first, *c;

	k->last = NULL;
	while ((c = *at)) {
		if (c->oldest_us <= until_us)
			expire_in(k, c, until_us, fn, arg);
		if (c->n_keys == 0) {
			*at = c->next;
			free(c);
			continue;
		}
		k->last = c;
		at = &c->next;
	}
}

void keys_done(struct keys *k)
{
	for (struct key_chunk *c = k->first, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	table_done(&k->slots);
	*k = (struct keys){ 0 };
}
