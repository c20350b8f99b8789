#include "gpuqd/flow/admit/warn/run_limit.h"

#include <inttypes.h>
#include <string.h>

#include "gpuqd/site/provision.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

bool run_limit_holds(const struct provision_machine *is, const struct gpuq_group *g)
{
	bool all = g->gpus_milli <= is->gpus * 1000 &&
		   (!is->cpu_milli || g->cpu_milli <= is->cpu_milli) &&
		   (!is->memory_bytes || g->memory_bytes <= is->memory_bytes);

	for (size_t i = 0; all && i < g->n_resources; i++)
		all = g->resources[i].count <= provision_has(is, g->resources[i].name) ||
		      strcmp(g->resources[i].name, GPUQ_RESOURCE_STORAGE) == 0;
	return all;
}

/* True if nodes that the pool has, or gets, could hold the pods that request devices. Where it names no flavor, the nodes
 * tell, once they are there. */
static bool may_use(const struct gpuq_spec *spec, const struct site_pool *p)
{
	if (!p->flavor || !gpuq_strlist_passes(&spec->flavors, p->flavor))
		return false;
	for (size_t i = 0; site_pool_grows(p) && i < spec->n_groups; i++)
		if (spec->groups[i].gpus_milli > 0 &&
		    !run_limit_holds(p->provisioning->machine, &spec->groups[i]))
			return false;
	return true;
}

int run_limit_check(const struct model *m, const struct gpuq_spec *spec, int64_t time_us,
		    struct gpuq_err *err)
{
	const struct site_pool *longest = NULL;
	char text[32];

	if (time_us == GPUQ_UNLIMITED || gpuq_spec_gpus_milli(spec) == 0)
		return 0;
	site_each(site_pool, m->site->pools, p) {
		if (!may_use(spec, p))
			continue;
		if (!site_pool_requests(p) || p->provisioning->max_run_us >= time_us)
			return 0;
		if (!longest || p->provisioning->max_run_us > longest->provisioning->max_run_us)
			longest = p;
	}
	if (!longest)
		return 0;
	node_each(m, n)
		if (!n->gone && n->n_devices > 0 && node_is_of(m, n, &spec->flavors) &&
		    !site_pool_growing(m->site, n->pool))
			return 0;
	gpuq_duration_print(time_us, text, sizeof(text));
	return gpuq_fail_field(err, GPUQ_ELIMIT, "time",
			       "%s is longer than nodes of pool %s may run: maximum %" PRId64
			       " s; shorten it, or save checkpoints and requeue",
			       text, longest->name,
			       longest->provisioning->max_run_us / GPUQ_US_PER_S);
}

void run_limit_warn(const struct model *m, const struct gpuq_spec *spec, int64_t time_us,
		    struct gpuq_buf *warnings)
{
	const struct site_pool *longest = NULL;

	if (time_us == GPUQ_UNLIMITED || gpuq_spec_gpus_milli(spec) == 0)
		return;
	site_each(site_pool, m->site->pools, p) {
		if (!may_use(spec, p))
			continue;
		if (!site_pool_requests(p) ||
		    strcmp(p->provisioning->class_, PROVISION_CLASS_QUEUED) != 0 ||
		    p->provisioning->max_run_us >= time_us + PROVISION_RUN_MARGIN_US)
			return;
		if (!longest || p->provisioning->max_run_us > longest->provisioning->max_run_us)
			longest = p;
	}
	if (longest)
		gpuq_buf_printf(warnings,
				"nodes of pool %s run for %" PRId64
				" s at most, from when they are made: their boot takes part of "
				"the time limit\n",
				longest->name, longest->provisioning->max_run_us / GPUQ_US_PER_S);
}
