/* preempt_int.h - the units, the victims and the claim, as the files of preempt/ see them
 *
 * Owns     the tables' shape; gangs.c makes the units, preempt.c and surplus.c a claim.
 * Touches  memory only.
 * Used by  the files of preempt/ alone. */
#ifndef GPUQD_SCHED_PREEMPT_PREEMPT_INT_H
#define GPUQD_SCHED_PREEMPT_PREEMPT_INT_H

#include "gpuqd/sched/preempt/preempt.h"

struct unit {
	uint32_t job, queue; /* of the snapshot */
	uint32_t pod_first, n_pods; /* into units.pods: allocs of the snapshot */
	int64_t priority, start_us;
	int64_t in_line_us; /* submit, where newer jobs of its queue yield to older ones; else 0 */
	int64_t lost; /* device-milliseconds of work that are redone */
	int64_t gpus_milli;
	bool surplus; /* else a gang */
	bool fixed; /* not available as a victim */
	bool firm; /* because it is not preemptible at all */
	bool soft; /* nominated on capacity that is being released anyway: it may yet be
		    * withdrawn */
	bool evict_last;
	bool gone; /* preempted: in the current plan or for good */
	uint8_t depth; /* enum claim_depth, at the start of a claim */
	uint8_t leaf_class; /* within the leaf's quota, within its share, beyond */
	uint32_t ordinal; /* of a surplus: how many of its job's come before it */
	uint32_t gang; /* of a surplus: the unit of its job's gang */
	uint32_t surplus_left; /* of a gang: units of its surplus that are not gone */
	uint32_t rank; /* in the order of victims, over all queues */
	/* By line: the claim in which this unit, outside, let another be preempted. */
	uint32_t justifies[N_LINES];
	uint32_t refused; /* turn of a claim in which it was refused */
	uint32_t planned; /* plan that preempts it as well, so that it can justify no other
			   * victim */
};

/* The units in the subtree of one queue, and which are inside which line. */
struct standing {
	uint32_t *items; /* units by entitlement; NULL = not made yet */
	uint32_t n_items;
	uint8_t fresh; /* lines that are up to date with the units not gone, a bit for each */
	bool ordered; /* by the classes of the leaves */
	bool classed; /* a leaf: its units know their classes */
	uint32_t depths; /* a leaf: the claim at whose start the depths of its units were set */
};

struct units {
	struct unit *units; /* gangs, and sets of pods beyond them */
	uint32_t n_units, room_units;
	int64_t *amounts; /* unit u, resource r: [u * n_res + r] */
	uint32_t n_amounts, room_amounts;
	uint32_t *pods; /* of all units */
	uint32_t n_pods, room_pods;
	uint32_t *of_alloc; /* by alloc: its unit; SNAP_NONE = it is ending already */
	uint32_t *leaf_first, *leaf_next; /* units of each leaf */
	uint32_t n_leaf_next, room_leaf_next;
	uint32_t *by_rank; /* units that may be victims, in their order */
	uint32_t n_by_rank;
	/* In the same order: units of each leaf, units with a pod on each node. */
	uint32_t *line_first, *line_units, *node_first, *node_units;
	/* Unit u, its queue at depth d: [u * n_depths + d], a bit for each line. */
	uint8_t *inside;
	uint32_t n_inside, room_inside;
	uint32_t n_depths;
	struct standing *standings; /* by queue */
	bool any_soft;
	uint8_t lacks; /* what the current preemptor lacks when it lacks no devices; enum
		        * claim_short */
	uint32_t n_claims; /* numbers for justifies, refused and planned */
	int64_t *left; /* scratch: what is left of a line, by resource; for each line */
};

/* A victim of the current plan. */
struct victim {
	uint32_t unit; /* index */
	enum claim_rule rule; /* that allows it */
	uint32_t side; /* the queue on its side: child of the common ancestor with the preemptor */
	uint8_t must_keep; /* lines that `side` must not fall below by the whole plan */
	uint32_t instead[N_LINES]; /* the unit outside that could have been preempted; SNAP_NONE */
	bool simple; /* was outside: needs no other unit to justify it */
	uint8_t stood; /* RULE_OWN: the lines of the leaf that it was inside, a bit for each */
	enum claim_depth depth; /* its entitlement in its leaf when it was taken */
};

/* The cost of a set of victims, compared from the first to the last. */
struct claim_cost {
	int64_t depth_milli[DEPTH_BEYOND]; /* devices from within quotas, from within fair shares */
	int64_t priority; /* the highest */
	uint32_t last; /* number of those that are to be preempted last */
	int64_t oldest_us; /* their earliest in queue order, where that counts; else INT64_MAX */
	int64_t lost; /* device-milliseconds of work that are redone */
	uint32_t gangs; /* number broken */
	int64_t gone_milli; /* all their devices */
};

/* How a search goes, set for it by its caller; and what it found, from CLAIM_TANGLED on. */
enum claim_mode {
	CLAIM_OWN = 1 << 0, /* victims of its own queue are evaluated */
	CLAIM_OTHERS = 1 << 1, /* victims of other queues are evaluated */
	CLAIM_GROWTH = 1 << 2, /* by a running job: for pods beyond its gang */
	CLAIM_OUTSIDE = 1 << 3, /* of others only units outside their lines */
	CLAIM_SURPLUS = 1 << 4, /* only surplus of one leaf, up to a priority: claim.surplus */
	CLAIM_LARGEST = 1 << 5, /* of it the largest first, where a node is cleared */
	CLAIM_MOVERS = 1 << 6, /* others may be relocated as well, so that the capacity of its
				* victims is in one piece */
	CLAIM_OWED_ALONE = 1 << 7, /* of others only what is within the quota of its queue */
	CLAIM_ONLY_QUOTA = 1 << 8, /* it was preempted so recently that it only reclaims within its
				    * quota */
	CLAIM_TANGLED = 1 << 9, /* a unit inside a line was taken at some time: units outside now
				 * may have been inside before that */
	CLAIM_REORDERED = 1 << 10, /* victims are in another order than they were first taken in */
	CLAIM_OVER_SPARE = 1 << 11, /* some unit could not be taken because of claim.spare_max */
};

/* Numbers of units.n_claims that units are marked with. */
struct claim_stamp {
	uint32_t number; /* of this claim */
	uint32_t turn; /* another with each victim */
	uint32_t plan; /* of a set that is evaluated as a whole; 0 = none is */
};

struct victim_set {
	struct victim *items; /* in the order in which they were taken */
	uint32_t n, room;
};

/* The surplus that CLAIM_SURPLUS allows. */
struct claim_surplus {
	uint32_t leaf;
	int64_t priority;
};

/* The test of whether there is room: fits NULL = for the gang. */
struct claim_room {
	bool (*fits)(struct cycle *c, void *ctx);
	void *ctx; /* for `fits' */
};

/* How often the gang was tried, and relocations for it. */
struct claim_tries {
	uint32_t packs, moves; /* so far, against their bounds */
};

/* Why searches found nothing, for the reasons of the job. */
struct claim_told {
	uint32_t rests_with; /* queue that it must not reclaim from for a while; SNAP_NONE */
	int64_t rests_until_us; /* the end of that */
	int64_t spare_milli; /* the least excess that was too large; 0 = none was */
	enum plan_bounded bound; /* that ended a search; N_PLAN_BOUNDS = none did */
	int64_t bound_most;
};

#define CLAIM_TOLD_NOTHING                                                                         \
	{                                                                                          \
		.rests_with = SNAP_NONE, .bound = N_PLAN_BOUNDS                                    \
	}

/* The current claim. */
struct claim {
	uint32_t job, flavor, leaf; /* leaf: its queue */
	int64_t priority;
	int64_t *need; /* by resource */
	unsigned modes; /* enum claim_mode, or'ed: claim_is(), claim_set() */
	struct claim_stamp stamp;
	struct victim_set victims; /* so far */
	int64_t free_milli; /* devices that are free when everything that is ending now has ended */
	int64_t spare_max; /* devices that victims may hold beyond the request in this search */
	struct claim_surplus surplus;
	struct claim_room room; /* whether the preemptor fits now */
	struct claim_tries tries;
	struct claim_told told; /* for its reasons */
};

/* True if one of these modes, or'ed, is set. */
static inline bool claim_is(const struct claim *k, unsigned modes)
{
	return k->modes & modes;
}

/* Set modes, or'ed, or clear them. Returns `on'. */
static inline bool claim_set(struct claim *k, unsigned modes, bool on)
{
	k->modes = on ? k->modes | modes : k->modes & ~modes;
	return on;
}

/* True if it was preempted so recently that it preempts only for its queue's quota. */
bool preempt_only_quota(const struct cycle *c, uint32_t job);
void preempt_unit_leaves(struct cycle *c, uint32_t unit); /* its pods were signalled */
/* Carry out the decided claim, whose victims are tentatively removed while nodes are in their later
 * state: they are ending from now on, and nodes return to their current state. */
void preempt_let_go(struct cycle *c, const struct claim *k);
void preempt_emit_victims(struct cycle *c, const struct claim *k);

#endif
