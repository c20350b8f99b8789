#include "gpuqd/sim/world_int.h"
#include "gpuqd/sim/world_jobs.h"

#include <stdlib.h>
#include <string.h>

/* The jobs of a case: those at its beginning, and those submitted later. */

static bool same_str(const char *x, const char *y)
{
	return x == y || (x && y && strcmp(x, y) == 0);
}

static bool same_profiles(const struct sc_tasks *x, const struct sc_tasks *y)
{
	/* Beside mig_ok it is the one that a running task has. */
	if (x->mig_ok && y->mig_ok)
		return true;
	if (x->mig_ok != y->mig_ok || !same_str(x->mig, y->mig) || x->mig_more.n != y->mig_more.n)
		return false;
	for (size_t i = 0; i < x->mig_more.n; i++)
		if (strcmp(x->mig_more.items[i], y->mig_more.items[i]) != 0)
			return false;
	return true;
}

/* True if two entries of a task list have equal requests. They are one group then, also when they
 * are of different sub-groups of a job that requires only some of those. */
static bool alike(const struct sc_job *spec, const struct sc_tasks *x, const struct sc_tasks *y)
{
	if (x->gpus != y->gpus || x->gpu_mem_mb != y->gpu_mem_mb || x->cpu != y->cpu ||
	    x->mem_mb != y->mem_mb || !same_profiles(x, y) || !same_str(x->role, y->role) ||
	    (spec->min_groups == SC_ABSENT && !same_str(x->group, y->group)) ||
	    x->selector.n != y->selector.n || x->tolerations.n != y->tolerations.n)
		return false;
	if (x->resources.n != y->resources.n)
		return false;
	for (size_t i = 0; i < x->resources.n; i++)
		if (strcmp(x->resources.keys[i], y->resources.keys[i]) != 0 ||
		    strcmp(x->resources.vals[i], y->resources.vals[i]) != 0)
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
			return gpuq_no_memory(err);
		g->term->n = sel->n;
		for (size_t i = 0; i < sel->n; i++)
			g->term->all[i] = (struct gpuq_require){ sel->keys[i],
								 GPUQ_OP_IN,
								 { &sel->vals[i], 1 } };
	}
	g->tolerations =
		gpuq_arena_calloc(&w->arena, g->tasks->tolerations.n, sizeof(*g->tolerations));
	if (!g->tolerations)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < g->tasks->tolerations.n; i++)
		g->tolerations[i] =
			(struct gpuq_toleration){ .key = tol[i].key,
						  .exists = strcmp(tol[i].op, "Exists") == 0,
						  .value = tol[i].value,
						  .effect = tol[i].effect,
						  .seconds = -1 };
	return 0;
}

/* Return how many tasks of a role must run; SC_ABSENT = not given. */
static int64_t role_min(const struct sc_job *spec, const char *role)
{
	for (size_t i = 0; role && i < spec->role_min.n; i++)
		if (strcmp(spec->role_min.keys[i], role) == 0)
			return strtoll(spec->role_min.vals[i], NULL, 10);
	return SC_ABSENT;
}

uint32_t world_group_of(const struct sim_template *t, const struct sc_tasks *tasks)
{
	uint32_t g = 0;

	while (g < t->n_groups && !alike(t->spec, t->groups[g].tasks, tasks) &&
	       t->groups[g].tasks != tasks)
		g++;
	return g;
}

/* Spread the job's minimum over its groups: by role where roles have one, else in the
 * order of ranks. */
static void set_minimums(const struct sc_job *spec, struct sim_template *t, const uint32_t *order)
{
	const struct sc_tasks *tasks = spec->tasks.items;
	int64_t left = spec->min_tasks == SC_ABSENT ? INT64_MAX : spec->min_tasks / 1000;

	if (spec->min_groups != SC_ABSENT)
		left = spec->min_groups / 1000 * t->unit;
	for (uint32_t g = 0; g < t->n_groups; g++) {
		const int64_t min = role_min(spec, t->groups[g].tasks->role);

		if (min == SC_ABSENT)
			continue;
		t->groups[g].min = min < t->groups[g].count ? (uint32_t)min : t->groups[g].count;
		left -= left == INT64_MAX ? 0 : t->groups[g].min;
	}
	for (size_t i = 0; i < spec->tasks.n && left > 0; i++) {
		const struct sc_tasks *one = &tasks[order[i]];
		const int64_t n = one->count / 1000 < left ? one->count / 1000 : left;

		if (role_min(spec, one->role) != SC_ABSENT)
			continue;
		t->groups[world_group_of(t, one)].min += (uint32_t)n;
		left -= left == INT64_MAX ? 0 : n;
	}
	/* A job that is below its minimum already lists only what is left of it. */
	if (spec->stale && left > 0 && left != INT64_MAX) {
		t->groups[0].min += (uint32_t)left;
		t->groups[0].count += (uint32_t)left;
	}
}

/* Set the number of tasks of a sub-group: as given, or that of the first named one. */
static int set_unit(const struct world *w, const struct sc_job *spec, struct sim_template *t,
		    struct gpuq_err *err)
{
	const struct sc_tasks *tasks = spec->tasks.items;
	int64_t first = 0;

	for (size_t i = 0; tasks[0].group && i < spec->tasks.n; i++)
		first += same_str(tasks[i].group, tasks[0].group) ? tasks[i].count / 1000 : 0;
	t->unit = spec->group_size == SC_ABSENT ? (uint32_t)first
						: (uint32_t)(spec->group_size / 1000);
	if (spec->min_groups != SC_ABSENT && t->unit == 0)
		return gpuq_fail_field(err, GPUQ_EINVAL, "min_groups",
				       "job %s: min_groups without group_size or named groups",
				       spec->name);
	return 0;
}

static int make_template(struct world *w, const struct sc_job *spec, struct sim_template *t,
			 struct gpuq_err *err)
{
	const struct sc_tasks *tasks = spec->tasks.items;
	uint32_t *order = gpuq_arena_calloc(&w->arena, spec->tasks.n, sizeof(*order));
	int rc;

	t->spec = spec;
	t->groups = gpuq_arena_calloc(&w->arena, spec->tasks.n, sizeof(*t->groups));
	if (!t->groups || !order)
		return gpuq_no_memory(err);
	for (uint32_t i = 0; i < spec->tasks.n; i++) {
		uint32_t at = i;

		for (; at > 0 && tasks[order[at - 1]].rank > tasks[i].rank; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	t->order = order;
	for (size_t i = 0; i < spec->tasks.n; i++) {
		const struct sc_tasks *one = &tasks[order[i]];
		const uint32_t g = world_group_of(t, one);

		if (g == t->n_groups)
			t->groups[t->n_groups++].tasks = one;
		t->groups[g].count += (uint32_t)(one->count / 1000);
	}
	if (t->n_groups > GPUQ_GROUPS_MAX)
		return gpuq_fail_field(err, GPUQ_EINVAL, "tasks",
				       "job %s: more than %u kinds of tasks", spec->name,
				       GPUQ_GROUPS_MAX);
	rc = set_unit(w, spec, t, err);
	for (uint32_t g = 0; rc == 0 && g < t->n_groups; g++)
		rc = make_constraint(w, &t->groups[g], err);
	if (rc == 0)
		set_minimums(spec, t, order);
	return rc;
}

static int check_job(struct world *w, const struct sc_job *spec, const char **queue,
		     struct gpuq_err *err)
{
	*queue = spec->queue;
	for (uint32_t q = 0; !*queue && q < w->n_queues; q++)
		if (w->n_queues == 1 || strcmp(w->queues[q].name, "default") == 0)
			*queue = w->queues[q].name;
	if (!*queue)
		return gpuq_fail_field(err, GPUQ_EINVAL, "queue", "job %s: names no queue",
				       spec->name);
	for (uint32_t q = 0; q < w->n_queues; q++) {
		if (w->queues[q].parent && strcmp(w->queues[q].parent, *queue) == 0)
			return gpuq_fail_field(err, GPUQ_EINVAL, "queue",
					       "job %s: queue %s has queues below it", spec->name,
					       *queue);
	}
	for (uint32_t q = 0; q < w->n_queues; q++)
		if (strcmp(w->queues[q].name, *queue) == 0)
			goto known;
	return gpuq_fail_field(err, GPUQ_EINVAL, "queue", "job %s: unknown queue %s", spec->name,
			       *queue);
known:
	for (uint32_t t = 0; t < w->n_templates; t++)
		if (strcmp(w->templates[t].spec->name, spec->name) == 0)
			return gpuq_fail_field(err, GPUQ_EINVAL, "job", "two jobs are named %s",
					       spec->name);
	for (size_t i = 0; i < spec->licences.n; i++)
		if (!world_knows(w->licenses, w->n_licenses, spec->licences.keys[i]))
			return gpuq_fail_field(err, GPUQ_EINVAL, "licences",
					       "job %s: unknown licence %s", spec->name,
					       spec->licences.keys[i]);
	return 0;
}

/* Add a job (all members of an array), pending since submit_us. */
static int add_job(struct world *w, const struct sc_job *spec, int64_t submit_us,
		   struct gpuq_err *err)
{
	const char *queue;
	struct sim_template *t;
	int rc = check_job(w, spec, &queue, err);

	if (rc < 0)
		return rc;
	t = world_append(w, &w->templates, &w->n_templates, &w->room_templates, sizeof(*t), err);
	if (!t)
		return GPUQ_ENOMEM;
	*t = (struct sim_template){ .id = w->n_templates, .first_job = w->n_jobs, .step = 1 };
	rc = make_template(w, spec, t, err);
	if (rc < 0)
		return rc;
	t->submit_us = submit_us;
	t->begin_us = world_at_or(w, spec->begin, 0);
	t->deadline_us = world_at_or(w, spec->deadline, 0);
	t->walltime_us = spec->walltime == SC_ABSENT || spec->walltime < 0
				 ? GPUQ_UNLIMITED
				 : world_us(w, spec->walltime);
	t->walltime_min_us = world_time_or(w, spec->walltime_min, 0);
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
		struct sim_job *j =
			world_append(w, &w->jobs, &w->n_jobs, &w->room_jobs, sizeof(*j), err);

		if (!j)
			return GPUQ_ENOMEM;
		*j = (struct sim_job){ .template_ix = w->n_templates - 1,
				       .element = t->array ? t->first + (int32_t)k * t->step : -1,
				       .name = spec->name,
				       .queue = queue,
				       .priority = spec->priority,
				       .use = spec->use,
				       .was = SIM_PENDING };
		if (t->array)
			j->name = gpuq_arena_printf(&w->arena, "%s[%d]", spec->name, j->element);
		if (!j->name)
			return gpuq_no_memory(err);
	}
	return world_tell_job(w, &w->templates[w->n_templates - 1], queue, err);
}

int world_submit(struct world *w, const struct sc_job *spec, struct gpuq_err *err)
{
	return add_job(w, spec, world_at_or(w, spec->submit, w->now_us), err);
}

struct listed {
	const struct sc_job *spec;
	const char *list;
	size_t at; /* in it */
};

/* Return the i-th job: all running ones, then all pending ones. */
static struct listed listed_job(const struct world *w, size_t i)
{
	const size_t n = w->c->running.n;

	if (i < n)
		return (struct listed){ &((const struct sc_job *)w->c->running.items)[i], "running",
					i };
	return (struct listed){ &((const struct sc_job *)w->c->pending.items)[i - n], "pending",
				i - n };
}

int world_make_jobs(struct world *w, struct gpuq_err *err)
{
	const size_t n = w->c->running.n + w->c->pending.n;
	int64_t *submit = gpuq_arena_calloc(&w->arena, n, sizeof(*submit));
	int64_t earliest = w->now_us;

	if (!submit)
		return gpuq_no_memory(err);
	/* Absent = before everything listed after it. */
	for (size_t i = n; i-- > 0;) {
		const struct listed l = listed_job(w, i);

		submit[i] = world_at_or(w, l.spec->submit, earliest - 1);
		if (submit[i] > w->now_us) {
			gpuq_fail_field(
				err, GPUQ_EINVAL, "submit",
				"job %s is submitted after now (config.now, 0 unless given): "
				"make it a step, or set config.now",
				l.spec->name);
			return scenario_within(err, l.list, l.at);
		}
		if (submit[i] < earliest)
			earliest = submit[i];
	}
	for (size_t i = 0; i < n; i++) {
		const struct listed l = listed_job(w, i);
		int rc = add_job(w, l.spec, submit[i], err);

		if (rc == 0 && i < w->c->running.n)
			rc = world_seat_job(w, l.spec, err);
		if (rc < 0)
			return scenario_within(err, l.list, l.at);
	}
	return world_place_jobs(w, err);
}
