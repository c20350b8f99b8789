/* claim.h - who has to leave so that a blocked job can start
 *
 * Owns     the units that could leave, the standing of running work, and the search
 *          for those whose places a claimant may take.
 * Touches  memory only.
 * Used by  sched.c (claim_job, grow_*, promise_*), the claim's own files.
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
#ifndef GPUQD_CORE_CLAIM_H
#define GPUQD_CORE_CLAIM_H

#include "gpuqd/core/cycle.h"

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
	uint32_t n_claims; /* numbers for justifies, refused and planned */
	int64_t *left; /* scratch: what is left of a line, by resource; for each line */
};

/* Which of the rules a victim is taken by (scheduling: reclaim under the guarantee, on
 * the fair share, borrowers of lower priority, jobs of one's own queue). */
enum claim_rule { RULE_NONE, RULE_QUOTA, RULE_SHARE, RULE_BORROW, RULE_OWN };
extern const char *const claim_rule_words[];

/* A victim of the plan at hand. */
struct victim {
	uint32_t unit;
	enum claim_rule rule;
	uint32_t side; /* the queue beside the claimant's: child of their common ancestor */
	uint8_t must_keep; /* lines that `side` may not fall below when all is taken */
	uint32_t instead[N_LINES]; /* what stands outside and could have gone; SNAP_NONE */
	bool simple; /* stood outside: taken by nobody's leave */
	uint8_t stood; /* RULE_OWN: inside which lines of the leaf, a bit for each */
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
	bool only_quota; /* its own eviction is so recent that it claims what it is owed only */
};

/* units.c */
bool units_make(struct cycle *c); /* once in a cycle; false without memory */
/* What a job that runs gets more in this cycle counts as held from now on; by resource. */
void units_add_more(struct cycle *c, uint32_t job, const int64_t *amounts, bool surplus);
int64_t unit_amount(const struct cycle *c, uint32_t unit, uint32_t res);
/* Take a unit away, in thought: its places are free and its queues hold less. */
void unit_take(struct cycle *c, uint32_t unit);
void unit_put_back(struct cycle *c, uint32_t unit);

bool units_index(struct cycle *c); /* line_units and node_units; false without memory */

/* standing.c */
int64_t line_of(const struct cycle *c, uint32_t queue, uint32_t res, enum line line);
/* What the queue holds for good. */
int64_t stays(const struct cycle *c, uint32_t queue, uint32_t res);
/* Does it hold the line, of all that the claim asks for, without the unit (SNAP_NONE = all
 * stay), without who goes in the same plan and without what may yet go to somebody else? */
bool line_kept(struct cycle *c, const struct claim *k, uint32_t queue, enum line line,
	       uint32_t unit);
/* Does it hold more than the line, of something that the claim asks for? */
bool beyond(const struct cycle *c, const struct claim *k, uint32_t queue, enum line line);
bool stands_inside(struct cycle *c, uint32_t unit, uint32_t queue, enum line line);
/* Is it of the flavor that the claim asks for, or of none? What has devices of another
 * flavor frees nothing for it. */
bool claim_concerns(const struct cycle *c, const struct claim *k, uint32_t unit);
/* May the unit go without harm to what the queue is due on that line? *must_keep = it
 * may when the queue does not fall below the line by the whole plan; *instead = an item
 * that now justifies this one, SNAP_NONE = none. */
bool unit_is_free(struct cycle *c, const struct claim *k, uint32_t unit, uint32_t queue,
		  enum line line, bool *must_keep, uint32_t *instead);
void standing_changed(struct cycle *c, uint32_t unit);
/* How the claimant itself would stand in its leaf: 0 inside the quota, 1 inside the fair
 * share, 2 beyond. `all` = with all that stays there; else without what it may displace. */
uint8_t claimant_stands(struct cycle *c, const struct claim *k, bool all);

/* rules.c */
/* The queues on either side below the nearest common ancestor of two leaves; of one leaf
 * with itself, that leaf. */
void claim_below_common(const struct cycle *c, uint32_t a, uint32_t b, uint32_t *x, uint32_t *y);
/* The rule by which the unit may be taken now, with the victims so far gone; RULE_NONE. */
enum claim_rule claim_legal(struct cycle *c, struct claim *k, uint32_t unit, struct victim *v);
/* All victims again one after the other, and what holds for the plan as a whole. */
bool claim_valid(struct cycle *c, struct claim *k);
/* Is the unit, of the claimant's queue, one that yields to it by priority or age? */
bool claim_goes_before(const struct cycle *c, const struct claim *k, const struct unit *u);
/* Is the unit out of this claimant's reach whatever its queue is due? */
bool claim_shielded(const struct cycle *c, const struct claim *k, uint32_t unit);
/* May it take anything from other queues at all, whoever runs there? */
bool claim_on_others_possible(const struct cycle *c, const struct claim *k);
/* Does anything allow this job to claim at all? A cheap no for most. */
bool claim_possible(const struct cycle *c, const struct claim *k);

/* Started so lately that jobs of its own queue may not displace it. */
bool claim_too_young(struct cycle *c, uint32_t unit);

/* claim_why.c: the numbers of a claim that is decided, its victims gone in thought and it
 * itself not yet charged. */
void claim_explain(struct cycle *c, const struct claim *k);

/* claim.c */
/* Was it evicted so lately that it makes others leave only for what it is owed? */
bool claim_only_quota(const struct cycle *c, uint32_t job);
void claim_unit_leaves(struct cycle *c, uint32_t unit); /* its pods have been told */
/* The claim is decided, its victims gone in thought while nodes stand as they will: they
 * leave from now on, and nodes stand as they are. */
void claim_let_go(struct cycle *c, const struct claim *k);
void claim_emit_victims(struct cycle *c, const struct claim *k);

/* victims.c: find victims with whom gone the job fits; all legal, none needless. */
bool victims_find(struct cycle *c, struct claim *k);
bool claim_take(struct cycle *c, struct claim *k, uint32_t unit);
void claim_drop_last(struct cycle *c, struct claim *k);
void claim_drop_all(struct cycle *c, struct claim *k);
/* Devices that its victims hold. */
int64_t claim_gone_milli(const struct cycle *c, const struct claim *k);
/* Of victims with whom gone it fits give back whoever need not go, take cheaper ones where
 * they serve as well, and look at all rules once more. */
bool claim_improve(struct cycle *c, struct claim *k);
/* The first of that alone. False: no memory. */
bool claim_fewer(struct cycle *c, struct claim *k);
/* Does the gang fit now, with what leaves gone? */
bool claim_fits(struct cycle *c, struct claim *k);

/* move.c: make room by moving others, of which none loses its place; the claim's victims,
 * if it has any, leave as well. */
bool move_for(struct cycle *c, struct claim *k);
/* Would it have room? Nothing is changed. */
bool move_fits(struct cycle *c, struct claim *k);

#endif
