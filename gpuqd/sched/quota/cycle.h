/* cycle.h - the working state of one scheduling cycle
 *
 * Owns     what is free on nodes as decisions are taken, what queues hold, the queue order, and the
 *          plan as it grows. Everything lives in the cycle's arena.
 * Touches  memory only.
 * Used by  sched.c, which reads as the policy; each part below has a file of its own.
 *
 * The snapshot is never changed. When memory runs out, `failed` is set and stays set, and the cycle
 * as a whole fails; functions here may return anything after that. */
#ifndef GPUQD_SCHED_QUOTA_CYCLE_H
#define GPUQD_SCHED_QUOTA_CYCLE_H

#include "gpuqd/util/bits.h"
#include "gpuqd/snapshot/links.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"

/* How nodes are chosen. All but the first exist for comparison. */
enum pack_policy { PACK_DEFAULT, PACK_BESTFIT, PACK_FGD };

/* Nodes with the same number of free whole devices. */
struct bucket {
	uint64_t *set; /* NULL until it gets its first node */
	uint32_t n;
	uint32_t from; /* all words of the set before this one are 0 */
};

/* The nodes where pods under some constraints may run, whatever is free there; made on first
 * use. */
struct group_fit {
	uint64_t *nodes; /* NULL = not made yet */
	uint32_t n_nodes;
	uint64_t **tiers; /* the same nodes by preference, best first; NULL = all alike */
	uint32_t n_tiers;
};

/* The resources that one pod takes from a node (or several pods; parts and part_memory are then
 * still those of one). At most one of whole, parts and migs is not 0. */
struct need {
	uint32_t whole; /* devices */
	uint32_t parts; /* devices of which it takes a part */
	int32_t part; /* thousandths of each of those, 1..999; 0 = as part_memory says */
	int64_t part_memory; /* bytes of each of those; 0 = in proportion to part */
	uint32_t migs, profile; /* instances of a profile */
	int64_t cpu, memory, pods;
};

/* The devices that a pod's parts would be taken from. */
struct parts {
	int32_t part; /* thousandths of each */
	int32_t from; /* free on the last of them */
	int32_t left; /* left free on all of them together */
	uint32_t opened; /* devices of these that were not in use */
};

/* A pod with a place; it is undone or becomes a plan_pod. */
struct place {
	uint32_t group, index, node;
	uint32_t device_first, n_devices; /* into cycle.place_devices */
	int32_t milli;
};

/* Jobs of which none can start in this cycle once one of them has failed. */
struct job_class {
	bool blocked;
	int64_t from_walltime_us; /* only jobs that run at least as long are blocked; 0 = all */
	int64_t from_least_us; /* ...and whose least time limit is at least this */
	struct plan_why why;
	uint32_t flavor_at; /* the first of its flavors that was not found full */
};

/* The free capacity where pods under some constraints may run, on one flavor (feasibility.c). */
struct glance {
	uint32_t generation; /* actions + 1 when it was counted; 0 = never */
	int64_t devices, largest; /* free whole devices: in total, on one node */
	/* By number of devices, 0..max_whole: the most that a node with at least as many free
	 * has. */
	int64_t *cpu, *memory;
};

/* Whether a request could be met if nothing ran (reasons.c); made on first use. */
struct request_verdict {
	bool known, never;
	struct plan_reason why;
};

/* Order of service of one queue, and the next job of a run in it (order.c). */
struct turn;
struct waiter;

struct cycle {
	struct reversals *reversals; /* oscillation.c; NULL until first used */
	const struct snapshot *s;
	struct gpuq_arena *mem;
	struct gpuq_arena scratch; /* until the next job is tried */
	bool failed;
	uint64_t steps;

	/* nodes.c: free capacity */
	uint32_t n_words;
	int64_t *cpu, *memory, *pods; /* free; GPUQ_UNLIMITED = not counted */
	uint16_t *whole; /* free whole devices */
	uint16_t *withheld; /* free whole devices kept for start reservations, not in whole */
	uint16_t *tenants; /* pods of gpuq */
	int16_t *device_free; /* by snapshot.devices */
	int64_t *device_memory; /* free bytes, by snapshot.devices; undefined where not known */
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
	struct links *links; /* by snapshot.joints; without devices = table not made yet */
	int64_t cpu_per_device, mib_per_device; /* of the cluster, per 1024 devices */

	/* By flavor: thousandths of devices free once everything that is ending has ended, and
	 * after how many actions they were counted (plus one; 0 = never). */
	int64_t *free_milli;
	uint32_t *free_counted;
	struct later *later; /* nominated.c; NULL until something is ending or nominated */
	uint64_t *promised; /* jobs whose nominated placements hold */
	bool in_later; /* nodes are in the state after everything that is ending has ended */

	/* feasibility.c: where groups may run */
	struct group_fit *fits; /* by snap_request.where */
	uint64_t *skip; /* scratch: nodes that the current job excludes */
	const uint64_t *barred; /* further such nodes; NULL = none (reservations) */
	struct request_verdict *verdicts; /* by request */
	struct glance *glances; /* by where, then flavor (n_flavors = none) */

	/* pack.c: places of the current job */
	struct place *places;
	uint32_t n_places, room_places;
	uint32_t *place_devices;
	uint32_t n_place_devices, room_place_devices;
	uint32_t *rank_nodes, *rank_scratch; /* scratch, n_nodes each */
	uint32_t *rank_room, *rank_left, *rank_count;

	/* score.c */
	enum pack_policy policy;
	bool unhurried; /* score as many nodes as it takes */
	struct grading *grading; /* NULL until a single pod is placed */
	int64_t part_cpu; /* scratch: cpu that comes with the current part */
	bool spread; /* the current job prefers empty nodes */
	uint32_t request, flavor; /* of the current job */

	/* topology.c */
	struct level **levels; /* those used so far */
	uint32_t n_levels, room_levels;
	struct tree **trees; /* likewise */
	uint32_t n_trees, room_trees;
	const uint64_t *domain; /* the domain that the whole job must be in; NULL = none yet */
	const uint64_t *near; /* a preferred domain inside `domain`; NULL = none */
	uint32_t n_tries; /* domains tried for all of its roles together */

	uint32_t idle_future; /* actions + 1 when no running work was seen to end; 0 = never */
	bool any_starving; /* some job has been pending for longer than starve_us */
	struct future *future; /* timeline.c; NULL until a job is blocked */
	bool withholding; /* the capacity that start reservations count on is kept free */
	bool planning; /* nodes are in the state of a later moment */
	bool counting; /* ...and whole devices are counted there, not named */

	/* holdings.c: queues, by [q * n_res + r] */
	int64_t *held; /* by jobs that run, are ending or have a nominated placement */
	int64_t *leaving; /* the part of it that was signalled to end */
	int64_t *firm; /* the part of it that is not preemptible */
	int64_t *demand; /* of running and pending jobs, capped by limits */
	int64_t *idle; /* by resource: held by no queue; use by others is not known here */
	int64_t *fair;
	int64_t *running; /* jobs, by queue: running, ending or with a nominated placement */
	int64_t *parting; /* those of them that are ending */
	int64_t *least_priority; /* by queue, of its own running preemptible jobs */
	bool *stopped; /* by queue: it or an ancestor is */
	bool *per_user; /* by queue: some limit on the path counts users */
	bool lends_limited;
	struct cap_use *cap_uses; /* caps.c: by cap; NULL = there are no caps */
	struct budgets *budgets; /* budget.c; NULL = no queue has one */
	uint32_t *kid_first, *kid_next; /* children by age; kid_first[n_queues] = the root's */
	const int64_t *more; /* by resource: requested instead of the job's request; NULL */
	int64_t *license_free;
	struct user_use *user_uses;
	uint32_t n_user_uses, room_user_uses;
	uint32_t *user_slots, n_user_slots;

	/* jobs */
	uint32_t *class_of; /* by run; SNAP_NONE when its jobs cannot start now for other reasons */
	struct job_class *classes;
	uint32_t n_classes;
	uint32_t *started; /* by job: elements started in this cycle */
	struct plan_why *why_of_run; /* why it is not eligible, else the reasons of its class */
	struct plan_why *why_of_job; /* reasons of that job alone */
	uint32_t *array_running; /* by number: elements that run, are ending or were started */

	/* priority.c */
	struct priority *priority;
	struct units *units; /* gangs.c; NULL until a job searches victims */
	struct futile *futile; /* futile.c; NULL until a search for victims fails */

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

/* Return the class of a pending job; SNAP_NONE: it cannot start now for other reasons. */
static inline uint32_t cycle_class(const struct cycle *c, uint32_t job)
{
	const uint32_t run = c->s->lines.run_of[job];

	return run == SNAP_NONE ? SNAP_NONE : c->class_of[run];
}

/* Return an arena table with room for n more items (a larger copy where needed); NULL, and `failed`
 * is set, when there is no memory. */
void *cycle_push(struct cycle *c, void *table, uint32_t *n_items, uint32_t *room, size_t size,
		 uint32_t n);
void *cycle_alloc(struct cycle *c, size_t count, size_t size);
/* Allocate zeroed memory that is released when the next job is tried. */
void *cycle_scratch(struct cycle *c, size_t count, size_t size);

#define CYCLE_PUSH(c, table, n)                                                                    \
	cycle_push(c, &(c)->table, &(c)->n_##table, &(c)->room_##table, sizeof(*(c)->table), n)

/* Note that a bound cut short the work for a job; SNAP_NONE = for all jobs after it. */
void cycle_bounded(struct cycle *c, uint32_t job, enum plan_bounded what, int64_t most);

#define MS_PER_MINUTE INT64_C(60000) /* budgets count in minutes */

/* A start reservation or a reservation that a job must not delay; the other is SNAP_NONE. */
struct future_bar {
	uint32_t job, reservation;
};

#endif
