/* event.h - the events that change the model
 *
 * Owns     the list of events and the data of each.
 * Touches  nothing.
 * Used by  flow/ (makes them), state/model (applies them), tests and replay.
 *
 * An event carries everything that its application needs: the time, random tokens,
 * chosen devices. Applying the same events to the same model gives the same model.
 * Data that an event points at is borrowed until model_apply() returns.
 */
#ifndef GPUQD_STATE_EVENT_H
#define GPUQD_STATE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/record/change.h"
#include "gpuqd/state/fact.h"
#include "gpuqd/state/idle.h"
#include "gpuqd/site/policy.h"
#include "gpuqd/state/objects/object.h"
#include "libgpuq/names.h"
#include "libgpuq/spec.h"

/* X(symbol, word, stored, apply function) - the events of the last group are never stored. The
 * function returns 0, or leaves the model alone and reports why the event is not applicable. */
#define EVENTS(X)                                                                                  \
	X(JOB_SUBMITTED, "job.submitted", true, job_submit_apply)                                  \
	X(JOB_UPDATED, "job.updated", true, job_submit_apply_update)                               \
	X(JOB_NICED, "job.niced", true, job_apply_niced)                                           \
	X(JOB_WARNED, "job.warned", true, job_apply_warned)                                        \
	X(JOB_TIME_PASSED, "job.time_passed", true, notify_apply_time_passed)                      \
	X(JOB_HELD, "job.held", true, job_apply_held)                                              \
	X(JOB_RELEASED, "job.released", true, job_apply_released)                                  \
	X(JOB_CANCEL_ASKED, "job.cancel_asked", true, job_apply_cancel)                            \
	X(JOB_NOMINATED, "job.nominated", true, job_preempt_apply_nominated)                       \
	X(JOB_PLACED, "job.placed", true, job_apply_placed)                                        \
	X(JOB_EVICT_ASKED, "job.evict_asked", true, job_preempt_apply_evict)                       \
	X(JOB_SHRINK_ASKED, "job.shrink_asked", true, job_preempt_apply_shrink)                    \
	X(JOB_GROWN, "job.grown", true, job_preempt_apply_grown)                                   \
	X(JOB_RENOUNCED, "job.renounced", true, job_preempt_apply_renounced)                       \
	X(JOB_REQUEUED, "job.requeued", true, job_apply_requeued)                                  \
	X(JOB_ENDED, "job.ended", true, job_apply_ended)                                           \
	X(POD_CREATED, "pod.created", true, pod_apply_created)                                     \
	X(POD_STARTED, "pod.started", true, pod_apply_started)                                     \
	X(POD_ENDED, "pod.ended", true, pod_apply_ended)                                           \
	X(POD_GONE, "pod.gone", true, pod_apply_gone)                                              \
	X(NODE_SEEN, "node.seen", true, node_apply_seen)                                           \
	X(NODE_GONE, "node.gone", true, node_apply_gone)                                           \
	X(NODE_DRAIN, "node.drain", true, node_apply_drain)                                        \
	X(QUEUE_GRANTED, "queue.granted", true, queue_apply_granted)                               \
	X(SITE_APPLIED, "site.applied", true, queue_apply_site)                                    \
	X(KEYS_EXPIRED, "keys.expired", true, job_submit_apply_expired)                            \
	X(DEP_ENDED, "dep.ended", true, deps_apply_ended)                                          \
	X(BESIDE_GONE, "beside.gone", true, row_apply_beside_gone)                                 \
	X(HISTORY_EXPIRED, "history.expired", true, row_apply_history)                             \
	X(CLUSTER_KNOWN, "cluster.known", true, model_apply_cluster)                               \
	X(POD_DEVICES, "pod.devices", true, pod_apply_devices)                                     \
	X(AUDITED, "audit.noted", true, row_apply_audited)                                         \
	X(AUDIT_DROPPED, "audit.dropped", true, row_apply_audit_dropped)                           \
	X(JOB_FRAGMENTED, "job.fragmented", true, job_apply_fragmented)                            \
	X(CHARGES_EXPIRED, "charges.expired", true, accounting_apply_expired)                      \
	X(NOTICES_DONE, "notices.done", true, row_apply_notices_done)                              \
	X(POD_SIGNALLED, "pod.signalled", true, pod_apply_signalled)                               \
	X(RECOVERY_BEGUN, "recovery.begun", true, recover_apply_begun)                             \
	X(RECOVERY_LISTED, "recovery.listed", true, recover_apply_listed)                          \
	X(RECOVERY_ENDED, "recovery.ended", true, recover_apply_ended)                             \
	X(JOB_RECOVERED, "job.recovered", true, recover_apply_job)                                 \
	X(JOB_UNKNOWN, "job.unknown", true, recover_apply_unknown)                                 \
	X(CLOCK_SET, "clock.set", true, clock_apply)                                               \
	X(JOB_TROUBLE, "job.trouble", true, job_apply_trouble)                                     \
	X(QUEUE_REFUSED, "queue.refused", false, queue_apply_refused)                              \
	X(JOB_REASONS, "job.reasons", false, job_apply_reasons)                                    \
	X(QUEUE_SHARE, "queue.share", false, queue_apply_share)                                    \
	X(JOB_BLOCKED, "job.blocked", false, job_apply_blocked)                                    \
	X(POD_LEAVING, "pod.leaving", false, pod_apply_leaving)                                    \
	X(NODE_FROZEN, "node.frozen", false, node_apply_frozen)                                    \
	X(NODE_BACKOFF, "node.backoff", false, node_apply_backoff)                                 \
	X(NODE_SHORT, "node.short", false, node_apply_short)                                       \
	X(FOREIGN_SEEN, "foreign.seen", false, node_apply_foreign_seen)                            \
	X(FOREIGN_GONE, "foreign.gone", false, node_apply_foreign_gone)                            \
	X(USE_MEASURED, "use.measured", false, load_apply)                                         \
	X(JOB_NOTHING_BESIDE, "job.nothing_beside", false, job_apply_nothing_beside)               \
	X(FENCED, "cluster.fenced", false, model_apply_fenced)                                     \
	X(OBJECT_SEEN, "object.seen", false, row_apply_object_seen)                                \
	X(OBJECT_GONE, "object.gone", false, row_apply_object_gone)                                \
	X(OBJECTS_KNOWN, "objects.known", false, row_apply_objects_known)                          \
	X(POD_AMOUNTS, "pod.amounts", true, pod_apply_amounts)                                     \
	X(TOKEN_ISSUED, "token.issued", true, token_apply_issued)                                  \
	X(TOKEN_REVOKED, "token.revoked", true, token_apply_revoked)                               \
	X(TOKEN_USED, "token.used", true, token_apply_used)                                        \
	X(DEFAULT_RULED, "default.ruled", true, queue_apply_default)                               \
	X(ASK_MADE, "ask.made", true, ask_apply_made)                                              \
	X(ASK_OWNED, "ask.owned", true, ask_apply_owned)                                           \
	X(ASK_HEARD, "ask.heard", true, ask_apply_heard)                                           \
	X(ASK_FAILED, "ask.failed", true, ask_apply_failed)                                        \
	X(ASK_LOST, "ask.lost", true, ask_apply_lost)                                              \
	X(ASK_TRIED, "ask.tried", true, ask_apply_tried)                                           \
	X(ASK_ENDED, "ask.ended", true, ask_apply_ended)                                           \
	X(ASK_CLEARED, "ask.cleared", true, ask_apply_cleared)                                     \
	X(ASK_CLOSED, "ask.closed", true, ask_apply_closed)                                        \
	X(ASKS_KNOWN, "asks.known", false, ask_apply_known)                                        \
	X(NODE_CUT, "node.cut", true, cut_apply)                                                   \
	X(JOB_FILLED, "job.filled", true, job_apply_filled)

enum event_type {
#define X(sym, word, stored, apply) EV_##sym,
	EVENTS(X)
#undef X
		N_EVENTS
};

extern const char *const event_words[N_EVENTS];
bool model_event_is_stored(enum event_type t);

/* A job (index -1), or one element of an array. */
struct job_key {
	uint32_t id;
	int32_t index; /* of an array's element; -1 = the job, or all that is pending of an array */
};

struct pod_key {
	struct job_key job;
	uint32_t attempt, index; /* index: of the pod within the attempt */
};

struct gpuq_val;

struct reason_fact {
	enum gpuq_reason code; /* names.h */
	const char *object; /* the obstacle: a queue, a license, a job; "" = none */
	enum gpuq_unit unit;
	int64_t have, /* in the unit of the reason */
		need; /* devices and cores in thousandths, times in us; 0 0 where it has none */
	uint32_t
		ask; /* PROVISIONING: number of the request whose nodes it waits for; 0 = not known */
};

/* Recent utilization of the devices of a running job. */
struct job_use {
	struct job_key job;
	enum idle_use use; /* busy, idle or not known */
	int32_t milli; /* average of the measured devices, 0 .. 1000 */
};

/* Use of a running pod so far; of memory, now. */
struct pod_use {
	struct pod_key pod;
	struct used used;
};

/* A key of TABLE_CHARGE. */
struct charge_key {
	uint8_t len;
	unsigned char bytes[CHARGE_KEY_BYTES + CLUSTER_BYTES_MAX];
};

struct placed_pod {
	uint32_t group, group_index; /* which pod of which group */
	const char *node;
	const uint16_t *devices; /* ascending */
	uint32_t n_devices;
	int64_t gpus_milli; /* of each device x 1000 = whole */
	uint16_t rides; /* as in struct pod */
	const char *
		mig; /* profile of its instances, where its group accepts several; NULL = as that has it */
	struct gpuq_alternatives choice; /* of alternatives of its claims */
};

/* A pod of the cluster that the ledger did not know. */
struct recovered_pod {
	struct placed_pod place; /* as its record says */
	uint32_t index;
	const char *uid; /* of the pod that is there */
	int64_t cpu_milli, memory_bytes; /* of the pod */
};

struct event {
	enum event_type type;
	int64_t at_us; /* of the journal's clock, which never goes back */
	struct job_key job; /* of JOB_* events and BESIDE_GONE */
	struct pod_key pod; /* of POD_* events */
	union {
		struct {
			const struct gpuq_spec *spec; /* borrowed while the event is applied */
			const void *spec_bytes; /* MessagePack of its normalised tree */
			size_t spec_len;
			const void *request_bytes; /* of its stripped twin: request.h */
			size_t request_len;
			const char *user, *queue, *qos;
			uint32_t uid, gid; /* of the submitting user */
			int64_t time_limit_us; /* resolved; GPUQ_UNLIMITED */
			const char *key; /* idempotency, NULL = none; jobs of one call share it */
			uint64_t key_hash; /* of the request */
			int64_t lease_us; /* how long it outlives its client; 0 = for ever */
			/* True in scenarios: request_bytes only identify the request. The request
			 * is spec itself, which outlives the model; its gangs of one size are kept
			 * for repair as well. */
			bool as_written;
		} submitted; /* job.id = model_next_job_id() */
		struct { /* updated: running pods are kept */
			const struct gpuq_spec *spec;
			const void *spec_bytes; /* NULL: an element; the stored spec stays */
			size_t spec_len;
			const void *request_bytes;
			size_t request_len;
			const char *queue, *qos, *who;
			const char *changes; /* for people: "time=2h gpus=4" */
			int64_t time_limit_us;
			bool depends, begin, deadline; /* whether they were changed */
			bool as_written; /* as in submitted */
		} updated;
		int64_t nice; /* JOB_NICED */
		struct { /* it is pending while enough devices are free, but fragmented */
			const char *flavor;
			int64_t milli; /* of those free devices; 0 = it is over */
		} fragmented;
		bool nothing_beside; /* JOB_NOTHING_BESIDE: no objects beside its pods */
		bool told; /* POD_LEAVING: by gpuqd, since its job, or its part in it, ends */
		int percent; /* JOB_TIME_PASSED: of its time limit; 50, 80 or 90 */
		struct {
			bool admin; /* held by an operator: only one may release it */
			const char *who; /* the user that did it */
		} held;
		struct {
			const char *who;
			bool admin; /* by an operator, not by its owner */
			const char *why; /* becomes the job's message; NULL = none */
		} cancel;
		struct {
			const char *token; /* 32 hex */
			const char *flavor;
			const struct placed_pod *pods; /* in order of pod index */
			uint32_t n_pods;
			int64_t yield_us; /* its places go to another job from then on; 0 = never */
			int64_t time_limit_us; /* of the attempt, if shorter; 0 = as requested */
		} placed; /* of an array: job.index is the element, split off here */
		/* Places that are nominated for it, though others may still hold them. Stored with
		 * the evictions that make room there. A later placement replaces an earlier one.
		 * JOB_RENOUNCED (no data) gives it up. */
		struct {
			const char *flavor; /* that it runs on */
			const struct placed_pod *pods;
			uint32_t n_pods;
			const struct job_key *victims; /* preempted for it; may be none */
			uint32_t n_victims;
			const char *rule; /* of the preemption; NULL or "" none */
			const char *why; /* the numbers behind it, one line; NULL or "" none */
		} nominated; /* of an array: job.index is the element, split off here */
		struct {
			enum gpuq_cause cause; /* of the preemption */
			const char *by, *rule; /* "" = none; by: the job that it is preempted for */
			const char *by_queue; /* the queue of that job; NULL or "" none */
			const char *why; /* the numbers behind it, one line; NULL or "" none */
			int64_t grace_us; /* maximum; -1 = as the job requested */
			/* JOB_SHRINK_ASKED: pod indexes of the attempt to remove, ascending */
			const uint32_t *pods;
			uint32_t n_pods;
		} evict; /* and of JOB_SHRINK_ASKED */
		struct {
			const struct placed_pod *pods;
			uint32_t n_pods;
		} grown; /* pods with new indexes join the attempt */
		struct {
			enum gpuq_cause cause;
			bool counts; /* uses up one of the owner's retries */
			int64_t not_before_us; /* 0 = at once */
			const char *message;
		} requeued;
		struct {
			enum gpuq_job_state state; /* the state that it ends in */
			int exit_code; /* -1 = it never ran */
			const char *message;
		} ended;
		struct {
			enum gpuq_job_state state; /* outcome of `job`, no longer in memory */
			int64_t start_us; /* while it has not ended: when it started */
		} dep;
		struct { /* JOB_FILLED: the pod of a job that stood for a suspended owner */
			const char *name, *uid;
		} filled;
		struct {
			const char *uid; /* by which later news is known to be of this pod */
		} created;
		struct {
			int64_t start_us;
		} started;
		struct { /* POD_DEVICES: its actual devices, ascending; as many as were allocated */
			const int *items;
			size_t n;
		} devices;
		struct {
			int64_t start_us, end_us; /* 0 = not known: the ledger's own times count */
			int exit_code; /* -1 = it never ran */
			enum pod_fault fault;
			bool untold; /* it ended before the cluster signalled it */
			bool named; /* rejected: for lack of a resource that its node counts */
			const char *message;
			const struct used *used; /* NULL = not known */
		} pod_ended;
		struct {
			int signal;
			bool sent;
			const char *message; /* why it was not sent */
		} signalled;
		struct { /* CLOCK_SET: the relation of ledger time and the clocks: base/clock.h */
			const char *boot;
			int64_t base_us, ahead_us;
		} clock;
		const struct node_fact *node; /* as the cluster reports it */
		struct {
			const char *name;
			bool on;
			const char *why, *who; /* for people; the user that did it */
		} drain; /* and of NODE_FROZEN */
		struct {
			const char *name;
			int64_t fair_milli; /* of all flavors */
		} share;
		struct {
			uint32_t highest; /* highest job number named by anything in the cluster */
		} listed; /* RECOVERY_LISTED: the whole cluster has been seen once */
		const char *by; /* RECOVERY_ENDED: an operator; "" = by itself */
		struct {
			/* JOB_SUBMITTED of an unknown job, with at_us of its submission; NULL: the
			 * job is known, and these are pods of it. */
			const struct event *as;
			const char *token, *flavor; /* of the attempt */
			uint32_t attempt;
			uint32_t element_id; /* of an array's element; 0 = not known */
			const struct recovered_pod *pods; /* ascending by index */
			uint32_t n_pods;
		} recovered;
		struct {
			const char *name;
			int64_t gpu_minutes; /* may be below 0: taken back */
			const char *why, *who;
		} granted; /* in addition to the budget of its current period */
		const char *name; /* NODE_GONE */
		struct { /* HISTORY_EXPIRED: history records that are forgotten */
			const struct gpuq_val *const *jobs;
			size_t n;
		} expired;
		struct {
			const void *bytes; /* MessagePack of the entry, see flow/audit.h */
			size_t len;
		} audited;
		struct {
			const unsigned char *keys; /* n of AUDIT_KEY_BYTES */
			size_t n;
		} audit_dropped;
		struct {
			int64_t first_day; /* first day with charges kept for single pods */
			const struct charge_key *keys; /* n, of earlier days */
			size_t n;
		} charges;
		struct {
			const uint64_t *numbers; /* of messages that were delivered, or given up */
			size_t n;
		} notices;
		struct {
			const void *bytes; /* MessagePack of the normalised tree */
			size_t len;
			const char *who;
		} site;
		struct {
			const struct reason_fact *items;
			size_t n;
			struct priority_terms terms; /* terms of its priority */
			int64_t planned_us; /* estimated start, 0 = unknown */
		} reasons;
		struct {
			struct reason_fact reason; /* code NONE = no longer blocked */
			const char *words; /* the cluster's, one line; NULL or "" none */
			int64_t until_us;
		} blocked;
		struct { /* QUEUE_REFUSED: the cluster takes no pod of its jobs */
			const char *name;
			const char
				*object; /* kind/name of what refuses; NULL = no longer refused */
			const char *words;
		} queue_refused;
		struct { /* JOB_TROUBLE: what keeps its pods from running, or from being created */
			const char *object; /* a word of the kubelet, or kind/name; NULL = over */
			const char *words; /* the cluster's, one line */
			enum trouble_whose whose;
			uint32_t pod; /* index of the pod; 0 where none was created */
			bool tell_site; /* the first job in this trouble: operators are notified */
		} trouble;
		struct {
			const char *name;
			int64_t until_us; /* no placement there before; 0 = clear */
			bool suspect;
		} backoff;
		struct { /* NODE_SHORT: it has less of a resource free */
			const char *name, *resource; /* as its kubelet names it */
			int64_t lacks, until_us; /* so much less than the ledger has; until then */
			uint32_t times; /* that this was told without the node serving it since */
		} short_of;
		struct {
			const char *by; /* another daemon acts under our identity; "" = none */
			const char *waits; /* and one waits for us; "" none */
		} fence; /* FENCED */
		const struct pod_fact *foreign;
		const struct object_fact *object; /* OBJECT_GONE: its kind, namespace and name */
		struct {
			enum object_kind kind;
			bool known; /* a complete list has come; false: they cannot be read */
			const char *why; /* the words of the cluster for that; NULL = none */
			const char *home; /* the namespace of queues that name none */
		} objects;
		struct { /* POD_AMOUNTS: requests of the pod as the cluster has it */
			int64_t cpu_milli, memory_bytes;
		} amounts;
		struct {
			const struct job_use *items;
			size_t n;
			const struct pod_use *pods;
			size_t n_pods;
		} measured; /* USE_MEASURED */
		struct { /* TOKEN_*; of the last two only id */
			const char *id;
			const unsigned char *hash; /* TOKEN_HASH_BYTES */
			const char *user, *by, *queues, *comment;
			const char *groups; /* NULL = none */
			uint32_t scopes;
			int64_t expires_us;
		} token;
		struct { /* ASK_*: state/asks/ask.h; job is the owner of ASK_MADE and ASK_OWNED */
			uint32_t number;
			uint32_t attempt; /* ASK_HEARD, ASK_FAILED: of which that is told */
			/* ASK_MADE; pool of ASK_CLOSED too, token of ASK_TRIED too */
			const char *pool, *flavor, *class_, *namespace_, *token;
			uint32_t n_nodes;
			int64_t run_us;
			/* ASK_HEARD and ASK_FAILED: the condition that the cloud set, and its words.
			 * message of ASK_ENDED and ASK_CLOSED too. */
			const char *condition, *reason, *message;
			int state; /* ASK_HEARD: that it is in at least: enum ask_state */
			const struct gpuq_strmap
				*labels; /* ASK_HEARD: of its nodes; NULL = not told */
			/* ASK_HEARD: since when it is provisioned; ASK_FAILED: when it is tried again;
			 * ASK_CLOSED: before which nothing is asked of the pool */
			int64_t until_us;
			bool counts; /* ASK_FAILED: as one of the pool's retries */
		} ask;
		struct { /* ASKS_KNOWN: not stored */
			int known; /* enum asks_known */
			const char
				*why; /* ASKS_OFF: why requests cannot be made; NULL or "" none */
			bool stand; /* the cluster takes placeholders */
		} asks;
		struct { /* NODE_CUT: state/cuts/cut.h; job is the one that needs it */
			const char *name;
			int state; /* that begins: enum cut_state */
			const char *layout, *before; /* CUT_SET: to be set; that it had, "" none */
			uint32_t cards; /* CUT_SET */
			const char *message; /* why it failed; NULL or "" none */
		} cut;
	};
};

#endif
