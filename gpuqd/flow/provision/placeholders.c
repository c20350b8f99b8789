#include "gpuqd/flow/provision/placeholders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/provision/outcome.h"
#include "gpuqd/flow/provision/verdict.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/model.h"

#define NAME_ROOM (ASK_NAME_ROOM + 12)

/* The steps done for an attempt in this run of the daemon. */
struct live {
	UT_hash_handle hh;
	uint32_t number, attempt;
	bool begun, dropped; /* dropped: all of it is being removed */
	uint32_t n_held, n_most; /* the first so many are to be there; were at most */
	uint32_t n_left; /* dropped: so many may be there still */
};

/* One that the cluster has. */
struct seen {
	UT_hash_handle hh; /* by name */
	char *name, *namespace_, *token;
};

struct placeholders {
	struct journal *j;
	struct cluster *cluster;
	struct live *live;
	struct seen *seen;
};

static const struct model *model_of(const struct placeholders *p)
{
	return journal_model(p->j);
}

static struct live *live_of(struct placeholders *p, const struct ask *a)
{
	struct live *l;

	HASH_FIND(hh, p->live, &a->number, sizeof(a->number), l);
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			abort(); /* as the asker */
		l->number = a->number;
		HASH_ADD(hh, p->live, number, sizeof(l->number), l);
	}
	if (l->attempt != a->attempt) {
		l->attempt = a->attempt;
		l->begun = l->dropped = false;
		l->n_held = l->n_left = l->n_most = 0;
	}
	return l;
}

static void forget_seen(struct placeholders *p, struct seen *s)
{
	HASH_DEL(p->seen, s);
	free(s->name);
	free(s->namespace_);
	free(s->token);
	free(s);
}

static void forget(struct placeholders *p)
{
	struct live *l, *next;
	struct seen *s, *snext;

	HASH_ITER(hh, p->live, l, next) {
		HASH_DEL(p->live, l);
		free(l);
	}
	HASH_ITER(hh, p->seen, s, snext)
		forget_seen(p, s);
}

/* ---- names ---- */

static void name_of(const struct model *m, const struct ask *a, uint32_t i, char out[NAME_ROOM])
{
	size_t n;

	ask_name(m, a, out);
	n = strlen(out);
	snprintf(out + n, NAME_ROOM - n, "-%" PRIu32, i);
}

/* Return the ask whose present attempt has a placeholder of that name; token NULL = any. */
static const struct ask *find(const struct model *m, const char *name, const char *token,
			      uint32_t *i)
{
	const char *at = strstr(name, "-ask"), *last = strrchr(name, '-');
	const struct ask *a = at ? ask_find(m, (uint32_t)strtoul(at + 4, NULL, 10)) : NULL;
	char own[NAME_ROOM];

	if (!a || !ask_stands(a))
		return NULL;
	*i = (uint32_t)strtoul(last + 1, NULL, 10);
	name_of(m, a, *i, own);
	return strcmp(own, name) == 0 && (!token || strcmp(token, a->token) == 0) ? a : NULL;
}

/* ---- what there is to be ---- */

static void make(struct placeholders *p, const struct ask *a, uint32_t i)
{
	const struct model *m = model_of(p);
	const struct site_pool *pool = site_pool_growing(m->site, a->pool);
	char name[NAME_ROOM];
	struct capacity_order o = { .name = name,
				    .token = a->token,
				    .namespace_ = a->namespace_,
				    .cluster_id = m->cluster_id,
				    .attempt = a->attempt,
				    .resource = GPUQ_RESOURCE_GPU };

	if (!pool)
		return;
	name_of(m, a, i, name);
	o.machine = pool->provisioning->machine;
	o.selector = &pool->selector;
	site_each(site_flavor, m->site->flavors, f)
		if (strcmp(f->name, pool->flavor) == 0 && f->resource)
			o.resource = f->resource;
	log_info("placeholder.make", "name=%s pool=%s", name, a->pool);
	p->cluster->ops->placeholder_make(p->cluster, &o);
}

static void drop(struct placeholders *p, const struct ask *a, uint32_t i)
{
	char name[NAME_ROOM];

	name_of(model_of(p), a, i, name);
	p->cluster->ops->placeholder_drop(p->cluster, a->namespace_, name, a->token);
}

/* Have the first n of them be there. */
static void hold(struct placeholders *p, const struct ask *a, struct live *l, uint32_t n)
{
	for (uint32_t i = n; !l->begun && i < a->n_nodes; i++)
		drop(p, a, i);
	l->begun = true;
	for (uint32_t i = l->n_held; i < n; i++)
		make(p, a, i);
	for (uint32_t i = n; i < l->n_held; i++)
		drop(p, a, i);
	l->n_held = n;
	l->n_most = n > l->n_most ? n : l->n_most;
}

static bool stands(const struct model *m, const struct ask *a)
{
	const struct site_pool *pool = site_pool_growing(m->site, a->pool);

	return pool && pool->provisioning->kind == PROVISION_AUTOSCALER &&
	       pool->provisioning->placeholders;
}

/* True if the ask is the first of its pool that waits for nodes. */
static bool is_first(const struct model *m, const struct ask *a)
{
	for (const struct ask *b = m->asks; b; b = b->hh.next)
		if (ask_stands(b) && b->state < ASK_STATE_SERVED && strcmp(b->pool, a->pool) == 0)
			return a == b;
	return false;
}

/* Return how many nodes of the pool have room for a placeholder, as the autoscaler sees it. */
static uint32_t n_empty(const struct model *m, const char *pool)
{
	uint32_t n = 0;

	node_each(m, node) {
		bool used = node->gone || node->fact.unschedulable || node->foreign_gpus_milli;
		const struct pod *pod;

		if (used || strcmp(node->pool, pool) != 0)
			continue;
		DL_FOREACH2(node->pods, pod, node_next)
			used |= model_pod_takes(pod);
		n += !used;
	}
	return n;
}

static uint32_t n_wanted(const struct model *m, const struct ask *a)
{
	return ask_lacks(a) + (is_first(m, a) ? n_empty(m, a->pool) : 0);
}

static void hear(struct placeholders *p, const struct ask *a, enum ask_state state,
		 const char *message)
{
	struct event ev = { .type = EV_ASK_HEARD };

	if (state <= a->state && strcmp(message, a->message) == 0)
		return;
	ev.ask.state = state;
	ev.ask.condition = ev.ask.reason = "";
	ev.ask.message = message;
	outcome_apply(p->j, &ev, a);
}

void placeholders_sync(struct placeholders *p, const struct ask *a)
{
	const struct model *m = model_of(p);
	struct live *l = live_of(p, a);

	if (a->state < ASK_STATE_SERVED) {
		const bool on = stands(m, a);

		(void)FAILPOINT("placeholders.hold");
		hold(p, a, l, on ? n_wanted(m, a) : 0);
		if (!on && a->state == ASK_STATE_NEW)
			hear(p, a, ASK_STATE_SENT, "");
	} else if (a->state >= ASK_STATE_PAUSED && !a->cleared && !l->dropped) {
		l->dropped = true;
		l->n_held = 0;
		l->n_left = a->n_nodes > l->n_most ? a->n_nodes : l->n_most;
		(void)FAILPOINT("placeholders.drop");
		for (uint32_t i = l->n_left; i > 0; i--)
			drop(p, a, i - 1);
	}
}

/* True if the placeholder belongs to an ask that needs it, or sees to its removal. */
static bool is_known(struct placeholders *p, const struct seen *s)
{
	uint32_t i;
	const struct ask *a = find(model_of(p), s->name, s->token, &i);
	const struct live *l = a ? live_of(p, a) : NULL;

	if (!a)
		return false;
	if (a->state >= ASK_STATE_PAUSED)
		return !a->cleared;
	return !l->begun || i < l->n_held;
}

void placeholders_clean(struct placeholders *p)
{
	struct seen *s, *next;

	HASH_ITER(hh, p->seen, s, next)
		if (!is_known(p, s))
			p->cluster->ops->placeholder_drop(p->cluster, s->namespace_, s->name,
							  s->token);
}

/* ---- what is heard ---- */

bool placeholders_asked(struct placeholders *p, const char *name, enum capacity_outcome o,
			const char *message)
{
	uint32_t i;
	const struct ask *a = find(model_of(p), name, NULL, &i);

	if (!a)
		return false;
	if (a->state >= ASK_STATE_SERVED)
		return true;
	(void)FAILPOINT("placeholders.asked");
	if (o == CAPACITY_REFUSED)
		outcome_fail_as(p->j, a, VERDICT_RETRY, message);
	else
		hear(p, a, o == CAPACITY_MADE ? ASK_STATE_SENT : ASK_STATE_NEW, message);
	return true;
}

bool placeholders_dropped(struct placeholders *p, const char *name)
{
	struct event ev = { .type = EV_ASK_CLEARED };
	uint32_t i;
	const struct ask *a = find(model_of(p), name, NULL, &i);
	struct live *l = a ? live_of(p, a) : NULL;

	if (!a)
		return false;
	/* It was wanted again while it was being removed. */
	if (a->state < ASK_STATE_SERVED && i < l->n_held)
		make(p, a, i);
	if (!l->dropped || l->n_left == 0 || --l->n_left > 0 || a->cleared ||
	    a->state < ASK_STATE_PAUSED)
		return true;
	(void)FAILPOINT("placeholders.dropped");
	outcome_apply(p->j, &ev, a);
	if (!ask_find(model_of(p), l->number)) {
		HASH_DEL(p->live, l);
		free(l);
	}
	return true;
}

void placeholders_seen(struct placeholders *p, const char *name, const char *namespace_,
		       const char *token, bool gone)
{
	const struct ask *a;
	struct seen *s;
	uint32_t i;

	HASH_FIND(hh, p->seen, name, strlen(name), s);
	if (s)
		forget_seen(p, s);
	if (!gone) {
		s = calloc(1, sizeof(*s));
		if (!s || !(s->name = strdup(name)) || !(s->namespace_ = strdup(namespace_)) ||
		    !(s->token = strdup(token)))
			abort(); /* as the asker */
		HASH_ADD_KEYPTR(hh, p->seen, s->name, strlen(s->name), s);
		return;
	}
	a = p->cluster ? find(model_of(p), name, token, &i) : NULL;
	if (a && a->state < ASK_STATE_SERVED && i < live_of(p, a)->n_held)
		make(p, a, i);
}

/* ---- wiring ---- */

void placeholders_set_cluster(struct placeholders *p, struct cluster *c)
{
	p->cluster = c;
	forget(p);
}

struct placeholders *placeholders_new(struct journal *j)
{
	struct placeholders *p = calloc(1, sizeof(*p));

	if (p)
		p->j = j;
	return p;
}

void placeholders_free(struct placeholders *p)
{
	if (!p)
		return;
	forget(p);
	free(p);
}
