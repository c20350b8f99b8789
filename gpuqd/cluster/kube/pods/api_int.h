/* api_int.h - what the files of api.h share; private to them
 *
 * api.c        the set of asks, the pace, what was made for a job
 * api_post     one object, created exactly once
 * api_create   a pod and what it needs beside it
 * api_lock     the lock of a node
 * api_turn     pods of nodes that share devices, one after another
 * api_remove   deleting, forgetting
 * refused      what was refused for the cluster's sake, and whether it still would be
 * api_bind     nodes of claims and of pods created without one; claims of devices
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_API_INT_H
#define GPUQD_CLUSTER_KUBE_PODS_API_INT_H

#include <jansson.h>
#include <stdbool.h>
#define uthash_fatal(msg) abort() /* as loop_after(): the caller waits for an end */
#include <uthash.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/pods/api.h"
#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/http/status.h"

#define ASK_FIRST_US INT64_C(200000)
#define ASK_MAX_US INT64_C(30000000)
#define FORBIDDEN_TRIES 8 /* about a minute */

struct create;
struct removal;
struct beside;
struct made;
struct refused;
struct rest;
struct turn;
struct lock;
struct binding;
struct rooms;

struct made_key {
	int64_t array_index;
	uint64_t job;
};

struct asks {
	struct loop *loop;
	struct http *http;
	const char *namespace_, *cluster_id;
	const struct cluster_sink *sink;
	int64_t gap_us; /* between two creates; 0 = none */
	int64_t next_us; /* monotonic: when the next create may go */
	int64_t pause_us; /* monotonic: the server wants no writes before */
	struct create *creates; /* by "NAMESPACE/NAME" */
	struct removal *removals; /* by path */
	struct beside *besides; /* by path: ConfigMaps and Services */
	struct made *made; /* by job and element */
	struct rest *rests; /* by job and element: being removed */
	struct binding *bindings; /* by path */
	struct loop_timer *bind_again; /* binding is not allowed; NULL = it is */
	struct loop_timer *claim_again; /* nor is writing to claims of devices */
	struct turn *turns; /* pods that their node's plugin has not served yet */
	struct rooms *rooms; /* what pods hold of devices that a plugin chooses */
	struct lock *locks; /* of nodes */
	int64_t plugin_us, lock_us, turn_us; /* see asks_plugin_times() */
	bool listed; /* every pod has been shown that was there when this process began */
	struct refused *refused; /* by the refusal's key */
};

/* How long a write has to wait for the server's sake; 0 = none. */
int64_t asks_pause_us(const struct asks *a);
void asks_paused(struct asks *a, const struct http_answer *answer);

/* How long this create has to wait for our own rate's sake; takes its turn. */
int64_t asks_turn_us(struct asks *a);

/* ---- api_post.c ---- */

struct post;

struct post_call {
	const char *namespace_, *plural, *name;
	const char *body; /* JSON; must outlive the post */
	bool paced; /* counts against creates_per_s */
	bool metadata; /* all that `ours` and `done` examine is the object's metadata */
	const char *pod_policy; /* the Pod Security Standard that the queue demands; "" baseline */
	/* Is the object under this name the one that was meant? */
	bool (*ours)(void *arg, const json_t *object);
	/* It goes on trying: ASK_RETRY or ASK_UNKNOWN, each at most once. */
	void (*trying)(void *arg, enum ask_outcome o, const char *message);
	/* object is NULL unless ASK_OK, may be NULL after post_made(), and lives until the
	 * callback returns. */
	void (*done)(void *arg, enum ask_outcome o, const json_t *object, const char *message);
	/* In place of done: it was refused, and not for its own sake. */
	void (*refused)(void *arg, const struct refusal *r);
	void *arg;
};

/* Note objects of a job beside its pods that this process creates. earlier: there were attempts before this one; if
 * the job is new here they were another process's, which may have created more, as for an elastic job. */
void made_note(struct asks *a, uint32_t job, int64_t array_index, bool script, bool service,
	       bool earlier);

/* One of the things that are to go with rest's job has gone, or will not. */
void rest_done(struct rest *rest, bool gone);

#endif
