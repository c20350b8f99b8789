/* model.h - everything gpuqd knows
 *
 * Owns     jobs, pods, nodes, requests, keys, the site's tree of queues, usage.
 * Touches  memory only: no clock, no I/O. Every event brings its time.
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
#include "gpuqd/state/record/keys.h"
#include "gpuqd/site/policy.h"
#include "gpuqd/state/record/request.h"
#include "gpuqd/util/blob.h"
#include "gpuqd/site/site.h"
#include "gpuqd/util/table.h"
#include "gpuqd/state/usage.h"

struct queue {
	const char *name;
	struct job *jobs; /* of this queue alone: queue_next */
	struct queue *parent; /* NULL = at the top */
	const struct site_queue *site; /* never NULL */
	const struct site_budget *budget; /* its own, or the default of leaves; NULL = none */
	uint32_t ix; /* in model->queues; parents before children */
	uint32_t n_children;
	uint32_t n_pending, n_running; /* array elements counted; of this queue alone */
	uint32_t n_unknown, n_recovered; /* held by a restore, and recovered, that have not ended */
	int64_t allocated_milli, held_milli; /* of this queue alone */
	int64_t fair_milli; /* of the last cycle; -1 before the first; not stored */
	/* What pods that ended were charged since the day spent_from, here and below, in
	 * device-us at their rates; counted when first asked for, not stored. */
	int64_t spent_us, granted_us, spent_from;
	bool spent_known;
};

struct reason {
	uint16_t code; /* enum gpuq_reason */
	uint16_t unit; /* enum gpuq_unit */
	const char *object; /* interned */
	int64_t have, need, since_us;
};

struct blocked {
	enum gpuq_reason code;
	const char *object; /* interned */
	int64_t until_us;
};

struct dep {
	struct dep *prev, *next; /* of all who wait for the same, while it does */
	struct job *job; /* that waits */
	int type; /* enum gpuq_depend_type */
	struct job_key on;
	int64_t delay_us;
	enum { DEP_WAITING, DEP_DONE, DEP_NEVER } state;
	int64_t at_us; /* of DEP_DONE: holds from then on */
};

/* All that a job waits for. */
struct deps {
	uint32_t n;
	struct dep items[];
};

struct eviction {
	int64_t at_us;
	enum gpuq_cause cause;
	const char *rule, *by, *by_queue; /* interned */
	char *why; /* the numbers behind it, one line; NULL = none */
};

/* Places that a job owns although others may still stand on them: from the signal to
 * those until it starts there. */
struct promised_pod {
	uint32_t group, group_index;
	const char *node; /* interned; it may be gone */
	int64_t gpus_milli; /* of all its devices */
	uint32_t n_devices;
	uint16_t *devices;
};

/* It waits, though as many devices are free as it asks for: they lie apart. Of the jobs of
 * whom that is true the model is told one for each flavor, so that none is counted twice. */
struct apart {
	const char *flavor; /* interned */
	int64_t milli, since_us;
};

struct promise {
	int64_t at_us;
	const char *flavor, *rule; /* interned; rule: by which its victims leave; "" none */
	char *why; /* the numbers behind it, one line; NULL = none */
	struct promised_pod *pods; /* by index */
	struct job_key *victims;
	uint32_t n_pods, n_victims;
};

struct array {
	struct gpuq_range *waiting; /* elements not split off yet; sorted */
	size_t n_waiting_ranges;
	int64_t n_waiting, size, throttle;
	int64_t n_live; /* split off and not ended */
	int worst_exit; /* of ended elements */
	enum gpuq_job_state worst; /* COMPLETED until an element ended otherwise */
	char *indices; /* "0-99:2" as submitted */
};

struct node;
struct job;

struct pod {
	struct pod *job_prev, *job_next; /* of its job, by attempt and index */
	struct pod *node_prev, *node_next; /* of its node */
	struct job *job;
	struct node *node;
	uint32_t attempt, index, group, group_index;
	enum gpuq_pod_state state;
	enum pod_fault fault;
	bool dirty;
	bool leaving; /* told to leave, by us or by others; not stored */
	/* The attempt goes on without it, whatever becomes of it: an elastic job that shrank,
	 * or lost it. */
	bool dropped;
	bool untold; /* it ended before the cluster told it to leave; not stored */
	bool recovered; /* it ran before this ledger knew it; not stored */
	int exit_code; /* -1 until it ended, or when it never ran */
	int64_t placed_us, start_us, end_us;
	int64_t strand_from_us; /* the node's strand_us when it came; not stored */
	int64_t cpu_milli, memory_bytes, gpus_milli; /* taken while not ENDED or GONE */
	char uid[48];
	char *message; /* NULL = none */
	uint32_t n_devices;
	uint16_t devices[];
};

/* The rule of evictions of what did not run in time. */
#define RULE_START_TIMEOUT "start_timeout"
/* The rule of a limit that was no span of time: it is to have ended by now. */
#define RULE_DEADLINE "deadline"

/* "I have saved myself: start me again", as HTCondor's checkpoint_exit_code has it. */
#define JOB_EXIT_SAVED 85

/* A node that failed a job of late. */
struct avoided {
	const char *node; /* interned */
	int64_t until_us;
};
#define JOB_AVOIDS_MAX 4
#define JOB_AVOID_US (900 * INT64_C(1000000)) /* that is of late */

struct avoids {
	struct avoided items[JOB_AVOIDS_MAX]; /* oldest first */
	uint32_t n;
};

/* What the devices of the attempt did. */
struct job_load {
	struct idle idle;
	int64_t at_us; /* of the last measurement */
	int32_t milli; /* then, on the average of those measured; 0 .. 1000 */
};

/* What its owner asked for beside the request, the queue and the time. */
struct wish {
	const char *account; /* interned; "" none */
	const char *mail, *web; /* whom its owner wants told; interned; "" nobody */
	unsigned mail_on, web_on; /* of what: enum gpuq_notify_on */
	uint32_t uid, gid;
	int64_t begin_us, deadline_us;
	/* Where an attempt may be given less than was asked for: how much that was, and the
	 * least. 0 = it may not. */
	int64_t time_asked_us, time_min_us;
	int64_t nice;
	int64_t fixed_priority; /* said by an operator; 0 = not */
	int64_t grace_us; /* from being evicted to the kill; 0 = nothing was said */
	int64_t lease_us; /* it ends so long after its client is gone; 0 = never */
	int64_t warn_lead_us; /* a signal comes so long before its time ends; 0 = none */
	int64_t checkpoint_every_us; /* that often it saves itself; 0 = nobody said */
	int64_t retry_limit; /* attempts beyond the first */
	uint64_t retry_exits[4]; /* exit codes after which it is tried again, a bit for each */
	unsigned retry_on; /* and what else: enum gpuq_retry_on, or'ed */
	bool requeue, depends_any, kill_on_invalid_dep;
	bool saves; /* JOB_EXIT_SAVED is no failure of it */
};

/* What the last cycle said of a job that waits: why, and when it may start. Not stored. */
struct outlook {
	int64_t planned_us; /* estimated start; 0 = not known */
	struct priority_terms terms; /* of priority */
	bool ranked; /* its priority has been counted */
	uint8_t n_reasons;
	struct reason reasons[];
};

/* What became of it: what only those have that were placed, told to leave or held up. */
struct life {
	const char *flavor; /* interned; "" none */
	int64_t placed_us, start_us, end_us; /* of the last attempt; start: all its pods ran; 0 =
					      * not yet */
	int64_t gpu_us; /* device-microseconds of ended pods */
	int64_t not_before_us; /* after a requeue */
	int64_t yield_us; /* of the attempt: when its places are somebody else's; 0 = never */
	int64_t shrunk_us; /* when this attempt last lost pods; 0 = never */
	int64_t short_us; /* since when it has fewer pods than its minimum; 0 = it has them */
	uint32_t n_retries; /* used up */
	uint32_t n_indexes; /* pod indexes that this attempt has used */
	uint32_t n_evictions;
	unsigned told; /* of an array, or of this attempt: what has been; enum gpuq_notify_on */
	struct eviction *evictions;
	struct promise *promise; /* NULL = none */
	struct apart *apart; /* NULL = none */
	struct avoids *avoids; /* NULL = none */
	struct blocked
		*blocked; /* from outside the core (NamespaceQuota); NULL = not; not stored */
	struct job_load *load; /* NULL = nothing was measured; not stored */
	/* How this attempt is going to end, once that is known. */
	enum gpuq_job_state outcome; /* GPUQ_JOB_PENDING = not known */
	int outcome_exit;
	enum gpuq_cause leave_cause; /* told to leave: why; NONE = not told */
	int exit_code; /* of the ended job; -1 none */
	int64_t leave_us, leave_grace_us;
	char *message; /* why it ended as it did; NULL none */
	char *token; /* of the attempt, 32 hex; NULL before the first */
	struct job *kin_prev, *kin_next; /* of an array's element: the others of it */
};

/* A job. There may be hundreds of thousands that wait, so that each has here what differs
 * from one to the next; the rest is shared, or there only once there is something to say. */
struct job {
	/* What is looked at of every job in every cycle stands together. */
	struct job_key key;
	struct job *next; /* of all jobs, in the order in which they came */
	const struct wish *wish; /* never NULL; blob.h, as name, labels and outlook */
	const struct life *life; /* never NULL; job_life() to write */
	struct pod *pods; /* all that are not gone, and those of the last attempt */
	struct alike *alike; /* equivalent.h; NULL = not known, or like nobody; not stored */
	enum gpuq_job_state state : 8;
	bool dirty : 1, ended : 1;
	bool held_user : 1, held_admin : 1, held_retries : 1, started_once : 1;
	bool cancel_asked : 1;
	bool held_restore : 1; /* it ran when the store was copied; what became of it is not known */
	bool recovered : 1; /* made from its pods: what it runs is not known, so it is never retried */
	bool warned : 1; /* this attempt was told that its time ends soon */
	bool alone : 1; /* shown by itself in the snapshot that is being taken; not stored */
	bool nothing_beside : 1; /* its pods need nothing but themselves; not stored */
	uint32_t attempt; /* attempts so far beyond the first */
	int64_t submit_us, eligible_us, time_limit_us;
	const struct outlook *outlook; /* never NULL */
	struct array *array; /* of an array's waiting part; else NULL */
	struct deps *deps; /* NULL = it waits for nobody */
	struct queue *queue;
	struct request *request;
	const char *user, *qos; /* interned */
	const char *name;
	const char *labels; /* joblabel.h; NULL none */
	const char *notes; /* jobnote.h; NULL none */
	uint32_t n_log; /* entries that were written about it */
	uint32_t spec_bytes; /* of what its owner wrote; 0 of an array's element */
	uint32_t dirty_at; /* among model.dirty_jobs */
	/* Lists that it is in: of all, of its user's and its queue's jobs, and of those in its
	 * state. */
	struct job *prev, *user_prev, *user_next, *queue_prev, *queue_next;
	struct job *state_prev, *state_next;
};

struct device {
	const char *uuid, *product; /* interned */
	int64_t memory_mib;
	bool healthy;
	int64_t freed_us; /* when a pod of ours last left it; 0 = none has; not stored */
};

struct node {
	UT_hash_handle hh;
	const char *name, *cluster, *flavor, *pool; /* interned */
	struct node_fact fact; /* labels, taints, allocatable; owned */
	struct gpuq_arena arena; /* of the fact */
	struct device *devices;
	uint32_t n_devices;
	uint32_t *
		foreign_milli; /* of each device that others hold parts of; in the arena; not stored */
	uint32_t *foreign_mig; /* of fact.mig[i], taken by others; in the arena; not stored */
	bool dirty, gone; /* gone: kept while its pods are not known to be gone */
	bool drain;
	const char *drain_why; /* interned */
	bool suspect;
	bool frozen; /* its devices do not add up: nothing more starts there; not stored */
	const char *frozen_why; /* interned */
	int64_t backoff_until_us;
	int64_t seen_us;
	uint32_t snap_ix; /* handle in the snapshot being taken */
	struct pod *pods;
	/* What lies idle beside its pods (accounting_charge_strand), not stored: since when, how much, and
	 * the device-us of it that each of the pods there has had so far. */
	int64_t strand_at_us, stranded_milli, strand_us;
	uint32_t n_strands; /* pods there */
	/* taken by others; not stored */
	int64_t foreign_cpu_milli, foreign_memory_bytes, foreign_gpus_milli, foreign_pods;
};

#define FOREIGN_DEVICES_MAX 16
#define FOREIGN_MIG_MAX 4 /* profiles of one pod of another's that are counted */

struct foreign {
	UT_hash_handle hh;
	char uid[48];
	const char *node; /* interned */
	int64_t cpu_milli, memory_bytes, gpus_milli;
	/* Where the cluster tells which devices it has: each of them is taken alike. Of others'
	 * pods only a part of one is believed; of pods with our token all. */
	uint16_t devices[FOREIGN_DEVICES_MAX];
	uint32_t n_devices;
	struct mig_fact mig[FOREIGN_MIG_MAX]; /* profiles interned */
	uint32_t n_mig;
};

/* What devices were used for, or lost to. */
enum charge {
	CHARGE_USED, /* by pods, from their start to their end */
	CHARGE_REFUNDED, /* of that: given back to budgets */
	CHARGE_EVICTED, /* of that: work that was lost with an attempt, since its checkpoint */
	CHARGE_STARTING, /* from being placed until all pods of the attempt ran */
	CHARGE_HELD, /* kept free for a start that was promised */
	CHARGE_STRANDED, /* free beside it, on a node without a core, memory or a slot left */
	CHARGE_FRAGMENTED, /* free and enough while it waited, but apart */
	N_CHARGES
};

/* A day of what a user did in a queue with a flavor, in device-us. What still runs, or is
 * still promised, is not in it. With user "" and flavor "": what was granted. */
struct usage {
	UT_hash_handle hh;
	bool dirty;
	int64_t us[N_CHARGES];
	int64_t billed_us; /* what budgets pay before the flavor's rate; below 0: granted */
	int64_t cost_micro; /* of CHARGE_USED, at the price of that time */
	int64_t n_pods; /* whose end fell on it */
	struct queue *queue; /* NULL = it is no more */
	const char *user, *flavor; /* interned */
	int64_t day;
	uint16_t len;
	unsigned char bytes[]; /* queue NUL user NUL flavor NUL YYYYMMDD NUL cluster */
};

/* Devices that pods of one user, queue, flavor and qos have used and use, forgotten by
 * half-lives: of the policy, or with user "" and qos "" that of the queue's budget. */
struct account {
	UT_hash_handle hh;
	struct queue *queue; /* NULL = it is no more */
	struct account *dirty_next;
	bool dirty;
	struct usage_account a;
	uint16_t len;
	unsigned char bytes[]; /* queue NUL user NUL flavor NUL qos */
};

struct str;

/* What a store that was restored from an older copy does not know: jobs and pods that came
 * after the copy was made. */
struct recovery {
	int64_t since_us; /* when the copy was first opened; 0 = nothing is open any more */
	int64_t copied_us; /* the newest time that the copy knew */
	uint32_t
		floor; /* numbers below it may have been given by the lost ledger; 0 = none was lost */
	bool listed; /* the cluster has been seen: numbers are given and jobs start again */
	int64_t listed_us; /* when; stays when the recovery has ended */
	uint32_t n_adopted; /* jobs that were given pods which the copy did not know */
};
/* Numbers that are passed over, so that none is given twice (gpuqd(8)). */
#define RECOVERY_SKIP 1000000u

/* What the event being applied leaves to be written down: model_int.h. */
struct mark;
struct marks {
	struct mark *items;
	size_t n, room;
};

struct model {
	char cluster_id[9]; /* 8 hex */
	char cluster_uid[64]; /* the cluster's own name for itself; "" not known */
	uint32_t next_job_id, next_request_id;
	int64_t charges_from; /* day of which, and since which, what single pods were charged is kept */
	uint64_t next_notice; /* number of the next message to the outside */
	struct recovery recovery;
	bool meta_dirty, nodes_dirty, usages_dirty, recovery_dirty;
	/* The cluster makes things beside the pods (a script's ConfigMap). What a job may have
	 * there is written down in the change that removes its record, until BESIDE_GONE. */
	bool has_besides;
	struct site *site;
	bool site_dirty;
	uint32_t site_generation; /* counts the sites that were applied */
	struct queue **queues; /* by ix: parents first, then as in the file */
	uint32_t n_queues;
	struct job *jobs; /* in the order in which they came */
	struct slots jobs_by_key;
	uint32_t n_jobs;
	struct job **dirty_jobs; /* NULL = it has left since */
	uint32_t n_dirty_jobs, room_dirty_jobs;
	struct slots awaited; /* the first struct dep of all who wait for the same */
	struct shared shared; /* what many jobs have alike */
	struct pattern *pattern; /* record_like.c */
	struct node *nodes; /* hash by name */
	struct requests requests;
	struct foreign *foreigns;
	struct keys keys;
	struct usage *usages;
	struct account *accounts, *dirty_accounts;
	struct readers *readers; /* equivalent.h */
	struct policy
		policy; /* set once, before the first event; but for notify, which may change */
	struct str *strs;
	struct batch direct; /* records that no object stands for any more */
	struct marks marks; /* of the event being applied */
	uint32_t n_jobs_by_state[N_GPUQ_JOB_STATES];
	struct job *jobs_by_state[N_GPUQ_JOB_STATES]; /* state_next */
	struct owner *owners, *last_owner; /* hash by user; the one that was needed last */
	struct family *families; /* hash by id */
	uint32_t n_promises; /* jobs that have one */
	uint32_t n_apart; /* jobs that are charged for what lies apart */
	uint32_t n_avoiding; /* jobs that avoid nodes */
	int64_t evicted_us; /* when some job last was; not stored */
	uint64_t n_events, n_audit;
	uint64_t n_node_changes; /* of facts, drains and losses of nodes; not stored */
	int64_t now_us; /* of the event being applied; not stored */
	/* Ledger time is the boot's clock plus base; the wall clock is `ahead` of it (CLOCK_SET). */
	char clock_boot[40];
	int64_t clock_base_us, ahead_us;
	int64_t newest_us; /* the newest instant that was read from the database; 0 = none */
};

/* An interval of devices: what for. */
struct charged {
	enum charge kind;
	int64_t milli, from_us, to_us;
};

/* Device-us of an interval, rounded down; 0 when the end is before the start. */
int64_t accounting_gpu_us(int64_t gpus_milli, int64_t from_us, int64_t to_us);
/* To the nearest, as people read it, so that those of many jobs still add up. */
static inline int64_t ledger_gpu_ms(int64_t gpu_us)
{
	return (gpu_us + 500) / 1000;
}
/* What a pod was charged until end_us (of one that runs: now); lost_us: since when its work
 * is lost, 0 = it is not. Returns how many of out. */
uint32_t accounting_of_pod(const struct pod *p, int64_t lost_us, int64_t end_us, bool refunded,
			   struct charged out[N_CHARGES]);
/* What is written down of jobs that wait, in the place of a pod's index. */
#define LEDGER_PROMISED UINT32_MAX
#define LEDGER_APART (UINT32_MAX - 1)

/* Since when a promised device is kept free; 0 = somebody is still on it. */
int64_t accounting_promised_since(const struct promise *p, const struct node *n, uint16_t device);
/* What its pods, and those of others, leave of it; below 0 where they take more than there is. */
void accounting_node_left(const struct node *n, int64_t *cpu_milli, int64_t *memory_bytes,
			  int64_t *pods);
/* Devices that are free but of no use, as the node has less than a core, 1 GiB or a slot for
 * a pod left: which of them ("cpu", "memory", "pods"), or NULL and 0. */
const char *accounting_node_stranded(const struct node *n, int64_t *milli);

/* What was charged in a queue and below, up to now, in GPU-milliseconds at the flavors'
 * rates and the qos' factors: of its budget's current period; or as it fades; or without a
 * budget all there ever was. */
struct spent {
	int64_t used_ms, granted_ms; /* granted: beside the budget, for the same time */
	int64_t reset_us; /* when the next period begins; 0 = never */
};

void budget_spending(const struct model *m, int64_t now_us, struct spent *out); /* by ix */
/* Of one user in a queue and below, in the current period of the queue's budget, or as it has
 * faded. */
int64_t budget_user_spent_ms(const struct model *m, const struct queue *q, const char *user,
			     int64_t now_us);
/* Thousandths of devices that are being charged to him there. */
int64_t budget_user_rate_milli(const struct model *m, const struct queue *q, const char *user);
/* Millionths of the currency, for what it (user NULL: all) used there since the budget's period
 * began; where there is no period, since the month began. */
int64_t budget_cost_micro(const struct model *m, const struct queue *q, const char *user,
			  int64_t now_us);
/* What runs may still use until its walltimes, the same way; GPUQ_UNLIMITED when something
 * has none. user NULL = all. */
int64_t budget_committed_ms(const struct model *m, const struct queue *q, const char *user,
			    int64_t now_us);

/* What a user has used in a queue: the walk ends when fn returns false. user is "" for
 * what counts for budgets alone. */
typedef bool (*account_fn)(void *arg, struct queue *q, const char *user, usage_q32 used);
void account_each(const struct model *m, int64_t now_us, account_fn fn, void *arg);

/* Is nothing to be started, evicted or removed, as the cluster has not been seen since the
 * store was restored? */
static inline bool recovery_waits(const struct model *m)
{
	return m->recovery.since_us && !m->recovery.listed;
}
/* Jobs that wait for a decision (held_restore), and jobs made from their pods, by now. */
void recover_count(const struct model *m, uint32_t *n_unknown, uint32_t *n_recovered);

/* An empty model with the default site. cluster_id: 8 hex, drawn by the caller. */
struct model *model_new(const char *cluster_id);
void model_free(struct model *m);

/* By which it decides; before the first event, but for notify, which may change. */
void model_set_policy(struct model *m, const struct policy *p);
/* Does the cluster make things beside the pods? Before the first event. */
void model_set_besides(struct model *m, bool has);
bool model_is_dirty(const struct model *m); /* has anything to be stored? */

/* Could this site take the place of the one there is? GPUQ_ECONFLICT when jobs depend on a
 * queue, flavor, qos or license that it does not have, or stand in a queue that gets others
 * below it. */
int queue_site_allowed(const struct model *m, const struct site *s, struct gpuq_err *err);

/* Take the site as it is, whether or not a site file could say so: before the first job, or after
 * queue_site_allowed(). */
void queue_set_site(struct model *m, struct site *s);
/* What its user has used in that queue before the first event, in the unit of account_each(). */
void account_set(struct model *m, const char *queue, const char *user, usage_q32 used,
		 int64_t now_us);

/* So many records are going to be loaded: room for them is made at once. */
void job_expect(struct model *m, size_t n_jobs, size_t n_keys);

struct job *model_find_job(const struct model *m, struct job_key key);
/* Jobs of a user that have not ended (an array is one), and the bytes of their specs as they
 * were submitted: script and environment included, before any compression. */
struct stored {
	int64_t n_jobs, bytes;
};
struct stored index_stored_of(const struct model *m, const char *user);
/* The first of them, NULL = none; the others follow by user_next,
 * life->kin_next. */
struct job *index_of_user(const struct model *m, const char *user);
struct job *index_elements(const struct model *m,
			   uint32_t id); /* in memory; not the array itself */
struct node *model_find_node(const struct model *m, const char *name);
/* Of f its links, NUMA nodes and MIG instances, which a store does not hold of a node;
 * f->n_devices says how many the links are of. Copied. */
void node_set_parts(struct model *m, struct node *n, const struct node_fact *f);
struct queue *model_find_queue(const struct model *m, const char *name);
struct pod *model_find_pod(const struct model *m, struct pod_key key);
struct idem_key *model_find_key(const struct model *m, const char *user, const char *key);

/* "gpuq-CLUSTER-JOB[-ARRAYINDEX]-ATTEMPT-INDEX". out: 64 bytes. */
void model_pod_name(const struct model *m, const struct pod *p, char *out);
void model_pod_key_name(const char *cluster_id, struct pod_key key, char *out);
/* The key of a name of ours; false = another's. */
bool model_pod_name_parse(const struct model *m, const char *name, struct pod_key *key);

const char *model_intern(struct model *m, const char *s); /* lasting copy; NULL gives "" */
const char *model_interned(const struct model *m, const char *s); /* NULL: there is none */

bool job_ranges_has(const struct gpuq_range *ranges, size_t n, int64_t index);
bool model_element_waits(const struct array *a, int64_t index); /* not split off yet */
uint32_t deps_count(const struct job *j);
bool model_job_is_live(const struct job *j); /* has an attempt under way */
/* Are these the reasons that it has, whatever their times? */
bool job_has_reasons(const struct job *j, const struct reason_fact *items, size_t n);
bool model_job_is_over(
	const struct job *j); /* how its attempt ends is known, or it was told to leave */
bool model_pod_takes(const struct pod *p); /* its devices, cpu and memory are not free */
uint32_t model_job_pods(const struct job *j); /* pods of one start */
int64_t model_job_gpus_milli(const struct job *j); /* devices of one start */
bool job_is_elastic(const struct job *j); /* a group of it has more pods at most than at least */
/* The system, not its owner, told it to leave: it is tried again at once. */
bool job_cause_is_eviction(enum gpuq_cause c);
#define JOB_GRACE_DEFAULT_US (30 * GPUQ_US_PER_S)
/* How long jobs like j may take at most when they are evicted; how long j would take. */
int64_t job_grace_most_us(const struct model *m, const struct job *j);
int64_t job_evicted_us(const struct model *m, const struct job *j);
/* The shortest idle time for which its queue, those above it and its qos have it stopped
 * (idle.h), and whose rule that is ("queue/lab", "qos/train"; 64 bytes); 0 = none has. */
int64_t load_idle_limit_us(const struct model *m, const struct job *j, char rule[64]);
/* How long its devices have been idle, in whole windows. */
int64_t load_idle_for_us(const struct model *m, const struct job *j, int64_t now_us);
/* Those that still take room where the job is promised to start. */
uint32_t job_victims_left(const struct model *m, const struct job *j);
bool job_victim_left(const struct model *m, const struct job *j, struct job_key *first);
bool deps_are_awaited(const struct job *j, int64_t now_us, bool *never);

/* Return the day (civil.h) of the wall clock that an instant belongs to, and when a day begins; both
 * instants are ledger time. */
int64_t clock_day(const struct model *m, int64_t us);
int64_t clock_day_begins(const struct model *m, int64_t day);

/* Return begin, deadline: wall time in the spec, here as ledger time (walltime.h); 0 = none. */
int64_t clock_job_begin_us(const struct model *m, const struct job *j);
int64_t clock_job_deadline_us(const struct model *m, const struct job *j);
enum gpuq_node_state node_state(const struct node *n);
/* The job whose outcome `on` asks for; used when a dependency ends or is gone. */
void deps_ended(struct model *m, struct job_key on, enum gpuq_job_state state, int64_t at_us);
/* That job has come, has ended or has another name now: singletons of its owner that are
 * called so may go on. */
void deps_singletons(struct model *m, struct job *of, int64_t at_us);

/* May the ended attempt be tried again? Decides from its outcome and the retry rules:
 * the event that must follow (JOB_REQUEUED or JOB_ENDED) without its time. */
void job_verdict(const struct job *j, struct event *out);

/* Are all pods of the current attempt ENDED or GONE (true also for none)? */
bool model_job_attempt_over(const struct job *j);

/* To look at. model_int.h has the same for those who change them. */
#define job_each(m, it)                                                                            \
	for (const struct job *it = (m)->jobs, *it##_next; it && (it##_next = it->next, 1);        \
	     it = it##_next)
#define node_each(m, it) for (const struct node *it = (m)->nodes; it; it = it->hh.next)

#endif
