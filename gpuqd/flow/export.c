#include "gpuqd/flow/export.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/plan.h"
#include "gpuqd/core/usage.h"
#include "gpuqd/flow/schedule.h"
#include "libgpuq/units.h"

/* Of devices and ill devices of others; a queue that owes nobody anything. */
#define FOREIGN "foreign"

struct export
{
	const struct model *m;
	const struct snapshot *s;
	struct gpuq_arena *a; /* of one item */
	struct gpuq_val *item; /* NULL = none is being made */
	export_fn fn;
	void *arg;
	int64_t t0_us; /* times are counted from there */
	bool has_foreign;
};

static const char *const reclaims[] = { "any", "lower_or_equal", "lower", "never" };
static const char *const preempts[] = { "lower", "lower_or_newer", "never" };
static const char *const states[] = { "ready", "drained", "suspect", "down" };

static void put(struct export *x, struct gpuq_val *map, const char *key, struct gpuq_val *v)
{
	gpuq_put(x->a, map, key, v);
}

/* Thousandths as a number; whole ones stay integers. */
static void put_milli(struct export *x, struct gpuq_val *map, const char *key, int64_t milli)
{
	put(x, map, key,
	    milli % 1000 ? gpuq_real(x->a, (double)milli / 1000) : gpuq_int(x->a, milli / 1000));
}

static void put_int(struct export *x, struct gpuq_val *map, const char *key, int64_t i)
{
	put(x, map, key, gpuq_int(x->a, i));
}

static void put_str(struct export *x, struct gpuq_val *map, const char *key, const char *s)
{
	put(x, map, key, gpuq_str(x->a, s));
}

/* A length of time, in seconds. */
static void put_span(struct export *x, struct gpuq_val *map, const char *key, int64_t us)
{
	put_milli(x, map, key, us / 1000);
}

static void put_time(struct export *x, struct gpuq_val *map, const char *key, int64_t us)
{
	put_span(x, map, key, us - x->t0_us);
}

static void put_strs(struct export *x, struct gpuq_val *map, const char *key,
		     const char *const *items, size_t n)
{
	struct gpuq_val *list = gpuq_list(x->a);

	for (size_t i = 0; i < n; i++)
		gpuq_add(x->a, list, gpuq_str(x->a, items[i]));
	if (n)
		put(x, map, key, list);
}

/* The one before it is whole then. */
static void hand_over(struct export *x)
{
	if (x->item)
		x->fn(x->arg, x->item);
	x->item = NULL;
	gpuq_arena_reset(x->a);
}

static struct gpuq_val *add(struct export *x, const char *part)
{
	struct gpuq_val *value;

	hand_over(x);
	x->item = gpuq_map(x->a);
	value = gpuq_map(x->a);
	put_str(x, x->item, "part", part);
	put(x, x->item, "value", value);
	return value;
}

static const char *key_text(struct export *x, struct snap_key key, uint32_t range)
{
	char text[32];

	snap_key_print(key, text, sizeof(text));
	return range ? gpuq_arena_printf(x->a, "%s.%u", text, range)
		     : gpuq_arena_strdup(x->a, text);
}

/* ---- the cluster ---- */

static void export_reservations(struct export *x, struct gpuq_val *config)
{
	struct gpuq_val *list = gpuq_list(x->a);

	for (uint32_t i = 0; i < x->s->n_reservations; i++) {
		const struct snap_reservation *r = &x->s->reservations[i];
		struct gpuq_val *v = gpuq_add(x->a, list, gpuq_map(x->a));
		struct gpuq_val *nodes = gpuq_list(x->a);

		put_str(x, v, "name", r->name);
		put_time(x, v, "start", r->start_us);
		put_span(x, v, "duration", r->end_us - r->start_us);
		for (uint32_t k = 0; k < r->n_nodes; k++)
			gpuq_add(x->a, nodes, gpuq_str(x->a, x->s->nodes[r->nodes[k]].name));
		if (r->n_nodes)
			put(x, v, "nodes", nodes);
		else
			put_milli(x, v, "gpus", r->gpus_milli);
		if (r->queue != SNAP_NONE)
			put_str(x, v, "queue", x->s->queues[r->queue].name);
		if (r->release_us)
			put_span(x, v, "release_after", r->release_us);
		put_str(x, v, "kind", r->maintenance ? "maintenance" : "user");
	}
	if (x->s->n_reservations)
		put(x, config, "reservations", list);
}

/* Points as a case has them: there the highest class of its jobs has all of them. */
static void export_weights(struct export *x, struct gpuq_val *config)
{
	const struct snap_weights *w = &x->s->config.weights;
	struct gpuq_val *v = gpuq_map(x->a);
	int64_t highest = 0;

	for (uint32_t i = 0; i < x->s->n_jobs; i++) {
		const int64_t p = x->s->jobs[i].priority, size = p < 0 ? -p : p;

		highest = size > highest ? size : highest;
	}
	put_int(x, v, "age", w->age);
	put_int(x, v, "fairshare", w->fair_share);
	put_int(x, v, "size", w->size);
	put_int(x, v, "qos", highest < w->qos_full ? w->qos / w->qos_full * highest : w->qos);
	put_int(x, v, "stretch", w->stretch);
	put(x, config, "priority_weights", v);
}

static void export_config(struct export *x)
{
	const struct snap_config *c = &x->s->config;
	struct gpuq_val *v = add(x, "config"), *map = gpuq_map(x->a);
	const char **flavors = gpuq_arena_calloc(x->a, x->s->n_flavors + 1, sizeof(*flavors));

	put_str(x, v, "unit", "second");
	put_time(x, v, "now", c->now_us);
	put_str(x, v, "reclaim_to",
		c->reclaim_to == SNAP_RECLAIM_GUARANTEE ? "guarantee" : "fair_share");
	put(x, v, "consolidation", gpuq_bool(x->a, c->consolidation));
	put_int(x, v, "backfill_depth",
		c->backfill_depth == UINT32_MAX ? -1 : (int64_t)c->backfill_depth);
	put_int(x, v, "max_job_test", c->max_job_test);
	put_str(x, v, "min_runtime_method",
		c->min_runtime_method == SNAP_RUNTIME_QUEUE ? "queue" : "lca");
	put_span(x, v, "preempt_min_runtime", c->preempt_min_runtime_us);
	put_span(x, v, "reclaim_min_runtime", c->reclaim_min_runtime_us);
	put_span(x, v, "cooldown", c->cooldown_us);
	put_int(x, v, "claims_per_hour", c->claims_per_hour);
	put_int(x, v, "claim_reversals", c->claim_reversals);
	put_int(x, v, "moves_per_day", c->moves_per_day);
	put_span(x, v, "grow_delay", c->grow_delay_us);
	put_span(x, v, "gang_repair", c->gang_repair_us);
	put_span(x, v, "preemption_delay", c->preemption_delay_us);
	put_span(x, v, "idle_window", x->m->policy.idle_window_us);
	put_milli(x, v, "usage_k", c->usage_k_milli);
	if (x->m->policy.usage_half_life_us)
		put_span(x, v, "usage_half_life", x->m->policy.usage_half_life_us);
	else
		put_int(x, v, "usage_half_life", -1);
	put_span(x, v, "starve_time", c->starve_us);
	export_weights(x, v);
	put_strs(x, v, "topology_levels", c->levels, c->n_levels);
	for (uint32_t f = 0; flavors && f < x->s->n_flavors; f++)
		flavors[f] = x->s->flavors[f].name;
	if (flavors)
		put_strs(x, v, "flavors", flavors, x->s->n_flavors);
	for (uint32_t i = 0; i < x->s->n_licenses; i++)
		put_int(x, map, x->s->licenses[i].name, x->s->licenses[i].count);
	if (x->s->n_licenses)
		put(x, v, "licences", map);
	export_reservations(x, v);
}

static void export_labels(struct export *x, struct gpuq_val *v, const struct node *n)
{
	struct gpuq_val *labels = gpuq_map(x->a), *taints = gpuq_list(x->a);

	for (size_t i = 0; i < n->fact.labels.n; i++)
		put_str(x, labels, n->fact.labels.keys[i], n->fact.labels.vals[i]);
	if (n->fact.labels.n)
		put(x, v, "labels", labels);
	for (size_t i = 0; i < n->fact.n_taints; i++) {
		struct gpuq_val *t = gpuq_add(x->a, taints, gpuq_map(x->a));

		put_str(x, t, "key", n->fact.taints[i].key);
		put_str(x, t, "value", n->fact.taints[i].value);
		put_str(x, t, "effect", n->fact.taints[i].effect);
	}
	if (n->fact.n_taints)
		put(x, v, "taints", taints);
}

/* MIG instances, how devices are joined, and what is near them. */
static void export_parts(struct export *x, struct gpuq_val *v, const struct snap_node *n)
{
	const struct snap_joint *j = n->joint == SNAP_NONE ? NULL : &x->s->joints[n->joint];
	struct gpuq_val *mig = gpuq_map(x->a), *links = gpuq_list(x->a), *numa = gpuq_list(x->a);

	for (uint32_t i = 0; i < n->n_mig; i++)
		put_int(x, mig, n->mig[i].profile,
			n->mig[i].count > n->mig[i].foreign ? n->mig[i].count - n->mig[i].foreign
							    : 0);
	if (n->n_mig)
		put(x, v, "mig", mig);
	for (uint32_t d = 0; j && j->links && d < j->n_devices; d++) {
		struct gpuq_val *row = gpuq_add(x->a, links, gpuq_list(x->a));

		for (uint32_t k = 0; k < j->n_devices; k++)
			gpuq_add(x->a, row, gpuq_int(x->a, j->links[d * j->n_devices + k]));
	}
	if (j && j->links)
		put(x, v, "links", links);
	for (uint32_t d = 0; j && j->numa && d < j->n_devices; d++)
		gpuq_add(x->a, numa, gpuq_int(x->a, j->numa[d]));
	if (j && j->numa)
		put(x, v, "numa", numa);
}

static void export_node(struct export *x, const struct snap_node *sn)
{
	const struct node *n = node_find(x->m, sn->name);
	struct gpuq_val *v = add(x, "nodes");
	int64_t memory = 0;

	put_str(x, v, "name", sn->name);
	put_int(x, v, "gpus", sn->n_devices);
	for (uint32_t d = 0; d < sn->n_devices; d++)
		if (x->s->devices[sn->device_first + d].memory_bytes > memory)
			memory = x->s->devices[sn->device_first + d].memory_bytes;
	if (memory)
		put_int(x, v, "gpu_mem_mb", memory >> 20);
	if (sn->cpu_milli != GPUQ_UNLIMITED)
		put_int(x, v, "cpu",
			sn->cpu_milli > sn->foreign_cpu_milli
				? sn->cpu_milli - sn->foreign_cpu_milli
				: 0);
	if (sn->memory_bytes != GPUQ_UNLIMITED)
		put_int(x, v, "mem_mb",
			sn->memory_bytes > sn->foreign_memory_bytes
				? (sn->memory_bytes - sn->foreign_memory_bytes) >> 20
				: 0);
	if (sn->pods != GPUQ_UNLIMITED)
		put_int(x, v, "max_pods",
			sn->pods > sn->foreign_pods ? sn->pods - sn->foreign_pods : 0);
	if (sn->pool && *sn->pool)
		put_str(x, v, "pool", sn->pool);
	if (sn->n_devices || sn->n_mig)
		put_str(x, v, "flavor", x->s->flavors[sn->flavor].name);
	export_parts(x, v, sn);
	put_str(x, v, "state", states[sn->state]);
	if (n)
		export_labels(x, v, n);
}

/* ---- queues ---- */

static void put_amount(struct export *x, struct gpuq_val *v, const char *flavor, int64_t milli)
{
	put_milli(x, v, flavor, milli == GPUQ_UNLIMITED ? -1000 : milli);
}

static void export_queue(struct export *x, uint32_t ix)
{
	const struct snap_queue *q = &x->s->queues[ix];
	const struct snap_share *shares = x->s->shares + (size_t)ix * x->s->n_res;
	struct gpuq_val *v = add(x, "queues");
	struct gpuq_val *quota = gpuq_map(x->a), *limit = gpuq_map(x->a), *lend = gpuq_map(x->a);
	bool lends_all = true;

	put_str(x, v, "name", q->name);
	put_str(x, v, "parent", q->parent == SNAP_NONE ? "root" : x->s->queues[q->parent].name);
	for (uint32_t f = 0; f < x->s->n_flavors; f++) {
		put_amount(x, quota, x->s->flavors[f].name, shares[f].quota);
		put_amount(x, limit, x->s->flavors[f].name, shares[f].limit);
		put_amount(x, lend, x->s->flavors[f].name, shares[f].lend);
		lends_all &= shares[f].lend == GPUQ_UNLIMITED;
	}
	put(x, v, "quota", quota);
	put(x, v, "limit", limit);
	if (!lends_all)
		put(x, v, "lend_limit", lend);
	put_milli(x, v, "weight", q->weight_milli);
	put_int(x, v, "priority", q->rank);
	put_str(x, v, "preempt_within", preempts[q->preempt_within]);
	put_str(x, v, "reclaim", reclaims[q->reclaim]);
	if (q->own_strict)
		put_str(x, v, "own_preempt", "strict");
	put(x, v, "reclaimable", gpuq_bool(x->a, !q->not_reclaimable));
	put(x, v, "fence", gpuq_bool(x->a, q->fence));
	put(x, v, "stopped", gpuq_bool(x->a, q->stopped));
	if (q->spread)
		put(x, v, "spread", gpuq_bool(x->a, true));
	if (q->borrow_preempt_max_priority != INT64_MIN)
		put_int(x, v, "borrow_preempt_max_priority", q->borrow_preempt_max_priority);
	if (q->preempt_min_runtime_us >= 0)
		put_span(x, v, "preempt_min_runtime", q->preempt_min_runtime_us);
	if (q->reclaim_min_runtime_us >= 0)
		put_span(x, v, "reclaim_min_runtime", q->reclaim_min_runtime_us);
	if (q->usage_micro)
		put_milli(x, v, "usage", q->usage_micro / 1000);
	if (q->budget_gpu_ms != GPUQ_UNLIMITED) {
		put_milli(x, v, "budget_gpu_min", q->budget_gpu_ms / 60);
		put_milli(x, v, "budget_used_gpu_min", q->budget_used_gpu_ms / 60);
		put_str(x, v, "budget_mode", q->budget_hard ? "hard" : "soft");
		if (q->budget_demotes)
			put(x, v, "budget_demotes_guarantee", gpuq_bool(x->a, true));
	}
	if (q->user_max_running != GPUQ_UNLIMITED)
		put_int(x, v, "user_max_running", q->user_max_running);
	if (q->max_running != GPUQ_UNLIMITED)
		put_int(x, v, "max_running", q->max_running);
	if (q->user_max_gpus_milli != GPUQ_UNLIMITED)
		put_milli(x, v, "user_max_gpus", q->user_max_gpus_milli);
	if (q->job_max_gpus_milli != GPUQ_UNLIMITED)
		put_milli(x, v, "job_max_gpus", q->job_max_gpus_milli);
	if (q->max_gpus_milli != GPUQ_UNLIMITED)
		put_milli(x, v, "max_gpus", q->max_gpus_milli);
}

/* ---- users ---- */

/* What a case adds for a running job by itself, in the snapshot's unit. */
static uint64_t used_by(const struct export *x, const struct snap_job *j)
{
	int64_t milli = 0;

	if (j->state != SNAP_RUNNING || j->start_us >= x->s->config.now_us)
		return 0;
	for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++)
		milli += (int64_t)x->s->allocs[i].n_devices * x->s->allocs[i].milli;
	return (uint64_t)(usage_of(milli, x->s->config.now_us - j->start_us,
				   x->m->policy.usage_half_life_us) >>
			  SNAP_USED_SHIFT);
}

static void export_users(struct export *x)
{
	const struct snapshot *s = x->s;
	uint64_t *running = calloc(s->n_usages + 1, sizeof(*running));

	if (!running)
		abort();
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i].usage < s->n_usages)
			running[s->jobs[i].usage] += used_by(x, &s->jobs[i]);
	for (uint32_t i = 0; i < s->n_usages; i++) {
		const struct snap_usage *u = &s->usages[i];
		const uint64_t used = u->used > running[i] ? u->used - running[i] : 0;
		struct gpuq_val *v;

		/* Below a thousandth of a GPU-second. */
		if (used >> (32 - SNAP_USED_SHIFT - 10) == 0)
			continue;
		v = add(x, "users");
		put_str(x, v, "name", s->users[u->user]);
		put_str(x, v, "queue", s->queues[u->queue].name);
		put_milli(x, v, "used",
			  (int64_t)((fixed_u128)used * 1000 >> (32 - SNAP_USED_SHIFT)));
	}
	free(running);
}

/* ---- jobs ---- */

/* Labels that a node must have. Other constraints a case cannot say. */
static void export_selector(struct export *x, struct gpuq_val *v, const struct snap_group *g)
{
	const struct gpuq_term *t = g->n_required == 1 ? g->required : NULL;
	struct gpuq_val *map = gpuq_map(x->a);

	for (size_t i = 0; t && i < t->n; i++)
		if (t->all[i].op == GPUQ_OP_IN && t->all[i].values.n == 1)
			put_str(x, map, t->all[i].key, t->all[i].values.items[0]);
	if (map && map->n)
		put(x, v, "selector", map);
}

static struct gpuq_val *export_task(struct export *x, const struct snap_request *r, uint32_t group)
{
	const struct snap_group *g = &r->groups[group];
	struct gpuq_val *v = gpuq_map(x->a), *list = gpuq_list(x->a);

	put_milli(x, v, "gpus", g->gpus_milli);
	if (g->mig)
		put_str(x, v, "mig", g->mig);
	export_selector(x, v, g);
	if (g->gpu_memory_bytes)
		put_int(x, v, "gpu_mem_mb", g->gpu_memory_bytes >> 20);
	if (g->cpu_milli)
		put_int(x, v, "cpu", g->cpu_milli);
	if (g->memory_bytes)
		put_int(x, v, "mem_mb", g->memory_bytes >> 20);
	if (r->n_groups > 1)
		put_str(x, v, "role", g->name);
	for (uint32_t i = 0; i < g->n_tolerations; i++) {
		struct gpuq_val *t = gpuq_add(x->a, list, gpuq_map(x->a));

		put_str(x, t, "key", g->tolerations[i].key ? g->tolerations[i].key : "");
		put_str(x, t, "operator", g->tolerations[i].exists ? "Exists" : "Equal");
		put_str(x, t, "value", g->tolerations[i].value ? g->tolerations[i].value : "");
		put_str(x, t, "effect", g->tolerations[i].effect ? g->tolerations[i].effect : "");
	}
	if (g->n_tolerations)
		put(x, v, "tolerations", list);
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

		put_str(x, slice, "level", r->groups[0].slices[i].level);
		put_int(x, slice, "size", r->groups[0].slices[i].size);
	}
	if (slices && slices->n)
		put(x, t, "slices", slices);
	if (t && t->n)
		put(x, v, "topology", t);
}

/* How many pods must run: of each role, of sub-groups, or of all together. */
static void export_minimum(struct export *x, struct gpuq_val *v, const struct snap_request *r,
			   int64_t min_tasks)
{
	struct gpuq_val *roles = gpuq_map(x->a);

	if (r->n_groups == 1 && r->groups[0].unit_pods) {
		put_int(x, v, "group_size", r->groups[0].unit_pods);
		put_int(x, v, "min_groups", r->groups[0].pods_min / r->groups[0].unit_pods);
		return;
	}
	for (uint32_t g = 0; r->n_groups > 1 && g < r->n_groups; g++)
		put_int(x, roles, r->groups[g].name, r->groups[g].pods_min);
	if (roles && roles->n)
		put(x, v, "role_min", roles);
	else
		put_int(x, v, "min_tasks", min_tasks);
}

/* What its devices do, and how long they may do nothing. */
static void export_idle(struct export *x, struct gpuq_val *v, const struct snap_job *j,
			const struct job *mj)
{
	char rule[64];
	const int64_t limit_us = mj ? job_idle_limit_us(x->m, mj, rule) : 0;

	if (limit_us && limit_us < j->walltime_us)
		put_span(x, v, "idle_limit", limit_us);
	if (mj && mj->life->load && mj->life->load->at_us)
		put_milli(x, v, "use", mj->life->load->milli * INT64_C(100));
}

/* What holds for a job wherever it stands. */
static struct gpuq_val *export_job(struct export *x, const struct snap_job *j, const char *part,
				   const char *name)
{
	const struct snap_request *r = &x->s->requests[j->request];
	const struct job *mj = job_find(x->m, (struct job_key){ j->key.id, j->key.index });
	struct gpuq_val *v = add(x, part), *needs = gpuq_map(x->a);

	put_str(x, v, "job", name);
	put_str(x, v, "queue", x->s->queues[j->queue].name);
	put_str(x, v, "user", x->s->users[j->user]);
	put_int(x, v, "priority", j->priority);
	put(x, v, "preemptible", gpuq_bool(x->a, j->preemptible));
	put_time(x, v, "submit", j->submit_us);
	if (j->walltime_us != GPUQ_UNLIMITED)
		put_span(x, v, "walltime", j->walltime_us);
	if (j->walltime_min_us)
		put_span(x, v, "walltime_min", j->walltime_min_us);
	if (j->begin_us > x->t0_us)
		put_time(x, v, "begin", j->begin_us);
	if (j->deadline_us)
		put_time(x, v, "deadline", j->deadline_us);
	if (j->nice)
		put_int(x, v, "nice", j->nice);
	if (j->boost)
		put_int(x, v, "boost", j->boost);
	if (j->fixed_priority)
		put_int(x, v, "fixed_priority", j->fixed_priority);
	if (j->charge_milli != SNAP_MILLI)
		put_milli(x, v, "usage_factor", j->charge_milli);
	if (j->spread)
		put(x, v, "spread", gpuq_bool(x->a, true));
	if (j->evict_last)
		put(x, v, "evict_last", gpuq_bool(x->a, true));
	if (r->exclusive)
		put(x, v, "exclusive", gpuq_bool(x->a, true));
	export_idle(x, v, j, mj);
	put_strs(x, v, "flavors", r->flavors, r->n_flavors);
	for (uint32_t i = 0; i < r->n_licenses; i++)
		put_int(x, needs, x->s->licenses[r->licenses[i].license].name,
			r->licenses[i].count);
	if (r->n_licenses)
		put(x, v, "licences", needs);
	export_topology(x, v, r);
	if (mj && !mj->wish->requeue)
		put_str(x, v, "preempt_mode", "cancel");
	return v;
}

static void export_waiting(struct export *x, const struct snap_job *j, uint32_t range)
{
	const struct snap_request *r = &x->s->requests[j->request];
	struct gpuq_val *v = export_job(x, j, "pending", key_text(x, j->key, range));
	struct gpuq_val *tasks = gpuq_list(x->a), *array = gpuq_map(x->a), *nodes = gpuq_list(x->a);
	bool elastic = false;

	if (j->held || j->gate != GPUQ_R_NONE)
		put(x, v, "hold", gpuq_bool(x->a, true));
	for (uint32_t g = 0; g < r->n_groups; g++) {
		struct gpuq_val *t = gpuq_add(x->a, tasks, export_task(x, r, g));

		put_int(x, t, "count", r->groups[g].pods_max);
		elastic |= r->groups[g].pods_max > r->groups[g].pods_min;
	}
	put(x, v, "tasks", tasks);
	if (elastic)
		export_minimum(x, v, r, r->n_pods);
	if (range < j->n_ranges) {
		put_int(x, array, "first", j->ranges[range].first);
		put_int(x, array, "last", j->ranges[range].last);
		put_int(x, array, "step", j->ranges[range].step);
		put_int(x, array, "throttle", j->throttle);
		put(x, v, "array", array);
	}
	for (uint32_t i = 0; i < j->n_exclude; i++)
		gpuq_add(x->a, nodes, gpuq_str(x->a, x->s->nodes[j->exclude[i]].name));
	if (j->n_exclude)
		put(x, v, "exclude", nodes);
}

static void export_running(struct export *x, const struct snap_job *j)
{
	const struct snap_request *r = &x->s->requests[j->request];
	struct gpuq_val *v = export_job(x, j, "running", key_text(x, j->key, 0));
	struct gpuq_val *tasks = gpuq_list(x->a);

	put_time(x, v, "start", j->start_us);
	if (j->checkpoint_us)
		put_time(x, v, "last_checkpoint", j->checkpoint_us);
	if (j->restart_cost_us)
		put_span(x, v, "restart_cost", j->restart_cost_us);
	for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++) {
		const struct snap_alloc *al = &x->s->allocs[i];
		struct gpuq_val *t = gpuq_add(x->a, tasks, export_task(x, r, al->group));
		struct gpuq_val *devices = gpuq_list(x->a);

		put_str(x, t, "node", x->s->nodes[al->node].name);
		for (uint32_t d = 0; d < al->n_devices; d++)
			gpuq_add(x->a, devices, gpuq_int(x->a, al->devices[d]));
		if (al->n_devices)
			put(x, t, "gpu_index", devices);
		if (al->releasing || j->state == SNAP_LEAVING)
			put(x, t, "releasing", gpuq_bool(x->a, true));
	}
	/* What it may grow by has no place yet. */
	for (uint32_t g = 0; g < r->n_groups; g++) {
		uint32_t n = 0;

		for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++)
			n += x->s->allocs[i].group == g;
		if (n < r->groups[g].pods_max && r->groups[g].pods_max > r->groups[g].pods_min &&
		    j->state == SNAP_RUNNING)
			put_int(x, gpuq_add(x->a, tasks, export_task(x, r, g)), "count",
				r->groups[g].pods_max - n);
	}
	put(x, v, "tasks", tasks);
	export_minimum(x, v, r, j->n_allocs < r->n_pods ? j->n_allocs : r->n_pods);
}

/* ---- devices that are not ours to give ---- */

static uint32_t lost_devices(const struct export *x, const struct snap_node *n, uint8_t *lost)
{
	int64_t foreign = n->foreign_gpus;
	uint32_t count = 0;

	for (uint32_t d = n->n_devices; d-- > 0;) {
		const struct snap_device *dev = &x->s->devices[n->device_first + d];

		lost[d] = !dev->healthy || dev->foreign_milli > 0;
		/* Which ones others have is not known: the last that are free. */
		if (!lost[d] && foreign > 0 && dev->shares == 0) {
			lost[d] = 1;
			foreign--;
		}
		count += lost[d] && dev->shares == 0;
	}
	return count;
}

static void export_foreign(struct export *x, const struct snap_node *n)
{
	uint8_t lost[SNAP_DEVICES_MAX];
	struct gpuq_val *v, *list, *t, *devices;
	const uint32_t count = lost_devices(x, n, lost);

	if (count == 0)
		return;
	v = add(x, "running");
	list = gpuq_list(x->a);
	t = gpuq_add(x->a, list, gpuq_map(x->a));
	devices = gpuq_list(x->a);
	put_str(x, v, "job", gpuq_arena_printf(x->a, FOREIGN "-%s", n->name));
	put_str(x, v, "queue", FOREIGN);
	put(x, v, "preemptible", gpuq_bool(x->a, false));
	put_int(x, v, "submit", 0);
	put_int(x, v, "start", 0);
	put_str(x, t, "node", n->name);
	put_int(x, t, "gpus", count);
	for (uint32_t d = 0; d < n->n_devices; d++)
		if (lost[d] && x->s->devices[n->device_first + d].shares == 0)
			gpuq_add(x->a, devices, gpuq_int(x->a, d));
	put(x, t, "gpu_index", devices);
	put(x, v, "tasks", list);
}

static void find_first_time(struct export *x)
{
	x->t0_us = x->s->config.now_us;
	for (uint32_t i = 0; i < x->s->n_jobs; i++) {
		const struct snap_job *j = &x->s->jobs[i];

		if (j->submit_us < x->t0_us)
			x->t0_us = j->submit_us;
	}
}

int export_scenario(const struct model *m, int64_t now_us, export_fn fn, void *arg,
		    struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct export x = { .m = m, .a = &mem, .fn = fn, .arg = arg };
	struct snapshot *s = NULL;
	uint8_t lost[SNAP_DEVICES_MAX];
	int rc = snapshot_take(m, now_us, &s, err);

	if (rc < 0)
		return rc;
	x.s = s;
	find_first_time(&x);
	export_config(&x);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		export_node(&x, &s->nodes[i]);
		x.has_foreign |= lost_devices(&x, &s->nodes[i], lost) > 0;
	}
	for (uint32_t i = 0; i < s->n_queues; i++)
		export_queue(&x, i);
	if (x.has_foreign) {
		struct gpuq_val *v = add(&x, "queues");

		put_str(&x, v, "name", FOREIGN);
		put_int(&x, v, "quota", -1);
		put_int(&x, v, "weight", 0);
	}
	export_users(&x);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		export_foreign(&x, &s->nodes[i]);
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i].state != SNAP_PENDING && s->jobs[i].n_allocs)
			export_running(&x, &s->jobs[i]);
	for (uint32_t i = 0; i < s->n_jobs; i++)
		for (uint32_t r = 0;
		     s->jobs[i].state == SNAP_PENDING && (r < s->jobs[i].n_ranges || r == 0); r++)
			export_waiting(&x, &s->jobs[i], r);
	hand_over(&x);
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return 0;
}
