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
#ifndef GPUQD_CORE_CYCLE_H
#define GPUQD_CORE_CYCLE_H

#include "gpuqd/core/bits.h"
#include "gpuqd/core/links.h"
#include "gpuqd/core/plan.h"
#include "gpuqd/core/snapshot.h"

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

/* What is free where pods under some constraints may stand, on one flavor (fit.c). */
struct glance {
	uint32_t generation; /* actions + 1 when it was taken; 0 = never */
	int64_t devices, largest; /* free whole devices: in sum, on one node */
};

/* Whether a request could be met if nothing ran (why.c); made when first asked. */
struct request_verdict {
	bool known, never;
	struct plan_reason why;
};

/* Order of service of one queue, and the next of a run in it (order.c). */
struct turn;
struct waiter;

struct cycle {
	struct reversals *reversals; /* reversal.c; NULL = nobody asked yet */
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
	struct later *later; /* promise.c; NULL until something leaves or is promised */
	uint64_t *promised; /* jobs whose promises hold */
	bool in_later; /* nodes stand as when all that leaves has left */

	/* fit.c: where groups may stand */
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

	/* grade.c */
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
	struct future *future; /* future.c; NULL until somebody is blocked */
	bool withholding; /* planned starts are being left what they count on */
	bool planning; /* nodes stand for a later moment: counts, no devices */

	/* ledger.c: queues, by [q * n_res + r] */
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
	struct units *units; /* units.c; NULL until somebody claims */

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

/* nodes.c */
void nodes_init(struct cycle *c);
struct need nodes_need(const struct snap_group *g);
struct need nodes_need_times(const struct need *one, uint32_t n);
/* How many such pods fit on the node now, 0..max. */
uint32_t nodes_room(const struct cycle *c, uint32_t node, const struct need *one, uint32_t max);
/* How many would fit if nothing ran there. */
uint32_t nodes_room_empty(const struct cycle *c, uint32_t node, const struct need *one,
			  uint32_t max);
/* Take one pod's need from a node, noting its place; it must fit. */
void nodes_take(struct cycle *c, uint32_t node, const struct need *one, uint32_t group,
		uint32_t index);
/* Give the last place back. */
void nodes_undo(struct cycle *c, const struct need *one);
/* The nodes of all places are the job's alone from now on; and are so no more. */
void nodes_close(struct cycle *c);
void nodes_reopen(struct cycle *c);
/* Around a change of what a node has free. */
void nodes_change(struct cycle *c, uint32_t node);
void nodes_changed(struct cycle *c, uint32_t node);
void nodes_fill_buckets(struct cycle *c); /* anew, from whole and usable */

/* caps.c: what jobs of a qos, a user, a group may not pass together. `starts`: it is one job
 * more, else it grows. */
void caps_init(struct cycle *c);
void caps_count(struct cycle *c, uint32_t job, int64_t gpus_milli, bool starts);
void caps_hold(struct cycle *c, uint32_t job, int64_t gpu_ms);
bool caps_admit(struct cycle *c, uint32_t job, int64_t gpus_milli, bool starts,
		struct plan_reason *why);
bool caps_afford(struct cycle *c, uint32_t job, int64_t gpu_ms, struct plan_reason *why);

#define MS_PER_MINUTE INT64_C(60000) /* of what budgets count */

/* budget.c: GPU-minutes of queues */
void budget_init(struct cycle *c);
/* May it start, for as long as it may run, inside the hard budgets above it? */
bool budget_admits(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why);
void budget_start(struct cycle *c, uint32_t job, uint32_t flavor);
/* The same for devices that a running job gets beside its own. */
bool budget_admits_more(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli,
			struct plan_reason *why);
void budget_grow(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli);
/* Its rank for what is left over: out of budget it comes after all who are not. */
int64_t budget_rank(const struct snapshot *s, uint32_t queue);
/* Do longer jobs alone fail for this reason? */
bool budget_refused(const struct plan_reason *why);
/* A pod is gone from its node (sign 1), or is back there (-1): devices, amounts, tenants. */
void nodes_shift(struct cycle *c, const struct snap_alloc *a, int sign);
/* Take these very devices for a pod, if they and all else it needs are free. */
bool nodes_hold(struct cycle *c, const struct snap_alloc *a);

/* promise.c: places that are promised, and what nodes have once all that leaves has left */

/* Take promises of the snapshot into account. */
void promise_init(struct cycle *c);
/* Start promised jobs whose places are free; release what cannot be kept. */
void promise_serve(struct cycle *c);
/* Nodes as they will be; and as they are. */
void later_enter(struct cycle *c);
void later_leave(struct cycle *c);
/* Thousandths of a flavor's devices that are free later; while nodes stand so. */
int64_t later_free_milli(struct cycle *c, uint32_t flavor);
bool later_differs(const struct cycle *c); /* does anything leave that nobody was promised? */
/* A pod was told to leave in this cycle. */
void later_pod_leaves(struct cycle *c, const struct snap_alloc *a);
/* The places of the job at hand, found later and undone, are its own from now on. */
void promise_places(struct cycle *c, uint32_t job);

/* device.c: parts of devices. Thousandths that a part costs on that node; above 1000: it
 * fits on none of its devices. */
int32_t device_part(const struct cycle *c, uint32_t node, const struct need *n);
/* Memory that goes with so many thousandths of a device (a number over all nodes): what was
 * asked for, or in proportion when that is 0. */
int64_t device_bytes(const struct cycle *c, uint32_t device, int32_t milli, int64_t asked);
/* Give that back (1) or take it (-1). The caller keeps the node's counts right. */
void device_shift(struct cycle *c, uint32_t device, int32_t milli, int64_t asked, int sign);
/* As nodes_room, by devices alone. */
uint32_t device_room(const struct cycle *c, uint32_t node, const struct need *n, uint32_t max);
/* The device that the next part goes to: the fullest with room that is not among those the
 * pod has already. SNAP_NONE: there is none. */
uint32_t device_pick(const struct cycle *c, uint32_t node, const struct need *n,
		     const uint32_t *taken, uint32_t n_taken);
/* What would become of the devices; false: they have no room. */
bool device_parts(const struct cycle *c, uint32_t node, const struct need *n, struct parts *out);

/* fit.c */
const struct group_fit *fit_of(struct cycle *c, uint32_t request, uint32_t group);
/* Free devices where a group may stand, counted again only after something was started.
 * To be asked between jobs alone: not while one is being placed. */
const struct glance *glance_of(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor);
int64_t glance_bound(const struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor);
bool fit_tolerates(const struct snap_group *g, const struct snap_taint *t);

/* grade.c: what a node has free changed. */
void grade_touch(struct cycle *c, uint32_t node);
/* The device that fragmentation gradient descent takes part of; -1 = none has room. */
int32_t grade_fgd_device(const struct cycle *c, uint32_t node, int32_t part);

/* pack.c: give every pod of the job's gang a place on nodes of that flavor (SNAP_NONE
 * for jobs without devices). False: nothing has changed. */
bool pack_job(struct cycle *c, uint32_t job, uint32_t flavor);
/* The same for more pods of one group, from that index on, on nodes of the domain alone
 * (NULL = anywhere). */
bool pack_more(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group, uint32_t index,
	       uint32_t pods, const uint64_t *domain);
/* Take the places back, but leave the list of them as it was. */
void pack_undo(struct cycle *c, uint32_t job);

/* future*.c: planned starts of blocked jobs, which nobody may make later */

/* What a job has to stay behind: a planned start or a reservation, the other SNAP_NONE. */
struct future_bar {
	uint32_t job, reservation;
};

/* A job could start: note how long it waits. */
void future_note_waiting(struct cycle *c, uint32_t job);
/* Before the first job is served: reservations that have begun get their nodes, and jobs
 * that have waited too long get planned starts. */
void future_begin(struct cycle *c);
/* Plan a start for a job that is blocked. False: it gets none (too many have one, or
 * nothing that is in its way has an end). */
bool future_reserve(struct cycle *c, uint32_t job, uint32_t flavor);
/* Would it get none whatever its length? */
bool future_full(const struct cycle *c, uint32_t job);
/* Does anything planned begin before the job would end, if it started now? */
bool future_binds(struct cycle *c, uint32_t job);
/* As pack_job, leaving what is planned what it counts on; *bar = some of that. */
bool future_pack(struct cycle *c, uint32_t job, uint32_t flavor, struct future_bar *bar);
/* As pack_job; nothing planned is touched, not even for a time. */
bool future_pack_strictly(struct cycle *c, uint32_t job, uint32_t flavor);
/* After that: when the places have to be left again for what is planned; 0 = never. */
int64_t future_yield_us(const struct cycle *c);
/* ...and how long the job is given there, when that is less than it asked for; 0 = that. Of
 * a job that was not placed by future_pack(): what its deadline leaves it. */
int64_t future_given_us(const struct cycle *c, uint32_t job);
/* The least that the job can do with. */
int64_t future_least_us(const struct snap_job *j);
/* A job was started: note when it ends. */
void future_started(struct cycle *c, const struct plan_action *a);
/* claim.c: make a blocked job room: it is promised places that others leave. *flavor = on
 * which. The plan has all that follows. */
bool claim_job(struct cycle *c, uint32_t job, uint32_t *flavor);
/* rules.c: would it pass its queue's fair share, so that it may not claim what others hold?
 * *why says by how much. */
bool claim_exceeds_share(const struct cycle *c, uint32_t job, uint32_t flavor,
			 struct plan_reason *why);
/* units.c: what was started or promised is held from now on. */
void units_add_started(struct cycle *c, uint32_t job, uint32_t flavor);
/* elastic.c: gangs that lost pods get them back, or leave; elastic jobs take what is idle. */
void elastic_serve(struct cycle *c);
/* sched.c: the places of the job at hand, whose indexes follow one another, as an action,
 * pods by index; NULL without memory. */
struct plan_action *sched_emit_places(struct cycle *c, enum plan_kind kind, uint32_t job,
				      struct snap_key key, uint32_t flavor);
/* The same for the element of the job that is next. */
void sched_emit(struct cycle *c, enum plan_kind kind, uint32_t job, uint32_t flavor);
/* What runs or is promised was changed otherwise, by actions that stand in the plan: it
 * is looked at again, and planned starts that have become wrong are planned anew. */
void future_changed(struct cycle *c);
/* Before anybody is taken off his nodes in thought: the look is made again now, if it has
 * to be, as it is to show what is so. */
void future_refresh(struct cycle *c);
/* A pod that runs was taken off its node (sign 1) or is back (-1): planned starts that
 * begin before its end may spare as much more, or less again. */
void future_lift(struct cycle *c, const struct snap_alloc *a, int sign);
/* Nodes that somebody counts on, at whatever time, whom the job would be in the way. */
void future_keep_off(struct cycle *c, uint32_t job, uint64_t *set);
/* After the last job was served: who runs ahead of a planned start leaves in time; the
 * planned starts become actions. */
void future_finish(struct cycle *c);

/* calendar.c: "a reservation keeps the capacity". */
void calendar_name(struct cycle *c, uint32_t reservation, struct plan_reason *why);
/* sched.c: index of the element that would start next; -1 = no array. */
int32_t sched_next_element(const struct cycle *c, uint32_t job);

/* ledger.c */
void ledger_init(struct cycle *c);
/* Demand and fair shares, once it is known which jobs are eligible. */
void ledger_shares(struct cycle *c);
void ledger_start(struct cycle *c, uint32_t job, uint32_t flavor);
/* The same for pods beyond what a job must have: amounts by resource. */
bool ledger_admits_more(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts);
void ledger_grow(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts);
/* Amounts of a queue's work were told to leave; amounts by resource, negative = back. */
void ledger_leaves(struct cycle *c, uint32_t queue, const int64_t *amounts, int64_t sign);
void ledger_job_leaves(struct cycle *c, uint32_t queue, int64_t sign);
/* Is the pod one that its job can do without? */
bool ledger_is_surplus(const struct cycle *c, const struct snap_alloc *a);
int64_t ledger_need(const struct cycle *c, uint32_t job, uint32_t flavor, uint32_t res);
/* Do limits, quotas, licenses allow one start? Else false and *why says what does not. */
bool ledger_admits(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why);

/* gate.c: things that keep a job from being looked at at all. Adds its reasons to whys
 * and returns true when there is one. */
bool gate_closed(struct cycle *c, uint32_t job);
bool gate_array_full(struct cycle *c, uint32_t job, struct plan_reason *why);

/* order.c */
void order_init(struct cycle *c);
uint32_t order_next(const struct cycle *c); /* whose turn it is; SNAP_NONE = nobody's */
void order_done(struct cycle *c, uint32_t job); /* it leaves the line */
void order_changed(struct cycle *c, uint32_t job); /* its queue holds something new */

/* why.c: why the job's gang found no place on any of its flavors. Adds reasons. */
void why_no_place(struct cycle *c, uint32_t job, uint32_t flavor);
/* No node of that flavor could hold it, not even if nothing ran. */
bool why_never_there(struct cycle *c, uint32_t job, uint32_t flavor);
/* Could it be placed if nothing ran? (all nodes, whatever their state) */
bool why_never(struct cycle *c, uint32_t job, struct plan_reason *why);

#endif
