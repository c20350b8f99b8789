#include "gpuqd/util/blob.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/hash.h"

#define N_LAST 4096u /* a power of two */

struct shared_block {
	uint32_t n_users, n; /* users of the block; bytes */
	_Alignas(8) unsigned char bytes[];
};

static struct shared_block *block_of(const void *bytes)
{
	return (struct shared_block *)((uintptr_t)bytes - offsetof(struct shared_block, bytes));
}

const void *blob_get(struct shared *s, const void *bytes, size_t n)
{
	const uint32_t at = hash_bytes(bytes, n) & (N_LAST - 1);
	struct shared_block *b;

	if (!s->last)
		s->last = calloc(N_LAST, sizeof(*s->last));
	if (!s->last)
		abort(); /* the ledger is on disk: a restart is the recovery */
	b = s->last[at];
	if (b && b->n == n && memcmp(b->bytes, bytes, n) == 0)
		return blob_more(b->bytes);
	b = malloc(sizeof(*b) + n);
	if (!b)
		abort();
	b->n_users = 1;
	b->n = (uint32_t)n;
	memcpy(b->bytes, bytes, n);
	s->last[at] = b;
	return b->bytes;
}

const void *blob_more(const void *block)
{
	if (block)
		block_of(block)->n_users++;
	return block;
}

void blob_put(struct shared *s, const void *block)
{
	struct shared_block *b, **last;

	if (!block)
		return;
	b = block_of(block);
	if (--b->n_users > 0)
		return;
	last = &s->last[hash_bytes(b->bytes, b->n) & (N_LAST - 1)];
	if (*last == b)
		*last = NULL;
	free(b);
}

void blob_done(struct shared *s)
{
	free(s->last);
	s->last = NULL;
}
