#include "gpuqd/carry/carry_asks.h"

#include "gpuqd/site/site.h"
#include "gpuqd/state/asks/ask.h"

/* Return the owner of the ask in the plan. */
static struct job_key owner_of(const struct plan_ask *in)
{
	return (struct job_key){ in->key.id, in->key.index };
}

static void make(const struct carry_to *to, const struct model *m, const struct plan_ask *in)
{
	const struct site_pool *pool = site_pool_growing(m->site, in->pool);
	const struct job *j = in->job == SNAP_NONE ? NULL : model_find_waiting(m, owner_of(in));
	struct event ev = { .type = EV_ASK_MADE, .job = owner_of(in) };
	struct gpuq_err err = GPUQ_ERR_INIT;
	char token[33];

	if (!pool || !j || !ask_pool_is_open(m, pool))
		return;
	to->token(token);
	ev.ask.number = m->last_ask + 1;
	ev.ask.pool = pool->name;
	ev.ask.flavor = pool->flavor;
	ev.ask.class_ = provision_class(pool->provisioning);
	ev.ask.namespace_ = model_queue_namespace(j->queue);
	ev.ask.token = token;
	ev.ask.n_nodes = in->n_nodes;
	ev.ask.run_us = in->run_us;
	to->apply(to->arg, &ev, &err);
}

/* Withdraw an ask that no job needs, or note whose it is now. */
static void keep(const struct carry_to *to, const struct model *m, const struct plan_ask *in)
{
	const struct ask *a = ask_find(m, in->ask);
	struct event ev = { .type = EV_ASK_ENDED };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct job_key owner = owner_of(in);

	ev.ask.number = in->ask;
	ev.ask.message = "no job needs it any more";
	if (!a || a->state == ASK_STATE_ENDED ||
	    (in->job != SNAP_NONE && owner.id == a->owner.id && owner.index == a->owner.index))
		return;
	if (in->job != SNAP_NONE) {
		ev.type = EV_ASK_OWNED;
		ev.ask.message = "the job is now the first on its nodes";
		ev.job = owner;
	}
	to->apply(to->arg, &ev, &err);
}

void carry_asks(const struct carry_to *to, const struct model *m, const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_asks; i++) {
		const struct plan_ask *in = &p->asks[i];

		/* Where the cycle was cut short, a job that needs it may not have been reached. */
		if (in->ask == 0)
			make(to, m, in);
		else if (!p->cut_short)
			keep(to, m, in);
	}
}
