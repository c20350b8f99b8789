#include "gpuqd/state/model_int.h"

#include <stdlib.h>

#include "gpuqd/util/amount.h"
#include "gpuqd/util/civil.h"
#include "gpuqd/site/price.h"
#include "libgpuq/units.h"

/* The balance of budgets: the days of their period, or decaying accounts; with grants, and with
 * running jobs. */

int64_t budget_half_life(const struct queue *q)
{
	return q->budget ? q->budget->half_life_us : 0;
}

/* True if q is `top`, or below it; a deleted queue (NULL) is below none. */
static bool below(const struct queue *q, const struct queue *top)
{
	while (q && q != top)
		q = q->parent;
	return q != NULL;
}

/* Multiply by thousandths, without overflow. */
static int64_t scaled(int64_t us, int64_t milli)
{
	return milli == 1000 ? us : us / 1000 * milli + us % 1000 * milli / 1000;
}

/* Scale device-us to the charge of a budget: by the qos' factor and the flavor's rate. */
static int64_t billed(const struct model *m, const struct job *j, int64_t us)
{
	const struct site_qos *qos = site_qos_find(m->site, j->qos);

	return scaled(scaled(us, qos ? qos->usage_factor_milli : 1000),
		      account_rate_of(m, j->life->flavor));
}

/* True if the record holds grants, which belong to one queue alone. */
static bool is_grant(const struct usage *u)
{
	return *u->user == '\0' && *u->flavor == '\0';
}

/* Recount the charges of ended pods since a day. */
static void count_spent(const struct model *m, struct queue *top, int64_t from)
{
	top->spent_us = top->granted_us = 0;
	for (const struct usage *u = m->usages; u; u = u->hh.next) {
		if (u->day < from)
			continue;
		if (is_grant(u))
			top->granted_us += u->queue == top ? -u->billed_us : 0;
		else if (below(u->queue, top))
			top->spent_us += scaled(u->billed_us, account_rate_of(m, u->flavor));
	}
	top->spent_from = from;
	top->spent_known = true;
}

/* Return the first day whose usage counts; *next: the day after the period. */
static int64_t period_of(const struct model *m, const struct queue *q, int64_t now_us,
			 int64_t *next)
{
	int64_t first;

	civil_period(q->budget ? q->budget->period : 0, clock_day(m, now_us), &first, next);
	return first;
}

struct spending {
	const struct model *m;
	int64_t now_us; /* up to which running work is counted */
	struct spent *out; /* by ix */
	int64_t *from_us; /* running jobs count from then on; INT64_MAX = not at all */
};

/* Add an account to what the decaying budget of its queue has used. Accounts of users are for fair
 * shares. */
static bool add_fading(void *arg, struct queue *q, const char *user, usage_q32 used)
{
	struct spending *s = arg;

	if (!*user)
		s->out[q->ix].used_ms += (int64_t)((used >> 16) * 1000 >> 16);
	return true;
}

/* Look up the charges of ended pods, and since when running ones count. True: the budget decays. */
static bool look_up(struct spending *s, struct queue *q)
{
	struct spent *out = &s->out[q->ix];
	int64_t first, next;

	*out = (struct spent){ 0 };
	s->from_us[q->ix] = INT64_MAX;
	if (budget_half_life(q)) {
		out->granted_ms = account_granted_ms(s->m, q, s->now_us);
		return true;
	}
	first = period_of(s->m, q, s->now_us, &next);
	if (next != INT64_MAX)
		out->reset_us = clock_day_begins(s->m, next);
	/* A new period has begun, or nothing was counted yet; otherwise charges keep the sum up to
	 * date. */
	if (!q->spent_known || q->spent_from != first)
		count_spent(s->m, q, first);
	out->used_ms = q->spent_us / 1000;
	out->granted_ms = q->granted_us / 1000;
	s->from_us[q->ix] = first == INT64_MIN ? 0 : clock_day_begins(s->m, first);
	return false;
}

/* Return since when a pod counts: its start, or the beginning of the period. */
static int64_t since(const struct pod *p, int64_t from_us)
{
	return p->start_us > from_us ? p->start_us : from_us;
}

/* Add the use of a running pod to all budgets above it. INT64_MAX as the beginning adds nothing. */
static void add_running(struct spending *s, const struct pod *p)
{
	if (!model_pod_takes(p) || !p->start_us)
		return;
	for (const struct queue *q = p->job->queue; q; q = q->parent) {
		const int64_t us = accounting_pod_us(p, since(p, s->from_us[q->ix]), s->now_us);

		s->out[q->ix].used_ms += billed(s->m, p->job, us) / 1000;
	}
}

void budget_spending(const struct model *m, int64_t now_us, struct spent *out)
{
	struct spending s = { m, now_us, out, NULL };
	const struct pod *p;
	bool fades = false;

	s.from_us = calloc(m->n_queues ? m->n_queues : 1, sizeof(*s.from_us));
	if (!s.from_us)
		abort();
	for (uint32_t i = 0; i < m->n_queues; i++)
		fades |= look_up(&s, m->queues[i]);
	if (fades)
		account_each(m, now_us, add_fading, &s);
	node_each(m, n) {
		DL_FOREACH2(n->pods, p, node_next)
			add_running(&s, p);
	}
	free(s.from_us);
}

int64_t budget_user_spent_ms(const struct model *m, const struct queue *q, const char *user,
			     int64_t now_us)
{
	int64_t next, us = 0;
	const int64_t first = period_of(m, q, now_us, &next);
	const int64_t from = first == INT64_MIN ? 0 : clock_day_begins(m, first);
	const struct pod *p;

	if (budget_half_life(q) && q->budget->user_gpu_minutes != GPUQ_UNLIMITED)
		return account_purse_ms(m, q, user, now_us);
	user = model_interned(m, user);
	for (const struct usage *u = m->usages; u && user; u = u->hh.next)
		if (u->user == user && u->day >= first && below(u->queue, q))
			us += scaled(u->billed_us, account_rate_of(m, u->flavor));
	node_each(m, n) {
		DL_FOREACH2(n->pods, p, node_next)
			if (model_pod_takes(p) && p->start_us && p->job->user == user &&
			    below(p->job->queue, q))
				us += billed(m, p->job,
					     accounting_pod_us(p, since(p, from), now_us));
	}
	return us / 1000;
}

int64_t budget_user_rate_milli(const struct model *m, const struct queue *q, const char *user)
{
	const struct pod *p;
	int64_t milli = 0;

	user = model_interned(m, user);
	node_each(m, n) {
		DL_FOREACH2(n->pods, p, node_next)
			if (model_pod_takes(p) && p->start_us && p->job->user == user &&
			    below(p->job->queue, q))
				milli += billed(m, p->job, p->gpus_milli);
	}
	return milli;
}

int64_t budget_cost_micro(const struct model *m, const struct queue *q, const char *user,
			  int64_t now_us)
{
	int64_t first, next, micro = 0;
	const struct pod *p;

	civil_period(q->budget && q->budget->period ? q->budget->period : CIVIL_MONTH,
		     clock_day(m, now_us), &first, &next);
	user = user ? model_interned(m, user) : NULL;
	for (const struct usage *u = m->usages; u; u = u->hh.next)
		if (u->day >= first && (!user || u->user == user) && below(u->queue, q))
			micro = amount_sum(micro, u->cost_micro);
	node_each(m, n) {
		DL_FOREACH2(n->pods, p, node_next)
			if (model_pod_takes(p) && p->start_us && (!user || p->job->user == user) &&
			    below(p->job->queue, q))
				micro = amount_sum(
					micro,
					price_cost(
						price_micro(m->site, n->pool, p->job->life->flavor),
						accounting_pod_us(
							p, since(p, clock_day_begins(m, first)),
							now_us)));
	}
	return micro;
}

int64_t budget_committed_ms(const struct model *m, const struct queue *q, const char *user,
			    int64_t now_us)
{
	const struct pod *p;
	int64_t ms = 0;

	user = user ? model_interned(m, user) : NULL;
	node_each(m, n) {
		DL_FOREACH2(n->pods, p, node_next) {
			const struct job *j = p->job;
			const int64_t start = j->life->start_us ? j->life->start_us : now_us;

			if (!model_pod_takes(p) || !p->gpus_milli || (user && j->user != user) ||
			    !below(j->queue, q))
				continue;
			/* Without a limit there is no bound on what it may still use. */
			if (j->time_limit_us == GPUQ_UNLIMITED)
				return GPUQ_UNLIMITED;
			ms = amount_sum(
				ms, billed(m, j,
					   accounting_gpu_us(p->gpus_milli, now_us,
							     amount_sum(start, j->time_limit_us))) /
					    1000);
		}
	}
	return ms;
}
