/* Kinds of values of a scenario: numbers, amounts by flavor, device indexes and sizes. */
#include "gpuqd/sim/scenario/scenario_int.h"

#include <string.h>

#include "libgpuq/units.h"

int scenario_number(struct gpuq_reader *r, const struct gpuq_val *v, int64_t *out)
{
	int64_t us;
	double t;

	if (v->type == GPUQ_INT && v->i > -INT64_C(1000000000) && v->i < INT64_C(1000000000)) {
		*out = v->i * 1000;
		return 0;
	}
	if (v->type == GPUQ_STR && gpuq_duration_parse(v->s, &us, NULL) == 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"expected a number: times are in the case's unit, minutes "
					"unless its config has another");
	if (v->type != GPUQ_REAL || !(v->d > -1e9 && v->d < 1e9))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected a number, found %s",
					v->type == GPUQ_INT || v->type == GPUQ_REAL
						? "one that is too large"
						: gpuq_type_name(v->type));
	t = v->d * 1000;
	*out = (int64_t)(t < 0 ? t - 0.5 : t + 0.5);
	return 0;
}

static int read_number(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	return scenario_number(r, v, out);
}

const struct gpuq_custom scenario_num = { read_number, NULL };

/* Read a number, `auto` or `unlimited`. */
static int read_quota(struct gpuq_reader *r, const struct gpuq_val *v, int64_t *out)
{
	if (v->type == GPUQ_STR && strcmp(v->s, "auto") == 0) {
		*out = SC_ABSENT;
		return 0;
	}
	if (v->type == GPUQ_STR && strcmp(v->s, "unlimited") == 0) {
		*out = SC_NONE;
		return 0;
	}
	return scenario_number(r, v, out);
}

static int read_amounts(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct sc_amounts a = { .all = SC_ABSENT };
	int rc;

	if (v->type != GPUQ_MAP) {
		rc = read_quota(r, v, &a.all);
		if (rc == 0)
			*(struct sc_amounts *)out = a;
		return rc;
	}
	a.flavors = gpuq_arena_calloc(r->arena, v->n, sizeof(*a.flavors));
	a.amounts = gpuq_arena_calloc(r->arena, v->n, sizeof(*a.amounts));
	if (!a.flavors || !a.amounts)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	for (; a.n < v->n; a.n++) {
		size_t mark = gpuq_reader_enter(r, v->pairs[a.n].key);

		a.flavors[a.n] = v->pairs[a.n].key;
		rc = read_quota(r, v->pairs[a.n].val, &a.amounts[a.n]);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
	}
	*(struct sc_amounts *)out = a;
	return 0;
}

const struct gpuq_custom scenario_amounts = { read_amounts, NULL };

struct indexes { /* layout of gpu_index and n_gpu_index in struct sc_tasks */
	int64_t *items;
	size_t n;
};

/* Read one device or a list of devices. */
static int read_indexes(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	const size_t n = v->type == GPUQ_LIST ? v->n : 1;
	struct indexes ix = { gpuq_arena_calloc(r->arena, n, sizeof(int64_t)), n };

	if (!ix.items)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	for (size_t i = 0; i < n; i++) {
		const struct gpuq_val *item = v->type == GPUQ_LIST ? v->items[i] : v;

		if (item->type != GPUQ_INT || item->i < 0)
			return gpuq_reader_fail(r, item, GPUQ_EINVAL,
						"expected the index of a device");
		ix.items[i] = item->i;
	}
	*(struct indexes *)out = ix;
	return 0;
}

const struct gpuq_custom scenario_indexes = { read_indexes, NULL };

static int read_byte(struct gpuq_reader *r, const struct gpuq_val *v, struct sc_bytes *out)
{
	if (v->type != GPUQ_INT || v->i < 0 || v->i > UINT8_MAX)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected a number from 0 to %d",
					UINT8_MAX);
	out->items[out->n++] = (uint8_t)v->i;
	return 0;
}

/* Read a list of numbers, or a list of rows. */
static int read_bytes(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct sc_bytes b = { NULL, 0 };
	size_t n = 0;
	int rc = 0;

	if (v->type != GPUQ_LIST)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected a list, found %s",
					gpuq_type_name(v->type));
	for (size_t i = 0; i < v->n; i++)
		n += v->items[i]->type == GPUQ_LIST ? v->items[i]->n : 1;
	b.items = gpuq_arena_alloc(r->arena, n);
	if (!b.items)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	for (size_t i = 0; rc == 0 && i < v->n; i++) {
		const struct gpuq_val *row = v->items[i];

		if (row->type != GPUQ_LIST)
			rc = read_byte(r, row, &b);
		for (size_t k = 0; rc == 0 && row->type == GPUQ_LIST && k < row->n; k++)
			rc = read_byte(r, row->items[k], &b);
	}
	if (rc == 0)
		*(struct sc_bytes *)out = b;
	return rc;
}

const struct gpuq_custom scenario_bytes = { read_bytes, NULL };
