/* prio.list: what every waiting job's place in the line of its queue is made of. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/priority.h"
#include "gpuqd/core/snapshot.h"
#include "gpuqd/core/view.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/snap_usage.h"
#include "gpuqd/rpc/m_int.h"

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

/* A job, and where it stands among those that wait in its queue. */
struct placed {
	struct job_key key;
	uint32_t queue;
	int64_t total, submit_us;
	uint32_t place, of;
};

struct lines {
	struct methods *m;
	struct rpc_call *c;
	int64_t limit, sent;
	struct placed *jobs; /* queue by queue, each in the order of its line */
	size_t n, at;
};

static int by_place(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;

	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	if (a->submit_us != b->submit_us)
		return a->submit_us < b->submit_us ? -1 : 1;
	if (a->key.id != b->key.id)
		return a->key.id < b->key.id ? -1 : 1;
	return a->key.index == b->key.index ? 0 : a->key.index < b->key.index ? -1 : 1;
}

/* "[4-99]" of an array is told as in lists of jobs. */
static struct gpuq_val *view_prio(struct gpuq_arena *a, const struct model *m, const struct job *j,
				  const struct placed *p)
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

static bool full(const struct lines *l)
{
	return l->limit && l->sent >= l->limit;
}

static void go_on(void *arg)
{
	struct lines *l = arg;
	const struct model *model = journal_model(l->m->j);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);

	for (; l->at < l->n && !full(l); l->at++) {
		const struct job *j = job_find(model, l->jobs[l->at].key);

		if (!j || j->state != GPUQ_JOB_PENDING)
			continue; /* it has started since */
		if (!rpc_item_ready(l->c)) {
			gpuq_arena_done(&mem);
			return;
		}
		gpuq_arena_reset(&mem);
		rpc_item(l->c, view_prio(&mem, model, j, &l->jobs[l->at]));
		l->sent++;
	}
	gpuq_arena_done(&mem);
	rpc_end(l->c, NULL);
}

static void closed(void *arg, int why)
{
	struct lines *l = arg;
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(l->c, &err);
}

/* Places are counted over all that wait, whatever was asked for. */
static void number(struct lines *l)
{
	qsort(l->jobs, l->n, sizeof(*l->jobs), by_place);
	for (size_t i = 0, end; i < l->n; i = end) {
		for (end = i; end < l->n && l->jobs[end].queue == l->jobs[i].queue; end++)
			l->jobs[end].place = (uint32_t)(end - i) + 1;
		for (size_t k = i; k < end; k++)
			l->jobs[k].of = (uint32_t)(end - i);
	}
}

int m_prio_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct prio_params *p = params;
	struct model *model = journal_model(m->j);
	struct gpuq_arena *a = rpc_call_arena(c);
	struct lines *l = gpuq_arena_alloc(a, sizeof(*l));
	size_t kept = 0;

	if (l)
		l->jobs = gpuq_arena_calloc(a, model->n_jobs + 1, sizeof(*l->jobs));
	if (!l || !l->jobs)
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	l->m = m;
	l->c = c;
	l->limit = p->filter.limit;
	job_each(model, j)
	{
		if (j->state != GPUQ_JOB_PENDING || !j->outlook->ranked ||
		    (j->array && j->array->n_waiting == 0))
			continue;
		l->jobs[l->n++] = (struct placed){
			j->key, j->queue->ix, j->outlook->terms.total, j->submit_us, 0, 0
		};
	}
	number(l);
	for (size_t i = 0; i < l->n; i++)
		if (filter_job(&p->filter, job_find(model, l->jobs[i].key)))
			l->jobs[kept++] = l->jobs[i];
	l->n = kept;
	rpc_call_watch(c, go_on, closed, l);
	go_on(l);
	return 0;
}

int m_prio_weights(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct methods *m = arg;
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = gpuq_map(a);
	struct snap_config config;
	const struct snap_weights *w = &config.weights;

	(void)params, (void)err;
	snap_config_default(&config);
	snap_set_policy(journal_model(m->j), &config);
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
