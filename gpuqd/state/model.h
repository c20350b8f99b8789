/* model.h - the whole state of gpuqd
 *
 * Owns     jobs, pods, nodes, requests, keys, the site's tree of queues, usage.
 * Touches  memory only: no clock, no I/O. Every event has its time.
 * Used by  flow/ (applies events, reads), rpc/ (reads), snapshot/snapshot (reads).
 *
 * model_apply() (record/model_apply.h) is the only writer. Applying marks what changed;
 * model_collect(), there too, turns that into records. A job that has ended and whose pods are
 * gone becomes a history record and leaves memory. Pointers into the model hold until the next
 * event.
 */
#ifndef GPUQD_STATE_MODEL_H
#define GPUQD_STATE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>
#include <utlist.h>

#include "gpuqd/state/equivalent.h"
#include "gpuqd/state/record/change.h"
#include "gpuqd/state/event.h"
#include "gpuqd/state/idle.h"
#include "gpuqd/state/objects/objects.h"
#include "gpuqd/state/objects/origin.h"
#include "gpuqd/state/record/keys.h"
#include "gpuqd/site/policy.h"
#include "gpuqd/state/record/request.h"
#include "libgpuq/spec/resource.h"
#include "gpuqd/util/blob.h"
#include "gpuqd/site/site.h"
#include "gpuqd/util/table.h"
#include "gpuqd/state/usage.h"

struct queue {
	const char *name; /* interned */
	struct job *jobs; /* of this queue alone: queue_next */
	struct queue *parent; /* NULL = at the top */
	const struct site_queue *site; /* never NULL */
	const struct site_budget *budget; /* its own, or the default of leaves; NULL = none */
	uint32_t ix; /* in model->queues; parents before children */
	uint32_t n_children;
	uint32_t n_pending, n_running; /* array elements counted; of this queue alone */
	uint32_t n_unknown, n_recovered; /* not ended: jobs held by a restore, and recovered jobs */
	int64_t allocated_milli, held_milli; /* of this queue alone */
	int64_t fair_milli; /* of the last cycle; -1 before the first; not stored */
	/* Charges of ended pods since the day spent_from, here and below, in device-us at their
	 * rates; counted on first use, not stored. */
	int64_t spent_us, granted_us, spent_from;
	bool spent_known; /* otherwise added up when it is asked for */
	struct refused
		*refused; /* the cluster takes none of its pods; NULL = it does; not stored */
};

/* Why the cluster takes no pod of a queue. */
struct refused {
	const char *object; /* kind/name of what refuses; interned */
	int64_t since_us;
	char words[]; /* the cluster's, one line */
};

/* Why the pods of a job that starts do not run, or why the last attempt had none. */
struct trouble {
	const char *object; /* interned */
	enum trouble_whose whose;
	uint32_t pod; /* its index */
	int64_t since_us;
	char words[]; /* the cluster's, one line */
};

struct reason {
	uint16_t code; /* enum gpuq_reason */
	uint16_t unit; /* enum gpuq_unit */
	uint32_t ask; /* PROVISIONING: number of the request; 0 = not known */
	const char *object; /* interned */
	int64_t have, need, since_us;
};

struct blocked {
	enum gpuq_reason code; /* what keeps it from starting */
	const char *object; /* interned */
	int64_t since_us, until_us;
	char words[]; /* the cluster's, one line; "" none */
};

struct dep {
	struct dep *prev, *next; /* of all with the same subject, while it is unmet */
	struct job *job; /* that depends */
	int type; /* enum gpuq_depend_type */
	struct job_key on;
	int64_t delay_us; /* after what is awaited has happened */
	enum { DEP_WAITING, DEP_DONE, DEP_NEVER } state; /* pending, met, or impossible */
	int64_t at_us; /* of DEP_DONE: holds from then on */
};

/* All dependencies of a job. */
struct deps {
	uint32_t n;
	struct dep items[]; /* in the order of the request */
};

struct eviction {
	int64_t at_us;
	enum gpuq_cause cause; /* beside the rule: preemption, node loss, a user's requeue */
	const char *rule, *by, *by_queue; /* interned */
	char *why; /* the numbers behind it, one line; NULL = none */
};

/* A nominated placement: places that a job owns although others may still hold them, from the
 * signal to those until it starts there. */
struct promised_pod {
	uint32_t group, group_index;
	const char *node; /* interned; the node may be gone */
	int64_t gpus_milli; /* of all its devices */
	const char *mig; /* as in struct pod */
	struct gpuq_alternatives choice; /* likewise */
	uint32_t n_devices;
	uint16_t *devices; /* indexes on the node */
};

/* The job is pending although as many devices are free as it requests: they are fragmented. Only
 * one such job for each flavor is noted, so that no device is counted twice. */
struct apart {
	const char *flavor; /* interned */
	int64_t milli, since_us;
};

struct promise {
	int64_t at_us; /* since when the placement is kept for it */
	const char *flavor, *rule; /* interned; rule: of its victims' preemption; "" none */
	char *why; /* the numbers behind it, one line; NULL = none */
	struct promised_pod *pods; /* by index */
	struct job_key *victims;
	uint32_t n_pods, n_victims;
};

struct array {
	struct gpuq_range *waiting; /* elements not split off yet; sorted */
	size_t n_waiting_ranges;
	int64_t n_waiting, size, throttle; /* elements: still pending, all, running at once */
	int64_t n_live; /* split off and not ended */
	int worst_exit; /* of ended elements */
	enum gpuq_job_state worst; /* COMPLETED until an element ended in another state */
	char *indices; /* "0-99:2" as submitted */
};

struct node;
struct job;
struct backend;

struct pod {
	struct pod *job_prev, *job_next; /* of its job, by attempt and index */
	struct pod *node_prev, *node_next; /* of its node */
	struct job *job;
	struct node *node; /* always there: a node that is gone stays as long as pods name it */
	uint32_t attempt, index, group, group_index;
	enum gpuq_pod_state state;
	enum pod_fault fault; /* what ended it, beside its exit code */
	bool dirty; /* to be written */
	bool leaving; /* signalled to end, by gpuqd or others; not stored */
	/* The attempt continues without it, however it ends: an elastic job that shrank, or lost
	 * it. */
	bool dropped;
	bool untold; /* it ended before the cluster signalled it; not stored */
	bool named; /* refused for lack of a resource that its node counts; not stored */
	bool recovered; /* it ran before this ledger knew it; not stored */
	/* How its devices are known. EXCHANGED: those of the plan are another pod's, as the cluster
	 * reported, and these are as good a guess. */
	enum devices_from { DEVICES_PLANNED, DEVICES_TOLD, DEVICES_EXCHANGED } devices_from : 8;
	int exit_code; /* -1 until it ended, or when it never ran */
	int64_t placed_us, start_us, end_us;
	int64_t strand_from_us; /* the node's strand_us at its arrival; not stored */
	/* Held while not ENDED or GONE. cpu and memory: its request's, or those that the cluster
	 * reports where they are larger. */
	int64_t cpu_milli, memory_bytes, gpus_milli;
	/* Since when that many devices are charged, before_milli until then; 0 = from its placement on. */
	int64_t charged_us, before_milli;
	uint16_t
		rides; /* claims of its group that another pod is charged for, a bit each: cuts/shared_claim.h */
	uint16_t beside; /* those that any other pod has as well */
	/* Profile of its instances, where its group accepts several; interned; NULL = as that has it:
	 * model_pod_mig(). */
	const char *mig;
	struct gpuq_alternatives choice; /* of alternatives of its claims */
	char uid[48];
	char *message; /* NULL = none */
	struct used *used; /* by measurements so far, or at its end; NULL = none; not stored */
	uint32_t n_devices;
	uint16_t devices[]; /* indexes on the node */
};

/* The rule of evicting a job whose start timed out. */
#define RULE_START_TIMEOUT "start_timeout"
/* The rule of giving back the places of a job that the cluster refuses: it does not count as a try. */
#define RULE_REFUSED "ClusterRefused"
/* The rule of failing a job whose pods cannot run for a reason of its own: with the cause of a limit,
 * that of the time for which they may try. */
#define RULE_CANNOT_START "cannot_start"
/* The plugin of its node gave it no device. */
#define RULE_PLUGIN "plugin_timeout"
/* The plugin of its node gave the planned devices to other pods before the job had any: it is placed anew. */
#define RULE_ROOM "device_room"
#define RULE_SPOT "spot" /* its cloud took a node of a spot pool */
#define RULE_POD_LOST "pod_lost" /* some pod of it was lost, or is about to be */
/* The rule of a time limit that follows from a deadline. */
#define RULE_DEADLINE "deadline"
/* The rule of ending an attempt whose node is about to be taken away by its cloud. */
#define RULE_NODE_ENDS "node_ends"

/* Exit code of a job that saved its state and is to be started again, as HTCondor's
 * checkpoint_exit_code. */
#define JOB_EXIT_SAVED 85

/* A node that recently failed a job. */
struct avoided {
	const char *node; /* interned */
	int64_t until_us;
};
#define JOB_AVOIDS_MAX 4
#define JOB_AVOID_US (900 * INT64_C(1000000)) /* for how long it is avoided */
#define JOB_AVOID_NARROW_US (60 * INT64_C(1000000)) /* by a job that restricts its nodes itself */

struct avoids {
	struct avoided items[JOB_AVOIDS_MAX]; /* oldest first */
	uint32_t n;
};

/* Nodes whose kubelets refused its pods since any of them last ran, without naming a resource beside devices that
 * the node counts: then the node is at fault. The job is at fault after three nodes, or after this many
 * refusals where there are fewer. */
#define REJECTED_NODES 3
#define REJECTED_MAX 8

struct rejected {
	const char *nodes[REJECTED_NODES]; /* interned */
	uint32_t n_nodes, n; /* n: refusals */
	uint32_t n_named; /* refusals that name a resource, since the last of the others */
};

/* Utilization of the attempt's devices. */
struct job_load {
	struct idle idle; /* how long its devices were idle */
	int64_t at_us; /* of the last measurement */
	int32_t milli; /* average of the measured devices then; 0 .. 1000 */
	int64_t milli_sum, n; /* of all measurements of the attempt */
};

/* Settings of its owner apart from the request, the queue and the time. */
struct wish {
	const char *account; /* interned; "" none */
	const char *mail, *web; /* recipients of its messages; interned; "" none */
	unsigned mail_on, web_on; /* on which events: enum gpuq_notify_on */
	uint32_t uid, gid;
	int64_t begin_us, deadline_us; /* of the wall clock, as they were written; 0 = none */
	/* For jobs that may be given less time than requested: the request, and the minimum. 0 =
	 * not allowed. */
	int64_t time_asked_us, time_min_us;
	int64_t nice; /* points subtracted from its priority */
	int64_t fixed_priority; /* set by an operator; 0 = not */
	int64_t grace_us; /* grace period of an eviction; 0 = not set */
	int64_t lease_us; /* it ends this long after its client is gone; 0 = never */
	int64_t warn_lead_us; /* a signal comes this long before its time ends; 0 = none */
	int64_t checkpoint_every_us; /* interval of its checkpoints; 0 = not set */
	int64_t retry_limit; /* attempts beyond the first */
	uint64_t retry_exits[4]; /* exit codes after which it is retried, a bit for each */
	unsigned retry_on; /* and further cases: enum gpuq_retry_on, or'ed */
	bool requeue, depends_any, kill_on_invalid_dep;
	bool saves; /* JOB_EXIT_SAVED is not a failure */
};

/* The last cycle's results for a pending job: why it is pending, and when it may start. Not
 * stored. */
struct outlook {
	int64_t planned_us; /* estimated start; 0 = not known */
	struct priority_terms terms; /* of priority */
	bool ranked; /* its priority has been computed */
	uint8_t n_reasons;
	struct reason reasons[]; /* the first explains it */
};

/* The part of a job that only placed, preempted or delayed jobs have. */
struct life {
	const char *flavor; /* interned; "" none */
	int64_t placed_us, start_us, end_us; /* of the last attempt; start: all its pods ran; 0 =
					      * not yet */
	int64_t gpu_us; /* device-microseconds of ended pods */
	int64_t not_before_us; /* after a requeue */
	int64_t yield_us; /* of the attempt: when its places go to another job; 0 = never */
	int64_t shrunk_us; /* when this attempt last lost pods; 0 = never */
	int64_t short_us; /* since when it has fewer pods than its minimum; 0 = it has them */
	uint32_t n_retries; /* retries used up */
	uint32_t n_indexes; /* pod indexes that this attempt has used */
	uint32_t n_evictions;
	uint32_t element_id; /* an element's own number; 0 before its first start */
	unsigned told; /* of an array, or of this attempt: events reported; enum gpuq_notify_on */
	struct eviction *evictions;
	struct promise *promise; /* NULL = none */
	struct apart *apart; /* NULL = none */
	struct avoids *avoids; /* NULL = none */
	struct blocked
		*blocked; /* due to outside causes (NamespaceQuota); NULL = not; not stored */
	struct rejected *rejected; /* NULL = by none; not stored */
	struct trouble *trouble; /* of this attempt; NULL = none is known; not stored */
	struct job_load *load; /* NULL = no measurement; not stored */
	struct used *used; /* by the ended pods of the attempt; NULL = not known */
	/* How this attempt will end, once that is known. */
	enum gpuq_job_state outcome; /* GPUQ_JOB_PENDING = not known */
	int outcome_exit;
	enum gpuq_cause leave_cause; /* why it was signalled; NONE = it was not */
	int exit_code; /* of the ended job; -1 none */
	int64_t leave_us, leave_grace_us;
	char *message; /* why it ended like that; NULL = none */
	char *token; /* of the attempt, 32 hex; NULL before the first */
	struct job *kin_prev, *kin_next; /* of an array's element: its siblings */
};

/* A job. Hundreds of thousands may be pending, so the struct itself holds only what differs from
 * one to the next; the rest is shared, or allocated only when needed. */
struct job {
	/* Members that every cycle reads of every job are adjacent. */
	struct job_key key;
	struct job *next; /* of all jobs, in order of arrival */
	const struct wish *wish; /* never NULL; blob.h, as name, labels and outlook */
	const struct life *life; /* never NULL; job_life() to write */
	struct pod *pods; /* all that are not gone, and those of the last attempt */
	struct alike *alike; /* equivalent.h; NULL = not known, or like no other; not stored */
	enum gpuq_job_state state : 8;
	bool dirty : 1, ended : 1; /* to be written; in a final state */
	bool held_user : 1, held_admin : 1, held_retries : 1,
		started_once : 1; /* kinds of holds; it has run before */
	bool cancel_asked : 1; /* its pods are being ended for that */
	bool held_restore : 1; /* it ran when the store was copied; its outcome is not known */
	bool recovered : 1; /* made from its pods: command not known, so never retried */
	bool warned : 1; /* this attempt was warned that its time ends soon */
	bool alone : 1; /* has an entry of its own in the snapshot being taken; not stored */
	bool nothing_beside : 1; /* no objects beside its pods; not stored */
	bool settled : 1; /* the last cycle could not start it: left_out.h; not stored */
	uint32_t attempt; /* number of attempts beyond the first */
	int64_t submit_us, eligible_us, time_limit_us;
	const struct outlook *outlook; /* never NULL */
	struct array *array; /* of an array's pending part; else NULL */
	struct deps *deps; /* NULL = no dependencies */
	struct queue *queue;
	struct request *request; /* shared by equal jobs */
	const char *user, *qos; /* interned */
	const char *name;
	const char *labels; /* joblabel.h; NULL none */
	const char *notes; /* jobnote.h; NULL none */
	uint32_t n_log; /* entries in its log */
	uint32_t spec_bytes; /* of its owner's spec; 0 for an array's element */
	uint32_t dirty_at; /* among model.dirty_jobs */
	/* The lists that it is in: of all jobs, of its user's and its queue's, and of those in its
	 * state. */
	struct job *prev, *user_prev, *user_next, *queue_prev, *queue_next;
	struct job *state_prev, *state_next; /* jobs of the same state */
};

struct device {
	const char *uuid, *product; /* interned */
	int64_t memory_mib;
	bool healthy; /* jobs may be placed on it */
	int64_t freed_us; /* when a pod of gpuq's last left it; 0 = never; not stored */
};

/* Shortage of a resource on a node, as its kubelet reports it, beyond what the ledger holds. It is
 * kept until the node is seen to have it (state/node_short.c). */
#define NODE_SHORTS_MAX 8
struct node_short {
	const char *resource; /* interned; NULL = none */
	int64_t lacks, until_us; /* until then it is believed of waiting jobs as well */
	int64_t offered; /* by the node then; another number, and it is over */
	uint32_t times; /* that it was believed so far; 0 = not counted */
};

/* The part of a device that foreign pods hold, in thousandths and bytes. */
struct foreign_use {
	uint32_t milli; /* of its cores, or of its memory if that is more */
	uint32_t cores_milli;
	int64_t bytes; /* of its memory */
};

/* A device that foreign pods name by a UUID that no device of their node has. */
struct foreign_stranger {
	const char *uuid; /* interned */
	int64_t milli; /* of it that they hold */
	uint32_t n_held; /* pods that have such a device for them, and are counted instead */
};

struct node_cut;

struct node {
	UT_hash_handle hh;
	const char *name, *cluster, *flavor, *pool; /* interned */
	const char *kind; /* of its devices, site/product.h; interned; "" = not known, or none */
	struct node_fact fact; /* labels, taints, allocatable; owned */
	struct gpuq_arena arena; /* of the fact */
	struct device *devices;
	uint32_t n_devices;
	uint32_t n_offered; /* of them; those behind are kept for pods that have them */
	struct foreign_use *foreign_on; /* by device; in the arena; not stored */
	uint32_t *foreign_mig; /* of fact.mig[i], held by foreign pods; in the arena; not stored */
	int64_t *foreign_amounts; /* the same of fact.resources[i] */
	bool dirty, gone; /* gone: kept while its pods are not known to be gone */
	bool drain;
	const char *drain_why; /* interned */
	const char *drain_by; /* the user that did it; interned; "" = not known */
	int64_t drain_us; /* when; 0 = not known */
	const char
		*ill; /* why its conditions or taints keep new work away; interned; NULL = well */
	bool taken; /* they tell that its cloud takes it away */
	/* The cluster's report of its devices, before the site's word: labels, devices, device,
	 * replicas and mig alone. */
	struct node_fact told;
	const struct backend
		*backend; /* that allocates its devices, by its label; NULL = none of them */
	bool closed; /* which may do so for another scheduler: no device of it is gpuqd's to give */
	struct node_cut *cut; /* of its cards into instances, the last time; NULL = never */
	const char *odd; /* how the site's inventory and the node differ, in its arena; NULL */
	const char *
		unused; /* why some of its devices are not, in its arena; NULL = not told; not stored */
	bool suspect;
	bool frozen; /* its devices do not add up: no more starts there; not stored */
	const char *frozen_why; /* interned */
	int64_t backoff_until_us;
	/* The used ones are the first, the oldest gives way. */
	struct node_short shorts[NODE_SHORTS_MAX];
	int64_t seen_us; /* last news of it */
	int64_t first_us; /* when this run first heard of it as new; 0 = it was stored; not stored */
	bool asked; /* it came for a request; not stored */
	int64_t ends_us; /* when its cloud takes it away; 0 = not known; not stored */
	uint32_t snap_ix; /* handle in the snapshot being taken */
	struct pod *pods;
	/* Devices stranded beside its pods (accounting_charge_strand), not stored: since when, how
	 * many, and the device-us of it assigned to each of the pods there so far. */
	int64_t strand_at_us, stranded_milli, strand_us;
	uint32_t n_strands; /* pods there */
	/* held by foreign pods; not stored */
	int64_t foreign_cpu_milli, foreign_memory_bytes, foreign_gpus_milli, foreign_pods;
	/* The share of foreign_gpus_milli on devices whose UUIDs the node does not report; owned. */
	struct foreign_stranger *strangers;
	uint32_t n_strangers;
};

#define FOREIGN_DEVICES_MAX 16
#define FOREIGN_MIG_MAX 4 /* profiles counted of one foreign pod */

struct foreign {
	UT_hash_handle hh;
	char uid[48]; /* of a pod that gpuqd did not make */
	const char *node; /* interned */
	int64_t cpu_milli, memory_bytes, gpus_milli;
	int64_t device_bytes; /* memory of each of its devices; 0 = in proportion */
	int64_t device_units; /* pod_fact.device_units */
	/* Where the cluster reports its devices: the same part of each. A foreign pod's are
	 * believed only where it is a part of one device; those of a pod with gpuq's token
	 * always. */
	uint16_t devices[FOREIGN_DEVICES_MAX];
	uint32_t n_devices;
	const char **uuids; /* of them, where those are reported instead; interned; NULL = none */
	const char *
		*holds; /* UUIDs that others give, of devices that it holds for them; likewise */
	uint32_t n_uuids, n_holds;
	struct mig_fact mig[FOREIGN_MIG_MAX]; /* profiles interned */
	uint32_t n_mig, n_resources;
	struct gpuq_amount *resources; /* in one block with the names; NULL = none */
};

/* Return how much of a resource the ledger has as free on a node, without what it lacks; below 0:
 * more is held. */
int64_t node_ledger_free(const struct model *m, const struct node *n, const char *resource);
/* Return how much a node lacks of a resource now, beside what its pods hold. */
int64_t node_lacks(const struct node *n, const char *resource, int64_t now_us);
/* Return how many instances of a profile it lacks so. */
uint32_t node_lacks_instances(const struct node *n, const char *profile, int64_t now_us);
/* Return when the first of these that hold now ends; GPUQ_UNLIMITED = none does. */
int64_t node_lacks_until(const struct node *n, int64_t now_us);
/* Return what is known of it; NULL = no refusal that the node has not made up for since. */
const struct node_short *node_short_find(const struct node *n, const char *resource);
/* True if the node counts the resource: by a name under which pods of the model take some of it. */
bool node_offers(const struct node *n, const char *resource);
/* True if that is the name of the node's devices. */
bool node_has_devices_by(const struct node *n, const char *resource);
/* Return what the pod takes of it. */
int64_t node_pod_asks(const struct model *m, const struct pod *p, const char *resource);
/* True if pods of the job request the resource. */
bool node_short_concerns(const struct node *n, const struct node_short *s, const struct job *j);
/* True if no job that runs is to be moved there: the kubelet refused what the job requests, and has
 * not been seen to serve it since. */
bool node_is_doubtful_for(const struct node *n, const struct job *j);

/* True if the foreign pod holds what the model says already, or nothing in both. */
bool node_foreign_is_known(const struct model *m, const struct pod_fact *p);

/* Use of devices, or the cause of their loss. */
enum charge {
	CHARGE_USED, /* by pods, from their start to their end */
	CHARGE_REFUNDED, /* part of it: refunded to budgets */
	CHARGE_EVICTED, /* part of it: work lost with an attempt, since its checkpoint */
	CHARGE_STARTING, /* from placement until all pods of the attempt ran */
	CHARGE_HELD, /* kept free for a nominated placement */
	CHARGE_STRANDED, /* free beside it, on a node without a core, memory or a slot left */
	CHARGE_FRAGMENTED, /* free and enough while it was pending, but fragmented */
	N_CHARGES
};

/* Sums of what pods used of CPUs, memory and their devices; zeroed, nothing of it is known. */
struct used_sum {
	int64_t n_cpu, cpu_us; /* pods of which it is known; their CPU time */
	int64_t memory_bytes; /* high-water of one of them; 0 = not known */
	int64_t busy_us, measured_us; /* device-time in use, of that in which it was measured */
};

/* A day of a user's usage in a queue with a flavor, in device-us. Running pods, and placements
 * still nominated, are not included. With user "" and flavor "": grants. */
struct usage {
	UT_hash_handle hh;
	bool dirty;
	int64_t us[N_CHARGES]; /* device-time by kind */
	int64_t billed_us; /* charged to budgets before the flavor's rate; below 0: granted */
	int64_t cost_micro; /* of CHARGE_USED, at the price of that time */
	int64_t n_pods; /* that ended on it */
	struct used_sum used; /* by those that ended on it */
	struct queue *queue; /* NULL = deleted */
	const char *user, *flavor; /* interned */
	int64_t day;
	uint16_t len;
	unsigned char bytes[]; /* queue NUL user NUL flavor NUL YYYYMMDD NUL cluster */
};

/* Devices used by pods of one user, queue, flavor and qos, running ones included, decayed with a
 * half-life: that of the policy, or with user "" and qos "" that of the queue's budget. */
struct account {
	UT_hash_handle hh;
	struct queue *queue; /* NULL = deleted */
	struct account *dirty_next;
	bool dirty;
	struct usage_account a;
	uint16_t len;
	unsigned char bytes[]; /* queue NUL user NUL flavor NUL qos */
};

struct str;

/* The open questions of a store that was restored from an older copy: jobs and pods newer than the
 * copy. */
struct recovery {
	int64_t since_us; /* when the copy was first opened; 0 = no recovery is open */
	int64_t copied_us; /* the newest time in the copy */
	uint32_t
		floor; /* numbers below it may have been given by the lost ledger; 0 = none was lost */
	bool listed; /* the cluster has been listed: numbers are assigned and jobs start again */
	int64_t listed_us; /* when; kept after the recovery has ended */
	uint32_t n_adopted; /* jobs that were given pods missing in the copy */
};
/* Job numbers skipped, so that none is assigned twice (gpuqd(8)). */
#define RECOVERY_SKIP 1000000u

/* Records that the event being applied leaves to be written: model_int.h. */
struct mark;
struct marks {
	struct mark *items;
	size_t n, room;
};

/* How much the daemon knows of requests for nodes in the cluster. */
enum asks_known {
	ASKS_OFF, /* it can make none there */
	ASKS_UNKNOWN, /* the first list has not come */
	ASKS_KNOWN,
};

/* Jobs that left memory and whose record of history is not durable yet. */
struct departed {
	struct {
		struct job_key key;
		enum gpuq_job_state state;
	} * items;
	size_t n, room;
	size_t n_collected; /* of them in the batch that was collected last */
};

struct model {
	char cluster_id[9]; /* 8 hex */
	char cluster_uid[64]; /* the cluster's own identity; "" = not known */
	/* As the cluster reports it, for people; not stored. While fenced_by is not "", nothing that
	 * is stored changes and no job starts. */
	char fenced_by[256], keeps_out[256];
	uint32_t next_job_id, next_request_id; /* ids are never used again */
	int64_t charges_from; /* first day with charges kept for single pods */
	uint64_t next_notice; /* number of the next outgoing message */
	struct recovery recovery;
	bool meta_dirty, nodes_dirty, usages_dirty, recovery_dirty; /* tables to be written */
	/* The cluster creates objects beside the pods (a script's ConfigMap). The change that
	 * removes a job's record also notes that it may have such, until BESIDE_GONE. */
	bool has_besides;
	struct site *site; /* what the operator wrote last */
	bool site_dirty;
	uint32_t site_generation; /* number of sites applied */
	/* The rule of quotas.h for `default`: when it takes effect in a database from before, 0 in
	 * others, -1 until that database is settled; spared: until then `default` has all. */
	int64_t default_from_us;
	bool default_spared;
	struct queue **queues; /* by ix: parents first, otherwise as in the file */
	uint32_t n_queues;
	struct job *jobs; /* in order of arrival */
	struct slots jobs_by_key;
	uint32_t n_jobs;
	struct job **dirty_jobs; /* NULL = it has left since */
	uint32_t n_dirty_jobs, room_dirty_jobs;
	struct slots elements; /* of arrays, by their own numbers */
	struct slots awaited; /* the first struct dep on each subject */
	struct shared shared; /* values that many jobs have in common */
	struct pattern *pattern; /* record_like.c */
	struct node *nodes; /* hash by name */
	struct requests requests;
	struct foreign *foreigns; /* pods of others */
	struct objects *objects; /* of the cluster, that pods depend on; not stored */
	struct origins
		*origins; /* jobs of pods that were not submitted; of their notes; NULL = none */
	struct keys keys;
	struct token *tokens; /* issued tokens: token.h; hash by id */
	struct ask *asks; /* for nodes that do not exist: asks/ask.h; by number */
	struct ask_pool *ask_pools; /* hash by name */
	uint32_t last_ask; /* number given last */
	int asks_known; /* enum asks_known; not stored */
	bool asks_stand; /* the cluster takes placeholders; not stored */
	const char *asks_why; /* interned: why requests cannot be made; not stored */
	struct usage *usages; /* the ledger, by day */
	struct account *accounts, *dirty_accounts;
	struct readers *readers; /* equivalent.h */
	struct policy
		policy; /* set once, before the first event; but for notify, which may change */
	struct slots strs; /* of struct str, interned */
	struct batch direct; /* records without an object any more */
	struct departed departed; /* not stored */
	struct marks marks; /* of the event being applied */
	uint32_t n_jobs_by_state[N_GPUQ_JOB_STATES];
	struct job *jobs_by_state[N_GPUQ_JOB_STATES]; /* state_next */
	struct owner *owners, *last_owner; /* hash by user; the most recently used one */
	struct family *families; /* hash by id */
	uint32_t n_promises; /* jobs that have one */
	uint32_t n_apart; /* jobs charged for fragmentation */
	uint32_t n_avoiding; /* jobs that avoid nodes */
	int64_t evicted_us; /* when any job last was; not stored */
	uint64_t n_events, n_audit;
	uint64_t n_node_changes; /* of facts, drains and losses; counted; not stored */
	int64_t now_us; /* of the event being applied; not stored */
	/* Ledger time is the boot's clock plus base; the wall clock is `ahead` of it
	 * (CLOCK_SET). */
	char clock_boot[40];
	int64_t clock_base_us, ahead_us; /* clock.c */
	int64_t newest_us; /* the newest instant read from the database; 0 = none */
};

/* An interval of devices, and its purpose. */
struct charged {
	enum charge kind;
	int64_t milli, from_us, to_us; /* devices, and the span of the journal's clock */
};

/* Return the device-us of an interval, rounded down; 0 when the end is before the start. */
int64_t accounting_gpu_us(int64_t gpus_milli, int64_t from_us, int64_t to_us);
/* Return the device-us of a pod between two times: of devices that it took over, from then on. */
int64_t accounting_pod_us(const struct pod *p, int64_t from_us, int64_t to_us);
/* Round to the nearest, as people read it, so that those of many jobs still add up. */
static inline int64_t ledger_gpu_ms(int64_t gpu_us)
{
	return (gpu_us + 500) / 1000;
}
/* Fill in the charges of a pod until end_us (of a running one: now); lost_us: since when its work
 * is lost, 0 = it is not. Return the number of charges in out. */
uint32_t accounting_of_pod(const struct pod *p, int64_t lost_us, int64_t end_us, bool refunded,
			   struct charged out[N_CHARGES]);
/* List what a pod holds of countable resources and instances, in thousandths (of GiB where it is bytes).
 * names: GPUQ_RESOURCE_NAME_MAX + 1 bytes, out: GPUQ_RESOURCES_MAX + 1. Return how many there are. */
uint32_t accounting_amounts(const struct pod *p, char *names, struct gpuq_amount *out);
/* Return the resource that a flavor of the book of days stands for; NULL = it is a flavor of devices. */
const char *accounting_amount_name(const char *flavor);
/* Add sums to others. */
void accounting_add_used(struct used_sum *to, const struct used_sum *from);
bool accounting_knows_used(const struct used_sum *s); /* anything at all */
/* Numbers for charges of pending jobs, in place of a pod's index. */
#define LEDGER_PROMISED UINT32_MAX
#define LEDGER_APART (UINT32_MAX - 1)

/* Return since when a nominated device is kept free; 0 = it is still in use. */
int64_t accounting_promised_since(const struct promise *p, const struct node *n, uint16_t device);
/* Compute what its pods, and foreign pods, leave of it; below 0 where they hold more than there
 * is. */
void accounting_node_left(const struct node *n, int64_t *cpu_milli, int64_t *memory_bytes,
			  int64_t *pods);
/* Return why free devices cannot be used, as the node has less than a core, 1 GiB or a slot for a
 * pod left ("cpu", "memory", "pods"), and how many; or NULL and 0. */
const char *accounting_node_stranded(const struct node *n, int64_t *milli);

/* The charges of a queue and below, up to now, in GPU-milliseconds at the flavors' rates and the
 * qos' factors: of its budget's current period; or decayed; or without a budget all there ever
 * were. */
struct spent {
	int64_t used_ms, granted_ms; /* granted: in addition to the budget, for the same time */
	int64_t reset_us; /* when the next period begins; 0 = never */
};

void budget_spending(const struct model *m, int64_t now_us, struct spent *out); /* by ix */
/* Return the charges of one user in a queue and below, in the current period of the queue's budget,
 * or decayed. */
int64_t budget_user_spent_ms(const struct model *m, const struct queue *q, const char *user,
			     int64_t now_us);
/* Return the thousandths of devices being charged to the user there. */
int64_t budget_user_rate_milli(const struct model *m, const struct queue *q, const char *user);
/* Return the cost, in millionths of the currency, of the user's jobs there (user NULL: all users)
 * since the budget's period began; where there is no period, since the month began. */
int64_t budget_cost_micro(const struct model *m, const struct queue *q, const char *user,
			  int64_t now_us);
/* Return what running jobs may still use until their walltimes end, in the same unit;
 * GPUQ_UNLIMITED when one has no walltime. user NULL = all. */
int64_t budget_committed_ms(const struct model *m, const struct queue *q, const char *user,
			    int64_t now_us);

/* Receive the usage of a user in a queue: the walk ends when fn returns false. user is "" for usage
 * that counts for budgets alone. */
typedef bool (*account_fn)(void *arg, struct queue *q, const char *user, usage_q32 used);
void account_each(const struct model *m, int64_t now_us, account_fn fn, void *arg);
/* Extract the i-th of the strings that a key joins; "" when there is none. */
void account_key_part(const unsigned char *bytes, size_t n, int i, char *out, size_t room);

/* True if no job is to be started, evicted or removed, since the cluster has not been listed since
 * the store was restored. */
static inline bool recovery_waits(const struct model *m)
{
	return m->recovery.since_us && !m->recovery.listed;
}
static inline bool model_is_fenced(const struct model *m)
{
	return *m->fenced_by != '\0';
}
/* Count jobs held for a decision (held_restore), and jobs made from their pods, so far. */
void recover_count(const struct model *m, uint32_t *n_unknown, uint32_t *n_recovered);

/* Return an empty model with the default site. cluster_id: 8 hex, drawn by the caller. */
struct model *model_new(const char *cluster_id);
void model_free(struct model *m);

/* Take these objects as those of the cluster; takes ownership. */
void model_set_objects(struct model *m, struct objects *o);

/* Set the policy; before the first event, but for notify, which may change. */
void model_set_policy(struct model *m, const struct policy *p);
/* Set whether the cluster creates objects beside the pods; before the first event. */
void model_set_besides(struct model *m, bool has);
bool model_is_dirty(const struct model *m); /* True if there is anything to store */

/* Check that this site can replace the present one. GPUQ_ECONFLICT when jobs depend on a queue,
 * flavor, qos or license that it lacks, or are in a queue that gets children. */
int queue_site_allowed(const struct model *m, const struct site *s, struct gpuq_err *err);

/* Take the site as it is, whether or not a site file could describe it: before the first job, or
 * after queue_site_allowed(). */
void queue_set_site(struct model *m, struct site *s);
/* True if it is a `default` without a quota that has all devices: quotas.h. */
bool queue_is_free(const struct model *m, const struct queue *q);
/* Set the user's usage in that queue before the first event, in the unit of account_each(). */
void account_set(struct model *m, const char *queue, const char *user, usage_q32 used,
		 int64_t now_us);

/* Make room for the given number of records, which are going to be loaded. */
void job_expect(struct model *m, size_t n_jobs, size_t n_keys);

struct job *model_find_job(const struct model *m, struct job_key key);
/* Return the element of an array that has this number of its own, or NULL. */
struct job *model_find_element(const struct model *m, uint32_t number);
/* Jobs of a user that have not ended (an array is one), and the bytes of their specs as they were
 * submitted: script and environment included, before any compression. */
struct stored {
	int64_t n_jobs, bytes;
};
struct stored index_stored_of(const struct model *m, const char *user);
/* Return the first of a list, NULL = none; the others follow by user_next, life->kin_next. */
struct job *index_of_user(const struct model *m, const char *user);
struct job *index_elements(const struct model *m,
			   uint32_t id); /* in memory; not the array itself */
/* True if both maps of labels have the same pairs in the same order. */
bool node_labels_same(const struct gpuq_strmap *a, const struct gpuq_strmap *b);
struct node *model_find_node(const struct model *m, const char *name);
/* Set the links, NUMA nodes, MIG instances and countable resources of f, beside the devices; f->n_devices is
 * the number of devices of the links. told: what the cluster reported, for the next time that the site changes.
 * Copied. */
void node_set_parts(struct model *m, struct node *n, const struct node_fact *f,
		    const struct node_fact *told);
struct queue *model_find_queue(const struct model *m, const char *name);
struct pod *model_find_pod(const struct model *m, struct pod_key key);
struct idem_key *model_find_key(const struct model *m, const char *user, const char *key);

/* Return the key by which the pod is found. */
static inline struct pod_key model_pod_key(const struct pod *p)
{
	return (struct pod_key){ p->job->key, p->attempt, p->index };
}

/* True if it consists of pods that were not submitted: gpuqd places them, and neither makes nor repeats
 * them. */
bool model_is_adopted(const struct model *m, const struct job *j);
/* Return which pod of the cluster it is; NULL = one that gpuqd made. */
const struct origin_pod *model_pod_origin(const struct model *m, const struct pod *p);
/* Return the pod of the current attempt at that place; NULL = it has none now. */
struct pod *model_find_origin(const struct model *m, const struct origin_pod *o);
/* True if nothing in the cluster is this pod yet. */
bool model_pod_is_unmade(const struct model *m, const struct pod *p);
/* True if another job of pods of the same owner starts or runs, and is not to end. */
bool model_owner_runs(const struct model *m, const struct job *j);

/* Write "gpuq-CLUSTER-JOB[-ARRAYINDEX]-ATTEMPT-INDEX". out: 64 bytes. */
void model_pod_name(const struct model *m, const struct pod *p, char *out);
void model_pod_key_name(const char *cluster_id, struct pod_key key, char *out);
/* Parse the name of one of gpuq's pods; false = foreign. */
bool model_pod_name_parse(const struct model *m, const char *name, struct pod_key *key);

const char *model_intern(struct model *m, const char *s); /* permanent copy; NULL gives "" */
const char *model_interned(const struct model *m, const char *s); /* NULL: not interned */

/* List the DeviceClasses that flavors name, in a. */
void model_classes(const struct model *m, struct gpuq_arena *a, struct gpuq_strlist *out);

bool job_ranges_has(const struct gpuq_range *ranges, size_t n, int64_t index);
bool model_element_waits(const struct array *a, int64_t index); /* not split off yet */
/* Return the pending job, or the array of a pending element that has no job of its own; NULL = neither. */
const struct job *model_find_waiting(const struct model *m, struct job_key key);
uint32_t deps_count(const struct job *j);
bool model_job_is_live(const struct job *j); /* has a current attempt */
/* Return until when the job avoids the node. */
int64_t job_avoids_until(const struct job *j, const struct avoided *a);
/* True if these are the job's present reasons, whatever their times. */
bool job_has_reasons(const struct job *j, const struct reason_fact *items, size_t n);
bool model_job_is_over(
	const struct job *j); /* the outcome of its attempt is known, or it was signalled to end */
/* True if POD_AMOUNTS with these amounts would change the ledger. */
bool pod_amounts_differ(const struct model *m, const struct pod *p, int64_t cpu_milli,
			int64_t memory_bytes);
/* Return the namespace of the queue's pods; "" = the cluster's default. */
const char *model_queue_namespace(const struct queue *q);

/* Return how many nodes the pool has. */
int64_t model_pool_nodes(const struct model *m, const char *pool);
/* Return the isolation of devices from other pods: of a pod with whole devices of the node, or with a part
 * of one; of a pod; the weakest of the pods of a job's last attempt; the least that a queue, or one
 * above, demands. ISOLATION_NO_DEVICES: it has none. */
#define ISOLATION_NO_DEVICES (-1)
enum gpuq_isolation model_node_isolation(const struct node *n, bool part);
int model_pod_isolation(const struct pod *p);
int model_job_isolation(const struct job *j);
enum gpuq_isolation model_queue_isolation(const struct queue *q);

/* True if it is known which devices of its node the pod has: gpuqd decides it, or it was reported. */
bool model_pod_devices_known(const struct pod *p);
bool model_pod_takes(const struct pod *p); /* its devices, cpu and memory are not free */
/* True if it is charged for that device of its node. */
bool model_pod_has_device(const struct pod *p, uint32_t device);
/* Return the profile of the instances that a pod has; NULL = it has none. */
const char *model_pod_mig(const struct pod *p);
/* Return how many instances of that it has; one at least stands in for a share of a device. 0 without. */
int64_t model_pod_instances(const struct pod *p);
/* True if it holds instances of the profile, whole, or in whatever number of replicas they were when it started. */
bool model_pod_has_instances(const struct pod *p, const char *profile);
/* Return how many of them the pods of the node hold together. */
int64_t model_instances_held(const struct node *n, const char *profile);
/* True if the node offers such. */
bool model_offers_instances(const struct node *n, const char *profile);
/* True if a pod of gpuq's holds the device of that index, or a part of it. */
bool model_device_is_held(const struct node *n, uint32_t device);
/* Return the thousandths of the cores of each of its devices that a pod takes: of one that requests memory, as well
 * or alone, the charge may be more. */
int64_t model_pod_cores(const struct pod *p);
/* The same for a pod of a group on a node (NULL = it is gone), charged so much for each device. */
int64_t model_share_cores(const struct node *n, const struct request_group *g, int64_t charged);
uint32_t model_job_pods(const struct job *j); /* pods of one start */
int64_t model_job_gpus_milli(const struct job *j); /* devices of one start */
bool job_is_elastic(const struct job *j); /* a group of it has pods_max > pods_min */
/* True if the system, not its owner, signalled it: it is retried at once. */
bool job_cause_is_eviction(enum gpuq_cause c);
#define JOB_GRACE_DEFAULT_US (30 * GPUQ_US_PER_S)
/* Return the maximum grace period of jobs like j on eviction; that of j. */
int64_t job_grace_most_us(const struct model *m, const struct job *j);
int64_t job_evicted_us(const struct model *m, const struct job *j);
/* Return the shortest idle limit set by its queue, those above it and its qos (idle.h), and which
 * one set it ("queue/lab", "qos/train"; 64 bytes); 0 = none. */
int64_t load_idle_limit_us(const struct model *m, const struct job *j, char rule[64]);
/* Return how long its devices have been idle, in whole windows. */
int64_t load_idle_for_us(const struct model *m, const struct job *j, int64_t now_us);
/* Return the number of victims that still hold resources where the job has a nominated
 * placement. */
uint32_t job_victims_left(const struct model *m, const struct job *j);
int64_t job_promise_milli(const struct promise *p); /* devices; NULL = none */
bool job_victim_left(const struct model *m, const struct job *j, struct job_key *first);
bool deps_are_awaited(const struct job *j, int64_t now_us, bool *never);

/* Return the day (civil.h) of the wall clock that an instant belongs to, and when a day begins;
 * both instants are ledger time. */
int64_t clock_day(const struct model *m, int64_t us);
int64_t clock_day_begins(const struct model *m, int64_t day);

/* Return begin, deadline: wall time in the spec, here as ledger time (walltime.h); 0 = none. */
int64_t clock_job_begin_us(const struct model *m, const struct job *j);
int64_t clock_job_deadline_us(const struct model *m, const struct job *j);
enum gpuq_node_state node_state(const struct node *n);
/* Resolve dependencies on the job `on`; used when it ends, or is gone already. */
void deps_ended(struct model *m, struct job_key on, enum gpuq_job_state state, int64_t at_us);
/* Release singletons: that job has arrived, ended or been renamed, and its owner's singletons of
 * that name may start. */
void deps_singletons(struct model *m, struct job *of, int64_t at_us);

/* True if it leaves its places, since the plugin of a node left no room for it there. */
bool job_is_withdrawn(const struct job *j);
/* Decide from the ended attempt's outcome and the retry rules whether it is retried: out is the
 * event that must follow (JOB_REQUEUED or JOB_ENDED) without its time. */
void job_verdict(const struct job *j, struct event *out);

/* True if all pods of the current attempt are ENDED or GONE (also for none). */
bool model_job_attempt_over(const struct job *j);

/* For readers. model_int.h has the same for the files that change jobs. */
#define job_each(m, it)                                                                            \
	for (const struct job *it = (m)->jobs, *it##_next; it && (it##_next = it->next, 1);        \
	     it = it##_next)
/* True if the node has its devices by slices. */
bool node_is_of_claims(const struct node *n);
/* True if some node has devices of claims (ResourceSlices). */
bool node_any_of_claims(const struct model *m);
/* Return the words with which the cluster refused what claims of devices lack; NULL = that is not lacking. */
const char *node_words_of_claims(const struct model *m, const char *lack);
/* True if the node has devices by slices that are not used, since a device plugin offers devices there as well. classes:
 * those that flavors name. */
bool node_skips_slices(const struct model *m, const struct node *n,
		       const struct gpuq_strlist *classes);
/* True if the node's devices are of one of the flavors, or the list is empty. Where the site has no
 * flavors, kinds of devices are meant. */
bool node_is_of(const struct model *m, const struct node *n, const struct gpuq_strlist *flavors);
#define node_each(m, it) for (const struct node *it = (m)->nodes; it; it = it->hh.next)

/* The job, or the number of entries in its log, is to be written. */
void model_job_dirty(struct model *m, struct job *j);

#endif
