#include "gpuqd/state/job_keys.h"

#include <stdlib.h>

#include "libgpuq/grow.h"

int job_key_cmp(struct job_key a, struct job_key b)
{
	if (a.id != b.id)
		return a.id < b.id ? -1 : 1;
	return a.index == b.index ? 0 : a.index < b.index ? -1 : 1;
}

static int by_key(const void *a, const void *b)
{
	return job_key_cmp(*(const struct job_key *)a, *(const struct job_key *)b);
}

bool job_keys_add(struct job_keys *k, struct job_key key)
{
	if (!grow_to(&k->items, &k->room, k->n + 1)) {
		k->failed = true;
		return false;
	}
	k->items[k->n++] = key;
	return true;
}

void job_keys_sort(struct job_keys *k)
{
	size_t n = 0, sorted = 1;

	while (sorted < k->n && job_key_cmp(k->items[sorted - 1], k->items[sorted]) < 0)
		sorted++;
	if (sorted >= k->n)
		return; /* the usual case */
	qsort(k->items, k->n, sizeof(*k->items), by_key);
	for (size_t i = 0; i < k->n; i++)
		if (i == 0 || job_key_cmp(k->items[i], k->items[i - 1]) != 0)
			k->items[n++] = k->items[i];
	k->n = n;
}

bool job_keys_has(const struct job_keys *k, struct job_key key)
{
	return k->n && bsearch(&key, k->items, k->n, sizeof(key), by_key);
}

void job_keys_done(struct job_keys *k)
{
	free(k->items);
	*k = (struct job_keys){ .items = NULL };
}
