#include "gpuqd/flow/report/export_job.h"

#include "gpuqd/sched/quota/plan.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

static const char *key_text(struct export *x, struct snap_key key, uint32_t range)
{
	char text[32];

	plan_key_print(key, text, sizeof(text));
	return range ? gpuq_arena_printf(x->a, "%s.%u", text, range)
		     : gpuq_arena_strdup(x->a, text);
}

/* Write the labels that a node must have. A scenario cannot express other constraints. */
static void export_selector(struct export *x, struct gpuq_val *v, const struct snap_group *g)
{
	const struct gpuq_term *t = g->n_required == 1 ? g->required : NULL;
	struct gpuq_val *map = gpuq_map(x->a);

	for (size_t i = 0; t && i < t->n; i++)
		if (t->all[i].op == GPUQ_OP_IN && t->all[i].values.n == 1)
			export_str(x, map, t->all[i].key, t->all[i].values.items[0]);
	if (map && map->n)
		export_put(x, v, "selector", map);
}

/* Return the group as its owner requested it; NULL = not known. */
static const struct request_group *asked_of(const struct export *x, const struct snap_job *j,
					    uint32_t group)
{
	const struct job *mj = model_find_job(x->m, (struct job_key){ j->key.id, j->key.index });

	return mj && mj->request && group < mj->request->spec.n_groups
		       ? &mj->request->spec.groups[group]
		       : NULL;
}

static void add_profile(struct export *x, struct gpuq_val *list, const char *profile)
{
	for (uint32_t i = 0; list && i < list->n; i++)
		if (gpuq_profile_same(list->items[i]->s, profile))
			return;
	gpuq_add(x->a, list, gpuq_str(x->a, profile));
}

/* Write the profile of a group, with those that do as well; the one that a running job has is the first. Beside mig_ok
 * there is only that one. */
static void export_mig(struct export *x, struct gpuq_val *v, const struct snap_group *g,
		       const struct request_group *asked, bool runs)
{
	const char *own = g->mig_name;
	struct gpuq_val *list = gpuq_list(x->a);

	if (asked && asked->mig_ok)
		export_put(x, v, "mig_ok", gpuq_bool(x->a, true));
	if (!own || (asked && asked->mig_ok)) {
		if (own && runs)
			export_str(x, v, "mig", own);
		return;
	}
	add_profile(x, list, own);
	if (asked && asked->mig)
		add_profile(x, list, asked->mig);
	for (size_t i = 0; asked && asked->mig && i < asked->mig_more.n; i++)
		add_profile(x, list, asked->mig_more.items[i]);
	if (list && list->n > 1)
		export_put(x, v, "mig", list);
	else
		export_str(x, v, "mig", own);
}

/* Write a task; runs: as one that has its place. */
static struct gpuq_val *export_task(struct export *x, const struct snap_job *j,
				    const struct snap_request *r, uint32_t group, bool runs)
{
	const struct snap_group *g = &r->groups[group];
	const struct request_group *asked = asked_of(x, j, group);
	/* An instance has its own memory, and is whole. */
	const bool stands_in = g->mig && asked && asked->mig_ok;
	const int64_t memory = stands_in ? asked->gpu_memory_bytes : g->gpu_memory_bytes;
	struct gpuq_val *v = gpuq_map(x->a), *list = gpuq_list(x->a);
	struct gpuq_val *resources = gpuq_map(x->a);

	export_milli(x, v, "gpus", stands_in ? asked->gpus_milli : g->gpus_milli);
	export_mig(x, v, g, asked, runs);
	for (uint32_t i = 0; i < g->n_resources; i++)
		export_int(x, resources, g->resources[i].name, g->resources[i].count);
	if (g->n_resources)
		export_put(x, v, "resources", resources);
	export_selector(x, v, g);
	if (memory)
		export_int(x, v, "gpu_mem_mb", memory >> 20);
	if (g->cpu_milli)
		export_int(x, v, "cpu", g->cpu_milli);
	if (g->memory_bytes)
		export_int(x, v, "mem_mb", g->memory_bytes >> 20);
	if (r->n_groups > 1)
		export_str(x, v, "role", g->name);
	for (uint32_t i = 0; i < g->n_tolerations; i++) {
		struct gpuq_val *t = gpuq_add(x->a, list, gpuq_map(x->a));

		export_str(x, t, "key", g->tolerations[i].key ? g->tolerations[i].key : "");
		export_str(x, t, "operator", g->tolerations[i].exists ? "Exists" : "Equal");
		export_str(x, t, "value", g->tolerations[i].value ? g->tolerations[i].value : "");
		export_str(x, t, "effect",
			   g->tolerations[i].effect ? g->tolerations[i].effect : "");
	}
	if (g->n_tolerations)
		export_put(x, v, "tolerations", list);
	return v;
}

static void export_topology(struct export *x, struct gpuq_val *v, const struct snap_request *r)
{
	struct gpuq_val *t = gpuq_map(x->a), *slices = gpuq_list(x->a);

	for (uint32_t g = r->n_groups; g-- > 0;) {
		if (r->groups[g].topology_required)
			gpuq_set(x->a, t, "required",
				 gpuq_str(x->a, r->groups[g].topology_required));
		if (r->groups[g].topology_preferred)
			gpuq_set(x->a, t, "preferred",
				 gpuq_str(x->a, r->groups[g].topology_preferred));
	}
	for (uint32_t i = 0; r->n_groups && i < r->groups[0].n_slices; i++) {
		struct gpuq_val *slice = gpuq_add(x->a, slices, gpuq_map(x->a));

		export_str(x, slice, "level", r->groups[0].slices[i].level);
		export_int(x, slice, "size", r->groups[0].slices[i].size);
	}
	if (slices && slices->n)
		export_put(x, t, "slices", slices);
	if (t && t->n)
		export_put(x, v, "topology", t);
}

/* Write how many pods must run: of each role, of sub-groups, or of all together. */
static void export_minimum(struct export *x, struct gpuq_val *v, const struct snap_request *r,
			   int64_t min_tasks)
{
	struct gpuq_val *roles = gpuq_map(x->a);

	if (r->n_groups == 1 && r->groups[0].unit_pods) {
		export_int(x, v, "group_size", r->groups[0].unit_pods);
		export_int(x, v, "min_groups", r->groups[0].pods_min / r->groups[0].unit_pods);
		return;
	}
	for (uint32_t g = 0; r->n_groups > 1 && g < r->n_groups; g++)
		export_int(x, roles, r->groups[g].name, r->groups[g].pods_min);
	if (roles && roles->n)
		export_put(x, v, "role_min", roles);
	else
		export_int(x, v, "min_tasks", min_tasks);
}

/* Write the use of its devices, and how long they may be idle. */
static void export_idle(struct export *x, struct gpuq_val *v, const struct snap_job *j,
			const struct job *mj)
{
	char rule[64];
	const int64_t limit_us = mj ? load_idle_limit_us(x->m, mj, rule) : 0;

	if (limit_us && limit_us < j->walltime_us)
		export_span(x, v, "idle_limit", limit_us);
	if (mj && mj->life->load && mj->life->load->at_us)
		export_milli(x, v, "use", mj->life->load->milli * INT64_C(100));
}

/* Write its flavors, with how long it waits for each, and up to which price. */
static void export_flavors(struct export *x, struct gpuq_val *v, const struct snap_request *r,
			   const struct job *j)
{
	const struct request_spec *spec = j && j->request ? &j->request->spec : NULL;
	const struct gpuq_flavor_rule *rules =
		spec && spec->flavors.n == r->n_flavors ? spec->flavor_rules : NULL;
	const struct gpuq_strlist names = { (const char **)(uintptr_t)r->flavors, r->n_flavors };

	if (names.n)
		export_put(x, v, "flavors", gpuq_flavors_write(x->a, &names, rules));
}

/* Write what does not depend on where the job runs. */
static struct gpuq_val *export_job(struct export *x, const struct snap_job *j, const char *part,
				   const char *name)
{
	const struct snap_request *r = &x->s->requests[j->request];
	const struct job *mj = model_find_job(x->m, (struct job_key){ j->key.id, j->key.index });
	struct gpuq_val *v = export_add(x, part), *needs = gpuq_map(x->a);

	export_str(x, v, "job", name);
	export_str(x, v, "queue", x->s->queues[j->queue].name);
	export_str(x, v, "user", x->s->users[j->user]);
	export_int(x, v, "priority", j->priority);
	export_put(x, v, "preemptible", gpuq_bool(x->a, j->preemptible));
	export_time(x, v, "submit", j->submit_us);
	if (j->walltime_us != GPUQ_UNLIMITED)
		export_span(x, v, "walltime", j->walltime_us);
	if (j->walltime_min_us)
		export_span(x, v, "walltime_min", j->walltime_min_us);
	if (j->begin_us > x->t0_us)
		export_time(x, v, "begin", j->begin_us);
	if (j->deadline_us)
		export_time(x, v, "deadline", j->deadline_us);
	if (j->nice)
		export_int(x, v, "nice", j->nice);
	if (j->boost)
		export_int(x, v, "boost", j->boost);
	if (j->fixed_priority)
		export_int(x, v, "fixed_priority", j->fixed_priority);
	if (j->charge_milli != SNAP_MILLI)
		export_milli(x, v, "usage_factor", j->charge_milli);
	if (j->spread)
		export_put(x, v, "spread", gpuq_bool(x->a, true));
	if (j->evict_last)
		export_put(x, v, "evict_last", gpuq_bool(x->a, true));
	if (r->exclusive)
		export_put(x, v, "exclusive", gpuq_bool(x->a, true));
	if (r->groups[0].isolation)
		export_str(x, v, "isolation", gpuq_isolations[r->groups[0].isolation]);
	export_idle(x, v, j, mj);
	export_flavors(x, v, r, mj);
	for (uint32_t i = 0; i < r->n_licenses; i++)
		export_int(x, needs, x->s->licenses[r->licenses[i].license].name,
			   r->licenses[i].count);
	if (r->n_licenses)
		export_put(x, v, "licences", needs);
	export_topology(x, v, r);
	if (mj && !mj->wish->requeue)
		export_str(x, v, "preempt_mode", "cancel");
	return v;
}

void export_waiting(struct export *x, const struct snap_job *j, uint32_t range)
{
	const struct snap_request *r = &x->s->requests[j->request];
	struct gpuq_val *v = export_job(x, j, "pending", key_text(x, j->key, range));
	struct gpuq_val *tasks = gpuq_list(x->a), *array = gpuq_map(x->a), *nodes = gpuq_list(x->a);
	bool elastic = false;

	if (j->held || j->gate != GPUQ_R_NONE)
		export_put(x, v, "hold", gpuq_bool(x->a, true));
	for (uint32_t g = 0; g < r->n_groups; g++) {
		struct gpuq_val *t = gpuq_add(x->a, tasks, export_task(x, j, r, g, false));

		export_int(x, t, "count", r->groups[g].pods_max);
		elastic |= r->groups[g].pods_max > r->groups[g].pods_min;
	}
	export_put(x, v, "tasks", tasks);
	if (elastic)
		export_minimum(x, v, r, r->n_pods);
	if (range < j->n_ranges) {
		export_int(x, array, "first", j->ranges[range].first);
		export_int(x, array, "last", j->ranges[range].last);
		export_int(x, array, "step", j->ranges[range].step);
		export_int(x, array, "throttle", j->throttle);
		export_put(x, v, "array", array);
	}
	for (uint32_t i = 0; i < j->n_exclude; i++)
		gpuq_add(x->a, nodes, gpuq_str(x->a, x->s->nodes[j->exclude[i]].name));
	if (j->n_exclude)
		export_put(x, v, "exclude", nodes);
}

void export_running(struct export *x, const struct snap_job *j)
{
	const struct snap_request *r = &x->s->requests[j->request];
	struct gpuq_val *v = export_job(x, j, "running", key_text(x, j->key, 0));
	struct gpuq_val *tasks = gpuq_list(x->a);

	export_time(x, v, "start", j->start_us);
	if (j->checkpoint_us)
		export_time(x, v, "last_checkpoint", j->checkpoint_us);
	if (j->restart_cost_us)
		export_span(x, v, "restart_cost", j->restart_cost_us);
	for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++) {
		const struct snap_alloc *al = &x->s->allocs[i];
		struct gpuq_val *t = gpuq_add(x->a, tasks, export_task(x, j, r, al->group, true));
		struct gpuq_val *devices = gpuq_list(x->a);

		export_str(x, t, "node", x->s->nodes[al->node].name);
		for (uint32_t d = 0; d < al->n_devices; d++)
			gpuq_add(x->a, devices, gpuq_int(x->a, al->devices[d]));
		if (al->n_devices)
			export_put(x, t, "gpu_index", devices);
		if (al->releasing || j->state == SNAP_LEAVING)
			export_put(x, t, "releasing", gpuq_bool(x->a, true));
	}
	/* Pods it may still grow by have no place yet. */
	for (uint32_t g = 0; g < r->n_groups; g++) {
		uint32_t n = 0;

		for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++)
			n += x->s->allocs[i].group == g;
		if (n < r->groups[g].pods_max && r->groups[g].pods_max > r->groups[g].pods_min &&
		    j->state == SNAP_RUNNING)
			export_int(x, gpuq_add(x->a, tasks, export_task(x, j, r, g, false)),
				   "count", r->groups[g].pods_max - n);
	}
	export_put(x, v, "tasks", tasks);
	export_minimum(x, v, r, j->n_allocs < r->n_pods ? j->n_allocs : r->n_pods);
}
