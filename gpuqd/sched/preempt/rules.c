#include "gpuqd/sched/preempt/rules.h"

#include "gpuqd/sched/preempt/entitlement.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/preempt_int.h"

#include "gpuqd/sched/preempt/search_set.h"
#include "gpuqd/sched/preempt/shortage.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/sched/timeline/timeline.h"
#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/sched/preempt/oscillation.h"

/* The rules of preemption; gpuqd-scheduling(7), Rules. All tests are made at x and y, the queues
 * below the nearest common ancestor of preemptor and victim on either side, and at the preemptor's
 * leaf; always without the victims that are already removed. */

const char *rules_rule_word(enum claim_rule rule)
{
	static const enum gpuq_rule rules[] = {
		[RULE_QUOTA] = GPUQ_RULE_RECLAIM_QUOTA,
		[RULE_SHARE] = GPUQ_RULE_RECLAIM_SHARE,
		[RULE_BORROW] = GPUQ_RULE_RECLAIM_BORROWED,
		[RULE_OWN] = GPUQ_RULE_OWN,
	};

	return rule == RULE_NONE ? "" : gpuq_rule_word(rules[rule]);
}

void rules_below_common(const struct cycle *c, uint32_t a, uint32_t b, uint32_t *x, uint32_t *y)
{
	const struct snap_queue *q = c->s->queues;

	while (q[a].depth > q[b].depth)
		a = q[a].parent;
	while (q[b].depth > q[a].depth)
		b = q[b].parent;
	while (q[a].parent != q[b].parent) {
		a = q[a].parent;
		b = q[b].parent;
	}
	*x = a;
	*y = b;
}

/* True if the queue stays within the amounts with the preemptor. */
static bool stays_inside(const struct cycle *c, const struct claim *k, uint32_t queue, bool quota)
{
	const int64_t *fair = holdings_fair(c, queue);

	for (uint32_t res = 0; res < c->s->n_res; res++) {
		const size_t at = (size_t)queue * c->s->n_res + res;
		const int64_t line = quota ? c->s->shares[at].quota : fair[res];

		if (k->need[res] == 0 || c->s->shares[at].quota == GPUQ_UNLIMITED)
			continue;
		if (amount_sum(holdings_stays(c, queue, res), k->need[res]) > line)
			return false;
	}
	return true;
}

/* The same for its fair share: where it lacks cpu or memory, for these alone. */
static bool stays_inside_share(const struct cycle *c, const struct claim *k, uint32_t queue)
{
	if (!c->units || !c->units->lacks)
		return stays_inside(c, k, queue, false);
	for (uint32_t res = 0; res < c->s->n_res; res++)
		if (entitlement_counts(c, queue, res, LINE_SHARE) &&
		    amount_sum(holdings_stays(c, queue, res), k->need[res]) >
			    holdings_fair(c, queue)[res])
			return false;
	return true;
}

/* True if the queue is `top' or below it. */
static bool is_below(const struct cycle *c, uint32_t queue, uint32_t top)
{
	while (queue != SNAP_NONE && queue != top)
		queue = c->s->queues[queue].parent;
	return queue == top;
}

/* True if a, with the preemptor, holds a larger part of its share than b of its own, without the
 * unit (SNAP_NONE = none), in a resource that the line counts: a queue that reclaims its quota of
 * devices may exceed its share of cpu. Where both shares are 0: if it holds more. */
static bool larger_share(const struct cycle *c, const struct claim *k, uint32_t a, uint32_t b,
			 uint32_t unit, enum line line)
{
	const int64_t *share_a = holdings_fair(c, a), *share_b = holdings_fair(c, b);

	for (uint32_t res = 0; res < c->s->n_res; res++) {
		const int64_t fair_a = share_a[res], fair_b = share_b[res];
		const int64_t held_a = amount_sum(holdings_stays(c, a, res), k->need[res]);
		const int64_t held_b = holdings_stays(c, b, res) -
				       (unit == SNAP_NONE ? 0 : gangs_amount(c, unit, res));

		if (k->need[res] == 0 || !entitlement_counts(c, a, res, line))
			continue;
		if (held_a <= fair_a)
			continue;
		if (fair_a == 0 && fair_b == 0
			    ? held_a > held_b
			    : (__int128)held_a * fair_b > (__int128)held_b * fair_a)
			return true;
	}
	return false;
}

/* ---- protection of victims ---- */

/* Return how long a victim is protected after its start, as set by the queue or one above it. A
 * queue protects its jobs from other queues for four hours at most, whatever it says. */
static int64_t min_runtime(const struct cycle *c, uint32_t queue, bool own)
{
	const struct snap_queue *q = c->s->queues;

	for (; queue != SNAP_NONE; queue = q[queue].parent) {
		const int64_t us =
			own ? q[queue].preempt_min_runtime_us : q[queue].reclaim_min_runtime_us;

		if (us >= 0)
			return own || us < POLICY_SHIELD_MAX_US ? us : POLICY_SHIELD_MAX_US;
	}
	return own ? c->s->config.preempt_min_runtime_us : c->s->config.reclaim_min_runtime_us;
}

/* Return when that time is over; surplus is never protected. */
static int64_t young_until(const struct cycle *c, const struct unit *u, uint32_t queue, bool own)
{
	const int64_t queues = min_runtime(c, queue, own), its = c->s->jobs[u->job].min_runtime_us;

	return u->surplus ? INT64_MIN : amount_sum(u->start_us, queues > its ? queues : its);
}

/* True if `until` is still to come; the next cycle is then due at that time, for the unit may be
 * preempted. */
static bool too_soon(struct cycle *c, int64_t until)
{
	if (until <= c->s->config.now_us)
		return false;
	if (until < c->plan.wake_us)
		c->plan.wake_us = until;
	return true;
}

static bool too_young(struct cycle *c, const struct unit *u, uint32_t queue, bool own)
{
	return too_soon(c, young_until(c, u, queue, own));
}

bool rules_too_young(struct cycle *c, uint32_t unit)
{
	const struct unit *u = &c->units->units[unit];

	return too_young(c, u, u->queue, true);
}

/* True if the unit's queue, or one between it and `side', is not reclaimable. */
static bool protected(const struct cycle *c, const struct unit *u, uint32_t side)
{
	for (uint32_t q = u->queue;; q = c->s->queues[q].parent) {
		if (!c->s->queues[q].reclaimable)
			return true;
		if (q == side)
			return false;
	}
}

/* True if a fence keeps the preemptor inside a subtree; a fence around a leaf is that of its
 * parent. x is the preemptor's queue below the common ancestor. */
static bool fenced(const struct cycle *c, uint32_t leaf, uint32_t x)
{
	bool around = c->s->queues[leaf].fence;

	for (uint32_t q = c->s->queues[leaf].parent; q != SNAP_NONE; q = c->s->queues[q].parent) {
		around |= c->s->queues[q].fence;
		if (around && c->s->queues[q].depth >= c->s->queues[x].depth)
			return true;
		around = false;
	}
	return false;
}

/* True if the priorities allow it, by the preemptor's queue. */
static bool policy_allows(const struct cycle *c, const struct claim *k, const struct unit *u)
{
	switch (c->s->queues[k->leaf].reclaim) {
	case SNAP_RECLAIM_NEVER:
		return false;
	case SNAP_RECLAIM_LOWER:
		return u->priority < k->priority;
	case SNAP_RECLAIM_LOWER_OR_EQUAL:
		return u->priority <= k->priority;
	default:
		return true;
	}
}

/* ---- the rules ---- */

bool rules_goes_before(const struct cycle *c, const struct claim *k, const struct unit *u)
{
	switch (c->s->queues[k->leaf].preempt) {
	case SNAP_PREEMPT_NEVER:
		return false;
	case SNAP_PREEMPT_LOWER:
		return u->priority < k->priority;
	default:
		return u->priority < k->priority ||
		       (u->priority == k->priority &&
			c->s->jobs[u->job].submit_us > c->s->jobs[k->job].submit_us);
	}
}

/* True if the preemptor's entitlement allows it to preempt in its own queue. One beyond the fair
 * share could be reclaimed from at once: it must not preempt work that the queue is entitled to. */
static bool own_stands(struct cycle *c, const struct claim *k, uint8_t stood, bool all)
{
	const uint8_t class = entitlement_claimant_stands(c, k, all);

	if (class == 2 && stood & 1u << LINE_SHARE)
		return false;
	return c->s->queues[k->leaf].own_preempt == POLICY_OWN_PRIORITY || class == 0 ||
	       !(stood & 1u << (class == 1 ? LINE_QUOTA : LINE_SHARE));
}

/* True if the unit of the same queue may be preempted; *v keeps how it stood, since that must
 * still hold when all victims are gone. */
static bool own_legal(struct cycle *c, const struct claim *k, uint32_t unit, struct victim *v)
{
	const struct unit *u = &c->units->units[unit];
	uint8_t stood;

	if (!rules_goes_before(c, k, u) || too_young(c, u, k->leaf, true))
		return false;
	stood = (uint8_t)(entitlement_stands_inside(c, unit, k->leaf, LINE_QUOTA) << LINE_QUOTA |
			  entitlement_stands_inside(c, unit, k->leaf, LINE_SHARE) << LINE_SHARE);
	v->stood = stood;
	return own_stands(c, k, stood, false);
}

/* True if the unit, or another in its place, is beyond the line. *v notes what this relied on: it
 * is checked again for the plan as a whole. */
static bool free_on(struct cycle *c, const struct claim *k, struct victim *v, enum line line)
{
	bool must_keep;

	if (!entitlement_is_free(c, k, v->unit, v->side, line, &must_keep, &v->instead[line]))
		return false;
	if (must_keep)
		v->must_keep |= (uint8_t)(1u << line);
	if (must_keep || entitlement_stands_inside(c, v->unit, v->side, line))
		v->simple = false;
	return true;
}

/* Forget what an earlier rule relied on. */
static void forget_lines(struct victim *v)
{
	v->must_keep = 0;
	v->simple = true;
	v->instead[LINE_QUOTA] = v->instead[LINE_SHARE] = SNAP_NONE;
}

/* True by reclaim-quota: both the preemptor's queue and its side stay within quota, and the
 * victim's side is beyond its own. */
static bool quota_legal(struct cycle *c, const struct claim *k, struct victim *v, uint32_t x)
{
	forget_lines(v);
	return stays_inside(c, k, k->leaf, false) && stays_inside(c, k, x, true) &&
	       entitlement_beyond(c, k, v->side, LINE_QUOTA) && free_on(c, k, v, LINE_QUOTA);
}

/* A preemptor's side that ends above its share must not reclaim from a side that then holds a
 * smaller part of its own: not now, but perhaps when others of its side are gone. */
static bool share_legal(struct cycle *c, const struct claim *k, const struct unit *u, uint32_t x,
			struct victim *v)
{
	forget_lines(v);
	return rules_to_share(c) && stays_inside_share(c, k, k->leaf) &&
	       !priority_exempt(c->s, u->job, min_runtime(c, u->queue, false)) &&
	       entitlement_beyond(c, k, v->side, LINE_SHARE) &&
	       !larger_share(c, k, x, v->side, v->unit, LINE_SHARE) &&
	       free_on(c, k, v, LINE_SHARE) && free_on(c, k, v, LINE_QUOTA);
}

/* A borrower of high priority preempts borrowers of low priority, though it exceeds its fair share.
 * If the victim were within quota or fair share, it could be reclaimed at once, and taken again,
 * for ever. A queue whose own reclaim is limited by priority (reclaim: lower and the like) does not
 * reclaim from a job of higher priority. Growth preempts nothing by this rule: the order of growth
 * goes by shares, and the victim would grow next. */
static bool borrow_legal(struct cycle *c, const struct claim *k, const struct unit *u,
			 struct victim *v)
{
	const bool claims_back =
		rules_to_share(c) && c->s->queues[u->queue].reclaim == SNAP_RECLAIM_ANY;

	forget_lines(v);
	return !claim_is(k, CLAIM_GROWTH) &&
	       c->s->queues[k->leaf].borrow_preempt_max_priority >= u->priority &&
	       u->priority < k->priority && entitlement_beyond(c, k, v->side, LINE_QUOTA) &&
	       free_on(c, k, v, LINE_QUOTA) &&
	       (!claims_back ||
		(entitlement_beyond(c, k, u->queue, LINE_SHARE) &&
		 entitlement_beyond(c, k, v->side, LINE_SHARE) && free_on(c, k, v, LINE_SHARE)));
}

/* True if the unit is out of reach from the other side of the nearest common ancestor; *side = that
 * side. If not, *until = when its protection after the start is over. */
static bool shielded(const struct cycle *c, const struct claim *k, const struct unit *u,
		     uint32_t *x, uint32_t *side, int64_t *until)
{
	const bool lca = c->s->config.min_runtime_method == SNAP_RUNTIME_LCA;

	if (!policy_allows(c, k, u))
		return true;
	rules_below_common(c, k->leaf, u->queue, x, side);
	if (fenced(c, k->leaf, *x) || protected(c, u, *side))
		return true;
	*until = young_until(c, u, lca ? *side : u->queue, false);
	return false;
}

bool rules_shielded(const struct cycle *c, const struct claim *k, uint32_t unit)
{
	const struct unit *u = &c->units->units[unit];
	int64_t until = young_until(c, u, k->leaf, true);
	uint32_t x, side;

	if (u->queue == k->leaf ? !rules_goes_before(c, k, u)
				: shielded(c, k, u, &x, &side, &until))
		return true;
	return until > c->s->config.now_us;
}

/* True if reclaim between x and y is suspended for a while after repeated reversals. */
static bool rests(struct cycle *c, struct claim *k, uint32_t x, uint32_t y, bool owed)
{
	const int64_t until = oscillation_rests(c, x, y, owed);

	if (!too_soon(c, until))
		return false;
	k->told.rests_with = y;
	k->told.rests_until_us = until;
	return true;
}

/* True if the unit may be preempted without its queue falling below the lines that earlier victims
 * require it to keep. */
static bool leaves_enough(struct cycle *c, const struct claim *k, uint32_t unit)
{
	for (uint32_t i = 0; i < k->victims.n; i++) {
		const struct victim *v = &k->victims.items[i];

		if (!v->must_keep || !is_below(c, c->units->units[unit].queue, v->side))
			continue;
		for (int line = 0; line < N_LINES; line++)
			if (v->must_keep & (1u << line) &&
			    !entitlement_line_kept(c, k, v->side, (enum line)line, unit))
				return false;
	}
	return true;
}

/* True if the victims would hold too much beyond the request. By reclaim-share and reclaim-borrowed
 * a claim never preempts more than twice the request. */
static bool leaves_over(const struct cycle *c, struct claim *k, int64_t gone_milli, bool owed)
{
	const int64_t most = rules_spare_max(c);
	const int64_t need = k->flavor == SNAP_NONE ? 0 : k->need[k->flavor];
	const int64_t spare = gone_milli - need;

	if (most != GPUQ_UNLIMITED && spare > most) {
		if (k->told.spare_milli == 0 || spare < k->told.spare_milli)
			k->told.spare_milli = spare;
		return true;
	}
	if (spare <= k->spare_max && (owed || spare <= need))
		return false;
	claim_set(k, CLAIM_OVER_SPARE, true);
	return true;
}

bool rules_leaves_over(const struct cycle *c, struct claim *k)
{
	return leaves_over(c, k, search_gone_milli(c, k), true);
}

/* The same for cpu or memory, where the preemptor lacks that: what the victims and the unit hold;
 * SNAP_NONE = the victims alone. */
static bool leaves_amounts_over(const struct cycle *c, const struct claim *k, uint32_t unit)
{
	const uint32_t res = entitlement_measure(c, k);
	int64_t sum = unit == SNAP_NONE ? 0 : gangs_amount(c, unit, res);

	for (uint32_t i = 0; c->units->lacks && i < k->victims.n; i++)
		sum = amount_sum(sum, gangs_amount(c, k->victims.items[i].unit, res));
	return c->units->lacks && sum > amount_times(k->need[res], 2);
}

/* Try the rules in the order in which `gpuq why' names them, the strongest right first; what is
 * cheap to refuse comes before them. */
static enum claim_rule rule_for(struct cycle *c, struct claim *k, uint32_t unit, struct victim *v)
{
	const struct unit *u = &c->units->units[unit];
	const struct snap_config *config = &c->s->config;
	uint32_t x;
	int64_t until;

	*v = (struct victim){ .unit = unit, .simple = true, .instead = { SNAP_NONE, SNAP_NONE } };
	if (u->fixed || u->gone || u->job == k->job || (claim_is(k, CLAIM_GROWTH) && !u->surplus) ||
	    !entitlement_concerns(c, k, unit) || reservations_shields(c, u->job, k->job))
		return RULE_NONE;
	if (u->queue == k->leaf) {
		v->simple = false;
		v->side = k->leaf;
		v->rule = own_legal(c, k, unit, v) ? RULE_OWN : RULE_NONE;
		return v->rule;
	}
	if (shielded(c, k, u, &x, &v->side, &until) || too_soon(c, until) ||
	    rests(c, k, x, v->side, true) || !leaves_enough(c, k, unit))
		return RULE_NONE;
	if (quota_legal(c, k, v, x))
		return v->rule = RULE_QUOTA;
	if (claim_is(k, CLAIM_ONLY_QUOTA | CLAIM_OWED_ALONE) ||
	    (config->claims_per_hour != 0 &&
	     c->s->queues[u->queue].n_claims_hour >= config->claims_per_hour))
		return RULE_NONE;
	if (rests(c, k, x, v->side, false))
		return RULE_NONE;
	if (borrow_legal(c, k, u, v))
		return v->rule = RULE_BORROW;
	if (!leaves_amounts_over(c, k, unit) && share_legal(c, k, u, x, v))
		return v->rule = RULE_SHARE;
	return RULE_NONE;
}

enum claim_rule rules_legal(struct cycle *c, struct claim *k, uint32_t unit, struct victim *v)
{
	enum claim_rule rule;

	/* By itself it exceeds the excess that the current search allows: no need to check
	 * rules. */
	if (k->spare_max != GPUQ_UNLIMITED &&
	    leaves_over(c, k, c->units->units[unit].gpus_milli, true)) {
		*v = (struct victim){ .unit = unit, .instead = { SNAP_NONE, SNAP_NONE } };
		return RULE_NONE;
	}
	rule = rule_for(c, k, unit, v);
	if (rule != RULE_NONE && leaves_over(c, k, c->units->units[unit].gpus_milli,
					     rule == RULE_QUOTA || rule == RULE_OWN))
		rule = v->rule = RULE_NONE;
	return rule;
}

/* ---- the plan as a whole ---- */

/* Return the least that another pending job requests of the flavor. Capacity that only a victim
 * could use does not count: then it need not have been one. */
static int64_t least_wanted(struct cycle *c, const struct claim *k)
{
	const struct snap_lines *lines = &c->s->lines;
	int64_t least = INT64_MAX;

	for (uint32_t i = 0; i < lines->n_runs; i++) {
		const uint32_t job = lines->runs[i].first;
		const struct snap_request *r = cycle_request(c, job);

		c->steps++;
		/* The preemptor is served, and so are the jobs that this cycle has started. */
		if (c->classes.of_run[i] == SNAP_NONE || r->gpus_milli >= least ||
		    ((job == k->job || c->plan.started[job] == c->s->jobs[job].n_waiting) &&
		     lines->behind[job] == SNAP_NONE))
			continue;
		for (uint32_t f = 0; f < r->n_flavor_ix; f++)
			if (r->flavor_ix[f] == k->flavor)
				least = r->gpus_milli;
	}
	return least;
}

/* True if the queue, or one above it up to that on the victims' side, holds less than its quota, as
 * far as the quotas above it allow. */
static bool below_quota(const struct cycle *c, uint32_t queue, uint32_t side, uint32_t flavor)
{
	for (uint32_t q = queue;; q = c->s->queues[q].parent) {
		int64_t quota = GPUQ_UNLIMITED;

		for (uint32_t up = q;; up = c->s->queues[up].parent) {
			const int64_t its = c->s->shares[(size_t)up * c->s->n_res + flavor].quota;

			quota = its < quota ? its : quota;
			if (up == side)
				break;
		}
		if (quota != GPUQ_UNLIMITED && holdings_stays(c, q, flavor) < quota)
			return true;
		if (q == side)
			return false;
	}
}

/* True if a queue that lost something would be below its quota, while devices are idle that no
 * pending job is small enough for. */
static bool wastes(struct cycle *c, const struct claim *k)
{
	const int64_t idle = k->flavor == SNAP_NONE
				     ? 0
				     : k->free_milli + search_gone_milli(c, k) - k->need[k->flavor];
	bool below = false;

	for (uint32_t i = 0; idle >= SNAP_MILLI && !below && i < k->victims.n; i++)
		below = k->victims.items[i].rule != RULE_OWN &&
			below_quota(c, c->units->units[k->victims.items[i].unit].queue,
				    k->victims.items[i].side, k->flavor);
	return below && idle < least_wanted(c, k);
}

/* True if the rules hold for all victims together: taken one by one each was legal for the state
 * that it was found in. */
static bool whole_valid(struct cycle *c, struct claim *k)
{
	struct plan_reason why;
	bool by_share = false, by_quota = false, owed = true;

	for (uint32_t i = 0; i < k->victims.n; i++) {
		const struct victim *v = &k->victims.items[i];
		uint32_t x, y;

		/* Once all its victims are gone, its entitlement must be as it was assumed. */
		if (v->rule == RULE_OWN && !own_stands(c, k, v->stood, true))
			return false;
		if (v->rule == RULE_OWN)
			continue;
		owed &= v->rule == RULE_QUOTA;
		/* The unit outside that justified this victim must stay. */
		for (int line = 0; line < N_LINES; line++)
			if (v->instead[line] != SNAP_NONE && c->units->units[v->instead[line]].gone)
				return false;
		for (int line = 0; line < N_LINES; line++)
			if (v->must_keep & (1u << line) &&
			    !entitlement_line_kept(c, k, v->side, (enum line)line, SNAP_NONE))
				return false;
		if (v->rule == RULE_BORROW)
			continue;
		by_share |= v->rule == RULE_SHARE;
		by_quota |= v->rule == RULE_QUOTA;
		/* A side that ends above its share must not reclaim from one that then holds a
		 * smaller part of its own. */
		rules_below_common(c, k->leaf, c->units->units[v->unit].queue, &x, &y);
		if (larger_share(c, k, x, y, SNAP_NONE,
				 v->rule == RULE_QUOTA ? LINE_QUOTA : LINE_SHARE))
			return false;
	}
	if ((by_quota && !stays_inside(c, k, k->leaf, false)) ||
	    (by_share && !stays_inside_share(c, k, k->leaf)) ||
	    leaves_over(c, k, search_gone_milli(c, k), owed) ||
	    (by_share && leaves_amounts_over(c, k, SNAP_NONE)) || (!owed && wastes(c, k)))
		return false;
	return claim_is(k, CLAIM_GROWTH) ? holdings_admits_more(c, k->job, k->flavor, k->need)
					 : holdings_admits(c, k->job, k->flavor, &why);
}

/* Victims of its own queue may have been what let it reclaim for its quota. */
static bool inside_quota(const struct cycle *c, const struct claim *k, const struct victim *v)
{
	uint32_t x, y;

	rules_below_common(c, k->leaf, c->units->units[v->unit].queue, &x, &y);
	return stays_inside(c, k, x, true);
}

/* Take one after the other; a unit that is refused now may be allowed after others. *n = those
 * left. */
static void take_each(struct cycle *c, struct claim *k, uint32_t *units, uint32_t *n)
{
	uint32_t before = *n + 1;

	while (*n > 0 && *n < before) {
		before = *n;
		*n = 0;
		for (uint32_t i = 0; i < before; i++)
			if (!c->units->units[units[i]].gone && !search_take(c, k, units[i]))
				units[(*n)++] = units[i];
		if (*n > 0)
			claim_set(k, CLAIM_REORDERED, true);
	}
}

/* Take all of the set again, in the given order or in the opposite one. */
static bool take_again(struct cycle *c, struct claim *k, uint32_t n)
{
	uint32_t *units = cycle_scratch(c, (size_t)n * 2, sizeof(*units));
	uint32_t left = n;

	if (!units)
		return false;
	/* A unit that is preempted by the same plan justifies no other victim by staying. */
	k->stamp.plan = ++c->units->n_claims;
	for (uint32_t i = 0; i < n; i++) {
		units[i] = units[2 * n - 1 - i] = k->victims.items[i].unit;
		c->units->units[units[i]].planned = k->stamp.plan;
	}
	search_drop_all(c, k);
	take_each(c, k, units, &left);
	if (left > 0) {
		left = n;
		search_drop_all(c, k);
		take_each(c, k, units + n, &left);
	}
	k->stamp.plan = 0;
	return left == 0;
}

bool rules_valid(struct cycle *c, struct claim *k)
{
	const uint32_t n = k->victims.n;
	bool simple = !claim_is(k, CLAIM_TANGLED);

	for (uint32_t i = 0; i < n; i++)
		simple &= k->victims.items[i].simple && (k->victims.items[i].rule != RULE_QUOTA ||
							 inside_quota(c, k, &k->victims.items[i]));
	if (simple)
		return whole_valid(c, k);
	claim_set(k, CLAIM_TANGLED, false);
	if (take_again(c, k, n))
		return whole_valid(c, k);
	claim_set(k, CLAIM_TANGLED, true); /* nor may it be assumed to be allowed later */
	return false;
}

/* True if there is any unit of its own queue that it may preempt at all. Those of the lowest
 * priority come first. */
static bool own_possible(const struct cycle *c, const struct claim *k)
{
	const struct units *all = c->units;
	const struct snap_queue *q = &c->s->queues[k->leaf];

	if (q->preempt == SNAP_PREEMPT_NEVER)
		return false;
	for (uint32_t i = all->line_first[k->leaf]; i < all->line_first[k->leaf + 1]; i++) {
		const struct unit *u = &all->units[all->line_units[i]];

		if (!u->gone && !u->fixed)
			return u->priority < k->priority ||
			       (u->priority == k->priority &&
				q->preempt == SNAP_PREEMPT_LOWER_OR_NEWER);
	}
	return false;
}

bool rules_exceeds_share(const struct cycle *c, uint32_t job, uint32_t flavor,
			 struct plan_reason *why)
{
	const uint32_t leaf = c->s->jobs[job].queue, n_res = c->s->n_res;
	const int64_t need = flavor == SNAP_NONE ? 0 : holdings_need(c, job, flavor, flavor);
	int64_t have, held;

	if (need == 0 || c->s->shares[(size_t)leaf * n_res + flavor].quota == GPUQ_UNLIMITED)
		return false;
	held = holdings_stays(c, leaf, flavor);
	have = holdings_fair(c, leaf)[flavor] - held;
	if (have >= need || held == holdings_all_stays(c, flavor))
		return false;
	*why = (struct plan_reason){ .code = GPUQ_R_FAIR_SHARE,
				     .unit = PLAN_GPUS,
				     .have = have > 0 ? have : 0,
				     .need = need,
				     .object = c->s->queues[leaf].name };
	return true;
}

/* True if any queue beside the preemptor's, or beside one above it, holds more than its quota. By
 * every rule only those lose something. */
static bool somebody_borrows(const struct cycle *c, const struct claim *k)
{
	for (uint32_t q = k->leaf; q != SNAP_NONE; q = c->s->queues[q].parent) {
		const uint32_t parent = c->s->queues[q].parent;

		for (uint32_t y = c->kids.first[parent == SNAP_NONE ? c->s->n_queues : parent];
		     y != SNAP_NONE; y = c->kids.next[y])
			if (y != q && entitlement_beyond(c, k, y, LINE_QUOTA))
				return true;
	}
	return false;
}

/* True if a queue above the preemptor stays within its quota with it. Only there is it entitled to
 * anything. */
static bool owed_anything(const struct cycle *c, const struct claim *k)
{
	for (uint32_t q = k->leaf; q != SNAP_NONE; q = c->s->queues[q].parent)
		if (stays_inside(c, k, q, true))
			return true;
	return false;
}

bool rules_on_others_possible(const struct cycle *c, const struct claim *k)
{
	const struct snap_queue *q = &c->s->queues[k->leaf];

	/* Preempted jobs of its own queue may change that. */
	if (claim_is(k, CLAIM_OWED_ALONE) && !claim_is(k, CLAIM_OWN) && !owed_anything(c, k))
		return false;
	if (c->units && c->units->lacks && stays_inside_share(c, k, k->leaf) &&
	    shortage_possible(c, k))
		return true;
	return q->reclaim != SNAP_RECLAIM_NEVER &&
	       (stays_inside(c, k, k->leaf, false) ||
		q->borrow_preempt_max_priority != INT64_MIN) &&
	       somebody_borrows(c, k);
}

bool rules_possible(const struct cycle *c, const struct claim *k)
{
	return (claim_is(k, CLAIM_OTHERS) && rules_on_others_possible(c, k)) ||
	       (claim_is(k, CLAIM_OWN) && own_possible(c, k));
}
