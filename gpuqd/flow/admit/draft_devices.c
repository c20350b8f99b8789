#include "gpuqd/flow/admit/draft_devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/snapshot/choices/snapshot_choices.h"
#include "gpuqd/state/model.h"

/* Collect the largest that the nodes of a backend offer; those that are away for now count. */
static void shape_of(void *arg, const struct backend *b, struct backend_shape *out)
{
	const struct model *m = arg;

	for (const struct node *n = m->nodes; n; n = n->hh.next) {
		if (n->gone || n->n_devices == 0 || n->backend != b || n->closed)
			continue;
		out->n_nodes++;
		for (uint32_t d = 0; d < n->n_devices; d++)
			if (n->devices[d].memory_mib > out->device_mib)
				out->device_mib = n->devices[d].memory_mib;
	}
}

/* True if a part can also be had on a node whose devices no system of ours allocates. */
static bool any_unnamed(const struct model *m)
{
	for (const struct node *n = m->nodes; n; n = n->hh.next)
		if (!n->gone && n->n_devices && !n->backend)
			return true;
	return false;
}

/* Append what is not limited where the group may run, isolated so much at least. */
static void warn_unlimited(const struct model *m, const struct gpuq_group *g, int isolation,
			   struct gpuq_buf *out)
{
	bool memory_only = false, soft = false;

	for (const struct node *n = m->nodes; n; n = n->hh.next) {
		const struct backend *b = n->gone || n->n_devices == 0 ? NULL : n->backend;

		/* One that isolates too little is not used. */
		if (!b || (int)model_node_isolation(n, true) < isolation)
			continue;
		memory_only |= b->by_memory && b->takes(g);
		soft |= strcmp(b->word, "gpu-manager") == 0;
	}
	/* Devices that are named are given under that name only. */
	if (memory_only && !gpuq_group_device(g) && (g->gpus_milli % 1000 || g->gpu_cores > 0))
		gpuq_buf_printf(
			out,
			"group %s: where gpushare allocates devices, cores are not limited, and "
			"the job gets %s of a device\n",
			g->name,
			g->gpu_memory_bytes ? "the memory it requests" : "its part of the memory");
	if (g->gpu_cores_limit && !soft)
		gpuq_buf_printf(
			out,
			"group %s: gpu_cores.limit has an effect with gpu-manager only, which no "
			"node has\n",
			g->name);
}

static bool is_offered(const struct model *m, const char *resource)
{
	node_each(m, n)
		if ((n->fact.device && strcmp(n->fact.device, resource) == 0) ||
		    gpuq_amounts_get(n->fact.resources, n->fact.n_resources, resource) > 0)
			return true;
	return false;
}

/* Append what instances cannot do, once for a job of which several belong together. */
static bool warn_instances(const struct gpuq_group *g, struct gpuq_buf *out)
{
	if ((!g->mig && !g->mig_ok) || (g->pods_max <= 1 && g->gpus_milli < 2000))
		return false;
	gpuq_buf_printf(out,
			"group %s: MIG instances have no peer-to-peer access to one another, by "
			"NVLink or PCIe, and a CUDA process uses one of them only\n",
			g->name);
	return true;
}

static bool any_instance(const struct model *m, const struct gpuq_group *g)
{
	for (const struct node *n = g->mig_ok ? m->nodes : NULL; n; n = n->hh.next)
		if (!n->gone && snapshot_choices_on(m, n, g))
			return true;
	return false;
}

/* Name the claims by which the devices of a resource are had that no kubelet offers. */
static void warn_extended(const struct model *m, const struct gpuq_group *g, struct gpuq_buf *out)
{
	const bool whole = g->gpus_milli >= 1000 && !gpuq_group_claimed(g) && !gpuq_group_device(g);

	for (size_t i = 0; i < g->n_resources + whole; i++) {
		const char *name = i < g->n_resources ? g->resources[i].name : GPUQ_RESOURCE_GPU;
		const struct dra_class *c = dra_class_of_resource(objects_dra(m->objects), name);

		if (c && !is_offered(m, name))
			gpuq_buf_printf(out,
					"group %s: no node offers %s; its devices are those of "
					"DeviceClass %s, which are allocated by claims: [{name: "
					"gpu, class: %s}]\n",
					g->name, name, c->name, c->name);
	}
}

int draft_devices(const struct model *m, const struct queue *q, const struct gpuq_spec *spec,
		  struct gpuq_buf *warnings, struct gpuq_err *err)
{
	const int of_queue = (int)model_queue_isolation(q);
	const int isolation = spec->isolation > of_queue ? spec->isolation : of_queue;
	bool warned = false;
	char path[48];

	for (size_t i = 0; i < spec->n_groups; i++) {
		const struct gpuq_group *g = &spec->groups[i];
		struct gpuq_err why = GPUQ_ERR_INIT;
		int rc;

		warn_extended(m, g, warnings);
		warned = warned || warn_instances(g, warnings);
		if (g->mig || g->gpus_milli <= 0 || gpuq_group_claimed(g))
			continue;
		rc = any_unnamed(m) || any_instance(m, g)
			     ? 0
			     : backend_validate(g, shape_of, (void *)(uintptr_t)m, &why);
		if (rc != 0) {
			snprintf(path, sizeof(path), "groups[%zu]", i);
			return gpuq_fail_field(err, rc, path, "%s: %s", g->name, why.text);
		}
		warn_unlimited(m, g, isolation, warnings);
	}
	return 0;
}
