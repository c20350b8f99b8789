/* status.get: the cluster at a glance. */
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/core/recur.h"
#include "gpuqd/core/view.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/rpc/m_int.h"

static struct gpuq_val *devices(struct gpuq_arena *a, int64_t milli)
{
	return milli % 1000 == 0 ? gpuq_int(a, milli / 1000) : gpuq_real(a, (double)milli / 1000);
}

static int64_t milli_of(const struct gpuq_val *v)
{
	if (!v || (v->type != GPUQ_INT && v->type != GPUQ_REAL))
		return 0;
	return v->type == GPUQ_INT ? v->i * 1000 : (int64_t)(v->d * 1000 + 0.5);
}

/* ---- what of the free devices is not to be had ---- */

static bool lists(const struct gpuq_strlist *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->items[i], s) == 0)
			return true;
	return false;
}

static bool on_calendar(const struct site_reservation *r, int64_t now_us, int64_t *since_us)
{
	int64_t starts[RECUR_MAX];

	if (r->duration_us <= 0 || recur_starts(r->start_us, r->duration_us,
						site_reservation_every_us(r), now_us, starts) == 0)
		return false;
	*since_us = starts[0];
	return starts[0] <= now_us;
}

/* Does it keep this node as a whole? */
static bool keeps(const struct site_reservation *r, const struct node *n)
{
	if (r->nodes.n)
		return lists(&r->nodes, n->name);
	return r->gpus_milli <= 0 && r->pool && n->pool && strcmp(r->pool, n->pool) == 0;
}

/* What its own jobs have of an amount. */
static int64_t used_of(const struct model *m, const struct site_reservation *r, int64_t since_us)
{
	int64_t milli = 0;

	node_each(m, n)
	{
		const struct pod *p;

		DL_FOREACH2(n->pods, p, node_next)
		if (pod_takes(p) && p->placed_us >= since_us &&
		    (!r->queue || strcmp(r->queue, p->job->queue->name) == 0) &&
		    (r->users.n == 0 || lists(&r->users, p->job->user)))
			milli += p->gpus_milli;
	}
	return milli;
}

static bool in_use(const struct node *n)
{
	return !n->gone && n->fact.ready && !n->drain && !n->fact.unschedulable;
}

/* Free devices that a begun reservation keeps for its own, and those beside which a pod would
 * find no core, memory or slot. Each is one of them only. */
static void kept(const struct model *m, struct gpuq_arena *a, int64_t now_us, int64_t *reserved,
		 int64_t *stranded)
{
	int64_t amounts = 0, open = 0, since_us;

	node_each(m, n)
	{
		const int64_t free_milli = in_use(n) ? view_free_milli(a, n) : 0;
		int64_t strand = 0;
		bool whole = false;

		site_each(site_reservation, m->site->reservations, r) whole |=
			keeps(r, n) && on_calendar(r, now_us, &since_us);
		if (whole)
			*reserved += free_milli;
		else if (free_milli && node_stranded(n, &strand))
			*stranded += strand < free_milli ? strand : free_milli;
		if (!whole)
			open += free_milli - (strand < free_milli ? strand : free_milli);
	}
	site_each(site_reservation, m->site->reservations, r)
	{
		int64_t left;

		if (r->nodes.n || r->gpus_milli <= 0 || !on_calendar(r, now_us, &since_us))
			continue;
		left = r->gpus_milli - used_of(m, r, since_us);
		amounts += left > 0 ? left : 0;
	}
	*reserved += amounts < open ? amounts : open;
}

static void take_from_free(struct gpuq_arena *a, struct gpuq_val *map, const char *key,
			   int64_t milli)
{
	int64_t free_milli = milli_of(gpuq_get(map, "free"));

	if (milli > free_milli)
		milli = free_milli;
	gpuq_set(a, map, key, devices(a, milli_of(gpuq_get(map, key)) + milli));
	gpuq_set(a, map, "free", devices(a, free_milli - milli));
}

/* ---- who waits longest ---- */

/* Of those that nothing but others stands in the way of. */
static struct gpuq_val *oldest(struct gpuq_arena *a, const struct model *m, int64_t now_us)
{
	const struct job *first = NULL;
	struct gpuq_val *v;
	char id[32];

	job_each(m, j)
	{
		bool never;

		if (j->state != GPUQ_JOB_PENDING || j->held_user || j->held_admin ||
		    j->held_retries || (j->array && j->array->n_waiting == 0) ||
		    j->begin_us > now_us)
			continue;
		if (first && j->eligible_us >= first->eligible_us)
			continue;
		if (!job_waits_for_deps(j, now_us, &never))
			first = j;
	}
	if (!first)
		return gpuq_null(a);
	v = gpuq_map(a);
	job_id_print(first->key, id);
	gpuq_put(a, v, "job", gpuq_str(a, id));
	gpuq_put(a, v, "user", gpuq_str(a, first->user));
	gpuq_put(a, v, "queue", gpuq_str(a, first->queue->name));
	gpuq_put(a, v, "eligible_time", gpuq_int(a, first->eligible_us));
	gpuq_put(a, v, "reason",
		 first->n_reasons
			 ? gpuq_str(a, gpuq_reason_word((enum gpuq_reason)first->reasons[0].code))
			 : gpuq_null(a));
	return v;
}

/* Whether anything holds up everybody else. */
static struct gpuq_val *view_loop(struct gpuq_arena *a, const struct loop *loop)
{
	struct gpuq_val *v = gpuq_map(a);
	struct loop_stats s;

	loop_stats(loop, &s);
	gpuq_put(a, v, "turns", gpuq_int(a, (int64_t)s.turns));
	gpuq_put(a, v, "longest_ms", gpuq_real(a, (double)s.longest_us / 1000));
	gpuq_put(a, v, "over_10ms", gpuq_int(a, (int64_t)s.over_10ms));
	gpuq_put(a, v, "over_50ms", gpuq_int(a, (int64_t)s.over_50ms));
	gpuq_put(a, v, "last_slow_time",
		 s.last_slow_us ? gpuq_int(a, s.last_slow_us) : gpuq_null(a));
	return v;
}

int m_status_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct model *model = journal_model(m->j);
	const int64_t now_us = loop_now_us(journal_loop(m->j));
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = view_status(a, model), *cluster = gpuq_map(a);
	int64_t stale = reconcile_stale_since_us(m->reconcile), reserved = 0, stranded = 0;

	(void)params;
	if (!v)
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	kept(model, a, now_us, &reserved, &stranded);
	take_from_free(a, gpuq_get(v, "devices"), "stranded", stranded);
	take_from_free(a, gpuq_get(v, "devices"), "reserved", reserved);
	gpuq_put(a, v, "oldest_waiting", oldest(a, model, now_us));
	gpuq_put(a, cluster, "kind", gpuq_str(a, m->kind));
	gpuq_put(a, cluster, "stale_since", stale ? gpuq_int(a, stale) : gpuq_null(a));
	gpuq_put(a, cluster, "read_only", gpuq_bool(a, journal_read_only(m->j)));
	gpuq_put(a, v, "cluster", cluster);
	gpuq_put(a, v, "loop", view_loop(a, journal_loop(m->j)));
	rpc_reply(c, v);
	return 0;
}
