#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/sched.h"
#include "gpuqd/sim/world.h"

/* One cycle of the world: world -> snapshot -> plan -> world. */

#define REST_CYCLES 10
#define FLAVORS_MAX 64

static int64_t whole_units(int64_t milli, int64_t absent)
{
	return milli == SC_ABSENT ? absent : milli / 1000;
}

static void add_nodes(const struct world *w, struct snapshot *s)
{
	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct sc_node *spec = w->nodes[i].spec;
		struct snap_node n;

		snap_node_default(&n);
		n.name = w->nodes[i].name;
		n.pool = spec->pool;
		n.state = w->nodes[i].state;
		n.n_devices = (uint32_t)(spec->gpus / 1000);
		n.cpu_milli = whole_units(spec->cpu, GPUQ_UNLIMITED);
		n.memory_bytes =
			spec->mem_mb == SC_ABSENT ? GPUQ_UNLIMITED : spec->mem_mb / 1000 << 20;
		n.pods = whole_units(spec->max_pods, GPUQ_UNLIMITED);
		n.labels = spec->labels;
		n.taints = spec->taints.items;
		n.n_taints = (uint32_t)spec->taints.n;
		for (uint32_t f = 0; n.n_devices && f < w->n_flavors; f++)
			if (strcmp(w->flavors[f], spec->flavor ? spec->flavor : "default") == 0)
				n.flavor = f;
		snapshot_add_node(s, &n);
	}
}

/* What is written for one flavor; SC_ABSENT = nothing is. */
static int64_t amount(const struct sc_amounts *a, const char *flavor)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->flavors[i], flavor) == 0)
			return a->amounts[i];
	return a->all;
}

static int64_t or_unlimited(int64_t milli)
{
	return milli == SC_ABSENT || milli < 0 ? GPUQ_UNLIMITED : milli;
}

static struct snap_share gpu_share(const struct sc_queue *q, const char *flavor)
{
	const int64_t quota = amount(&q->quota, flavor), shared = amount(&q->shared_quota, flavor);
	const int64_t borrow = amount(&q->borrow_limit, flavor);
	struct snap_share out;

	snap_share_default(&out);
	if (quota != SC_ABSENT)
		out.quota = or_unlimited(quota);
	if (shared != SC_ABSENT && shared > 0)
		out.shared = shared;
	out.limit = or_unlimited(amount(&q->limit, flavor));
	out.lend = or_unlimited(amount(&q->lend_limit, flavor));
	if (borrow != SC_ABSENT && borrow >= 0 && quota != SC_ABSENT && quota >= 0 &&
	    quota + borrow < out.limit)
		out.limit = quota + borrow;
	return out;
}

static void add_queues(const struct world *w, struct snapshot *s)
{
	for (uint32_t i = 0; i < w->n_queues; i++) {
		const struct sc_queue *in = &w->queues[i];
		struct snap_share shares[FLAVORS_MAX + 2], *cpu = &shares[w->n_flavors];
		struct snap_queue q;

		snap_queue_default(&q);
		for (uint32_t f = 0; f < w->n_flavors; f++)
			shares[f] = gpu_share(in, w->flavors[f]);
		snap_share_default(&cpu[0]);
		snap_share_default(&cpu[1]);
		if (in->quota_cpu != SC_ABSENT)
			cpu[0].quota = in->quota_cpu < 0 ? GPUQ_UNLIMITED : in->quota_cpu / 1000;
		if (in->limit_cpu != SC_ABSENT && in->limit_cpu >= 0)
			cpu[0].limit = in->limit_cpu / 1000;
		if (in->quota_mem_mb != SC_ABSENT)
			cpu[1].quota = in->quota_mem_mb < 0 ? GPUQ_UNLIMITED
							    : in->quota_mem_mb / 1000 << 20;
		if (in->limit_mem_mb != SC_ABSENT && in->limit_mem_mb >= 0)
			cpu[1].limit = in->limit_mem_mb / 1000 << 20;
		q.shares = shares;
		q.name = in->name;
		if (in->parent && strcmp(in->parent, "root") != 0)
			q.parent_name = in->parent;
		q.weight_milli = in->weight;
		q.rank = in->priority;
		q.age = i;
		q.stopped = in->stopped;
		q.reclaim = in->reclaim;
		q.preempt_within = in->preempt_within;
		q.fence = in->fence;
		q.not_reclaimable = !in->reclaimable;
		q.usage_micro = in->usage * 1000;
		q.user_max_running = whole_units(in->user_max_running, GPUQ_UNLIMITED);
		q.user_max_gpus_milli = or_unlimited(in->user_max_gpus);
		q.job_max_gpus_milli = or_unlimited(in->job_max_gpus);
		q.max_running = whole_units(in->max_running, GPUQ_UNLIMITED);
		snapshot_add_queue(s, &q);
	}
}

static uint32_t add_request(const struct world *w, struct snapshot *s, const struct sim_template *t)
{
	struct snap_group groups[GPUQ_GROUPS_MAX];
	struct snap_license_need needs[64];
	struct snap_request r = { .groups = groups,
				  .n_groups = t->n_groups,
				  .flavors = t->spec->flavors.items,
				  .n_flavors = (uint32_t)t->spec->flavors.n,
				  .licenses = needs,
				  .exclusive = t->spec->exclusive };

	memset(groups, 0, sizeof(groups));
	for (uint32_t g = 0; g < t->n_groups; g++) {
		const struct sc_tasks *in = t->groups[g].tasks;

		groups[g] = (struct snap_group){
			.name = in->role,
			.pods_min = t->groups[g].min,
			.pods_max = t->groups[g].count,
			.gpus_milli = in->gpus,
			.gpu_memory_bytes = in->gpu_mem_mb / 1000 << 20,
			.cpu_milli = in->cpu / 1000,
			.memory_bytes = in->mem_mb / 1000 << 20,
			.mig = in->mig,
			.required = t->groups[g].term,
			.n_required = t->groups[g].term != NULL,
			.tolerations = t->groups[g].tolerations,
			.n_tolerations = (uint32_t)in->tolerations.n,
			.topology_required = t->spec->topology.required,
			.topology_preferred = t->spec->topology.preferred,
		};
	}
	for (size_t i = 0; i < t->spec->licences.n && r.n_licenses < 64; i++)
		for (uint32_t l = 0; l < w->n_licenses; l++)
			if (strcmp(w->licenses[l], t->spec->licences.keys[i]) == 0)
				needs[r.n_licenses++] = (struct snap_license_need){
					l, strtoll(t->spec->licences.vals[i], NULL, 10)
				};
	return snapshot_add_request(s, &r);
}

static uint32_t queue_handle(const struct world *w, const char *name)
{
	uint32_t q = 0;

	while (q < w->n_queues && strcmp(w->queues[q].name, name) != 0)
		q++;
	return q;
}

static void fill_job(struct world *w, struct snapshot *s, const struct sim_job *j,
		     struct snap_job *out)
{
	const struct sim_template *t = world_template(w, j);
	const char *on = "";
	int depends;

	snap_job_default(out);
	out->key = (struct snap_key){ t->id, j->element };
	out->queue = queue_handle(w, j->queue);
	out->request = add_request(w, s, t);
	out->user = snapshot_user(s, t->spec->user);
	out->priority = j->priority;
	out->submit_us = t->submit_us;
	out->begin_us = t->begin_us;
	out->deadline_us = t->deadline_us;
	out->walltime_us = t->walltime_us;
	out->start_us = j->start_us;
	out->preemptible = t->spec->preemptible;
	out->attempt = j->attempt;
	out->throttle = t->array ? (uint32_t)(t->spec->array->throttle / 1000) : 0;
	if (j->state != SIM_PENDING)
		return;
	out->held = j->hold ? SNAP_HELD_USER : 0;
	depends = world_depends_all(w, j, &on);
	out->gate = depends == 0   ? GPUQ_R_NONE
		    : depends == 1 ? GPUQ_R_DEPENDENCY
				   : GPUQ_R_DEPENDENCY_NEVER;
	out->gate_object = on;
}

static void add_running(struct world *w, struct snapshot *s, const struct sim_job *j)
{
	struct snap_job job;
	uint32_t handle;

	fill_job(w, s, j, &job);
	job.state = j->releasing ? SNAP_LEAVING : SNAP_RUNNING;
	handle = snapshot_add_job(s, &job);
	for (uint32_t i = 0; i < j->n_tasks; i++) {
		const struct sim_task *t = &j->tasks[i];
		const struct snap_alloc a = { .job = handle,
					      .node = t->node,
					      .group = t->group,
					      .index = i,
					      .releasing = t->releasing,
					      .devices = t->devices,
					      .n_devices = t->n_devices,
					      .milli = t->milli };

		snapshot_add_alloc(s, &a);
	}
}

/* Waiting members of an array that are alike stand in one entry. Returns the member
 * behind the last that was taken. */
static uint32_t add_waiting(struct world *w, struct snapshot *s, uint32_t at)
{
	const struct sim_template *t = world_template(w, &w->jobs[at]);
	const uint32_t end = t->first_job + t->n_jobs;
	struct snap_range range = { w->jobs[at].element, w->jobs[at].element, t->step };
	uint32_t exclude[64];
	struct snap_job job, next;

	fill_job(w, s, &w->jobs[at], &job);
	for (size_t i = 0; i < t->spec->exclude.n && job.n_exclude < 64; i++) {
		uint32_t node = world_node(w, t->spec->exclude.items[i]);

		if (node != SNAP_NONE)
			exclude[job.n_exclude++] = node;
	}
	job.exclude = exclude;
	for (at++; at < end && w->jobs[at].state == SIM_PENDING; at++) {
		fill_job(w, s, &w->jobs[at], &next);
		if (next.held != job.held || next.gate != job.gate || next.queue != job.queue ||
		    next.priority != job.priority || next.attempt != job.attempt)
			break;
		range.last = w->jobs[at].element;
	}
	if (t->array) {
		job.key.index = -1;
		job.ranges = &range;
		job.n_ranges = 1;
	}
	snapshot_add_job(s, &job);
	return at;
}

static struct snapshot *freeze(struct world *w, struct gpuq_err *err)
{
	const struct sc_config *c = &w->c->config;
	struct snap_config config;
	struct snapshot *s;

	snap_config_default(&config);
	config.now_us = w->now_us;
	config.reclaim_to = c->reclaim_to;
	config.consolidation = c->consolidation;
	config.usage_k_milli = c->usage_k;
	if (c->backfill_depth != SC_ABSENT)
		config.backfill_depth = (uint32_t)(c->backfill_depth / 1000);
	if (c->max_job_test != SC_ABSENT)
		config.max_job_test = (uint32_t)(c->max_job_test / 1000);
	config.levels = c->topology_levels.items;
	config.n_levels = (uint32_t)c->topology_levels.n;
	s = snapshot_new(&config);
	if (!s) {
		gpuq_fail(err, GPUQ_ENOMEM, "no memory");
		return NULL;
	}
	for (uint32_t f = 0; f < w->n_flavors; f++)
		snapshot_add_flavor(s, w->flavors[f], f);
	for (uint32_t l = 0; l < w->n_licenses; l++)
		snapshot_add_license(s, w->licenses[l], w->license_counts[l]);
	add_queues(w, s);
	add_nodes(w, s);
	for (uint32_t i = 0; i < w->n_jobs;) {
		if (w->jobs[i].state == SIM_PENDING) {
			i = add_waiting(w, s, i);
			continue;
		}
		if (w->jobs[i].state == SIM_RUNNING)
			add_running(w, s, &w->jobs[i]);
		i++;
	}
	if (snapshot_seal(s, err) < 0) {
		snapshot_free(s);
		return NULL;
	}
	return s;
}

static struct sim_job *job_of(struct world *w, struct snap_key key)
{
	const struct sim_template *t = &w->templates[key.id - 1];

	return &w->jobs[t->first_job +
			(key.index < 0 ? 0 : (uint32_t)((key.index - t->first) / t->step))];
}

static int start_job(struct world *w, const struct plan *p, const struct plan_action *a,
		     struct gpuq_err *err)
{
	struct sim_job *j = job_of(w, a->key);

	j->tasks = gpuq_arena_calloc(&w->arena, a->n_pods, sizeof(*j->tasks));
	if (!j->tasks)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	j->n_tasks = a->n_pods;
	j->state = SIM_RUNNING;
	j->start_us = w->now_us;
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *pod = &p->pods[a->pod_first + i];
		struct sim_task *t = &j->tasks[i];

		*t = (struct sim_task){ .node = pod->node,
					.group = pod->group,
					.n_devices = pod->n_devices,
					.milli = pod->milli };
		t->devices = gpuq_arena_calloc(&w->arena, pod->n_devices, sizeof(*t->devices));
		if (!t->devices)
			return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
		memcpy(t->devices, &p->devices[pod->device_first],
		       pod->n_devices * sizeof(*t->devices));
	}
	return 0;
}

/* Reasons of the cycle, for each member that still waits. */
static int keep_reasons(struct world *w, const struct snapshot *s, const struct plan *p,
			struct gpuq_err *err)
{
	struct plan_reason *all = gpuq_arena_calloc(&w->arena, p->n_reasons, sizeof(*all));

	if (!all)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	for (uint32_t i = 0; i < w->n_jobs; i++)
		w->jobs[i].n_reasons = 0;
	for (uint32_t i = 0; i < p->n_reasons; i++) {
		all[i] = p->reasons[i];
		all[i].object = gpuq_arena_strdup(&w->arena, p->reasons[i].object);
		if (!all[i].object)
			return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	}
	for (uint32_t i = 0; i < p->n_reasons;) {
		const struct snap_job *job = &s->jobs[all[i].job];
		uint32_t n = 1;

		while (i + n < p->n_reasons && all[i + n].job == all[i].job)
			n++;
		for (uint32_t r = 0; r < (job->n_ranges ? job->n_ranges : 1); r++) {
			const struct snap_range one = { job->key.index, job->key.index, 1 };
			const struct snap_range *range = job->n_ranges ? &job->ranges[r] : &one;

			for (int32_t k = range->first; k <= range->last; k += range->step) {
				struct sim_job *j = job_of(w, (struct snap_key){ job->key.id, k });

				if (j->state != SIM_PENDING)
					continue;
				j->reasons = &all[i];
				j->n_reasons = n;
			}
		}
		i += n;
	}
	return 0;
}

/* Everything is summed over flavors; GPUQ_UNLIMITED absorbs. */
static int64_t sum(int64_t x, int64_t y)
{
	int64_t out;

	return __builtin_add_overflow(x, y, &out) ? GPUQ_UNLIMITED : out;
}

static void keep_shares(struct world *w, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t i = 0; i < w->n_queues; i++) {
		const uint32_t q = snapshot_find_queue(s, w->queues[i].name);
		struct sim_queue *out = &w->shares[i];

		*out = (struct sim_queue){ .name = out->name };
		for (uint32_t f = 0; f < s->n_flavors; f++) {
			const size_t at = (size_t)q * s->n_res + f;

			out->allocated_milli += p->allocated[at];
			out->fair_milli = sum(out->fair_milli, p->fair_share[at]);
			out->demand_milli = sum(out->demand_milli, p->demand[at]);
			out->quota_milli = sum(out->quota_milli, s->shares[at].quota);
			out->limit_milli = sum(out->limit_milli, s->shares[at].limit);
		}
	}
}

/* What was told to leave before the case began has left. */
static bool release(struct world *w)
{
	bool changed = false;

	for (uint32_t i = 0; i < w->n_jobs; i++) {
		struct sim_job *j = &w->jobs[i];
		uint32_t kept = 0;

		for (uint32_t t = 0; t < j->n_tasks; t++)
			if (!j->tasks[t].releasing)
				j->tasks[kept++] = j->tasks[t];
		if (kept == j->n_tasks)
			continue;
		j->n_tasks = kept;
		changed = true;
		if (kept == 0) {
			j->state = SIM_ENDED;
			j->end_us = w->now_us;
			j->ended = SIM_CANCELLED;
		}
	}
	return changed;
}

/* One decision. apply = false: only look whether it would change something. */
static int cycle(struct world *w, bool apply, bool *changed, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct snapshot *s = freeze(w, err);
	struct plan p = { 0 };
	int rc;

	if (!s)
		return err->code;
	rc = sched_cycle(s, &mem, &p, err);
	*changed = false;
	for (uint32_t i = 0; apply && i < w->n_jobs; i++)
		w->jobs[i].planned_us = 0;
	for (uint32_t i = 0; rc == 0 && i < p.n_actions; i++) {
		*changed |= p.actions[i].kind == PLAN_PLACE;
		if (apply && p.actions[i].kind == PLAN_PLACE)
			rc = start_job(w, &p, &p.actions[i], err);
		else if (apply && p.actions[i].kind == PLAN_RESERVE)
			job_of(w, p.actions[i].key)->planned_us = p.actions[i].start_us;
	}
	if (rc == 0 && apply)
		rc = keep_reasons(w, s, &p, err);
	if (rc == 0 && apply) {
		keep_shares(w, s, &p);
		w->wake_us = p.wake_us;
	}
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return rc;
}

int world_rest(struct world *w, uint32_t max_cycles, struct gpuq_err *err)
{
	const uint32_t max = max_cycles ? max_cycles : REST_CYCLES;
	bool changed = true, left;
	int rc = 0;

	if (w->n_flavors > FLAVORS_MAX)
		return gpuq_fail_field(err, GPUQ_EINVAL, "config.flavors",
				       "%s: more than %d flavors", w->c->id, FLAVORS_MAX);
	w->cycles = 1;
	for (uint32_t i = 1; rc == 0 && i <= max && changed; i++) {
		rc = cycle(w, true, &changed, err);
		left = rc == 0 && release(w);
		if (changed)
			w->cycles = i;
		/* The places of those who left are given away in the same count. */
		if (left)
			rc = cycle(w, true, &changed, err);
		changed |= left;
	}
	return rc;
}

int world_stable(struct world *w, bool *stable, struct gpuq_err *err)
{
	bool changed = false;
	/* When the first changes nothing, the second sees the same. */
	int rc = cycle(w, false, &changed, err);

	*stable = !changed;
	return rc;
}
