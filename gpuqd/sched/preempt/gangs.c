#include "gpuqd/sched/preempt/gangs.h"

#include "gpuqd/sched/preempt/entitlement.h"
#include "gpuqd/sched/preempt/preempt_int.h"

#include <string.h>

#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/timeline/timeline.h"
#include "gpuqd/util/sort.h"

int64_t gangs_amount(const struct cycle *c, uint32_t unit, uint32_t res)
{
	return c->units->amounts[(size_t)unit * c->s->n_res + res];
}

/* Add a unit of the job without pods; NULL without memory. Its rows in the tables beside it, by the
 * same number, are added with it. */
static struct unit *new_unit(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	struct units *all = c->units;
	struct unit *u = cycle_push(c, &all->units, &all->n_units, &all->room_units, sizeof(*u), 1);
	int64_t *amounts = cycle_push(c, &all->amounts, &all->n_amounts, &all->room_amounts,
				      sizeof(*amounts), c->s->n_res);

	uint32_t *next = cycle_push(c, &all->leaf_next, &all->n_leaf_next, &all->room_leaf_next,
				    sizeof(*next), 1);
	uint8_t *inside =
		cycle_push(c, &all->inside, &all->n_inside, &all->room_inside, 1, all->n_depths);

	if (!u || !amounts || !next || !inside)
		return NULL;
	*next = all->leaf_first[j->queue];
	all->leaf_first[j->queue] = all->n_units - 1;
	memset(amounts, 0, c->s->n_res * sizeof(*amounts));
	memset(inside, 0, all->n_depths);
	*u = (struct unit){
		.job = job,
		.queue = j->queue,
		.pod_first = all->n_pods,
		.priority = j->priority,
		.start_us = j->start_us,
		.in_line_us = c->s->queues[j->queue].preempt == SNAP_PREEMPT_LOWER_OR_NEWER
				      ? j->submit_us
				      : 0,
		.firm = !j->preemptible,
		.fixed = !j->preemptible || j->spared,
		.evict_last = j->evict_last,
		.gang = SNAP_NONE,
	};
	return u;
}

/* Add the amounts of one pod. devices: its charge for them. */
static void add_amounts(struct cycle *c, uint32_t unit, uint32_t flavor, const struct snap_group *g,
			int64_t devices, int64_t pods)
{
	int64_t *amounts = &c->units->amounts[(size_t)unit * c->s->n_res];

	if (flavor != SNAP_NONE)
		amounts[flavor] = amount_sum(amounts[flavor], amount_times(devices, pods));
	amounts[snap_cpu(c->s)] =
		amount_sum(amounts[snap_cpu(c->s)], amount_times(g->cpu_milli, pods));
	amounts[snap_memory(c->s)] =
		amount_sum(amounts[snap_memory(c->s)], amount_times(g->memory_bytes, pods));
	c->units->units[unit].gpus_milli =
		amount_sum(c->units->units[unit].gpus_milli, amount_times(devices, pods));
}

/* Add a pod of the snapshot to the unit that was made last. */
static void add_pod(struct cycle *c, uint32_t unit, uint32_t alloc)
{
	const struct snap_alloc *a = &c->s->allocs[alloc];
	uint32_t *at = cycle_push(c, &c->units->pods, &c->units->n_pods, &c->units->room_pods,
				  sizeof(*at), 1);

	if (!at)
		return;
	*at = alloc;
	c->units->units[unit].n_pods++;
	c->units->of_alloc[alloc] = unit;
	add_amounts(c, unit, c->s->nodes[a->node].flavor, snap_group_of(c->s, a),
		    cost_of_alloc(c->s, a), 1);
}

/* Surplus pods of one group are preempted in the sets in which they must be together; pods that do
 * not fill a set belong to the last one. */
static void add_surplus(struct cycle *c, uint32_t job, uint32_t gang)
{
	const struct snap_job *j = &c->s->jobs[job];
	uint32_t in_set = 0, last_group = SNAP_NONE, unit = SNAP_NONE;

	for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++) {
		const struct snap_alloc *al = &c->s->allocs[a];
		const uint32_t together = snap_group_of(c->s, al)->unit_pods;

		if (al->releasing || !holdings_is_surplus(c, al))
			continue;
		/* A set is full, or a group has ended: the next unit begins. */
		if (al->group != last_group || in_set >= (together ? together : 1)) {
			struct unit *u = new_unit(c, job);

			if (!u)
				return;
			u->surplus = true;
			u->firm = false;
			u->fixed = j->spared;
			u->gang = gang;
			u->ordinal = c->units->units[gang].surplus_left;
			unit = c->units->n_units - 1;
			c->units->units[gang].surplus_left++;
			in_set = 0;
			last_group = al->group;
		}
		add_pod(c, unit, a);
		in_set++;
	}
}

/* Add the units of a running job: its gang first, its surplus right behind it. search_take() relies
 * on that order. */
static void add_job(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const uint32_t gang = c->units->n_units;

	if (!new_unit(c, job))
		return;
	for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++)
		if (!c->s->allocs[a].releasing && !holdings_is_surplus(c, &c->s->allocs[a]))
			add_pod(c, gang, a);
	add_surplus(c, job, gang);
	for (uint32_t u = gang; !c->failed && u < c->units->n_units; u++) {
		c->units->units[u].lost = cost_of_loss(c->s, j, c->units->units[u].gpus_milli);
		/* A job that is ending already is not a victim. */
		if (timeline_leaves(c, job))
			c->units->units[u].fixed = true;
	}
}

/* Count what the action starts or nominates as held from now on. */
static void add_held(struct cycle *c, uint32_t job, uint32_t request, uint32_t flavor, bool soft)
{
	const struct snap_request *r = &c->s->requests[request];
	const uint32_t unit = c->units->n_units;
	struct unit *u = new_unit(c, job);

	if (!u)
		return;
	u->fixed = true;
	u->soft = soft;
	c->units->any_soft |= soft;
	u->start_us = c->s->config.now_us;
	for (uint32_t g = 0; g < r->n_groups; g++)
		add_amounts(c, unit, flavor, &r->groups[g],
			    cost_of_pod(c->s, &r->groups[g], flavor), r->groups[g].pods_min);
}

/* The entitlement of all queues on the path is computed anew when it is next needed. */
static void forget_standings(struct cycle *c, uint32_t job)
{
	for (uint32_t q = c->s->jobs[job].queue; q != SNAP_NONE; q = c->s->queues[q].parent)
		c->units->standings[q] = (struct standing){ 0 };
}

/* True if the action is a nomination without victims. Its victims would follow it. */
static bool is_soft(const struct cycle *c, uint32_t action)
{
	return c->plan.actions[action].kind == PLAN_NOMINATE &&
	       (action + 1 == c->plan.n_actions ||
		c->plan.actions[action + 1].claimant != c->plan.actions[action].job);
}

void gangs_add_started(struct cycle *c, uint32_t job, uint32_t flavor)
{
	if (!c->units)
		return;
	add_held(c, job, cycle_request_ix(c, job), flavor,
		 c->plan.n_actions && is_soft(c, c->plan.n_actions - 1));
	forget_standings(c, job);
}

void gangs_add_more(struct cycle *c, uint32_t job, const int64_t *amounts, bool surplus)
{
	const uint32_t unit = c->units->n_units;
	struct unit *u = new_unit(c, job);

	if (!u)
		return;
	u->fixed = true;
	u->firm = u->firm && !surplus;
	if (c->s->jobs[job].state != SNAP_RUNNING)
		u->start_us = c->s->config.now_us; /* it starts in this cycle */
	u->surplus = surplus;
	memcpy(&c->units->amounts[(size_t)unit * c->s->n_res], amounts,
	       c->s->n_res * sizeof(*amounts));
	forget_standings(c, job);
}

/* Add what nominated placements hold, and the starts of this cycle. They are no victims, but count
 * in their queues' entitlement. */
static void add_promised(struct cycle *c)
{
	const struct snapshot *s = c->s;

	for (uint32_t k = 0; !c->failed && s->n_promises && k < s->lines.n_busy; k++) {
		const uint32_t i = s->lines.busy[k];

		if (bits_has(c->promised, i))
			add_held(c, i, s->jobs[i].request,
				 cost_flavor(s, &s->promises[s->jobs[i].promise_first],
					     s->jobs[i].n_promises),
				 false);
	}
	for (uint32_t i = 0; !c->failed && i < c->plan.n_actions; i++)
		if ((c->plan.actions[i].kind == PLAN_PLACE ||
		     c->plan.actions[i].kind == PLAN_NOMINATE) &&
		    !bits_has(c->promised, c->plan.actions[i].job))
			add_held(c, c->plan.actions[i].job, c->plan.actions[i].request,
				 c->plan.actions[i].flavor, is_soft(c, i));
}

/* Order of victims: lower priority first, those to be preempted last after their equals, surplus
 * before gangs, the most surplus first, the newest start first, the larger id. Where newer jobs
 * yield to older ones, the newest submission counts instead of the newest start: an older victim
 * would in turn preempt a newer job. */
static int cmp_victim(const void *ctx, uint32_t x, uint32_t y)
{
	const struct unit *a = (const struct unit *)ctx + x, *b = (const struct unit *)ctx + y;
	int d = sort_i64(a->priority, b->priority);

	if (d == 0)
		d = sort_i64(a->evict_last, b->evict_last);
	if (d == 0)
		d = sort_i64(b->surplus, a->surplus);
	if (d == 0) /* of elastic jobs the one with the largest surplus */
		d = sort_i64(b->ordinal, a->ordinal);
	if (d == 0)
		d = sort_i64(b->in_line_us ? b->in_line_us : b->start_us,
			     a->in_line_us ? a->in_line_us : a->start_us);
	if (d == 0)
		d = sort_i64(b->start_us, a->start_us);
	return d ? d : sort_i64(b->job, a->job);
}

/* Number the units by the order in which they are taken, so that later comparisons are of numbers.
 */
static void rank_victims(struct cycle *c)
{
	struct units *all = c->units;
	uint32_t *scratch = cycle_alloc(c, all->n_units, sizeof(*scratch));

	all->by_rank = cycle_alloc(c, all->n_units, sizeof(*all->by_rank));
	if (c->failed)
		return;
	for (uint32_t u = 0; u < all->n_units; u++)
		if (!all->units[u].fixed)
			all->by_rank[all->n_by_rank++] = u;
	sort_ix(all->by_rank, scratch, all->n_by_rank, cmp_victim, all->units);
	for (uint32_t i = 0; i < all->n_by_rank; i++)
		all->units[all->by_rank[i]].rank = i;
}

bool gangs_make(struct cycle *c)
{
	const struct snapshot *s = c->s;
	struct units *all;
	uint32_t depth = 0;

	/* Units are made when a job first tries to preempt: most cycles need none. */
	if (c->units)
		return true;
	all = c->units = cycle_alloc(c, 1, sizeof(*all));
	if (!all)
		return false;
	for (uint32_t q = 0; q < s->n_queues; q++)
		depth = s->queues[q].depth > depth ? s->queues[q].depth : depth;
	all->n_depths = depth + 1;
	all->of_alloc = cycle_alloc(c, s->n_allocs, sizeof(*all->of_alloc));
	all->leaf_first = cycle_alloc(c, s->n_queues, sizeof(*all->leaf_first));
	all->left = cycle_alloc(c, (size_t)N_LINES * s->n_res, sizeof(*all->left));
	all->standings = cycle_alloc(c, s->n_queues, sizeof(*all->standings));
	if (c->failed)
		return false;
	for (uint32_t q = 0; q < s->n_queues; q++)
		all->leaf_first[q] = SNAP_NONE;
	for (uint32_t a = 0; a < s->n_allocs; a++)
		all->of_alloc[a] = SNAP_NONE;
	for (uint32_t k = 0; !c->failed && k < s->lines.n_busy; k++) {
		const uint32_t i = s->lines.busy[k];

		if (s->jobs[i].state == SNAP_RUNNING && s->jobs[i].n_allocs)
			add_job(c, i);
	}
	if (!c->failed)
		rank_victims(c);
	if (!c->failed)
		add_promised(c);
	return !c->failed;
}

/* Remove the pods of a unit from its nodes or put them back, and update its gang's count of
 * surplus. */
static void shift(struct cycle *c, uint32_t unit, int sign)
{
	const struct unit *u = &c->units->units[unit];

	for (uint32_t i = 0; i < u->n_pods; i++)
		timeline_shift(c, &c->s->allocs[c->units->pods[u->pod_first + i]], sign);
	holdings_leaves(c, u->queue, &c->units->amounts[(size_t)unit * c->s->n_res], sign);
	if (u->surplus)
		c->units->units[u->gang].surplus_left -= (uint32_t)sign;
	else
		holdings_job_leaves(c, u->queue, sign);
}

void gangs_take(struct cycle *c, uint32_t unit)
{
	c->units->units[unit].gone = true;
	shift(c, unit, 1);
	entitlement_changed(c, unit);
}

void gangs_put_back(struct cycle *c, uint32_t unit)
{
	c->units->units[unit].gone = false;
	shift(c, unit, -1);
	entitlement_changed(c, unit);
}

/* ---- units by leaf and by node, in the order of victims ---- */

bool gangs_index(struct cycle *c)
{
	struct units *all = c->units;
	const uint32_t n_nodes = c->s->n_nodes, n_queues = c->s->n_queues;
	uint32_t *last;

	if (all->node_first)
		return true;
	all->node_first = cycle_alloc(c, (size_t)n_nodes + 1, sizeof(uint32_t));
	all->node_units = cycle_alloc(c, all->n_pods, sizeof(uint32_t));
	all->line_first = cycle_alloc(c, (size_t)n_queues + 1, sizeof(uint32_t));
	all->line_units = cycle_alloc(c, all->n_by_rank, sizeof(uint32_t));
	last = cycle_alloc(c, n_nodes, sizeof(*last));
	if (c->failed)
		return false;
	/* Count, sum up, and fill from the end, so that each part begins where it should. */
	for (uint32_t i = 0; i < all->n_by_rank; i++) {
		const struct unit *u = &all->units[all->by_rank[i]];

		all->line_first[u->queue]++;
		for (uint32_t p = 0; p < u->n_pods; p++) {
			const uint32_t node = c->s->allocs[all->pods[u->pod_first + p]].node;

			/* A unit with several pods on a node is listed there once. */
			if (last[node] != i + 1)
				all->node_first[node]++;
			last[node] = i + 1;
		}
	}
	for (uint32_t n = 0, sum = 0; n <= n_nodes; n++)
		all->node_first[n] = sum += n < n_nodes ? all->node_first[n] : 0;
	for (uint32_t q = 0, sum = 0; q <= n_queues; q++)
		all->line_first[q] = sum += q < n_queues ? all->line_first[q] : 0;
	memset(last, 0, n_nodes * sizeof(*last));
	/* Backwards, so that each part is in the order of victims. */
	for (uint32_t i = all->n_by_rank; i-- > 0;) {
		const uint32_t unit = all->by_rank[i];
		const struct unit *u = &all->units[unit];

		all->line_units[--all->line_first[u->queue]] = unit;
		for (uint32_t p = 0; p < u->n_pods; p++) {
			const uint32_t node = c->s->allocs[all->pods[u->pod_first + p]].node;

			if (last[node] != i + 1)
				all->node_units[--all->node_first[node]] = unit;
			last[node] = i + 1;
		}
	}
	return true;
}
