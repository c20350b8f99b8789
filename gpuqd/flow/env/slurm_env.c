#include "gpuqd/flow/env/slurm_env.h"

#include <inttypes.h>
#include <stdlib.h>

#include "libgpuq/buf.h"
#include "libgpuq/units.h"

/* The variables that have a counterpart of gpuq's. */
static const struct {
	const char *slurm, *ours;
} slurm_words[] = {
	{ "SLURM_ARRAY_JOB_ID", "GPUQ_ARRAY_JOB_ID" },
	{ "SLURM_ARRAY_TASK_COUNT", "GPUQ_ARRAY_TASK_COUNT" },
	{ "SLURM_ARRAY_TASK_ID", "GPUQ_ARRAY_TASK_ID" },
	{ "SLURM_ARRAY_TASK_MAX", "GPUQ_ARRAY_TASK_MAX" },
	{ "SLURM_ARRAY_TASK_MIN", "GPUQ_ARRAY_TASK_MIN" },
	{ "SLURM_ARRAY_TASK_STEP", "GPUQ_ARRAY_TASK_STEP" },
	{ "SLURM_CPUS_PER_TASK", "GPUQ_CPUS_PER_TASK" },
	{ "SLURM_JOB_ACCOUNT", "GPUQ_ACCOUNT" },
	{ "SLURM_JOB_NAME", "GPUQ_JOB_NAME" },
	{ "SLURM_JOB_NODELIST", "GPUQ_NODELIST" },
	{ "SLURM_JOB_NUM_NODES", "GPUQ_NNODES" },
	{ "SLURM_JOB_PARTITION", "GPUQ_QUEUE" },
	{ "SLURM_JOB_QOS", "GPUQ_QOS" },
	{ "SLURM_JOB_USER", "GPUQ_USER" },
	{ "SLURM_NNODES", "GPUQ_NNODES" },
	{ "SLURM_NODEID", "GPUQ_POD_INDEX" },
	{ "SLURM_NODELIST", "GPUQ_NODELIST" },
	{ "SLURM_NPROCS", "GPUQ_NTASKS" },
	{ "SLURM_NTASKS", "GPUQ_NTASKS" },
	{ "SLURM_NTASKS_PER_NODE", "GPUQ_NTASKS_PER_NODE" },
	{ "SLURM_RESTART_COUNT", "GPUQ_RESTART_COUNT" },
	{ "SLURM_SUBMIT_DIR", "GPUQ_SUBMIT_DIR" },
	{ "SLURM_TOPOLOGY_ADDR", "GPUQ_NODE_NAME" },
	{ "SLURMD_NODENAME", "GPUQ_NODE_NAME" },
};

static int64_t number_of(const struct pod_env *e, const char *key, int64_t otherwise)
{
	const char *text = pod_env_get(e, key);

	return text ? strtoll(text, NULL, 10) : otherwise;
}

/* Print a count that all n nodes have: "4", "4(x2)". */
static const char *for_each(const struct pod_env *e, int64_t count, int64_t n)
{
	const char *text = n > 1 ? gpuq_arena_printf(e->a, "%" PRId64 "(x%" PRId64 ")", count, n)
				 : gpuq_arena_printf(e->a, "%" PRId64, count);

	return text ? text : "";
}

static void set_for_each(struct pod_env *e, const char *key, int64_t count, int64_t n)
{
	pod_env_set(e, key, for_each(e, count, n));
}

/* Set how many tasks each node has, the last one perhaps fewer: "4(x2),1". */
static void set_tasks_of_nodes(struct pod_env *e, int64_t n_tasks, int64_t per_pod, int64_t n_pods)
{
	const int64_t full = per_pod ? n_tasks / per_pod : 0;

	if (full <= 0 || full >= n_pods || n_tasks % per_pod == 0) {
		set_for_each(e, "SLURM_TASKS_PER_NODE", per_pod, n_pods);
		return;
	}
	pod_env_set(e, "SLURM_TASKS_PER_NODE",
		    gpuq_arena_printf(e->a, "%s,%" PRId64, for_each(e, per_pod, full),
				      n_tasks % per_pod));
}

static void set_tasks(struct pod_env *e, const struct slurm_env_job *j)
{
	const int64_t per_pod = number_of(e, "GPUQ_NTASKS_PER_NODE", 1);
	const int64_t n_tasks = number_of(e, "GPUQ_NTASKS", 1);
	const int64_t first = number_of(e, "GPUQ_POD_INDEX", 0) * per_pod;
	struct gpuq_buf ids = GPUQ_BUF_INIT;

	set_tasks_of_nodes(e, n_tasks, per_pod, j->n_pods);
	pod_env_set(e, "SLURM_LOCALID", "0");
	pod_env_set_int(e, "SLURM_PROCID", first);
	for (int64_t i = first; i < first + per_pod && i < n_tasks && ids.len < 4096; i++)
		gpuq_buf_printf(&ids, "%s%" PRId64, ids.len ? "," : "", i);
	pod_env_set(e, "SLURM_GTIDS", gpuq_arena_strdup(e->a, ids.len ? gpuq_buf_str(&ids) : "0"));
	gpuq_buf_done(&ids);
	pod_env_set(e, "SLURM_DISTRIBUTION", "block");
}

/* Set cores and memory. A pod without counted cores has those of its tasks, at least one. */
static void set_amounts(struct pod_env *e, const struct slurm_env_job *j)
{
	const struct gpuq_group *g = j->group;
	const int64_t of_task = j->spec->cpus_per_task ? j->spec->cpus_per_task : 1;
	const int64_t cpus = g->cpu_milli ? (g->cpu_milli + 999) / 1000
					  : of_task * number_of(e, "GPUQ_NTASKS_PER_NODE", 1);
	int64_t mib;
	const char *memory = gpuq_spec_memory_variable(j->spec, g, j->n_devices, &mib);

	pod_env_set_int(e, "SLURM_CPUS_ON_NODE", cpus);
	set_for_each(e, "SLURM_JOB_CPUS_PER_NODE", cpus, j->n_pods);
	if (memory)
		pod_env_set_int(e, memory, mib);
	if (!j->n_devices) /* Slurm sets none of these then, and programs ask whether they are set */
		return;
	pod_env_set(e, "SLURM_GPUS_ON_NODE", pod_env_get(e, "GPUQ_GPUS"));
	pod_env_set(e, "SLURM_JOB_GPUS", pod_env_get(e, "GPUQ_DEVICES"));
	pod_env_set_int(e, "SLURM_GPUS", (int64_t)j->n_devices * j->n_pods);
	pod_env_set_int(e, "SLURM_GPUS_PER_NODE", j->n_devices);
	if (g->cpu_milli)
		pod_env_set_int(e, "SLURM_CPUS_PER_GPU", g->cpu_milli / 1000 / j->n_devices);
}

static void set_licenses(struct pod_env *e, const struct gpuq_spec *spec)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	for (size_t i = 0; i < spec->licenses.n; i++)
		gpuq_buf_printf(&b, "%s%s:%s", i ? "," : "", spec->licenses.keys[i],
				spec->licenses.vals[i]);
	if (b.len)
		pod_env_set(e, "SLURM_JOB_LICENSES", gpuq_arena_strdup(e->a, gpuq_buf_str(&b)));
	gpuq_buf_done(&b);
}

static void set_depends(struct pod_env *e, const struct gpuq_spec *spec)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	for (size_t i = 0; i < spec->n_depends; i++) {
		const char *one = gpuq_depend_print(e->a, &spec->depends[i]);

		gpuq_buf_printf(&b, "%s%s", i ? (spec->depends_any ? "?" : ",") : "",
				one ? one : "");
	}
	if (b.len)
		pod_env_set(e, "SLURM_JOB_DEPENDENCY", gpuq_arena_strdup(e->a, gpuq_buf_str(&b)));
	gpuq_buf_done(&b);
}

void slurm_env_fill(struct pod_env *e, const struct slurm_env_job *j)
{
	const struct gpuq_spec *spec = j->spec;

	for (size_t i = 0; i < sizeof(slurm_words) / sizeof(slurm_words[0]); i++)
		pod_env_set(e, slurm_words[i].slurm, pod_env_get(e, slurm_words[i].ours));
	pod_env_set_int(e, "SLURM_JOB_ID", j->number);
	pod_env_set_int(e, "SLURM_JOBID", j->number);
	pod_env_set(e, "SLURM_CLUSTER_NAME", "gpuq");
	pod_env_set_int(e, "SLURM_JOB_UID", j->uid);
	pod_env_set_int(e, "SLURM_JOB_GID", j->gid);
	pod_env_set_int(e, "SLURM_JOB_START_TIME", j->start_us / GPUQ_US_PER_S);
	if (j->limit_us != GPUQ_UNLIMITED)
		pod_env_set_int(e, "SLURM_JOB_END_TIME",
				(j->start_us + j->limit_us) / GPUQ_US_PER_S);
	pod_env_set(e, "SLURM_SUBMIT_HOST", spec->context.host);
	pod_env_set(e, "SLURM_JOB_RESERVATION", spec->reservation);
	pod_env_set(e, "SLURM_JOB_COMMENT", spec->comment);
	pod_env_set(e, "SLURM_TOPOLOGY_ADDR_PATTERN", "node");
	set_tasks(e, j);
	set_amounts(e, j);
	set_licenses(e, spec);
	set_depends(e, spec);
}
