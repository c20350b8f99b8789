#include "gpuqd/sched/elastic.h"

#include <string.h>

#include "gpuqd/sched/place/charges.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/topology_tree.h"
#include "gpuqd/sched/preempt/entitlement.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/preempt/surplus.h"
#include "gpuqd/sched/quota/budget.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/sched/timeline/nominated.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/place/topology.h"
#include "libgpuq/limits.h"

/* Growth of elastic jobs, after all jobs had their turn: gangs that lost pods get replacements or,
 * after a time, are preempted; elastic jobs take idle capacity, a pod (or a group of pods that must
 * be together) at a time, always the job with the least surplus of the queue that has least of its
 * share. Nominated places and start reservations are not touched. A pod that does not fit may
 * preempt surplus of other jobs by the rules of preemption; a gang is never broken for it. */

#define CLAIMS_MAX 64 /* elastic jobs that preempt in one cycle */

/* A job that may get more pods. */
struct grower {
	uint32_t job, flavor;
	struct snap_key key; /* of the running element */
	uint32_t have[GPUQ_GROUPS_MAX]; /* pods, by group */
	uint32_t next_index; /* of a pod beyond the gang */
	uint32_t surplus; /* sets of pods beyond the gang */
	bool started; /* in this cycle */
	bool done; /* it cannot grow any more */
};

struct growth {
	struct grower *growers; /* every job that may get pods */
	struct grower **heads; /* by queue */
	uint32_t n, room;
	uint64_t *off; /* nodes that other jobs count on */
	uint64_t *domain;
	int64_t *amounts; /* of the current set of pods, by resource */
	uint64_t *leaving; /* jobs that are preempted or relocated in this cycle */
};

/* Return the request of a grower. */
static const struct snap_request *request_of(const struct cycle *c, const struct grower *g)
{
	return cycle_request(c, g->job);
}

/* Return how many pods of the group must be added together. */
static uint32_t set_of(const struct snap_group *g)
{
	return g->unit_pods > 1 ? g->unit_pods : 1;
}

/* ---- jobs that may grow ---- */

/* True if some group may have more pods than it must. */
static bool is_elastic(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].pods_max > r->groups[g].pods_min)
			return true;
	return false;
}

/* Add a job without pods; NULL without memory. */
static struct grower *add(struct cycle *c, struct growth *all, uint32_t job, struct snap_key key,
			  uint32_t flavor)
{
	struct grower *g = cycle_push(c, &all->growers, &all->n, &all->room, sizeof(*g), 1);

	if (!g)
		return NULL;
	memset(g, 0, sizeof(*g));
	g->job = job;
	g->key = key;
	g->flavor = flavor;
	g->next_index = cycle_request(c, job)->n_pods;
	return g;
}

/* Add a running job with the pods that stay. */
static void add_running(struct cycle *c, struct growth *all, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = &c->s->requests[j->request];
	const struct snap_alloc *a = &c->s->allocs[j->alloc_first];
	struct grower *g = add(c, all, job, j->key, cost_flavor(c->s, a, j->n_allocs));

	for (uint32_t i = 0; g && i < j->n_allocs; i++) {
		if (a[i].index >= g->next_index)
			g->next_index = a[i].index + 1;
		if (a[i].releasing || a[i].group >= r->n_groups)
			continue;
		g->have[a[i].group]++;
	}
	for (uint32_t k = 0; g && k < r->n_groups; k++)
		if (g->have[k] > r->groups[k].pods_min)
			g->surplus += (g->have[k] - r->groups[k].pods_min) / set_of(&r->groups[k]);
}

/* Add a job that starts in this cycle, with its gang. */
static void add_started(struct cycle *c, struct growth *all, const struct plan_action *a)
{
	const struct snap_request *r = cycle_request(c, a->job);
	struct grower *g = add(c, all, a->job, a->key, a->flavor);

	for (uint32_t k = 0; g && k < r->n_groups; k++)
		g->have[k] = r->groups[k].pods_min;
	if (g)
		g->started = true;
}

/* True if the job has lost pods of its gang. */
static bool short_of_pods(const struct cycle *c, const struct grower *g)
{
	const struct snap_request *r = request_of(c, g);

	for (uint32_t k = 0; k < r->n_groups; k++)
		if (g->have[k] < r->groups[k].pods_min)
			return true;
	return false;
}

/* True if the job was shrunk a moment ago: it does not grow at once. */
static bool rests(struct cycle *c, const struct grower *g)
{
	const int64_t until = amount_sum(c->s->jobs[g->job].shrunk_us, c->s->config.grow_delay_us);

	if (c->s->config.grow_delay_us == 0 || c->s->jobs[g->job].shrunk_us == 0 ||
	    until <= c->s->config.now_us)
		return false;
	if (until < c->plan.wake_us)
		c->plan.wake_us = until;
	return true;
}

/* Find the jobs that may get more pods: none that was preempted, relocated or shrunk in this cycle,
 * and none with exclusive nodes. */
static void find_growers(struct cycle *c, struct growth *all)
{
	for (uint32_t i = 0; i < c->plan.n_actions; i++)
		if (c->plan.actions[i].kind == PLAN_EVICT || c->plan.actions[i].kind == PLAN_MOVE ||
		    c->plan.actions[i].kind == PLAN_SHRINK)
			bits_add(all->leaving, c->plan.actions[i].job);
	for (uint32_t k = 0; !c->failed && k < c->s->lines.n_busy; k++) {
		const uint32_t i = c->s->lines.busy[k];
		const struct snap_job *j = &c->s->jobs[i];
		const struct snap_request *r = &c->s->requests[j->request];

		if (j->state == SNAP_RUNNING && !bits_has(all->leaving, i) && !r->exclusive &&
		    (is_elastic(r) || j->short_us))
			add_running(c, all, i);
	}
	for (uint32_t i = 0; !c->failed && i < c->plan.n_actions; i++)
		if (c->plan.actions[i].kind == PLAN_PLACE &&
		    c->plan.actions[i].request == cycle_request_ix(c, c->plan.actions[i].job) &&
		    is_elastic(cycle_request(c, c->plan.actions[i].job)) &&
		    !cycle_request(c, c->plan.actions[i].job)->exclusive)
			add_started(c, all, &c->plan.actions[i]);
}

/* ---- more pods ---- */

/* Return the domain of the group's other pods, where the group requires one. */
static const uint64_t *domain_of(struct cycle *c, struct growth *all, const struct grower *g,
				 const struct snap_group *group)
{
	const struct level *l =
		group->topology_required ? topology_level(c, group->topology_required) : NULL;
	uint32_t node = SNAP_NONE;

	if (!l)
		return NULL;
	if (g->started) {
		for (uint32_t i = 0; node == SNAP_NONE && i < c->plan.n_actions; i++)
			if (c->plan.actions[i].kind == PLAN_PLACE &&
			    c->plan.actions[i].job == g->job &&
			    c->plan.actions[i].key.index == g->key.index)
				node = c->plan.pods[c->plan.actions[i].pod_first].node;
	} else {
		node = c->s->allocs[c->s->jobs[g->job].alloc_first].node;
	}
	if (node == SNAP_NONE)
		return NULL;
	memset(all->domain, 0, cycle_words(c) * sizeof(*all->domain));
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if (l->domain_of[n] == l->domain_of[node])
			bits_add(all->domain, n);
	return all->domain;
}

/* Compute the amounts of this many pods of a group. */
static void measure(struct cycle *c, struct growth *all, const struct grower *g,
		    const struct snap_group *group, uint32_t pods)
{
	memset(all->amounts, 0, c->s->n_res * sizeof(*all->amounts));
	if (g->flavor != SNAP_NONE)
		all->amounts[g->flavor] = amount_times(cost_of_pod(c->s, group, g->flavor), pods);
	all->amounts[snap_cpu(c->s)] = amount_times(group->cpu_milli, pods);
	all->amounts[snap_memory(c->s)] = amount_times(group->memory_bytes, pods);
}

/* Place pods within limits, off the nodes that start reservations count on, and compute their amounts: as they are
 * charged at these places. */
static bool place(struct cycle *c, struct growth *all, const struct grower *g, uint32_t group,
		  uint32_t index, uint32_t pods)
{
	const struct snap_group *of = &request_of(c, g)->groups[group];
	const uint64_t *domain = domain_of(c, all, g, of);
	int64_t spare, charged;
	bool placed;

	measure(c, all, g, of, pods);
	spare = holdings_spare_more(
		c, g->job, g->flavor, all->amounts,
		g->flavor == SNAP_NONE || !request_of(c, g)->by_memory
			? 0
			: amount_times(
				  charges_least(c, cycle_request_ix(c, g->job), group, g->flavor),
				  pods));
	if (spare < 0)
		return false;
	timeline_keep_off(c, g->job, all->off);
	pack_bar(c, all->off);
	placed = pack_more(c, g->job, g->flavor, group, index, pods, domain, spare);
	pack_bar(c, NULL);
	charged = placed ? charges_of_places(c, g->job) : -1;
	if (charged >= 0 && g->flavor != SNAP_NONE)
		all->amounts[g->flavor] = charged;
	return placed;
}

/* Return the next group that may have more pods; SNAP_NONE. */
static uint32_t group_to_grow(const struct cycle *c, const struct grower *g)
{
	const struct snap_request *r = request_of(c, g);

	for (uint32_t k = 0; k < r->n_groups; k++)
		if (g->have[k] + set_of(&r->groups[k]) <= r->groups[k].pods_max)
			return k;
	return SNAP_NONE;
}

/* Add one set of pods to the job; false if limits or room do not allow it. */
static bool grow(struct cycle *c, struct growth *all, struct grower *g)
{
	const struct snap_request *r = request_of(c, g);
	const uint32_t group = group_to_grow(c, g);
	uint32_t pods;

	if (group == SNAP_NONE)
		return false;
	pods = set_of(&r->groups[group]);
	c->steps++;
	if (!place(c, all, g, group, g->next_index, pods))
		return false;
	plan_emit_places(c, PLAN_GROW, g->job, g->key, g->flavor);
	holdings_grow(c, g->job, g->flavor, all->amounts);
	g->have[group] += pods;
	g->next_index += pods;
	g->surplus++;
	return !c->failed;
}

/* ---- the order of growth ---- */

/* Return the amount that one more set of pods would add to what quotas count. */
static int64_t step_of(const struct cycle *c, const struct grower *g)
{
	const uint32_t group = group_to_grow(c, g);
	const struct snap_group *of;

	if (group == SNAP_NONE)
		return 0;
	of = &request_of(c, g)->groups[group];
	return amount_times(g->flavor == SNAP_NONE ? of->cpu_milli
						   : cost_of_pod(c->s, of, g->flavor),
			    set_of(of));
}

/* The entitlement of a queue with one more set of pods. */
struct stance {
	bool over, beyond_quota; /* its share; its quota */
	int64_t held, due;
};

/* Return where the queue would stand with one more set of pods of the job. */
static struct stance stance_of(const struct cycle *c, uint32_t queue, const struct grower *g)
{
	const uint32_t res = g->flavor == SNAP_NONE ? snap_cpu(c->s) : g->flavor;
	struct stance s = { .held = amount_sum(holdings_stays(c, queue, res), step_of(c, g)),
			    .due = entitlement_line_of(c, queue, res, LINE_SHARE) };

	s.over = s.held > s.due;
	s.beyond_quota = s.held > entitlement_line_of(c, queue, res, LINE_QUOTA);
	return s;
}

/* Order as for starts: a queue that stays within its share goes first, as it could reclaim from one
 * that does not; then one that stays within its quota, the higher rank, the smaller part of the
 * share. */
static int cmp_queues(const struct cycle *c, const struct grower *g, const struct grower *h)
{
	struct stance a, b;
	__int128 part_a, part_b;
	uint32_t x, y;

	rules_below_common(c, c->s->jobs[g->job].queue, c->s->jobs[h->job].queue, &x, &y);
	if (x == y)
		return 0;
	a = stance_of(c, x, g);
	b = stance_of(c, y, h);
	if (a.over != b.over)
		return a.over ? 1 : -1;
	if (a.beyond_quota != b.beyond_quota)
		return a.beyond_quota ? 1 : -1;
	if (budget_rank(c->s, x) != budget_rank(c->s, y))
		return budget_rank(c->s, x) > budget_rank(c->s, y) ? -1 : 1;
	part_a = (__int128)a.held * b.due;
	part_b = (__int128)b.held * a.due;
	if (part_a != part_b)
		return part_a < part_b ? -1 : 1;
	return x < y ? -1 : 1;
}

/* Within a queue: the higher priority, the smaller surplus, the older job. */
static bool before(const struct cycle *c, const struct grower *x, const struct grower *y)
{
	const struct snap_job *a = &c->s->jobs[x->job], *b = &c->s->jobs[y->job];
	int d = (a->priority < b->priority) - (a->priority > b->priority);

	if (d == 0)
		d = (x->surplus > y->surplus) - (x->surplus < y->surplus);
	if (d == 0)
		d = (a->submit_us > b->submit_us) - (a->submit_us < b->submit_us);
	if (d == 0)
		d = (a->key.id > b->key.id) - (a->key.id < b->key.id);
	return d ? d < 0 : x->key.index < y->key.index;
}

/* True if its leaf stays within its share with one more set of pods. Such a job may reclaim what it
 * does not get, so it is served before the others. */
static bool stays_due(const struct cycle *c, const struct grower *g)
{
	return !stance_of(c, c->s->jobs[g->job].queue, g).over;
}

/* Return the first job of the queue that is first, comparing the first of each queue only: the
 * requests of others of a queue do not count. */
static struct grower *next_of(const struct cycle *c, struct growth *all, bool due)
{
	struct grower *best = NULL;

	memset(all->heads, 0, c->s->n_queues * sizeof(*all->heads));
	for (uint32_t i = 0; i < all->n; i++) {
		struct grower *g = &all->growers[i];
		struct grower **head = &all->heads[c->s->jobs[g->job].queue];

		if (!g->done && (!*head || before(c, g, *head)) && (!due || stays_due(c, g)))
			*head = g;
	}
	for (uint32_t q = 0; q < c->s->n_queues; q++)
		if (all->heads[q] && (!best || cmp_queues(c, all->heads[q], best) < 0))
			best = all->heads[q];
	return best;
}

/* Return the job that grows next: those below their minimum come before all others. */
static struct grower *next(const struct cycle *c, struct growth *all)
{
	struct grower *g = next_of(c, all, true);

	return g ? g : next_of(c, all, false);
}

/* ---- gangs that lost pods ---- */

/* Return the lowest index of the group's gang that no pod has. */
static uint32_t missing_index(const struct cycle *c, const struct grower *g, uint32_t group)
{
	const struct snap_request *r = request_of(c, g);
	const struct snap_job *j = &c->s->jobs[g->job];
	uint32_t index = 0;

	for (uint32_t k = 0; k < group; k++)
		index += r->groups[k].pods_min;
	for (uint32_t i = 0; i < j->n_allocs; i++)
		if (c->s->allocs[j->alloc_first + i].index == index)
			index++;
	return index;
}

/* Place one pod of its gang; called again until it has them all. */
static bool repair_one(struct cycle *c, struct growth *all, struct grower *g, uint32_t group)
{
	if (!place(c, all, g, group, missing_index(c, g, group), 1))
		return false;
	plan_emit_places(c, PLAN_GROW, g->job, g->key, g->flavor);
	holdings_grow(c, g->job, g->flavor, all->amounts);
	g->have[group]++;
	return true;
}

/* Requeue a gang that stays below its minimum, once gang_repair has passed; until then note when
 * to decide again. */
static void evict_broken(struct cycle *c, struct grower *g)
{
	const struct snap_job *j = &c->s->jobs[g->job];
	const int64_t since = j->short_us ? j->short_us : c->s->config.now_us;
	const int64_t until = amount_sum(since, c->s->config.gang_repair_us);
	struct plan_action *a;

	if (until > c->s->config.now_us) {
		if (until < c->plan.wake_us)
			c->plan.wake_us = until;
		return;
	}
	a = PLAN_PUSH(c, actions, 1);
	if (!a)
		return;
	*a = (struct plan_action){ .kind = PLAN_EVICT,
				   .job = g->job,
				   .request = cycle_request_ix(c, g->job),
				   .key = g->key,
				   .flavor = SNAP_NONE,
				   .start_us = c->s->config.now_us,
				   .cause = GPUQ_CAUSE_INFRA,
				   .claimant = SNAP_NONE,
				   .rule = gpuq_rule_word(GPUQ_RULE_GANG) };
}

/* Replace the lost pods of a gang group by group; where one has no place, the gang waits or is
 * requeued. */
static void repair(struct cycle *c, struct growth *all, struct grower *g)
{
	const struct snap_request *r = request_of(c, g);

	g->done = true;
	for (uint32_t k = 0; k < r->n_groups; k++)
		while (g->have[k] < r->groups[k].pods_min)
			if (c->failed || !repair_one(c, all, g, k)) {
				evict_broken(c, g);
				return;
			}
}

/* ---- surplus of other jobs ---- */

/* The set of pods that a job preempts for. */
struct wanted {
	struct growth *all;
	struct grower *g;
	uint32_t group, pods; /* that are wanted now */
};

/* True if the pods have places now; they are only tried and taken back. For surplus_reclaim(),
 * which asks after each victim. */
static bool wanted_fits(struct cycle *c, void *ctx)
{
	const struct wanted *w = ctx;
	const struct snap_group *of = &request_of(c, w->g)->groups[w->group];
	const struct need one = nodes_need(of);
	const bool fits = place(c, w->all, w->g, w->group, w->g->next_index, w->pods);

	while (fits && c->places.n_pods > 0)
		nodes_undo(c, &one);
	/* The search goes on with what it began with. */
	measure(c, w->all, w->g, of, w->pods);
	return fits;
}

/* Reclaim room for one set of pods from jobs that hold more than they are entitled to. True if it
 * was signalled to them. */
static bool grow_by_claim(struct cycle *c, struct growth *all, struct grower *g)
{
	struct wanted wanted = { all, g, group_to_grow(c, g), 0 };
	const struct snap_group *of;

	if (wanted.group == SNAP_NONE)
		return false;
	of = &request_of(c, g)->groups[wanted.group];
	wanted.pods = set_of(of);
	measure(c, all, g, of, wanted.pods);
	if (!surplus_reclaim(c, g->job, g->flavor, all->amounts, wanted_fits, &wanted))
		return false;
	holdings_grow(c, g->job, g->flavor, all->amounts);
	gangs_add_more(c, g->job, all->amounts, true);
	return true;
}

/* Count the pods given to running jobs as held by their queues. */
static void count_grown(struct cycle *c, struct growth *all)
{
	for (uint32_t i = 0; i < c->plan.n_actions && !c->failed; i++) {
		const struct plan_action *a = &c->plan.actions[i];
		const struct snap_request *r = cycle_request(c, a->job);
		const struct plan_pod *first = &c->plan.pods[a->pod_first];
		const struct grower g = { .job = a->job, .flavor = a->flavor };

		if (a->kind != PLAN_GROW)
			continue;
		measure(c, all, &g, &r->groups[first->group], a->n_pods);
		gangs_add_more(c, a->job, all->amounts, first->index >= r->n_pods);
	}
}

/* Let jobs reclaim what they may grow by, a bounded number in a cycle: each search goes over all
 * victims. */
static void claim_growth(struct cycle *c, struct growth *all)
{
	uint32_t claims = 0;

	if (!c->s->config.reclaim || nominated_later_differs(c) || !gangs_make(c) ||
	    !gangs_index(c))
		return;
	count_grown(c, all);
	for (uint32_t i = 0; i < all->n && !c->failed && claims < CLAIMS_MAX; i++) {
		struct grower *g = &all->growers[i];

		if (g->started || short_of_pods(c, g) || rests(c, g))
			continue;
		gpuq_arena_reset(&c->scratch);
		claims += grow_by_claim(c, all, g);
	}
}

void elastic_serve(struct cycle *c)
{
	struct growth all = { 0 };
	struct grower *g;

	all.leaving = cycle_alloc(c, bits_words(c->s->n_jobs), sizeof(*all.leaving));
	all.heads = cycle_alloc(c, c->s->n_queues, sizeof(struct grower *));
	all.off = cycle_alloc(c, cycle_words(c), sizeof(*all.off));
	all.domain = cycle_alloc(c, cycle_words(c), sizeof(*all.domain));
	all.amounts = cycle_alloc(c, c->s->n_res, sizeof(*all.amounts));
	if (!c->failed)
		find_growers(c, &all);
	for (uint32_t i = 0; i < all.n && !c->failed; i++) {
		gpuq_arena_reset(&c->scratch);
		/* Some pods of a gang may have ended well before the others: they are not
		 * missing. */
		if (short_of_pods(c, &all.growers[i]) && !c->s->jobs[all.growers[i].job].short_us)
			all.growers[i].done = true;
		else if (short_of_pods(c, &all.growers[i]))
			repair(c, &all, &all.growers[i]);
		else if (!is_elastic(request_of(c, &all.growers[i])) || rests(c, &all.growers[i]))
			all.growers[i].done = true;
	}
	while (!c->failed && (g = next(c, &all)) != NULL) {
		gpuq_arena_reset(&c->scratch);
		if (!grow(c, &all, g))
			g->done = true;
	}
	if (!c->failed && all.n > 0)
		claim_growth(c, &all);
}
