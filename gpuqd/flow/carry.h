/* carry.h - a plan becomes events
 *
 * Owns     nothing.
 * Touches  the journal.
 * Used by  flow/schedule, once a cycle, in the turn in which its snapshot was taken.
 *
 * Everything of one plan is applied in one turn and so is one transaction. A claim (its
 * nomination and all who leave for it) is applied whole or not at all, also in memory:
 * what the model would refuse is looked for first. Signals go out when the transaction
 * is on disk (flow/dispatch), so a restart finds the claim and whom it told.
 */
#ifndef GPUQD_FLOW_CARRY_H
#define GPUQD_FLOW_CARRY_H

#include "gpuqd/core/event.h"
#include "gpuqd/core/model.h"
#include "gpuqd/core/plan.h"
#include "libgpuq/arena.h"

struct journal;

/* What memory is needed comes from mem. What cannot be carried out is logged. */
void carry_out(struct journal *j, const struct snapshot *s, const struct plan *p,
	       struct gpuq_arena *mem);

/* The same events to fn, one after another, for a model that is nobody's: nothing is logged.
 * What fn refuses is passed over. */
typedef int (*carry_fn)(void *arg, struct event *ev, struct gpuq_err *err);
void carry_as_if(const struct model *m, const struct snapshot *s, const struct plan *p,
		 struct gpuq_arena *mem, carry_fn fn, void *arg);

/* Promises on nodes that are not there any more are given up. */
void carry_renounce_lost(struct journal *j);

#endif
