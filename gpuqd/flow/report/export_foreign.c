#include "gpuqd/flow/report/export_foreign.h"

static uint32_t lost_devices(const struct export *x, const struct snap_node *n, uint8_t *lost)
{
	int64_t foreign = n->foreign_gpus;
	uint32_t count = 0;

	for (uint32_t d = n->n_devices; d-- > 0;) {
		const struct snap_device *dev = &x->s->devices[n->device_first + d];

		lost[d] = !dev->healthy || dev->foreign_milli > 0;
		/* Which of the devices are in foreign use is not known: take the last free ones. */
		if (!lost[d] && foreign > 0 && dev->shares == 0) {
			lost[d] = 1;
			foreign--;
		}
		count += lost[d] && dev->shares == 0;
	}
	return count;
}

bool export_is_shared(const struct export *x, const struct snap_node *n)
{
	uint8_t lost[SNAP_DEVICES_MAX];

	return lost_devices(x, n, lost) > 0;
}

void export_foreign_queue(struct export *x)
{
	struct gpuq_val *v = export_add(x, "queues");

	export_str(x, v, "name", EXPORT_FOREIGN);
	export_int(x, v, "quota", -1);
	export_int(x, v, "weight", 0);
}

void export_foreign(struct export *x, const struct snap_node *n)
{
	uint8_t lost[SNAP_DEVICES_MAX];
	struct gpuq_val *v, *list, *t, *devices;
	const uint32_t count = lost_devices(x, n, lost);

	if (count == 0)
		return;
	v = export_add(x, "running");
	list = gpuq_list(x->a);
	t = gpuq_add(x->a, list, gpuq_map(x->a));
	devices = gpuq_list(x->a);
	export_str(x, v, "job", gpuq_arena_printf(x->a, EXPORT_FOREIGN "-%s", n->name));
	export_str(x, v, "queue", EXPORT_FOREIGN);
	export_put(x, v, "preemptible", gpuq_bool(x->a, false));
	export_int(x, v, "submit", 0);
	export_int(x, v, "start", 0);
	export_str(x, t, "node", n->name);
	export_int(x, t, "gpus", count);
	for (uint32_t d = 0; d < n->n_devices; d++)
		if (lost[d] && x->s->devices[n->device_first + d].shares == 0)
			gpuq_add(x->a, devices, gpuq_int(x->a, d));
	export_put(x, t, "gpu_index", devices);
	export_put(x, v, "tasks", list);
}
