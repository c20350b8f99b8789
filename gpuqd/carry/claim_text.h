/* claim_text.h - why jobs are preempted for another, in one line
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  carry.c, which keeps the line with the claim and with each victim. */
#ifndef GPUQD_CARRY_CLAIM_TEXT_H
#define GPUQD_CARRY_CLAIM_TEXT_H

#include "gpuqd/sched/quota/plan.h"

#define CLAIM_TEXT_MAX 320 /* bytes, with the end */

/* Write the numbers behind the claim of that job (an element of an array: its own): its request,
 * the holdings before and after and the fair share of its queue and of each queue that loses, in
 * devices, and how many others were passed over. "" when the plan has no such claim. A text that is
 * too long ends in "...". Returns out. */
const char *claim_text(const struct snapshot *s, const struct plan *p, struct snap_key claimant,
		       char out[CLAIM_TEXT_MAX]);

#define CLAIM_RULES_MAX 128 /* for all rule words, joined */

/* Write the rules by which n actions preempt, each once: "own+reclaim-quota". Returns out. */
const char *claim_rules(const struct plan_action *actions, uint32_t n, char out[CLAIM_RULES_MAX]);

#endif
