#include "gpuqd/flow/admit/warn/volume_warn.h"

#include <inttypes.h>

void volume_warn(const struct model *m, const struct queue *q, const struct gpuq_spec *spec,
		 struct gpuq_buf *warnings)
{
	for (size_t i = 0; q && i < spec->n_groups; i++) {
		const struct gpuq_group *g = &spec->groups[i];

		for (size_t k = 0; g->pods_max > 1 && k < g->n_volumes; k++)
			if (g->volumes[k].claim &&
			    objects_is_one_pod(m->objects, model_queue_namespace(q),
					       g->volumes[k].claim))
				gpuq_buf_printf(warnings,
						"volume claim %s is ReadWriteOncePod: one pod at a "
						"time can be using it, and the job has "
						"%" PRId64 "; it stays pending\n",
						g->volumes[k].claim, g->pods_max);
	}
}
