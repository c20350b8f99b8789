/* model_int.h - what the files of the model share; no other room includes it */
#ifndef GPUQD_STATE_MODEL_INT_H
#define GPUQD_STATE_MODEL_INT_H

#include <stdlib.h>

#include "gpuqd/util/hash.h"
#include "gpuqd/state/model.h"

/* What applies each kind of event. It leaves the model alone when it fails. */
#define X(sym, word, stored, apply)                                                                \
	int apply(struct model *m, const struct event *ev, struct gpuq_err *err);
EVENTS(X)
#undef X

int64_t clock_job_eligible_from(const struct model *m, int64_t begin_us, int64_t now_us);
void clock_seen(struct model *m, int64_t us); /* an instant that was read from the database */

/* Apply ev to the objects, and mark what is to be written down: the ground of model_apply(). */
int model_change(struct model *m, const struct event *ev, struct gpuq_err *err);

/* ---- what an event leaves to be written down ---- */

enum mark_kind {
	MARK_STARTED, /* an entry of the job's log: all its pods run */
	MARK_ENDED, /* and: it has ended */
	MARK_NOTICE, /* a message to the outside */
	MARK_KEY, /* the record of an idempotency key */
	MARK_CHARGES, /* the records of what a pod, a promise or a wait was charged */
	MARK_DONE /* the job may be over and leave */
};

/* What a pod was charged, or devices that were kept for a job: a record for each day. */
struct charges {
	struct job_key job;
	uint32_t attempt, index;
	const char *queue, *user, *flavor, *cluster; /* interned */
	int64_t price_micro;
	int64_t first_day, last_day; /* that it touches */
	uint32_t n;
	struct charged items[];
};

struct mark {
	enum mark_kind kind;
	enum gpuq_cause cause; /* of a notice; NONE = it has none */
	uint32_t number; /* of the entry; of a notice: enum gpuq_notify_on */
	int64_t at_us; /* of MARK_STARTED */
	union {
		const struct job *job; /* it stays until all marks of the event are written */
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
void marks_clear(struct model *m); /* they are written */

/* job_each() for what changes jobs, or takes them away. */
#define job_each_rw(m, it)                                                                         \
	for (struct job *it = (m)->jobs, *it##_next; it && (it##_next = it->next, 1);              \
	     it = it##_next)

/* A name that many objects have: model_intern(). */
struct str {
	UT_hash_handle hh;
	size_t len;
	char s[];
};

/* Odd factors: jobs that come one after the other, and the elements of an array, never take
 * one another's places. */
static inline uint32_t job_key_hash(struct job_key key)
{
	return key.id * UINT32_C(0x9e3779b1) + (uint32_t)(key.index + 1) * UINT32_C(0x85ebca6b);
}

void model_job_dirty(struct model *m, struct job *j);
/* A node failed it: others first, for a while. node is interned. */
void pod_avoid(struct model *m, struct job *j, const char *node, int64_t until_us);
void job_set_state(struct model *m, struct job *j, enum gpuq_job_state s);
void job_set_name(struct model *m, struct job *j, const char *name);
void job_set_message(struct job *j, const char *text); /* "" or NULL: none */
/* job_parts.c: what a job shares with others, or has only once there is something to say. */
extern const struct life life_none;
struct life *job_life(struct job *j); /* its own, to be written */
void job_set_life(struct job *j, const struct life *l); /* of one that was loaded; takes it */
void job_set_labels(struct model *m, struct job *j, const char *labels); /* "" or NULL: none */
void job_set_notes(struct model *m, struct job *j, const char *notes); /* the same */
/* Equal ones are one: compared byte by byte, so that w was zeroed, or is a copy of another. */
void job_set_wish(struct model *m, struct job *j, const struct wish *w);
void job_wish_add_exit(struct wish *w, uint8_t code);
bool job_wish_has_exit(const struct wish *w, int code);
/* All but the reasons is taken from o, those from items; reasons that it had already keep
 * their times. */
void job_set_outlook(struct model *m, struct job *j, const struct outlook *o,
		     const struct reason_fact *items, size_t n, int64_t at_us);
void job_set_reasons(struct model *m, struct job *j, const struct reason_fact *items, size_t n,
		     int64_t at_us);
void job_parts_like(struct model *m, struct job *j,
		    const struct job *from); /* an array's element */
void job_parts_free(struct model *m, struct job *j);
/* A lost allocation of our own sizes ends the process: the ledger is on disk, and a
 * restart is the recovery. */
static inline void *must(void *p)
{
	if (!p)
		abort();
	return p;
}
/* Counters of the queue follow a job's state; an array's waiting part counts each element. */
void job_count(struct job *j, int sign);
struct job *job_new(struct model *m, struct job_key key);
void job_insert(struct model *m, struct job *j);
void job_free(struct model *m, struct job *j); /* out of the model; its pods with it */
/* index.c: the lists that a job is in, once it is in the model. */
void index_add(struct model *m, struct job *j);
void index_remove(struct model *m, struct job *j);
/* Count it among what its owner has stored, or (-1) no longer: around a change of it. */
void index_stored(struct model *m, const struct job *j, int sign);
void index_state(struct model *m, struct job *j, enum gpuq_job_state s); /* sets it */
void index_queue(struct job *j, struct queue *q); /* sets it */
/* All pods of the attempt run for the first time. */
void job_note_started(struct model *m, struct job *j, int64_t at_us);
/* The job that befalls what ev tells, split off its array where need be; NULL = there is none,
 * and err says so. */
struct job *job_of_event(struct model *m, const struct event *ev, struct gpuq_err *err);
/* Has it ended, and is none of its pods left? An array stays as long as one of its elements. */
bool job_is_done(const struct model *m, const struct job *j);
/* Take it and its pods out of memory and of what is stored. Returns the array that it was an
 * element of; NULL = none. */
struct job *job_depart(struct model *m, struct job *j);
/* An attempt begins: what is known of the one before is forgotten. */
void job_attempt_begin(struct model *m, struct job *j, const char *token, const char *flavor,
		       int64_t at_us);
void job_drop_gone_pods(struct model *m, struct job *j);
/* job_submit.c: how a job comes in, and is described anew. */
/* A job as JOB_SUBMITTED describes it, whatever its number. */
int job_submit(struct model *m, const struct event *ev, struct job **out, struct gpuq_err *err);
/* deps.c: whom it waits for. Found by what that is while the job is in the model, has not
 * ended and has this name. */
struct deps *deps_new(uint32_t n); /* all of them waiting */
void deps_set(struct model *m, struct job *j, struct deps *all); /* takes it; NULL = none */
void deps_like(struct model *m, struct job *j, const struct job *from);
void deps_link(struct model *m, struct job *j);
void deps_unlink(struct model *m, struct job *j);
/* The eldest of its owner and name that waits for those before it; NULL = none. */
struct job *deps_namesake(const struct model *m, struct job *j);
/* Elements of an array that still wait end together. */
void deps_elements_ended(struct model *m, const struct job *master, enum gpuq_job_state state,
			 int64_t at_us);
/* It runs: whoever waits for its start may go on. */
void deps_started(struct model *m, struct job_key on, int64_t at_us);
/* job_preempt.c: what the scheduler takes from one job for another. */
void job_leave(struct model *m, struct job *j, enum gpuq_cause cause, enum gpuq_job_state outcome,
	       int64_t at_us, int64_t grace_us);
/* Of ev: who asks for it, by which rule and numbers. */
void job_note_eviction(struct model *m, struct job *j, enum gpuq_cause cause,
		       const struct event *ev);
void job_set_promise(struct model *m, struct job *j, struct promise *p); /* takes it; NULL = none */
struct promise *job_promise_new(uint32_t n_pods, uint32_t n_victims);
int64_t job_promise_milli(const struct promise *p); /* devices; NULL = none */
void job_promise_count(struct model *m, const struct job *j); /* of one that was loaded */
/* Could every pod of this stand where it says? */
int job_placed_check(const struct model *m, const struct job *j, const struct placed_pod *pods,
		     uint32_t n, struct gpuq_err *err);
struct pod *job_placed_add(struct model *m, struct job *j, const struct placed_pod *pp,
			   int64_t at_us);
/* All that are left of its pods run: it runs. */
void job_start_if_all_run(struct model *m, struct job *j, int64_t at_us);
/* A pod of an elastic job is lost and the rest goes on without it. False: it cannot. */
bool job_goes_on_without(struct model *m, struct job *j, struct pod *lost, int64_t at_us);
/* An element of an array as a job of its own; NULL when it is not waiting. */
struct job *job_array_split(struct model *m, struct job *master, int32_t index);
/* An element ended: the master's counters, and its own end. */
void job_array_child_ended(struct model *m, struct job *child, int64_t at_us);
bool job_ranges_remove(struct gpuq_range **ranges, size_t *n, int64_t index);

size_t pod_key(const struct pod *p, unsigned char *out); /* of TABLE_POD */
struct pod *pod_add(struct model *m, struct job *j, struct node *n, uint32_t n_devices);
void pod_free(struct model *m, struct pod *p);
void pod_remove(struct model *m, struct pod *p); /* with its record */

/* Made when new. */
struct node *node_get(struct model *m, const char *cluster, const char *name);
int node_set_fact(struct model *m, struct node *n, const struct node_fact *f);
void node_classify(struct model *m, struct node *n); /* pool and flavor by the site */
void node_free(struct model *m, struct node *n);
void node_drop_if_empty(struct model *m, struct node *n);

struct request *model_request_intern(struct model *m, const void *bytes, size_t n,
				     struct gpuq_err *err);
/* The same of a spec that outlives the model: its own words count (event.h, as_written). */
struct request *model_request_borrow(struct model *m, const struct gpuq_spec *spec,
				     const void *bytes, size_t n);
void model_request_put(struct model *m, struct request *r); /* one user less */

/* account.c: what counts for fair shares and for budgets that fade. A pod's devices
 * count from start to end; both may be told late. `counted_us` is the start that was told
 * before, 0 = none was. */
void account_pod_started(struct model *m, const struct pod *p, int64_t now_us);
void account_pod_ended(struct model *m, const struct pod *p, int64_t counted_us, int64_t end_us,
		       int64_t now_us);
/* So much of what its pods were charged from `from` to `to` counts no longer. */
void account_refund(struct model *m, const struct pod *p, int64_t from_us, int64_t to_us,
		    int64_t now_us);
/* Before and after the tree of queues is another one: what runs is charged to the budgets
 * above it as they stand until now and from now on. */
void account_site_changing(struct model *m, int64_t now_us);
void account_site_changed(struct model *m, int64_t now_us);
/* The i-th of the strings that a key joins; "" when there is none. */
void account_key_part(const unsigned char *bytes, size_t n, int i, char *out, size_t room);
int64_t budget_half_life(const struct queue *q); /* 0 = it does not fade */
int64_t account_rate_of(const struct model *m, const char *flavor); /* in thousandths */

/* accounting.c: the book of days. */
struct usage *accounting_get(struct model *m, const unsigned char *bytes, size_t n);
void accounting_charge_site_changed(struct model *m);
/* A pod came, left, or the node changed: what lies idle is counted from now on. */
void accounting_charge_strand(struct model *m, struct node *n);
void accounting_charge_pod_ended(struct model *m, struct pod *p, int64_t end_us);
/* The attempt is over and is lost, for this cause. */
void accounting_charge_attempt_lost(struct model *m, const struct job *j, enum gpuq_cause cause);
/* The promise ends, or is replaced. */
void accounting_charge_promise(struct model *m, const struct job *j);
void accounting_charge_apart(struct model *m, const struct job *j);
/* milli 0: it is over. */
void accounting_set_apart(struct model *m, struct job *j, const char *flavor, int64_t milli);
void accounting_charge_grant(struct model *m, const char *queue, int64_t gpu_us);

/* What was granted to a budget that fades, as it stands. */
int64_t account_granted_ms(const struct model *m, const struct queue *q, int64_t now_us);
/* What a user has used of a queue's budget that fades and that gives a part to each user. */
int64_t account_purse_ms(const struct model *m, const struct queue *q, const char *user,
			 int64_t now_us);
void account_grant(struct model *m, const struct queue *q, int64_t gpu_us, int64_t now_us);
struct account *account_get(struct model *m, const unsigned char *bytes, size_t n);
void account_expire_all(struct model *m, int64_t now_us); /* what has faded to nothing */
void account_free_all(struct model *m);

#endif
