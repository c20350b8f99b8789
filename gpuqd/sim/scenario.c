#include "gpuqd/sim/scenario.h"

#include <string.h>

#include "gpuqd/core/snapshot.h"
#include "libgpuq/limits.h"
#include "libgpuq/yaml.h"

/* ---- kinds of its own ---- */

/* A number in thousandths, exact to three digits behind the point. */
static int number(struct gpuq_reader *r, const struct gpuq_val *v, int64_t *out)
{
	double t;

	if (v->type == GPUQ_INT && v->i > -INT64_C(1000000000000) &&
	    v->i < INT64_C(1000000000000)) {
		*out = v->i * 1000;
		return 0;
	}
	if (v->type != GPUQ_REAL || !(v->d > -1e12 && v->d < 1e12))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected a number, found %s",
					v->type == GPUQ_INT || v->type == GPUQ_REAL
						? "one that is too large"
						: gpuq_type_name(v->type));
	t = v->d * 1000;
	*out = (int64_t)(t < 0 ? t - 0.5 : t + 0.5);
	return 0;
}

static int read_number(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	return number(r, v, out);
}

static const struct gpuq_custom a_number = { read_number, NULL };

/* A number, or a word for none. */
static int read_quota(struct gpuq_reader *r, const struct gpuq_val *v, int64_t *out)
{
	if (v->type == GPUQ_STR && strcmp(v->s, "auto") == 0) {
		*out = SC_ABSENT;
		return 0;
	}
	if (v->type == GPUQ_STR && strcmp(v->s, "unlimited") == 0) {
		*out = SC_NONE;
		return 0;
	}
	return number(r, v, out);
}

static int read_amounts(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct sc_amounts a = { .all = SC_ABSENT };
	int rc;

	if (v->type != GPUQ_MAP) {
		rc = read_quota(r, v, &a.all);
		if (rc == 0)
			*(struct sc_amounts *)out = a;
		return rc;
	}
	a.flavors = gpuq_arena_calloc(r->arena, v->n, sizeof(*a.flavors));
	a.amounts = gpuq_arena_calloc(r->arena, v->n, sizeof(*a.amounts));
	if (!a.flavors || !a.amounts)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	for (; a.n < v->n; a.n++) {
		size_t mark = gpuq_reader_enter(r, v->pairs[a.n].key);

		a.flavors[a.n] = v->pairs[a.n].key;
		rc = read_quota(r, v->pairs[a.n].val, &a.amounts[a.n]);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
	}
	*(struct sc_amounts *)out = a;
	return 0;
}

static const struct gpuq_custom amounts = { read_amounts, NULL };

struct indexes { /* as gpu_index and n_gpu_index stand in struct sc_tasks */
	int64_t *items;
	size_t n;
};

/* One device or a list of them. */
static int read_indexes(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	const size_t n = v->type == GPUQ_LIST ? v->n : 1;
	struct indexes ix = { gpuq_arena_calloc(r->arena, n, sizeof(int64_t)), n };

	if (!ix.items)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	for (size_t i = 0; i < n; i++) {
		const struct gpuq_val *item = v->type == GPUQ_LIST ? v->items[i] : v;

		if (item->type != GPUQ_INT || item->i < 0)
			return gpuq_reader_fail(r, item, GPUQ_EINVAL,
						"expected the index of a device");
		ix.items[i] = item->i;
	}
	*(struct indexes *)out = ix;
	return 0;
}

static const struct gpuq_custom indexes = { read_indexes, NULL };

/* ---- tables ---- */

#define NUM(type, k, field, d)                                                                     \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_CUSTOM, .custom = &a_number,                              \
		.offset = offsetof(struct type, field), .doc = d                                   \
	}
#define STR(type, k, field, d)                                                                     \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_STR, .offset = offsetof(struct type, field), .doc = d     \
	}
#define BOOL(type, k, field, d)                                                                    \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_BOOL, .offset = offsetof(struct type, field), .doc = d    \
	}
#define LIST(type, k, field, d)                                                                    \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_STRLIST, .offset = offsetof(struct type, field), .doc = d \
	}
#define MAP(type, k, field, d)                                                                     \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_STRMAP, .offset = offsetof(struct type, field), .doc = d  \
	}
#define WORD(type, k, field, words, d)                                                             \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_ENUM, .names = words,                                     \
		.offset = offsetof(struct type, field), .doc = d                                   \
	}
#define MANY(type, k, field, schema, d)                                                            \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_OBJECTS, .sub = schema,                                   \
		.offset = offsetof(struct type, field), .doc = d                                   \
	}
#define AMOUNT(k, field, d)                                                                        \
	{                                                                                          \
		.key = k, .kind = GPUQ_K_CUSTOM, .custom = &amounts,                               \
		.offset = offsetof(struct sc_queue, field), .doc = d                               \
	}

static const char *const units[] = { "second", "minute", "hour", "day", NULL };
static const char *const reclaim_tos[] = { "fair_share", "guarantee", NULL };
static const char *const budget_modes[] = { "soft", "hard", NULL };
static const char *const runtime_methods[] = { "lca", "queue", NULL };
static const char *const reservation_kinds[] = { "user", "maintenance", NULL };
static const char *const node_states[] = { "ready", "drained", "suspect", "down", NULL };
static const char *const reclaims[] = { "any", "lower_or_equal", "lower", "never", NULL };
static const char *const preempts[] = { "lower", "lower_or_newer", "never", NULL };
static const char *const preempt_modes[] = { "requeue", "cancel", NULL };
static const char *const depend_types[] = { "after",     "afterany",  "afterok", "afternotok",
					    "aftercorr", "singleton", NULL };
static const char *const events[] = { "finish",       "cancel",    "submit", "advance",
				      "node_down",    "node_up",   "hold",   "release",
				      "set_priority", "set_queue", NULL };

static const struct gpuq_field reservation_fields[] = {
	STR(sc_reservation, "name", name, "what it is called"),
	NUM(sc_reservation, "start", start, "when it begins"),
	NUM(sc_reservation, "duration", duration, "how long it lasts"),
	LIST(sc_reservation, "nodes", nodes, "which nodes"),
	STR(sc_reservation, "node", node, "which node"),
	NUM(sc_reservation, "gpus", gpus, "an amount anywhere"),
	STR(sc_reservation, "queue", queue, "who may use it"),
	WORD(sc_reservation, "kind", kind, reservation_kinds, "user or maintenance"),
	{ 0 },
};
static const struct gpuq_schema reservation_schema = {
	.name = "reservation",
	.size = sizeof(struct sc_reservation),
	.fields = reservation_fields,
};

static const struct gpuq_field config_fields[] = {
	NUM(sc_config, "now", now, "the time it is"),
	WORD(sc_config, "unit", unit, units, "of all times"),
	NUM(sc_config, "cycles", cycles, "how many; absent = to rest"),
	WORD(sc_config, "reclaim_to", reclaim_to, reclaim_tos, "what claims may reach"),
	BOOL(sc_config, "consolidation", consolidation, "move jobs for blocked ones"),
	NUM(sc_config, "backfill_depth", backfill_depth, "reservations; -1 = all"),
	NUM(sc_config, "max_job_test", max_job_test, "blocked jobs looked at"),
	MAP(sc_config, "licences", licences, "counters that jobs take from"),
	MAP(sc_config, "licenses", licences, "the same"),
	MANY(sc_config, "reservations", reservations, &reservation_schema, "calendar slices"),
	WORD(sc_config, "budget_mode", budget_mode, budget_modes, "soft or hard"),
	WORD(sc_config, "min_runtime_method", min_runtime_method, runtime_methods, "whose counts"),
	NUM(sc_config, "preempt_min_runtime", preempt_min_runtime, "default for all queues"),
	NUM(sc_config, "reclaim_min_runtime", reclaim_min_runtime, "default for all queues"),
	MAP(sc_config, "priority_weights", priority_weights, "points of age, fairshare, size, qos"),
	NUM(sc_config, "usage_k", usage_k, "weight of past usage"),
	LIST(sc_config, "topology_levels", topology_levels, "labels from wide to narrow"),
	LIST(sc_config, "flavors", flavors, "kinds of devices in order of preference"),
	{ 0 },
};

static void config_defaults(void *obj)
{
	struct sc_config *c = obj;

	c->unit = SC_UNIT_MINUTE;
	c->cycles = SC_ABSENT;
	c->consolidation = true;
	c->backfill_depth = c->max_job_test = SC_ABSENT;
	c->preempt_min_runtime = c->reclaim_min_runtime = SC_ABSENT;
}

static const struct gpuq_schema config_schema = {
	.name = "config",
	.size = sizeof(struct sc_config),
	.fields = config_fields,
	.defaults = config_defaults,
};

static const struct gpuq_field taint_fields[] = {
	STR(sc_taint, "key", key, "its key"),
	STR(sc_taint, "value", value, "its value"),
	STR(sc_taint, "effect", effect, "NoSchedule, PreferNoSchedule or NoExecute"),
	{ 0 },
};

static void taint_defaults(void *obj)
{
	*(struct sc_taint *)obj = (struct sc_taint){ "", "", "NoSchedule" };
}

static const struct gpuq_schema taint_schema = {
	.name = "taint",
	.size = sizeof(struct sc_taint),
	.fields = taint_fields,
	.defaults = taint_defaults,
};

static const struct gpuq_field node_fields[] = {
	{ .key = "name",
	  .kind = GPUQ_K_STR,
	  .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .offset = offsetof(struct sc_node, name),
	  .doc = "its name" },
	NUM(sc_node, "gpus", gpus, "devices"),
	NUM(sc_node, "cpu", cpu, "thousandths of a core"),
	NUM(sc_node, "mem_mb", mem_mb, "memory"),
	NUM(sc_node, "gpu_mem_mb", gpu_mem_mb, "memory of a device"),
	MAP(sc_node, "labels", labels, "its labels"),
	MANY(sc_node, "taints", taints, &taint_schema, "its taints"),
	MAP(sc_node, "mig", mig, "instances by profile"),
	NUM(sc_node, "max_pods", max_pods, "tasks at most"),
	NUM(sc_node, "count", count, "so many alike: name-0, name-1, ..."),
	STR(sc_node, "pool", pool, "its pool"),
	STR(sc_node, "flavor", flavor, "the kind of its devices"),
	WORD(sc_node, "state", state, node_states, "ready unless said otherwise"),
	{ 0 },
};

static void node_defaults(void *obj)
{
	struct sc_node *n = obj;

	n->cpu = n->mem_mb = n->max_pods = n->count = SC_ABSENT;
	n->gpu_mem_mb = 100 * 1000;
}

static int node_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_node *n = obj;

	if (n->gpus < 0 || n->gpus > SNAP_DEVICES_MAX * 1000 || n->gpus % 1000)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "gpus: expected 0 to %u devices",
					SNAP_DEVICES_MAX);
	if (n->count != SC_ABSENT && (n->count < 1000 || n->count > INT64_C(100000000)))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "count: expected 1 to 100000");
	if ((n->cpu != SC_ABSENT && n->cpu < 0) || (n->mem_mb != SC_ABSENT && n->mem_mb < 0) ||
	    (n->max_pods != SC_ABSENT && n->max_pods < 0) || n->gpu_mem_mb < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "an amount below 0");
	return 0;
}

static const struct gpuq_schema node_schema = {
	.name = "node",
	.size = sizeof(struct sc_node),
	.fields = node_fields,
	.defaults = node_defaults,
	.check = node_check,
};

static const struct gpuq_field queue_fields[] = {
	{ .key = "name",
	  .kind = GPUQ_K_STR,
	  .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .offset = offsetof(struct sc_queue, name),
	  .doc = "its name" },
	STR(sc_queue, "parent", parent, "root or a queue"),
	AMOUNT("quota", quota, "owed; -1 unlimited, auto = the children's sum"),
	AMOUNT("shared_quota", shared_quota, "added to the children's sum"),
	AMOUNT("limit", limit, "absolute cap; -1 none"),
	AMOUNT("borrow_limit", borrow_limit, "limit as an amount beyond the quota"),
	AMOUNT("lend_limit", lend_limit, "how much of idle quota others may use"),
	NUM(sc_queue, "weight", weight, "portion of what is left over"),
	NUM(sc_queue, "priority", priority, "rank: larger is offered it first"),
	NUM(sc_queue, "quota_cpu", quota_cpu, "thousandths of a core"),
	NUM(sc_queue, "limit_cpu", limit_cpu, "thousandths of a core"),
	NUM(sc_queue, "quota_mem_mb", quota_mem_mb, "memory"),
	NUM(sc_queue, "limit_mem_mb", limit_mem_mb, "memory"),
	WORD(sc_queue, "preempt_within", preempt_within, preempts, "whom its jobs may evict"),
	WORD(sc_queue, "reclaim", reclaim, reclaims, "whom it may claim from"),
	NUM(sc_queue, "borrow_preempt_max_priority", borrow_preempt_max_priority, "see reclaim"),
	BOOL(sc_queue, "reclaimable", reclaimable, "may others claim from it"),
	BOOL(sc_queue, "fence", fence, "claims stay inside"),
	BOOL(sc_queue, "stopped", stopped, "starts nothing"),
	NUM(sc_queue, "preempt_min_runtime", preempt_min_runtime, "protection"),
	NUM(sc_queue, "reclaim_min_runtime", reclaim_min_runtime, "protection"),
	NUM(sc_queue, "usage", usage, "past usage, normalised"),
	NUM(sc_queue, "budget_gpu_min", budget_gpu_min, "GPU-minutes"),
	NUM(sc_queue, "budget_used_gpu_min", budget_used_gpu_min, "GPU-minutes"),
	NUM(sc_queue, "user_max_running", user_max_running, "jobs of one user at once"),
	NUM(sc_queue, "user_max_gpus", user_max_gpus, "devices of one user at once"),
	NUM(sc_queue, "job_max_gpus", job_max_gpus, "devices of one job"),
	NUM(sc_queue, "max_running", max_running, "jobs at once"),
	LIST(sc_queue, "flavors", flavors, "in order of preference"),
	{ 0 },
};

static void queue_defaults(void *obj)
{
	struct sc_queue *q = obj;

	q->quota.all = q->shared_quota.all = q->limit.all = SC_ABSENT;
	q->borrow_limit.all = q->lend_limit.all = SC_ABSENT;
	q->weight = 1000;
	q->priority = 100 * 1000;
	q->quota_cpu = q->limit_cpu = q->quota_mem_mb = q->limit_mem_mb = SC_ABSENT;
	q->borrow_preempt_max_priority = SC_ABSENT;
	q->reclaimable = true;
	q->preempt_min_runtime = q->reclaim_min_runtime = SC_ABSENT;
	q->budget_gpu_min = SC_ABSENT;
	q->user_max_running = q->user_max_gpus = q->job_max_gpus = q->max_running = SC_ABSENT;
}

static int queue_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_queue *q = obj;

	if (q->weight < 0 || q->usage < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "weight and usage are at least 0");
	if (strcmp(q->name, "root") == 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "root is the unlimited top");
	return 0;
}

static const struct gpuq_schema queue_schema = {
	.name = "queue",
	.size = sizeof(struct sc_queue),
	.fields = queue_fields,
	.defaults = queue_defaults,
	.check = queue_check,
};

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

static const struct gpuq_field tasks_fields[] = {
	NUM(sc_tasks, "count", count, "so many alike"),
	STR(sc_tasks, "node", node, "where a running one is"),
	NUM(sc_tasks, "gpus", gpus, "devices; 0.5 is half of one"),
	{ .key = "gpu_index",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &indexes,
	  .offset = offsetof(struct sc_tasks, gpu_index),
	  .doc = "devices of a running one" },
	NUM(sc_tasks, "gpu_mem_mb", gpu_mem_mb, "memory of one device"),
	NUM(sc_tasks, "cpu", cpu, "thousandths of a core"),
	NUM(sc_tasks, "mem_mb", mem_mb, "memory"),
	STR(sc_tasks, "mig", mig, "profile of an instance"),
	NUM(sc_tasks, "rank", rank, "lower starts first and leaves last"),
	STR(sc_tasks, "role", role, "its role in the job"),
	STR(sc_tasks, "group", group, "its sub-group"),
	BOOL(sc_tasks, "releasing", releasing, "told to leave already"),
	MAP(sc_tasks, "selector", selector, "labels its nodes must have"),
	MANY(sc_tasks, "tolerations", tolerations, &toleration_schema, "taints it tolerates"),
	{ 0 },
};

static void tasks_defaults(void *obj)
{
	((struct sc_tasks *)obj)->count = 1000;
}

static int tasks_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_tasks *t = obj;

	if (t->gpus < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "gpus: less than none");
	if (t->gpus > 1000 && t->gpus % 1000 != 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"gpus: above one device only whole ones can be asked for");
	if (t->count < 1000 || t->count % 1000 || t->count > INT64_C(100000000))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "count: expected 1 to 100000");
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
	NUM(sc_slice, "size", size, "tasks that stand together"),
	{ 0 },
};
static const struct gpuq_schema slice_schema = {
	.name = "slice",
	.size = sizeof(struct sc_slice),
	.fields = slice_fields,
};

static const struct gpuq_field topology_fields[] = {
	STR(sc_topology, "required", required, "level that all tasks must share"),
	STR(sc_topology, "preferred", preferred, "level that they should share"),
	MANY(sc_topology, "slices", slices, &slice_schema, "outermost first"),
	{ 0 },
};
static const struct gpuq_schema topology_schema = {
	.name = "topology",
	.size = sizeof(struct sc_topology),
	.fields = topology_fields,
};

static const struct gpuq_field depend_fields[] = {
	WORD(sc_depend, "type", type, depend_types, "what must have happened"),
	STR(sc_depend, "job", job, "to which job"),
	NUM(sc_depend, "delay", delay, "and how long ago"),
	{ 0 },
};
static const struct gpuq_schema depend_schema = {
	.name = "dependency",
	.size = sizeof(struct sc_depend),
	.fields = depend_fields,
};

static const struct gpuq_field array_fields[] = {
	NUM(sc_array, "size", size, "elements, from 0"),
	NUM(sc_array, "first", first, "first index"),
	NUM(sc_array, "last", last, "last index"),
	NUM(sc_array, "step", step, "from one to the next"),
	NUM(sc_array, "throttle", throttle, "most at once"),
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

static const struct gpuq_field job_fields[] = {
	{ .key = "job",
	  .kind = GPUQ_K_STR,
	  .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .offset = offsetof(struct sc_job, name),
	  .doc = "its name here" },
	STR(sc_job, "queue", queue, "a leaf"),
	STR(sc_job, "user", user, "whose it is"),
	STR(sc_job, "jobname", jobname, "for singleton"),
	NUM(sc_job, "priority", priority, "larger is sooner"),
	BOOL(sc_job, "preemptible", preemptible, "may be evicted"),
	NUM(sc_job, "submit", submit, "when it was submitted"),
	NUM(sc_job, "start", start, "when it was started"),
	NUM(sc_job, "walltime", walltime, "-1 = unlimited"),
	NUM(sc_job, "min_tasks", min_tasks, "that must run together; absent = all"),
	MAP(sc_job, "role_min", role_min, "the same by role"),
	NUM(sc_job, "group_size", group_size, "tasks of a sub-group"),
	NUM(sc_job, "min_groups", min_groups, "sub-groups that must run"),
	{ .key = "topology",
	  .kind = GPUQ_K_OBJECT,
	  .sub = &topology_schema,
	  .offset = offsetof(struct sc_job, topology),
	  .doc = "what its tasks share" },
	BOOL(sc_job, "evict_last", evict_last, "leaves after its equals"),
	WORD(sc_job, "preempt_mode", preempt_mode, preempt_modes, "what eviction means"),
	NUM(sc_job, "last_checkpoint", last_checkpoint, "when it saved itself"),
	BOOL(sc_job, "stale", stale, "below its minimum already"),
	BOOL(sc_job, "exclusive", exclusive, "has its nodes alone"),
	MANY(sc_job, "tasks", tasks, &tasks_schema, "what runs"),
	MANY(sc_job, "depends", depends, &depend_schema, "all must hold"),
	MANY(sc_job, "depends_any", depends_any, &depend_schema, "one must hold"),
	{ .key = "array",
	  .kind = GPUQ_K_OBJECT_PTR,
	  .sub = &array_schema,
	  .offset = offsetof(struct sc_job, array),
	  .doc = "many from one template" },
	BOOL(sc_job, "hold", hold, "held by its owner"),
	NUM(sc_job, "begin", begin, "not before"),
	NUM(sc_job, "deadline", deadline, "must have ended by"),
	MAP(sc_job, "licences", licences, "counts by name"),
	MAP(sc_job, "licenses", licences, "the same"),
	LIST(sc_job, "flavors", flavors, "kinds of devices in order of preference"),
	LIST(sc_job, "exclude", exclude, "nodes it failed on"),
	{ 0 },
};

static void job_defaults(void *obj)
{
	struct sc_job *j = obj;

	j->user = "user";
	j->preemptible = true;
	j->submit = j->start = j->walltime = j->min_tasks = SC_ABSENT;
	j->group_size = j->min_groups = j->last_checkpoint = SC_ABSENT;
	j->begin = j->deadline = SC_ABSENT;
}

static int job_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct sc_job *j = obj;
	int64_t tasks = 0;

	if (j->tasks.n == 0) {
		j->tasks.items = gpuq_arena_calloc(r->arena, 1, sizeof(struct sc_tasks));
		if (!j->tasks.items)
			return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
		tasks_defaults(j->tasks.items);
		j->tasks.n = 1;
	}
	for (size_t i = 0; i < j->tasks.n; i++)
		tasks += ((struct sc_tasks *)j->tasks.items)[i].count;
	if (j->tasks.n > GPUQ_GROUPS_MAX * 64 || tasks > GPUQ_PODS_MAX * INT64_C(1000))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "more than %u tasks", GPUQ_PODS_MAX);
	if (j->min_tasks != SC_ABSENT && (j->min_tasks < 0 || j->min_tasks > tasks))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "min_tasks: expected 0 to %lld",
					(long long)tasks / 1000);
	/* Slices divide the gang, and each other from the outside in. */
	for (size_t i = 0; i < j->topology.slices.n; i++) {
		const struct sc_slice *s = (const struct sc_slice *)j->topology.slices.items + i;

		if (s->size < 1000 || tasks % s->size)
			return gpuq_reader_fail(r, v, GPUQ_EINVAL,
						"topology.slices: %lld does not divide %lld tasks",
						(long long)s->size / 1000, (long long)tasks / 1000);
		tasks = s->size;
	}
	return 0;
}

static const struct gpuq_schema job_schema = {
	.name = "job",
	.size = sizeof(struct sc_job),
	.fields = job_fields,
	.defaults = job_defaults,
	.check = job_check,
};

static const struct gpuq_field step_fields[] = {
	{ .key = "event",
	  .kind = GPUQ_K_ENUM,
	  .flags = GPUQ_F_REQUIRED,
	  .names = events,
	  .offset = offsetof(struct sc_step, event),
	  .doc = "what happens" },
	STR(sc_step, "job", job, "to which job"),
	STR(sc_step, "node", node, "to which node"),
	STR(sc_step, "queue", queue, "which queue it moves to"),
	NUM(sc_step, "at", at, "when"),
	NUM(sc_step, "to", to, "how far time advances"),
	NUM(sc_step, "priority", priority, "its new priority"),
	NUM(sc_step, "exit_code", exit_code, "how it ended"),
	{ .key = "then",
	  .kind = GPUQ_K_VAL,
	  .offset = offsetof(struct sc_step, then),
	  .doc = "what must hold afterwards" },
	{ 0 },
};

static void step_defaults(void *obj)
{
	struct sc_step *s = obj;

	s->at = s->to = SC_ABSENT;
}

static const struct gpuq_schema step_schema = {
	.name = "step",
	.size = sizeof(struct sc_step),
	.fields = step_fields,
	.defaults = step_defaults,
};

/* A submit is a step with a job's keys in it (or below "pending"). */
static int read_submit(struct gpuq_reader *r, const struct gpuq_val *v, struct sc_step *out)
{
	struct gpuq_val *job = gpuq_get(v, "pending"), *rest = gpuq_map(r->arena);

	out->submit = gpuq_arena_alloc(r->arena, sizeof(*out->submit));
	if (!out->submit || !rest)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	out->event = SC_SUBMIT;
	out->at = SC_ABSENT;
	out->then = gpuq_get(v, "then");
	if (gpuq_get(v, "at")) {
		int rc = number(r, gpuq_get(v, "at"), &out->at);

		if (rc < 0)
			return rc;
	}
	if (!job) {
		rest->at = v->at;
		for (uint32_t i = 0; i < v->n; i++) {
			const struct gpuq_pair *p = &v->pairs[i];

			if (strcmp(p->key, "event") != 0 && strcmp(p->key, "then") != 0 &&
			    strcmp(p->key, "at") != 0) {
				gpuq_put(r->arena, rest, p->key, p->val);
				rest->pairs[rest->n - 1].at = p->at;
			}
		}
		job = rest;
	}
	return gpuq_schema_read(r, &job_schema, job, out->submit);
}

static int read_steps(struct gpuq_reader *r, const struct gpuq_val *v, struct sc_case *c)
{
	size_t steps = gpuq_reader_enter(r, "steps");
	int rc = 0;

	if (v->type != GPUQ_LIST)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected a list");
	c->steps = gpuq_arena_calloc(r->arena, v->n, sizeof(*c->steps));
	if (!c->steps)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	c->n_steps = v->n;
	for (size_t i = 0; rc == 0 && i < v->n; i++) {
		size_t mark = gpuq_reader_enter_item(r, i);

		if (strcmp(gpuq_get_str(v->items[i], "event", ""), "submit") == 0)
			rc = read_submit(r, v->items[i], &c->steps[i]);
		else
			rc = gpuq_schema_read(r, &step_schema, v->items[i], &c->steps[i]);
		gpuq_reader_leave(r, mark);
	}
	gpuq_reader_leave(r, steps);
	return rc;
}

struct raw_case { /* as the table reads it; steps are read by hand */
	struct sc_case c;
	const struct gpuq_val *steps, *version;
};

static const struct gpuq_field case_fields[] = {
	{ .key = "version",
	  .kind = GPUQ_K_VAL,
	  .offset = offsetof(struct raw_case, version),
	  .doc = "1" },
	{ .key = "id",
	  .kind = GPUQ_K_STR,
	  .offset = offsetof(struct raw_case, c.id),
	  .doc = "what it is called" },
	{ .key = "title",
	  .kind = GPUQ_K_STR,
	  .offset = offsetof(struct raw_case, c.title),
	  .doc = "one line about it" },
	{ .key = "config",
	  .kind = GPUQ_K_OBJECT,
	  .sub = &config_schema,
	  .offset = offsetof(struct raw_case, c.config),
	  .doc = "time and policy" },
	{ .key = "nodes",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &node_schema,
	  .offset = offsetof(struct raw_case, c.nodes),
	  .doc = "the cluster" },
	{ .key = "queues",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &queue_schema,
	  .offset = offsetof(struct raw_case, c.queues),
	  .doc = "the oldest first" },
	{ .key = "running",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &job_schema,
	  .offset = offsetof(struct raw_case, c.running),
	  .doc = "jobs that have started" },
	{ .key = "pending",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &job_schema,
	  .offset = offsetof(struct raw_case, c.pending),
	  .doc = "jobs that wait" },
	{ .key = "steps",
	  .kind = GPUQ_K_VAL,
	  .offset = offsetof(struct raw_case, steps),
	  .doc = "what happens then" },
	{ .key = "expect",
	  .kind = GPUQ_K_VAL,
	  .offset = offsetof(struct raw_case, c.expect),
	  .doc = "what must hold" },
	{ 0 },
};
static const struct gpuq_schema case_schema = {
	.name = "case",
	.size = sizeof(struct raw_case),
	.fields = case_fields,
};

static void read_case(struct gpuq_arena *a, const char *file, const struct gpuq_val *v,
		      const char *path, size_t ix, struct sc_result *out)
{
	struct gpuq_reader r = { .arena = a, .file = file, .err = &out->err };
	struct raw_case *raw = gpuq_arena_alloc(a, sizeof(*raw));
	int rc;

	out->id = gpuq_get_str(v, "id", NULL);
	if (!out->id)
		out->id = gpuq_arena_printf(a, "%s#%zu", file, ix + 1);
	out->expect = gpuq_get(v, "expect");
	if (!raw || !out->id) {
		gpuq_fail(&out->err, GPUQ_ENOMEM, "no memory");
		return;
	}
	if (path)
		gpuq_reader_enter(&r, path);
	if (path)
		gpuq_reader_enter_item(&r, ix);
	rc = gpuq_schema_read(&r, &case_schema, v, raw);
	if (rc == 0 && raw->steps)
		rc = read_steps(&r, raw->steps, &raw->c);
	if (rc < 0)
		return;
	raw->c.id = out->id;
	out->c = &raw->c;
}

int scenario_read(struct gpuq_arena *a, const char *file, const char *text, size_t n,
		  struct sc_result **out, size_t *n_out, struct gpuq_err *err)
{
	struct gpuq_val **docs, *cases;
	struct sc_result *results;
	size_t n_docs, n_cases = 0, at = 0;
	int rc = gpuq_yaml_parse(a, file, text, n, &docs, &n_docs, err);

	if (rc < 0)
		return rc;
	for (size_t d = 0; d < n_docs; d++) {
		struct gpuq_reader r = { .arena = a, .file = file, .err = err };

		if (docs[d]->type != GPUQ_MAP)
			return gpuq_reader_fail(&r, docs[d], GPUQ_EINVAL,
						"expected a map with cases");
		if (gpuq_get_int(docs[d], "version", 1) != 1)
			return gpuq_reader_fail(&r, gpuq_get(docs[d], "version"), GPUQ_EINVAL,
						"version: expected 1");
		cases = gpuq_get(docs[d], "cases");
		if (cases && cases->type != GPUQ_LIST)
			return gpuq_reader_fail(&r, cases, GPUQ_EINVAL, "cases: expected a list");
		n_cases += cases ? cases->n : 1;
	}
	results = gpuq_arena_calloc(a, n_cases, sizeof(*results));
	if (!results)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	for (size_t d = 0; d < n_docs; d++) {
		cases = gpuq_get(docs[d], "cases");
		for (size_t i = 0; cases && i < cases->n; i++)
			read_case(a, file, cases->items[i], "cases", i, &results[at++]);
		if (!cases)
			read_case(a, file, docs[d], NULL, d, &results[at++]);
	}
	*out = results;
	*n_out = n_cases;
	return 0;
}
