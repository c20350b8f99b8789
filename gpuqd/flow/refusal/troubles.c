#include "gpuqd/flow/refusal/troubles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/dispatch.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/refusal/refusals.h"
#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

#define TICK_US GPUQ_US_PER_S
#define CANNOT_START_US (120 * GPUQ_US_PER_S) /* ImagePullBackOff and its like */

#define PLUGIN_WINDOW_US (600 * GPUQ_US_PER_S)

/* How long pods that end may make room on a node, before a job is placed anew. */
#define ROOM_WAIT_US (2 * GPUQ_US_PER_S)

/* A node whose plugin gave a pod no device; or a job and a node that had no room for it. */
struct unserved {
	UT_hash_handle hh;
	int64_t at_us;
	char what[];
};

struct troubles {
	struct unserved *unserved;
	struct journal *j;
	struct dispatch *dispatch;
	struct refusals *refusals;
	struct loop_timer *tick;
};

static const struct pod *pod_of(const struct job *j)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && p->index == j->life->trouble->pod &&
		    p->state < GPUQ_POD_RUNNING)
			return p;
	return NULL;
}

/* The places are free again when the pods are gone: a kubelet has allotted them their devices. */
static void ask_to_leave(struct troubles *t, const struct job *j, enum gpuq_cause cause,
			 const char *rule)
{
	struct event evict = { .type = EV_JOB_EVICT_ASKED, .job = j->key };
	char why[400];

	/* The event may outlive the trouble that it is about. */
	snprintf(why, sizeof(why), "%s", j->life->trouble->words);
	evict.evict.cause = cause;
	evict.evict.rule = rule;
	evict.evict.by = "";
	evict.evict.why = why;
	evict.evict.grace_us = 0;
	journal_apply(t->j, &evict, NULL);
}

/* Only kubelets miss it: no probe of the apiserver tells when it is there. */
static void give_back(struct troubles *t, const struct job *j)
{
	const struct trouble *why = j->life->trouble;

	log_warn("job.start_refused", "job=%" PRIu32 " object=%s message=%s", j->key.id,
		 LOGS(why->object), LOGS(why->words));
	refusals_missed(t->refusals, j->key, why->object, why->words);
	ask_to_leave(t, j, GPUQ_CAUSE_REQUEUE, RULE_REFUSED);
}

static void fail(struct troubles *t, const struct job *j)
{
	log_notice("job.cannot_start", "job=%" PRIu32 " object=%s message=%s", j->key.id,
		   LOGS(j->life->trouble->object), LOGS(j->life->trouble->words));
	ask_to_leave(t, j, GPUQ_CAUSE_LIMIT, RULE_CANNOT_START);
}

/* True if it is noted, and was lately. */
static bool is_noted(const struct troubles *t, const char *what, int64_t now)
{
	const struct unserved *u;

	HASH_FIND_STR(t->unserved, what, u);
	return u && now - u->at_us < PLUGIN_WINDOW_US;
}

static void note(struct troubles *t, const char *what, int64_t now)
{
	struct unserved *u;

	HASH_FIND_STR(t->unserved, what, u);
	if (!u) {
		u = calloc(1, sizeof(*u) + strlen(what) + 1);
		if (!u)
			abort();
		memcpy(u->what, what, strlen(what) + 1);
		HASH_ADD_STR(t->unserved, what, u);
	}
	u->at_us = now;
}

static void forget_old(struct troubles *t, int64_t now)
{
	struct unserved *u, *next;

	HASH_ITER(hh, t->unserved, u, next) {
		if (now - u->at_us < PLUGIN_WINDOW_US)
			continue;
		HASH_DEL(t->unserved, u);
		free(u);
	}
}

/* The job starts anew, on the same node if need be: a plugin that confused two pods does so once. */
static void replace(struct troubles *t, const struct job *j, const struct pod *p, int64_t now)
{
	struct event ev = { .type = EV_NODE_BACKOFF };
	const char *node = p->node->name;

	ev.backoff.name = node;
	ev.backoff.until_us = now + PLUGIN_WINDOW_US;
	ev.backoff.suspect = true;
	log_warn("job.plugin_timeout", "job=%" PRIu32 " node=%s message=%s", j->key.id, LOGS(node),
		 LOGS(j->life->trouble->words));
	if (is_noted(t, node, now))
		journal_apply(t->j, &ev, NULL);
	note(t, node, now);
	ask_to_leave(t, j, GPUQ_CAUSE_INFRA, RULE_PLUGIN);
}

/* True if none of its pods runs, or is another's. */
static bool may_leave(const struct troubles *t, const struct job *j)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && p->state >= GPUQ_POD_RUNNING)
			return false;
	return !model_is_adopted(journal_model(t->j), j);
}

/* The places are given up, and the scheduler, which knows by now which devices the plugin gave to others, has the job
 * start where there is room. Where it returns to the same node, it waits there. */
static void withdraw(struct troubles *t, const struct job *j, const struct pod *p, int64_t now)
{
	char what[400];

	snprintf(what, sizeof(what), "%" PRIu32 "_%" PRId32 "/%.300s", j->key.id, j->key.index,
		 p->node->name);
	if (!may_leave(t, j) || is_noted(t, what, now))
		return;
	note(t, what, now);
	log_notice("job.withdrawn", "job=%" PRIu32 " index=%" PRId32 " node=%s why=%s", j->key.id,
		   j->key.index, LOGS(p->node->name), LOGS(j->life->trouble->words));
	ask_to_leave(t, j, GPUQ_CAUSE_REQUEUE, RULE_ROOM);
}

static void look_at(struct troubles *t, const struct job *j, int64_t now)
{
	const struct trouble *why = j->life->trouble;
	const struct pod *p = why && j->life->leave_us == 0 ? pod_of(j) : NULL;
	const int64_t timeout = dispatch_start_timeout(t->dispatch, j);

	if (!p || why->whose == TROUBLE_TURN)
		return;
	if (why->whose == TROUBLE_ROOM) {
		if (now - why->since_us >= ROOM_WAIT_US)
			withdraw(t, j, p, now);
	} else if (why->whose == TROUBLE_PLUGIN) {
		if (now - why->since_us >= dispatch_plugin_timeout(t->dispatch))
			replace(t, j, p, now);
	} else if (why->whose == TROUBLE_OPERATORS) {
		if (timeout && now - j->life->placed_us >= timeout)
			give_back(t, j);
	} else if (now - p->placed_us > CANNOT_START_US) {
		fail(t, j);
	}
}

static void on_tick(void *arg)
{
	struct troubles *t = arg;
	const struct model *m = journal_model(t->j);
	const int64_t now = loop_now_us(journal_loop(t->j));
	const struct job *j, *next;

	t->tick = loop_after(journal_loop(t->j), TICK_US, on_tick, t);
	if (recovery_waits(m))
		return; /* the running pods are not known */
	forget_old(t, now);
	DL_FOREACH_SAFE2(m->jobs_by_state[GPUQ_JOB_STARTING], j, next, state_next)
		look_at(t, j, now);
}

int troubles_new(struct journal *j, struct dispatch *d, struct refusals *refusals,
		 struct troubles **out, struct gpuq_err *err)
{
	struct troubles *t = calloc(1, sizeof(*t));

	if (!t)
		return gpuq_no_memory(err);
	t->j = j;
	t->dispatch = d;
	t->refusals = refusals;
	t->tick = loop_after(journal_loop(j), TICK_US, on_tick, t);
	*out = t;
	return 0;
}

void troubles_free(struct troubles *t)
{
	struct unserved *u, *next;

	if (!t)
		return;
	loop_cancel(t->tick);
	HASH_ITER(hh, t->unserved, u, next) {
		HASH_DEL(t->unserved, u);
		free(u);
	}
	free(t);
}
