/* entitlement.h - the holdings of queues compared with their quotas and fair shares
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, gangs.c, preempt_why.c, rules.c, search.c and others. */
#ifndef GPUQD_SCHED_PREEMPT_ENTITLEMENT_H
#define GPUQD_SCHED_PREEMPT_ENTITLEMENT_H

#include "gpuqd/sched/preempt/preempt.h"

struct claim;

/* Set the resources that the current preemptor lacks, enum claim_short; 0 = devices. Where it lacks
 * cpu or memory, only these are compared with fair shares; else they are where they have a
 * quota. */
void entitlement_set_lacks(struct cycle *c, uint8_t lacks);
/* True if the line counts the resource. */
bool entitlement_counts(const struct cycle *c, uint32_t queue, uint32_t res, enum line line);
/* Return the resource by which preemptor and victims are compared. */
uint32_t entitlement_measure(const struct cycle *c, const struct claim *k);
int64_t entitlement_line_of(const struct cycle *c, uint32_t queue, uint32_t res, enum line line);
/* True if it fills the line, of all that the claim requests, without the unit (SNAP_NONE = all
 * stay), without units preempted by the same plan and without nominated placements that may yet be
 * withdrawn. */
bool entitlement_line_kept(struct cycle *c, const struct claim *k, uint32_t queue, enum line line,
			   uint32_t unit);
/* True if it holds more than the line, of some resource that the claim requests. */
bool entitlement_beyond(const struct cycle *c, const struct claim *k, uint32_t queue,
			enum line line);
bool entitlement_stands_inside(struct cycle *c, uint32_t unit, uint32_t queue, enum line line);
/* True if it is of the flavor that the claim requests, or of no flavor. Preempting a unit with
 * devices of another flavor frees nothing for it. */
bool entitlement_concerns(const struct cycle *c, const struct claim *k, uint32_t unit);
/* True if the unit may be preempted without loss to what the queue is entitled to on that line.
 * *must_keep = only if the queue does not fall below the line by the whole plan; *instead = a unit
 * outside that justifies this one, SNAP_NONE = none. */
bool entitlement_is_free(struct cycle *c, const struct claim *k, uint32_t unit, uint32_t queue,
			 enum line line, bool *must_keep, uint32_t *instead);
/* Return the unit's entitlement in its leaf before the claim preempted any of that leaf. */
enum claim_depth entitlement_depth_of(struct cycle *c, const struct claim *k, uint32_t unit);
void entitlement_changed(struct cycle *c, uint32_t unit);
/* Return the entitlement that the preemptor itself would have in its leaf: 0 within quota, 1 within
 * fair share, 2 beyond. `all` = with all that stays there; else without what it may preempt. */
uint8_t entitlement_claimant_stands(struct cycle *c, const struct claim *k, bool all);

#endif
