#include <string.h>

#include "gpuqd/sim/world_int.h"

/* Submission of a case's jobs to the model. */

static int fill_groups(struct world *w, const struct sim_template *t, struct gpuq_spec *out,
		       struct gpuq_err *err)
{
	const struct gpuq_objects *in_slices = &t->spec->topology.slices;
	const struct sc_slice *in = in_slices->items;
	struct gpuq_slice *slices = gpuq_arena_calloc(&w->arena, in_slices->n, sizeof(*slices));

	out->groups = gpuq_arena_calloc(&w->arena, t->n_groups, sizeof(*out->groups));
	if (!out->groups || !slices)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < in_slices->n; i++)
		slices[i] = (struct gpuq_slice){ in[i].level, in[i].size / 1000 };
	out->n_groups = t->n_groups;
	for (uint32_t g = 0; g < t->n_groups; g++) {
		const struct sim_group *from = &t->groups[g];
		const struct sc_tasks *tasks = from->tasks;
		size_t n_resources;
		struct gpuq_amount *resources =
			scenario_resources(&w->arena, &tasks->resources, &n_resources);

		if (!resources)
			return gpuq_no_memory(err);
		out->groups[g] = (struct gpuq_group){
			.name = tasks->role ? tasks->role : "main",
			.pods_min = from->min,
			.pods_max = from->count,
			.gpus_milli = tasks->gpus == 0 && (tasks->mig || tasks->gpu_mem_mb)
					      ? SNAP_MILLI
					      : tasks->gpus,
			.gpu_memory_bytes = tasks->gpu_mem_mb / 1000 << 20,
			.cpu_milli = tasks->cpu / 1000,
			.memory_bytes = tasks->mem_mb / 1000 << 20,
			.mig = tasks->mig_ok ? NULL : tasks->mig,
			.mig_more = tasks->mig_more,
			.mig_ok = tasks->mig_ok,
			.resources = resources,
			.n_resources = n_resources,
			.required = from->term,
			.n_required = from->term != NULL,
			.tolerations = from->tolerations,
			.n_tolerations = tasks->tolerations.n,
			.topology_required = t->spec->topology.required,
			.topology_preferred = t->spec->topology.preferred,
			.slices = slices,
			.n_slices = in_slices->n,
		};
	}
	return 0;
}

/* Return the job or element with that name; id 0: none. */
static struct snap_key key_named(const struct world *w, const char *name)
{
	for (uint32_t t = 0; name && t < w->n_templates; t++)
		if (strcmp(w->templates[t].spec->name, name) == 0)
			return (struct snap_key){ w->templates[t].id, -1 };
	for (uint32_t i = 0; name && i < w->n_jobs; i++)
		if (strcmp(w->jobs[i].name, name) == 0)
			return (struct snap_key){ world_template(w, &w->jobs[i])->id,
						  w->jobs[i].element };
	return (struct snap_key){ 0, -1 };
}

static int fill_depends(struct world *w, const struct sim_template *t, struct gpuq_spec *out,
			struct gpuq_err *err)
{
	const struct gpuq_objects *lists[] = { &t->spec->depends, &t->spec->depends_any };
	const size_t n = lists[0]->n + lists[1]->n;

	out->depends = gpuq_arena_calloc(&w->arena, n, sizeof(*out->depends));
	if (!out->depends)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		const bool any = i >= lists[0]->n;
		const struct sc_depend *d = lists[any]->items;
		const struct snap_key on = key_named(w, (d += any ? i - lists[0]->n : i)->job);

		out->depends[out->n_depends++] =
			(struct gpuq_depend){ .type = d->type,
					      .job = on.id ? on.id : UINT32_MAX,
					      .array_index = on.index,
					      .delay_us = world_us(w, d->delay) };
	}
	out->depends_any = lists[1]->n > 0;
	return 0;
}

/* Report the present state of its dependencies. */
static int tell_depends(struct world *w, const struct sim_template *t, struct gpuq_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && t->job.n_depends && i < w->n_jobs; i++) {
		const struct sim_job *j = &w->jobs[i];
		bool meant = false;

		for (size_t d = 0; d < t->job.n_depends; d++)
			meant |= t->job.depends[d].job == world_template(w, j)->id;
		if (meant && &w->templates[j->template_ix] != t)
			rc = world_tell_past(w, j, err);
	}
	return rc;
}

/* Return the queue, or the next one above it, that has default flavors; NULL = none has. */
static const struct sc_queue *queue_that_prefers(const struct world *w, const char *name)
{
	const struct sc_queue *q = world_queue(w, name);

	while (q && q->flavors.n == 0)
		q = q->parent ? world_queue(w, q->parent) : NULL;
	return q;
}

int world_tell_job(struct world *w, struct sim_template *t, const char *queue, struct gpuq_err *err)
{
	struct event ev = { .type = EV_JOB_SUBMITTED, .at_us = t->submit_us };
	struct gpuq_range *range = gpuq_arena_calloc(&w->arena, 1, sizeof(*range));
	int rc;

	const struct sc_queue *q = queue_that_prefers(w, queue);
	const bool own = t->spec->flavors.n > 0 || !q;

	t->job = (struct gpuq_spec){
		.name = t->spec->jobname ? t->spec->jobname : t->spec->name,
		.time_min_us = t->walltime_min_us,
		.begin_us = t->begin_us,
		.deadline_us = t->deadline_us,
		.nice = t->spec->nice / 1000,
		.priority = t->spec->fixed_priority / 1000,
		.hold = t->spec->hold,
		.requeue = t->spec->preempt_mode != SC_PREEMPT_CANCEL,
		.flavors = own ? t->spec->flavors : q->flavors,
		.flavor_rules = own ? t->spec->flavor_rules : q->flavor_rules,
		.spot = t->spec->spot,
		.licenses = t->spec->licences,
		.exclusive = t->spec->exclusive,
		.isolation = t->spec->isolation,
		.context.umask = -1,
	};
	t->qos = world_qos(w, t->spec);
	rc = t->qos && range ? 0 : gpuq_no_memory(err);
	if (rc == 0)
		rc = fill_groups(w, t, &t->job, err);
	if (rc == 0)
		rc = fill_depends(w, t, &t->job, err);
	if (rc < 0)
		return rc;
	if (t->array) {
		*range = (struct gpuq_range){ t->first,
					      t->first + (int64_t)(t->n_jobs - 1) * t->step,
					      t->step };
		t->job.array =
			(struct gpuq_array){ range, 1, t->n_jobs, t->spec->array->throttle / 1000 };
	}
	ev.job = (struct job_key){ t->id, -1 };
	ev.submitted.spec = &t->job;
	ev.submitted.spec_bytes = "";
	ev.submitted.request_bytes = &t->id;
	ev.submitted.request_len = sizeof(t->id);
	ev.submitted.as_written = true;
	ev.submitted.user = t->spec->user;
	ev.submitted.queue = queue;
	ev.submitted.qos = t->qos;
	ev.submitted.time_limit_us = t->walltime_us;
	rc = world_event(w, &ev, err);
	return rc < 0 ? rc : tell_depends(w, t, err);
}
