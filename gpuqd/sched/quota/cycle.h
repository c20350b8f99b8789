/* cycle.h - the working state of one scheduling cycle
 *
 * Owns     the plan as it grows, the places of the current job, and pointers to what each room keeps
 *          for itself. Everything lives in the cycle's arena.
 * Touches  memory only.
 * Used by  all rooms of the scheduler; sched.c reads as the policy.
 *
 * The snapshot is never changed. When memory runs out, `failed` is set and stays set, and the cycle
 * as a whole fails; functions here may return anything after that. */
#ifndef GPUQD_SCHED_QUOTA_CYCLE_H
#define GPUQD_SCHED_QUOTA_CYCLE_H

#include "gpuqd/util/bits.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"

/* A pod with a place; it is undone or becomes a plan_pod. */
struct place {
	uint32_t group, index, node; /* which pod of which group; where it is */
	uint32_t device_first, n_devices; /* into places.devices */
	int32_t milli;
};

/* The pods of the current job with their places. */
struct places {
	struct place *pods; /* in the order in which they were found */
	uint32_t n_pods, room_pods;
	uint32_t *devices; /* of all of them */
	uint32_t n_devices, room_devices;
};

/* Jobs of which none can start in this cycle once one of them has failed. */
struct job_class {
	bool blocked; /* a job of it found no place in this cycle */
	int64_t from_walltime_us; /* only jobs that run at least as long are blocked; 0 = all */
	int64_t from_least_us; /* ...and whose least time limit is at least this */
	struct plan_why why;
	uint32_t flavor_at; /* the first of its flavors that was not found full */
};

/* The classes of pending jobs. */
struct classes {
	uint32_t *of_run; /* SNAP_NONE when its jobs cannot start now for other reasons */
	struct job_class *items;
};

/* The children of each queue by age. */
struct kids {
	uint32_t *first, *next; /* first[n_queues] = the root's */
};

/* The plan as it grows: the tables of struct plan, which has a word on each. */
struct draft {
	struct plan_action *actions;
	struct plan_pod *pods;
	uint32_t *devices;
	struct plan_reason *reasons;
	uint32_t n_actions, room_actions, n_pods, room_pods, n_devices, room_devices, n_reasons,
		room_reasons;
	struct plan_claim *claims;
	struct plan_side *sides;
	struct plan_bound *bounds;
	struct plan_ask *asks;
	uint32_t n_asks, room_asks;
	struct plan_cut *cuts;
	uint32_t n_cuts, room_cuts;
	uint32_t n_claims, room_claims, n_sides, room_sides, n_bounds, room_bounds;
	uint32_t *started; /* by job: elements started in this cycle */
	struct plan_why *why_of_run; /* why it is not eligible, else the reasons of its class */
	struct plan_why *why_of_job; /* reasons of that job alone */
	/* By job: the request that it is tried with, its own or another one that does as well
	 * (snap_request.others). NULL = all have one alone. */
	uint32_t *tried_as;
	int64_t wake_us;
	bool cut_short; /* max_steps was reached */
};

/* A room's structs are known to its own files alone: to one of them, or by an _int.h. Other rooms
 * ask its functions. */
struct cycle {
	const struct snapshot *s; /* sealed */
	struct gpuq_arena *mem; /* the plan outlives the cycle in it */
	struct gpuq_arena scratch; /* until the next job is tried */
	bool failed;
	uint64_t steps; /* work so far, in node visits */

	/* Common to all rooms. */
	struct draft plan; /* as it grows */
	struct places places; /* of the current job */
	struct classes classes;
	struct kids kids; /* of the tree of queues */
	uint64_t *promised; /* jobs whose nominated placements hold */
	bool in_later; /* nodes are in the state after everything that is ending has ended */

	struct holdings *holdings; /* quota: what queues, users and caps hold */
	struct priority *priority; /* quota: the terms of jobs' priorities */
	struct nodes *nodes; /* place: what is free on nodes */
	struct feasibility *feasibility; /* place: where groups may run */
	struct ends *ends; /* place: nodes that are taken away; NULL = none is */
	struct pack *pack; /* place: how the current job is packed */
	struct topology *topology; /* place: levels and trees; NULL until a level is requested */
	struct timeline *timeline; /* timeline: what is ending, nominated, planned */
	struct units *units; /* preempt: what can be preempted; NULL until victims are searched */
	struct futile *futile; /* preempt: searches that failed; NULL until one does */
	struct reversals *reversals; /* preempt: oscillation.c; NULL until first used */
	struct order *order; /* order.c: which job is served next */
	struct provision *provision; /* provision.c: nodes that do not exist; NULL: none could */
	struct request_verdict *verdicts; /* reasons.c: by request */
};

/* Return the class of a pending job; SNAP_NONE: it cannot start now for other reasons. */
static inline uint32_t cycle_class(const struct cycle *c, uint32_t job)
{
	const uint32_t run = c->s->lines.run_of[job];

	return run == SNAP_NONE ? SNAP_NONE : c->classes.of_run[run];
}

/* Return the request that a job is tried with, or was placed with last. */
static inline uint32_t cycle_request_ix(const struct cycle *c, uint32_t job)
{
	return c->plan.tried_as ? c->plan.tried_as[job] : c->s->jobs[job].request;
}

static inline const struct snap_request *cycle_request(const struct cycle *c, uint32_t job)
{
	return &c->s->requests[cycle_request_ix(c, job)];
}

/* Return how many of its flavors a job may use now; 1 where it needs none. */
static inline uint32_t cycle_flavors(const struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	int64_t next_us;

	return c->s->requests[j->request].gpus_milli > 0 ? snap_flavors_open(c->s, j, &next_us) : 1;
}

/* Return how many requests of a job do as well as each other, on each flavor. */
static inline uint32_t cycle_choices(const struct cycle *c, uint32_t job)
{
	return c->s->requests[c->s->jobs[job].request].n_others + 1;
}

/* Make the tables of requests that are tried. */
void cycle_choices_init(struct cycle *c);
/* The ways to try a job, 0 .. cycle_flavors() * cycle_choices() - 1: flavors in order of preference, and on each
 * its requests, those that are charged least first; or its requests in order, and each on its flavors. */
struct cycle_way {
	uint32_t flavor, request; /* their places in these orders */
};
struct cycle_way cycle_way(const struct cycle *c, uint32_t job, uint32_t way);
/* Try the job in one of these ways. Returns the flavor; SNAP_NONE for a job without devices. */
uint32_t cycle_try_as(struct cycle *c, uint32_t job, uint32_t way);
/* Go back to its own request. */
void cycle_try_own(struct cycle *c, uint32_t job);

/* Return the number of words of a set of nodes. */
static inline uint32_t cycle_words(const struct cycle *c)
{
	return bits_words(c->s->n_nodes);
}

/* Return an arena table with room for n more items (a larger copy where needed); NULL, and `failed`
 * is set, when there is no memory. */
void *cycle_push(struct cycle *c, void *table, uint32_t *n_items, uint32_t *room, size_t size,
		 uint32_t n);
void *cycle_alloc(struct cycle *c, size_t count, size_t size);
/* Allocate zeroed memory that is released when the next job is tried. */
void *cycle_scratch(struct cycle *c, size_t count, size_t size);

/* The same for a table of a struct that has `n_table` and `room_table` beside it; for one of the
 * plan. */
#define CYCLE_PUSH(c, of, table, n)                                                                \
	cycle_push(c, &(of)->table, &(of)->n_##table, &(of)->room_##table, sizeof(*(of)->table), n)
#define PLAN_PUSH(c, table, n) CYCLE_PUSH(c, &(c)->plan, table, n)

/* Note that a bound cut short the work for a job; SNAP_NONE = for all jobs after it. */
void cycle_bounded(struct cycle *c, uint32_t job, enum plan_bounded what, int64_t most);

#define MS_PER_MINUTE INT64_C(60000) /* budgets count in minutes */

/* A start reservation or a reservation that a job must not delay; the other is SNAP_NONE. */
struct future_bar {
	uint32_t job, reservation;
};

#endif
