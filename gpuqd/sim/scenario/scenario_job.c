#include "gpuqd/sim/scenario/scenario_int.h"

#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/resource.h"

/* Jobs and their tasks. */

static const char *const preempt_modes[] = { "requeue", "cancel", NULL };
static const char *const depend_types[] = { "after",     "afterany",  "afterok", "afternotok",
					    "aftercorr", "singleton", NULL };

static const struct gpuq_field toleration_fields[] = {
	STR(sc_toleration, "key", key, "of the taint"),
	STR(sc_toleration, "operator", op, "Equal or Exists"),
	STR(sc_toleration, "value", value, "of the taint"),
	STR(sc_toleration, "effect", effect, "of the taint"),
	{ 0 },
};

static void toleration_defaults(void *obj)
{
	*(struct sc_toleration *)obj = (struct sc_toleration){ "", "", "", "Equal" };
}

static const struct gpuq_schema toleration_schema = {
	.name = "toleration",
	.size = sizeof(struct sc_toleration),
	.fields = toleration_fields,
	.defaults = toleration_defaults,
};

/* Read the profile of an instance, or a list of those of which any does. */
static int read_profiles(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct sc_tasks *t = (void *)((char *)out - offsetof(struct sc_tasks, mig));
	const size_t n = v->type == GPUQ_LIST ? v->n : 1;
	const char **names = gpuq_arena_calloc(r->arena, n + 1, sizeof(*names));

	if (!names)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	if (n < 1 || n > GPUQ_MIG_PROFILES_MAX)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "mig: expected 1 to %u profiles",
					GPUQ_MIG_PROFILES_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct gpuq_val *item = v->type == GPUQ_LIST ? v->items[i] : v;

		if (item->type != GPUQ_STR || !*item->s)
			return gpuq_reader_fail(r, item, GPUQ_EINVAL,
						"mig: expected a profile such as 1g.10gb, or a "
						"list of such");
		names[i] = item->s;
		for (size_t k = 0; k < i; k++)
			if (gpuq_profile_same(names[k], names[i]))
				return gpuq_reader_fail(r, item, GPUQ_EINVAL,
							"mig: expected each profile once: %.40s",
							names[i]);
	}
	t->mig = names[0];
	t->mig_more = (struct gpuq_strlist){ names + 1, n - 1 };
	return 0;
}

static const struct gpuq_custom profiles = { read_profiles, NULL };

static const struct gpuq_field tasks_fields[] = {
	NUM(sc_tasks, "count", count, "number of identical tasks"),
	STR(sc_tasks, "node", node, "node of a running task"),
	NUM(sc_tasks, "gpus", gpus, "devices; 0.5 is half of one"),
	{ .key = "gpu_index",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &scenario_indexes,
	  .offset = offsetof(struct sc_tasks, gpu_index),
	  .doc = "devices of a running task" },
	NUM(sc_tasks, "gpu_mem_mb", gpu_mem_mb, "memory of one device"),
	NUM(sc_tasks, "cpu", cpu, "thousandths of a core"),
	NUM(sc_tasks, "mem_mb", mem_mb, "memory"),
	{ .key = "mig",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &profiles,
	  .form = "name or list of names",
	  .offset = offsetof(struct sc_tasks, mig),
	  .doc = "profile of an instance, or several of which any does" },
	BOOL(sc_tasks, "mig_ok", mig_ok, "an instance that has gpu_mem_mb does as well"),
	MAP(sc_tasks, "resources", resources, "countable resources by name"),
	NUM(sc_tasks, "rank", rank, "lower starts first and is preempted last"),
	STR(sc_tasks, "role", role, "its role in the job"),
	STR(sc_tasks, "group", group, "its sub-group"),
	BOOL(sc_tasks, "releasing", releasing, "whether it is already signalled to end"),
	MAP(sc_tasks, "selector", selector, "required node labels"),
	MANY(sc_tasks, "tolerations", tolerations, &toleration_schema, "tolerated taints"),
	{ 0 },
};

static void tasks_defaults(void *obj)
{
	((struct sc_tasks *)obj)->count = 1000;
}

static int tasks_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_tasks *t = obj;
	const struct gpuq_val *gpus = gpuq_get(v, "gpus");

	if (t->gpus == 0 && gpus && gpus->type == GPUQ_REAL && gpus->d != 0)
		return gpuq_reader_fail(r, gpus, GPUQ_EINVAL, "gpus: less than a thousandth");
	if (t->gpus < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "gpus: less than none");
	if (t->gpus > 1000 && t->gpus % 1000 != 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"gpus: above one device only whole ones can be requested");
	if (t->count < 1000 || t->count % 1000 || t->count > INT64_C(100000000))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "count: expected 1 to 100000");
	if (!scenario_resources_hold(&t->resources))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"resources: expected at most %d names with a number each",
					GPUQ_RESOURCES_MAX);
	if (t->mig_ok && ((t->mig && !t->node) || t->mig_more.n || t->gpu_mem_mb <= 0))
		return gpuq_reader_fail(
			r, v, GPUQ_EINVAL,
			"mig_ok: expected gpu_mem_mb beside it, and no mig, but the one "
			"that a running task has");
	for (size_t i = 0; t->mig && t->gpus > 1000 && i <= t->mig_more.n; i++)
		if (gpuq_profile_is_shared(i ? t->mig_more.items[i - 1] : t->mig))
			return gpuq_reader_fail(r, v, GPUQ_EINVAL,
						"gpus: expected 1: several replicas may be of the "
						"same instance");
	if (t->cpu < 0 || t->mem_mb < 0 || t->gpu_mem_mb < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "an amount below 0");
	return 0;
}

static const struct gpuq_schema tasks_schema = {
	.name = "task",
	.size = sizeof(struct sc_tasks),
	.fields = tasks_fields,
	.defaults = tasks_defaults,
	.check = tasks_check,
};

static const struct gpuq_field slice_fields[] = {
	STR(sc_slice, "level", level, "of the domain"),
	NUM(sc_slice, "size", size, "tasks in one domain"),
	{ 0 },
};
static const struct gpuq_schema slice_schema = {
	.name = "slice",
	.size = sizeof(struct sc_slice),
	.fields = slice_fields,
};

static const struct gpuq_field topology_fields[] = {
	STR(sc_topology, "required", required, "required level of all tasks"),
	STR(sc_topology, "preferred", preferred, "preferred level"),
	MANY(sc_topology, "slices", slices, &slice_schema, "outermost first"),
	{ 0 },
};
static const struct gpuq_schema topology_schema = {
	.name = "topology",
	.size = sizeof(struct sc_topology),
	.fields = topology_fields,
};

static const struct gpuq_field depend_fields[] = {
	WORD(sc_depend, "type", type, depend_types, "kind of dependency"),
	STR(sc_depend, "job", job, "the job"),
	NUM(sc_depend, "delay", delay, "delay after it"),
	{ 0 },
};

static int depend_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_depend *d = obj;

	if (!d->job && d->type != GPUQ_DEP_SINGLETON)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "%s needs 'job'", depend_types[d->type]);
	return 0;
}

static const struct gpuq_schema depend_schema = {
	.name = "dependency",
	.size = sizeof(struct sc_depend),
	.fields = depend_fields,
	.check = depend_check,
};

static const struct gpuq_field array_fields[] = {
	NUM(sc_array, "size", size, "elements, from 0"),
	NUM(sc_array, "first", first, "first index"),
	NUM(sc_array, "last", last, "last index"),
	NUM(sc_array, "step", step, "from one to the next"),
	NUM(sc_array, "throttle", throttle, "maximum number running at once"),
	{ 0 },
};

static void array_defaults(void *obj)
{
	*(struct sc_array *)obj = (struct sc_array){ SC_ABSENT, 0, SC_ABSENT, 1000, 0 };
}

static int array_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct sc_array *a = obj;

	if (a->size != SC_ABSENT)
		a->last = a->first + (a->size - 1000) / 1000 * a->step;
	if (a->last == SC_ABSENT || a->first < 0 || a->last < a->first || a->step < 1000 ||
	    a->throttle < 0 || (a->last - a->first) / a->step >= GPUQ_ARRAY_MAX)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"expected {size} or {first, last} with 1 to %u elements",
					GPUQ_ARRAY_MAX);
	return 0;
}

static const struct gpuq_schema array_schema = {
	.name = "array",
	.size = sizeof(struct sc_array),
	.fields = array_fields,
	.defaults = array_defaults,
	.check = array_check,
};

static int read_flavors(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct sc_job *j = (void *)((char *)out - offsetof(struct sc_job, flavors));

	return gpuq_flavors_read(r, v, &j->flavors, &j->flavor_rules);
}

static const struct gpuq_custom job_flavors = { read_flavors, NULL };

static const struct gpuq_field job_fields[] = {
	{ .key = "job",
	  .kind = GPUQ_K_STR,
	  .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .offset = offsetof(struct sc_job, name),
	  .doc = "name of the job" },
	STR(sc_job, "queue", queue, "a leaf"),
	STR(sc_job, "user", user, "owner of the job"),
	STR(sc_job, "jobname", jobname, "for singleton"),
	NUM(sc_job, "priority", priority, "larger is sooner"),
	NUM(sc_job, "nice", nice, "points subtracted from its priority"),
	NUM(sc_job, "boost", boost, "points added by the site"),
	NUM(sc_job, "usage_factor", usage_factor, "factor of its use"),
	BOOL(sc_job, "preemptible", preemptible, "whether it may be preempted"),
	NUM(sc_job, "submit", submit, "submit time"),
	NUM(sc_job, "start", start, "start time"),
	NUM(sc_job, "walltime", walltime, "-1 = unlimited"),
	NUM(sc_job, "walltime_min", walltime_min, "minimum time limit"),
	NUM(sc_job, "fixed_priority", fixed_priority,
	    "fixed priority that replaces the computed one"),
	NUM(sc_job, "min_tasks", min_tasks, "tasks that must run together; absent = all"),
	MAP(sc_job, "role_min", role_min, "tasks that must run together, by role"),
	NUM(sc_job, "group_size", group_size, "tasks of a sub-group"),
	NUM(sc_job, "min_groups", min_groups, "minimum number of sub-groups"),
	{ .key = "topology",
	  .kind = GPUQ_K_OBJECT,
	  .sub = &topology_schema,
	  .offset = offsetof(struct sc_job, topology),
	  .doc = "placement in the topology" },
	BOOL(sc_job, "evict_last", evict_last, "preempted after its equals"),
	WORD(sc_job, "preempt_mode", preempt_mode, preempt_modes, "consequence of an eviction"),
	NUM(sc_job, "last_checkpoint", last_checkpoint, "time of its last checkpoint"),
	NUM(sc_job, "restart_cost", restart_cost, "time from a start until work continues"),
	BOOL(sc_job, "stale", stale, "below its minimum already"),
	BOOL(sc_job, "spread", spread, "prefers the emptiest nodes"),
	BOOL(sc_job, "exclusive", exclusive, "whether its nodes are exclusive"),
	WORD(sc_job, "isolation", isolation, gpuq_isolations, "minimum isolation of its devices"),
	MANY(sc_job, "tasks", tasks, &tasks_schema, "what runs"),
	NUM(sc_job, "count", alike.count, "instead of tasks: number of identical tasks"),
	NUM(sc_job, "gpus", alike.gpus, "of each of them"),
	NUM(sc_job, "gpu_mem_mb", alike.gpu_mem_mb, "of each of them"),
	NUM(sc_job, "cpu", alike.cpu, "of each of them"),
	NUM(sc_job, "mem_mb", alike.mem_mb, "of each of them"),
	{ .key = "mig",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &profiles,
	  .form = "name or list of names",
	  .offset = offsetof(struct sc_job, alike.mig),
	  .doc = "of each of them" },
	BOOL(sc_job, "mig_ok", alike.mig_ok, "of each of them"),
	MAP(sc_job, "resources", alike.resources, "of each of them"),
	STR(sc_job, "node", alike.node, "where they run"),
	MANY(sc_job, "depends", depends, &depend_schema, "all must hold"),
	MANY(sc_job, "depends_any", depends_any, &depend_schema, "one must hold"),
	{ .key = "array",
	  .kind = GPUQ_K_OBJECT_PTR,
	  .sub = &array_schema,
	  .offset = offsetof(struct sc_job, array),
	  .doc = "elements from one template" },
	BOOL(sc_job, "hold", hold, "held by its owner"),
	NUM(sc_job, "begin", begin, "not before"),
	NUM(sc_job, "deadline", deadline, "latest end"),
	NUM(sc_job, "use", use, "utilization of its devices in percent; absent or -1 = not known"),
	NUM(sc_job, "idle_limit", idle_limit, "idle time after which it is stopped"),
	MAP(sc_job, "licences", licences, "counts by name"),
	MAP(sc_job, "licenses", licences, "the same"),
	{ .key = "flavors",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &job_flavors,
	  .form = "list of names and maps",
	  .offset = offsetof(struct sc_job, flavors),
	  .doc = "kinds of devices in order of preference, as in a job file" },
	WORD(sc_job, "spot", spot, gpuq_spots, "whether it runs on nodes that may be taken away"),
	LIST(sc_job, "exclude", exclude, "excluded nodes"),
	{ 0 },
};

static void job_defaults(void *obj)
{
	struct sc_job *j = obj;

	j->user = "user";
	j->usage_factor = 1000;
	j->preemptible = true;
	j->submit = j->start = j->walltime = j->walltime_min = j->min_tasks = SC_ABSENT;
	j->group_size = j->min_groups = j->last_checkpoint = SC_ABSENT;
	j->restart_cost = SC_ABSENT;
	j->begin = j->deadline = SC_ABSENT;
	j->use = j->idle_limit = SC_ABSENT;
	tasks_defaults(&j->alike);
}

/* Check that the values are whole numbers from 0 on, such as "2". */
static int check_counts(struct gpuq_reader *r, const struct gpuq_val *v, const char *what,
			const struct gpuq_strmap *map)
{
	for (size_t i = 0; i < map->n; i++) {
		const char *s = map->vals[i];
		const size_t digits = strspn(s, "0123456789");

		if (digits == 0 || digits > 9 || s[digits])
			return gpuq_reader_fail(r, v, GPUQ_EINVAL,
						"%s.%s: expected a whole number, found '%.40s'",
						what, map->keys[i], s);
	}
	return 0;
}

static int check_roles(struct gpuq_reader *r, const struct gpuq_val *v, const struct sc_job *j)
{
	for (size_t i = 0; i < j->role_min.n; i++) {
		const struct sc_tasks *tasks = j->tasks.items;
		size_t t = 0;

		while (t < j->tasks.n &&
		       (!tasks[t].role || strcmp(tasks[t].role, j->role_min.keys[i]) != 0))
			t++;
		if (t == j->tasks.n)
			return gpuq_reader_fail(r, v, GPUQ_EINVAL,
						"role_min.%s: none of its tasks has this role",
						j->role_min.keys[i]);
	}
	return check_counts(r, v, "role_min", &j->role_min);
}

/* Tasks are either listed, or the job has the keys of a single task. */
static int check_alike(struct gpuq_reader *r, const struct gpuq_val *v, struct sc_job *j)
{
	static const char *const keys[] = { "count", "gpus",   "gpu_mem_mb", "cpu",
					    "mig",   "mig_ok", "mem_mb",     "node" };

	if (j->tasks.n == 0) {
		j->tasks.items = &j->alike;
		j->tasks.n = 1;
		return tasks_check(r, v, &j->alike);
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (gpuq_get(v, keys[i]))
			return gpuq_reader_fail(
				r, gpuq_get(v, keys[i]), GPUQ_EINVAL,
				"%s: belongs into its tasks, where these are listed", keys[i]);
	return 0;
}

static int job_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct sc_job *j = obj;
	int64_t tasks = 0;

	if (check_alike(r, v, j) < 0)
		return GPUQ_EINVAL;
	for (size_t i = 0; i < j->tasks.n; i++)
		tasks += ((struct sc_tasks *)j->tasks.items)[i].count;
	if (j->tasks.n > GPUQ_GROUPS_MAX * 64 || tasks > GPUQ_PODS_MAX * INT64_C(1000))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "more than %u tasks", GPUQ_PODS_MAX);
	if (j->min_tasks != SC_ABSENT && (j->min_tasks < 0 || (j->min_tasks > tasks && !j->stale)))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "min_tasks: expected 0 to %lld",
					(long long)tasks / 1000);
	if (j->use != SC_ABSENT && j->use > 100000)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "use: expected a percentage");
	if (j->idle_limit > 0 && j->walltime >= 0 && j->idle_limit >= j->walltime)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"idle_limit: not shorter than its walltime");
	if (check_roles(r, v, j) < 0 || check_counts(r, v, "licences", &j->licences) < 0)
		return GPUQ_EINVAL;
	if (j->topology.slices.n > GPUQ_SLICES_MAX)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "topology.slices: more than %u layers",
					GPUQ_SLICES_MAX);
	/* Slices divide the gang, and each divides the one before. */
	for (size_t i = 0; i < j->topology.slices.n; i++) {
		const struct sc_slice *s = (const struct sc_slice *)j->topology.slices.items + i;

		if (s->size < 1000 || s->size % 1000 || tasks % s->size)
			return gpuq_reader_fail(r, v, GPUQ_EINVAL,
						"topology.slices: %lld does not divide %lld tasks",
						(long long)s->size / 1000, (long long)tasks / 1000);
		if (!s->level)
			return gpuq_reader_fail(r, v, GPUQ_EINVAL,
						"topology.slices: missing level, of the domain");
		tasks = s->size;
	}
	return 0;
}

const struct gpuq_schema scenario_job = {
	.name = "job",
	.size = sizeof(struct sc_job),
	.fields = job_fields,
	.defaults = job_defaults,
	.check = job_check,
};
