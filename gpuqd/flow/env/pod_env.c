#include "gpuqd/flow/env/pod_env.h"

#include <inttypes.h>
#include <string.h>

void pod_env_set(struct pod_env *e, const char *key, const char *val)
{
	if (e->map->n == POD_ENV_MAX || !val)
		return;
	e->map->keys[e->map->n] = key;
	e->map->vals[e->map->n++] = val;
}

void pod_env_set_int(struct pod_env *e, const char *key, int64_t i)
{
	pod_env_set(e, key, gpuq_arena_printf(e->a, "%" PRId64, i));
}

const char *pod_env_get(const struct pod_env *e, const char *key)
{
	return gpuq_strmap_get(e->map, key);
}
