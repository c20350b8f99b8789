/* ask.h - requests for nodes that do not exist yet
 *
 * Owns     struct ask and struct ask_pool; in the model, changed by ASK_* and POOL_CLOSED, and as nodes
 *          come and go.
 * Touches  memory only.
 * Used by  state/ and record.c (the model), snapshot/ (nodes that may come), flow/provision (makes them).
 *
 * An ask is the decision of a cycle to get n nodes of a pool, and lives until its nodes have served.
 * Each attempt makes one ProvisioningRequest, whose name follows from the job that owned the ask
 * when it was decided, the ask and the attempt. A decision is stored before the deed:
 *
 *   NEW ─ created ─> SENT ─> ACCEPTED ─> PROVISIONED ─ all nodes there ─> SERVED ─ no pod left ─> ENDED
 *     └──────────────── failed ───────────────┴─> PAUSED ─ objects gone, pause over ─> NEW, next attempt
 *   and ENDED from anywhere, when no job needs it; the ask is forgotten once its objects are gone.
 *
 * A node that comes into the pool belongs to its oldest ask that lacks one. Until all nodes of an
 * ask have come, and the cloud has said that they are provisioned, nothing starts on any of them.
 */
#ifndef GPUQD_STATE_RECORD_ASK_H
#define GPUQD_STATE_RECORD_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

#include "libgpuq/err.h"
#include "libgpuq/schema.h"
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
struct node;
struct rec;

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
	char token[33]; /* of the attempt */
	const char *condition, *reason; /* interned; the last condition that was heard, "" none */
	char *message; /* the cloud's words; "" none */
	struct gpuq_strmap labels; /* that nodes of the request have; on the heap */
	struct ask_node *nodes; /* that have come */
	uint32_t n_came; /* of nodes, stale ones too */
};

/* The failures of a pool that grows. */
struct ask_pool {
	UT_hash_handle hh;
	const char *name; /* interned */
	int64_t closed_until_us; /* nothing is asked of it before */
	int64_t failed_us; /* when a request failed last */
	char *message; /* why */
};

extern const char *const ask_state_words[N_ASK_STATES];

struct ask *ask_find(const struct model *m, uint32_t number); /* NULL = none */
struct ask_pool *ask_pool_find(const struct model *m,
			       const char *name); /* NULL = nothing is known */
/* Return the ask that the node came for, stale or not; NULL = none. */
const struct ask *ask_of_node(const struct model *m, const char *node, bool *stale);
/* Return the ask of a job: the one it owns, else NULL. */
const struct ask *ask_of_job(const struct model *m, struct job_key job);
/* Return how many of its nodes have not come. */
uint32_t ask_lacks(const struct ask *a);
/* True if it is not ready yet, has no devices yet, or is still tainted by Kubernetes for that. */
bool ask_node_boots(const struct node *n);
/* Return how many of those that have come boot, before it is served. */
uint32_t ask_boots(const struct model *m, const struct ask *a);
/* True if jobs may start on its nodes. booking_us: for how long they are kept unused. */
bool ask_is_open(const struct model *m, const struct ask *a, int64_t booking_us, int64_t now_us);
/* True if pods are, or may still be, on its nodes. */
bool ask_has_pods(const struct model *m, const struct ask *a);

/* Write the name of the request of its present attempt; at most ASK_NAME_ROOM - 1 bytes. */
#define ASK_NAME_ROOM 80
void ask_name(const struct model *m, const struct ask *a, char out[ASK_NAME_ROOM]);

int ask_apply_made(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_owned(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_heard(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_failed(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_tried(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_ended(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_cleared(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_known(struct model *m, const struct event *ev, struct gpuq_err *err);
int ask_apply_closed(struct model *m, const struct event *ev, struct gpuq_err *err);

/* A node was reported: it may be one that was asked for. */
void ask_node_seen(struct model *m, const struct node *n);
void ask_node_gone(struct model *m, const char *name);
/* A pod was placed there. */
void ask_node_used(struct model *m, const char *name);

void ask_free_all(struct model *m);
int ask_load(struct model *m, const unsigned char *key, size_t n, struct rec *r,
	     struct gpuq_err *err);

#endif
