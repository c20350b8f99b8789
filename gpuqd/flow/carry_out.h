/* carry_out.h - a plan's events go into the journal
 *
 * Owns     nothing.
 * Touches  the journal, the log.
 * Used by  flow/schedule, once a cycle, in the turn in which its snapshot was taken.
 *
 * Everything of one plan is applied in one turn and so is one transaction. Signals go out when
 * the transaction is on disk (flow/dispatch), so a restart finds the claim and whom it told.
 */
#ifndef GPUQD_FLOW_CARRY_OUT_H
#define GPUQD_FLOW_CARRY_OUT_H

#include "gpuqd/sched/quota/plan.h"
#include "libgpuq/arena.h"

struct journal;

/* What memory is needed comes from mem. What cannot be carried out is logged. */
void carry_out(struct journal *j, const struct snapshot *s, const struct plan *p,
	       struct gpuq_arena *mem);

/* Draw the token of a new attempt. */
void carry_out_token(char out[33]);

/* Promises on nodes that are not there any more are given up. */
void carry_out_renounce_lost(struct journal *j);

#endif
