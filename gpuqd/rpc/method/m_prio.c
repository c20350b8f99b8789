/* prio.list: what every pending job's rank in its queue is made of. */
#include "gpuqd/base/loop.h"
#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/advise/line.h"
#include "gpuqd/snapshot/snapshot_take_usage.h"
#include "gpuqd/rpc/method/m_ask.h"

struct prio_params {
	struct job_filter filter;
};

static const struct gpuq_field prio_fields[] = {
	P(prio_params, "ids", GPUQ_K_STRLIST, filter.ids),
	P(prio_params, "users", GPUQ_K_STRLIST, filter.users),
	P(prio_params, "queues", GPUQ_K_STRLIST, filter.queues),
	P(prio_params, "names", GPUQ_K_STRLIST, filter.names),
	P(prio_params, "labels", GPUQ_K_STRLIST, filter.labels),
	P(prio_params, "limit", GPUQ_K_INT, filter.limit, .min = 0, .max = INT64_MAX),
	P_END,
};
const struct gpuq_schema p_prio_list = P_SCHEMA(prio_params, prio_fields);

/* Pending jobs are copied at once, sorted by a thread, and sent step by step, as the client
 * reads. */
struct lines {
	struct ask *ask; /* whose memory this is */
	const struct job_filter *f;
	struct loop_work *work;
	struct line_place *jobs; /* queue by queue, each in the order of its line */
	size_t n, at;
	int64_t sent;
};

/* "[4-99]" of an array is reported as in lists of jobs. */
static struct gpuq_val *view_prio(struct gpuq_arena *a, const struct model *m, const struct job *j,
				  const struct line_place *p)
{
	struct gpuq_val *job = view_job(a, m, j, 0), *v = gpuq_map(a);
	static const char *const same[] = { "id", "array_index", "array", "name", "user", "queue" };
	const struct gpuq_val *terms = priority_terms_val(a, &j->outlook->terms);

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		gpuq_put(a, v, same[i], gpuq_get(job, same[i]));
	gpuq_put(a, v, "priority", gpuq_int(a, j->outlook->terms.total));
	for (uint32_t i = 0; terms && i < terms->n; i++)
		gpuq_put(a, v, terms->pairs[i].key, terms->pairs[i].val);
	gpuq_put(a, v, "place", gpuq_int(a, p->place));
	gpuq_put(a, v, "waiting", gpuq_int(a, p->of));
	return v;
}

static void closed(void *arg, int why)
{
	struct lines *l = arg;
	struct gpuq_err err;

	loop_work_cancel(l->work);
	gpuq_fail(&err, why, "cancelled");
	rpc_fail(l->ask->call, &err);
	ask_drop(l->ask);
}

/* One job. */
static bool step(void *arg)
{
	struct lines *l = arg;
	struct rpc_call *call = l->ask->call;
	const struct model *model = journal_model(l->ask->m->j);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct job *j;

	if (l->at == l->n || (l->f->limit && l->sent >= l->f->limit)) {
		ask_drop(l->ask);
		rpc_end(call, NULL);
		return false;
	}
	j = model_find_job(model, l->jobs[l->at].key);
	/* It may have started since. */
	if (j && j->state == GPUQ_JOB_PENDING && filter_job(l->f, j)) {
		if (!rpc_item_ready(call)) {
			l->work = NULL;
			return false;
		}
		rpc_item(call, view_prio(&mem, model, j, &l->jobs[l->at]));
		gpuq_arena_done(&mem);
		l->sent++;
	}
	l->at++;
	return true;
}

static void go_on(void *arg)
{
	struct lines *l = arg;

	if (!l->work)
		l->work = loop_work_as(journal_loop(l->ask->m->j), "prio.list", step, l);
}

static int sort(struct ask *ask, struct gpuq_err *err)
{
	struct lines *l = ask->arg;

	(void)err;
	line_number(l->jobs, l->n);
	return 0;
}

static void sorted(struct ask *ask)
{
	rpc_call_watch(ask->call, go_on, closed, ask->arg);
	go_on(ask->arg);
}

int m_prio_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct prio_params *p = params;
	const struct model *model = journal_model(m->j);
	struct ask *ask = ask_bare(m, c, err);
	struct lines *l = ask ? gpuq_arena_calloc(&ask->mem, 1, sizeof(*l)) : NULL;
	const struct job *j;

	if (l)
		l->jobs = gpuq_arena_calloc(&ask->mem, model->n_jobs_by_state[GPUQ_JOB_PENDING] + 1,
					    sizeof(*l->jobs));
	if (!l || !l->jobs) {
		if (ask)
			ask_drop(ask);
		return gpuq_no_memory(err);
	}
	l->ask = ask;
	l->f = &p->filter;
	/* Places are counted over all that wait, whatever was requested. */
	DL_FOREACH2(model->jobs_by_state[GPUQ_JOB_PENDING], j, state_next)
		if (line_has(j))
			line_stand(j, &l->jobs[l->n++]);
	ask->arg = l;
	ask->then = sorted;
	return ask_run(ask, sort, err);
}

int m_prio_weights(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct methods *m = arg;
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = gpuq_map(a);
	struct snap_config config;
	const struct snap_weights *w = &config.weights;

	(void)params, (void)err;
	snapshot_config_default(&config);
	snapshot_set_policy(journal_model(m->j), &config);
	gpuq_put(a, v, "age", gpuq_int(a, w->age));
	gpuq_put(a, v, "fairshare", gpuq_int(a, w->fair_share));
	gpuq_put(a, v, "size", gpuq_int(a, w->size));
	gpuq_put(a, v, "qos", gpuq_int(a, w->qos));
	gpuq_put(a, v, "qos_full", gpuq_int(a, w->qos_full));
	gpuq_put(a, v, "stretch", gpuq_int(a, w->stretch));
	gpuq_put(a, v, "max_age_s", gpuq_int(a, w->max_age_us / 1000000));
	gpuq_put(a, v, "half_life_s",
		 gpuq_int(a, journal_model(m->j)->policy.usage_half_life_us / 1000000));
	rpc_reply(c, v);
	return 0;
}
