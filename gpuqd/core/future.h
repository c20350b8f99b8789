/* future.h - what the cluster will look like, as far as it is known
 *
 * Owns     when what is held now is given back; planned starts and calendar slices, and
 *          what nodes have to spare when those begin.
 * Touches  memory only.
 * Used by  future*.c and calendar.c only; the cycle sees what cycle.h declares.
 *
 * Planned starts name nodes and counts of devices, never devices: as long as the count
 * holds at every moment, whoever starts finds some that are free. What a node has free
 * grows between planned starts and is least where one begins: so these are the moments
 * that are looked at. Spans of time are half open: [start, end).
 */
#ifndef GPUQD_CORE_FUTURE_H
#define GPUQD_CORE_FUTURE_H

#include "gpuqd/core/pack.h"

/* What is past its time, or was told to leave, is taken to be gone then. */
#define FUTURE_OVERRUN_US (60 * GPUQ_US_PER_S)

/* What a node gets back at some moment. Amounts may be below 0: given away then. */
struct release {
	int64_t end_us;
	uint32_t node;
	int32_t whole, pods, closers; /* devices; pods; pods of jobs that are alone there */
	int64_t cpu, memory;
};

/* A hold on one node in time to come, and what the node has to spare when it begins. */
struct booked {
	uint32_t node;
	uint32_t job; /* planned start of a job; SNAP_NONE = of a reservation */
	uint32_t reservation; /* SNAP_NONE = of a job */
	int64_t start_us, end_us;
	bool alone; /* nobody else may be there */
	struct need need; /* of all its pods there */
	/* To spare; what amounts of the calendar keep there is not taken off: it depends on
	 * who asks, see future_spare(). */
	int64_t whole, cpu, memory, pods;
};

/* What a hold leaves to a job; may be below 0. */
struct spare {
	int64_t whole, cpu, memory;
};

/* A job that has a planned start. */
struct planned {
	uint32_t job, flavor;
	int64_t start_us;
	uint32_t place_first, n_places; /* into future.places */
	bool starving;
};

/* Node amounts at some moment; stands in for the cycle's own while planning. */
struct amounts {
	int64_t *cpu, *memory, *pods;
	uint16_t *whole, *tenants;
	uint64_t *usable, *vacant;
	struct bucket *buckets;
};

struct future {
	/* timeline: future.c, future_free.c */
	struct release *releases; /* by end */
	uint32_t n_releases, room_releases;
	bool sorted;
	bool stale; /* what runs changed in another way than by a start */
	int64_t *until; /* by device: when it is free; 0 = now, GPUQ_UNLIMITED = nobody knows */
	uint16_t *whole_now; /* by node: devices with until 0 */
	uint16_t *seated, *closers; /* by node: pods now and promised; those of jobs alone there */
	bool any_closer;
	uint16_t *closed; /* scratch, by node */
	struct amounts at, least; /* scratch: at one moment, and the least of several */

	/* what is planned: future_plan.c */
	struct booked *booked;
	uint32_t n_booked, room_booked;
	struct planned *planned; /* in the order in which they were planned */
	uint32_t n_planned, room_planned;
	struct place *places;
	uint32_t n_places, room_places;
	uint32_t *n_of_flavor; /* planned starts by flavor; [n_flavors] = without devices */
	/* By flavor, as above: planned starts of starving jobs, and their devices. */
	uint32_t *n_starving;
	int64_t *starving_milli;
	uint32_t n_tests, n_tries; /* jobs that asked for one; moments that were tried */
	uint16_t *rooms; /* scratch: whole devices by node as time goes on */

	/* starting beside it: future_pack.c */
	uint64_t *barred; /* scratch: nodes the calendar keeps from the job at hand */
	int64_t yield_us; /* of the places at hand: when they have to be left again; 0 = never */
	int64_t given_us; /* ...and for how long they are, when that was cut; 0 = it was not */

	/* calendar.c */
	uint64_t **slices; /* by reservation: its nodes; NULL = an amount anywhere */
};

/* How long a job that starts at t may run: its walltime, or what its deadline leaves of it
 * where it can do with less. */
int64_t future_walltime(const struct cycle *c, uint32_t job, int64_t t);
/* When a job that starts at t is gone: that and grace. */
int64_t future_end(const struct cycle *c, uint32_t job, int64_t t);

/* The timeline as it follows from the snapshot and the actions so far; made when first
 * asked, and again after it went stale. False and failed without memory. */
bool future_look_ahead(struct cycle *c);

/* What nodes have free at t, as one job sees it: when everything ends in time, and planned
 * starts and reservations (but its own) begin. */
void future_free_at(struct cycle *c, uint32_t job, int64_t t, struct amounts *out);
/* The same without what amounts of the calendar keep. */
void future_free_before_amounts(struct cycle *c, uint32_t job, int64_t t, struct amounts *out);
/* What a hold on a node leaves to a job that starts at t. */
struct spare future_spare(const struct cycle *c, const struct booked *b, uint32_t job, int64_t t);
/* The least of that from t to end. */
void future_free_throughout(struct cycle *c, uint32_t job, int64_t t, int64_t end,
			    struct amounts *out);

/* Is this hold in the way of a job that starts at t? */
bool future_bars(const struct cycle *c, const struct booked *b, uint32_t job, int64_t t);

/* Take (sign 1) or give back (-1) what stands on a node during [start, end) from what
 * others have to spare when they begin meanwhile. */
void future_spend(struct cycle *c, uint32_t node, int64_t start, int64_t end, const struct need *n,
		  int sign);

void future_sort(struct cycle *c); /* the releases */

/* The job's planned start, or NULL. */
const struct planned *future_planned(const struct future *f, uint32_t job);
/* It has none any more. */
void future_unplan(struct cycle *c, uint32_t job);
/* Find the first moment at which the job could start on that flavor, and hold its places
 * from then on. A starving job may have those that are free now. */
bool future_plan(struct cycle *c, uint32_t job, uint32_t flavor, bool starving);

/* Jobs that run ahead of what is planned leave in time for it. */
void future_yield(struct cycle *c);
void future_evict(struct cycle *c, uint32_t job, enum gpuq_cause cause, uint32_t claimant,
		  const char *rule);
/* Was it told to leave in this cycle? */
bool future_leaves(const struct cycle *c, uint32_t job);
/* Another plan may come out at t. */
void future_wake(struct cycle *c, int64_t t);

/* Jobs that have waited too long get their planned starts before all others. */
void future_starving(struct cycle *c);

/* calendar.c */

/* Its sets of nodes; before the timeline. Its amounts; before anything is planned. */
void calendar_enter_nodes(struct cycle *c);
void calendar_enter_amounts(struct cycle *c);
/* May the job (SNAP_NONE: may not) use what the reservation keeps? */
bool calendar_owns(const struct cycle *c, uint32_t reservation, uint32_t job);
/* Does the job run on what is reserved for it, and not for the claimant? */
bool calendar_shields(const struct cycle *c, uint32_t job, uint32_t claimant);
/* A reservation of whole nodes that keeps the job from some of them during [t, end);
 * SNAP_NONE = none. out (may be NULL) gets all those nodes, c->n_words words. */
uint32_t calendar_bars(const struct cycle *c, uint32_t job, int64_t t, int64_t end, uint64_t *out);
/* When a reservation of whole nodes takes that node from the job, at the earliest (now,
 * when it has begun); `before` when that is sooner. */
int64_t calendar_takes(const struct cycle *c, uint32_t job, uint32_t node, int64_t before);
/* When a begun reservation will tell a running job to leave, but for its grace;
 * GPUQ_UNLIMITED = none does. */
int64_t calendar_clears(const struct cycle *c, uint32_t job);
/* The next moment after t and before next at which a reservation begins or ends; else
 * next. */
int64_t calendar_next(const struct cycle *c, int64_t t, int64_t next);
/* An owner's pod was started: its reservation keeps as much less. */
void calendar_used(struct cycle *c, uint32_t job, uint32_t node, uint32_t whole);

#endif
