/* Pod templates of manifests are judged by the cluster before their jobs are taken: a server-side dry
 * run finds wrong fields where the submitter still sees it. Only what is wrong with the pod itself
 * refuses a job: a cluster that does not answer judges the pod when it is created. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/advise/estimate.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/rpc/method/m_int.h"

#define TEMPLATES_MAX 64u /* of one call; the others are judged when they are created */

#define AWAY "the cluster does not answer: pod templates are checked when their pods are created"

struct trying {
	struct trying *prev, *next; /* of all */
	struct methods *m;
	struct rpc_call *call;
	const struct start_guest *guests; /* the jobs, as a dry run read them */
	uint32_t n, job, group; /* the template under way */
	unsigned n_tried;
	struct cluster_trial *trial;
	struct gpuq_val *notes; /* a list for each job */
	void (*done)(void *arg, struct gpuq_val *notes);
	void *arg;
};

static bool has_template(const struct gpuq_val *spec)
{
	const struct gpuq_val *groups = gpuq_get(spec, "groups");

	if (gpuq_get(spec, "template"))
		return true;
	for (uint32_t i = 0; groups && groups->type == GPUQ_LIST && i < groups->n; i++)
		if (gpuq_get(groups->items[i], "template"))
			return true;
	return false;
}

bool try_needed(const struct methods *m, struct rpc_call *c, const struct gpuq_val *specs)
{
	const struct submit_who who = peer_who(m, c);
	const char *key = rpc_call_key(c);

	if (!m->cluster || !m->cluster->ops->pod_try || !specs || specs->type != GPUQ_LIST ||
	    (key && model_find_key(journal_model(m->j), who.user, key)))
		return false;
	for (uint32_t i = 0; i < specs->n; i++)
		if (has_template(specs->items[i]))
			return true;
	return false;
}

static void note(struct trying *x, uint32_t job, const char *text, size_t n)
{
	gpuq_add(rpc_call_arena(x->call), x->notes->items[job],
		 gpuq_strn(rpc_call_arena(x->call), text, n));
}

static void drop(struct trying *x)
{
	DL_DELETE(x->m->tries, x);
	rpc_call_watch(x->call, NULL, NULL, NULL);
	free(x);
}

static void finish(struct trying *x)
{
	void (*done)(void *arg, struct gpuq_val *notes) = x->done;
	struct gpuq_val *notes = x->notes;
	void *arg = x->arg;

	drop(x);
	done(arg, notes);
}

/* Nothing more is asked: the rest is judged when it is created. */
static void give_up(struct trying *x, const char *why)
{
	note(x, x->job, why, strlen(why));
	finish(x);
}

static void go_on(struct trying *x);

static void refuse(struct trying *x, const char *message)
{
	struct rpc_call *call = x->call;
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_fail_field(&err, GPUQ_EINVAL, "template", "the cluster refuses the pod: %s", message);
	if (x->n > 1)
		gpuq_err_prefix(&err, "job %u of %u", x->job + 1, x->n);
	drop(x);
	rpc_fail(call, &err);
}

static void on_judged(void *arg, enum trial_outcome o, const char *message, const char *warnings)
{
	struct trying *x = arg;

	x->trial = NULL;
	while (*warnings) {
		const size_t n = strcspn(warnings, "\n");

		if (n)
			note(x, x->job, warnings, n);
		warnings += n + (warnings[n] == '\n');
	}
	if (o == TRIAL_REFUSED) {
		refuse(x, message);
	} else if (o == TRIAL_UNKNOWN) {
		struct gpuq_buf why = GPUQ_BUF_INIT;

		gpuq_buf_printf(&why, "the pod template is not checked: %s", message);
		give_up(x, gpuq_buf_str(&why));
		gpuq_buf_done(&why);
	} else {
		x->group++;
		go_on(x);
	}
}

/* Have the next template judged. The call may be gone when this returns. */
static void go_on(struct trying *x)
{
	const struct model *m = journal_model(x->m->j);

	for (; x->job < x->n; x->job++, x->group = 0)
		for (; x->group < x->guests[x->job].spec->n_groups; x->group++) {
			const struct start_guest *g = &x->guests[x->job];
			const struct queue *q = model_find_queue(m, g->queue);
			struct gpuq_err err = GPUQ_ERR_INIT;
			struct pod_order o;

			if (!g->spec->groups[x->group].template_ || !q)
				continue;
			if (x->n_tried++ == TEMPLATES_MAX ||
			    order_try(m, q, g->user, g->spec, x->group, rpc_call_arena(x->call),
				      &o) < 0) {
				finish(x);
				return;
			}
			x->trial =
				x->m->cluster->ops->pod_try(x->m->cluster, &o, on_judged, x, &err);
			if (x->trial)
				return;
		}
	finish(x);
}

static void on_closed(void *arg, int why)
{
	struct trying *x = arg;
	struct rpc_call *call = x->call;
	struct gpuq_err err;

	x->m->cluster->ops->trial_cancel(x->trial);
	gpuq_fail(&err, why, why == GPUQ_EUNREACH ? "the cluster is gone; retry" : "cancelled");
	drop(x);
	rpc_fail(call, &err);
}

void tries_drop_cluster(struct methods *m)
{
	struct trying *x, *next;

	DL_FOREACH_SAFE(m->tries, x, next)
		on_closed(x, GPUQ_EUNREACH);
}

int try_start(struct methods *m, struct rpc_call *c, const struct gpuq_val *specs,
	      void (*done)(void *arg, struct gpuq_val *notes), void *arg, struct gpuq_err *err)
{
	const struct submit_who who = peer_who(m, c);
	struct gpuq_arena *a = rpc_call_arena(c);
	struct submit_result r;
	struct trying *x;
	int rc = submit_jobs(m->j, m->cluster, &who, specs, NULL, 0, true, a, &r, err);

	if (rc < 0)
		return rc;
	x = calloc(1, sizeof(*x));
	if (!x)
		return gpuq_no_memory(err);
	*x = (struct trying){ .m = m,
			      .call = c,
			      .guests = r.guests,
			      .n = r.n_guests,
			      .notes = gpuq_list(a),
			      .done = done,
			      .arg = arg };
	for (uint32_t i = 0; i < x->n; i++)
		gpuq_add(a, x->notes, gpuq_list(a));
	if (!gpuq_val_ok(x->notes)) {
		free(x);
		return gpuq_no_memory(err);
	}
	DL_APPEND(m->tries, x);
	rpc_call_watch(c, NULL, on_closed, x);
	if (reconcile_stale_since_us(m->reconcile))
		give_up(x, AWAY);
	else
		go_on(x);
	return 0;
}
