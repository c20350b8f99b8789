#include "gpuqd/site/quotas.h"

#include <string.h>

#include "gpuqd/site/site.h"
#include "libgpuq/units.h"

static bool is_default(const struct site_queue *q)
{
	return !q->parent && strcmp(q->name, QUOTAS_DEFAULT) == 0;
}

bool quotas_is_bare_default(const struct site_queue *q)
{
	return is_default(q) && !q->quota.given && !q->shared_quota.given;
}

/* Return the largest amount in it of any flavor; 0 = none. */
static int64_t largest(const struct site_amount *a)
{
	int64_t most = a->given && !a->per_flavor ? a->all : 0;

	for (size_t i = 0; a->given && a->per_flavor && i < a->n; i++)
		if (a->amounts[i] > most)
			most = a->amounts[i];
	return most;
}

bool quotas_unlimited(const struct site_queue *q)
{
	return largest(&q->quota) == GPUQ_UNLIMITED;
}

bool quotas_default_is_free(const struct site *s)
{
	site_each(site_queue, s->queues, q)
		if (!is_default(q) && (largest(&q->quota) != 0 || largest(&q->shared_quota) != 0))
			return false;
	return true;
}

static bool ends(const struct site_amount *a)
{
	const int64_t most = largest(a);

	return most != 0 && most != GPUQ_UNLIMITED;
}

bool quotas_some_end(const struct site *s)
{
	site_each(site_queue, s->queues, q)
		if (ends(&q->quota) || ends(&q->shared_quota))
			return true;
	return false;
}

struct gpuq_val *quotas_upgrade(struct gpuq_arena *a, const struct site *s)
{
	const struct site_queue *q = site_queue_find(s, QUOTAS_DEFAULT);
	const bool was_all = q && is_default(q) && q->quota.given && !q->quota.per_flavor &&
			     q->quota.all == GPUQ_UNLIMITED;
	struct gpuq_val *v, *queues;

	if (!q || (!was_all && !(quotas_is_bare_default(q) && quotas_default_is_free(s))))
		return NULL;
	v = gpuq_val_copy(a, s->tree);
	queues = v ? gpuq_get(v, "queues") : NULL;
	for (uint32_t i = 0; queues && i < queues->n; i++) {
		struct gpuq_val *old = queues->items[i], *now;

		if (strcmp(gpuq_get_str(old, "name", ""), QUOTAS_DEFAULT) != 0)
			continue;
		now = gpuq_map(a);
		for (uint32_t k = 0; k < old->n; k++)
			if (strcmp(old->pairs[k].key, "quota") != 0)
				gpuq_put(a, now, old->pairs[k].key, old->pairs[k].val);
		if (!was_all)
			gpuq_put(a, now, "quota", gpuq_int(a, 0));
		queues->items[i] = now;
	}
	return gpuq_val_ok(v) ? v : NULL;
}
