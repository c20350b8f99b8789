/* TrainJob (trainer.kubeflow.org): its pods are described by a runtime in the cluster, which gpuq does not
 * read. One of those that Kubeflow Trainer ships, torch-distributed, adds nothing but torchrun's variables
 * to the trainer's container: such a job is the JobSet that the operator would make. */
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/kinds/manifest_int.h"
#include "libgpuq/units.h"

#define NODE "node" /* the operator's name of the job and of its container */

static const char *const plain_runtime = "torch-distributed";

static const char *const keys[] = {
	"runtimeRef",       "initializer", "trainer",     "runtimePatches", "podTemplateOverrides",
	"podSpecOverrides", "labels",      "annotations", "suspend",        "activeDeadlineSeconds",
	"managedBy",        NULL
};
static const char *const ref_keys[] = { "name", "kind", "apiGroup", NULL };
static const char *const trainer_keys[] = {
	"image", "command", "args", "env", "numNodes", "resourcesPerNode", "numProcPerNode", NULL
};
/* Members of the trainer, and their names in a container. */
static const struct {
	const char *from, *to;
	enum gpuq_type type;
} parts[] = {
	{ "image", "image", GPUQ_STR },
	{ "command", "command", GPUQ_LIST },
	{ "args", "args", GPUQ_LIST },
	{ "env", "env", GPUQ_LIST },
	{ "resourcesPerNode", "resources", GPUQ_MAP },
};

/* Refuse a runtime whose pods are not known. */
static int read_runtime(struct manifest *m)
{
	const struct gpuq_val *ref = gpuq_get(m->spec, "runtimeRef");
	const char *name = gpuq_get_str(ref, "name", "");
	const char *kind = gpuq_get_str(ref, "kind", "ClusterTrainingRuntime");
	const size_t mark = gpuq_reader_enter(m->r, "runtimeRef");
	int rc = ref && ref->type == GPUQ_MAP ? manifest_keys(m, ref, ref_keys) : 0;

	if (rc < 0)
		return rc;
	if (strcmp(name, plain_runtime) != 0 || strcmp(kind, "ClusterTrainingRuntime") != 0)
		return spec_fail(
			m->r, ref ? ref : m->spec, GPUQ_EINVAL,
			"the pods of a TrainJob are described by the runtime %.63s in the cluster, "
			"which gpuq does not read: submit a JobSet such as the runtime's template, "
			"or a job file with image, command and pods: N",
			*name ? name : "that it names");
	spec_warn(m->r, m->warnings, ref,
		  "the runtime %s is taken as Kubeflow Trainer ships it: a container, and the "
		  "variables of torchrun",
		  plain_runtime);
	gpuq_reader_leave(m->r, mark);
	return 0;
}

/* Refuse all that would change the pods of the runtime. */
static int refuse_others(struct manifest *m)
{
	static const char *const patches[] = { "runtimePatches", "podTemplateOverrides",
					       "podSpecOverrides", NULL };
	int rc =
		manifest_refuse(m, m->spec, "initializer",
				"gpuqd starts no initializers: submit a job that fetches the data, "
				"and this one with --dependency");

	for (int i = 0; rc == 0 && patches[i]; i++)
		rc = manifest_refuse(m, m->spec, patches[i],
				     "gpuq does not patch a runtime: submit a JobSet, whose "
				     "template says it");
	if (rc < 0)
		return rc;
	manifest_unused(m, m->spec, "labels", "is not used: pods have those of their job");
	manifest_unused(m, m->spec, "annotations", "is not used: pods have those of their job");
	return 0;
}

static bool has_devices(const struct gpuq_val *map)
{
	for (size_t i = 0; map && map->type == GPUQ_MAP && i < map->n; i++)
		if (strstr(map->pairs[i].key, "gpu") || strstr(map->pairs[i].key, "GPU"))
			return true;
	return false;
}

/* Read numProcPerNode as torchrun takes it. auto is one process for each device, else for each CPU. */
static int read_processes(struct manifest *m, const struct gpuq_val *trainer, const char **out)
{
	static const char *const words[] = { "auto", "cpu", "gpu", NULL };
	const struct gpuq_val *v = gpuq_get(trainer, "numProcPerNode");
	const struct gpuq_val *resources = gpuq_get(trainer, "resourcesPerNode");
	const struct gpuq_val *limits = gpuq_get(resources, "limits");
	const struct gpuq_val *requests = gpuq_get(resources, "requests");
	const struct gpuq_val *cpu = gpuq_get(limits, "cpu");
	const char *word = "auto";
	int64_t n = 0, milli;
	int rc;

	if (v && v->type != GPUQ_STR && v->type != GPUQ_NULL) {
		rc = spec_want_int(m->r, trainer, "numProcPerNode", 1, INT32_MAX, &n);
		*out = rc == 0 ? gpuq_arena_printf(m->r->arena, "%lld", (long long)n) : NULL;
		return rc;
	}
	rc = manifest_word(m, trainer, "numProcPerNode", words, &word);
	if (rc < 0)
		return rc;
	*out = word;
	/* gpuqd gives the number of the devices itself. */
	if (strcmp(word, "cpu") != 0 && (has_devices(limits) || has_devices(requests)))
		*out = NULL;
	if (*out == NULL || strcmp(word, "gpu") == 0)
		return 0;
	cpu = cpu ? cpu : gpuq_get(requests, "cpu");
	if (cpu && spec_scalar(m->r->arena, cpu) &&
	    gpuq_milli_parse(spec_scalar(m->r->arena, cpu), &milli, NULL) == 0)
		*out = gpuq_arena_printf(m->r->arena, "%lld",
					 (long long)(milli > 1000 ? (milli + 999) / 1000 : 1));
	return 0;
}

/* Make the container of the trainer, at its place in the file. */
static int make_container(struct manifest *m, const struct gpuq_val *trainer, struct gpuq_val **out)
{
	struct gpuq_arena *a = m->r->arena;
	struct gpuq_val *c = gpuq_map(a);

	gpuq_put(a, c, "name", gpuq_str(a, NODE));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct gpuq_val *v;
		int rc = spec_want_type(m->r, trainer, parts[i].from, parts[i].type, &v);

		if (rc < 0)
			return rc;
		if (v)
			gpuq_put(a, c, parts[i].to, gpuq_val_copy(a, v));
	}
	if (!gpuq_val_ok(c))
		return gpuq_no_memory(m->r->err);
	c->at = trainer->at;
	if (!*gpuq_get_str(c, "image", ""))
		return spec_fail(m->r, trainer, GPUQ_EINVAL,
				 "expected image: gpuq does not know the one of the runtime");
	if (!manifest_list(c, "command") && !manifest_list(c, "args"))
		return spec_fail(
			m->r, trainer, GPUQ_EINVAL,
			"expected command or args: gpuq does not know those of the runtime");
	*out = c;
	return 0;
}

/* Return the JobSet of the runtime, with this container and this many pods. */
static struct gpuq_val *make_jobset(struct manifest *m, struct gpuq_val *container, int64_t nodes)
{
	struct gpuq_arena *a = m->r->arena;
	struct gpuq_val *top = gpuq_map(a),
			*jobs = gpuq_put(a, top, "replicatedJobs", gpuq_list(a));
	struct gpuq_val *job = gpuq_map(a), *spec, *pod;

	gpuq_put(a, job, "name", gpuq_str(a, NODE));
	spec = gpuq_put(a, gpuq_put(a, job, "template", gpuq_map(a)), "spec", gpuq_map(a));
	gpuq_put(a, spec, "parallelism", gpuq_int(a, nodes));
	gpuq_put(a, spec, "completions", gpuq_int(a, nodes));
	pod = gpuq_put(a, gpuq_put(a, spec, "template", gpuq_map(a)), "spec", gpuq_map(a));
	gpuq_add(a, gpuq_put(a, pod, "containers", gpuq_list(a)), container);
	gpuq_add(a, jobs, job);
	return top && gpuq_val_ok(top) ? top : NULL;
}

/* Set the operator's variables; those that gpuqd sets in a gang are replaced by gpuqd's. */
static int set_variables(struct manifest *m, int64_t nodes, const char *processes)
{
	const struct {
		const char *key, *value;
	} alone[] = { { "PET_NNODES", "1" },
		      { "PET_NODE_RANK", "0" },
		      { "PET_MASTER_ADDR", "127.0.0.1" },
		      { "PET_MASTER_PORT", "29500" } };
	struct gpuq_group *g = &m->out->groups[0];
	int rc = processes ? manifest_env(m, g, "PET_NPROC_PER_NODE", processes) : 0;

	for (size_t i = 0; nodes == 1 && rc == 0 && i < sizeof(alone) / sizeof(alone[0]); i++)
		rc = manifest_env(m, g, alone[i].key, alone[i].value);
	if (rc == 0 && nodes == 1 && !processes && g->gpus_milli > 0)
		rc = manifest_env(m, g, "PET_NPROC_PER_NODE", "$(GPUQ_GPUS)");
	return rc;
}

int kind_trainjob(struct manifest *m)
{
	const struct gpuq_val *trainer, *spec = m->spec;
	struct gpuq_val *container = NULL;
	const char *processes = NULL;
	int64_t nodes = 1, seconds = 0;
	size_t mark;
	int rc = manifest_keys(m, spec, keys);

	if (rc == 0)
		rc = read_runtime(m);
	if (rc == 0)
		rc = refuse_others(m);
	if (rc == 0)
		rc = spec_want_int(m->r, spec, "activeDeadlineSeconds", 1, INT32_MAX, &seconds);
	if (rc == 0)
		rc = spec_want_type(m->r, spec, "trainer", GPUQ_MAP, &trainer);
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "trainer");
	if (!trainer)
		return spec_fail(m->r, spec, GPUQ_EINVAL,
				 "expected a map with image, command and numNodes");
	rc = manifest_keys(m, trainer, trainer_keys);
	if (rc == 0)
		rc = spec_want_int(m->r, trainer, "numNodes", 1, GPUQ_PODS_MAX, &nodes);
	if (rc == 0)
		rc = read_processes(m, trainer, &processes);
	if (rc == 0)
		rc = make_container(m, trainer, &container);
	if (rc < 0)
		return rc;
	gpuq_reader_leave(m->r, mark);
	m->spec = make_jobset(m, container, nodes);
	rc = m->spec ? kind_jobset(m) : gpuq_no_memory(m->r->err);
	m->spec = spec;
	if (rc < 0)
		return rc;
	manifest_limit(m, seconds);
	return set_variables(m, nodes, processes);
}
