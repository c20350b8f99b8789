/* search_set.h - the set of victims
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, minimise.c, preempt.c, relocate.c, rules.c and others.
 */
#ifndef GPUQD_SCHED_PREEMPT_SEARCH_SET_H
#define GPUQD_SCHED_PREEMPT_SEARCH_SET_H

#include "gpuqd/sched/preempt/preempt_int.h"

bool search_take(struct cycle *c, struct claim *k, uint32_t unit);
void search_drop_last(struct cycle *c, struct claim *k);
void search_drop_all(struct cycle *c, struct claim *k);
/* Return the devices that its victims hold. */
int64_t search_gone_milli(const struct cycle *c, const struct claim *k);
/* Return the cost of the victims from that one on; < 0: x is cheaper. */
struct claim_cost search_cost_since(const struct cycle *c, const struct claim *k, uint32_t first);
int search_cmp_cost(const struct claim_cost *x, const struct claim_cost *y);
/* True if the gang fits now, without what is ending. */
bool search_fits(struct cycle *c, struct claim *k);

/* Put back those taken last, until n are left; the one at i; all, and take exactly those that were
 * saved. */
void search_drop_to(struct cycle *c, struct claim *k, uint32_t n);
void search_drop_at(struct cycle *c, struct claim *k, uint32_t i);
void search_restore(struct cycle *c, struct claim *k, const struct victim *saved, uint32_t n);
/* True if the current search considers the unit. */
bool search_looks_at(const struct claim *k, const struct unit *u);

#endif
