/* rules.h - which unit may be preempted for a claim, by which rule
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, entitlement.c, minimise.c, oscillation.c, preempt.c and others.
 */
#ifndef GPUQD_SCHED_PREEMPT_RULES_H
#define GPUQD_SCHED_PREEMPT_RULES_H

#include "gpuqd/sched/preempt/preempt.h"

struct claim;
struct unit;
struct victim;
#include "gpuqd/sched/quota/cycle.h"

const char *rules_rule_word(enum claim_rule rule); /* "reclaim-quota"; "" for RULE_NONE */
/* Return how much victims may hold beyond the request, in thousandths; GPUQ_UNLIMITED. */
int64_t rules_spare_max(const struct cycle *c);
/* True if queues reclaim up to their fair shares, not only up to their quotas. */
bool rules_to_share(const struct cycle *c);
/* Return the queues on either side below the nearest common ancestor of two leaves; of one leaf
 * with itself, that leaf. */
void rules_below_common(const struct cycle *c, uint32_t a, uint32_t b, uint32_t *x, uint32_t *y);
/* Return the rule by which the unit may be preempted now, without the victims so far; RULE_NONE. */
enum claim_rule rules_legal(struct cycle *c, struct claim *k, uint32_t unit, struct victim *v);
/* Check all victims again one after the other, and the rules for the plan as a whole. */
bool rules_valid(struct cycle *c, struct claim *k);
/* True if the victims so far hold more beyond the request than this search allows. */
bool rules_leaves_over(const struct cycle *c, struct claim *k);
/* True if the unit, of the preemptor's queue, yields to it by priority or age. */
bool rules_goes_before(const struct cycle *c, const struct claim *k, const struct unit *u);
/* True if the unit is out of this preemptor's reach whatever its queue's share. */
bool rules_shielded(const struct cycle *c, const struct claim *k, uint32_t unit);
/* True if it may preempt anything of other queues at all, whichever jobs run there. */
bool rules_on_others_possible(const struct cycle *c, const struct claim *k);
/* True if any rule allows this job to preempt at all. A cheap no for most. */
bool rules_possible(const struct cycle *c, const struct claim *k);

/* True if it was started so recently that jobs of its own queue may not preempt it. */
bool rules_too_young(struct cycle *c, uint32_t unit);
/* True if it would exceed its queue's fair share, so that it may not reclaim from others. *why says
 * by how much. */
bool rules_exceeds_share(const struct cycle *c, uint32_t job, uint32_t flavor,
			 struct plan_reason *why);

#endif
