#include <stdlib.h>
#include <string.h>

#include "gpuqd/sim/world_int.h"

/* The world as the scheduler is shown it. */

static int64_t whole_units(int64_t milli, int64_t absent)
{
	return milli == SC_ABSENT ? absent : milli / 1000;
}

static void add_nodes(const struct world *w, struct snapshot *s)
{
	struct snap_device devices[SNAP_DEVICES_MAX];
	struct snap_mig mig[SC_MIG_MAX];

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct sc_node *spec = w->nodes[i].spec;
		struct snap_node n;

		snapshot_node_default(&n);
		n.name = w->nodes[i].name;
		n.pool = spec->pool;
		n.state = w->nodes[i].state;
		n.n_devices = (uint32_t)(spec->gpus / 1000);
		n.cpu_milli = whole_units(spec->cpu, GPUQ_UNLIMITED);
		n.memory_bytes =
			spec->mem_mb == SC_ABSENT ? GPUQ_UNLIMITED : spec->mem_mb / 1000 << 20;
		n.pods = whole_units(spec->max_pods, GPUQ_UNLIMITED);
		n.links = spec->links.n ? spec->links.items : NULL;
		n.numa = spec->numa.n ? spec->numa.items : NULL;
		n.labels = spec->labels;
		n.taints = spec->taints.items;
		n.n_taints = (uint32_t)spec->taints.n;
		for (uint32_t d = 0; d < n.n_devices; d++)
			devices[d] = (struct snap_device){ .healthy = true,
							   .memory_bytes = spec->gpu_mem_mb / 1000
									   << 20 };
		n.devices_in = devices;
		n.mig = mig;
		for (; n.n_mig < spec->mig.n && n.n_mig < SC_MIG_MAX; n.n_mig++)
			mig[n.n_mig] = (struct snap_mig){
				.profile = spec->mig.keys[n.n_mig],
				.count = (uint32_t)strtoul(spec->mig.vals[n.n_mig], NULL, 10)
			};
		for (uint32_t f = 0; n.n_devices + n.n_mig > 0 && f < w->n_flavors; f++)
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

	snapshot_share_default(&out);
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

static int64_t runtime(const struct world *w, int64_t t, int64_t absent)
{
	return t == SC_ABSENT || t < 0 ? absent : world_us(w, t);
}

/* Claims on fair shares against a queue in the last hour: those of one job at one
 * instant are one. */
static uint32_t claims_against(const struct world *w, const char *queue)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_evictions; i++) {
		const struct sim_eviction *e = &w->evictions[i], *last = i ? e - 1 : NULL;

		if (!e->by || !e->rule ||
		    strcmp(e->rule, gpuq_rule_word(GPUQ_RULE_RECLAIM_SHARE)) != 0 ||
		    strcmp(w->jobs[e->job].queue, queue) != 0 ||
		    e->at_us <= w->now_us - 3600 * GPUQ_US_PER_S)
			continue;
		n += !last || last->at_us != e->at_us || !last->by || strcmp(last->by, e->by) != 0;
	}
	return n;
}

static void add_queues(const struct world *w, struct snapshot *s)
{
	for (uint32_t i = 0; i < w->n_queues; i++) {
		const struct sc_queue *in = &w->queues[i];
		struct snap_share shares[WORLD_FLAVORS_MAX + 2], *cpu = &shares[w->n_flavors];
		struct snap_queue q;

		snapshot_queue_default(&q);
		for (uint32_t f = 0; f < w->n_flavors; f++)
			shares[f] = gpu_share(in, w->flavors[f]);
		snapshot_share_default(&cpu[0]);
		snapshot_share_default(&cpu[1]);
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
		q.policy = in->policy;
		q.age = i;
		q.spread = in->spread;
		q.n_claims_hour = claims_against(w, in->name);
		world_fill_usage(w, i, &q);
		q.user_max_running = whole_units(in->user_max_running, GPUQ_UNLIMITED);
		q.user_max_gpus_milli = or_unlimited(in->user_max_gpus);
		q.job_max_gpus_milli = or_unlimited(in->job_max_gpus);
		q.max_running = whole_units(in->max_running, GPUQ_UNLIMITED);
		q.max_gpus_milli = or_unlimited(in->max_gpus);
		snapshot_add_queue(s, &q);
	}
}

/* Slices of the job's, for every group of it. Returns how many. */
static uint32_t read_slices(const struct sc_job *spec, struct gpuq_slice *out)
{
	const struct sc_slice *in = spec->topology.slices.items;

	for (size_t i = 0; i < spec->topology.slices.n; i++)
		out[i] = (struct gpuq_slice){ in[i].level, in[i].size / 1000 };
	return (uint32_t)spec->topology.slices.n;
}

static uint32_t add_request(const struct world *w, struct snapshot *s, const struct sim_template *t)
{
	struct snap_group groups[GPUQ_GROUPS_MAX];
	struct snap_license_need needs[64];
	struct gpuq_slice slices[GPUQ_SLICES_MAX];
	const uint32_t n_slices = read_slices(t->spec, slices);
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
			.unit_pods = t->spec->min_groups != SC_ABSENT ? t->unit : 0,
			.gpus_milli = in->gpus == 0 && (in->mig || in->gpu_mem_mb) ? SNAP_MILLI
										   : in->gpus,
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
			.slices = slices,
			.n_slices = n_slices,
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

/* Claims that made jobs leave for other queues in the last hour. */
static void add_losses(struct world *w, struct snapshot *s)
{
	for (uint32_t i = 0; i < w->n_evictions; i++) {
		const struct sim_eviction *e = &w->evictions[i];
		const struct sim_job *by = e->by ? world_job(w, e->by) : NULL;
		const struct sim_job *job = &w->jobs[e->job];

		if (!by || e->at_us <= w->now_us - 3600 * GPUQ_US_PER_S ||
		    strcmp(e->cause, gpuq_cause_word(GPUQ_CAUSE_RECLAIM)) != 0)
			continue;
		snapshot_add_loss(
			s, &(struct snap_loss){ .queue = queue_handle(w, job->queue),
						.by_queue = queue_handle(w, by->queue),
						.job = { world_template(w, job)->id, job->element },
						.by = { world_template(w, by)->id, by->element },
						.at_us = e->at_us });
	}
}

/* What it was made to do in the last 24 hours. */
static void count_day(const struct world *w, const struct sim_job *j, struct snap_job *out)
{
	for (uint32_t i = 0; i < w->n_evictions; i++) {
		const struct sim_eviction *e = &w->evictions[i];

		if (&w->jobs[e->job] != j || e->at_us <= w->now_us - 86400 * GPUQ_US_PER_S)
			continue;
		out->n_moved_day += strcmp(e->mode, "move") == 0;
		/* Who ran on borrowed time only has lost nothing that was his. */
		out->n_evicted_day += e->by && strcmp(e->mode, "requeue") == 0 &&
				      strcmp(e->cause, gpuq_cause_word(GPUQ_CAUSE_YIELD)) != 0;
	}
}

static void fill_job(struct world *w, struct snapshot *s, const struct sim_job *j,
		     struct snap_job *out)
{
	const struct sim_template *t = world_template(w, j);
	const char *on = "";
	int depends;

	snapshot_job_default(out);
	out->key = (struct snap_key){ t->id, j->element };
	out->queue = queue_handle(w, j->queue);
	out->request = add_request(w, s, t);
	out->user = snapshot_user(s, t->spec->user);
	out->priority = j->priority;
	out->nice = t->spec->nice / 1000;
	out->boost = t->spec->boost / 1000;
	out->fixed_priority = t->spec->fixed_priority / 1000;
	out->charge_milli = t->spec->usage_factor;
	out->submit_us = t->submit_us;
	out->eligible_us = world_eligible_us(w, j);
	out->begin_us = t->begin_us;
	out->deadline_us = t->deadline_us;
	out->walltime_us = world_walltime_us(w, j);
	out->walltime_min_us = t->walltime_min_us;
	if (out->walltime_us != t->walltime_us)
		out->walltime_asked_us = t->walltime_us;
	out->start_us = j->start_us;
	out->yield_us = j->state == SIM_RUNNING ? j->yield_us : 0;
	out->preemptible = t->spec->preemptible;
	out->attempt = j->attempt;
	out->evict_last = t->spec->evict_last;
	out->spread = t->spec->spread;
	out->checkpoint_us = j->checkpoint_us;
	out->restart_cost_us = runtime(w, t->spec->restart_cost, 0);
	out->evicted_us = j->evicted_us;
	if (j->evicted_for)
		out->evicted_for = queue_handle(w, j->evicted_for);
	out->shrunk_us = j->shrunk_us;
	out->short_us = j->short_us;
	count_day(w, j, out);
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

/* Nodes it failed on; room for 64. */
static void fill_exclude(const struct world *w, const struct sim_job *j, uint32_t *nodes,
			 struct snap_job *out)
{
	const struct gpuq_strlist *names = &world_template(w, j)->spec->exclude;

	for (size_t i = 0; i < names->n && out->n_exclude < 64; i++) {
		const uint32_t node = world_node(w, names->items[i]);

		if (node != SNAP_NONE)
			nodes[out->n_exclude++] = node;
	}
	out->exclude = nodes;
}

static struct snap_alloc pod(const struct world *w, const struct sim_job *j, uint32_t handle,
			     const struct sim_task *t)
{
	const struct sim_group *g = &world_template(w, j)->groups[t->group];

	return (struct snap_alloc){ .job = handle,
				    .node = t->node,
				    .group = t->group,
				    .index = t->index,
				    .releasing = t->releasing,
				    .devices = t->devices,
				    .n_devices = t->n_devices,
				    .milli = t->milli,
				    .device_memory_bytes = g->tasks->gpu_mem_mb / 1000 << 20 };
}

static void add_promises(struct world *w, struct snapshot *s, const struct sim_job *j,
			 uint32_t handle)
{
	for (uint32_t i = 0; j->owns && i < j->n_promises; i++) {
		const struct snap_alloc a = pod(w, j, handle, &j->promises[i]);

		snapshot_add_promise(s, &a);
	}
}

static void add_running(struct world *w, struct snapshot *s, const struct sim_job *j)
{
	uint32_t exclude[64], handle;
	bool leaving = true;
	struct snap_job job;

	fill_job(w, s, j, &job);
	fill_exclude(w, j, exclude, &job);
	for (uint32_t i = 0; i < j->n_tasks; i++)
		leaving &= j->tasks[i].releasing;
	job.state = leaving ? SNAP_LEAVING : SNAP_RUNNING;
	handle = snapshot_add_job(s, &job);
	for (uint32_t i = 0; i < j->n_tasks; i++) {
		const struct snap_alloc a = pod(w, j, handle, &j->tasks[i]);

		snapshot_add_alloc(s, &a);
	}
	add_promises(w, s, j, handle);
}

/* One that waits on its own places: a member of an array is an entry of its own then. */
static void add_promised(struct world *w, struct snapshot *s, const struct sim_job *j)
{
	uint32_t exclude[64];
	struct snap_job job;

	fill_job(w, s, j, &job);
	fill_exclude(w, j, exclude, &job);
	add_promises(w, s, j, snapshot_add_job(s, &job));
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
	fill_exclude(w, &w->jobs[at], exclude, &job);
	for (at++; at < end && w->jobs[at].state == SIM_PENDING && !w->jobs[at].owns; at++) {
		fill_job(w, s, &w->jobs[at], &next);
		if (next.held != job.held || next.gate != job.gate || next.queue != job.queue ||
		    next.priority != job.priority || next.attempt != job.attempt ||
		    next.evicted_us != job.evicted_us || next.evicted_for != job.evicted_for ||
		    next.n_evicted_day != job.n_evicted_day)
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

struct snapshot *world_freeze(struct world *w, struct gpuq_err *err)
{
	const struct sc_config *c = &w->c->config;
	struct snap_config config;
	struct snapshot *s;

	snapshot_config_default(&config);
	config.now_us = w->now_us;
	config.sched = c->sched;
	world_set_policy(w, &config);
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
	world_add_usages(w, s);
	add_losses(w, s);
	add_nodes(w, s);
	for (uint32_t i = 0; i < w->n_jobs;) {
		if (w->jobs[i].state == SIM_PENDING && !w->jobs[i].owns) {
			i = add_waiting(w, s, i);
			continue;
		}
		if (w->jobs[i].state == SIM_PENDING)
			add_promised(w, s, &w->jobs[i]);
		else if (w->jobs[i].state == SIM_RUNNING)
			add_running(w, s, &w->jobs[i]);
		i++;
	}
	if (world_add_calendar(w, s, err) < 0 || snapshot_seal(s, err) < 0) {
		snapshot_free(s);
		return NULL;
	}
	return s;
}
