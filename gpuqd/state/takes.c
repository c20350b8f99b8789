/* Countable resources of pods, as the cluster makes them.
 *
 * A request is what its owner wrote. The apiserver completes it when the pod is created: a LimitRange
 * of the namespace gives containers that name no ephemeral-storage or huge pages some of it, and the
 * RuntimeClass adds its overhead to any pod. The kubelet counts the sum, so placement does, and so
 * do all figures that are printed beside it: a node with 3 of 3 adapters free, on which a job waits
 * for an adapter, would explain nothing.
 *
 * Devices and other extended resources have no defaults (objects_defaults()): what a job is charged
 * would depend on the namespace that it happens to run in. */
#include "gpuqd/state/takes.h"

#include "gpuqd/site/inventory.h"
#include "libgpuq/spec/resource.h"

size_t takes_amounts(const struct model *m, const struct queue *q, const struct request_group *g,
		     struct gpuq_amount out[GPUQ_RESOURCES_MAX])
{
	const struct objects_pod p = { .queue = q->name,
				       .namespace_ = model_queue_namespace(q),
				       .runtime_class = g->where ? g->where->runtime_class : NULL };

	return objects_add_amounts(m->objects, &p, g->resources, g->n_resources, out,
				   GPUQ_RESOURCES_MAX);
}

/* The site may count a resource as devices that other sites count by its name. MIG instances and words
 * of the dialects are counted as devices everywhere. */
const char *takes_overhead_device(const struct model *m, const char *runtime)
{
	const struct object_fact *f = objects_find(m->objects, OBJECT_RUNTIME, "", runtime);

	for (size_t i = 0; f && i < f->n_amounts; i++) {
		const char *name = f->amounts[i].name;

		if (gpuq_resource_kind(name) != GPUQ_RESOURCE_COUNTED ||
		    inventory_is_device(m->site, name))
			return name;
	}
	return NULL;
}
