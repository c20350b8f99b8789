/* PyTorchJob (kubeflow.org/v1): a gang of a master and workers. The master comes first, and gpuqd's
 * rendezvous variables are the operator's: MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, PET_*. */
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/kinds/kubeflow.h"

#define PORT_NAME "pytorchjob-port"
#define PORT 23456 /* of the operator where the template names none */

static const char *const keys[] = { "pytorchReplicaSpecs", "runPolicy", "elasticPolicy",
				    "nprocPerNode", NULL };
static const char *const roles[] = { "Master", "Worker", NULL };

/* The containerPort named pytorchjob-port, else the operator's. */
static int64_t port_of(const struct gpuq_val *tmpl)
{
	const struct gpuq_val *list = manifest_list(gpuq_get(tmpl, "spec"), "containers");

	for (size_t i = 0; list && i < list->n; i++) {
		const struct gpuq_val *ports = manifest_list(list->items[i], "ports");

		for (size_t k = 0; ports && k < ports->n; k++)
			if (strcmp(gpuq_get_str(ports->items[k], "name", ""), PORT_NAME) == 0)
				return gpuq_get_int(ports->items[k], "containerPort", PORT);
	}
	return PORT;
}

static int add_group(struct manifest *m, const char *role, const struct replica *rep,
		     const char *port, const char *nproc, struct gpuq_group *g)
{
	int rc = kubeflow_group(m, role, rep, g);

	if (rc == 0)
		rc = manifest_env(m, g, "MASTER_PORT", port);
	if (rc == 0)
		rc = manifest_env(m, g, "PYTHONUNBUFFERED", "1");
	if (rc == 0 && nproc)
		rc = manifest_env(m, g, "PET_NPROC_PER_NODE", nproc);
	return rc;
}

static int check_names(struct manifest *m, const char *role, const struct replica *rep,
		       const char *prefix)
{
	const size_t mark = gpuq_reader_enter(m->r, role);
	int rc = 0;

	gpuq_reader_enter(m->r, "template");
	if (m->name)
		rc = manifest_names(m, gpuq_get(rep->v, "template"),
				    gpuq_arena_printf(m->r->arena, "%s-%s-", m->name, prefix));
	if (rc == 0)
		gpuq_reader_leave(m->r, mark);
	return rc;
}

static int read_roles(struct manifest *m, const struct gpuq_val *map, struct replica rep[2])
{
	int rc = manifest_keys(m, map, roles);

	for (int i = 0; rc == 0 && i < 2; i++)
		rc = kubeflow_replica(m, map, roles[i], &rep[i]);
	if (rc < 0)
		return rc;
	if (rep[0].v && rep[0].replicas != 1) {
		gpuq_reader_enter(m->r, "Master");
		gpuq_reader_enter(m->r, "replicas");
		return spec_fail(m->r, gpuq_get(rep[0].v, "replicas"), GPUQ_ERANGE, "expected 1");
	}
	for (int i = 0; i < 2; i++)
		if (rep[i].replicas == 0)
			rep[i].v = NULL;
	if (!rep[0].v && !rep[1].v)
		return spec_fail(m->r, map, GPUQ_EINVAL, "expected Master or Worker, or both");
	return 0;
}

int kind_pytorchjob(struct manifest *m)
{
	const struct gpuq_val *map, *nproc = gpuq_get(m->spec, "nprocPerNode");
	struct replica rep[2];
	int64_t backoff;
	const char *port, *per_node = NULL;
	size_t mark, n = 0;
	int rc = manifest_keys(m, m->spec, keys);

	if (rc == 0)
		rc = kubeflow_run_policy(m, &backoff);
	if (rc == 0)
		rc = manifest_refuse(m, m->spec, "elasticPolicy",
				     "its rendezvous is the operator's: submit a job file with "
				     "pods: {min: M, max: N}, gpuq-job(5)");
	if (rc == 0 && nproc && nproc->type != GPUQ_NULL) {
		per_node = spec_scalar(m->r->arena, nproc);
		if (!per_node)
			rc = manifest_refuse(m, m->spec, "nprocPerNode",
					     "expected a number, auto, gpu or cpu");
	}
	if (rc == 0)
		rc = spec_want_type(m->r, m->spec, "pytorchReplicaSpecs", GPUQ_MAP, &map);
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "pytorchReplicaSpecs");
	if (!map)
		return spec_fail(m->r, m->spec, GPUQ_EINVAL,
				 "expected a map with Master or Worker, or both");
	rc = read_roles(m, map, rep);
	for (int i = 0; rc == 0 && i < 2; i++)
		for (int k = 0; rc == 0 && rep[i].v && k < 2; k++)
			rc = check_names(m, roles[i], &rep[i], k ? "worker" : "master");
	if (rc == 0)
		rc = manifest_groups(m, (rep[0].v != NULL) + (rep[1].v != NULL));
	if (rc < 0)
		return rc;
	port = gpuq_arena_printf(
		m->r->arena, "%lld",
		(long long)port_of(gpuq_get(rep[0].v ? rep[0].v : rep[1].v, "template")));
	for (int i = 0; rc == 0 && i < 2; i++)
		if (rep[i].v)
			rc = add_group(m, roles[i], &rep[i], port, per_node, &m->out->groups[n++]);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(m->r, mark);
	return kubeflow_retry(m, rep[rep[1].v ? 1 : 0].policy, backoff);
}
