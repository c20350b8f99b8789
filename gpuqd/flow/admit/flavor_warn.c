#include "gpuqd/flow/admit/flavor_warn.h"

#include <string.h>

#define NAMES_MAX 63

void flavor_warn(const struct model *m, const struct gpuq_spec *spec, struct gpuq_buf *warnings)
{
	const struct gpuq_strlist *flavors = &spec->flavors;
	const char *names[NAMES_MAX + 1], *near;
	size_t n = 0;

	if (flavors->n == 0 || gpuq_spec_gpus_milli(spec) == 0)
		return;
	/* Nodes that can be requested are no mistake. */
	site_each(site_pool, m->site->pools, p)
		if (site_pool_grows(p) && gpuq_strlist_has(flavors, p->flavor))
			return;
	node_each(m, node) {
		size_t i = 0;

		if (node->gone || (node->n_devices == 0 && node->fact.n_mig == 0))
			continue;
		if (gpuq_strlist_has(flavors, node->flavor))
			return;
		while (i < n && strcmp(names[i], node->flavor) != 0)
			i++;
		if (i == n && n < NAMES_MAX)
			names[n++] = node->flavor;
	}
	names[n] = NULL;
	near = gpuq_nearest(flavors->items[0], names);
	gpuq_buf_adds(warnings, "no node has devices of flavor ");
	for (size_t i = 0; i < flavors->n; i++)
		gpuq_buf_printf(warnings, "%s%s", i ? " or " : "", flavors->items[i]);
	if (near)
		gpuq_buf_printf(warnings, " (did you mean %s?)", near);
	for (size_t i = 0; !near && i < n; i++)
		gpuq_buf_printf(warnings, "%s%s%s", i ? ", " : " (there are: ", names[i],
				i + 1 == n ? ")" : "");
	gpuq_buf_adds(warnings, ": the job is pending until one has\n");
}
