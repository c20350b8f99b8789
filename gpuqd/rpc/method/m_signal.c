/* Signals to jobs: a request that sends one (job.cancel with a signal, m_act.c) is answered when the
 * cluster has reported the result for each pod, or when the server stops. */
#include <stdlib.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/rpc/method/m_int.h"

struct job_signal {
	struct job_signal *prev, *next;
	struct job_key job;
	int signal;
	job_signal_fn fn;
	void *arg;
	struct gpuq_err err; /* of the first pod that was not sent it */
	size_t n;
	struct pod_key pods[]; /* n of them are still to be reported */
};

static void over(struct methods *m, struct job_signal *x)
{
	DL_DELETE(m->signals, x);
	x->fn(x->arg, x->job, x->err.code ? &x->err : NULL);
	free(x);
}

static bool same_pod(const struct pod_key *a, const struct pod_key *b)
{
	return a->job.id == b->job.id && a->job.index == b->job.index && a->attempt == b->attempt &&
	       a->index == b->index;
}

/* Two clients that send the same signal at once both get the result. */
void job_signals_on_told(void *arg, struct pod_key pod, int signal, const struct gpuq_err *err)
{
	struct methods *m = arg;
	struct job_signal *x, *next;

	DL_FOREACH_SAFE(m->signals, x, next) {
		for (size_t i = 0; x->signal == signal && i < x->n; i++) {
			if (!same_pod(&x->pods[i], &pod))
				continue;
			x->pods[i--] = x->pods[--x->n];
			if (err && !x->err.code)
				x->err = *err;
		}
		if (x->n == 0)
			over(m, x);
	}
}

int job_signal_send(struct methods *m, const struct job *j, int signal, bool first_only,
		    job_signal_fn fn, void *arg, struct gpuq_err *err)
{
	const struct model *model = journal_model(m->j);
	struct job_signal *x;
	const struct pod *p;
	size_t n = 0;
	int rc = 0;

	if (!m->cluster)
		return gpuq_fail(err, GPUQ_EGONE, "the server is stopping");
	DL_FOREACH2(j->pods, p, job_next)
		n++;
	x = calloc(1, sizeof(*x) + n * sizeof(x->pods[0]));
	if (!x)
		return gpuq_no_memory(err);
	*x = (struct job_signal){ .job = j->key, .signal = signal, .fn = fn, .arg = arg };
	gpuq_fail(err, GPUQ_ECONFLICT, "none of its pods runs");
	DL_FOREACH2(j->pods, p, job_next) {
		struct pod_ref ref;
		char name[64];

		if (p->attempt != j->attempt || p->state != GPUQ_POD_RUNNING || p->leaving)
			continue;
		order_ref(model, j, p, name, &ref);
		ref.first_only = first_only;
		rc = m->cluster->ops->pod_signal(m->cluster, &ref, signal, err);
		if (rc == 0)
			x->pods[x->n++] = model_pod_key(p);
		else if (!x->err.code)
			x->err = *err;
	}
	if (x->n == 0) {
		free(x);
		return err->code;
	}
	DL_APPEND(m->signals, x);
	return 0;
}

void job_signals_forget(struct methods *m, const void *arg)
{
	struct job_signal *x, *next;

	DL_FOREACH_SAFE(m->signals, x, next) {
		if (x->arg != arg)
			continue;
		DL_DELETE(m->signals, x);
		free(x);
	}
}

void job_signals_drop_cluster(struct methods *m)
{
	struct job_signal *x, *next;

	DL_FOREACH_SAFE(m->signals, x, next) {
		gpuq_fail(&x->err, GPUQ_EGONE, "the server is stopping");
		over(m, x);
	}
}
