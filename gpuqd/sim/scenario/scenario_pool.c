#include "gpuqd/sim/scenario/scenario_int.h"
#include "gpuqd/sim/scenario/scenario_pool.h"

#include "gpuqd/site/layouts.h"
#include "gpuqd/snapshot/snapshot.h"

/* Pools that can get nodes that do not exist yet, and those whose nodes may be cut. */

#define POOL_NODES_MAX 5000

static const struct gpuq_field layouts_fields[] = {
	BOOL(sc_layouts, "manager", manager, "whether its nodes are cut"),
	LIST(sc_layouts, "layouts", names,
	     "layouts that idle nodes may get, in order of preference"),
	NUM(sc_layouts, "again", again, "time in which a node does not get the same layout again"),
	NUM(sc_layouts, "delay", delay,
	    "time from the decision until the node has its layout; absent = by node_cut"),
	{ 0 },
};

static void layouts_defaults(void *obj)
{
	struct sc_layouts *l = obj;

	l->again = l->delay = SC_ABSENT;
}

static int layouts_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_layouts *l = obj;

	if (l->manager && l->names.n == 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"layouts: missing; such as [all-1g.10gb]");
	for (size_t i = 0; i < l->names.n; i++)
		if (!layouts_profile(l->names.items[i]))
			return gpuq_reader_fail(r, v, GPUQ_EINVAL,
						"layouts: expected all-PROFILE such as "
						"all-1g.10gb, or all-disabled");
	if ((l->again != SC_ABSENT && l->again < 0) || (l->delay != SC_ABSENT && l->delay < 0))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "a time below 0");
	return 0;
}

static const struct gpuq_schema layouts_schema = {
	.name = "mig",
	.size = sizeof(struct sc_layouts),
	.fields = layouts_fields,
	.defaults = layouts_defaults,
	.check = layouts_check,
};

static const struct gpuq_field pool_fields[] = {
	{ .key = "name",
	  .kind = GPUQ_K_STR,
	  .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .offset = offsetof(struct sc_pool, name),
	  .doc = "its name; its nodes are name-0, name-1, ..." },
	STR(sc_pool, "flavor", flavor, "the kind of its devices"),
	NUM(sc_pool, "nodes", nodes, "nodes that exist at first"),
	NUM(sc_pool, "max", max, "maximum number of nodes"),
	NUM(sc_pool, "gpus", gpus, "devices of a node"),
	NUM(sc_pool, "cpu", cpu, "of a node, in thousandths of a core"),
	NUM(sc_pool, "mem_mb", mem_mb, "memory of a node"),
	NUM(sc_pool, "gpu_mem_mb", gpu_mem_mb, "memory of a device"),
	MAP(sc_pool, "labels", labels, "of its nodes"),
	MANY(sc_pool, "taints", taints, &scenario_taint, "of its nodes"),
	NUM(sc_pool, "price", price, "price; nodes are requested from the cheapest pool first"),
	BOOL(sc_pool, "spot", spot, "its cloud may take its nodes away: by node_down"),
	{ .key = "mig",
	  .kind = GPUQ_K_OBJECT_PTR,
	  .sub = &layouts_schema,
	  .offset = offsetof(struct sc_pool, mig),
	  .doc = "layouts of MIG instances that its nodes, also those of nodes, may be given" },
	NUM(sc_pool, "max_requests", max_requests,
	    "maximum number of requests at once; absent = any"),
	NUM(sc_pool, "provision_delay", provision_delay,
	    "time from a request until its nodes join; absent = by node_up"),
	{ 0 },
};

static void pool_defaults(void *obj)
{
	struct sc_pool *p = obj;

	p->cpu = p->mem_mb = p->provision_delay = SC_ABSENT;
	p->gpu_mem_mb = 100 * 1000;
}

static int pool_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_pool *p = obj;

	/* It has the nodes that name it. */
	if (p->mig && p->max == 0 && p->nodes == 0)
		return 0;
	if (p->gpus < 1000 || p->gpus > SNAP_DEVICES_MAX * 1000 || p->gpus % 1000)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "gpus: expected 1 to %u devices",
					SNAP_DEVICES_MAX);
	if (p->max < 1000 || p->max > POOL_NODES_MAX * INT64_C(1000) || p->max % 1000)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "max: expected 1 to %d nodes",
					POOL_NODES_MAX);
	if (p->max_requests < 0 || p->max_requests % 1000)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "max_requests: expected a number");
	if (p->nodes < 0 || p->nodes > p->max || p->nodes % 1000)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "nodes: expected 0 to max");
	if ((p->cpu != SC_ABSENT && p->cpu < 0) || (p->mem_mb != SC_ABSENT && p->mem_mb < 0) ||
	    p->gpu_mem_mb < 0 || p->price < 0 ||
	    (p->provision_delay != SC_ABSENT && p->provision_delay < 0))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "an amount below 0");
	return 0;
}

const struct gpuq_schema scenario_pool = {
	.name = "pool",
	.size = sizeof(struct sc_pool),
	.fields = pool_fields,
	.defaults = pool_defaults,
	.check = pool_check,
};

void scenario_pool_machine(struct sc_pool *p)
{
	p->machine = (struct sc_node){ .name = p->name,
				       .pool = p->name,
				       .flavor = p->flavor,
				       .gpus = p->gpus,
				       .cpu = p->cpu,
				       .mem_mb = p->mem_mb,
				       .gpu_mem_mb = p->gpu_mem_mb,
				       .max_pods = SC_ABSENT,
				       .count = SC_ABSENT,
				       .labels = p->labels,
				       .taints = p->taints };
}
