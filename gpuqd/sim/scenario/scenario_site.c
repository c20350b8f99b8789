#include "gpuqd/sim/scenario/scenario_int.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot.h"

/* The cluster and its queues. */

static const char *const units[] = { "second", "minute", "hour", "day", NULL };
static const char *const reclaim_tos[] = { "fair_share", "guarantee", NULL };
static const char *const budget_modes[] = { "soft", "hard", NULL };
static const char *const queue_budget_modes[] = { "config", "soft", "hard", NULL };
static const char *const runtime_methods[] = { "lca", "queue", NULL };
static const char *const reservation_kinds[] = { "user", "maintenance", NULL };
static const char *const node_states[] = { "ready", "drained", "suspect", "down", NULL };
static const char *const reclaims[] = { "any", "lower_or_equal", "lower", "never", NULL };
static const char *const preempts[] = { "lower", "lower_or_newer", "never", NULL };

static const char *const own_preempts[] = { "priority", "strict", NULL };

static const struct gpuq_field reservation_fields[] = {
	STR(sc_reservation, "name", name, "what it is called"),
	NUM(sc_reservation, "start", start, "when it begins"),
	NUM(sc_reservation, "duration", duration, "how long it lasts"),
	LIST(sc_reservation, "nodes", nodes, "which nodes"),
	STR(sc_reservation, "node", node, "which node"),
	NUM(sc_reservation, "gpus", gpus, "an amount anywhere"),
	NUM(sc_reservation, "every", every, "it comes again after so long"),
	NUM(sc_reservation, "release_after", release_after,
	    "what its owners do not use by then is everybody's"),
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
	BOOL(sc_config, "cross_queue_priority", cross_queue_priority, "between queues alike"),
	NUM(sc_config, "backfill_depth", backfill_depth, "reservations; -1 = all"),
	NUM(sc_config, "max_job_test", max_job_test, "blocked jobs looked at"),
	NUM(sc_config, "starve_time", starve_time, "who waits longer is planned first"),
	MAP(sc_config, "licences", licences, "counters that jobs take from"),
	MAP(sc_config, "licenses", licences, "the same"),
	MANY(sc_config, "reservations", reservations, &reservation_schema, "calendar slices"),
	WORD(sc_config, "budget_mode", budget_mode, budget_modes, "soft or hard"),
	WORD(sc_config, "min_runtime_method", min_runtime_method, runtime_methods, "whose counts"),
	NUM(sc_config, "preempt_min_runtime", preempt_min_runtime, "default for all queues"),
	NUM(sc_config, "reclaim_min_runtime", reclaim_min_runtime, "default for all queues"),
	NUM(sc_config, "cooldown", cooldown, "an evicted job's queue claims back no sooner"),
	NUM(sc_config, "claims_per_hour", claims_per_hour, "on fair shares, against one queue"),
	NUM(sc_config, "claim_reversals", claim_reversals, "between two queues in an hour"),
	NUM(sc_config, "claim_spare_max", claim_spare_max, "devices that a claim may leave over"),
	NUM(sc_config, "moves_per_day", moves_per_day, "of one job"),
	NUM(sc_config, "grow_delay", grow_delay, "from shrinking to growing again"),
	NUM(sc_config, "gang_repair", gang_repair, "how long a broken gang is kept"),
	NUM(sc_config, "preemption_delay", preemption_delay,
	    "how long a job waits before it claims"),
	NUM(sc_config, "idle_window", idle_window, "pieces of time that are idle or not"),
	MAP(sc_config, "priority_weights", priority_weights, "points of age, fairshare, size, qos"),
	NUM(sc_config, "usage_k", usage_k, "weight of past usage"),
	NUM(sc_config, "usage_half_life", usage_half_life,
	    "past usage counts half after; -1 = never"),
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
	c->backfill_depth = c->max_job_test = c->starve_time = SC_ABSENT;
	c->usage_half_life = c->claim_spare_max = SC_ABSENT;
	c->preempt_min_runtime = c->reclaim_min_runtime = SC_ABSENT;
	c->cooldown = c->claims_per_hour = c->claim_reversals = c->moves_per_day = SC_ABSENT;
	c->grow_delay = c->gang_repair = c->preemption_delay = c->idle_window = SC_ABSENT;
}

const struct gpuq_schema scenario_config = {
	.name = "config",
	.size = sizeof(struct sc_config),
	.fields = config_fields,
	.defaults = config_defaults,
};

static const struct gpuq_field taint_fields[] = {
	STR(snap_taint, "key", key, "its key"),
	STR(snap_taint, "value", value, "its value"),
	STR(snap_taint, "effect", effect, "NoSchedule, PreferNoSchedule or NoExecute"),
	{ 0 },
};

static void taint_defaults(void *obj)
{
	*(struct snap_taint *)obj = (struct snap_taint){ "", "", "NoSchedule" };
}

static const struct gpuq_schema taint_schema = {
	.name = "taint",
	.size = sizeof(struct snap_taint),
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
	{ .key = "links",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &scenario_bytes,
	  .offset = offsetof(struct sc_node, links),
	  .doc = "how fast each device is joined to each, a row a device" },
	{ .key = "numa",
	  .kind = GPUQ_K_CUSTOM,
	  .custom = &scenario_bytes,
	  .offset = offsetof(struct sc_node, numa),
	  .doc = "the NUMA node of each device" },
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

/* Instances of each profile: a whole number up to that of a node of seven-slice devices. */
static bool mig_holds(const struct gpuq_strmap *mig)
{
	for (size_t i = 0; i < mig->n; i++) {
		const char *s = mig->vals[i];
		char *end;
		const unsigned long n = strtoul(s, &end, 10);

		if (*s < '0' || *s > '9' || *end || n > 7 * SNAP_DEVICES_MAX)
			return false;
	}
	return mig->n <= SC_MIG_MAX;
}

static int node_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_node *n = obj;
	const size_t gpus = n->gpus > 0 ? (size_t)n->gpus / 1000 : 0;

	if (n->gpus < 0 || n->gpus > SNAP_DEVICES_MAX * 1000 || n->gpus % 1000)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "gpus: expected 0 to %u devices",
					SNAP_DEVICES_MAX);
	if (n->count != SC_ABSENT && (n->count < 1000 || n->count > INT64_C(100000000)))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "count: expected 1 to 100000");
	if ((n->cpu != SC_ABSENT && n->cpu < 0) || (n->mem_mb != SC_ABSENT && n->mem_mb < 0) ||
	    (n->max_pods != SC_ABSENT && n->max_pods < 0) || n->gpu_mem_mb < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "an amount below 0");
	if (!mig_holds(&n->mig))
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"mig: expected at most %d profiles, each with a number of "
					"instances",
					SC_MIG_MAX);
	if (n->links.n && n->links.n != gpus * gpus)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"links: expected %zu rows of as many classes", gpus);
	if (n->numa.n && n->numa.n != gpus)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "numa: expected %zu numbers", gpus);
	return 0;
}

const struct gpuq_schema scenario_node = {
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
	WORD(sc_queue, "own_preempt", own_preempt, own_preempts, "to whom its own jobs yield"),
	NUM(sc_queue, "borrow_preempt_max_priority", borrow_preempt_max_priority, "see reclaim"),
	BOOL(sc_queue, "reclaimable", reclaimable, "may others claim from it"),
	BOOL(sc_queue, "fence", fence, "claims stay inside"),
	BOOL(sc_queue, "spread", spread, "its jobs prefer the emptiest nodes"),
	BOOL(sc_queue, "stopped", stopped, "starts nothing"),
	NUM(sc_queue, "preempt_min_runtime", preempt_min_runtime, "protection"),
	NUM(sc_queue, "reclaim_min_runtime", reclaim_min_runtime, "protection"),
	NUM(sc_queue, "usage", usage, "past usage, normalised"),
	NUM(sc_queue, "budget_gpu_min", budget_gpu_min, "GPU-minutes"),
	NUM(sc_queue, "budget_used_gpu_min", budget_used_gpu_min, "GPU-minutes"),
	WORD(sc_queue, "budget_mode", budget_mode, queue_budget_modes, "absent: the config's"),
	BOOL(sc_queue, "budget_demotes_guarantee", budget_demotes, "used up, its quota is none"),
	NUM(sc_queue, "user_max_running", user_max_running, "jobs of one user at once"),
	NUM(sc_queue, "user_max_gpus", user_max_gpus, "devices of one user at once"),
	NUM(sc_queue, "job_max_gpus", job_max_gpus, "devices of one job"),
	NUM(sc_queue, "max_running", max_running, "jobs at once"),
	NUM(sc_queue, "max_gpus", max_gpus, "devices at once, of all flavors together"),
	NUM(sc_queue, "idle_limit", idle_limit, "its jobs are stopped when idle so long"),
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
	q->user_max_running = q->user_max_gpus = q->job_max_gpus = SC_ABSENT;
	q->max_running = q->max_gpus = SC_ABSENT;
	q->idle_limit = SC_ABSENT;
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

const struct gpuq_schema scenario_queue = {
	.name = "queue",
	.size = sizeof(struct sc_queue),
	.fields = queue_fields,
	.defaults = queue_defaults,
	.check = queue_check,
};

static const struct gpuq_field user_fields[] = {
	{ .key = "name",
	  .kind = GPUQ_K_STR,
	  .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct sc_user, name),
	  .doc = "as jobs name it" },
	STR(sc_user, "queue", queue, "where; absent = the first queue"),
	NUM(sc_user, "usage", usage, "past usage, normalised"),
	NUM(sc_user, "used", used, "the same in GPU-seconds, as it counts now"),
	{ 0 },
};

static int user_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_user *u = obj;

	if (u->usage < 0 || u->used < 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "usage and used are at least 0");
	return 0;
}

const struct gpuq_schema scenario_user = {
	.name = "user",
	.size = sizeof(struct sc_user),
	.fields = user_fields,
	.check = user_check,
};
