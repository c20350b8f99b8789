/* model_int.h - shared by the files of the model, and by those of record/ that load and apply it */
#ifndef GPUQD_STATE_MODEL_INT_H
#define GPUQD_STATE_MODEL_INT_H

#include <stdlib.h>

#include "gpuqd/util/hash.h"
#include "gpuqd/state/model.h"

/* The apply function of each kind of event. It leaves the model alone when it fails. */
#define X(sym, word, stored, apply)                                                                \
	int apply(struct model *m, const struct event *ev, struct gpuq_err *err);
EVENTS(X)
#undef X

int64_t clock_job_eligible_from(const struct model *m, int64_t begin_us, int64_t now_us);
void clock_seen(struct model *m, int64_t us); /* an instant read from the database */

/* Apply ev to the objects, and mark the records to be written: the core of model_apply(). */
int model_change(struct model *m, const struct event *ev, struct gpuq_err *err);

/* ---- records of an event ---- */

enum mark_kind {
	MARK_STARTED, /* an entry of the job's log: all its pods run */
	MARK_ENDED, /* the same: it has ended */
	MARK_NOTICE, /* an outgoing message */
	MARK_KEY, /* the record of an idempotency key */
	MARK_CHARGES, /* the records of charges of a pod, a nominated placement or a pending job */
	MARK_DONE /* the job may be over and leave memory */
};

/* Charges of a pod, or of devices kept for a job: a record for each day. */
struct charges {
	struct job_key job;
	uint32_t attempt, index;
	const char *queue, *user, *flavor, *cluster; /* interned */
	int64_t price_micro;
	int isolation; /* model_pod_isolation(); ISOLATION_NO_DEVICES for what is no pod's */
	int64_t first_day, last_day; /* days of the interval */
	struct used_sum used; /* by a pod that has ended: of the last day */
	uint32_t n, n_amounts;
	struct gpuq_amount
		amounts[GPUQ_RESOURCES_MAX + 1]; /* of accounting_amounts(); names interned */
	struct charged items[];
};

struct mark {
	enum mark_kind kind; /* what is to be encoded */
	enum gpuq_cause cause; /* of a notice; NONE = without cause */
	uint32_t number; /* of the entry; of a notice: enum gpuq_notify_on */
	int64_t at_us; /* of MARK_STARTED */
	union {
		const struct job *job; /* kept until all marks of the event are written */
		struct job_key done;
		const struct idem_key *key;
		struct charges *charges; /* owned */
	};
};

void marks_started(struct model *m, struct job *j, int64_t at_us);
void marks_ended(struct model *m, struct job *j);
void marks_notice(struct model *m, const struct job *j, unsigned what, enum gpuq_cause cause);
void marks_key(struct model *m, const struct idem_key *key);
void marks_charges(struct model *m, const struct charges *c,
		   const struct charged *items); /* copied */
void marks_done(struct model *m, const struct job *j);
void marks_clear(struct model *m); /* after they were written */

/* job_each() for callers that change jobs or remove them. */
#define job_each_rw(m, it)                                                                         \
	for (struct job *it = (m)->jobs, *it##_next; it && (it##_next = it->next, 1);              \
	     it = it##_next)

/* A name shared by many objects: model_intern(). */
struct str {
	uint32_t hash;
	char s[];
};

static inline uint32_t job_key_hash(struct job_key key)
{
	return hash_number(key.index < 0 ? key.id : (uint64_t)key.id << 32 | (uint32_t)key.index);
}

/* Avoid a node that failed it, for a while and if there are others. node is interned. */
void pod_avoid(struct model *m, struct job *j, const char *node, int64_t until_us);
void job_set_state(struct model *m, struct job *j, enum gpuq_job_state s);
void job_set_name(struct model *m, struct job *j, const char *name);
void job_set_message(struct job *j, const char *text); /* "" or NULL: none */
/* job_parts.c: the parts of a job that are shared with others, or allocated only when needed. */
extern const struct life life_none;
struct life *job_life(struct job *j); /* its own, to be written */
void job_set_life(struct job *j, const struct life *l); /* of a loaded job; takes ownership */
void job_set_labels(struct model *m, struct job *j, const char *labels); /* "" or NULL: none */
void job_set_notes(struct model *m, struct job *j, const char *notes); /* as above */
/* Share equal ones: compared byte by byte, so that w must be zeroed before it is filled, or a
 * copy. */
void job_set_wish(struct model *m, struct job *j, const struct wish *w);
void job_wish_add_exit(struct wish *w, uint8_t code);
bool job_wish_has_exit(const struct wish *w, int code);
/* Take the reasons from items, all else from o; reasons that it had already keep their times. */
void job_set_outlook(struct model *m, struct job *j, const struct outlook *o,
		     const struct reason_fact *items, size_t n, int64_t at_us);
void job_set_reasons(struct model *m, struct job *j, const struct reason_fact *items, size_t n,
		     int64_t at_us);
void job_parts_like(struct model *m, struct job *j,
		    const struct job *from); /* an array's element */
void job_parts_free(struct model *m, struct job *j);
/* Check an allocation; failure of one of gpuqd's own sizes ends the process: the ledger is on disk,
 * and a restart is the recovery. */
static inline void *must(void *p)
{
	if (!p)
		abort();
	return p;
}
/* Add the job to its queue's counters by state; an array's pending part counts each element. */
void job_count(struct job *j, int sign);
struct job *job_new(struct model *m, struct job_key key);
void job_insert(struct model *m, struct job *j);
void job_free(struct model *m, struct job *j); /* out of the model, with its pods */
/* index.c: the lists of a job, once it is in the model. */
void index_add(struct model *m, struct job *j);
void index_remove(struct model *m, struct job *j);
/* Add it to (-1: take it from) its owner's stored total: around a change of it. */
void index_stored(struct model *m, const struct job *j, int sign);
void index_state(struct model *m, struct job *j, enum gpuq_job_state s); /* sets the state */
void index_queue(struct job *j, struct queue *q); /* sets the queue */
/* Note that all pods of the attempt run for the first time. */
void job_note_started(struct model *m, struct job *j, int64_t at_us);
/* Return the job of ev, split off its array where needed; NULL = there is none, and err says so. */
struct job *job_of_event(struct model *m, const struct event *ev, struct gpuq_err *err);
/* True if it has ended, and none of its pods is left. An array stays as long as one of its
 * elements. */
bool job_is_done(const struct model *m, const struct job *j);
/* Remove it and its pods from memory and from the store. Return the array that it was an element
 * of; NULL = none. */
struct job *job_depart(struct model *m, struct job *j);
/* Begin an attempt: the data of the one before is cleared. */
/* Set the own number of an element that has none yet. */
void job_set_number(struct model *m, struct job *j, uint32_t number);
/* Add what a pod of the present attempt used; s: as the cluster reports at its end, NULL = nothing. */
void load_pod_ended(struct pod *p, const struct used *s);
void job_attempt_begin(struct model *m, struct job *j, const char *token, const char *flavor,
		       int64_t at_us);
void job_drop_gone_pods(struct model *m, struct job *j);
/* job_submit.c: submission and update of jobs. */
/* Make a job as JOB_SUBMITTED describes it, whatever its number. */
int job_submit(struct model *m, const struct event *ev, struct job **out, struct gpuq_err *err);
/* deps.c: dependencies. They are found by their subject while the job is in the model, has not
 * ended and has this name. */
struct deps *deps_new(uint32_t n); /* all of them unmet */
void deps_set(struct model *m, struct job *j, struct deps *all); /* takes ownership; NULL = none */
void deps_like(struct model *m, struct job *j, const struct job *from);
void deps_link(struct model *m, struct job *j);
void deps_unlink(struct model *m, struct job *j);
/* Return the oldest pending singleton of its owner and name; NULL = none. */
struct job *deps_namesake(const struct model *m, struct job *j);
/* Resolve dependencies on the pending elements, which end with their array. */
void deps_elements_ended(struct model *m, const struct job *master, enum gpuq_job_state state,
			 int64_t at_us);
/* Resolve dependencies on its start: it runs. */
void deps_started(struct model *m, struct job_key on, int64_t at_us);
/* job_preempt.c: evictions and nominated placements. */
void job_leave(struct model *m, struct job *j, enum gpuq_cause cause, enum gpuq_job_state outcome,
	       int64_t at_us, int64_t grace_us);
/* Note an eviction by ev: the job it is for, the rule and the numbers. */
void job_note_eviction(struct model *m, struct job *j, enum gpuq_cause cause,
		       const struct event *ev);
void job_clear_trouble(struct job *j);
/* named: the refusal names a resource that the node lacks. node is interned. */
void job_note_rejected(struct job *j, const char *node, bool named);
void job_clear_rejected(struct job *j);
void job_set_promise(struct model *m, struct job *j, struct promise *p); /* takes p; NULL = none */
struct promise *job_promise_new(uint32_t n_pods, uint32_t n_victims);
void job_promise_count(struct model *m, const struct job *j); /* of a loaded job */
/* Check that every pod can be placed as given. */
int job_placed_check(const struct model *m, const struct job *j, const struct placed_pod *pods,
		     uint32_t n, struct gpuq_err *err);
struct pod *job_placed_add(struct model *m, struct job *j, const struct placed_pod *pp,
			   int64_t at_us);
/* Mark it running if all of its remaining pods run. */
void job_start_if_all_run(struct model *m, struct job *j, int64_t at_us);
/* Drop a lost pod of an elastic job, which continues without it. False: it cannot. */
bool job_goes_on_without(struct model *m, struct job *j, struct pod *lost, int64_t at_us);
/* Split off an element of an array as a job of its own; NULL when it is not pending. */
struct job *job_array_split(struct model *m, struct job *master, int32_t index);
/* Note that an element ended: the master's counters, and its own end. */
void job_array_child_ended(struct model *m, struct job *child, int64_t at_us);
bool job_ranges_remove(struct gpuq_range **ranges, size_t *n, int64_t index);

size_t pod_key(const struct pod *p, unsigned char *out); /* of TABLE_POD */
struct pod *pod_add(struct model *m, struct job *j, struct node *n, uint32_t n_devices);
void pod_free(struct model *m, struct pod *p);
void pod_remove(struct model *m, struct pod *p); /* with its record */

/* Return the node, made when new. */
struct node *node_get(struct model *m, const char *cluster, const char *name);
int node_set_fact(struct model *m, struct node *n, const struct node_fact *f);
/* node_short.c: what the node offers may have changed; a pod has started there. */
void node_shorts_offered(struct model *m, struct node *n);
void node_shorts_started(struct model *m, const struct pod *p);
/* Settle the fact of a node as the site has it; what differs from told is in a. Returns how both
 * differ, in a; NULL = they do not. */
const char *node_offer(const struct model *m, const struct node_fact *told, struct gpuq_arena *a,
		       struct node_fact *out);
/* True if the number is in a list such as "0, 2"; what is no number is passed over. */
bool node_offer_lists(const char *list, uint32_t card);
/* Return what a foreign pod holds, with its units as memory and thousandths of devices of the node, where that has
 * units. */
struct foreign node_offer_units(const struct node *n, const struct foreign *f);
/* Return what the list of a node with so many cards has of them, and of other words, in the arena; NULL = nothing. */
const char *node_offer_listed(const char *node, const char *list, size_t n_devices,
			      struct gpuq_arena *a);
/* Settle all nodes anew: the site has changed. */
void node_settle_all(struct model *m);
/* Settle one, if there is such: its slices have changed; or all, where flavors name that DeviceClass,
 * which has changed (NULL = slices of any). */
void node_settle_one(struct model *m, const char *name);
void node_settle_class(struct model *m, const char *name);
/* Pods that share a claim (cuts/shared_claim.h): one was placed; the claim has changed. */
void pod_claims_placed(struct model *m, const struct pod *p);
void pod_claim_seen(struct model *m, const char *namespace_, const char *name, int64_t at_us);
/* Count the devices of such a node that claims of foreign pods have; of other nodes none. Returns true if that has
 * changed. */
bool node_count_claims(const struct model *m, struct node *n);
/* Count them anew on one node, if there is such, or on all (name NULL): claims have changed. */
void node_recount_claims(struct model *m, const char *name);
/* True if the class selects the first device of a node that has its devices by slices. */
bool node_has_class(const struct model *m, const struct node *n, const char *class_);
/* Decide whether its conditions and taints keep new work away. */
void node_judge(struct model *m, struct node *n);
/* True if the flavor has the resource of the node's devices, and matches what is known of them. */
bool node_is_of_resource(const struct node *n, const struct site_flavor *f, const char *product,
			 int64_t memory_mib);
/* True if the flavor matches devices of whatever resource it may have. */
bool node_is_of_match(const struct node *n, const struct site_flavor *f, const char *product,
		      int64_t memory_mib);
/* Return the kind of the node's devices, interned. */
const char *node_kind_of(struct model *m, const struct node *n);
void node_classify(struct model *m, struct node *n); /* pool and flavor by the site */
void node_free(struct model *m, struct node *n);
void node_drop_if_empty(struct model *m, struct node *n);

struct request *model_request_intern(struct model *m, const void *bytes, size_t n,
				     struct gpuq_err *err);
/* Return a request of a spec that outlives the model: its own words count (event.h, as_written). */
struct request *model_request_borrow(struct model *m, const struct gpuq_spec *spec,
				     const void *bytes, size_t n);
void model_request_put(struct model *m, struct request *r); /* one job less */

/* account.c: usage for fair shares and for budgets that decay. A pod's devices count from start to
 * end; both may be reported late. `counted_us` is the start reported before, 0 = none was. */
void account_pod_started(struct model *m, const struct pod *p, int64_t now_us);
void account_pod_ended(struct model *m, const struct pod *p, int64_t counted_us, int64_t end_us,
		       int64_t now_us);
/* Charge a pod that runs for so many devices more from now on. */
void account_pod_more(struct model *m, const struct pod *p, int64_t milli, int64_t now_us);
/* Deduct charges of its pods from `from` to `to`. */
void account_refund(struct model *m, const struct pod *p, int64_t from_us, int64_t to_us,
		    int64_t now_us);
/* Called before and after the tree of queues is replaced: running pods are charged to the budgets
 * above them as they are until now and from now on. */
void account_site_changing(struct model *m, int64_t now_us);
void account_site_changed(struct model *m, int64_t now_us);
int64_t budget_half_life(const struct queue *q); /* 0 = it does not decay */
int64_t account_rate_of(const struct model *m, const char *flavor); /* in thousandths */

/* accounting.c: the book of days. */
struct usage *accounting_get(struct model *m, const unsigned char *bytes, size_t n);
void accounting_charge_site_changed(struct model *m);
/* Count stranded devices anew: a pod arrived or left, or the node changed. */
void accounting_charge_strand(struct model *m, struct node *n);
void accounting_charge_pod_ended(struct model *m, struct pod *p, int64_t end_us);
/* Note that the pod is about to be charged for more devices. */
void accounting_charge_more(struct pod *p, int64_t at_us);
/* Charge the attempt as lost, for this cause: it is over. */
void accounting_charge_attempt_lost(struct model *m, const struct job *j, enum gpuq_cause cause);
/* Charge the nominated placement: it ends, or is replaced. */
void accounting_charge_promise(struct model *m, const struct job *j);
void accounting_charge_apart(struct model *m, const struct job *j);
/* Note fragmentation; milli 0: it is over. */
void accounting_set_apart(struct model *m, struct job *j, const char *flavor, int64_t milli);
void accounting_charge_grant(struct model *m, const char *queue, int64_t gpu_us);

/* Return the grants to a decaying budget, decayed to now. */
int64_t account_granted_ms(const struct model *m, const struct queue *q, int64_t now_us);
/* Return a user's usage of a queue's decaying budget that has a part for each user. */
int64_t account_purse_ms(const struct model *m, const struct queue *q, const char *user,
			 int64_t now_us);
void account_grant(struct model *m, const struct queue *q, int64_t gpu_us, int64_t now_us);
struct account *account_get(struct model *m, const unsigned char *bytes, size_t n);
void account_expire_all(struct model *m, int64_t now_us); /* those decayed to zero */
void account_free_all(struct model *m);

#endif
