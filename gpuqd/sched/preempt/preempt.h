/* preempt.h - who has to leave so that a blocked job can start
 *
 * Owns     the units that could leave, the standing of running work, and the search
 *          for those whose places a claimant may take.
 * Touches  memory only.
 * Used by  sched.c (preempt_job, grow_*, promise_*), the claim's own files.
 *
 * A unit is what leaves as one: all pods of a job that it cannot do without (its gang),
 * or a pod beyond that (surplus; where pods stand together, a group of them). What a
 * queue holds for good is what runs there and does not leave, and what was promised.
 *
 * Standing of running work inside a subtree y: its items in order of entitlement (what
 * cannot be evicted; by standing in the leaf; gangs before surplus; priority; the
 * longer running; id) are filled first-fit into a line, the guarantee of y or the
 * larger of guarantee and fair share. What fits is inside.
 */
#ifndef GPUQD_SCHED_PREEMPT_PREEMPT_H
#define GPUQD_SCHED_PREEMPT_PREEMPT_H

#include "gpuqd/sched/quota/cycle.h"

enum line { LINE_QUOTA, LINE_SHARE /* the larger of quota and fair share */, N_LINES };

struct unit {
	uint32_t job, queue;
	uint32_t pod_first, n_pods; /* into units.pods: allocs of the snapshot */
	int64_t priority, start_us;
	int64_t in_line_us; /* submit, where newer jobs of its queue go for older ones; else 0 */
	int64_t lost; /* device-milliseconds of work that are done again */
	int64_t gpus_milli;
	bool surplus; /* else a gang */
	bool fixed; /* nobody may take it */
	bool firm; /* for it cannot be evicted at all */
	bool soft; /* promised what leaves anyway: it may yet go to somebody else */
	bool evict_last;
	bool gone; /* taken: in the plan at hand or for good */
	uint8_t depth; /* enum claim_depth, at the beginning of a claim */
	uint8_t leaf_class; /* inside the leaf's quota, inside its share, beyond */
	uint32_t ordinal; /* of a surplus: how many of its job's stand before it */
	uint32_t gang; /* of a surplus: the unit of its job's gang */
	uint32_t surplus_left; /* of a gang: units of its surplus that are not gone */
	uint32_t rank; /* in the order in which victims are taken, over all queues */
	/* Of each line: the claim at hand in which it, outside, let another be taken. */
	uint32_t justifies[N_LINES];
	uint32_t refused; /* turn of a claim in which it was asked and could not go */
	uint32_t planned; /* plan in which it goes as well, and can justify nobody's taking */
};

/* Of one queue: the items of its subtree, and which stand inside which line. */
struct standing {
	uint32_t *items; /* units by entitlement; NULL = never asked */
	uint32_t n_items;
	uint8_t fresh; /* lines that are those of what is not gone, a bit for each */
	bool ordered; /* as the leaves' lines say */
	bool classed; /* a leaf: its units know how they stand in its lines */
	uint32_t depths; /* a leaf: the claim at whose beginning its units have their depths */
};

struct units {
	struct unit *units;
	uint32_t n_units, room_units;
	int64_t *amounts; /* unit u, resource r: [u * n_res + r] */
	uint32_t n_amounts, room_amounts;
	uint32_t *pods;
	uint32_t n_pods, room_pods;
	uint32_t *of_alloc; /* by alloc: its unit; SNAP_NONE = it leaves already */
	uint32_t *leaf_first, *leaf_next; /* units of each leaf */
	uint32_t n_leaf_next, room_leaf_next;
	uint32_t *by_rank; /* units that may be taken, in the order of victims */
	uint32_t n_by_rank;
	/* In the same order: units of each leaf, units with a pod on each node. */
	uint32_t *line_first, *line_units, *node_first, *node_units;
	/* Unit u, its queue at depth d: [u * n_depths + d], a bit for each line. */
	uint8_t *inside;
	uint32_t n_inside, room_inside;
	uint32_t n_depths;
	struct standing *standings; /* by queue */
	bool any_soft;
	uint8_t lacks; /* what the claimant at hand lacks and its devices are not; enum claim_short */
	uint32_t n_claims; /* numbers for justifies, refused and planned */
	int64_t *left; /* scratch: what is left of a line, by resource; for each line */
};

/* Which of the rules of preemption a victim is taken by; gpuqd-scheduling(7) has them. */
enum claim_rule { RULE_NONE, RULE_QUOTA, RULE_SHARE, RULE_BORROW, RULE_OWN };

/* Cpu, memory: what a claimant may lack on nodes where it has devices. */
enum claim_short { SHORT_CPU = 1, SHORT_MEMORY = 2 };

/* How a unit stands in its leaf. */
enum claim_depth { DEPTH_QUOTA, DEPTH_SHARE, DEPTH_BEYOND };

/* A victim of the plan at hand. */
struct victim {
	uint32_t unit;
	enum claim_rule rule;
	uint32_t side; /* the queue beside the claimant's: child of their common ancestor */
	uint8_t must_keep; /* lines that `side` may not fall below when all is taken */
	uint32_t instead[N_LINES]; /* what stands outside and could have gone; SNAP_NONE */
	bool simple; /* stood outside: taken by nobody's leave */
	uint8_t stood; /* RULE_OWN: inside which lines of the leaf, a bit for each */
	enum claim_depth depth; /* how it stood in its leaf when it was taken */
};

/* What a set of victims costs, compared from the first to the last. */
struct claim_cost {
	int64_t depth_milli[DEPTH_BEYOND]; /* devices from inside quotas, from inside fair shares */
	int64_t priority; /* the highest */
	uint32_t last; /* that are to be evicted last */
	int64_t oldest_us; /* the first in line of them, where that counts; else INT64_MAX */
	int64_t lost; /* device-milliseconds of work that are done again */
	uint32_t gangs; /* that are broken */
	int64_t gone_milli; /* all their devices */
};

/* The claim at hand. */
struct claim {
	uint32_t job, flavor, leaf;
	int64_t priority;
	int64_t *need; /* by resource */
	uint32_t number, turn; /* turn: another with each victim */
	uint32_t plan; /* of a set that is looked at as a whole; 0 = none is */
	struct victim *victims;
	uint32_t n_victims, room_victims;
	int64_t free_milli; /* devices that are free when all has left that leaves now */
	uint32_t n_packs; /* how often the gang was tried */
	bool own, others; /* which victims are looked at */
	bool tangled; /* somebody who stood inside was taken at some time: who stands outside
		       * now may have stood inside without that */
	bool growth; /* of a job that runs: by pods beyond its gang */
	bool reordered; /* victims stand in another order than they were taken in at first */
	bool outside; /* of others only what stands outside their lines */
	bool surplus; /* only surplus of one leaf, up to a priority */
	uint32_t surplus_leaf;
	int64_t surplus_priority;
	bool largest; /* of it the largest first, where a node is cleared */
	bool movers; /* others may be moved as well, so that what its victims leave lies together */
	uint32_t n_moves; /* how often that was tried */
	bool (*fits)(struct cycle *c, void *ctx); /* is there room? NULL = for the gang */
	void *fits_ctx;
	uint32_t rests_with; /* queue that it may claim nothing from for a while; SNAP_NONE */
	int64_t rests_until_us; /* the end of that */
	int64_t spare_milli; /* the least that was too much to be left over; 0 = nothing was */
	int64_t spare_max; /* devices that victims may hold beyond the request in this search */
	enum plan_bounded bound; /* that ended a search; N_PLAN_BOUNDS = none did */
	int64_t bound_most;
	bool over_spare; /* something could not be taken for that */
	bool owed_alone; /* of others only what the quota of its queue is owed */
	bool only_quota; /* its own eviction is so recent that it claims what it is owed only */
};

/* Was it evicted so lately that it makes others leave only for what it is owed? */
bool preempt_only_quota(const struct cycle *c, uint32_t job);
void preempt_unit_leaves(struct cycle *c, uint32_t unit); /* its pods have been told */
/* The claim is decided, its victims gone in thought while nodes stand as they will: they
 * leave from now on, and nodes stand as they are. */
void preempt_let_go(struct cycle *c, const struct claim *k);
void preempt_emit_victims(struct cycle *c, const struct claim *k);

/* Make a blocked job room: it is promised places that others leave. *flavor = on
 * which. The plan has all that follows. */
bool preempt_job(struct cycle *c, uint32_t job, uint32_t *flavor);

#endif
