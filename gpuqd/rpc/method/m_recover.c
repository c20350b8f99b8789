/* recover.get: what a restore has left open; recover.finish: end the recovery. */
#include <string.h>

#include "gpuqd/state/view/view.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/flow/recover.h"
#include "gpuqd/rpc/method/m_int.h"

#define NAMED_MAX 1000u /* jobs, and pods, that a reply names */

static struct gpuq_val *instant(struct gpuq_arena *a, int64_t us)
{
	return us ? gpuq_int(a, us) : gpuq_null(a);
}

struct gpuq_val *view_recovering(const struct methods *m, struct gpuq_arena *a)
{
	const struct model *model = journal_model(m->j);
	const uint32_t pods = recover_n_pods(reconcile_recover(m->reconcile));
	uint32_t held, recovered;
	struct gpuq_val *v;

	if (!model->recovery.since_us)
		return gpuq_null(a);
	recover_count(model, &held, &recovered);
	v = gpuq_map(a);
	gpuq_put(a, v, "since", instant(a, model->recovery.since_us));
	gpuq_put(a, v, "listed", gpuq_bool(a, model->recovery.listed));
	gpuq_put(a, v, "adopted", gpuq_int(a, model->recovery.n_adopted));
	gpuq_put(a, v, "unknown", gpuq_int(a, (int64_t)pods + held));
	gpuq_put(a, v, "pods", gpuq_int(a, pods));
	gpuq_put(a, v, "held", gpuq_int(a, held));
	gpuq_put(a, v, "recovered", gpuq_int(a, recovered));
	return v;
}

struct listing {
	struct gpuq_arena *a;
	struct gpuq_val *list;
	uint32_t n; /* of which the list has as many as it may */
};

static void add_pod(void *arg, const struct recover_pod *p)
{
	static const char *const phases[] = { "pending", "running", "succeeded", "failed" };
	struct listing *l = arg;
	struct gpuq_arena *a = l->a;
	struct gpuq_val *v;
	char id[32];

	if (l->n++ >= NAMED_MAX)
		return;
	v = gpuq_map(a);
	job_id_print(p->key.job, id);
	gpuq_put(a, v, "name", gpuq_str(a, p->fact->name));
	gpuq_put(a, v, "namespace", view_word(a, p->fact->namespace_));
	gpuq_put(a, v, "uid", gpuq_str(a, p->fact->uid));
	gpuq_put(a, v, "node", view_word(a, p->fact->node));
	gpuq_put(a, v, "job", gpuq_str(a, id));
	gpuq_put(a, v, "user", view_word(a, p->user));
	gpuq_put(a, v, "job_name", view_word(a, p->job_name));
	gpuq_put(a, v, "gpus", view_devices(a, p->fact->gpus_milli));
	gpuq_put(a, v, "phase", gpuq_str(a, phases[p->fact->phase]));
	gpuq_put(a, v, "why", gpuq_str(a, p->why));
	gpuq_add(a, l->list, v);
}

static void add_job(struct listing *l, const struct job *j)
{
	struct gpuq_arena *a = l->a;
	struct gpuq_val *v;
	char id[32];

	if (l->n++ >= NAMED_MAX)
		return;
	v = gpuq_map(a);
	job_id_print(j->key, id);
	gpuq_put(a, v, "job", gpuq_str(a, id));
	gpuq_put(a, v, "name", gpuq_str(a, j->name));
	gpuq_put(a, v, "user", gpuq_str(a, j->user));
	gpuq_put(a, v, "queue", gpuq_str(a, j->queue->name));
	gpuq_put(a, v, "state", gpuq_str(a, gpuq_job_state_word(j->state)));
	gpuq_put(a, v, "why", gpuq_str(a, j->held_restore ? "held" : "recovered"));
	gpuq_add(a, l->list, v);
}

static struct gpuq_val *view_open(struct methods *m, struct gpuq_arena *a)
{
	struct listing pods = { a, gpuq_list(a), 0 }, jobs = { a, gpuq_list(a), 0 };
	const struct model *model = journal_model(m->j);
	struct gpuq_val *v = gpuq_map(a);
	uint32_t held, recovered;

	recover_each_pod(reconcile_recover(m->reconcile), add_pod, &pods);
	recover_count(model, &held, &recovered);
	for (const struct job *j = held + recovered ? model->jobs : NULL; j; j = j->next)
		if (!j->ended && (j->held_restore || j->recovered))
			add_job(&jobs, j);
	gpuq_put(a, v, "recovering", view_recovering(m, a));
	gpuq_put(a, v, "pods", pods.list);
	gpuq_put(a, v, "n_pods", gpuq_int(a, pods.n));
	gpuq_put(a, v, "jobs", jobs.list);
	gpuq_put(a, v, "n_jobs", gpuq_int(a, jobs.n));
	return v;
}

int m_recover_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	(void)params, (void)err;
	rpc_reply(c, view_open(arg, rpc_call_arena(c)));
	return 0;
}

int m_recover_finish(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	int rc = recover_finish(reconcile_recover(m->reconcile), rpc_call_peer(c)->user, err);

	(void)params;
	if (rc == 0)
		rpc_reply(c, view_open(m, rpc_call_arena(c)));
	return rc;
}
