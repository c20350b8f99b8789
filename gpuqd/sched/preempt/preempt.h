/* preempt.h - victims, so that a blocked job can start
 *
 * Owns     the units that can be preempted, the entitlement of running work, and the search for
 *          victims.
 * Touches  memory only.
 * Used by  sched.c (preempt_job), elastic.c, and the other files of preempt/.
 *
 * A unit is preempted as a whole: all pods that a job requires (its gang), or a pod beyond that
 * (surplus; where pods must be together, a set of them). A queue holds for good what runs there and
 * is not ending, and what was nominated.
 *
 * Entitlement of running work inside a subtree y: its units in order of entitlement (not
 * preemptible first; by entitlement in the leaf; gangs before surplus; priority; the longer
 * running; id) are filled first-fit into a line: the quota of y, or the larger of quota and fair
 * share. A unit that fits is inside. */
#ifndef GPUQD_SCHED_PREEMPT_PREEMPT_H
#define GPUQD_SCHED_PREEMPT_PREEMPT_H

#include "gpuqd/sched/quota/cycle.h"

enum line { LINE_QUOTA, LINE_SHARE /* the larger of quota and fair share */, N_LINES };

struct unit {
	uint32_t job, queue;
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
	struct unit *units;
	uint32_t n_units, room_units;
	int64_t *amounts; /* unit u, resource r: [u * n_res + r] */
	uint32_t n_amounts, room_amounts;
	uint32_t *pods;
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

/* The rules by which a victim is preempted; gpuqd-scheduling(7), Rules. */
enum claim_rule { RULE_NONE, RULE_QUOTA, RULE_SHARE, RULE_BORROW, RULE_OWN };

/* Cpu, memory: what a preemptor may lack on nodes where it has devices. */
enum claim_short { SHORT_CPU = 1, SHORT_MEMORY = 2 };

/* The entitlement of a unit in its leaf. */
enum claim_depth { DEPTH_QUOTA, DEPTH_SHARE, DEPTH_BEYOND };

/* A victim of the current plan. */
struct victim {
	uint32_t unit;
	enum claim_rule rule;
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

/* The current claim. */
struct claim {
	uint32_t job, flavor, leaf;
	int64_t priority;
	int64_t *need; /* by resource */
	uint32_t number, turn; /* turn: another with each victim */
	uint32_t plan; /* of a set that is evaluated as a whole; 0 = none is */
	struct victim *victims;
	uint32_t n_victims, room_victims;
	int64_t free_milli; /* devices that are free when everything that is ending now has ended */
	uint32_t n_packs; /* how often the gang was tried */
	bool own, others; /* which victims are evaluated */
	bool tangled; /* a unit inside a line was taken at some time: units outside now may have
		       * been inside before that */
	bool growth; /* by a running job: for pods beyond its gang */
	bool reordered; /* victims are in another order than they were first taken in */
	bool outside; /* of others only units outside their lines */
	bool surplus; /* only surplus of one leaf, up to a priority */
	uint32_t surplus_leaf;
	int64_t surplus_priority;
	bool largest; /* of it the largest first, where a node is cleared */
	bool movers; /* others may be relocated as well, so that the capacity of its victims is in
		      * one piece */
	uint32_t n_moves; /* how often that was tried */
	bool (*fits)(struct cycle *c, void *ctx); /* true if there is room; NULL = for the gang */
	void *fits_ctx;
	uint32_t rests_with; /* queue that it must not reclaim from for a while; SNAP_NONE */
	int64_t rests_until_us; /* the end of that */
	int64_t spare_milli; /* the least excess that was too large; 0 = none was */
	int64_t spare_max; /* devices that victims may hold beyond the request in this search */
	enum plan_bounded bound; /* that ended a search; N_PLAN_BOUNDS = none did */
	int64_t bound_most;
	bool over_spare; /* some unit could not be taken because of that */
	bool owed_alone; /* of others only what is within the quota of its queue */
	bool only_quota; /* it was preempted so recently that it only reclaims within its quota */
};

/* True if it was preempted so recently that it preempts only for its queue's quota. */
bool preempt_only_quota(const struct cycle *c, uint32_t job);
void preempt_unit_leaves(struct cycle *c, uint32_t unit); /* its pods were signalled */
/* Carry out the decided claim, whose victims are tentatively removed while nodes are in their later
 * state: they are ending from now on, and nodes return to their current state. */
void preempt_let_go(struct cycle *c, const struct claim *k);
void preempt_emit_victims(struct cycle *c, const struct claim *k);

/* Make room for a blocked job: places of its victims are nominated for it. *flavor = on which. All
 * actions are in the plan. */
bool preempt_job(struct cycle *c, uint32_t job, uint32_t *flavor);

#endif
