/* Rows of a list: items that are lists of them, and one map that shows each in turn. */
#include <string.h>

#include "libgpuq/wire/client_int.h"

int gpuq_rows_init(struct gpuq_rows *r, const char *const *keys, const struct gpuq_val *params,
		   struct gpuq_val **out, struct gpuq_err *err)
{
	struct gpuq_arena *a = &r->keep;
	struct gpuq_val *list;
	uint32_t n = 0;

	*r = (struct gpuq_rows){ .map = { .type = GPUQ_MAP } };
	while (keys[n])
		n++;
	*out = gpuq_map(a);
	for (uint32_t i = 0; params && params->type == GPUQ_MAP && i < params->n; i++)
		gpuq_put(a, *out, params->pairs[i].key, params->pairs[i].val);
	list = gpuq_put(a, *out, "keys", gpuq_list(a));
	r->vals = gpuq_arena_calloc(a, n + 1, sizeof(*r->vals));
	r->map.pairs = gpuq_arena_calloc(a, n + 1, sizeof(*r->map.pairs));
	for (; r->vals && r->map.pairs && r->map.n < n; r->map.n++) {
		const char *key = keys[r->map.n];

		gpuq_add(a, list, gpuq_str(a, key));
		r->map.pairs[r->map.n] =
			(struct gpuq_pair){ .key = key, .val = &r->vals[r->map.n] };
	}
	return r->map.n == n && gpuq_val_ok(*out)
		       ? 0
		       : gpuq_fail(err, GPUQ_ENOMEM, "no memory for a list");
}

void gpuq_rows_done(struct gpuq_rows *r)
{
	gpuq_arena_done(&r->keep);
	gpuq_arena_done(&r->one);
}

/* True if c begins a list, with or without members. */
static bool is_list(unsigned char c)
{
	return (c & 0xf0) == 0x90 || c == 0xdc || c == 0xdd;
}

bool gpuq_rows_here(struct gpuq_rows *r, const char *bytes, size_t n)
{
	const char *p = gpuq_wire_item_value(bytes, n, r->id);

	if (!p || p == bytes + n || !is_list((unsigned char)*p))
		return false;
	r->p = p;
	r->end = bytes + n;
	return true;
}

int gpuq_rows_each(struct gpuq_rows *r, gpuq_item_fn fn, void *arg, int *verdict,
		   struct gpuq_err *err)
{
	uint32_t n = 0, members = 0;
	int rc = gpuq_mp_take_list(&r->p, r->end, &n, err);

	for (uint32_t i = 0; rc == 0 && *verdict == 0 && i < n; i++) {
		gpuq_arena_reset(&r->one);
		rc = gpuq_mp_take_list(&r->p, r->end, &members, err);
		if (rc == 0 && members != r->map.n)
			return gpuq_fail(err, GPUQ_EPROTO, "a row has %u values, and not %u",
					 members, r->map.n);
		for (uint32_t k = 0; rc == 0 && k < members; k++)
			rc = gpuq_mp_take(&r->one, &gpuq_wire_limits, &r->p, r->end, &r->vals[k],
					  err);
		if (rc == 0)
			*verdict = fn(arg, &r->map);
	}
	return rc;
}
