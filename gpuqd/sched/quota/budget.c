#include "gpuqd/sched/quota/budget.h"

#include "gpuqd/sched/quota/caps.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/quota/holdings_int.h"

#include "gpuqd/util/fixed.h"

/* GPU-minutes that queues may use. A hard budget is never exceeded: every running job holds all
 * that it may still use, and no job starts that could use more than is left. A soft budget, once
 * exhausted, only puts its queue behind the others (snapshot_usage.c, order.c). */

#define OUT_OF_BUDGET (INT64_C(1) << 60) /* more than ranks differ by */

struct budgets {
	int64_t *held_ms; /* by queue: what its running jobs may still use */
	int64_t *rate_milli; /* by queue: devices that are being charged */
};

bool budget_refused(const struct plan_reason *why)
{
	return why->code == GPUQ_R_BUDGET || why->code == GPUQ_R_BUDGET_COMMITTED;
}

int64_t budget_rank(const struct snapshot *s, uint32_t queue)
{
	const struct snap_queue *q = &s->queues[queue];

	return q->over_budget ? amount_less(q->rank, OUT_OF_BUDGET) : q->rank;
}

/* Charge an amount at a rate; both are in thousandths. */
static int64_t times(int64_t milli, int64_t rate_milli)
{
	return rate_milli == SNAP_MILLI ? milli : amount_times(milli, rate_milli) / SNAP_MILLI;
}

/* Return the thousandths of devices that the job is charged for. */
static int64_t charged(const struct cycle *c, uint32_t job, uint32_t flavor, int64_t milli)
{
	milli = times(milli, c->s->jobs[job].charge_milli);
	return times(milli, flavor == SNAP_NONE ? SNAP_MILLI : c->s->flavors[flavor].rate_milli);
}

/* Return the GPU-milliseconds that milli uses in dt_us, rounded up. */
static int64_t cost(int64_t milli, int64_t dt_us)
{
	const fixed_u128 x = (fixed_u128)(uint64_t)milli * (uint64_t)(dt_us > 0 ? dt_us : 0);

	if (milli == 0)
		return 0;
	if (dt_us == GPUQ_UNLIMITED || x >> 80)
		return GPUQ_UNLIMITED;
	return (int64_t)fixed_div(x + 999999, 1000000);
}

/* Hold what a job will cost in its remaining time against the budgets of its queue and all above
 * it; charge rates add up to what is spent from then on. */
static void hold(struct cycle *c, uint32_t job, int64_t milli, int64_t dt_us)
{
	caps_hold(c, job, cost(milli, dt_us));
	for (uint32_t q = c->s->jobs[job].queue; q != SNAP_NONE; q = c->s->queues[q].parent) {
		int64_t *held = &c->holdings->budgets->held_ms[q],
			*rate = &c->holdings->budgets->rate_milli[q];

		*held = amount_sum(*held, cost(milli, dt_us));
		*rate = amount_sum(*rate, milli);
	}
}

/* Return how long the job may still run. */
static int64_t time_left(const struct cycle *c, const struct snap_job *j)
{
	int64_t left = j->walltime_us;

	if (left != GPUQ_UNLIMITED && !j->starting && j->state != SNAP_PENDING)
		left = amount_less(amount_sum(j->start_us, left), c->s->config.now_us);
	return left > 0 ? left : 0;
}

/* Hold what is left of a running job, by the flavor of each pod's node: what its pods are charged, which may be more than
 * the part that they requested. */
static void hold_running(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];

	for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++) {
		const struct snap_alloc *al = &c->s->allocs[a];

		hold(c, job, charged(c, job, c->s->nodes[al->node].flavor, cost_of_alloc(c->s, al)),
		     time_left(c, j));
	}
}

/* Note that the plan may change then by time alone. */
static void wake_at(struct cycle *c, int64_t us)
{
	if (us > c->s->config.now_us && us < c->plan.wake_us)
		c->plan.wake_us = us;
}

/* Note when another plan may come out: a new period returns what was used, and a soft budget runs
 * out while jobs run. */
static void note_wake(struct cycle *c, uint32_t queue)
{
	const struct snap_queue *q = &c->s->queues[queue];
	const int64_t left = amount_less(q->budget_gpu_ms, q->budget_used_gpu_ms);
	const int64_t rate = c->holdings->budgets->rate_milli[queue];
	fixed_u128 us;

	if (q->budget_reset_us)
		wake_at(c, q->budget_reset_us);
	if (q->budget_hard || left <= 0 || rate <= 0)
		return;
	us = (fixed_u128)(uint64_t)left * 1000000;
	if (us >> 63 < (uint64_t)rate)
		wake_at(c, amount_sum(c->s->config.now_us,
				      amount_sum((int64_t)fixed_div(us, (uint64_t)rate), 1)));
}

void budget_init(struct cycle *c)
{
	const struct snapshot *s = c->s;
	bool any = false;

	for (uint32_t q = 0; q < s->n_queues; q++)
		any |= s->queues[q].budget_gpu_ms != GPUQ_UNLIMITED;
	for (uint32_t i = 0; i < s->n_caps; i++)
		any |= s->caps[i].left_gpu_ms != GPUQ_UNLIMITED;
	if (!any || c->failed)
		return;
	c->holdings->budgets = cycle_alloc(c, 1, sizeof(*c->holdings->budgets));
	if (!c->holdings->budgets)
		return;
	c->holdings->budgets->held_ms =
		cycle_alloc(c, s->n_queues, sizeof(*c->holdings->budgets->held_ms));
	c->holdings->budgets->rate_milli =
		cycle_alloc(c, s->n_queues, sizeof(*c->holdings->budgets->rate_milli));
	for (uint32_t k = 0; k < s->lines.n_busy && !c->failed; k++)
		if (s->jobs[s->lines.busy[k]].state != SNAP_PENDING)
			hold_running(c, s->lines.busy[k]);
	for (uint32_t q = 0; q < s->n_queues && !c->failed; q++)
		if (s->queues[q].budget_gpu_ms != GPUQ_UNLIMITED)
			note_wake(c, q);
}

void budget_start(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli)
{
	const struct snap_job *j = &c->s->jobs[job];

	if (c->holdings->budgets)
		hold(c, job, charged(c, job, flavor, gpus_milli), j->walltime_us);
}

void budget_grow(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli)
{
	if (c->holdings->budgets)
		hold(c, job, charged(c, job, flavor, gpus_milli), time_left(c, &c->s->jobs[job]));
}

/* True if the budgets of the job's queues have need GPU-milliseconds left. */
static bool affords(struct cycle *c, uint32_t job, int64_t need, struct plan_reason *why)
{
	if (c->holdings->budgets && need > 0 && !caps_afford(c, job, need, why))
		return false;
	for (uint32_t q = c->s->jobs[job].queue; c->holdings->budgets && need > 0 && q != SNAP_NONE;
	     q = c->s->queues[q].parent) {
		const struct snap_queue *queue = &c->s->queues[q];
		const int64_t unused = amount_less(queue->budget_gpu_ms, queue->budget_used_gpu_ms);
		int64_t left = amount_less(unused, c->holdings->budgets->held_ms[q]);

		if (queue->budget_gpu_ms == GPUQ_UNLIMITED || !queue->budget_hard || need <= left)
			continue;
		why->code = need > unused ? GPUQ_R_BUDGET : GPUQ_R_BUDGET_COMMITTED;
		why->unit = PLAN_COUNT;
		why->object = queue->name;
		left = need > unused ? unused : left;
		why->have = left > 0 ? left / MS_PER_MINUTE : 0;
		why->need =
			need == GPUQ_UNLIMITED ? need : (need + MS_PER_MINUTE - 1) / MS_PER_MINUTE;
		return false;
	}
	return true;
}

bool budget_admits(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli,
		   struct plan_reason *why)
{
	const struct snap_job *j = &c->s->jobs[job];

	return affords(c, job, cost(charged(c, job, flavor, gpus_milli), j->walltime_us), why);
}

bool budget_admits_more(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli,
			struct plan_reason *why)
{
	const int64_t left = time_left(c, &c->s->jobs[job]);

	return affords(c, job, cost(charged(c, job, flavor, gpus_milli), left), why);
}
