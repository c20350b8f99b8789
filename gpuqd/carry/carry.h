/* carry.h - a plan becomes events
 *
 * Owns     nothing.
 * Touches  memory only; the caller decides where the events go.
 * Used by  flow/carry_out (the daemon), flow/advise/whatif (a scratch copy of the model).
 *
 * A claim (its nomination and the evictions for it) is applied whole or not at all: whether the
 * model would refuse part of it is checked first. */
#ifndef GPUQD_CARRY_CARRY_H
#define GPUQD_CARRY_CARRY_H

#include "gpuqd/state/event.h"
#include "gpuqd/state/model.h"
#include "gpuqd/sched/quota/plan.h"
#include "libgpuq/arena.h"

/* The outcome of an action, in the order in which it happens. */
enum carry_news {
	CARRY_PLACED, /* it starts */
	CARRY_GROWN, /* pods join it */
	CARRY_RENOUNCED, /* its nominated placement is released */
	CARRY_NOMINATED, /* places are kept for it */
	CARRY_EVICTED, /* or shrunk, or moved: by the action's kind */
	CARRY_CLAIMED, /* a nomination holds, the evictions for it follow; no event */
	CARRY_STALE, /* the model would refuse part of a claim: none of it is applied; no event */
	CARRY_REFUSED, /* the event was refused, err says why; the next action follows */
	CARRY_DROPPED, /* the state it depends on has changed since the snapshot; no event */
};

/* Where the events go. */
struct carry_to {
	int (*apply)(void *arg, struct event *ev, struct gpuq_err *err); /* 0, or refused */
	void (*token)(char out[33]); /* of a new attempt; impossible to guess */
	/* True if the state that the action depends on is still as in the snapshot. NULL = it
	 * always is: nothing has happened since. */
	bool (*stands)(void *arg, const struct plan_action *a);
	/* NULL = the caller needs no news */
	void (*news)(void *arg, enum carry_news news, const struct plan_action *a,
		     const struct event *ev, const struct gpuq_err *err);
	void *arg; /* for all of them */
};

/* Turn all actions of the plan into events. Memory is allocated from mem. */
void carry_plan(const struct carry_to *to, const struct model *m, const struct snapshot *s,
		const struct plan *p, struct gpuq_arena *mem);

/* The same in parts. A claim and what it frees is one part, and once a claim has been dropped those
 * after it, which may count on the capacity it would have freed, are dropped as well. */
struct carry_at {
	uint32_t next; /* action */
	uint32_t n_dropped;
	bool claim_dropped; /* and so are those after it */
};
/* Carry out this many actions from `at` on (a claim may be more). True: no action is left. */
bool carry_some(const struct carry_to *to, const struct model *m, const struct snapshot *s,
		const struct plan *p, struct gpuq_arena *mem, struct carry_at *at, uint32_t most);

#endif
