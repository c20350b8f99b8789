#include "gpuqd/sched/quota/cycle.h"

#include <string.h>

void *cycle_alloc(struct cycle *c, size_t count, size_t size)
{
	void *p = c->failed ? NULL : gpuq_arena_calloc(c->mem, count, size);

	if (!p)
		c->failed = true;
	return p;
}

void *cycle_push(struct cycle *c, void *table, uint32_t *n_items, uint32_t *room, size_t size,
		 uint32_t n)
{
	void **items = table;
	void *at;

	if (c->failed)
		return NULL;
	if (!*items || n > *room - *n_items) {
		uint32_t bigger = *room ? *room * 2 : 64;
		void *p;

		while (bigger - *n_items < n)
			bigger *= 2;
		p = cycle_alloc(c, bigger, size);
		if (!p)
			return NULL;
		if (*n_items)
			memcpy(p, *items, *n_items * size);
		*items = p;
		*room = bigger;
	}
	at = (char *)*items + *n_items * size;
	*n_items += n;
	return at;
}

void *cycle_scratch(struct cycle *c, size_t count, size_t size)
{
	void *p = c->failed ? NULL : gpuq_arena_calloc(&c->scratch, count, size);

	if (!p)
		c->failed = true;
	return p;
}

void cycle_bounded(struct cycle *c, uint32_t job, enum plan_bounded what, int64_t most)
{
	struct plan_bound *b = PLAN_PUSH(c, bounds, 1);

	if (b)
		*b = (struct plan_bound){ .what = what, .job = job, .most = most };
}
