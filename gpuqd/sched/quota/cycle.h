/* cycle.h - the working state of one scheduling cycle
 *
 * Owns     what is free on nodes as decisions are taken, what queues hold, whose turn
 *          it is, and the plan as it grows. Everything lives in the cycle's arena.
 * Touches  memory only.
 * Used by  sched.c, which reads as the policy; each part below has a file of its own.
 *
 * The snapshot is never changed. Memory running out sticks in `failed`, and the cycle
 * as a whole then fails; functions here may return anything after that.
 */
#ifndef GPUQD_SCHED_QUOTA_CYCLE_H
#define GPUQD_SCHED_QUOTA_CYCLE_H

#include "gpuqd/util/bits.h"
#include "gpuqd/snapshot/links.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"

/* How nodes are chosen. All but the first are there to be compared with. */
enum pack_policy { PACK_DEFAULT, PACK_BESTFIT, PACK_FGD };

/* Nodes with the same number of free whole devices. */
struct bucket {
	uint64_t *set; /* NULL until a node comes in */
	uint32_t n;
	uint32_t from; /* no word of the set before this one has any */
};

/* Where pods under some constraints may stand, whatever is free there: made when first
 * asked. */
struct group_fit {
	uint64_t *nodes; /* NULL = not asked yet */
	uint32_t n_nodes;
	uint64_t **tiers; /* the same nodes by preference, best first; NULL = all alike */
	uint32_t n_tiers;
};

/* What one pod takes from a node (or several of them; parts and part_memory stay those of
 * one then). Of whole, parts and migs at most one is not 0. */
struct need {
	uint32_t whole; /* devices */
	uint32_t parts; /* devices of which it takes a part each */
	int32_t part; /* thousandths of each of those, 1..999; 0 = as part_memory says */
	int64_t part_memory; /* bytes of each of those; 0 = in proportion to part */
	uint32_t migs, profile; /* instances of a profile */
	int64_t cpu, memory, pods;
};

/* The devices that a pod's parts would go to. */
struct parts {
	int32_t part; /* thousandths of each */
	int32_t from; /* free on the last of them */
	int32_t left; /* left free on all of them */
	uint32_t opened; /* of them were not in use */
};

/* A pod that has been given a place; undone or turned into a plan_pod. */
struct place {
	uint32_t group, index, node;
	uint32_t device_first, n_devices; /* into cycle.place_devices */
	int32_t milli;
};

/* Jobs of which one failing means that all fail, in this cycle. */
struct job_class {
	bool blocked;
	int64_t from_walltime_us; /* blocked are only those that run as long; 0 = all */
	int64_t from_least_us; /* ...and cannot do with less than this */
	struct plan_why why;
	uint32_t flavor_at; /* the first of its flavors that was not found full */
};

/* What is free where pods under some constraints may stand, on one flavor (feasibility.c). */
struct glance {
	uint32_t generation; /* actions + 1 when it was taken; 0 = never */
	int64_t devices, largest; /* free whole devices: in sum, on one node */
	/* By number of devices, 0..max_whole: the most of one node with at least as many free. */
	int64_t *cpu, *memory;
};

/* Whether a request could be met if nothing ran (reasons.c); made when first asked. */
struct request_verdict {
	bool known, never;
	struct plan_reason why;
};

/* Order of service of one queue, and the next of a run in it (order.c). */
struct turn;
struct waiter;

struct cycle {
	struct reversals *reversals; /* oscillation.c; NULL = nobody asked yet */
	const struct snapshot *s;
	struct gpuq_arena *mem;
	struct gpuq_arena scratch; /* until the next job is tried */
	bool failed;
	uint64_t steps;

	/* nodes.c: what is free */
	uint32_t n_words;
	int64_t *cpu, *memory, *pods; /* free; GPUQ_UNLIMITED = not counted */
	uint16_t *whole; /* free whole devices */
	uint16_t *withheld; /* free whole devices kept for planned starts, not in whole */
	uint16_t *tenants; /* pods of ours */
	int16_t *device_free; /* by snapshot.devices */
	int64_t *device_memory; /* free bytes, by snapshot.devices; nothing where not known */
	int32_t *mig_free; /* as snapshot.mig_free */
	struct bucket *buckets; /* by free whole devices, 0..max_whole; usable nodes */
	uint32_t max_whole;
	uint64_t *usable; /* ready, and not closed by an exclusive tenant */
	uint64_t *ready; /* ready by state */
	uint64_t *parted; /* has a device that is partly taken */
	uint64_t *gpuless; /* has no devices at all, nor instances */
	uint64_t *migs; /* has instances of some profile */
	uint64_t *vacant; /* has no tenants */
	uint64_t **flavors; /* nodes of each flavor */
	struct links *links; /* by snapshot.joints; no devices = table not made yet */
	int64_t cpu_per_device, mib_per_device; /* of the cluster, per 1024 devices */

	/* By flavor: thousandths of devices free once all has left that leaves, and after how
	 * many actions they were counted (plus one; 0 = never). */
	int64_t *free_milli;
	uint32_t *free_counted;
	struct later *later; /* nominated.c; NULL until something leaves or is promised */
	uint64_t *promised; /* jobs whose promises hold */
	bool in_later; /* nodes stand as when all that leaves has left */

	/* feasibility.c: where groups may stand */
	struct group_fit *fits; /* by snap_request.where */
	uint64_t *skip; /* scratch: nodes that the job at hand excludes */
	const uint64_t *barred; /* more of them; NULL = none (calendar) */
	struct request_verdict *verdicts; /* by request */
	struct glance *glances; /* by where, then flavor (n_flavors = none) */

	/* pack.c: places of the job at hand */
	struct place *places;
	uint32_t n_places, room_places;
	uint32_t *place_devices;
	uint32_t n_place_devices, room_place_devices;
	uint32_t *rank_nodes, *rank_scratch; /* scratch, n_nodes each */
	uint32_t *rank_room, *rank_left, *rank_count;

	/* score.c */
	enum pack_policy policy;
	bool unhurried; /* grade as many nodes as it takes */
	struct grading *grading; /* NULL until a single pod is placed */
	int64_t part_cpu; /* scratch: cpu that comes with the part at hand */
	bool spread; /* the job at hand prefers empty nodes */
	uint32_t request, flavor; /* of the job at hand */

	/* topology.c */
	struct level **levels; /* those asked for so far */
	uint32_t n_levels, room_levels;
	struct tree **trees; /* as well */
	uint32_t n_trees, room_trees;
	const uint64_t *domain; /* that the whole job at hand stands in; NULL = none yet */
	const uint64_t *near; /* that it would rather stand in, inside domain; NULL = none */
	uint32_t n_tries; /* domains tried for all roles of it together */

	uint32_t idle_future; /* actions + 1 when nothing that runs was seen to end; 0 = never */
	bool any_starving; /* somebody has waited longer than starve_us */
	struct future *future; /* timeline.c; NULL until somebody is blocked */
	bool withholding; /* planned starts are being left what they count on */
	bool planning; /* nodes stand for a later moment */
	bool counting; /* ...and whole devices are counted there, not named */

	/* holdings.c: queues, by [q * n_res + r] */
	int64_t *held; /* what runs or leaves holds, or was promised */
	int64_t *leaving; /* the part of it that has been told to leave */
	int64_t *firm; /* the part of it that cannot be evicted */
	int64_t *demand; /* running and waiting, capped by limits */
	int64_t *idle; /* by resource: held by no queue; what others use is not known here */
	int64_t *fair;
	int64_t *running; /* jobs, by queue: those that run or leave, or were promised a start */
	int64_t *parting; /* those of them that leave */
	int64_t *least_priority; /* by queue, of its own jobs that run and may be evicted */
	bool *stopped; /* by queue: it or an ancestor is */
	bool *per_user; /* by queue: some limit on the path counts users */
	bool lends_limited;
	struct cap_use *cap_uses; /* caps.c: by cap; NULL = there are none */
	struct budgets *budgets; /* budget.c; NULL = no queue has one */
	uint32_t *kid_first, *kid_next; /* children by age; kid_first[n_queues] = the root's */
	const int64_t *more; /* by resource: what is asked for instead of the request; NULL */
	int64_t *license_free;
	struct user_use *user_uses;
	uint32_t n_user_uses, room_user_uses;
	uint32_t *user_slots, n_user_slots;

	/* jobs */
	uint32_t *class_of; /* by run; SNAP_NONE when its jobs cannot start now anyway */
	struct job_class *classes;
	uint32_t n_classes;
	uint32_t *started; /* by job: elements started in this cycle */
	struct plan_why *why_of_run; /* what its gate says, else its class */
	struct plan_why *why_of_job; /* what it alone is told */
	uint32_t *array_running; /* by number: elements that run, leave or were started */

	/* priority.c */
	struct priority *priority;
	struct units *units; /* gangs.c; NULL until somebody claims */
	struct futile *futile; /* futile.c; NULL until somebody claims in vain */

	/* order.c */
	struct turn *turns; /* by queue, then the root's */
	struct waiter *waiters; /* runs by queue: a heap each, the next to be served on top */
	uint32_t *brackets; /* winners among siblings, one run of words for each parent */

	/* the plan */
	struct plan_action *actions;
	struct plan_pod *plan_pods;
	uint32_t *plan_devices;
	struct plan_reason *whys;
	uint32_t n_actions, room_actions, n_plan_pods, room_plan_pods, n_plan_devices,
		room_plan_devices, n_whys, room_whys;
	struct plan_claim *claims;
	struct plan_side *claim_sides;
	uint32_t n_claims, room_claims, n_claim_sides, room_claim_sides;
	struct plan_bound *bounds;
	uint32_t n_bounds, room_bounds;
	int64_t wake_us;
	bool cut_short;
};

/* The class of a job that waits; SNAP_NONE: it cannot start now anyway. */
static inline uint32_t cycle_class(const struct cycle *c, uint32_t job)
{
	const uint32_t run = c->s->lines.run_of[job];

	return run == SNAP_NONE ? SNAP_NONE : c->class_of[run];
}

/* Room for n more items in an arena table (a larger copy where needed); NULL and
 * failed when there is no memory. */
void *cycle_push(struct cycle *c, void *table, uint32_t *n_items, uint32_t *room, size_t size,
		 uint32_t n);
void *cycle_alloc(struct cycle *c, size_t count, size_t size);
/* Zeroed memory that is gone when the next job is tried. */
void *cycle_scratch(struct cycle *c, size_t count, size_t size);

#define CYCLE_PUSH(c, table, n)                                                                    \
	cycle_push(c, &(c)->table, &(c)->n_##table, &(c)->room_##table, sizeof(*(c)->table), n)

/* Note that a bound ended what was done for a job; SNAP_NONE = for all that come after it. */
void cycle_bounded(struct cycle *c, uint32_t job, enum plan_bounded what, int64_t most);

#define MS_PER_MINUTE INT64_C(60000) /* of what budgets count */

/* What a job has to stay behind: a planned start or a reservation, the other SNAP_NONE. */
struct future_bar {
	uint32_t job, reservation;
};

#endif
