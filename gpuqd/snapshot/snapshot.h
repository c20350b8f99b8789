/* snapshot.h - the frozen input of a scheduling cycle
 *
 * Owns     dense tables of flavors, nodes, devices, queues, requests, jobs and what
 *          they hold; strings and lists live in the snapshot's own arena.
 * Touches  memory only.
 * Used by  flow/schedule (model -> snapshot), gpuq-sim (scenario -> snapshot), sched.h.
 *
 * A builder adds objects in any order and then seals the snapshot once; sealing sorts
 * (flavors by rank and name, nodes by name, queues by depth, age and name, jobs by id
 * and the first element that they stand for), turns handles into indexes, resolves `auto`
 * quotas, and derives free capacity from allocatable and held. So the order of storage
 * never has a meaning, and the numbers of a snapshot cannot contradict each other.
 *
 * Objects refer to each other by uint32 index; SNAP_NONE is no object. While building,
 * the "index" is the handle that the adder returned. GPUs are counted in thousandths
 * of a device, cpu in thousandths of a core, memory in bytes, time in microseconds.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_H
#define GPUQD_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/site/policy_queue.h"
#include "gpuqd/site/policy_sched.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/names.h"
#include "libgpuq/spec.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

#define SNAP_NONE UINT32_MAX
#define SNAP_DEVICES_MAX 1024u /* of one node */
#define SNAP_BOOT_US INT64_C(600000000) /* that a node may take to boot */
#define SNAP_END_US                                                                                \
	INT64_C(30000000) /* before its node's end an attempt is told to end, at least */
#define SNAP_MILLI 1000 /* one device, one core */
#define SNAP_PLENTY (INT64_MAX / 4) /* of a resource that is not counted */

/* The quota of a queue is the sum of its children's quotas plus `shared`. */
#define SNAP_AUTO INT64_C(-1)

enum snap_reclaim_to { SNAP_RECLAIM_FAIR_SHARE, SNAP_RECLAIM_GUARANTEE };
/* Which queue's minimum run time protects a victim: the victim's ancestor just below its nearest
 * common ancestor with the claimant's queue, or its own queue. */
enum snap_runtime_method { SNAP_RUNTIME_LCA, SNAP_RUNTIME_QUEUE };

/* Weights of the terms of a job's priority within its queue (priority.h). Points >= 0. */
struct snap_weights {
	int64_t age; /* of a job pending for max_age */
	int64_t fair_share; /* of a job whose user has the best fair share */
	int64_t size; /* of a job that requests all devices */
	int64_t qos; /* of a job of the class qos_full; others in proportion */
	int64_t qos_full; /* > 0 */
	int64_t max_age_us; /* > 0 */
	int64_t evict_step_milli; /* of max_age: added to the age for each eviction */
	int64_t stretch; /* for each multiple of its walltime that a job has been pending */
};

/* The site's scheduling policy, and the time. snapshot_config_default() fills it. */
struct snap_config {
	int64_t now_us; /* of the clock that jobs' times are of */
	struct snap_weights weights;
	POLICY_SCHED_GROUP(sched); /* gpuqd.yaml(5), scheduler */
	uint64_t max_steps; /* bound on the work of one cycle, in node visits; 0 = no bound */
	bool reclaim; /* preempt for claims */
	int64_t usage_k_milli; /* k of the fair-share division, in thousandths */
	int64_t usage_step_us; /* interval at which usage may change shares; 0 = never */
	int64_t wake_us; /* when time alone changes a budget's figures; 0 = never */
	/* Labels from wide to narrow that topology levels are read from; borrowed until sealed. A
	 * level is the label's key; "host" or the last one may be absent: the node itself is always
	 * the narrowest level. */
	const char *const *levels;
	uint32_t n_levels;
};

/* The resource that quotas count. Larger rank = considered later when a job names no flavor. */
struct snap_flavor {
	const char *name; /* unique */
	int64_t rank; /* then by name */
	int64_t rate_milli; /* charge rate of a device, in thousandths; as added: 1000 */
	bool grows; /* some pool of it can get more nodes: its quotas may exceed what there is */
	int64_t capacity_milli; /* sealed: devices of usable nodes, instances as they are charged */
	int64_t devices_milli; /* sealed: the same where sevenths of a card are not rounded up */
	int64_t device_memory_bytes; /* sealed: the smallest of its devices; 0 = not known */
	uint32_t replicas; /* sealed: the fewest of its devices that have some; 0 = none have */
	bool by_memory; /* sealed: some of its nodes share devices by memory alone */
	int64_t unit_bytes; /* sealed: the largest of its nodes */
};

enum snap_node_state {
	SNAP_READY, /* may start pods */
	SNAP_DRAINED, /* by an operator */
	SNAP_SUSPECT, /* failed recently; suspended for a while */
	SNAP_DOWN, /* absent, or unhealthy */
	/* Nodes that do not exist: no pod starts there, and they are no capacity of their flavor. */
	SNAP_ASKED, /* requested; it may come */
	SNAP_PLANNED, /* its pool could request it */
};

struct snap_taint {
	const char *key, *value, *effect; /* of Kubernetes */
};

/* The requests that a device serves. A card that is cut into instances is never had whole, and one without any has no
 * parts. */
enum snap_serves { SNAP_SERVES_ALL, SNAP_SERVES_WHOLE, SNAP_SERVES_PARTS };

struct snap_device {
	bool healthy; /* others are never given to a pod */
	uint8_t serves; /* enum snap_serves */
	int16_t foreign_milli; /* held by foreign pods, of its cores */
	int16_t free_milli; /* sealed; 0 when not healthy */
	uint16_t shares; /* sealed: gpuq's pods on it */
	int64_t memory_bytes; /* 0 = not known */
	int64_t foreign_memory_bytes; /* held by foreign pods */
	int64_t free_memory_bytes; /* sealed */
	int64_t unit_bytes; /* sealed: that of its node */
};

/* Instances of a MIG profile on a node, made beforehand by its operator. */
struct snap_mig {
	const char *profile; /* as its resource names it */
	uint32_t count; /* of all, free or not */
	uint32_t foreign; /* held by foreign pods */
	uint32_t extra_ix; /* into snapshot.extras */
};

/* A layout that the cards of a node may be given by the MIG manager. */
struct snap_layout {
	const char *name; /* as the manager knows it */
	const char *profile; /* of the instances that it makes; NULL = whole devices */
	uint32_t count; /* of these, on the node */
	int64_t again_us; /* it was given it not long ago: not again before; 0 = it could get it now */
};

/* An amount of a countable resource of a node, by its name: "rdma/hca", "hugepages-2Mi". */
struct snap_resource {
	const char *name;
	int64_t count; /* allocatable */
	int64_t foreign; /* held by foreign pods */
};

/* The need of each pod of a group for a countable resource. */
struct snap_take {
	uint32_t extra; /* into snapshot.extras */
	int64_t n; /* > 0 */
};

/* Allocatable amounts may be GPUQ_UNLIMITED: not counted there. */
struct snap_node {
	const char *name; /* unique */
	const char *pool; /* for reservations of amounts */
	uint32_t flavor; /* of its devices */
	int state; /* enum snap_node_state */
	bool made_up; /* it does not exist, whatever its state */
	/* It was requested for a time: jobs that run no longer may start on it, the grace period included. 0 = its
	 * end is not known. */
	int64_t run_us;
	int64_t left_us; /* it is there, and taken away after that; 0 = not known */
	bool lasts; /* that is as long as its pool lets any run */
	bool cuts; /* preemptible jobs may be cut short there */
	uint32_t ask; /* SNAP_ASKED: number of the request that it is part of, from 1 */
	bool coming; /* SNAP_ASKED: the cloud has said that it provides it */
	/* Requests of its pool that are under way, and that may be at once. */
	uint32_t n_asks, max_asks;
	bool closed; /* SNAP_DOWN and made up: requests of its pool failed; nothing is asked for now */
	int64_t price; /* of one that does not exist: a cheaper pool of a flavor comes first */
	int64_t cpu_milli, memory_bytes, pods; /* allocatable */
	int64_t foreign_cpu_milli, foreign_memory_bytes, foreign_pods;
	int64_t foreign_gpus; /* whole devices held by foreign pods, not known which */
	uint32_t n_devices;
	/* Each device is offered in this many replicas, of which a pod gets one: a part that is no
	 * larger takes a replica, a whole device is not to be had. 0 and 1 = no replicas. */
	uint32_t replicas;
	/* Isolation of whole devices, and of parts, from other pods: enum gpuq_isolation. An
	 * instance is isolated by itself. */
	uint8_t isolation_whole, isolation_part;
	uint32_t slots; /* pods that a device can have at a time, a share each; 0 = any */
	bool by_memory; /* its devices are shared by memory alone */
	int64_t unit_bytes; /* memory of its devices is given in multiples of it; 0 = in any amount */
	const struct snap_device *devices_in; /* n_devices of them, copied; NULL = healthy, empty */
	/* Link classes of each pair of devices (links.h), and the NUMA node of each device; copied.
	 * NULL = all alike. Ignored on nodes with more than LINKS_DEVICES_MAX devices. */
	const uint8_t *links; /* n_devices x n_devices, larger = faster */
	const uint8_t *numa; /* n_devices */
	/* Instances of MIG profiles. Devices that are cut into instances are not among
	 * n_devices. Copied. */
	const struct snap_mig *mig;
	uint32_t n_mig;
	/* The layouts that it could get; while it is being given one, that alone. Copied. */
	const struct snap_layout *layouts;
	uint32_t n_layouts;
	bool cutting; /* it is being given a layout, or the one before again */
	const struct snap_resource *resources; /* countable ones; copied */
	uint32_t n_resources;
	struct gpuq_strmap labels; /* borrowed until sealed */
	const struct snap_taint *taints; /* borrowed until sealed */
	uint32_t n_taints;
	/* sealed */
	uint32_t cls; /* equal pool, flavor, taints and requested labels */
	uint32_t device_first; /* into snapshot.devices */
	uint32_t n_whole, n_parts; /* devices that serve whole requests, and parts */
	int64_t device_memory_bytes; /* the smallest of its healthy devices; 0 = not known */
	uint32_t joint; /* into snapshot.joints; SNAP_NONE = all devices alike */
	int64_t cpu_free, memory_free, pods_free; /* may be below 0: more is held than there is */
};

/* Links between the devices of nodes that are alike in this. */
struct snap_joint {
	uint32_t n_devices;
	const uint8_t *links, *numa; /* as in snap_node */
};

/* Nodes with equal pool, flavor, taints and values of every label that a request or a topology
 * level names. */
struct snap_class {
	const char *pool;
	uint32_t flavor; /* of its devices */
	const char **values; /* by snapshot.label_keys; NULL = not set */
	struct snap_taint *taints;
	uint32_t n_taints;
	uint32_t n_nodes; /* that are usable or not */
};

enum snap_reclaim {
	SNAP_RECLAIM_ANY, /* whatever their priority */
	SNAP_RECLAIM_LOWER_OR_EQUAL, /* than the preemptor's */
	SNAP_RECLAIM_LOWER,
	SNAP_RECLAIM_NEVER
};
enum snap_preempt { SNAP_PREEMPT_LOWER, SNAP_PREEMPT_LOWER_OR_NEWER, SNAP_PREEMPT_NEVER };

/* The share of one queue in one resource. snapshot_share_default() fills it. */
struct snap_share {
	int64_t quota; /* SNAP_AUTO, GPUQ_UNLIMITED or an amount; sealed: never SNAP_AUTO */
	int64_t shared; /* with SNAP_AUTO: added to the children's sum */
	int64_t limit; /* GPUQ_UNLIMITED or an absolute cap */
	int64_t lend; /* GPUQ_UNLIMITED, or the amount of idle quota that others may borrow */
};

struct snap_queue {
	const char *name; /* unique */
	const char *parent_name; /* NULL = below the root */
	const struct snap_share *shares; /* n_flavors + 2: by flavor handle, then cpu, memory;
					  * copied. NULL = all default */
	POLICY_QUEUE_GROUP(policy);
	int64_t age; /* smaller = older; breaks ties */
	bool spread; /* its own jobs prefer the emptiest nodes */
	int64_t usage_micro; /* normalised past usage, in millionths of the capacity */
	/* GPU-milliseconds of its period, in this queue and below; GPUQ_UNLIMITED = no budget.
	 * Usage is what has been charged up to now, running jobs included. */
	int64_t budget_gpu_ms, budget_used_gpu_ms;
	int64_t budget_reset_us; /* when its next period begins; 0 = never */
	bool budget_hard; /* no job starts beyond it; false: beyond it the entitlement drops */
	uint32_t n_claims_hour; /* fair-share claims against it in the last hour */
	/* Limits of each user in this queue and below, and of one job. */
	int64_t user_max_running, user_max_gpus_milli, max_running;
	int64_t job_max_gpus_milli;
	int64_t max_gpus_milli; /* of all jobs together, over all flavors */
	/* sealed */
	uint32_t parent; /* SNAP_NONE = the root */
	uint32_t depth; /* 0 below the root */
	uint32_t n_children;
	bool over_budget; /* a soft budget of this queue or of one above it is exhausted */
	bool demoted; /* and the exhausted budget revokes the guarantee */
};

/* Usage of a user in a queue, in any unit that all share: the daemon and the simulator pass 2^-20
 * GPU-seconds, in which a century of 10,000 devices fits. */
#define SNAP_USED_SHIFT 12 /* from usage_q32 to that unit */
struct snap_usage {
	uint32_t queue, user;
	uint64_t used; /* 0 = none yet */
};

struct snap_key {
	uint32_t id;
	int32_t index; /* element of an array; -1 = not an element (or all pending ones) */
};

/* A job that was recently preempted by a claim of another queue. */
struct snap_loss {
	uint32_t queue, by_queue; /* the victim's queue, the claimant's */
	struct snap_key job, by;
	int64_t at_us; /* within the last hour */
};

/* One kind of pod in a request; the fields of struct gpuq_group that matter to a
 * decision. Everything is copied when the request is added. */
struct snap_group {
	const char *name; /* for people */
	uint32_t pods_min,
		pods_max; /* a gang starts with pods_min, an elastic job grows to pods_max */
	int64_t gpus_milli; /* a part of one device, or whole ones */
	int64_t gpu_memory_bytes; /* of each device: a share of it; 0 = not requested */
	/* In records of releases that rounded it up to the largest unit of all nodes: before that; 0 = it was not. */
	int64_t gpu_memory_least;
	int32_t gpu_part_milli; /* the same in thousandths, 1..1000; 0 = not requested */
	int64_t cpu_milli, memory_bytes;
	uint8_t isolation; /* at least; enum gpuq_isolation */
	struct gpuq_alternatives choice; /* of its claims, for the caller: not packed */
	const char *mig; /* profile; gpus_milli then counts instances. NULL = devices */
	const char *mig_name; /* sealed: as jobs name it */
	const struct gpuq_amount *resources; /* further ones, by name */
	uint32_t n_resources;
	/* Set when added: all that it takes of snapshot.extras, the instances first; and the number
	 * of their profile there, SNAP_NONE without mig. */
	const struct snap_take *takes;
	uint32_t n_takes, profile;
	uint32_t unit_pods; /* pods that start and are preempted together; 0 = each alone */
	struct gpuq_term *required, *preferred;
	struct gpuq_toleration *tolerations;
	struct gpuq_strlist nodes, exclude; /* names that it requires, and avoids */
	uint32_t n_required, n_preferred, n_tolerations;
	const char *topology_required, *topology_preferred; /* levels; NULL = none */
	const struct gpuq_slice *slices; /* outermost first */
	uint32_t n_slices;
	/* For people: the first volume claim whose volume can be reached from some nodes only, which is among what is
	 * required, as "claim data"; and the label by which it tells them. NULL = none is so. */
	const char *volume, *volume_label;
};

struct snap_license_need {
	uint32_t license; /* index into snapshot.licenses */
	int64_t count;
};

/* The request of a class of equivalent jobs: added once, shared by all of them. */
struct snap_request {
	const struct snap_group *groups; /* n_groups of them, copied */
	uint32_t n_groups;
	const char *const *flavors; /* names in order of preference; n_flavors 0 = any */
	uint32_t n_flavors;
	/* By flavor: how long a job waits for it before it uses the next one as well; 0 = not,
	 * GPUQ_UNLIMITED = until requests for its nodes failed (snap_job.wait_at). NULL = for none. */
	const int64_t *waits_us;
	const struct snap_license_need *licenses; /* that one start takes */
	uint32_t n_licenses;
	bool exclusive; /* whole nodes */
	/* Requests that do as well, which differ in the devices of a group alone; they were added before it.
	 * Copied. */
	const uint32_t *others;
	uint32_t n_others;
	bool in_order; /* itself and its others are in order of preference, before that of flavors */
	/* sealed: by flavor_ix, itself and its others, n_others + 1 of them, that charged least first, or in order;
	 * NULL = it has no others */
	const uint32_t *tries;
	/* sealed: one element, all groups at their minimum */
	uint32_t group_first; /* number of groups[0] among the groups of all requests */
	const uint32_t *where; /* by group: equal numbers, equal constraints; < n_wheres */
	uint32_t n_pods;
	int64_t gpus_milli, cpu_milli, memory_bytes; /* gpus: as quotas count, see cost.h */
	bool by_memory; /* the amount counted depends on the flavor */
	const uint32_t *flavor_ix; /* n_flavor_ix indexes of flavors that exist, in order */
	uint32_t n_flavor_ix;
	const int64_t *wait_ix_us; /* by flavor_ix; NULL = it waits for none */
};

/* A number for all jobs together: of a license of the site, or 1 of a volume claim which one pod can be using at
 * a time, whose name is that of its namespace, a slash and its own. */
struct snap_license {
	const char *name;
	int64_t count;
	int64_t used; /* sealed: held by running and leaving jobs */
};

/* A limit on several jobs together: all of a qos, of a user, of a group, or those of a user in one
 * of them. GPUQ_UNLIMITED = that resource is not limited. */
struct snap_cap {
	const char *name; /* "qos/high", "user/ann", "vision/ann"; copied */
	int code; /* enum gpuq_reason that reports it; a budget has codes of its own */
	int64_t max_running, max_gpus_milli;
	int64_t left_gpu_ms; /* of a hard budget: running jobs' possible use counts */
	int64_t job_max_gpus_milli; /* of each of them */
};
#define SNAP_CAPS_MAX 16

/* The caps that a job counts against: indexes, the rest SNAP_NONE. */
struct snap_capset {
	uint32_t caps[SNAP_CAPS_MAX];
};

enum snap_job_state {
	SNAP_PENDING, /* something of it may start */
	SNAP_RUNNING /* holds capacity, or has it nominated */,
	SNAP_LEAVING /* signalled; holds capacity until it is gone */
};

enum { SNAP_HELD_USER = 1, SNAP_HELD_ADMIN = 2, SNAP_HELD_RETRIES = 4, SNAP_HELD_RESTORE = 8 };

struct snap_range { /* first, first + step, ... <= last */
	int32_t first, last, step;
};

/* A job; a running element of an array; or all pending elements of an array in one entry (key.index
 * -1 and ranges). Pending elements of one array that differ (one is requeued and excludes a node,
 * some have a dependency) may be in several entries. */
struct snap_job {
	struct snap_key key;
	uint32_t queue, request;
	uint32_t user; /* snapshot_user() */
	int state; /* enum snap_job_state */
	uint32_t attempt;
	int64_t priority; /* of its class, larger is sooner; claims compare this one alone */
	int64_t nice, boost; /* points off and on its priority within its queue */
	int64_t fixed_priority; /* replaces the computed priority; 0 = not fixed */
	int64_t submit_us;
	int64_t eligible_us; /* since when it has been eligible to start; 0 = submit_us */
	int64_t begin_us, deadline_us; /* 0 = none */
	/* It may use flavors up to this one, which it has been waiting for since then. For a request with waits. */
	uint32_t wait_at;
	int64_t wait_from_us;
	int64_t walltime_us; /* GPUQ_UNLIMITED = none */
	int64_t walltime_min_us; /* while pending, it may be given less, down to this, if that
				  * lets it start; 0 = not allowed */
	int64_t walltime_asked_us; /* of a job given less time: the limit it is pending with
				    * again when preempted; 0 = walltime_us */
	int64_t grace_us; /* grace period between signal and kill */
	int64_t yield_us; /* of a running job: when its places go to another job, see plan.h; 0 */
	int64_t start_us; /* of a running job; else 0 */
	int64_t placed_us; /* of a running job: when it was placed; 0 = start_us */
	bool starting; /* some of its pods are not running yet: its walltime has not begun */
	bool preemptible;
	bool spared; /* running on nodes that it was given for a time: not preempted for others */
	bool spread; /* prefers the emptiest nodes over the fullest */
	/* Its ranges number equivalent jobs in queue order, itself the first of them, not elements
	 * of an array; see flow/schedule.h. */
	bool alike;
	uint8_t held; /* SNAP_HELD_* */
	/* Any other obstacle that the model knows: GPUQ_R_DEPENDENCY, _DEPENDENCY_NEVER,
	 * _NAMESPACE_QUOTA, ...; GPUQ_R_NONE = none. */
	uint8_t gate;
	const char *gate_object; /* "afterok:17"; copied; NULL = "" */
	const uint32_t *exclude; /* handles of nodes it failed on; copied */
	uint32_t n_exclude;
	/* Work lost on preemption. */
	int64_t checkpoint_us; /* its last checkpoint; 0 = none known */
	int64_t restart_cost_us; /* time that a start takes before work continues */
	int64_t charge_milli; /* weight of its usage, in thousandths */
	uint32_t capset; /* into capsets; SNAP_NONE = none */
	bool returns; /* of a leaving job: it will be pending again */
	int64_t min_runtime_us; /* protected from eviction this long after its start; 0 = as its
				 * queue says */
	bool evict_last; /* preempted after others of equal entitlement */
	int64_t evicted_us; /* when it was last preempted for another queue; 0 = never */
	uint32_t evicted_for; /* handle of that queue */
	uint32_t n_evicted_day, n_moved_day; /* in the last 24 hours */
	int64_t shrunk_us; /* when it last lost pods beyond its minimum; 0 = never */
	int64_t short_us; /* since when it has fewer pods than its minimum; 0 = it has them */
	const struct snap_range *ranges; /* pending elements, ascending, disjoint; copied */
	uint32_t n_ranges; /* 0 = one job or one element */
	uint32_t throttle; /* of its array: maximum running at once; 0 = no limit */
	/* sealed */
	uint32_t n_waiting; /* pending elements (1 for a job); 0 unless pending */
	uint32_t usage; /* of its user in its queue: into usages */
	uint32_t alloc_first, n_allocs;
	uint32_t promise_first, n_promises; /* into snapshot.promises */
};

/* Return the first element that it stands for; -1 = it is not part of an array. Jobs of one number
 * are sorted by it: a requeued element precedes the elements of its array that never ran. */
static inline int64_t snapshot_element(const struct snap_job *j)
{
	return j->n_ranges ? j->ranges[0].first : j->key.index;
}

/* The places of one pod, held or nominated: a job that others were preempted for owns those places
 * until it starts there, whatever still runs on them. A nominated job is pending (one element, no
 * ranges), or leaving when it is being moved. */
struct snap_alloc {
	uint32_t job, node;
	uint32_t group; /* of its request */
	uint32_t index; /* over all groups */
	bool releasing; /* signalled to end */
	const uint32_t *devices; /* ascending; copied */
	uint32_t n_devices;
	int32_t milli; /* charged for each device; sealed: taken of its cores; 0 = no devices */
	int64_t device_memory_bytes; /* of each device; 0 = not counted */
	/* Its group has claims that pods share: it is charged charge_milli, whatever that requests. stays: its devices
	 * stay with pods of other jobs when it ends. */
	bool shares, stays;
	int64_t charge_milli;
};

/* A slice of the reservations: [start, end). Nodes, or an amount of one flavor (SNAP_NONE = of any)
 * anywhere. Jobs of the queue, of the users, of both where both are given, may start inside once it
 * has begun; others run there only until it begins. */
struct snap_reservation {
	const char *name;
	int64_t start_us, end_us;
	const uint32_t *nodes; /* handles, copied; sealed: indexes */
	uint32_t n_nodes;
	int64_t gpus_milli; /* 0 = it has nodes */
	uint32_t flavor;
	const char *pool; /* of an amount: on the pool's nodes alone; NULL = on any */
	uint32_t queue; /* SNAP_NONE = of any */
	const uint32_t *users; /* handles, copied */
	uint32_t n_users;
	bool maintenance; /* no job may use it; jobs on it are preempted at its start */
	/* From this long after its start it keeps only what jobs of its owners that have started by
	 * then hold: an amount keeps nothing further; 0 = it keeps all to its end. */
	int64_t release_us;
	bool ends_jobs; /* jobs that still run in it are signalled before its end */
};

/* Pending jobs of one queue that differ only in how long they have been pending, so that a finding
 * about one holds for all. They are in order of service: no job became eligible, or was submitted,
 * later than the one behind it. */
struct snap_run {
	uint32_t first, last; /* jobs */
	uint32_t n_jobs;
	uint32_t next; /* run of the queue, SNAP_NONE = none */
};

/* Jobs by what a cycle does with them. Jobs that are alike to no other (arrays, those with a
 * throttle, a nominated placement, or nodes to avoid) are runs of one. */
struct snap_lines {
	struct snap_run *runs; /* of one queue in the order in which they were opened */
	uint32_t *first_run; /* by queue; SNAP_NONE = no pending jobs */
	uint32_t *run_of; /* by job; SNAP_NONE = nothing of it is pending */
	uint32_t *behind; /* by job: the next of its run, SNAP_NONE = none */
	uint32_t *busy; /* ascending: jobs that hold capacity, or have it nominated */
	uint32_t *array_of; /* by job: number of its array, SNAP_NONE = it has no throttle */
	uint32_t n_runs, n_busy, n_arrays;
	uint32_t room_jobs, room_runs; /* of the tables */
};

struct snap_builder;

struct snapshot {
	struct gpuq_arena arena; /* all tables live in it */
	struct snap_config config;
	bool sealed; /* from then on handles are indexes, and nothing is added */

	struct snap_flavor *flavors; /* by rank, then name */
	struct snap_class *classes;
	struct snap_node *nodes; /* by name */
	struct snap_joint *joints;
	struct snap_device *devices; /* node by node */
	struct snap_queue *queues; /* parents before children */
	struct snap_share *shares; /* queue q, resource r: shares[q * n_res + r] */
	struct snap_license *licenses;
	struct snap_cap *caps;
	struct snap_capset *capsets;
	struct snap_request *requests; /* each as often as it differs */
	struct snap_job *jobs;
	struct snap_alloc *allocs; /* by job, then pod index */
	struct snap_alloc *promises; /* by job, then pod index */
	struct snap_reservation *reservations; /* by start, end and name */
	/* MIG profiles that nodes have or requests name, and countable resources that requests
	 * name; node n, extra x: [n * n_extras + x]. A node that does not count local storage has
	 * SNAP_PLENTY of it. */
	const char **extras;
	int64_t *extra_total, *extra_free;
	const char **users; /* by name */
	struct snap_usage *usages; /* by queue, then as users first appeared; sealed: one for
				    * every queue and user of a job */
	struct snap_loss *losses; /* by time, claimant, job */
	const char **label_keys; /* labels that requests and levels name */
	uint32_t n_flavors, n_classes, n_joints, n_nodes, n_devices, n_queues, n_licenses,
		n_requests;
	uint32_t n_groups; /* of all requests */
	uint32_t n_wheres; /* distinct constraints among them */
	uint32_t n_jobs, n_allocs, n_promises, n_caps, n_capsets, n_users, n_usages, n_losses,
		n_label_keys, n_reservations, n_extras;
	/* Resources that quotas count: flavors 0..n_flavors-1, then cpu, then memory. */
	uint32_t n_res;
	int64_t *capacity; /* by resource, of usable nodes; GPUQ_UNLIMITED = not counted */
	/* The demand of pending jobs that are not in the snapshot, see sched/left_out.h: queue q,
	 * resource r: [q * n_res + r]. Borrowed, set once it is sealed; NULL = all are in it. */
	const int64_t *left_out;
	struct snap_lines lines;

	struct snap_builder *builder; /* until sealed */
};

/* Return the thousandths of a device that a part of its memory takes, rounded up: 1..1000 for 0 <
 * part <= memory. */
static inline int32_t snap_memory_milli(int64_t part, int64_t memory)
{
	/* Amounts beyond 2^53 need not be exact to the byte. */
	while (part > (INT64_C(1) << 52)) {
		part = (part >> 1) + (part & 1);
		memory >>= 1;
	}
	part = (part * SNAP_MILLI + memory - 1) / memory;
	return part < SNAP_MILLI ? (int32_t)part : SNAP_MILLI;
}

/* As snap_memory_milli, rounded down, 1 at least: three thirds are no more than one device. For devices
 * whose memory alone is shared, and counted as well. */
static inline int32_t snap_memory_milli_down(int64_t part, int64_t memory)
{
	const int32_t up = snap_memory_milli(part, memory);

	for (; part > (INT64_C(1) << 52); part >>= 1)
		memory >>= 1;
	return up > 1 && up * memory > part * SNAP_MILLI ? up - 1 : up;
}

/* Return the memory that devices with that unit (0 = any amount) give for a request of so many bytes. */
static inline int64_t snap_memory_up(int64_t bytes, int64_t unit)
{
	const int64_t over = unit > 0 && bytes > 0 ? bytes % unit : 0;

	return over == 0 || bytes > INT64_MAX - unit ? bytes : bytes - over + unit;
}

/* Return the memory that a part of so many thousandths of a device gets: whole units, at least one. */
static inline int64_t snap_memory_down(int64_t memory, int32_t milli, int64_t unit)
{
	const int64_t part = memory / SNAP_MILLI * milli + memory % SNAP_MILLI * milli / SNAP_MILLI;

	if (unit <= 0 || milli >= SNAP_MILLI || memory < unit)
		return part;
	return (memory / unit * milli / SNAP_MILLI > 0 ? memory / unit * milli / SNAP_MILLI : 1) *
	       unit;
}

/* Return the thousandths of a device that one of its replicas is; 0 without any. */
static inline int32_t snap_replica_milli(uint32_t replicas)
{
	return replicas > 1 ? SNAP_MILLI / (int32_t)replicas : 0;
}

/* Return the group; the first one for a pod that its request does not know. */
static inline const struct snap_group *snap_group_at(const struct snap_request *r, uint32_t group)
{
	return &r->groups[group < r->n_groups ? group : 0];
}

/* Return the group of a pod. */
static inline const struct snap_group *snap_group_of(const struct snapshot *s,
						     const struct snap_alloc *a)
{
	return snap_group_at(&s->requests[s->jobs[a->job].request], a->group);
}

/* True if the device, with so much of it free, can be had whole. */
static inline bool snap_is_whole(const struct snap_device *d, int32_t free_milli)
{
	return free_milli == SNAP_MILLI && d->serves != SNAP_SERVES_PARTS;
}

/* Return the number of devices of which one pod of the group takes a part each: 0 = it takes whole
 * ones. */
static inline uint32_t snap_group_parts(const struct snap_group *g)
{
	if (g->mig)
		return 0;
	if (g->gpu_memory_bytes || g->gpu_part_milli)
		return g->gpus_milli <= SNAP_MILLI ? 1 : (uint32_t)(g->gpus_milli / SNAP_MILLI);
	return g->gpus_milli % SNAP_MILLI != 0;
}

/* Return the thousandths of each device that one pod of the group requests beside memory; 0 = none. */
static inline int32_t snap_group_part(const struct snap_group *g)
{
	const int32_t part = (int32_t)(g->gpus_milli % SNAP_MILLI);

	return g->gpu_part_milli > part ? g->gpu_part_milli : part;
}

/* Return how many of the flavors of its request a job may use now. *next_us: when it may use another
 * one; GPUQ_UNLIMITED = time alone opens none. */
static inline uint32_t snap_flavors_open(const struct snapshot *s, const struct snap_job *j,
					 int64_t *next_us)
{
	const struct snap_request *r = &s->requests[j->request];
	uint32_t open = j->wait_at + 1;
	int64_t from = j->wait_from_us;

	*next_us = GPUQ_UNLIMITED;
	if (!r->wait_ix_us || open >= r->n_flavor_ix)
		return r->n_flavor_ix;
	for (; open < r->n_flavor_ix; open++) {
		const int64_t wait = r->wait_ix_us[open - 1];

		if (wait == 0)
			continue;
		if (wait == GPUQ_UNLIMITED)
			return open;
		if (__builtin_add_overflow(from, wait, &from))
			return open;
		if (from > s->config.now_us) {
			*next_us = from;
			return open;
		}
	}
	return open;
}

static inline uint32_t snap_cpu(const struct snapshot *s)
{
	return s->n_flavors;
}

static inline uint32_t snap_memory(const struct snapshot *s)
{
	return s->n_flavors + 1;
}

void snapshot_weights_default(struct snap_weights *w); /* class, then fair share, then age */
void snapshot_config_default(struct snap_config *c);
void snapshot_share_default(struct snap_share *s); /* quota auto, no limit, lends all */
void snapshot_queue_default(struct snap_queue *q); /* weight 1, rank 0, no limits */
void snapshot_node_default(struct snap_node *n); /* ready, nothing counted */
void snapshot_job_default(struct snap_job *j); /* pending, preemptible, no times */

/* Extract the scheduling part of a job's spec. Strings and lists are borrowed from g, which must
 * live until the request has been added. */
void snapshot_group_from_spec(const struct gpuq_group *g, struct snap_group *out);

/* Return a new snapshot to be built; NULL: no memory. Free it with snapshot_free() (NULL is
 * allowed), sealed or not. */
struct snapshot *snapshot_new(const struct snap_config *config);
void snapshot_free(struct snapshot *s);

/* Adders copy their arguments, except where a field says it is borrowed, and return the object's
 * handle; SNAP_NONE: no memory (which sticks: sealing then fails). All flavors come before the
 * first node and queue, all users and licenses before any object that refers to them, requests and
 * queues before jobs, jobs and nodes before allocs; queues, users and nodes before reservations.
 * Requests with equal content get the same handle. */
uint32_t snapshot_add_flavor(struct snapshot *s, const char *name, int64_t rank);
void snapshot_set_grows(struct snapshot *s, uint32_t flavor);
void snapshot_set_rate(struct snapshot *s, uint32_t flavor, int64_t rate_milli);
uint32_t snapshot_add_license(struct snapshot *s, const char *name, int64_t count);
uint32_t snapshot_add_queue(struct snapshot *s, const struct snap_queue *q);
uint32_t snapshot_add_node(struct snapshot *s, const struct snap_node *n);
uint32_t snapshot_add_request(struct snapshot *s, const struct snap_request *r);
uint32_t snapshot_add_job(struct snapshot *s, const struct snap_job *j);
/* Add one more behind the last of the job's only range. */
void snapshot_add_alike(struct snapshot *s, uint32_t job);
uint32_t snapshot_add_alloc(struct snapshot *s, const struct snap_alloc *a);
uint32_t snapshot_add_promise(struct snapshot *s, const struct snap_alloc *a);
uint32_t snapshot_add_reservation(struct snapshot *s, const struct snap_reservation *r);
uint32_t snapshot_add_cap(struct snapshot *s, const struct snap_cap *c); /* its index */
uint32_t snapshot_add_capset(struct snapshot *s, const struct snap_capset *c);
uint32_t snapshot_user(struct snapshot *s, const char *name); /* same name, same handle */
/* Add to the user's usage in that queue. False: no memory. */
bool snapshot_add_usage(struct snapshot *s, uint32_t queue, uint32_t user, uint64_t used);

bool snapshot_add_loss(struct snapshot *s, const struct snap_loss *l); /* false: no memory */

/* Sort, resolve and derive; afterwards the snapshot never changes.
 *
 * Returns 0; GPUQ_EINVAL with a sentence (unknown parent, a cycle of queues, two
 * objects of one name, a job without queue); GPUQ_ENOMEM. On failure it can only be
 * freed. Whatever a cluster can do to a model is no error: a device that disappeared holds
 * nothing, a job whose queue got children is pending. */
int snapshot_seal(struct snapshot *s, struct gpuq_err *err);
/* Seal in steps: after the first step nothing is borrowed any more; call it until *more is
 * false. */
int snapshot_seal_step(struct snapshot *s, bool *more, struct gpuq_err *err);

/* Return the index of an object of a sealed snapshot, by binary search; SNAP_NONE = unknown. */
uint32_t snapshot_find_node(const struct snapshot *s, const char *name);
uint32_t snapshot_find_queue(const struct snapshot *s, const char *name); /* linear */
uint32_t snapshot_find_flavor(const struct snapshot *s, const char *name); /* linear */
uint32_t snapshot_find_job(const struct snapshot *s, struct snap_key key);
#endif
