/* status.get: the cluster at a glance. */
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/measure.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/flow/refusal/refusals.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/site/quotas.h"
#include "libgpuq/units.h"

/* For so long after `default` lost its unlimited quota, status and doctor say so. */
#define TOLD_US (24 * 3600 * GPUQ_US_PER_S)

/* Other jobs are in its way, not its own request. */
static bool waits_for_others(const struct job *j)
{
	const struct outlook *o = j->outlook;

	return !o->n_reasons ||
	       strcmp(gpuq_reason_who((enum gpuq_reason)o->reasons[0].code), "user") != 0;
}

/* Return the oldest job that is pending only for lack of capacity. */
static struct gpuq_val *oldest(struct gpuq_arena *a, const struct model *m, int64_t now_us)
{
	const struct job *first = NULL;
	struct gpuq_val *v;
	char id[32];

	job_each(m, j) {
		bool never;

		if (j->state != GPUQ_JOB_PENDING || j->held_user || j->held_admin ||
		    j->held_retries || j->held_restore || (j->array && j->array->n_waiting == 0) ||
		    clock_job_begin_us(m, j) > now_us || !waits_for_others(j))
			continue;
		if (first && j->eligible_us >= first->eligible_us)
			continue;
		if (!deps_are_awaited(j, now_us, &never))
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
		 first->outlook->n_reasons
			 ? gpuq_str(a, gpuq_reason_word(
					       (enum gpuq_reason)first->outlook->reasons[0].code))
			 : gpuq_null(a));
	return v;
}

/* Describe turns of the event loop that delay other requests. */
static struct gpuq_val *view_loop(struct gpuq_arena *a, const struct loop *loop)
{
	struct gpuq_val *v = gpuq_map(a);
	struct loop_stats s;

	loop_stats(loop, &s);
	gpuq_put(a, v, "turns", gpuq_int(a, (int64_t)s.turns));
	gpuq_put(a, v, "longest_ms", gpuq_real(a, (double)s.longest_us / 1000));
	gpuq_put(a, v, "longest_part",
		 *s.longest_part ? gpuq_str(a, s.longest_part) : gpuq_null(a));
	gpuq_put(a, v, "over_10ms", gpuq_int(a, (int64_t)s.over_10ms));
	gpuq_put(a, v, "over_50ms", gpuq_int(a, (int64_t)s.over_50ms));
	gpuq_put(a, v, "last_slow_time",
		 s.last_slow_us ? gpuq_int(a, s.last_slow_us) : gpuq_null(a));
	return v;
}

/* Does any queue or qos have an idle rule? */
static bool has_idle_rule(const struct model *m)
{
	site_each(site_qos, m->site->qos, q)
		if (q->idle_us)
			return true;
	site_each(site_queue, m->site->queues, q)
		if (q->idle_us)
			return true;
	return false;
}

struct gpuq_val *view_measured(const struct methods *m, struct gpuq_arena *a)
{
	const struct measure_state s = measure_state(reconcile_measure(m->reconcile));
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "source", *s.source ? gpuq_str(a, s.source) : gpuq_null(a));
	gpuq_put(a, v, "time", s.at_us ? gpuq_int(a, s.at_us) : gpuq_null(a));
	gpuq_put(a, v, "jobs", gpuq_int(a, s.n_jobs));
	gpuq_put(a, v, "devices", gpuq_int(a, s.n_devices));
	gpuq_put(a, v, "trouble", *s.why ? gpuq_str(a, s.why) : gpuq_null(a));
	gpuq_put(a, v, "idle_rule", gpuq_bool(a, has_idle_rule(journal_model(m->j))));
	return v;
}

struct refused_list {
	struct gpuq_arena *a;
	struct gpuq_val *list;
};

static void on_refused(void *arg, const struct refusal_view *r)
{
	const struct refused_list *l = arg;
	struct gpuq_val *v = gpuq_map(l->a);

	gpuq_put(l->a, v, "object", gpuq_str(l->a, r->object));
	gpuq_put(l->a, v, "namespace", gpuq_str(l->a, r->namespace_));
	gpuq_put(l->a, v, "message", gpuq_str(l->a, r->words));
	gpuq_put(l->a, v, "since", gpuq_int(l->a, r->since_us));
	gpuq_put(l->a, v, "next_time", r->next_us ? gpuq_int(l->a, r->next_us) : gpuq_null(l->a));
	gpuq_put(l->a, v, "jobs", gpuq_int(l->a, r->jobs));
	gpuq_add(l->a, l->list, v);
}

struct gpuq_val *view_refused(const struct methods *m, struct gpuq_arena *a)
{
	struct refused_list l = { a, gpuq_list(a) };

	if (m->refusals)
		refusals_each(m->refusals, on_refused, &l);
	return l.list;
}

void view_fence(const struct model *m, struct gpuq_arena *a, struct gpuq_val *cluster)
{
	gpuq_put(a, cluster, "fenced_by", *m->fenced_by ? gpuq_str(a, m->fenced_by) : gpuq_null(a));
	gpuq_put(a, cluster, "keeps_out", *m->keeps_out ? gpuq_str(a, m->keeps_out) : gpuq_null(a));
}

void view_requests_fault(const struct model *m, struct gpuq_arena *a, struct gpuq_val *cluster)
{
	bool grows = false;

	site_each(site_pool, m->site->pools, p)
		grows |= site_pool_requests(p);
	gpuq_put(a, cluster, "requests_fault",
		 !grows || m->asks_known != ASKS_OFF ? gpuq_null(a)
		 : m->asks_why && *m->asks_why       ? gpuq_str(a, m->asks_why)
						     : gpuq_str(a, "this cluster takes none"));
}

/* Queues with unlimited quotas beside limited ones, and when the rule of site/quotas.h takes effect in a
 * database from before. */
struct gpuq_val *view_quotas(struct gpuq_arena *a, const struct model *m, int64_t now_us)
{
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a);
	const bool told = m->default_from_us > 0 && now_us < m->default_from_us + TOLD_US;

	if (quotas_some_end(m->site))
		site_each(site_queue, m->site->queues, q)
			if (quotas_unlimited(q))
				gpuq_add(a, list, gpuq_str(a, q->name));
	gpuq_put(a, v, "unlimited", list);
	gpuq_put(a, v, "default_time", told ? gpuq_int(a, m->default_from_us) : gpuq_null(a));
	gpuq_put(a, v, "default_spared", gpuq_bool(a, m->default_spared));
	return v;
}

int m_status_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct model *model = journal_model(m->j);
	const int64_t now_us = loop_now_us(journal_loop(m->j));
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = view_status(a, model, now_us), *cluster = gpuq_map(a);
	int64_t stale = reconcile_stale_since_us(m->reconcile);

	(void)params;
	if (!v)
		return gpuq_no_memory(err);
	gpuq_put(a, v, "oldest_waiting", oldest(a, model, now_us));
	gpuq_put(a, cluster, "kind", gpuq_str(a, m->kind));
	gpuq_put(a, cluster, "stale_since", stale ? gpuq_int(a, stale) : gpuq_null(a));
	gpuq_put(a, cluster, "stale_why",
		 stale && *reconcile_stale_why(m->reconcile)
			 ? gpuq_str(a, reconcile_stale_why(m->reconcile))
			 : gpuq_null(a));
	gpuq_put(a, cluster, "read_only", gpuq_bool(a, journal_read_only(m->j)));
	gpuq_put(a, cluster, "no_new_jobs",
		 gpuq_bool(a, journal_has_space(m->j, NULL) == GPUQ_ESTORAGE));
	view_fence(model, a, cluster);
	view_requests_fault(model, a, cluster);
	gpuq_put(a, cluster, "refused", view_refused(m, a));
	gpuq_put(a, v, "cluster", cluster);
	gpuq_put(a, v, "recovering", view_recovering(m, a));
	gpuq_put(a, v, "backup", view_backup(m, a, peer_is_operator(c)));
	gpuq_put(a, v, "measured", view_measured(m, a));
	gpuq_put(a, v, "quotas", view_quotas(a, model, now_us));
	gpuq_put(a, v, "loop", view_loop(a, journal_loop(m->j)));
	gpuq_put(a, v, "pools", view_growing(model, a, now_us));
	gpuq_put(a, v, "unmet_nodes", view_unmet(model, a));
	gpuq_put(a, v, "provisioning", view_provisioning(model, a));
	rpc_reply(c, v);
	return 0;
}
