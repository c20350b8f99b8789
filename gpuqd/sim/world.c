#include "gpuqd/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
}

int64_t world_us(const struct world *w, int64_t milli_units)
{
	int64_t us;

	/* Far enough off to be never, near enough to be added to. */
	if (__builtin_mul_overflow(milli_units, w->unit_us / 1000, &us) || us > INT64_MAX / 4 ||
	    us < INT64_MIN / 4)
		return milli_units < 0 ? INT64_MIN / 4 : INT64_MAX / 4;
	return us;
}

/* ---- nodes, queues, flavors, licenses ---- */

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct sim_node *)x)->name, ((const struct sim_node *)y)->name);
}

static int make_nodes(struct world *w, struct gpuq_err *err)
{
	const struct sc_node *specs = w->c->nodes.items;
	size_t n = 0;

	for (size_t i = 0; i < w->c->nodes.n; i++)
		n += specs[i].count == SC_ABSENT ? 1 : (size_t)specs[i].count / 1000;
	w->nodes = gpuq_arena_calloc(&w->arena, n, sizeof(*w->nodes));
	if (!w->nodes)
		return no_memory(err);
	for (size_t i = 0; i < w->c->nodes.n; i++) {
		const int64_t count = specs[i].count == SC_ABSENT ? 1 : specs[i].count / 1000;

		for (int64_t k = 0; k < count; k++) {
			struct sim_node *node = &w->nodes[w->n_nodes++];

			node->spec = &specs[i];
			node->state = specs[i].state;
			node->name = specs[i].count == SC_ABSENT
					     ? specs[i].name
					     : gpuq_arena_printf(&w->arena, "%s-%lld",
								 specs[i].name, (long long)k);
			if (!node->name)
				return no_memory(err);
		}
	}
	/* As a snapshot has them, so that indexes are the same there. */
	qsort(w->nodes, w->n_nodes, sizeof(*w->nodes), by_name);
	for (uint32_t i = 1; i < w->n_nodes; i++)
		if (strcmp(w->nodes[i - 1].name, w->nodes[i].name) == 0)
			return gpuq_fail_field(err, GPUQ_EINVAL, "nodes",
					       "%s: two nodes are named %s", w->c->id,
					       w->nodes[i].name);
	return 0;
}

uint32_t world_node(const struct world *w, const char *name)
{
	const struct sim_node key = { .name = name };
	const struct sim_node *n = bsearch(&key, w->nodes, w->n_nodes, sizeof(key), by_name);

	return n ? (uint32_t)(n - w->nodes) : SNAP_NONE;
}

static bool knows(const char *const *list, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

/* Flavors as the case lists them, then those that only nodes name, then the default. */
static int make_flavors(struct world *w, struct gpuq_err *err)
{
	const struct sc_node *nodes = w->c->nodes.items;
	const struct gpuq_strlist *listed = &w->c->config.flavors;

	w->flavors = gpuq_arena_calloc(&w->arena, listed->n + w->c->nodes.n + 1, sizeof(char *));
	if (!w->flavors)
		return no_memory(err);
	for (size_t i = 0; i < listed->n; i++)
		if (!knows(w->flavors, w->n_flavors, listed->items[i]))
			w->flavors[w->n_flavors++] = listed->items[i];
	for (size_t i = 0; i < w->c->nodes.n; i++) {
		const char *name = nodes[i].flavor ? nodes[i].flavor : "default";

		if (nodes[i].gpus > 0 && !knows(w->flavors, w->n_flavors, name))
			w->flavors[w->n_flavors++] = name;
	}
	if (w->n_flavors == 0)
		w->flavors[w->n_flavors++] = "default";
	return 0;
}

static int make_queues(struct world *w, struct gpuq_err *err)
{
	static const struct sc_queue only = {
		.name = "default",
		.quota = { .all = SC_NONE },
		.limit = { .all = SC_NONE },
		.shared_quota = { .all = SC_ABSENT },
		.borrow_limit = { .all = SC_ABSENT },
		.lend_limit = { .all = SC_ABSENT },
		.weight = 1000,
		.priority = 100000,
		.quota_cpu = SC_ABSENT,
		.limit_cpu = SC_ABSENT,
		.quota_mem_mb = SC_ABSENT,
		.limit_mem_mb = SC_ABSENT,
		.borrow_preempt_max_priority = SC_ABSENT,
		.reclaimable = true,
		.preempt_min_runtime = SC_ABSENT,
		.reclaim_min_runtime = SC_ABSENT,
		.user_max_running = SC_ABSENT,
		.user_max_gpus = SC_ABSENT,
		.job_max_gpus = SC_ABSENT,
		.max_running = SC_ABSENT,
	};

	w->queues = w->c->queues.n ? w->c->queues.items : &only;
	w->n_queues = w->c->queues.n ? (uint32_t)w->c->queues.n : 1;
	w->shares = gpuq_arena_calloc(&w->arena, w->n_queues, sizeof(*w->shares));
	if (!w->shares)
		return no_memory(err);
	for (uint32_t q = 0; q < w->n_queues; q++)
		w->shares[q].name = w->queues[q].name;
	return 0;
}

static int make_licenses(struct world *w, struct gpuq_err *err)
{
	const struct gpuq_strmap *in = &w->c->config.licences;

	w->licenses = in->keys;
	w->n_licenses = (uint32_t)in->n;
	w->license_counts = gpuq_arena_calloc(&w->arena, in->n, sizeof(*w->license_counts));
	if (!w->license_counts)
		return no_memory(err);
	for (size_t i = 0; i < in->n; i++) {
		char *end;

		w->license_counts[i] = strtoll(in->vals[i], &end, 10);
		if (end == in->vals[i] || *end || w->license_counts[i] < 0)
			return gpuq_fail_field(err, GPUQ_EINVAL, "config.licences",
					       "%s: config.licences.%s: expected a count", w->c->id,
					       in->keys[i]);
	}
	return 0;
}

/* ---- templates ---- */

static bool same_str(const char *x, const char *y)
{
	return x == y || (x && y && strcmp(x, y) == 0);
}

/* Do two entries of a task list ask for the same? Then they are one group. */
static bool alike(const struct sc_tasks *x, const struct sc_tasks *y)
{
	if (x->gpus != y->gpus || x->gpu_mem_mb != y->gpu_mem_mb || x->cpu != y->cpu ||
	    x->mem_mb != y->mem_mb || x->rank != y->rank || !same_str(x->mig, y->mig) ||
	    !same_str(x->role, y->role) || !same_str(x->group, y->group) ||
	    x->selector.n != y->selector.n || x->tolerations.n != y->tolerations.n)
		return false;
	for (size_t i = 0; i < x->selector.n; i++)
		if (strcmp(x->selector.keys[i], y->selector.keys[i]) != 0 ||
		    strcmp(x->selector.vals[i], y->selector.vals[i]) != 0)
			return false;
	return x->tolerations.n == 0;
}

static int make_constraint(struct world *w, struct sim_group *g, struct gpuq_err *err)
{
	const struct gpuq_strmap *sel = &g->tasks->selector;
	const struct sc_toleration *tol = g->tasks->tolerations.items;

	if (sel->n) {
		g->term = gpuq_arena_alloc(&w->arena, sizeof(*g->term));
		if (g->term)
			g->term->all = gpuq_arena_calloc(&w->arena, sel->n, sizeof(*g->term->all));
		if (!g->term || !g->term->all)
			return no_memory(err);
		g->term->n = sel->n;
		for (size_t i = 0; i < sel->n; i++)
			g->term->all[i] = (struct gpuq_require){ sel->keys[i],
								 GPUQ_OP_IN,
								 { &sel->vals[i], 1 } };
	}
	g->tolerations =
		gpuq_arena_calloc(&w->arena, g->tasks->tolerations.n, sizeof(*g->tolerations));
	if (!g->tolerations)
		return no_memory(err);
	for (size_t i = 0; i < g->tasks->tolerations.n; i++)
		g->tolerations[i] =
			(struct gpuq_toleration){ .key = tol[i].key,
						  .exists = strcmp(tol[i].op, "Exists") == 0,
						  .value = tol[i].value,
						  .effect = tol[i].effect,
						  .seconds = -1 };
	return 0;
}

/* How many tasks of a role must run; SC_ABSENT = nothing is said of it. */
static int64_t role_min(const struct sc_job *spec, const char *role)
{
	for (size_t i = 0; role && i < spec->role_min.n; i++)
		if (strcmp(spec->role_min.keys[i], role) == 0)
			return strtoll(spec->role_min.vals[i], NULL, 10);
	return SC_ABSENT;
}

/* Spread the job's minimum over its groups: by role where roles have one, else the
 * first groups first. */
static void set_minimums(const struct sc_job *spec, struct sim_template *t)
{
	int64_t left = spec->min_tasks == SC_ABSENT ? INT64_MAX : spec->min_tasks / 1000;

	if (spec->min_groups != SC_ABSENT && spec->group_size != SC_ABSENT)
		left = spec->min_groups / 1000 * (spec->group_size / 1000);
	for (uint32_t g = 0; g < t->n_groups; g++) {
		struct sim_group *group = &t->groups[g];
		int64_t min = role_min(spec, group->tasks->role);

		if (min == SC_ABSENT)
			min = spec->role_min.n && spec->min_tasks == SC_ABSENT ? group->count
									       : left;
		if (min > group->count)
			min = group->count;
		group->min = (uint32_t)min;
		left = left > min ? left - min : 0;
	}
}

static int make_template(struct world *w, const struct sc_job *spec, struct sim_template *t,
			 struct gpuq_err *err)
{
	const struct sc_tasks *tasks = spec->tasks.items;
	int rc = 0;

	t->spec = spec;
	t->groups = gpuq_arena_calloc(&w->arena, spec->tasks.n, sizeof(*t->groups));
	if (!t->groups)
		return no_memory(err);
	for (size_t i = 0; i < spec->tasks.n; i++) {
		uint32_t g = 0, at;

		while (g < t->n_groups && !alike(t->groups[g].tasks, &tasks[i]))
			g++;
		if (g < t->n_groups) {
			t->groups[g].count += (uint32_t)(tasks[i].count / 1000);
			continue;
		}
		for (at = t->n_groups; at > 0 && t->groups[at - 1].tasks->rank > tasks[i].rank;
		     at--)
			t->groups[at] = t->groups[at - 1];
		t->groups[at] = (struct sim_group){ .tasks = &tasks[i],
						    .count = (uint32_t)(tasks[i].count / 1000) };
		t->n_groups++;
	}
	if (t->n_groups > GPUQ_GROUPS_MAX)
		return gpuq_fail_field(err, GPUQ_EINVAL, "tasks",
				       "%s: job %s: more than %u kinds of tasks", w->c->id,
				       spec->name, GPUQ_GROUPS_MAX);
	for (uint32_t g = 0; rc == 0 && g < t->n_groups; g++)
		rc = make_constraint(w, &t->groups[g], err);
	set_minimums(spec, t);
	return rc;
}

/* Append to a table in the arena, which moves when it grows. */
static void *append(struct world *w, void *table, uint32_t *n, uint32_t *room, size_t size,
		    struct gpuq_err *err)
{
	void **items = table;

	if (*n == *room) {
		const uint32_t bigger = *room ? *room * 2 : 64;
		void *p = gpuq_arena_calloc(&w->arena, bigger, size);

		if (!p) {
			no_memory(err);
			return NULL;
		}
		if (*n)
			memcpy(p, *items, *n * size);
		*items = p;
		*room = bigger;
	}
	return (char *)*items + (*n)++ * size;
}

static int check_job(struct world *w, const struct sc_job *spec, const char **queue,
		     struct gpuq_err *err)
{
	*queue = spec->queue;
	for (uint32_t q = 0; !*queue && q < w->n_queues; q++)
		if (w->n_queues == 1 || strcmp(w->queues[q].name, "default") == 0)
			*queue = w->queues[q].name;
	if (!*queue)
		return gpuq_fail_field(err, GPUQ_EINVAL, "queue", "%s: job %s: names no queue",
				       w->c->id, spec->name);
	for (uint32_t q = 0; q < w->n_queues; q++) {
		if (w->queues[q].parent && strcmp(w->queues[q].parent, *queue) == 0)
			return gpuq_fail_field(err, GPUQ_EINVAL, "queue",
					       "%s: job %s: queue %s has queues below it", w->c->id,
					       spec->name, *queue);
	}
	for (uint32_t q = 0; q < w->n_queues; q++)
		if (strcmp(w->queues[q].name, *queue) == 0)
			goto known;
	return gpuq_fail_field(err, GPUQ_EINVAL, "queue", "%s: job %s: unknown queue %s", w->c->id,
			       spec->name, *queue);
known:
	for (uint32_t t = 0; t < w->n_templates; t++)
		if (strcmp(w->templates[t].spec->name, spec->name) == 0)
			return gpuq_fail_field(err, GPUQ_EINVAL, "job", "%s: two jobs are named %s",
					       w->c->id, spec->name);
	for (size_t i = 0; i < spec->licences.n; i++)
		if (!knows(w->licenses, w->n_licenses, spec->licences.keys[i]))
			return gpuq_fail_field(err, GPUQ_EINVAL, "licences",
					       "%s: job %s: unknown licence %s", w->c->id,
					       spec->name, spec->licences.keys[i]);
	return 0;
}

static int64_t time_or(const struct world *w, int64_t t, int64_t absent)
{
	return t == SC_ABSENT ? absent : world_us(w, t);
}

/* Add a job (all members of an array) that waits since submit_us. */
static int add_job(struct world *w, const struct sc_job *spec, int64_t submit_us,
		   struct gpuq_err *err)
{
	const char *queue;
	struct sim_template *t;
	int rc = check_job(w, spec, &queue, err);

	if (rc < 0)
		return rc;
	t = append(w, &w->templates, &w->n_templates, &w->room_templates, sizeof(*t), err);
	if (!t)
		return GPUQ_ENOMEM;
	*t = (struct sim_template){ .id = w->n_templates, .first_job = w->n_jobs, .step = 1 };
	rc = make_template(w, spec, t, err);
	if (rc < 0)
		return rc;
	t->submit_us = submit_us;
	t->begin_us = time_or(w, spec->begin, 0);
	t->deadline_us = time_or(w, spec->deadline, 0);
	t->walltime_us = spec->walltime == SC_ABSENT || spec->walltime < 0
				 ? GPUQ_UNLIMITED
				 : world_us(w, spec->walltime);
	t->array = spec->array != NULL;
	t->n_jobs = 1;
	if (t->array) {
		t->first = (int32_t)(spec->array->first / 1000);
		t->step = (int32_t)(spec->array->step / 1000);
		t->n_jobs =
			(uint32_t)((spec->array->last - spec->array->first) / spec->array->step) +
			1;
	}
	for (uint32_t k = 0; k < t->n_jobs; k++) {
		struct sim_job *j = append(w, &w->jobs, &w->n_jobs, &w->room_jobs, sizeof(*j), err);

		if (!j)
			return GPUQ_ENOMEM;
		*j = (struct sim_job){ .template_ix = w->n_templates - 1,
				       .element = t->array ? t->first + (int32_t)k * t->step : -1,
				       .name = spec->name,
				       .queue = queue,
				       .priority = spec->priority,
				       .hold = spec->hold,
				       .was = SIM_PENDING };
		if (t->array)
			j->name = gpuq_arena_printf(&w->arena, "%s[%d]", spec->name, j->element);
		if (!j->name)
			return no_memory(err);
	}
	return 0;
}

int world_submit(struct world *w, const struct sc_job *spec, struct gpuq_err *err)
{
	return add_job(w, spec, time_or(w, spec->submit, w->now_us), err);
}

/* ---- what runs when the case begins ---- */

/* Thousandths that are free of each device of a node. */
static void device_free(const struct world *w, uint32_t node, int32_t *out)
{
	for (int64_t d = 0; d < w->nodes[node].spec->gpus / 1000; d++)
		out[d] = SNAP_MILLI;
	for (uint32_t i = 0; i < w->n_jobs; i++)
		for (uint32_t t = 0; t < w->jobs[i].n_tasks; t++)
			for (uint32_t d = 0; d < w->jobs[i].tasks[t].n_devices; d++)
				if (w->jobs[i].tasks[t].node == node)
					out[w->jobs[i].tasks[t].devices[d]] -=
						w->jobs[i].tasks[t].milli;
}

static int seat_task(struct world *w, const struct sim_job *j, const struct sc_tasks *spec,
		     struct sim_task *task, struct gpuq_err *err)
{
	int32_t free_milli[SNAP_DEVICES_MAX];
	const int64_t n_node = w->nodes[task->node].spec->gpus / 1000;
	const uint32_t want =
		spec->gpus > 0 && spec->gpus < SNAP_MILLI ? 1 : (uint32_t)(spec->gpus / SNAP_MILLI);

	task->milli = want ? (int32_t)(spec->gpus / want) : 0;
	task->devices = gpuq_arena_calloc(&w->arena, want, sizeof(*task->devices));
	if (!task->devices)
		return no_memory(err);
	device_free(w, task->node, free_milli);
	for (size_t i = 0; i < spec->n_gpu_index && task->n_devices < want; i++) {
		const int64_t d = spec->gpu_index[i];

		if (d >= n_node || free_milli[d] < task->milli)
			return gpuq_fail_field(
				err, GPUQ_EINVAL, "gpu_index",
				"%s: job %s: device %lld of %s is not there or taken", w->c->id,
				j->name, (long long)d, w->nodes[task->node].name);
		free_milli[d] -= task->milli;
		task->devices[task->n_devices++] = (uint32_t)d;
	}
	for (int64_t d = 0; d < n_node && task->n_devices < want; d++) {
		if (free_milli[d] < task->milli)
			continue;
		free_milli[d] -= task->milli;
		task->devices[task->n_devices++] = (uint32_t)d;
	}
	if (task->n_devices < want)
		return gpuq_fail_field(err, GPUQ_EINVAL, "tasks",
				       "%s: job %s: node %s has no room for what it runs", w->c->id,
				       j->name, w->nodes[task->node].name);
	return 0;
}

static int seat_job(struct world *w, const struct sc_job *spec, struct gpuq_err *err)
{
	const struct sim_template *t = &w->templates[w->n_templates - 1];
	const struct sc_tasks *tasks = spec->tasks.items;
	struct sim_job *j = &w->jobs[t->first_job];
	uint32_t n = 0;

	for (uint32_t g = 0; g < t->n_groups; g++)
		n += t->groups[g].count;
	j->state = j->was = SIM_RUNNING;
	j->start_us = time_or(w, spec->start, t->submit_us);
	j->tasks = gpuq_arena_calloc(&w->arena, n, sizeof(*j->tasks));
	if (!j->tasks)
		return no_memory(err);
	j->releasing = true;
	for (size_t i = 0; i < spec->tasks.n; i++) {
		const uint32_t node = tasks[i].node ? world_node(w, tasks[i].node) : SNAP_NONE;
		uint32_t g = 0;

		if (node == SNAP_NONE)
			return gpuq_fail_field(err, GPUQ_EINVAL, "tasks", "%s: job %s runs on %s%s",
					       w->c->id, j->name,
					       tasks[i].node ? "unknown node " : "no node",
					       tasks[i].node ? tasks[i].node : "");
		while (!alike(t->groups[g].tasks, &tasks[i]) && t->groups[g].tasks != &tasks[i])
			g++;
		for (int64_t k = 0; k < tasks[i].count / 1000; k++) {
			struct sim_task *task = &j->tasks[j->n_tasks];
			int rc;

			*task = (struct sim_task){ .node = node,
						   .group = g,
						   .releasing = tasks[i].releasing };
			rc = seat_task(w, j, &tasks[i], task, err);
			if (rc < 0)
				return rc;
			j->n_tasks++;
			j->releasing &= tasks[i].releasing;
		}
	}
	j->was_tasks = j->n_tasks;
	return 0;
}

static int make_jobs(struct world *w, struct gpuq_err *err)
{
	const struct sc_job *lists[] = { w->c->running.items, w->c->pending.items };
	const size_t counts[] = { w->c->running.n, w->c->pending.n };
	const size_t n = counts[0] + counts[1];
	int64_t *submit = gpuq_arena_calloc(&w->arena, n, sizeof(*submit));
	int64_t earliest = w->now_us;

	if (!submit)
		return no_memory(err);
	/* Absent = before everything listed after it. */
	for (size_t i = n; i-- > 0;) {
		const struct sc_job *spec = i < counts[0] ? &lists[0][i] : &lists[1][i - counts[0]];

		submit[i] = time_or(w, spec->submit, earliest - 1);
		if (submit[i] > w->now_us)
			return gpuq_fail_field(err, GPUQ_EINVAL, "submit",
					       "%s: job %s is submitted after now", w->c->id,
					       spec->name);
		if (submit[i] < earliest)
			earliest = submit[i];
	}
	for (size_t i = 0; i < n; i++) {
		const struct sc_job *spec = i < counts[0] ? &lists[0][i] : &lists[1][i - counts[0]];
		int rc = add_job(w, spec, submit[i], err);

		if (rc == 0 && i < counts[0])
			rc = seat_job(w, spec, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int world_make(const struct sc_case *c, struct world *w, struct gpuq_err *err)
{
	static const int64_t seconds[] = { 1, 60, 3600, 86400 };
	static int (*const steps[])(struct world *, struct gpuq_err *) = {
		make_nodes, make_flavors, make_queues, make_licenses, make_jobs,
	};
	int rc = 0;

	*w = (struct world){ .c = c, .unit_us = seconds[c->config.unit] * GPUQ_US_PER_S };
	w->now_us = world_us(w, c->config.now);
	for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		rc = steps[i](w, err);
	return rc;
}

void world_done(struct world *w)
{
	gpuq_arena_done(&w->arena);
}

struct sim_job *world_job(struct world *w, const char *name)
{
	for (uint32_t i = 0; i < w->n_jobs; i++)
		if (strcmp(w->jobs[i].name, name) == 0)
			return &w->jobs[i];
	return NULL;
}

const char *const world_fates[N_SIM_FATES] = {
	[SIM_FATE_STARTED] = "started",     [SIM_FATE_RUNNING] = "running",
	[SIM_FATE_PREEMPTED] = "preempted", [SIM_FATE_PENDING] = "pending",
	[SIM_FATE_SHRUNK] = "shrunk",       [SIM_FATE_GROWN] = "grown",
	[SIM_FATE_ENDED] = "ended",
};

enum sim_fate world_fate(const struct sim_job *j)
{
	if (j->releasing)
		return SIM_FATE_PREEMPTED;
	if (j->state == SIM_ENDED)
		return SIM_FATE_ENDED;
	if (j->state == SIM_PENDING)
		return j->was == SIM_RUNNING ? SIM_FATE_PREEMPTED : SIM_FATE_PENDING;
	if (j->was != SIM_RUNNING)
		return SIM_FATE_STARTED;
	if (j->n_tasks == j->was_tasks)
		return SIM_FATE_RUNNING;
	return j->n_tasks < j->was_tasks ? SIM_FATE_SHRUNK : SIM_FATE_GROWN;
}

int world_evicted(struct world *w, const struct sim_job *j, const char *cause, struct gpuq_err *err)
{
	struct sim_eviction *e =
		append(w, &w->evictions, &w->n_evictions, &w->room_evictions, sizeof(*e), err);

	if (!e)
		return GPUQ_ENOMEM;
	*e = (struct sim_eviction){ (uint32_t)(j - w->jobs), "requeue", cause };
	return 0;
}

void world_mark(struct world *w)
{
	w->n_evictions = 0;
	for (uint32_t i = 0; i < w->n_jobs; i++) {
		w->jobs[i].was = w->jobs[i].state;
		w->jobs[i].was_tasks = w->jobs[i].n_tasks;
		w->jobs[i].releasing = false;
	}
}
