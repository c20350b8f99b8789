#include "gpuqd/site/price.h"

#include <string.h>

#include "gpuqd/util/fixed.h"
#include "gpuqd/site/site.h"

#define HOUR_US INT64_C(3600000000)
#define MOST INT64_C(1000000) /* of a currency, for a device and hour */

const char *const price_kinds[] = { "on_demand", "committed", NULL };

/* Read a price for a device and hour; prices are kept in millionths, so that sums are exact. */
static int read_micro(struct gpuq_reader *r, const struct gpuq_val *v, int64_t *out)
{
	if (v->type == GPUQ_INT && v->i >= 0 && v->i <= MOST)
		*out = v->i * 1000000;
	else if (v->type == GPUQ_REAL && v->d >= 0 && v->d <= 1e6)
		*out = (int64_t)(v->d * 1e6 + 0.5);
	else
		return gpuq_reader_fail(
			r, v, GPUQ_EINVAL,
			"expected a price for a device and hour, from 0 to 1000000");
	return 0;
}

/* Read a price: one number, or one for each kind of node, of which an absent one is like the
 * other. */
static int read_price(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct price p = { .given = true };
	bool given[N_PRICES] = { false };
	int rc = 0;

	if (v->type != GPUQ_MAP) {
		rc = read_micro(r, v, &p.micro[PRICE_ON_DEMAND]);
		if (rc < 0)
			return rc;
		p.micro[PRICE_COMMITTED] = p.micro[PRICE_ON_DEMAND];
		*(struct price *)out = p;
		return 0;
	}
	if (v->n == 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected on_demand or committed");
	for (uint32_t i = 0; i < v->n; i++) {
		const size_t mark = gpuq_reader_enter(r, v->pairs[i].key);
		int k = 0;

		while (price_kinds[k] && strcmp(price_kinds[k], v->pairs[i].key) != 0)
			k++;
		if (!price_kinds[k])
			return gpuq_reader_fail(r, v->pairs[i].val, GPUQ_EINVAL,
						"unknown key: expected on_demand or committed");
		rc = read_micro(r, v->pairs[i].val, &p.micro[k]);
		if (rc < 0)
			return rc;
		given[k] = true;
		gpuq_reader_leave(r, mark);
	}
	for (int k = 0; k < N_PRICES; k++)
		if (!given[k])
			p.micro[k] = p.micro[!k];
	*(struct price *)out = p;
	return 0;
}

/* Print whole prices as whole numbers, as they are usually written. */
static struct gpuq_val *write_micro(struct gpuq_arena *mem, int64_t micro)
{
	if (micro % 1000000 == 0)
		return gpuq_int(mem, micro / 1000000);
	return gpuq_real(mem, micro / 1e6);
}

/* Print one number where both kinds cost the same. */
static struct gpuq_val *write_price(struct gpuq_arena *mem, const void *in)
{
	const struct price *p = in;
	struct gpuq_val *v;

	if (!p->given)
		return NULL;
	if (p->micro[0] == p->micro[1])
		return write_micro(mem, p->micro[0]);
	v = gpuq_map(mem);
	for (int k = 0; k < N_PRICES; k++)
		gpuq_put(mem, v, price_kinds[k], write_micro(mem, p->micro[k]));
	return v;
}

const struct gpuq_custom price_custom = { read_price, write_price };

int64_t price_micro(const struct site *s, const char *pool, const char *flavor)
{
	int kind = PRICE_ON_DEMAND;

	site_each(site_pool, s->pools, p) {
		if (strcmp(p->name, pool) != 0)
			continue;
		kind = p->billing;
		if (p->price.given)
			return p->price.micro[kind];
	}
	site_each(site_flavor, s->flavors, f) {
		if (flavor && strcmp(f->name, flavor) == 0)
			return f->price.micro[kind];
	}
	return 0;
}

int64_t price_cost(int64_t micro_per_hour, int64_t gpu_us)
{
	const fixed_u128 x = (fixed_u128)(uint64_t)micro_per_hour * (uint64_t)gpu_us;

	if (micro_per_hour <= 0 || gpu_us <= 0)
		return 0;
	if (x >> 94)
		return INT64_MAX;
	return (int64_t)fixed_div(x + HOUR_US / 2, HOUR_US);
}
