#include "gpuqd/util/walltime.h"

#include <stddef.h>
#include <string.h>

bool walltime_is_instant(const char *key)
{
	static const char *const names[] = {
		"time",
		"since",
		"last_seen",
		"stale_since",
		"submit_time",
		"eligible_time",
		"start_time",
		"end_time",
		"planned_time",
		"likely_time",
		"until_time",
		"from_time",
		"at_time",
		"decided_time",
		"yield_time",
		"last_time",
		"next_time",
		"node_seen_time",
		"oldest_time",
		"failed_time",
		"now_time",
		"reset_time",
		"jump_time",
		"last_slow_time",
		"audit_time",
		"log_time",
		"log_failed_time",
		"created_time",
		"expires_time",
		"revoked_time",
		"used_time",
		"deadline_time",
		"closed_until_time",
		"drained_time",
		"avoided_until_time",
		"deadline", /* of a job's provisioning; that of a job is in its spec */
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], key) == 0)
			return true;
	return false;
}

/* True if people wrote what stands there: its times are durations and wall time, or its keys are names that they
 * chose. */
static bool is_written(const char *key)
{
	return strcmp(key, "spec") == 0 || strcmp(key, "site") == 0 ||
	       strcmp(key, "unmet_nodes") == 0;
}

/* Convert the members of a map by their names. */
static const struct gpuq_val *map_of(struct gpuq_arena *a, const struct gpuq_val *v,
				     int64_t ahead_us)
{
	struct gpuq_val *out = gpuq_map(a);

	for (uint32_t i = 0; i < v->n; i++)
		gpuq_put(a, out, v->pairs[i].key,
			 (struct gpuq_val *)walltime_tree(a, v->pairs[i].key, v->pairs[i].val,
							  ahead_us));
	return out;
}

/* Convert the items of a list; they have no names. */
static const struct gpuq_val *list_of(struct gpuq_arena *a, const struct gpuq_val *v,
				      int64_t ahead_us)
{
	struct gpuq_val *out = gpuq_list(a);

	for (uint32_t i = 0; i < v->n; i++)
		gpuq_add(a, out, (struct gpuq_val *)walltime_tree(a, NULL, v->items[i], ahead_us));
	return out;
}

const struct gpuq_val *walltime_tree(struct gpuq_arena *a, const char *key,
				     const struct gpuq_val *v, int64_t ahead_us)
{
	if (!v || ahead_us == 0 || (key && is_written(key)))
		return v;
	if (v->type == GPUQ_MAP)
		return map_of(a, v, ahead_us);
	if (v->type == GPUQ_LIST)
		return list_of(a, v, ahead_us);
	if (v->type == GPUQ_INT && key && walltime_is_instant(key))
		return gpuq_int(a, walltime_of(v->i, ahead_us));
	return v;
}
