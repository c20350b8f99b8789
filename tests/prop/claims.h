/* claims.h - random clusters in which jobs must be preempted, and the properties that hold
 *
 * A case is data: it can be run again, and made smaller by removing parts. The world of a case is
 * separate from the scheduler's view of it, and so is the law of preemption, which is written here
 * plainly and slowly. Used by prop_claims only.
 */
#ifndef TESTS_PROP_CLAIMS_H
#define TESTS_PROP_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpuqd/sched/sched.h"

#define PC_NODES 8
#define PC_QUEUES 8
#define PC_JOBS 24
#define PC_PODS 8 /* that a job requests */
#define PC_ROOM 16 /* and may have, some of which are leaving */
#define PC_ROUNDS 3
#define PC_DEVICES 10
#define PC_FLAVORS 2
#define PC_MINUTE (INT64_C(60) * 1000000)
#define PC_UNLIMITED 99 /* devices; of a quota or a limit */
#define PC_AUTO (-1)
#define PC_COOLDOWN_MINUTES 10 /* with belts */
#define PC_LOSSES 256 /* that are remembered */
#define PC_EXEMPT 3 /* evictions a day */
#define PC_CYCLES 10 /* after which a world with constant demand is at rest */

struct pc_node {
	bool there;
	int gpus, flavor;
	int cpu; /* 0 = not counted */
};

struct pc_queue {
	bool there;
	int parent; /* -1 = root; always a lower one */
	int quota[PC_FLAVORS], limit[PC_FLAVORS]; /* devices */
	int lend; /* devices; PC_UNLIMITED = all */
	int weight, rank;
	int reclaim, preempt_within; /* as in struct snap_queue */
	bool fence, not_reclaimable, own_strict;
	int borrow_priority; /* -1 = off */
	int preempt_min, reclaim_min; /* half minutes; -1 = the parent's */
};

struct pc_job {
	bool there;
	int queue, priority;
	bool preemptible;
	int min, max, milli, cpu; /* pods; of one */
	int flavor; /* -1 = any */
	int submit; /* minutes before its round */
	int round, end_round;
	int runs, ran; /* pods that run at first (0 = pending), and for how many minutes */
};

struct pc_case {
	uint64_t seed;
	int reclaim_to, method;
	bool reclaim, consolidation, belts;
	int preempt_min, reclaim_min; /* half minutes */
	int linger; /* cycles that a victim takes to leave, at most */
	bool torn; /* sometimes a plan is carried out in part only */
	struct pc_node nodes[PC_NODES];
	struct pc_queue queues[PC_QUEUES];
	struct pc_job jobs[PC_JOBS];
};

enum pc_state { PC_ABSENT, PC_PENDING, PC_RUNNING, PC_LEAVING, PC_ENDED };

struct pc_pod {
	int index, node, n_devices, devices[PC_DEVICES], milli;
	int gone; /* cycle in which it is gone; 0 = it stays */
	bool fresh; /* it joined in this cycle */
};

struct pc_live {
	enum pc_state state;
	struct pc_pod pods[PC_ROOM], promise[PC_PODS];
	int n_pods, n_promise;
	bool owns; /* the nominated placement is remembered */
	bool fresh; /* started or moved in this cycle */
	int64_t start, evicted, shrunk;
	int evicted_for, n_evicted, n_moved;
	/* Evictions since demand changed: by another queue; by a preemptor of its own queue. */
	int taken_by[PC_QUEUES], taken_for[PC_JOBS];
};

/* A victim and the queue and job it was evicted for. */
struct pc_loss {
	int job, by;
	int64_t at;
};

struct pc_world {
	const struct pc_case *pc;
	int round, cycle;
	int64_t now;
	struct pc_live live[PC_JOBS];
	int64_t quota[PC_QUEUES][PC_FLAVORS], limit[PC_QUEUES][PC_FLAVORS]; /* thousandths */
	int64_t fair[PC_QUEUES][PC_FLAVORS]; /* as of the last plan */
	int growth_claims; /* of this cycle */
	struct pc_loss losses[PC_LOSSES]; /* the last of them, as a ring */
	int n_losses;
	uint64_t random;
	bool loud;
	char wrong[600];
};

/* A unit of eviction: the minimum of a job, or one pod beyond it. */
struct pc_unit {
	int job, pod; /* pod -1 = the gang */
	enum gpuq_cause cause;
};

#define PC_UNITS (PC_JOBS * PC_ROOM)

/* ---- claims_case.c ---- */
void pc_generate(uint64_t seed, struct pc_case *out);
void pc_shrink(struct pc_case *pc);

/* ---- claims_run.c ---- */
/* Run the case's rounds and check each plan. NULL = all properties hold; else the violation, in a
 * static buffer; it begins with the property's number. */
const char *pc_run(const struct pc_case *pc);
/* The same, printing all plans, and at the end the failing moment as a scenario. */
void pc_show(const struct pc_case *pc);

/* ---- claims_world.c ---- */
/* Record a violation, unless there is one already. */
void pc_wrong(struct pc_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pc_begin(struct pc_world *w, const struct pc_case *pc);
/* Apply the arrivals and ends of a round. */
void pc_events(struct pc_world *w);
/* Remove pods whose time has come. Returns true if one was removed or is still leaving. */
bool pc_release(struct pc_world *w);
struct snapshot *pc_build(struct pc_world *w, uint64_t *shuffle);
bool pc_below(const struct pc_case *pc, int queue, int top); /* is it top, or below it? */
bool pc_is_leaf(const struct pc_case *pc, int queue);
/* Return what a queue has for good: running and not leaving, or nominated. */
int64_t pc_held(const struct pc_world *w, int queue, int flavor, bool firm);
int64_t pc_used(const struct pc_world *w, int queue, int flavor); /* with leaving pods */
int pc_flavor(const struct pc_world *w, int job); /* of its pods or nominated placement; -1 */
int pc_staying(const struct pc_live *l); /* pods that do not leave */
/* Return how many pods of the job (up to its minimum) fit on that flavor once all leaving pods
 * and those units are gone, with nominated placements kept. now = only on what is free at this
 * moment. */
int pc_room(const struct pc_world *w, int job, int flavor, const struct pc_unit *gone, int n_gone,
	    bool now);
/* True if there are devices for all its pods, and only cores are missing. */
bool pc_lacks_cores(const struct pc_world *w, int job, int flavor);
/* Return the pods that a preemptor requests: its minimum, or one more when it runs. */
int pc_asks(const struct pc_world *w, int job);
void pc_scenario(const struct pc_world *w, FILE *out);

/* ---- claims_apply.c ---- */
/* Carry a plan out, checking every step. Returns the number of changes. */
int pc_apply(struct pc_world *w, const struct snapshot *s, const struct plan *p);

/* ---- claims_law.c ---- */
/* True if the job may preempt these units on that flavor, by the rules and tests of
 * gpuqd-scheduling(7), PREEMPTION, in any order of the victims. strict = and no unit is justified
 * by another that is taken as well. */
bool pc_lawful(const struct pc_world *w, int job, int flavor, const struct pc_unit *victims, int n,
	       bool strict);
/* The part that does not depend on victims: limits, quotas of non-preemptible jobs. */
bool pc_admissible(const struct pc_world *w, int job, int flavor, const struct pc_unit *victims,
		   int n);
/* Get all units that, one after the other, are beyond guarantees and may be reclaimed by a
 * preemptor within its own. Returns how many. */
int pc_owed(const struct pc_world *w, int job, int flavor, struct pc_unit *out);

/* ---- claims_check.c ---- */
void pc_check_places(struct pc_world *w); /* 3, 17 */
void pc_check_reasons(struct pc_world *w, const struct snapshot *s, const struct plan *p); /* 26 */
void pc_check_shares(struct pc_world *w, const struct snapshot *s, const struct plan *p); /* 18 */
void pc_check_order(struct pc_world *w, const struct plan *p); /* 28 */
void pc_check_rest(struct pc_world *w); /* 8, 14 */
/* owed: all of them are evicted for a guarantee, or in the preemptor's own queue. */
void pc_check_spare(struct pc_world *w, int job, const struct pc_unit *victims, int n, bool owed);
void pc_check_victims(struct pc_world *w, int job, int flavor, const struct pc_unit *victims,
		      int n); /* 9, 11, 29 */

#endif
