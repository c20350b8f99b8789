#include <stdlib.h>
#include <string.h>

#include "gpuqd/sim/world_int.h"
#include "libgpuq/spec/profile.h"

/* The running jobs at the beginning of a case: their places, and how they got them. */

/* Get the free thousandths of each device of a node. */
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

/* Return the devices that a task needs, and how much of each. A share may be given in memory. */
static uint32_t devices_of(const struct world *w, uint32_t node, const struct sc_tasks *spec,
			   int32_t *milli)
{
	const int64_t memory = w->nodes[node].spec->gpu_mem_mb;
	int64_t share = spec->gpus, part;

	*milli = 0;
	if (spec->mig)
		return 0;
	if (spec->gpu_mem_mb > 0 && memory > 0) {
		part = share % SNAP_MILLI;
		if (part == 0)
			part = (spec->gpu_mem_mb * SNAP_MILLI + memory - 1) / memory;
		*milli = part <= SNAP_MILLI ? (int32_t)part : SNAP_MILLI + 1;
		return share <= SNAP_MILLI ? 1 : (uint32_t)(share / SNAP_MILLI);
	}
	if (share > 0 && share < SNAP_MILLI) {
		*milli = (int32_t)share;
		return 1;
	}
	*milli = share ? SNAP_MILLI : 0;
	return (uint32_t)((share + SNAP_MILLI - 1) / SNAP_MILLI);
}

static int by_device(const void *x, const void *y)
{
	return (*(const uint32_t *)x > *(const uint32_t *)y) -
	       (*(const uint32_t *)x < *(const uint32_t *)y);
}

static int seat_task(struct world *w, const struct sim_job *j, const struct sc_tasks *spec,
		     struct sim_task *task, struct gpuq_err *err)
{
	int32_t free_milli[SNAP_DEVICES_MAX];
	const int64_t n_node = w->nodes[task->node].spec->gpus / 1000;
	const uint32_t want = devices_of(w, task->node, spec, &task->milli);

	task->devices = gpuq_arena_calloc(&w->arena, want, sizeof(*task->devices));
	if (!task->devices)
		return gpuq_no_memory(err);
	device_free(w, task->node, free_milli);
	for (size_t i = 0; i < spec->n_gpu_index && task->n_devices < want; i++) {
		const int64_t d = spec->gpu_index[i];

		if (d >= n_node || free_milli[d] < task->milli)
			return gpuq_fail_field(err, GPUQ_EINVAL, "gpu_index",
					       "job %s: device %lld of %s is not there or taken",
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
				       "job %s: node %s has no room for what it runs", j->name,
				       w->nodes[task->node].name);
	if (task->n_devices > 1)
		qsort(task->devices, task->n_devices, sizeof(*task->devices), by_device);
	return 0;
}

/* Place the tasks of one entry of a running job's list. Those without a node are pods by which an
 * elastic job may still grow. */
static int seat_entry(struct world *w, struct sim_job *j, const struct sc_tasks *tasks,
		      struct gpuq_err *err)
{
	const uint32_t node = tasks->node ? world_node(w, tasks->node) : SNAP_NONE;

	if (!tasks->node)
		return 0;
	if (node == SNAP_NONE)
		return gpuq_fail_field(err, GPUQ_EINVAL, "tasks", "job %s runs on unknown node %s",
				       j->name, tasks->node);
	for (int64_t k = 0; k < tasks->count / 1000; k++) {
		struct sim_task *task = &j->tasks[j->n_tasks];
		int rc;

		*task = (struct sim_task){ .node = node,
					   .group = world_group_of(world_template(w, j), tasks),
					   .releasing = tasks->releasing };
		rc = seat_task(w, j, tasks, task, err);
		if (rc < 0)
			return rc;
		j->n_tasks++;
		j->was_tasks += !tasks->releasing;
	}
	return 0;
}

/* Number the tasks in the order of ranks, whatever the order in the list. */
static void number_tasks(const struct sim_template *t, struct sim_job *j)
{
	const struct sc_tasks *tasks = t->spec->tasks.items;
	uint32_t first[GPUQ_GROUPS_MAX * 64] = { 0 }, n = 0, index = 0;

	for (size_t i = 0; i < t->spec->tasks.n; i++) {
		first[i] = n;
		n += tasks[i].node ? (uint32_t)(tasks[i].count / 1000) : 0;
	}
	for (size_t i = 0; i < t->spec->tasks.n; i++) {
		const struct sc_tasks *one = &tasks[t->order[i]];

		for (int64_t k = 0; one->node && k < one->count / 1000; k++)
			j->tasks[first[t->order[i]] + k].index = index++;
	}
}

int world_seat_job(struct world *w, const struct sc_job *spec, struct gpuq_err *err)
{
	const struct sim_template *t = &w->templates[w->n_templates - 1];
	const struct sc_tasks *tasks = spec->tasks.items;
	struct sim_job *j = &w->jobs[t->first_job];
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t g = 0; g < t->n_groups; g++)
		n += t->groups[g].count;
	j->state = j->was = SIM_RUNNING;
	j->start_us = world_at_or(w, spec->start, t->submit_us);
	if (spec->last_checkpoint != SC_ABSENT)
		j->checkpoint_us = world_at(w, spec->last_checkpoint);
	j->tasks = gpuq_arena_calloc(&w->arena, n, sizeof(*j->tasks));
	if (!j->tasks)
		return gpuq_no_memory(err);
	for (size_t i = 0; rc == 0 && i < spec->tasks.n; i++)
		rc = seat_entry(w, j, &tasks[i], err);
	if (rc < 0)
		return rc;
	if (j->n_tasks == 0)
		return gpuq_fail_field(err, GPUQ_EINVAL, "tasks", "job %s runs on no node",
				       j->name);
	number_tasks(t, j);
	j->left = j->was_tasks == 0;
	return 0;
}

static int by_index(const void *x, const void *y)
{
	const struct sim_task *a = x, *b = y;

	return (a->index > b->index) - (a->index < b->index);
}

static const char *flavor_of(const struct world *w, const struct sim_job *j)
{
	for (uint32_t t = 0; t < j->n_tasks; t++)
		if (j->tasks[t].n_devices ||
		    world_template(w, j)->groups[j->tasks[t].group].tasks->mig)
			return w->nodes[j->tasks[t].node].spec->flavor
				       ? w->nodes[j->tasks[t].node].spec->flavor
				       : "default";
	return "";
}

/* Return what a task is charged for each device: its part, or its memory if that is more of it. */
static int64_t charge_of(const struct world *w, const struct sim_job *j,
			 const struct sim_task *task)
{
	const int64_t mb = world_template(w, j)->groups[task->group].tasks->gpu_mem_mb,
		      of_mb = w->nodes[task->node].spec->gpu_mem_mb;
	const int64_t share = mb > 0 && of_mb > 0 ? mb * SNAP_MILLI / of_mb : 0;

	return share > task->milli ? share : task->milli;
}

/* Return the profile that a running task has where several would do: the first; of replicas that which its node has. */
static const char *chosen(const struct world *w, const struct sim_job *j,
			  const struct sim_task *task)
{
	const struct sc_tasks *t = world_template(w, j)->groups[task->group].tasks;
	const struct gpuq_strmap *has = &w->nodes[task->node].spec->mig;

	for (size_t i = 0; t->mig && gpuq_profile_is_any(t->mig) && i < has->n; i++)
		if (gpuq_profile_serves(has->keys[i], t->mig))
			return has->keys[i];
	return t->mig_more.n || t->mig_ok ? t->mig : NULL;
}

/* Place the job and let it run from its start. A leaving job was signalled then, too. */
static int place_job(struct world *w, struct sim_job *j, struct gpuq_err *err)
{
	struct event ev = { .type = EV_JOB_PLACED, .at_us = j->start_us };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct placed_pod *pods = gpuq_arena_calloc(&mem, j->n_tasks, sizeof(*pods));
	uint32_t *leaving = gpuq_arena_calloc(&mem, j->n_tasks, sizeof(*leaving));
	uint32_t in_group[GPUQ_GROUPS_MAX] = { 0 }, n_leaving = 0;
	char token[33];
	int rc = pods && leaving ? 0 : gpuq_no_memory(err);

	qsort(j->tasks, j->n_tasks, sizeof(*j->tasks), by_index);
	for (uint32_t i = 0; rc == 0 && i < j->n_tasks; i++) {
		const struct sim_task *task = &j->tasks[i];
		uint16_t *devices = gpuq_arena_calloc(&mem, task->n_devices, sizeof(*devices));

		if (!devices) {
			rc = gpuq_no_memory(err);
			break;
		}
		for (uint32_t d = 0; d < task->n_devices; d++)
			devices[d] = (uint16_t)task->devices[d];
		pods[i] = (struct placed_pod){ .group = task->group,
					       .group_index = in_group[task->group]++,
					       .node = w->nodes[task->node].name,
					       .devices = devices,
					       .n_devices = task->n_devices,
					       .mig = chosen(w, j, task),
					       .gpus_milli =
						       task->n_devices * charge_of(w, j, task) };
		if (task->releasing)
			leaving[n_leaving++] = i;
	}
	world_token(token);
	ev.job = (struct job_key){ world_template(w, j)->id, -1 };
	ev.placed.token = token;
	ev.placed.flavor = flavor_of(w, j);
	ev.placed.pods = pods;
	ev.placed.n_pods = j->n_tasks;
	if (rc == 0)
		rc = world_event(w, &ev, err);
	if (rc == 0)
		rc = world_start_pods(w, j, j->start_us, err);
	if (rc == 0 && n_leaving == j->n_tasks) {
		ev = (struct event){ .type = EV_JOB_CANCEL_ASKED,
				     .at_us = j->start_us,
				     .job = ev.job };
		ev.cancel.who = "";
		rc = world_event(w, &ev, err);
	} else if (rc == 0 && n_leaving) {
		ev = (struct event){ .type = EV_JOB_SHRINK_ASKED,
				     .at_us = j->start_us,
				     .job = ev.job };
		ev.evict.by = ev.evict.rule = "";
		ev.evict.pods = leaving;
		ev.evict.n_pods = n_leaving;
		rc = world_event(w, &ev, err);
	}
	gpuq_arena_done(&mem);
	return rc;
}

/* Place running jobs in the order of their starts: accounts only advance in time. */
int world_place_jobs(struct world *w, struct gpuq_err *err)
{
	const size_t n = w->c->running.n;
	struct sim_job **all = gpuq_arena_calloc(&w->arena, n, sizeof(struct sim_job *));
	int rc = all ? 0 : gpuq_no_memory(err);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		size_t at = i;

		/* A running job's template has one job, in the same order. */
		for (;
		     at > 0 && all[at - 1]->start_us > w->jobs[w->templates[i].first_job].start_us;
		     at--)
			all[at] = all[at - 1];
		all[at] = &w->jobs[w->templates[i].first_job];
	}
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = place_job(w, all[i], err);
	return rc;
}
