/* carry_out.h - a plan's events go into the journal
 *
 * Owns     nothing.
 * Touches  the journal, the log.
 * Used by  flow/schedule, once a cycle has decided.
 *
 * A short plan is applied in one turn and so is one transaction, a long one is in several; a
 * nominated placement and the evictions for it are always in one. Signals are sent once the
 * transaction is durable (flow/dispatch), so a restart finds the nomination and its victims.
 */
#ifndef GPUQD_FLOW_CARRY_OUT_H
#define GPUQD_FLOW_CARRY_OUT_H

#include "gpuqd/carry/carry.h"
#include "gpuqd/flow/since.h"
#include "gpuqd/sched/quota/plan.h"
#include "libgpuq/arena.h"

struct journal;

/* Carry out this many actions, from `at` on, of a plan on the snapshot that `since` watches;
 * actions that no longer apply are dropped. True: the plan is done. Memory comes from mem. Failures
 * are logged. */
bool carry_out(struct journal *j, const struct since *since, const struct plan *p,
	       struct carry_at *at, uint32_t most, struct gpuq_arena *mem);

/* Make and withdraw the requests for nodes that a plan for all jobs has. Nodes are as they were in its
 * snapshot. */
void carry_out_asks(struct journal *j, const struct since *since, const struct plan *p);

/* Draw the token of a new attempt. */
void carry_out_token(char out[33]);

/* Give up nominated placements on nodes that no longer exist. */
void carry_out_renounce_lost(struct journal *j);

#endif
