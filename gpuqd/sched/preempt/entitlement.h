/* entitlement.h - how queues stand against what they are due
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, gangs.c, preempt_why.c, rules.c, search.c and others.
 */
#ifndef GPUQD_SCHED_PREEMPT_ENTITLEMENT_H
#define GPUQD_SCHED_PREEMPT_ENTITLEMENT_H

#include "gpuqd/sched/preempt/preempt.h"

/* What the claimant at hand lacks, enum claim_short; 0 = devices. Where it lacks cpu or memory,
 * these alone are compared with fair shares; else they are where they have a quota. */
void entitlement_set_lacks(struct cycle *c, uint8_t lacks);
/* Does the line count the resource? */
bool entitlement_counts(const struct cycle *c, uint32_t queue, uint32_t res, enum line line);
/* The resource by which claimant and victims are measured. */
uint32_t entitlement_measure(const struct cycle *c, const struct claim *k);
int64_t entitlement_line_of(const struct cycle *c, uint32_t queue, uint32_t res, enum line line);
/* What the queue holds for good. */
int64_t entitlement_stays(const struct cycle *c, uint32_t queue, uint32_t res);
/* Does it hold the line, of all that the claim asks for, without the unit (SNAP_NONE = all
 * stay), without who goes in the same plan and without what may yet go to somebody else? */
bool entitlement_line_kept(struct cycle *c, const struct claim *k, uint32_t queue, enum line line,
			   uint32_t unit);
/* Does it hold more than the line, of something that the claim asks for? */
bool entitlement_beyond(const struct cycle *c, const struct claim *k, uint32_t queue,
			enum line line);
bool entitlement_stands_inside(struct cycle *c, uint32_t unit, uint32_t queue, enum line line);
/* Is it of the flavor that the claim asks for, or of none? What has devices of another
 * flavor frees nothing for it. */
bool entitlement_concerns(const struct cycle *c, const struct claim *k, uint32_t unit);
/* May the unit go without harm to what the queue is due on that line? *must_keep = it
 * may when the queue does not fall below the line by the whole plan; *instead = an item
 * that now justifies this one, SNAP_NONE = none. */
bool entitlement_is_free(struct cycle *c, const struct claim *k, uint32_t unit, uint32_t queue,
			 enum line line, bool *must_keep, uint32_t *instead);
/* How the unit stood in its leaf before the claim took any of that leaf. */
enum claim_depth entitlement_depth_of(struct cycle *c, const struct claim *k, uint32_t unit);
void entitlement_changed(struct cycle *c, uint32_t unit);
/* How the claimant itself would stand in its leaf: 0 inside the quota, 1 inside the fair
 * share, 2 beyond. `all` = with all that stays there; else without what it may displace. */
uint8_t entitlement_claimant_stands(struct cycle *c, const struct claim *k, bool all);

#endif
