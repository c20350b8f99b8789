#include "gpuqd/sched/preempt/preempt_why.h"

#include "gpuqd/sched/preempt/entitlement.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/preempt_int.h"

#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/util/amount.h"

/* Why a claim was possible, in numbers: holdings before and after and fair shares of the queues on
 * both sides; and the other running work that was passed over. */

/* Return the amount preempted from the subtree of a queue. */
static int64_t taken_from(const struct cycle *c, const struct claim *k, uint32_t queue)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < k->victims.n; i++) {
		uint32_t q = c->units->units[k->victims.items[i].unit].queue;

		while (q != SNAP_NONE && q != queue)
			q = c->s->queues[q].parent;
		if (q == queue)
			sum = amount_sum(sum, gangs_amount(c, k->victims.items[i].unit, k->flavor));
	}
	return sum;
}

/* Return what a queue holds before and after the claim, beside its entitlement. */
static struct plan_side side_of(const struct cycle *c, const struct claim *k, uint32_t queue,
				int64_t gains)
{
	const size_t at = (size_t)queue * c->s->n_res + k->flavor;
	const int64_t held = holdings_stays(c, queue, k->flavor);

	return (struct plan_side){ .queue = queue,
				   .before = amount_sum(held, taken_from(c, k, queue)),
				   .after = amount_sum(held, gains),
				   .fair_share = holdings_fair(c, queue)[k->flavor],
				   .quota = c->s->shares[at].quota };
}

/* True if the queue is reported already: several victims may be of one. */
static bool is_told(const struct cycle *c, const struct plan_claim *claim, uint32_t queue)
{
	for (uint32_t i = 0; i < claim->n_sides; i++)
		if (c->plan.sides[claim->side_first + i].queue == queue)
			return true;
	return false;
}

/* Count the units that are not victims of any claim, or not of this one; the others were evaluated
 * when their turn came. */
static void count_passed(const struct cycle *c, const struct claim *k, uint32_t *passed)
{
	for (uint32_t u = 0; u < c->units->n_units; u++) {
		const struct unit *unit = &c->units->units[u];

		if (unit->gone || gangs_amount(c, u, k->flavor) == 0)
			continue;
		if (unit->firm || c->s->jobs[unit->job].spared)
			passed[PLAN_PASSED_FIRM]++;
		else if (unit->fixed)
			passed[PLAN_PASSED_BUSY]++;
		else if (rules_shielded(c, k, u))
			passed[PLAN_PASSED_SHIELDED]++;
		else
			passed[PLAN_PASSED_NOT_NEEDED]++;
	}
}

void preempt_explain(struct cycle *c, const struct claim *k)
{
	struct plan_claim *claim;
	struct plan_side *side;

	if (k->victims.n == 0 || k->flavor == SNAP_NONE)
		return;
	claim = PLAN_PUSH(c, claims, 1);
	side = PLAN_PUSH(c, sides, 1);
	if (!claim || !side)
		return;
	*claim = (struct plan_claim){ .job = k->job,
				      .key = { c->s->jobs[k->job].key.id,
					       plan_next_element(c, k->job) },
				      .flavor = k->flavor,
				      .need = k->need[k->flavor],
				      .side_first = c->plan.n_sides - 1,
				      .n_sides = 1 };
	*side = side_of(c, k, k->leaf, k->need[k->flavor]);
	for (uint32_t i = 0; i < k->victims.n && !c->failed; i++) {
		const uint32_t queue = k->victims.items[i].side;

		if (is_told(c, claim, queue))
			continue;
		side = PLAN_PUSH(c, sides, 1);
		if (!side)
			return;
		*side = side_of(c, k, queue, 0);
		claim->n_sides++;
	}
	count_passed(c, k, claim->passed);
}
