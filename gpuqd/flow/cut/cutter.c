#include "gpuqd/flow/cut/cutter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/state/cuts/cut.h"
#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

#define TICK_US GPUQ_US_PER_S
#define TIMEOUT_US (900 * GPUQ_US_PER_S) /* of a node whose pool allows no layouts any more */
#define MESSAGE_MAX 320

/* A cut that is under way, and what was done for it in this run of the daemon. */
struct live {
	UT_hash_handle hh;
	const char *node; /* interned by the model */
	enum cut_state state; /* in which that was done */
	uint64_t seq; /* of the batch that must be durable first */
	bool asked, set; /* its label is being set, or is */
};

struct cutter {
	struct journal *j;
	struct loop *l;
	struct cluster *cluster;
	struct live *live;
	struct loop_timer *tick, *soon;
};

static const struct model *model_of(const struct cutter *k)
{
	return journal_model(k->j);
}

static bool may_act(const struct cutter *k)
{
	return k->cluster && !recovery_waits(model_of(k)) && !model_is_fenced(model_of(k)) &&
	       !journal_read_only(k->j);
}

static struct live *live_get(struct cutter *k, const struct node *n)
{
	struct live *l;

	HASH_FIND_STR(k->live, n->name, l);
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			abort();
		l->node = n->name;
		l->state = n->cut->state;
		HASH_ADD_KEYPTR(hh, k->live, l->node, strlen(l->node), l);
	}
	if (l->state != n->cut->state) {
		l->state = n->cut->state;
		l->asked = l->set = false;
	}
	return l;
}

static void forget_live(struct cutter *k)
{
	struct live *l, *next;

	HASH_ITER(hh, k->live, l, next) {
		HASH_DEL(k->live, l);
		free(l);
	}
}

/* Begin the next state of a cut. */
static void become(struct cutter *k, const struct node *n, enum cut_state state,
		   const char *message)
{
	struct event ev = { .type = EV_NODE_CUT, .job = n->cut->job };

	log_notice("node.cut", "node=%s layout=%s state=%s message=%s", n->name,
		   LOGS(n->cut->layout), cut_state_words[state], LOGS(message));
	ev.cut.name = n->name;
	ev.cut.layout = n->cut->layout;
	ev.cut.state = state;
	ev.cut.message = message;
	journal_apply(k->j, &ev, NULL);
}

/* ---- labels ---- */

/* Return the layout that the node is to have in the present state; "" = the label is to be absent. */
static const char *target(const struct node *n)
{
	return n->cut->state == CUT_SET ? n->cut->layout : n->cut->before;
}

static void on_labelled(void *arg, const char *node, const char *why)
{
	struct cutter *k = arg;
	const struct node *n = model_find_node(model_of(k), node);
	char message[MESSAGE_MAX];

	(void)FAILPOINT("cut.labelled");
	if (!n || !cut_is_under_way(n))
		return;
	if (!why) {
		live_get(k, n)->set = true;
		return;
	}
	snprintf(message, sizeof(message), "%s%s%.200s", n->cut->message,
		 *n->cut->message ? "; " : "", why);
	become(k, n, CUT_FAILED, message);
}

static void set_label(struct cutter *k, const struct node *n)
{
	const char *keys[] = { CUT_LABEL, CUT_LABEL_STATE };
	const char *to = target(n);
	const char *values[] = { *to ? to : NULL, *to ? CUT_PENDING : NULL };
	const struct node_labels labels = { n->name, keys, values, 2 };

	(void)FAILPOINT("cut.label");
	log_info("node.label", "node=%s layout=%s", n->name, LOGS(to));
	k->cluster->ops->node_label(k->cluster, &labels, on_labelled, k);
}

/* ---- one node ---- */

static int64_t timeout_us(const struct model *m, const struct node *n)
{
	site_each(site_pool, m->site->pools, p)
		if (strcmp(p->name, n->pool) == 0 && layouts_are_on(p->mig))
			return p->mig->timeout_us;
	return TIMEOUT_US;
}

/* Judge a node whose label is as it was to be. */
static void judge(struct cutter *k, const struct node *n)
{
	const char *state = gpuq_strmap_text(&n->fact.labels, CUT_LABEL_STATE);
	const bool failed = strcmp(state, CUT_FAILURE) == 0;

	if (n->cut->state == CUT_SET) {
		if (cut_is_there(n, n->cut->layout))
			become(k, n, CUT_DONE, "");
		else if (failed)
			become(k, n, CUT_BACK, "the MIG manager failed, see its log");
	} else if (!*n->cut->before || failed || strcmp(state, CUT_SUCCESS) == 0) {
		become(k, n, CUT_FAILED, n->cut->message);
	}
}

static void expire(struct cutter *k, const struct node *n, int64_t limit_us)
{
	const char *state = gpuq_strmap_text(&n->fact.labels, CUT_LABEL_STATE);
	char message[MESSAGE_MAX], time[32];

	gpuq_duration_print(limit_us, time, sizeof(time));
	if (n->cut->state == CUT_BACK)
		snprintf(message, sizeof(message),
			 "%.200s; the layout before was not restored within %s", n->cut->message,
			 time);
	else if (strcmp(state, CUT_SUCCESS) == 0)
		snprintf(message, sizeof(message),
			 "the MIG manager succeeded, and the node did not offer it within %s",
			 time);
	else
		snprintf(message, sizeof(message), "the MIG manager did not succeed within %s",
			 time);
	become(k, n, n->cut->state == CUT_BACK ? CUT_FAILED : CUT_BACK, message);
}

/* Do what the state of the cut asks for, once that is on disk. */
static void sync(struct cutter *k, const struct node *n)
{
	const char *has = gpuq_strmap_text(&n->fact.labels, CUT_LABEL), *to = target(n);
	const int64_t limit_us = timeout_us(model_of(k), n);
	struct live *l = live_get(k, n);
	char message[MESSAGE_MAX];

	if (l->seq > journal_durable(k->j) || n->gone)
		return;
	if (!k->cluster->ops->node_label) {
		become(k, n, CUT_FAILED, "this cluster has no labels of nodes");
	} else if (strcmp(has, to) == 0) {
		judge(k, n);
	} else if (strcmp(has, n->cut->layout) != 0 && strcmp(has, n->cut->before) != 0) {
		snprintf(message, sizeof(message), "its label was set to %.100s meanwhile",
			 *has ? has : "nothing");
		become(k, n, CUT_FAILED, message);
	} else if (!l->asked) {
		l->asked = true;
		set_label(k, n);
	}
	if (cut_is_under_way(n) && loop_now_us(k->l) - n->cut->since_us >= limit_us)
		expire(k, n, limit_us);
}

static void sync_all(void *arg)
{
	struct cutter *k = arg;
	struct live *l, *next;

	if (!may_act(k))
		return;
	HASH_ITER(hh, k->live, l, next) {
		const struct node *n = model_find_node(model_of(k), l->node);

		if (n && cut_is_under_way(n)) {
			sync(k, n);
			continue;
		}
		HASH_DEL(k->live, l);
		free(l);
	}
}

/* ---- wiring ---- */

static void on_tick(void *arg)
{
	struct cutter *k = arg;

	k->tick = loop_after(k->l, TICK_US, on_tick, k);
	sync_all(k);
}

static void on_soon(void *arg)
{
	struct cutter *k = arg;

	k->soon = NULL;
	sync_all(k);
}

static void look_soon(struct cutter *k)
{
	if (!k->soon && k->live)
		k->soon = loop_after(k->l, 0, on_soon, k);
}

/* Find the cuts that are under way, as after a start. */
static void find_all(struct cutter *k)
{
	node_each(model_of(k), n)
		if (cut_is_under_way(n))
			live_get(k, n);
}

static void on_event(void *arg, const struct event *ev)
{
	struct cutter *k = arg;
	const struct node *n;

	switch (ev->type) {
	case EV_NODE_CUT:
		n = model_find_node(model_of(k), ev->cut.name);
		if (!n || !cut_is_under_way(n))
			break;
		if (n->cut->state == CUT_SET)
			log_notice("node.cut", "node=%s layout=%s before=%s job=%" PRIu32, n->name,
				   LOGS(n->cut->layout), LOGS(n->cut->before), n->cut->job.id);
		live_get(k, n)->seq = journal_seq(k->j);
		(void)FAILPOINT("cut.decided");
		look_soon(k);
		break;
	case EV_NODE_SEEN:
	case EV_NODE_GONE:
	case EV_RECOVERY_LISTED:
	case EV_FENCED:
		look_soon(k);
		break;
	default:
		break;
	}
}

void cutter_set_cluster(struct cutter *k, struct cluster *c)
{
	k->cluster = c;
	forget_live(k);
	if (!c)
		return;
	find_all(k);
	look_soon(k);
}

int cutter_new(struct journal *j, struct cutter **out, struct gpuq_err *err)
{
	struct cutter *k = calloc(1, sizeof(*k));

	if (!k)
		return gpuq_no_memory(err);
	k->j = j;
	k->l = journal_loop(j);
	journal_subscribe(j, on_event, k);
	journal_on_durable(j, sync_all, k);
	k->tick = loop_after(k->l, TICK_US, on_tick, k);
	*out = k;
	return 0;
}

void cutter_free(struct cutter *k)
{
	if (!k)
		return;
	forget_live(k);
	loop_cancel(k->tick);
	loop_cancel(k->soon);
	free(k);
}
