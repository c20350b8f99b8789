#include "gpuqd/flow/provision/keeper.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/model.h"

struct kept {
	UT_hash_handle hh; /* by node */
	char *node;
	int64_t idle_us; /* monotonic; 0 = pods are on it, or are to come */
	bool on, told; /* as it was last told, if it was */
	bool stays; /* of this evaluation */
	bool there, awaited; /* awaited: by a job, perhaps with others */
};

struct keeper {
	struct journal *j;
	const struct schedule *schedule;
	struct cluster *cluster;
	struct kept *kept;
};

static struct kept *kept_of(struct keeper *k, const char *node)
{
	struct kept *e;

	HASH_FIND(hh, k->kept, node, strlen(node), e);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e || !(e->node = strdup(node)))
		abort(); /* as the asker */
	HASH_ADD_KEYPTR(hh, k->kept, e->node, strlen(e->node), e);
	return e;
}

static void forget(struct keeper *k, struct kept *e)
{
	HASH_DEL(k->kept, e);
	free(e->node);
	free(e);
}

static void tell(struct keeper *k, struct kept *e, bool on)
{
	if (e->told && e->on == on)
		return;
	e->told = true;
	e->on = on;
	log_debug("node.keep", "node=%s on=%d", LOGS(e->node), on);
	k->cluster->ops->node_keep(k->cluster, e->node, on);
}

static bool has_pods(const struct node *n)
{
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p))
			return true;
	return false;
}

/* True if jobs wait for its nodes. */
static bool is_awaited(const struct ask *a)
{
	return ask_stands(a) && a->state < ASK_STATE_ENDED;
}

static void note_awaited(struct keeper *k, const struct model *m)
{
	for (const struct ask *a = m->asks; a; a = a->hh.next)
		for (uint32_t i = 0; is_awaited(a) && i < a->n_came; i++)
			kept_of(k, a->nodes[i].name)->awaited = true;
	if (m->n_promises == 0)
		return;
	job_each(m, j) {
		const struct promise *p = j->life->promise;

		for (uint32_t i = 0; p && i < p->n_pods; i++)
			kept_of(k, p->pods[i].node)->awaited = true;
	}
}

/* Note which nodes of the pool stay; the others go by themselves. */
static void evaluate(struct keeper *k, const struct site_pool *p, int64_t mono_us)
{
	const struct model *m = journal_model(k->j);
	const struct provision *how = p->provisioning;
	int64_t n_stay = 0;

	node_each(m, n) {
		struct kept *e;

		if (n->gone || strcmp(n->pool, p->name) != 0)
			continue;
		e = kept_of(k, n->name);
		e->there = true;
		if (has_pods(n) || e->awaited || !schedule_is_ready(k->schedule))
			e->idle_us = 0;
		else if (!e->idle_us)
			e->idle_us = mono_us;
		e->stays = !e->idle_us || mono_us - e->idle_us < how->min_idle_us;
		n_stay += e->stays;
	}
	node_each(m, n) {
		struct kept *e;

		if (n->gone || strcmp(n->pool, p->name) != 0 || n_stay >= how->min_nodes)
			continue;
		e = kept_of(k, n->name);
		n_stay += !e->stays;
		e->stays = true;
	}
	node_each(m, n)
		if (!n->gone && strcmp(n->pool, p->name) == 0)
			tell(k, kept_of(k, n->name), kept_of(k, n->name)->stays);
}

void keeper_tick(struct keeper *k)
{
	const struct model *m = journal_model(k->j);
	struct kept *e, *next;

	if (!k->cluster || !k->cluster->ops->node_keep)
		return;
	for (e = k->kept; e; e = e->hh.next)
		e->there = e->awaited = false;
	note_awaited(k, m);
	site_each(site_pool, m->site->pools, p)
		if (site_pool_grows(p) && !site_pool_requests(p))
			evaluate(k, p, loop_mono_us(journal_loop(k->j)));
	/* Gone, or of a pool that no longer grows so. */
	HASH_ITER(hh, k->kept, e, next) {
		if (e->there)
			continue;
		if (e->on)
			tell(k, e, false);
		forget(k, e);
	}
}

static bool is_kept(const struct site *s, const char *pool)
{
	const struct site_pool *p = site_pool_growing(s, pool);

	return p && !site_pool_requests(p);
}

void keeper_came(struct keeper *k)
{
	const struct model *m = journal_model(k->j);

	if (!k->cluster || !k->cluster->ops->node_keep)
		return;
	for (const struct ask *a = m->asks; a; a = a->hh.next) {
		if (!is_awaited(a) || !is_kept(m->site, a->pool))
			continue;
		for (uint32_t i = 0; i < a->n_came; i++)
			tell(k, kept_of(k, a->nodes[i].name), true);
	}
}

void keeper_set_cluster(struct keeper *k, struct cluster *c)
{
	struct kept *e, *next;

	k->cluster = c;
	HASH_ITER(hh, k->kept, e, next)
		forget(k, e);
}

struct keeper *keeper_new(struct journal *j, const struct schedule *s)
{
	struct keeper *k = calloc(1, sizeof(*k));

	if (k) {
		k->j = j;
		k->schedule = s;
	}
	return k;
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	keeper_set_cluster(k, NULL);
	free(k);
}
