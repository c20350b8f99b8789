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

void cycle_choices_init(struct cycle *c)
{
	bool any = false;

	for (uint32_t i = 0; i < c->s->n_requests && !any; i++)
		any = c->s->requests[i].n_others > 0;
	if (!any)
		return;
	c->plan.tried_as = cycle_alloc(c, c->s->n_jobs, sizeof(*c->plan.tried_as));
	for (uint32_t i = 0; c->plan.tried_as && i < c->s->n_jobs; i++)
		c->plan.tried_as[i] = c->s->jobs[i].request;
}

struct cycle_way cycle_way(const struct cycle *c, uint32_t job, uint32_t way)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];
	const uint32_t n = r->in_order ? cycle_flavors(c, job) : r->n_others + 1;

	return r->in_order ? (struct cycle_way){ way % n, way / n }
			   : (struct cycle_way){ way / n, way % n };
}

uint32_t cycle_try_as(struct cycle *c, uint32_t job, uint32_t way)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];
	const struct cycle_way at = cycle_way(c, job, way);
	const uint32_t flavor = r->gpus_milli > 0 ? r->flavor_ix[at.flavor] : SNAP_NONE;

	if (r->n_others)
		c->plan.tried_as[job] =
			flavor == SNAP_NONE ? c->s->jobs[job].request
					    : r->tries[at.flavor * (r->n_others + 1) + at.request];
	return flavor;
}

void cycle_try_own(struct cycle *c, uint32_t job)
{
	if (c->plan.tried_as)
		c->plan.tried_as[job] = c->s->jobs[job].request;
}
