/* The sum of the options: pods, devices, CPUs and memory of each pod. A pod corresponds to a
 * node; tasks are started inside it (gpuq-job(5), SCRIPTS). */
#include "libgpuq/spec/spec_int.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

#define JOB_GPUS_MAX (INT32_MAX / 1000) /* of all pods; the limit of each is checked with them */

void spec_opts_begin(struct spec_opts_state *st, struct gpuq_arena *a, struct gpuq_spec *spec,
		     const struct gpuq_spec_opts *opts, struct gpuq_buf *warnings)
{
	*st = (struct spec_opts_state){
		.arena = a,
		.spec = spec,
		.opts = opts,
		.warnings = warnings,
		.gpus_job_milli = -1,
		.gpus_pod_milli = -1,
		.gpus_task_milli = -1,
		.mem_bytes = -1,
		.mem_cpu_bytes = -1,
		.mem_gpu_bytes = -1,
		.cpu_milli = -1,
		.place = "",
	};
}

/* ---- the options ---- */

/* A number of nodes; k stands for 1024, as in sbatch. */
static bool nodes(const char **p, int64_t min, int64_t *out)
{
	if (!spec_digits(p, min > 1024 ? min / 1024 : 1, GPUQ_PODS_MAX, out))
		return false;
	if (**p == 'k' || **p == 'K') {
		*out *= 1024;
		++*p;
	}
	return *out >= min && *out <= GPUQ_PODS_MAX;
}

int spec_opt_nodes(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	const char *p = v;
	int64_t min, max;

	if (strpbrk(v, ",:") && strspn(v, "0123456789kK,:-") == strlen(v))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "'%.80s': lists and steps are not offered: a number, or a range "
				 "such as 2-8 for an elastic job",
				 v);
	if (!nodes(&p, 1, &min))
		return spec_opt_bad(err, "a number of pods (one a node) such as 4 or 2-8", v);
	max = min;
	if (*p == '-') {
		p++;
		if (!nodes(&p, min, &max))
			return spec_opt_bad(err, "a number of pods (one a node) such as 4 or 2-8",
					    v);
	}
	if (*p)
		return spec_opt_bad(err, "a number of pods (one a node) such as 4 or 2-8", v);
	st->pods_min = min;
	st->pods_max = max;
	return 0;
}

int spec_opt_ntasks(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_opt_count(v, 1, 1000000, "a number of tasks", &st->ntasks, err);
}

int spec_opt_ntasks_per_node(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_opt_count(v, 1, 100000, "a number of tasks", &st->ntasks_per_node, err);
}

int spec_opt_ntasks_per_gpu(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_opt_count(v, 1, 1000, "a number of tasks", &st->ntasks_per_gpu, err);
}

int spec_opt_cpus_per_gpu(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_opt_count(v, 1, 10000, "a number of CPUs", &st->cpus_per_gpu, err);
}

int spec_opt_cpus_per_task(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	return spec_opt_count(v, 1, 100000, "a number of CPUs", &st->cpus_per_task, err);
}

int spec_opt_cpus(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	int64_t milli;

	if (gpuq_milli_parse(v, &milli, NULL) < 0 || milli < 0)
		return spec_opt_bad(err, "CPUs of each pod such as 8 or 500m", v);
	st->cpu_milli = milli;
	return 0;
}

static int not_devices(const char *v, double asked, int64_t most, struct gpuq_err *err)
{
	char near[SPEC_NEAREST_ROOM];

	return gpuq_fail(
		err, GPUQ_EINVAL,
		"expected [TYPE:]NUMBER of devices such as 4, 0.5 or a100:4, not '%.80s'%s", v,
		spec_nearest_devices(asked, (double)most, near));
}

/* "4", "a100:4", "1g.10gb:1", "a100" -> devices, at most that many, with the type as flavor or MIG
 * profile. `0.5` is a part of a device. */
static int devices(struct spec_opts_state *st, const char *v, int64_t most, int64_t *milli,
		   struct gpuq_err *err)
{
	const char *colon = strrchr(v, ':'), *number = colon ? colon + 1 : v;
	const char *type = NULL;
	int64_t n = 1000;
	bool number_ok;

	if (strchr(v, ','))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "'%.80s': the pods of a group have one type: --flavor a100,v100 "
				 "takes either, groups of a job file take both",
				 v);
	if (colon)
		type = gpuq_arena_strndup(st->arena, v, (size_t)(colon - v));
	else if (!isdigit((unsigned char)*v) || spec_mig_ok(v))
		type = v;
	if (colon && !type)
		return gpuq_no_memory(err);
	number_ok = type == v || gpuq_milli_parse(number, &n, NULL) == 0;
	if (!number_ok || n < 0 || n > 1000 * most || (n < 1000 ? n % 10 : n % 1000))
		return not_devices(v, number_ok ? (double)n / 1000 : NAN, most, err);
	if (type) {
		struct gpuq_strlist *flavors = &st->spec->flavors;

		if (spec_mig_ok(type))
			return *milli = n,
			       spec_mig_parse(st->arena, type, &st->spec->groups[0], err);
		if (!spec_name_ok(type))
			return not_devices(v, NAN, most, err);
		flavors->items = gpuq_arena_calloc(st->arena, 1, sizeof(*flavors->items));
		if (!flavors->items)
			return gpuq_no_memory(err);
		flavors->items[0] = gpuq_arena_strdup(st->arena, type);
		flavors->n = 1;
		st->spec->flavor_rules = NULL;
		if (!flavors->items[0])
			return gpuq_no_memory(err);
	}
	*milli = n;
	return 0;
}

/* Devices from one source replace those of an earlier one: `-G 8` in the script and `-g 2` on
 * the command line do not multiply. */
static void new_devices(struct spec_opts_state *st)
{
	if (st->devices_level != st->level) {
		st->gpus_job_milli = st->gpus_pod_milli = st->gpus_task_milli = -1;
		st->devices_level = st->level;
	}
}

static void new_memory(struct spec_opts_state *st)
{
	st->mem_bytes = st->mem_cpu_bytes = st->mem_gpu_bytes = -1;
}

int spec_opt_gpus(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	new_devices(st);
	return devices(st, v, JOB_GPUS_MAX, &st->gpus_job_milli, err);
}

int spec_opt_gpus_per_node(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	new_devices(st);
	return devices(st, v, GPUQ_GPUS_PER_POD_MAX, &st->gpus_pod_milli, err);
}

int spec_opt_gpus_per_task(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	new_devices(st);
	return devices(st, v, GPUQ_GPUS_PER_POD_MAX, &st->gpus_task_milli, err);
}

/* Read a number; K, M, G and T stand for powers of 1024, as in sbatch. */
static bool amount(const char *text, int64_t *out)
{
	static const char units[] = "KMGT";
	const char *unit;

	if (!spec_digits(&text, 0, INT32_MAX, out))
		return false;
	unit = *text ? strchr(units, toupper((unsigned char)*text)) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		*out *= 1024;
	return !text[unit != NULL];
}

/* Take "nic:2" or "nic" as gres/nic of each pod: the daemon knows what the site maps it to. */
static int mapped_gres(struct spec_opts_state *st, const char *v, size_t n_name,
		       struct gpuq_err *err)
{
	const char *number = v[n_name] ? v + n_name + 1 : "1";
	struct gpuq_amount one = { .name = gpuq_arena_printf(st->arena, GPUQ_RESOURCE_GRES "%.*s",
							     (int)n_name, v) };

	if (!one.name)
		return gpuq_no_memory(err);
	if (gpuq_resource_kind(one.name) != GPUQ_RESOURCE_MAPPED || !amount(number, &one.count))
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"'%.80s': %.*s is no gpu: expected NAME:NUMBER with a name that gres of "
			"the site maps to a resource, or gpu[:TYPE]:NUMBER",
			v, (int)n_name, v);
	for (size_t i = 0; i < st->spec->n_groups; i++) {
		struct gpuq_group *g = &st->spec->groups[i];
		struct gpuq_amount *items =
			gpuq_arena_calloc(st->arena, g->n_resources + 1, sizeof(*items));

		if (!items)
			return gpuq_no_memory(err);
		if (g->n_resources)
			memcpy(items, g->resources, g->n_resources * sizeof(*items));
		items[g->n_resources] = one;
		g->resources = items;
		g->n_resources = gpuq_amounts_sort(items, g->n_resources + 1);
		if (g->n_resources > GPUQ_RESOURCES_MAX)
			return gpuq_fail(err, GPUQ_ERANGE, "expected at most %d resources",
					 GPUQ_RESOURCES_MAX);
	}
	return 0;
}

/* Forget the mapped kinds of an earlier source, as of devices: --gres says all of them. */
static void new_gres(struct spec_opts_state *st)
{
	for (size_t i = 0; st->gres_level != st->level && i < st->spec->n_groups; i++) {
		struct gpuq_group *g = &st->spec->groups[i];
		size_t kept = 0;

		for (size_t k = 0; k < g->n_resources; k++)
			if (gpuq_resource_kind(g->resources[k].name) != GPUQ_RESOURCE_MAPPED)
				g->resources[kept++] = g->resources[k];
		g->n_resources = kept;
	}
	st->gres_level = st->level;
}

/* One kind of a list: "gpu", "gpu:2", "gpu:a100:2"; "nic:1". */
static int one_gres(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	const char *rest = v + 3;
	const size_t n = strcspn(v, ":=");

	if (strncmp(v, "gres/", 5) == 0 || strncmp(v, "gres:", 5) == 0)
		return one_gres(st, v + 5, err);
	if (strcmp(v, "none") == 0)
		return st->gpus_pod_milli = 0, 0;
	if ((n == 5 && strncmp(v, "shard", n) == 0) || (n == 3 && strncmp(v, "mps", n) == 0))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "%.80s: part of a device is --gpus=0.5 or --gpu-memory=10G here",
				 v);
	if (strncmp(v, "gpu", 3) != 0 || (*rest && *rest != ':' && *rest != '='))
		return mapped_gres(st, v, n, err);
	if (!*rest)
		return st->gpus_pod_milli = 1000, 0;
	return devices(st, rest + 1, GPUQ_GPUS_PER_POD_MAX, &st->gpus_pod_milli, err);
}

int spec_opt_gres(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	struct gpuq_strlist kinds;
	size_t n_gpu = 0;
	int rc = 0;

	new_devices(st);
	new_gres(st);
	if (!strchr(v, ','))
		return one_gres(st, v, err);
	if (spec_split(st->arena, v, ',', &kinds) < 0)
		return gpuq_no_memory(err);
	for (size_t i = 0; rc == 0 && i < kinds.n; i++) {
		const char *kind = kinds.items[i];

		rc = one_gres(st, kind, err);
		if (strncmp(kind, "gres", 4) == 0 && (kind[4] == '/' || kind[4] == ':'))
			kind += 5;
		n_gpu += strncmp(kind, "gpu", 3) == 0 && strchr(":=", kind[3]);
		if (rc == 0 && n_gpu > 1)
			rc = gpuq_fail(err, GPUQ_EINVAL,
				       "%.80s: a pod has devices of one kind; several pods with "
				       "different ones are groups of a job file",
				       v);
	}
	return rc;
}

int spec_opt_mem(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	int64_t n;
	int rc = gpuq_slurm_mem_parse(v, &n, err);

	if (rc < 0)
		return rc;
	if (n == 0)
		spec_opt_warn(st, "mem", "0 means all memory of a node; memory is not counted");
	new_memory(st);
	st->mem_bytes = n;
	return 0;
}

int spec_opt_mem_per_cpu(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	int64_t n;
	int rc = gpuq_slurm_mem_parse(v, &n, err);

	if (rc < 0)
		return rc;
	new_memory(st);
	st->mem_cpu_bytes = n;
	return 0;
}

int spec_opt_mem_per_gpu(struct spec_opts_state *st, const char *v, struct gpuq_err *err)
{
	int64_t n;
	int rc = gpuq_slurm_mem_parse(v, &n, err);

	if (rc < 0)
		return rc;
	new_memory(st);
	st->mem_gpu_bytes = n;
	return 0;
}

/* ---- the sum ---- */

static int64_t ceil_div(int64_t n, int64_t d)
{
	return n / d + (n % d != 0);
}

/* How many pods, where that follows from tasks or from devices. */
static int pods_of(struct spec_opts_state *st, struct gpuq_group *g, struct gpuq_err *err)
{
	int64_t pods = 0;

	if (st->pods_min) {
		g->pods_min = st->pods_min;
		g->pods_max = st->pods_max;
		return 0;
	}
	if (st->ntasks && st->ntasks_per_node)
		pods = ceil_div(st->ntasks, st->ntasks_per_node);
	else if (st->gpus_job_milli > 0 && st->gpus_pod_milli > 0 &&
		 st->gpus_job_milli % st->gpus_pod_milli == 0)
		pods = st->gpus_job_milli / st->gpus_pod_milli;
	if (pods > (int64_t)GPUQ_PODS_MAX)
		return gpuq_fail(err, GPUQ_ERANGE, "expected at most %u pods, these are %lld",
				 GPUQ_PODS_MAX, (long long)pods);
	if (pods)
		g->pods_min = g->pods_max = pods;
	return 0;
}

static int devices_of(struct spec_opts_state *st, struct gpuq_group *g, int64_t tasks_per_pod,
		      struct gpuq_err *err)
{
	const int64_t pods = g->pods_min, most = INT64_C(1000) * GPUQ_GPUS_PER_POD_MAX;

	if (st->gpus_pod_milli >= 0) {
		if (st->gpus_job_milli >= 0 && st->gpus_job_milli != pods * st->gpus_pod_milli)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "--gpus: expected %lld pods times --gpus-per-node",
					 (long long)pods);
		g->gpus_milli = st->gpus_pod_milli;
	} else if (st->gpus_job_milli >= 0) {
		if (st->gpus_job_milli % pods || (pods > 1 && st->gpus_job_milli / pods % 1000))
			return gpuq_fail(
				err, GPUQ_EINVAL,
				"--gpus: expected a multiple of the %lld pods: each has the "
				"same number of devices",
				(long long)pods);
		if (st->gpus_job_milli / pods > most)
			return gpuq_fail(err, GPUQ_ERANGE,
					 "--gpus: expected at most %u devices of each pod, these "
					 "are %lld: the nearest is %lld",
					 GPUQ_GPUS_PER_POD_MAX,
					 (long long)(st->gpus_job_milli / pods / 1000),
					 (long long)(most / 1000 * pods));
		g->gpus_milli = st->gpus_job_milli / pods;
	} else if (st->gpus_task_milli >= 0) {
		if (st->gpus_task_milli && tasks_per_pod > most / st->gpus_task_milli)
			return gpuq_fail(err, GPUQ_ERANGE,
					 "--gpus-per-task: expected at most %u devices of each "
					 "pod, which has %lld tasks",
					 GPUQ_GPUS_PER_POD_MAX, (long long)tasks_per_pod);
		g->gpus_milli = st->gpus_task_milli * tasks_per_pod;
	}
	if (g->gpus_milli <= 0 && (g->mig || g->gpu_memory_bytes || g->gpu_cores))
		g->gpus_milli = 1000;
	return 0;
}

static int64_t gpus_of(const struct gpuq_group *g)
{
	return g->gpus_milli > 0 ? g->gpus_milli : 0;
}

/* --ntasks-per-gpu: as many tasks as the devices require, or with a number of tasks as many
 * devices as those require. Returns the tasks of each pod. */
static int64_t tasks_of_devices(struct spec_opts_state *st, struct gpuq_group *g, int64_t tasks)
{
	const bool counted = st->ntasks || st->ntasks_per_node;
	const bool named = st->gpus_job_milli >= 0 || st->gpus_pod_milli >= 0 ||
			   st->gpus_task_milli >= 0 || g->gpus_milli > 0;

	if (named && !counted && g->gpus_milli >= 1000)
		return st->ntasks_per_node = st->ntasks_per_gpu * (g->gpus_milli / 1000);
	if (!named && counted)
		g->gpus_milli = 1000 * ceil_div(tasks, st->ntasks_per_gpu);
	else if (!named)
		spec_opt_warn(st, "ntasks-per-gpu",
			      "of no effect without --ntasks or a number of devices");
	return tasks;
}

/* n units of each bytes; a product that does not fit is no size at all. */
static int times(int64_t n, int64_t each, const char *option, int64_t *out, struct gpuq_err *err)
{
	if (__builtin_mul_overflow(n, each, out))
		return gpuq_fail(err, GPUQ_ERANGE, "%s: more than can be counted", option);
	return 0;
}

int spec_opts_end(struct spec_opts_state *st, struct gpuq_err *err)
{
	struct gpuq_spec *s = st->spec;
	struct gpuq_group *g = &s->groups[0];
	int64_t tasks = 1;
	int rc;

	if (st->opts->context) {
		s->context = *st->opts->context;
		if (st->environ_set)
			s->context.environ = st->environ;
	}
	if (st->is_manifest || s->n_groups > 1)
		return 0; /* nothing else was let through */

	rc = pods_of(st, g, err);
	if (rc < 0)
		return rc;
	if (st->alike && g->pods_max > 1)
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"--constraint %.80s: one label for all nodes of a job is not offered: name "
			"it, or use | without brackets",
			st->alike);
	if (st->ntasks_per_node)
		tasks = st->ntasks_per_node;
	else if (st->ntasks)
		tasks = ceil_div(st->ntasks, g->pods_min);
	rc = devices_of(st, g, tasks, err);
	if (rc < 0)
		return rc;
	if (st->ntasks_per_gpu)
		tasks = tasks_of_devices(st, g, tasks);

	if (st->cpu_milli >= 0)
		g->cpu_milli = st->cpu_milli;
	else if (st->cpus_per_gpu && !st->cpus_per_task)
		g->cpu_milli = 1000 * st->cpus_per_gpu * ceil_div(gpus_of(g), 1000);
	else if (st->cpus_per_task || st->ntasks || st->ntasks_per_node)
		g->cpu_milli = 1000 * tasks * (st->cpus_per_task ? st->cpus_per_task : 1);

	if (st->mem_bytes >= 0)
		g->memory_bytes = st->mem_bytes;
	else if (st->mem_cpu_bytes >= 0)
		rc = times(ceil_div(g->cpu_milli > 0 ? g->cpu_milli : 1000, 1000),
			   st->mem_cpu_bytes, "--mem-per-cpu", &g->memory_bytes, err);
	else if (st->mem_gpu_bytes >= 0)
		rc = times(ceil_div(gpus_of(g), 1000), st->mem_gpu_bytes, "--mem-per-gpu",
			   &g->memory_bytes, err);
	if (rc < 0)
		return rc;
	if (st->mem_bytes >= 0)
		s->memory_per = NULL;
	else if (st->mem_cpu_bytes >= 0)
		s->memory_per = "cpu";
	else if (st->mem_gpu_bytes >= 0)
		s->memory_per = "gpu";

	if (st->ntasks || st->ntasks_per_node)
		s->ntasks = st->ntasks ? st->ntasks : g->pods_min * st->ntasks_per_node;
	if (st->ntasks_per_node)
		s->ntasks_per_node = st->ntasks_per_node;
	if (st->cpus_per_task)
		s->cpus_per_task = st->cpus_per_task;
	return 0;
}
