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
