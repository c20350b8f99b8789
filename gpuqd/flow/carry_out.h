/* carry_out.h - a plan's events go into the journal
 *
 * Owns     nothing.
 * Touches  the journal, the log.
 * Used by  flow/schedule, once a cycle has decided.
 *
 * A short plan is applied in one turn and so is one transaction, a long one is in several; a claim
 * and the evictions for it are always in one. Signals go out when the transaction is on disk
 * (flow/dispatch), so a restart finds the claim and whom it told.
 */
#ifndef GPUQD_FLOW_CARRY_OUT_H
#define GPUQD_FLOW_CARRY_OUT_H

#include "gpuqd/carry/carry.h"
#include "gpuqd/flow/since.h"
#include "gpuqd/sched/quota/plan.h"
#include "libgpuq/arena.h"

struct journal;

/* From at on so many actions of a plan on the snapshot that `since` watches; what does not stand
 * any more is dropped. True: it was the rest. What memory is needed comes from mem. What cannot
 * be carried out is logged. */
bool carry_out(struct journal *j, const struct since *since, const struct plan *p,
	       struct carry_at *at, uint32_t most, struct gpuq_arena *mem);

/* Draw the token of a new attempt. */
void carry_out_token(char out[33]);

/* Promises on nodes that are not there any more are given up. */
void carry_out_renounce_lost(struct journal *j);

#endif
