#include "gpuqd/sched/preempt/preempt.h"

#include <string.h>

#include "gpuqd/sched/preempt/entitlement.h"
#include "gpuqd/sched/preempt/futile.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/minimise.h"
#include "gpuqd/sched/preempt/preempt_int.h"
#include "gpuqd/sched/preempt/preempt_why.h"
#include "gpuqd/sched/preempt/relocate.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/preempt/search.h"
#include "gpuqd/sched/preempt/search_set.h"
#include "gpuqd/sched/preempt/shortage.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/timeline/emit.h"
#include "gpuqd/sched/timeline/nominated.h"
#include "gpuqd/sched/timeline/timeline.h"

/* Ways tried for a blocked job: to wait for what is ending anyway; to relocate others, none of
 * which loses its place; to reclaim from other queues; to preempt jobs of its own queue; both; to
 * reclaim what is within its quota and relocate others. Nothing is preempted unless the whole job
 * then fits. */

#define OWN_MIXED_MAX 8 /* victims of its own queue, so that it may reclaim from others */

void preempt_emit_victims(struct cycle *c, const struct claim *k)
{
	for (uint32_t i = 0; i < k->victims.n; i++) {
		const struct victim *v = &k->victims.items[i];
		const struct unit *u = &c->units->units[v->unit];
		const bool own = v->rule == RULE_OWN;
		struct plan_action *a;
		struct plan_pod *pods;

		/* One eviction is enough when the gang is preempted as well. */
		if (u->surplus && c->units->units[u->gang].gone)
			continue;
		a = PLAN_PUSH(c, actions, 1);
		if (!a)
			return;
		*a = (struct plan_action){
			.kind = u->surplus ? PLAN_SHRINK : PLAN_EVICT,
			.job = u->job,
			.request = cycle_request_ix(c, u->job),
			.key = c->s->jobs[u->job].key,
			.flavor = k->flavor,
			.start_us = c->s->config.now_us,
			.cause = own ? GPUQ_CAUSE_PREEMPT : GPUQ_CAUSE_RECLAIM,
			.claimant = k->job,
			.rule = rules_rule_word(v->rule),
		};
		if (!u->surplus)
			continue;
		pods = PLAN_PUSH(c, pods, u->n_pods);
		if (!pods)
			return;
		a->pod_first = c->plan.n_pods - u->n_pods;
		a->n_pods = u->n_pods;
		for (uint32_t p = 0; p < u->n_pods; p++) {
			const struct snap_alloc *al =
				&c->s->allocs[c->units->pods[u->pod_first + p]];

			pods[p] = (struct plan_pod){ .group = al->group,
						     .index = al->index,
						     .node = al->node };
		}
	}
}

void preempt_unit_leaves(struct cycle *c, uint32_t unit)
{
	const struct unit *u = &c->units->units[unit];

	for (uint32_t p = 0; p < u->n_pods; p++)
		nominated_later_pod_leaves(c, &c->s->allocs[c->units->pods[u->pod_first + p]]);
}

void preempt_let_go(struct cycle *c, const struct claim *k)
{
	preempt_explain(c, k);
	for (uint32_t i = 0; i < k->victims.n; i++) {
		const struct unit *u = &c->units->units[k->victims.items[i].unit];

		for (uint32_t p = 0; p < u->n_pods; p++)
			timeline_shift(c, &c->s->allocs[c->units->pods[u->pod_first + p]], -1);
	}
	nominated_later_leave(c);
	for (uint32_t i = 0; i < k->victims.n; i++)
		preempt_unit_leaves(c, k->victims.items[i].unit);
}

/* Decide the claim: the places of its victims are nominated for it. */
static bool settle(struct cycle *c, struct claim *k)
{
	if (claim_is(k, CLAIM_MOVERS))
		return relocate_for(c, k);
	preempt_let_go(c, k);
	emit_next(c, PLAN_NOMINATE, k->job, k->flavor);
	nominated_places(c, k->job);
	preempt_emit_victims(c, k);
	return true;
}

/* Search victims in the queue itself and in others together: removing one of its own jobs lowers
 * what the queue holds, and with that others may become legal. */
static bool own_and_others(struct cycle *c, struct claim *k)
{
	claim_set(k, CLAIM_OWN | CLAIM_OTHERS, true);
	for (uint32_t tries = 0; tries < OWN_MIXED_MAX && !c->failed; tries++) {
		const struct units *all = c->units;
		const uint32_t before = k->victims.n;

		for (uint32_t i = all->line_first[k->leaf];
		     k->victims.n == before && i < all->line_first[k->leaf + 1]; i++)
			if (!all->units[all->line_units[i]].gone)
				search_take(c, k, all->line_units[i]);
		if (k->victims.n == before)
			break;
		claim_set(k, CLAIM_OWN, false);
		if (search_victims(c, k))
			return true;
		claim_set(k, CLAIM_OWN, true);
		/* The search undid its own removals; the victims given to it stay. */
		if (k->victims.n <= before)
			break;
	}
	search_drop_all(c, k);
	return false;
}

/* Relocate others beside victims: preemption frees enough, but fragmented, so that some jobs that
 * may stay are relocated. Only for what is within its queue's quota, which must not fail because of
 * where others happen to run. */
static bool with_moves(struct cycle *c, struct claim *k)
{
	bool found;

	if (!c->s->config.consolidation || c->failed)
		return false;
	claim_set(k, CLAIM_OTHERS | CLAIM_ONLY_QUOTA, true);
	claim_set(k, CLAIM_OWN, false);
	claim_set(k, CLAIM_MOVERS, true);
	found = rules_possible(c, k) && search_victims(c, k);
	claim_set(k, CLAIM_MOVERS, false);
	/* A job that need not be preempted stays, whatever right the victims were taken by; and the
	 * next search is not limited to the quota. */
	claim_set(k, CLAIM_ONLY_QUOTA, preempt_only_quota(c, k->job));
	if (!found || !search_fits(c, k))
		return claim_set(k, CLAIM_MOVERS, found);
	/* No job needs to be relocated after all. */
	found = minimise_improve(c, k);
	if (!found)
		search_drop_all(c, k);
	return found;
}

/* True if the job has been pending for preemption_delay; otherwise note when it will have been. */
static bool waited_long(struct cycle *c, const struct claim *k)
{
	const struct snap_job *j = &c->s->jobs[k->job];
	const int64_t from = j->begin_us > j->submit_us ? j->begin_us : j->submit_us;
	int64_t until;

	if (c->s->config.preemption_delay_us == 0)
		return true;
	if (__builtin_add_overflow(from, c->s->config.preemption_delay_us, &until))
		return false;
	if (until > c->s->config.now_us && until < c->plan.wake_us)
		c->plan.wake_us = until;
	return until <= c->s->config.now_us;
}

/* Search by any right, with no more devices left over than the current search allows. */
static bool within_spare(struct cycle *c, struct claim *k)
{
	static const struct {
		bool others, own;
	} ways[] = { { true, false }, { false, true } };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		claim_set(k, CLAIM_OTHERS, ways[i].others);
		claim_set(k, CLAIM_OWN, ways[i].own);
		if (rules_possible(c, k) && search_victims(c, k))
			return true;
	}
	/* Jobs of its own queue first, so that its queue comes to where it may reclaim from
	 * others. */
	return (rules_possible(c, k) && own_and_others(c, k)) || with_moves(c, k);
}

/* Try first what leaves nothing over, then what leaves no more than the request; more than that
 * only within its queue's quota, and in its own queue. */
static bool by_eviction(struct cycle *c, struct claim *k)
{
	const int64_t need = k->flavor == SNAP_NONE ? 0 : k->need[k->flavor];
	const int64_t spares[] = { 0, need, GPUQ_UNLIMITED };
	bool found = false;

	entitlement_set_lacks(c, shortage_of(c, k));
	claim_set(k, CLAIM_OVER_SPARE, true);
	for (size_t i = 0; !found && i < sizeof(spares) / sizeof(spares[0]) && !c->failed; i++) {
		/* The next search would find as little. */
		if (!claim_is(k, CLAIM_OVER_SPARE) || !gangs_index(c))
			break;
		claim_set(k, CLAIM_OVER_SPARE, false);
		k->spare_max = spares[i];
		claim_set(k, CLAIM_OWED_ALONE, spares[i] == GPUQ_UNLIMITED);
		found = within_spare(c, k);
	}
	return found;
}

enum way { WAIT, MOVE, EVICT, N_WAYS };

/* Try one way, with nodes in their later state, in which they stay unless it worked. */
static bool try_way(struct cycle *c, struct claim *k, enum way way)
{
	switch (way) {
	case WAIT:
		return nominated_later_differs(c) && search_fits(c, k);
	case MOVE:
		return c->s->config.consolidation && relocate_for(c, k);
	default:
		return by_eviction(c, k);
	}
}

bool preempt_only_quota(const struct cycle *c, uint32_t job)
{
	const int64_t evicted_us = c->s->jobs[job].evicted_us;

	return evicted_us && c->s->config.now_us - evicted_us < c->s->config.cooldown_us;
}

/* Set what a search needs to know of the job. */
static void prepare(struct cycle *c, struct claim *k)
{
	const struct snap_job *j = &c->s->jobs[k->job];

	k->leaf = j->queue;
	k->priority = j->priority;
	k->need = cycle_scratch(c, c->s->n_res, sizeof(*k->need));
	for (uint32_t res = 0; k->need && res < c->s->n_res; res++)
		k->need[res] = holdings_need(c, k->job, k->flavor, res);
	claim_set(k, CLAIM_ONLY_QUOTA, preempt_only_quota(c, k->job));
}

/* True if it is known without looking at running jobs that nothing can be relocated or preempted
 * for it. This is mostly so when the cluster is full and every queue has its share. */
static bool hopeless(struct cycle *c, const struct claim *k)
{
	const struct snap_job *j = &c->s->jobs[k->job];
	const struct snap_queue *q = &c->s->queues[j->queue];

	if (c->s->config.consolidation && k->flavor != SNAP_NONE &&
	    k->free_milli >= cycle_request(c, k->job)->gpus_milli)
		return false;
	if (!c->s->config.reclaim)
		return true;
	if (rules_on_others_possible(c, k) || shortage_possible(c, k))
		return false;
	return q->preempt == SNAP_PREEMPT_NEVER ||
	       holdings_least_priority(c, j->queue) >
		       j->priority - (q->preempt == SNAP_PREEMPT_LOWER);
}

/* Add the reason that some of what it might have reclaimed is with a queue that it must not reclaim
 * from now. */
static void why_rests(struct cycle *c, const struct claim *k)
{
	struct plan_reason *why;

	if (k->told.rests_with == SNAP_NONE)
		return;
	why = PLAN_PUSH(c, reasons, 1);
	if (why)
		*why = (struct plan_reason){ .code = GPUQ_R_CLAIMS_REST,
					     .unit = PLAN_TIME,
					     .have = c->s->config.now_us,
					     .need = k->told.rests_until_us,
					     .object = c->s->queues[k->told.rests_with].name };
}

/* Add the reason that victims exist, but that they would leave too much over. */
static void why_spare(struct cycle *c, const struct claim *k)
{
	struct plan_reason *why = k->told.spare_milli ? PLAN_PUSH(c, reasons, 1) : NULL;

	if (why)
		*why = (struct plan_reason){ .code = GPUQ_R_CLAIM_SPARE,
					     .unit = PLAN_GPUS,
					     .have = rules_spare_max(c),
					     .need = k->told.spare_milli,
					     .object = "claim_spare_max" };
}

bool preempt_job(struct cycle *c, uint32_t job, uint32_t *flavor)
{
	const uint32_t n = cycle_flavors(c, job) * cycle_choices(c, job);
	struct claim k = { .job = job, .spare_max = GPUQ_UNLIMITED, .told = CLAIM_TOLD_NOTHING };
	bool all_hopeless = true;
	int way;

	if (!c->s->config.reclaim && !c->s->config.consolidation)
		return false;
	for (way = 0; way < N_WAYS; way++) {
		cycle_try_own(c, job);
		if (way == MOVE && all_hopeless)
			return false;
		if (way == MOVE && futile_known(c, job, &k))
			break;
		if (way == MOVE && !gangs_make(c))
			return false;
		if (way == EVICT && !c->s->config.reclaim) {
			futile_note(c, job, &k);
			return false;
		}
		if (way == EVICT && !waited_long(c, &k))
			return false;
		for (uint32_t i = 0; i < n && !c->failed; i++) {
			bool found;

			k.flavor = cycle_try_as(c, job, i);
			prepare(c, &k);
			if (c->failed)
				return false;
			if (c->units)
				k.stamp.number = ++c->units->n_claims;
			nominated_later_enter(c);
			k.free_milli = nominated_later_free_milli(c, k.flavor);
			all_hopeless &= hopeless(c, &k);
			found = try_way(c, &k, (enum way)way);
			if (found && way != MOVE && !settle(c, &k)) {
				search_drop_all(c, &k);
				found = false;
			}
			entitlement_set_lacks(c, 0);
			if (!found)
				nominated_later_leave(c);
			if (found) {
				*flavor = k.flavor;
				return !c->failed;
			}
		}
	}
	cycle_try_own(c, job);
	if (way == N_WAYS)
		futile_note(c, job, &k);
	why_rests(c, &k);
	why_spare(c, &k);
	if (k.told.bound != N_PLAN_BOUNDS)
		cycle_bounded(c, job, k.told.bound, k.told.bound_most);
	return false;
}
