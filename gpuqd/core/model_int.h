/* model_int.h - what the files of the model share; no other room includes it */
#ifndef GPUQD_CORE_MODEL_INT_H
#define GPUQD_CORE_MODEL_INT_H

#include <stdlib.h>

#include "gpuqd/core/hash.h"
#include "gpuqd/core/model.h"

/* One application per family; each leaves the model alone when it fails. */
int model_apply_job(struct model *m, const struct event *ev, struct gpuq_err *err);
int model_apply_pod(struct model *m, const struct event *ev, struct gpuq_err *err);
int model_apply_node(struct model *m, const struct event *ev, struct gpuq_err *err);
int model_apply_site(struct model *m, const struct event *ev, struct gpuq_err *err);
int model_apply_charges_expired(struct model *m, const struct event *ev);
int model_apply_notices(struct model *m, const struct event *ev, struct gpuq_err *err);
int model_apply_audit(struct model *m, const struct event *ev, struct gpuq_err *err);

/* Odd factors: jobs that come one after the other, and the elements of an array, never take
 * one another's places. */
static inline uint32_t job_key_hash(struct job_key key)
{
	return key.id * UINT32_C(0x9e3779b1) + (uint32_t)(key.index + 1) * UINT32_C(0x85ebca6b);
}

void job_dirty(struct model *m, struct job *j);
/* A node failed it: others first, for a while. node is interned. */
void job_avoid(struct model *m, struct job *j, const char *node, int64_t until_us);
void job_set_state(struct model *m, struct job *j, enum gpuq_job_state s);
void job_set_message(struct job *j, const char *text); /* "" or NULL: none */
/* model_parts.c: what a job shares with others, or has only once there is something to say. */
extern const struct life life_none;
struct life *job_life(struct job *j); /* its own, to be written */
void job_set_life(struct job *j, const struct life *l); /* of one that was loaded; takes it */
void job_set_name(struct model *m, struct job *j, const char *name);
void job_set_labels(struct model *m, struct job *j, const char *labels); /* "" or NULL: none */
void job_set_notes(struct model *m, struct job *j, const char *notes); /* the same */
/* Equal ones are one: compared byte by byte, so that w was zeroed, or is a copy of another. */
void job_set_wish(struct model *m, struct job *j, const struct wish *w);
void wish_add_exit(struct wish *w, uint8_t code);
bool wish_has_exit(const struct wish *w, int code);
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
/* model_index.c: the lists that a job is in, once it is in the model. */
void index_add(struct model *m, struct job *j);
void index_remove(struct model *m, struct job *j);
void index_state(struct model *m, struct job *j, enum gpuq_job_state s); /* sets it */
void index_queue(struct job *j, struct queue *q); /* sets it */
/* All pods of the attempt run for the first time. */
void job_note_started(struct model *m, struct job *j, int64_t at_us);
/* Ended, and none of its pods is left: history, and out of memory. True if so. */
bool job_archive_if_done(struct model *m, struct job *j);
/* model_submit.c: how a job comes in, and is described anew. */
int model_apply_submitted(struct model *m, const struct event *ev, struct gpuq_err *err);
int model_apply_updated(struct model *m, struct job *j, const struct event *ev,
			struct gpuq_err *err);
/* model_load.c: what devices did. */
void model_apply_measured(struct model *m, const struct event *ev);
void model_expire_keys(struct model *m, int64_t at_us);
/* model_deps.c: whom it waits for. Found by what that is while the job is in the model, has not
 * ended and has this name. */
struct deps *deps_new(uint32_t n); /* all of them waiting */
void job_set_deps(struct model *m, struct job *j, struct deps *all); /* takes it; NULL = none */
void job_deps_like(struct model *m, struct job *j, const struct job *from);
void deps_link(struct model *m, struct job *j);
void deps_unlink(struct model *m, struct job *j);
/* The eldest of its owner and name that waits for those before it; NULL = none. */
struct job *deps_namesake(const struct model *m, struct job *j);
/* Elements of an array that still wait end together. */
void deps_elements_ended(struct model *m, const struct job *master, enum gpuq_job_state state,
			 int64_t at_us);
/* It runs: whoever waits for its start may go on. */
void model_dep_started(struct model *m, struct job_key on, int64_t at_us);
/* model_claim.c: what the scheduler takes from one job for another. */
int model_apply_claim(struct model *m, struct job *j, const struct event *ev, struct gpuq_err *err);
void job_leave(struct model *m, struct job *j, enum gpuq_cause cause, enum gpuq_job_state outcome,
	       int64_t at_us, int64_t grace_us);
/* Of ev: who asks for it, by which rule and numbers. */
void note_eviction(struct model *m, struct job *j, enum gpuq_cause cause, const struct event *ev);
void job_set_promise(struct model *m, struct job *j, struct promise *p); /* takes it; NULL = none */
struct promise *promise_new(uint32_t n_pods, uint32_t n_victims);
int64_t promise_milli(const struct promise *p); /* devices; NULL = none */
void promise_count(struct model *m, const struct job *j); /* of one that was loaded */
/* Could every pod of this stand where it says? */
int placed_check(const struct model *m, const struct job *j, const struct placed_pod *pods,
		 uint32_t n, struct gpuq_err *err);
struct pod *placed_add(struct model *m, struct job *j, const struct placed_pod *pp, int64_t at_us);
/* All that are left of its pods run: it runs. */
void job_start_if_all_run(struct model *m, struct job *j, int64_t at_us);
/* A pod of an elastic job is lost and the rest goes on without it. False: it cannot. */
bool job_goes_on_without(struct model *m, struct job *j, struct pod *lost, int64_t at_us);
/* An element of an array as a job of its own; NULL when it is not waiting. */
struct job *array_split(struct model *m, struct job *master, int32_t index);
/* An element ended: the master's counters, and its own end. */
void array_child_ended(struct model *m, struct job *child, int64_t at_us);
bool ranges_remove(struct gpuq_range **ranges, size_t *n, int64_t index);

struct pod *pod_add(struct model *m, struct job *j, struct node *n, uint32_t n_devices);
void pod_free(struct model *m, struct pod *p);
void pod_remove(struct model *m, struct pod *p); /* with its record */

struct node *node_get(struct model *m, const char *name); /* made when new */
int node_set_fact(struct model *m, struct node *n, const struct node_fact *f);
void node_classify(struct model *m, struct node *n); /* pool and flavor by the site */
void node_free(struct model *m, struct node *n);
void node_drop_if_empty(struct model *m, struct node *n);

/* Takes s, which model_site_allowed() let pass. */
void model_set_site(struct model *m, struct site *s);
struct request *request_intern(struct model *m, const void *bytes, size_t n, struct gpuq_err *err);
void request_put(struct model *m, struct request *r); /* one user less */

/* model_usage.c: what counts for fair shares and for budgets that fade. A pod's devices
 * count from start to end; both may be told late. `counted_us` is the start that was told
 * before, 0 = none was. */
void usage_pod_started(struct model *m, const struct pod *p, int64_t now_us);
void usage_pod_ended(struct model *m, const struct pod *p, int64_t counted_us, int64_t end_us,
		     int64_t now_us);
/* So much of what its pods were charged from `from` to `to` counts no longer. */
void usage_refund(struct model *m, const struct pod *p, int64_t from_us, int64_t to_us,
		  int64_t now_us);
/* Before and after the tree of queues is another one: what runs is charged to the budgets
 * above it as they stand until now and from now on. */
void usage_site_changing(struct model *m, int64_t now_us);
void usage_site_changed(struct model *m, int64_t now_us);
/* The i-th of the strings that a key joins; "" when there is none. */
void key_part(const unsigned char *bytes, size_t n, int i, char *out, size_t room);
int64_t budget_half_life(const struct queue *q); /* 0 = it does not fade */
int64_t rate_of(const struct model *m, const char *flavor); /* in thousandths */

/* model_ledger.c: the book of days. */
struct usage *usage_get(struct model *m, const unsigned char *bytes, size_t n);
void charge_site_changed(struct model *m);
/* A pod came, left, or the node changed: what lies idle is counted from now on. */
void charge_strand(struct model *m, struct node *n);
void charge_pod_ended(struct model *m, struct pod *p, int64_t end_us);
/* The attempt is over and is lost, for this cause. */
void charge_attempt_lost(struct model *m, const struct job *j, enum gpuq_cause cause);
/* The promise ends, or is replaced. */
void charge_promise(struct model *m, const struct job *j);
void charge_apart(struct model *m, const struct job *j);
/* milli 0: it is over. */
void job_set_apart(struct model *m, struct job *j, const char *flavor, int64_t milli);
void charge_grant(struct model *m, const char *queue, int64_t gpu_us);

/* What was granted to a budget that fades, as it stands. */
int64_t account_granted_ms(const struct model *m, const struct queue *q, int64_t now_us);
/* What a user has used of a queue's budget that fades and that gives a part to each user. */
int64_t account_purse_ms(const struct model *m, const struct queue *q, const char *user,
			 int64_t now_us);
void account_grant(struct model *m, const struct queue *q, int64_t gpu_us, int64_t now_us);
struct account *account_get(struct model *m, const unsigned char *bytes, size_t n);
void accounts_collect(struct model *m, struct batch *out); /* those that changed */
void accounts_expire(struct model *m, int64_t now_us); /* what has faded to nothing */
void accounts_free(struct model *m);

void record_put(struct batch *out, enum table t, const unsigned char *key, size_t n,
		struct gpuq_buf *b); /* empties b */
struct rec;
int load_usage(struct usage *u, struct rec *r, struct gpuq_err *err);
int load_account(struct model *m, const unsigned char *key, size_t n, struct rec *r,
		 struct gpuq_err *err);
void record_job(struct model *m, const struct job *j, struct batch *out);
void record_pod(struct model *m, const struct pod *p, struct batch *out);
void record_node(struct model *m, const struct node *n, struct batch *out);
void record_request(struct model *m, const struct request *r, struct batch *out);
void record_key(struct model *m, const struct idem_key *k, struct batch *out);
void record_account(const struct account *a, struct batch *out);
void record_usage(struct model *m, const struct usage *u, struct batch *out);
/* The part of a day of what a pod was charged. */
void record_charge(struct model *m, const unsigned char *key, size_t key_len, const char *queue,
		   const char *user, const char *flavor, int64_t price_micro, int64_t day,
		   const struct charged *c, uint32_t n);
void record_meta(struct model *m, struct batch *out);
void record_site(struct model *m, struct batch *out);
void record_beside(const struct job *j, struct batch *out);
void record_history(struct model *m, const struct job *j, struct batch *out);

#endif
