/* rules.h - which unit may be preempted for a claim, by which rule
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, entitlement.c, minimise.c, oscillation.c, preempt.c and others.
 */
#ifndef GPUQD_SCHED_PREEMPT_RULES_H
#define GPUQD_SCHED_PREEMPT_RULES_H

#include "gpuqd/sched/preempt/preempt.h"
#include "gpuqd/sched/quota/cycle.h"

const char *rules_rule_word(enum claim_rule rule); /* "reclaim-quota"; "" for RULE_NONE */
/* The queues on either side below the nearest common ancestor of two leaves; of one leaf
 * with itself, that leaf. */
void rules_below_common(const struct cycle *c, uint32_t a, uint32_t b, uint32_t *x, uint32_t *y);
/* The rule by which the unit may be taken now, with the victims so far gone; RULE_NONE. */
enum claim_rule rules_legal(struct cycle *c, struct claim *k, uint32_t unit, struct victim *v);
/* All victims again one after the other, and what holds for the plan as a whole. */
bool rules_valid(struct cycle *c, struct claim *k);
/* Do the victims so far hold more beyond the request than this search may leave over? */
bool rules_leaves_over(const struct cycle *c, struct claim *k);
/* Is the unit, of the claimant's queue, one that yields to it by priority or age? */
bool rules_goes_before(const struct cycle *c, const struct claim *k, const struct unit *u);
/* Is the unit out of this claimant's reach whatever its queue is due? */
bool rules_shielded(const struct cycle *c, const struct claim *k, uint32_t unit);
/* May it take anything from other queues at all, whoever runs there? */
bool rules_on_others_possible(const struct cycle *c, const struct claim *k);
/* Does anything allow this job to claim at all? A cheap no for most. */
bool rules_possible(const struct cycle *c, const struct claim *k);

/* Started so lately that jobs of its own queue may not displace it. */
bool rules_too_young(struct cycle *c, uint32_t unit);
/* Would it pass its queue's fair share, so that it may not claim what others hold?
 * *why says by how much. */
bool rules_exceeds_share(const struct cycle *c, uint32_t job, uint32_t flavor,
			 struct plan_reason *why);

#endif
