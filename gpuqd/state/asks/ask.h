/* ask.h - requests for nodes that do not exist yet
 *
 * Owns     struct ask and struct ask_pool; in the model, changed by ASK_* and POOL_CLOSED, and as nodes
 *          come and go.
 * Touches  memory only.
 * Used by  state/ (the model), snapshot/ (nodes that may come), flow/provision (makes them).
 *
 * An ask is the decision of a cycle to get n nodes of a pool, and lives until its nodes have served.
 * Each attempt makes one ProvisioningRequest, whose name follows from the job that owned the ask
 * when it was decided, the ask and the attempt; without a class, a pod for each node that has not come,
 * which an autoscaler sees: a placeholder. A decision is stored before the deed:
 *
 *   NEW ─ created ─> SENT ─> ACCEPTED ─> PROVISIONED ─ all nodes there ─> SERVED ─ no pod left ─> ENDED
 *     └──────────────── failed ───────────────┴─> PAUSED ─ objects gone, pause over ─> NEW, next attempt
 *   and ENDED from anywhere, when no job needs it; the ask is forgotten once its objects are gone.
 *
 * An ask of placeholders is served as soon as all its nodes are there, which are then ordinary ones.
 *
 * A node that comes into the pool belongs to its oldest ask that lacks one. Until all nodes of an
 * ask have come as its machine is, and the cloud has said that they are provisioned, nothing starts on any of
 * them; on those of an attempt that failed nothing starts at all: an ask that ended is kept until they have gone,
 * or were not for the time of a booking.
 */
#ifndef GPUQD_STATE_ASKS_ASK_H
#define GPUQD_STATE_ASKS_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

#include "libgpuq/err.h"
#include "libgpuq/schema.h"
#include "libgpuq/spec.h"
#include "gpuqd/state/event.h"

#define ASK_STATES(X)                                                                              \
	X(NEW, "new", "its request is about to be made")                                           \
	X(SENT, "sent", "the cluster has its request")                                             \
	X(ACCEPTED, "accepted", "the cloud will see to it")                                        \
	X(PROVISIONED, "provisioned", "the cloud gives the nodes, which may still boot")           \
	X(SERVED, "served", "all its nodes are there")                                             \
	X(PAUSED, "paused", "it failed, and is tried again after a pause")                         \
	X(ENDED, "ended", "no job needs it any more")

enum ask_state {
#define X(sym, word, doc) ASK_STATE_##sym,
	ASK_STATES(X)
#undef X
		N_ASK_STATES
};

struct model;

struct ask_node {
	const char *name; /* interned */
	bool stale; /* of an attempt that failed: nothing starts there */
};

struct ask {
	UT_hash_handle hh; /* by number, oldest first */
	uint32_t number; /* from 1 */
	const char *pool, *flavor, *class_, *namespace_; /* interned; namespace_ "" = the default */
	struct job_key first; /* that owned it when it was decided: its names are made of this */
	struct job_key owner; /* that is first on its nodes now */
	uint32_t n_nodes, attempt; /* attempt: from 1 */
	enum ask_state state;
	bool used; /* pods were placed on its nodes */
	bool cleared; /* PAUSED: the objects of the attempt are gone */
	uint32_t n_failures;
	int64_t made_us; /* when it was decided */
	int64_t since_us; /* since when this attempt is made; PAUSED: since when it is not */
	int64_t provisioned_us; /* when the cloud gave the nodes; 0 = not yet */
	int64_t retry_us; /* PAUSED: when it is tried again */
	int64_t run_us; /* that a node is needed at most; GPUQ_UNLIMITED = not known */
	int64_t given_us; /* that nodes of the attempt run before they are taken away; 0 = not known */
	char token[33]; /* of the attempt */
	const char *condition, *reason; /* interned; the last condition that was heard, "" none */
	char *message; /* the cloud's words; "" none */
	struct gpuq_strmap labels; /* that nodes of the request have; on the heap */
	struct ask_node *nodes; /* that have come */
	uint32_t n_came; /* of nodes, stale ones too */
	uint32_t n_seen; /* nodes of the attempt that have ever come */
};

#define ASK_WAITS_MAX 50

/* Past requests of a pool that grows. */
struct ask_pool {
	UT_hash_handle hh;
	const char *name; /* interned */
	int64_t closed_until_us; /* nothing is asked of it before */
	int64_t failed_us; /* when a request failed last */
	char *message; /* why */
	/* How long its last requests took from the decision until all their nodes were there, newest last. */
	uint32_t waits_s[ASK_WAITS_MAX], n_waits;
	int64_t refused_us[GPUQ_REFUSALS_MAX]; /* when its last attempts failed, newest last */
	uint32_t n_refused;
};

extern const char *const ask_state_words[N_ASK_STATES];

/* True if placeholders stand for its nodes. */
static inline bool ask_stands(const struct ask *a)
{
	return !*a->class_;
}

struct site_pool;
/* True if nodes of the pool, which grows, can be asked for in the cluster. */
bool ask_pool_is_open(const struct model *m, const struct site_pool *p);
struct ask *ask_find(const struct model *m, uint32_t number); /* NULL = none */
struct ask_pool *ask_pool_find(const struct model *m,
			       const char *name); /* NULL = nothing is known */
/* Return the wait below which this part of its last requests stayed, in seconds; -1 = there were none. */
int64_t ask_pool_wait_s(const struct ask_pool *p, unsigned percent);
/* Return when n attempts in pools of the flavor had failed since then; GPUQ_UNLIMITED = they have not. */
int64_t ask_refused_us(const struct model *m, const char *flavor, int64_t since_us, int64_t n);
/* Return the ask of a job: the one it owns, else NULL. */
const struct ask *ask_of_job(const struct model *m, struct job_key job);
/* Write the name of the request of its present attempt; at most ASK_NAME_ROOM - 1 bytes. */
#define ASK_NAME_ROOM 80
void ask_name(const struct model *m, const struct ask *a, char out[ASK_NAME_ROOM]);

int ask_apply_made(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_owned(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_heard(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_failed(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_lost(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_tried(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_ended(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_cleared(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_known(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_closed(struct model *m, const struct event *ev, struct gpuq_err *err);

void ask_free_all(struct model *m);
#endif
