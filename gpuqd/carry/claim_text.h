/* claim_text.h - why jobs leave for another, in one line
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  carry.c, which keeps the line with the claim and with each who leaves.
 */
#ifndef GPUQD_CARRY_CLAIM_TEXT_H
#define GPUQD_CARRY_CLAIM_TEXT_H

#include "gpuqd/sched/quota/plan.h"

#define CLAIM_TEXT_MAX 320 /* bytes, with the end */

/* The numbers behind the claim of that job (an element of an array: its own): what it asks
 * for, what its queue and each that loses hold before and after and are due, in devices,
 * and how many others were passed over. "" when the plan has no such claim. What is too
 * long ends in "...". Returns out. */
const char *claim_text(const struct snapshot *s, const struct plan *p, struct snap_key claimant,
		       char out[CLAIM_TEXT_MAX]);

#define CLAIM_RULES_MAX 128 /* of all words, joined */

/* Write the rules by which n actions take, each once: "own+reclaim-quota". Returns out. */
const char *claim_rules(const struct plan_action *actions, uint32_t n, char out[CLAIM_RULES_MAX]);

#endif
