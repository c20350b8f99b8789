#include "libgpuq/yaml_alias.h"

#include <string.h>

#include "libgpuq/err.h"
#include "libgpuq/limits.h"

bool yaml_anchor_set(struct yaml_anchors *x, struct gpuq_arena *a, const char *name,
		     struct gpuq_val *v)
{
	if (!x->map)
		x->map = gpuq_map(a);
	return gpuq_put(a, x->map, name, v) != NULL;
}

struct gpuq_val *yaml_anchor_get(const struct yaml_anchors *x, const char *name)
{
	for (uint32_t i = x->map ? x->map->n : 0; i > 0; i--)
		if (strcmp(x->map->pairs[i - 1].key, name) == 0)
			return x->map->pairs[i - 1].val;
	return NULL;
}

size_t yaml_size(const struct gpuq_val *v, unsigned *levels)
{
	const bool holds = v->type == GPUQ_LIST || v->type == GPUQ_MAP;
	unsigned deepest = 0, inner;
	size_t n = 1;

	for (uint32_t i = 0; holds && i < v->n; i++) {
		n += yaml_size(v->type == GPUQ_LIST ? v->items[i] : v->pairs[i].val, &inner);
		n += v->type == GPUQ_MAP; /* the key */
		if (inner > deepest)
			deepest = inner;
	}
	*levels = deepest + holds;
	return n;
}

static int merge_map(struct gpuq_arena *a, struct gpuq_val *map, const struct gpuq_val *from)
{
	for (uint32_t i = 0; i < from->n; i++) {
		const struct gpuq_pair *p = &from->pairs[i];

		if (gpuq_get(map, p->key))
			continue;
		if (map->n >= GPUQ_MAP_MAX)
			return GPUQ_ETOOBIG;
		if (!gpuq_put(a, map, p->key, p->val))
			return GPUQ_ENOMEM;
		map->pairs[map->n - 1].at = p->at;
	}
	return 0;
}

int yaml_merge(struct gpuq_arena *a, struct gpuq_val *map, const struct gpuq_val *from)
{
	int rc = 0;

	if (from->type == GPUQ_MAP)
		return merge_map(a, map, from);
	if (from->type != GPUQ_LIST)
		return GPUQ_EINVAL;
	for (uint32_t i = 0; rc == 0 && i < from->n; i++)
		rc = from->items[i]->type == GPUQ_MAP ? merge_map(a, map, from->items[i])
						      : GPUQ_EINVAL;
	return rc;
}
