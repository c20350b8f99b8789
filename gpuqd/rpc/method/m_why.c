/* job.why: why a job waits, or started where it did, or was preempted. */
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/state/view/view_node.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/advise/line.h"
#include "gpuqd/flow/advise/why.h"
#include "gpuqd/flow/advise/why_log.h"
#include "gpuqd/rpc/method/m_ask.h"
#include "gpuqd/rpc/method/m_start.h"
#include "gpuqd/state/asks/ask_near.h"

struct why_params {
	int64_t id, index;
};

static void why_defaults(void *obj)
{
	((struct why_params *)obj)->index = -1;
}

static const struct gpuq_field why_fields[] = {
	P(why_params, "id", GPUQ_K_INT, id, .flags = GPUQ_F_REQUIRED, .min = 1, .max = UINT32_MAX),
	P(why_params, "index", GPUQ_K_INT, index, .min = -1, .max = INT32_MAX),
	P_END,
};
const struct gpuq_schema p_job_why = { .name = "params",
				       .size = sizeof(struct why_params),
				       .fields = why_fields,
				       .defaults = why_defaults };

struct why {
	struct snap_key key;
	struct job_key stands; /* in line: an element that waits does with its array */
	struct gpuq_val *line; /* NULL = it does not wait any more */
	struct gpuq_val *v; /* the reply so far: the job, what was decided about it */
	struct gpuq_val *nearest; /* nearest(): null or a map */
	uint64_t ticket; /* of the estimate */
};

static bool stopped(void *arg)
{
	const struct ask *ask = arg;

	return atomic_load(&ask->m->ends);
}

static int explain(struct ask *ask, struct gpuq_err *err)
{
	struct why *w = ask->arg;
	const struct why_question q = {
		.packed = &ask->packed, .key = w->key, .stop = stopped, .stop_arg = ask
	};
	struct gpuq_val *v = NULL;
	int rc = why_explain(&q, &ask->mem, &v, err);

	for (uint32_t i = 0; rc == 0 && w->line && i < w->line->n; i++)
		gpuq_put(&ask->mem, v, w->line->pairs[i].key, w->line->pairs[i].val);
	if (rc == 0)
		gpuq_put(&ask->mem, v, "nearest", w->nearest);
	gpuq_put(&ask->mem, w->v, "waiting", rc == 0 ? v : gpuq_null(&ask->mem));
	ask->answer = w->v;
	/* It was started between the question and the state it is answered from. */
	return rc == GPUQ_ENOENT ? 0 : rc;
}

/* The job itself; of an array what waits of it, else an element that has started. */
static const struct job *find(const struct model *m, const struct why_params *p)
{
	const struct job *j =
		model_find_job(m, (struct job_key){ (uint32_t)p->id, (int32_t)p->index });
	const struct job *master = model_find_job(m, (struct job_key){ (uint32_t)p->id, -1 }), *one;

	if (!j && p->index >= 0 && master && master->array &&
	    model_element_waits(master->array, p->index))
		return master;
	if (!j || !j->array || j->array->n_waiting > 0)
		return j;
	DL_FOREACH2(index_elements(m, j->key.id), one, life->kin_next)
		if (!one->ended)
			return one;
	return j;
}

/* Not in the turn in which the state is taken down: each examines every job that waits. */
static void take_line(struct ask *ask)
{
	struct why *w = ask->arg;
	const struct job *j = model_find_job(journal_model(ask->m->j), w->stands);

	w->line = j && j->state == GPUQ_JOB_PENDING ? line_view(j, &ask->mem) : NULL;
}

static struct gpuq_val *begin(struct methods *m, const struct why_params *p, struct gpuq_arena *a,
			      struct gpuq_val *job)
{
	const struct job *j = model_find_job(
		journal_model(m->j), (struct job_key){ (uint32_t)p->id, (int32_t)p->index });
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "job", job);
	gpuq_put(a, v, "refused_by",
		 j && j->state == GPUQ_JOB_PENDING
			 ? view_refusing(a, journal_model(m->j), j, loop_now_us(journal_loop(m->j)))
			 : gpuq_list(a));
	why_log_put(m->why, (struct job_key){ (uint32_t)p->id, (int32_t)p->index }, a, v);
	return v;
}

/* First the estimate, which has a thread of its own; then what would change it. */
static void on_estimate(void *arg, int rc, const struct start_answer *answers, uint32_t n,
			const struct start_assumed *assumed, const struct gpuq_err *failed)
{
	struct ask *ask = arg;
	struct why *w = ask->arg;
	struct rpc_call *call = ask->call;
	const char *queue = gpuq_get_str(gpuq_get(w->v, "job"), "queue", "");
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v = NULL;

	if (rc < 0) {
		rpc_fail(call, failed);
		ask_drop(ask);
		return;
	}
	if (n == 1 && answers[0].rc == 0)
		v = start_val(&ask->mem, &answers[0], assumed);
	gpuq_put(&ask->mem, v, "record", start_record_val(&ask->mem, ask->m->estimator, queue));
	gpuq_put(&ask->mem, w->v, "start", v ? v : gpuq_null(&ask->mem));
	take_line(ask);
	if (ask_run(ask, explain, &err) < 0)
		rpc_fail(call, &err);
}

static void on_closed(void *arg, int why)
{
	struct ask *ask = arg;
	struct why *w = ask->arg;
	struct gpuq_err err;

	estimator_forget(ask->m->estimator, w->ticket);
	gpuq_fail(&err, why, "cancelled");
	rpc_fail(ask->call, &err);
	ask_drop(ask);
}

/* Return the pool whose machine comes nearest to a pod that nothing could hold, where that is why it waits. */
static struct gpuq_val *nearest(struct gpuq_arena *a, const struct model *m, const struct job *j)
{
	const struct request_spec *r = &j->request->spec;
	const struct site_pool *pool = NULL;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct gpuq_val *v = gpuq_null(a);

	if (j->outlook->n_reasons == 0 || j->outlook->reasons[0].code != GPUQ_R_UNSATISFIABLE)
		return v;
	for (uint32_t i = 0; !pool && i < r->n_groups; i++) {
		const struct request_group *g = &r->groups[i];
		const struct ask_pod pod = { .flavors = &r->flavors,
					     .gpus_milli = g->mig ? 0 : g->gpus_milli,
					     .cpu_milli = g->cpu_milli,
					     .memory_bytes = g->memory_bytes,
					     .resources = g->resources,
					     .n_resources = g->n_resources };

		pool = ask_near(m->site, &pod, &text);
	}
	if (pool) {
		v = gpuq_map(a);
		gpuq_put(a, v, "pool", gpuq_str(a, pool->name));
		gpuq_put(a, v, "text", gpuq_str(a, gpuq_buf_str(&text)));
	}
	gpuq_buf_done(&text);
	return v;
}

static int ask_waiting(struct methods *m, struct rpc_call *c, const struct why_params *p,
		       const struct job *j, struct gpuq_err *err)
{
	struct ask *ask = ask_new(m, c, &j->key, err);
	struct why *w = ask ? gpuq_arena_alloc(&ask->mem, sizeof(*w)) : NULL;

	if (!ask)
		return err->code;
	if (!w) {
		ask_drop(ask);
		return gpuq_no_memory(err);
	}
	w->key = (struct snap_key){ (uint32_t)p->id, (int32_t)p->index };
	w->stands = j->key;
	w->line = NULL;
	w->v = begin(m, p, &ask->mem, view_job(&ask->mem, journal_model(m->j), j, ask->now_us));
	w->nearest = nearest(&ask->mem, journal_model(m->j), j);
	ask->arg = w;
	ask->slow = true;
	if (estimator_ask(m->estimator, &j->key, 1, NULL, 0, on_estimate, ask, &w->ticket, err) ==
	    0) {
		rpc_call_watch(c, NULL, on_closed, ask);
		return 0;
	}
	/* Too many request estimates just now: the rest is worth having. */
	gpuq_put(&ask->mem, w->v, "start", gpuq_null(&ask->mem));
	take_line(ask);
	return ask_run(ask, explain, err);
}

/* One that has left memory is in history once that is durable. */
struct later {
	struct methods *m;
	struct rpc_call *c;
	struct why_params p;
};

static void answer_old(void *arg, int rc, const struct gpuq_err *failed)
{
	struct later *x = arg;
	struct gpuq_arena *a = rpc_call_arena(x->c);
	const struct job_key key = job_id_of_call(x->m, x->p.id, x->p.index);
	struct gpuq_val *job, *v;
	struct gpuq_err err;

	if (rc < 0) {
		rpc_fail(x->c, failed);
		return;
	}
	job = history_job(journal_store(x->m->j), key, a);
	if (!job) {
		no_such_job(key, &err);
		rpc_fail(x->c, &err);
		return;
	}
	v = begin(x->m, &x->p, a, job);
	gpuq_put(a, v, "waiting", gpuq_null(a));
	rpc_reply(x->c, v);
}

int m_job_why(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct why_params *said = params;
	const struct job_key key = job_id_of_call(m, said->id, said->index);
	const struct why_params named = { key.id, key.index }, *p = &named;
	struct gpuq_arena *a = rpc_call_arena(c);
	const struct job *j = find(journal_model(m->j), p);
	struct later *later;
	struct gpuq_val *v;

	if (j && j->state == GPUQ_JOB_PENDING)
		return ask_waiting(m, c, p, j, err);
	if (!j) {
		later = gpuq_arena_alloc(a, sizeof(*later));
		if (!later)
			return gpuq_no_memory(err);
		*later = (struct later){ m, c, *p };
		journal_after(m->j, answer_old, later);
		return 0;
	}
	v = begin(m, p, a, view_job(a, journal_model(m->j), j, loop_now_us(journal_loop(m->j))));
	gpuq_put(a, v, "waiting", gpuq_null(a));
	rpc_reply(c, v);
	return 0;
}
