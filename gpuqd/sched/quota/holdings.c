#include "gpuqd/sched/quota/holdings.h"

#include <string.h>

#include "gpuqd/sched/quota/budget.h"
#include "gpuqd/sched/quota/caps.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/quota/cycle.h"

#include "gpuqd/sched/quota/fairshare.h"

/* Holdings, demand and fair shares of queues, and whether a queue may hold more. */

/* The holdings of one user in a queue with limits per user. */
struct user_use {
	uint32_t queue, user;
	int64_t running, gpus_milli;
};

#define MEMORY_UNIT (INT64_C(1) << 30) /* memory is divided in GiB */

static int64_t *cell(const struct cycle *c, int64_t *table, uint32_t queue, uint32_t res)
{
	return &table[(size_t)queue * c->s->n_res + res];
}

static void add(int64_t *to, int64_t amount)
{
	*to = amount_sum(*to, amount);
}

static const struct snap_share *share_of(const struct cycle *c, uint32_t queue, uint32_t res)
{
	return &c->s->shares[(size_t)queue * c->s->n_res + res];
}

int64_t holdings_need(const struct cycle *c, uint32_t job, uint32_t flavor, uint32_t res)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];

	if (c->more)
		return c->more[res];
	if (res == flavor)
		return r->by_memory ? cost_of_request(c->s, r, flavor) : r->gpus_milli;
	if (res == snap_cpu(c->s))
		return r->cpu_milli;
	if (res == snap_memory(c->s))
		return r->memory_bytes;
	return 0;
}

/* ---- users ---- */

static struct user_use *user_use(struct cycle *c, uint32_t queue, uint32_t user)
{
	const uint32_t mask = c->n_user_slots - 1;
	uint32_t at = (queue * UINT32_C(2654435761) ^ user * UINT32_C(2246822519)) & mask;
	struct user_use *u;

	for (; c->user_slots[at]; at = (at + 1) & mask) {
		u = &c->user_uses[c->user_slots[at] - 1];
		if (u->queue == queue && u->user == user)
			return u;
	}
	u = CYCLE_PUSH(c, user_uses, 1);
	if (!u)
		return NULL;
	*u = (struct user_use){ .queue = queue, .user = user };
	c->user_slots[at] = c->n_user_uses;
	return u;
}

static bool limits_users(const struct snap_queue *q)
{
	return q->user_max_running != GPUQ_UNLIMITED || q->user_max_gpus_milli != GPUQ_UNLIMITED;
}

static void init_users(struct cycle *c)
{
	const struct snapshot *s = c->s;
	uint64_t room = 64, limiting = 0, pairs, by_jobs;
	uint32_t depth = 0;

	for (uint32_t q = 0; q < s->n_queues; q++) {
		const uint32_t p = s->queues[q].parent;

		c->stopped[q] = s->queues[q].stopped || (p != SNAP_NONE && c->stopped[p]);
		c->per_user[q] = limits_users(&s->queues[q]) || (p != SNAP_NONE && c->per_user[p]);
		limiting += limits_users(&s->queues[q]);
		depth = s->queues[q].depth > depth ? s->queues[q].depth : depth;
		for (uint32_t r = 0; r < s->n_res; r++)
			c->lends_limited |= share_of(c, q, r)->lend != GPUQ_UNLIMITED;
	}
	if (limiting == 0)
		return;
	/* At most one entry for each user of each such queue, and for each job on each
	 * queue of its path; the table is never more than half full. */
	pairs = limiting * s->n_users;
	by_jobs = (uint64_t)s->n_jobs * (depth + 1);
	while (room < 2 * (pairs < by_jobs ? pairs : by_jobs))
		room *= 2;
	c->n_user_slots = (uint32_t)room;
	c->user_slots = cycle_alloc(c, room, sizeof(*c->user_slots));
}

static void count_user(struct cycle *c, uint32_t job, int64_t gpus_milli, bool starts)
{
	const struct snap_job *j = &c->s->jobs[job];

	for (uint32_t q = j->queue; q != SNAP_NONE && c->per_user[q]; q = c->s->queues[q].parent) {
		struct user_use *u;

		if (!limits_users(&c->s->queues[q]))
			continue;
		u = user_use(c, q, j->user);
		if (!u)
			return;
		u->running += starts;
		add(&u->gpus_milli, gpus_milli);
	}
}

/* ---- holdings ---- */

static void charge(struct cycle *c, uint32_t queue, uint32_t res, int64_t amount, bool firm)
{
	c->idle[res] = amount_less(c->idle[res], amount);
	for (uint32_t q = queue; amount && q != SNAP_NONE; q = c->s->queues[q].parent) {
		add(cell(c, c->held, q, res), amount);
		if (firm)
			add(cell(c, c->firm, q, res), amount);
	}
}

static void count_running(struct cycle *c, uint32_t queue)
{
	for (uint32_t q = queue; q != SNAP_NONE; q = c->s->queues[q].parent)
		c->running[q]++;
}

void holdings_leaves(struct cycle *c, uint32_t queue, const int64_t *amounts, int64_t sign)
{
	for (uint32_t q = queue; q != SNAP_NONE; q = c->s->queues[q].parent)
		for (uint32_t res = 0; res < c->s->n_res; res++)
			*cell(c, c->leaving, q, res) += sign * amounts[res];
}

void holdings_job_leaves(struct cycle *c, uint32_t queue, int64_t sign)
{
	for (uint32_t q = queue; q != SNAP_NONE; q = c->s->queues[q].parent)
		c->parting[q] += sign;
}

/* Pods of a group are ordered by index: the surplus comes after the pods that the group must
 * have. */
bool holdings_is_surplus(const struct cycle *c, const struct snap_alloc *a)
{
	const struct snap_job *j = &c->s->jobs[a->job];
	const uint32_t must = snap_group_of(c->s, a)->pods_min;
	uint32_t before = 0;

	if (j->n_allocs <= c->s->requests[j->request].n_pods)
		return false;
	for (const struct snap_alloc *o = &c->s->allocs[j->alloc_first]; o < a && before < must;
	     o++)
		before += o->group == a->group && !o->releasing;
	return before >= must;
}

/* Charge a pod to its queue. Return its amount of devices. */
static int64_t charge_pod(struct cycle *c, const struct snap_alloc *a, bool firm, bool leaves)
{
	const struct snapshot *s = c->s;
	const struct snap_group *g = snap_group_of(s, a);
	const uint32_t queue = s->jobs[a->job].queue, f = s->nodes[a->node].flavor;
	const int64_t devices = cost_of_alloc(s, a);
	const struct {
		uint32_t res;
		int64_t amount;
	} parts[] = {
		{ f, devices },
		{ snap_cpu(s), g->cpu_milli },
		{ snap_memory(s), g->memory_bytes },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].res == SNAP_NONE || parts[i].amount == 0)
			continue;
		charge(c, queue, parts[i].res, parts[i].amount, firm);
		for (uint32_t q = queue; leaves && q != SNAP_NONE; q = s->queues[q].parent)
			add(cell(c, c->leaving, q, parts[i].res), parts[i].amount);
	}
	return devices;
}

/* Add what a running job wants in the end, by the flavor it is on. */
static void demand_of(struct cycle *c, const struct snap_job *j)
{
	const struct snapshot *s = c->s;
	const struct snap_request *r = &s->requests[j->request];
	const uint32_t f = j->n_allocs
				   ? cost_flavor(s, &s->allocs[j->alloc_first], j->n_allocs)
				   : cost_flavor(s, &s->promises[j->promise_first], j->n_promises);

	for (uint32_t g = 0; g < r->n_groups; g++) {
		const struct snap_group *group = &r->groups[g];

		if (f != SNAP_NONE)
			add(cell(c, c->demand, j->queue, f),
			    amount_times(cost_of_pod(s, group, f), group->pods_max));
		add(cell(c, c->demand, j->queue, snap_cpu(s)),
		    amount_times(group->cpu_milli, group->pods_max));
		add(cell(c, c->demand, j->queue, snap_memory(s)),
		    amount_times(group->memory_bytes, group->pods_max));
	}
}

static void charge_held(struct cycle *c)
{
	const struct snapshot *s = c->s;

	for (uint32_t k = 0; k < s->lines.n_busy; k++) {
		const uint32_t i = s->lines.busy[k];
		const struct snap_job *j = &s->jobs[i];
		const bool promised = bits_has(c->promised, i);
		int64_t gpus = 0;

		if (j->state == SNAP_PENDING && !promised)
			continue;
		/* An elastic job can be shrunk even if it is not preemptible. */
		if (j->state == SNAP_RUNNING && j->priority < c->least_priority[j->queue] &&
		    (j->preemptible || j->n_allocs > s->requests[j->request].n_pods))
			c->least_priority[j->queue] = j->priority;
		for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++) {
			const struct snap_alloc *al = &s->allocs[a];

			gpus = amount_sum(gpus,
					  charge_pod(c, al,
						     !j->preemptible && !holdings_is_surplus(c, al),
						     al->releasing || j->state == SNAP_LEAVING));
		}
		for (uint32_t p = j->promise_first;
		     promised && p < j->promise_first + j->n_promises; p++) {
			gpus = amount_sum(gpus,
					  charge_pod(c, &s->promises[p], !j->preemptible, false));
		}
		if (j->state == SNAP_RUNNING || promised ||
		    (j->state == SNAP_LEAVING && j->returns))
			demand_of(c, j);
		count_running(c, j->queue);
		if (j->state == SNAP_LEAVING && !promised)
			holdings_job_leaves(c, j->queue, 1);
		count_user(c, i, gpus, true);
		caps_count(c, i, gpus, true);
	}
}

/* ---- demand and fair share ---- */

/* Return the number of elements that the throttle of the array allows to start now. */
static int64_t startable(const struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	int64_t room;

	if (j->throttle == 0 || j->n_ranges == 0)
		return j->n_waiting;
	room = (int64_t)j->throttle - c->array_running[c->s->lines.array_of[job]];
	if (room < 0)
		room = 0;
	return room < j->n_waiting ? room : j->n_waiting;
}

static void sum_demand(struct cycle *c)
{
	const struct snapshot *s = c->s;

	for (uint32_t k = 0; k < s->lines.n_runs; k++) {
		const struct snap_run *run = &s->lines.runs[k];
		const struct snap_job *j = &s->jobs[run->first];
		const struct snap_request *r = &s->requests[j->request];
		int64_t n;

		if (c->class_of[k] == SNAP_NONE)
			continue;
		n = run->n_jobs == 1 ? startable(c, run->first) : run->n_jobs;
		for (uint32_t g = 0; g < r->n_groups; g++) {
			const struct snap_group *group = &r->groups[g];
			const int64_t pods = amount_times(group->pods_max, n);

			for (uint32_t f = 0; group->gpus_milli && f < r->n_flavor_ix; f++)
				add(cell(c, c->demand, j->queue, r->flavor_ix[f]),
				    amount_times(cost_of_pod(s, group, r->flavor_ix[f]), pods));
			add(cell(c, c->demand, j->queue, snap_cpu(s)),
			    amount_times(group->cpu_milli, pods));
			add(cell(c, c->demand, j->queue, snap_memory(s)),
			    amount_times(group->memory_bytes, pods));
		}
	}
	for (uint32_t q = s->n_queues; q-- > 0;) {
		for (uint32_t res = 0; res < s->n_res; res++) {
			int64_t *d = cell(c, c->demand, q, res);
			const int64_t limit = share_of(c, q, res)->limit;

			if (*d > limit)
				*d = limit;
			if (s->queues[q].parent != SNAP_NONE) {
				int64_t *up = cell(c, c->demand, s->queues[q].parent, res);

				*up = amount_sum(*up, *d);
			}
		}
	}
}

/* A queue without a quota of cpu or memory may hold any amount of it, and is guaranteed none. */
static int64_t guaranteed(const struct cycle *c, uint32_t queue, uint32_t res)
{
	const int64_t quota = share_of(c, queue, res)->quota;

	return res >= c->s->n_flavors && quota == GPUQ_UNLIMITED ? 0 : quota;
}

/* Divide one resource among the children of a queue (or of the root: SNAP_NONE). */
static void divide_below(struct cycle *c, uint32_t parent, uint32_t res, struct share_child *kids)
{
	const struct snapshot *s = c->s;
	const uint32_t first = c->kid_first[parent == SNAP_NONE ? s->n_queues : parent];
	const int64_t total =
		parent == SNAP_NONE ? s->capacity[res] : *cell(c, c->fair, parent, res);
	uint32_t n = 0;

	for (uint32_t q = first; q != SNAP_NONE; q = c->kid_next[q]) {
		kids[n++] = (struct share_child){
			.quota = guaranteed(c, q, res),
			.demand = *cell(c, c->demand, q, res),
			.weight_milli = s->queues[q].weight_milli,
			.rank = budget_rank(s, q),
			.usage_micro = s->queues[q].usage_micro,
		};
	}
	if (n == 0)
		return;
	fairshare_divide(kids, n, total, res == snap_memory(s) ? MEMORY_UNIT : SNAP_MILLI,
			 s->config.usage_k_milli);
	n = 0;
	for (uint32_t q = first; q != SNAP_NONE; q = c->kid_next[q])
		*cell(c, c->fair, q, res) = kids[n++].fair;
}

void holdings_shares(struct cycle *c)
{
	const struct snapshot *s = c->s;
	struct share_child *kids = cycle_alloc(c, s->n_queues, sizeof(*kids));

	if (!kids)
		return;
	if (s->config.usage_k_milli > 0 && s->config.usage_step_us > 0 &&
	    amount_sum(s->config.now_us, s->config.usage_step_us) < c->wake_us)
		c->wake_us = amount_sum(s->config.now_us, s->config.usage_step_us);
	sum_demand(c);
	for (uint32_t res = 0; res < s->n_res; res++) {
		divide_below(c, SNAP_NONE, res, kids);
		for (uint32_t q = 0; q < s->n_queues; q++)
			divide_below(c, q, res, kids);
	}
}

/* Hold the licenses of jobs with a nominated placement from an earlier cycle. */
static void hold_licenses(struct cycle *c)
{
	const struct snapshot *s = c->s;

	for (uint32_t k = 0; s->n_licenses && s->n_promises && k < s->lines.n_busy; k++) {
		const struct snap_job *j = &s->jobs[s->lines.busy[k]];
		const struct snap_request *r = &s->requests[j->request];

		if (j->state != SNAP_PENDING || !bits_has(c->promised, s->lines.busy[k]))
			continue;
		for (uint32_t i = 0; i < r->n_licenses; i++)
			c->license_free[r->licenses[i].license] -= r->licenses[i].count;
	}
}

void holdings_init(struct cycle *c)
{
	const struct snapshot *s = c->s;
	const size_t cells = (size_t)s->n_queues * s->n_res;

	c->held = cycle_alloc(c, cells, sizeof(*c->held));
	c->leaving = cycle_alloc(c, cells, sizeof(*c->leaving));
	c->firm = cycle_alloc(c, cells, sizeof(*c->firm));
	c->demand = cycle_alloc(c, cells, sizeof(*c->demand));
	c->fair = cycle_alloc(c, cells, sizeof(*c->fair));
	c->idle = cycle_alloc(c, s->n_res, sizeof(*c->idle));
	c->running = cycle_alloc(c, s->n_queues, sizeof(*c->running));
	c->parting = cycle_alloc(c, s->n_queues, sizeof(*c->parting));
	c->least_priority = cycle_alloc(c, s->n_queues, sizeof(*c->least_priority));
	c->stopped = cycle_alloc(c, s->n_queues, sizeof(*c->stopped));
	c->per_user = cycle_alloc(c, s->n_queues, sizeof(*c->per_user));
	c->license_free = cycle_alloc(c, s->n_licenses, sizeof(*c->license_free));
	c->kid_first = cycle_alloc(c, (size_t)s->n_queues + 1, sizeof(*c->kid_first));
	c->kid_next = cycle_alloc(c, s->n_queues, sizeof(*c->kid_next));
	if (c->failed)
		return;
	if (s->n_res)
		memcpy(c->idle, s->capacity, s->n_res * sizeof(*c->idle));
	for (uint32_t q = 0; q < s->n_queues; q++)
		c->least_priority[q] = INT64_MAX;
	for (uint32_t l = 0; l < s->n_licenses; l++)
		c->license_free[l] = s->licenses[l].count - s->licenses[l].used;
	for (uint32_t q = 0; q <= s->n_queues; q++)
		c->kid_first[q] = SNAP_NONE;
	for (uint32_t q = s->n_queues; q-- > 0;) {
		const uint32_t p = s->queues[q].parent;
		uint32_t *first = &c->kid_first[p == SNAP_NONE ? s->n_queues : p];

		c->kid_next[q] = *first;
		*first = q;
	}
	init_users(c);
	caps_init(c);
	if (!c->failed)
		charge_held(c);
	if (!c->failed)
		hold_licenses(c);
	budget_init(c);
}

void holdings_start(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = &c->s->requests[j->request];

	for (uint32_t res = 0; res < c->s->n_res; res++)
		charge(c, j->queue, res, holdings_need(c, job, flavor, res), !j->preemptible);
	count_running(c, j->queue);
	count_user(c, job, r->gpus_milli, true);
	caps_count(c, job, r->gpus_milli, true);
	budget_start(c, job, flavor);
	for (uint32_t i = 0; i < r->n_licenses; i++)
		c->license_free[r->licenses[i].license] -= r->licenses[i].count;
}

/* ---- limits on a start ---- */

static enum plan_unit unit_of(const struct cycle *c, uint32_t res)
{
	if (res == snap_cpu(c->s))
		return PLAN_CPU;
	return res == snap_memory(c->s) ? PLAN_BYTES : PLAN_GPUS;
}

/* Return what counts against limits: pods that are ending count until they are gone. */
static int64_t used(const struct cycle *c, uint32_t queue, uint32_t res)
{
	const size_t at = (size_t)queue * c->s->n_res + res;

	return c->held[at] - (c->in_later ? c->leaving[at] : 0);
}

/* Refuse unless need <= limit - used. */
static bool within(struct plan_reason *why, enum gpuq_reason code, enum plan_unit unit,
		   const char *object, int64_t limit, int64_t used, int64_t need)
{
	if (limit == GPUQ_UNLIMITED || need <= limit - used)
		return true;
	why->code = code;
	why->unit = unit;
	why->object = object;
	why->have = limit > used ? limit - used : 0;
	why->need = need;
	return false;
}

static bool job_admitted(struct cycle *c, uint32_t job, struct plan_reason *why)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t gpus = c->s->requests[j->request].gpus_milli;

	for (uint32_t q = j->queue; q != SNAP_NONE; q = c->s->queues[q].parent) {
		const struct snap_queue *queue = &c->s->queues[q];

		if (!within(why, GPUQ_R_LIMIT_JOB, PLAN_GPUS, queue->name,
			    queue->job_max_gpus_milli, 0, gpus))
			return false;
	}
	return true;
}

static bool user_admitted(struct cycle *c, uint32_t job, struct plan_reason *why)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t gpus = c->s->requests[j->request].gpus_milli;

	for (uint32_t q = j->queue; q != SNAP_NONE && c->per_user[q]; q = c->s->queues[q].parent) {
		const struct snap_queue *queue = &c->s->queues[q];
		const struct user_use *u;

		if (!limits_users(queue))
			continue;
		u = user_use(c, q, j->user);
		if (!u)
			return false;
		if (!within(why, GPUQ_R_LIMIT_USER, PLAN_COUNT, queue->name,
			    queue->user_max_running, u->running, 1) ||
		    !within(why, GPUQ_R_LIMIT_USER, PLAN_GPUS, queue->name,
			    queue->user_max_gpus_milli, u->gpus_milli, gpus))
			return false;
	}
	return true;
}

/* Check the limit on devices of all flavors together. */
static bool devices_admit(const struct cycle *c, uint32_t q, int64_t need, struct plan_reason *why)
{
	const struct snap_queue *queue = &c->s->queues[q];
	int64_t sum = 0;

	if (need == 0 || queue->max_gpus_milli == GPUQ_UNLIMITED)
		return true;
	for (uint32_t f = 0; f < c->s->n_flavors; f++)
		add(&sum, used(c, q, f));
	return within(why, GPUQ_R_LIMIT_QUEUE, PLAN_GPUS, queue->name, queue->max_gpus_milli, sum,
		      need);
}

static bool queues_admit(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t gpus = flavor == SNAP_NONE ? 0 : holdings_need(c, job, flavor, flavor);

	for (uint32_t q = j->queue; q != SNAP_NONE; q = c->s->queues[q].parent) {
		const struct snap_queue *queue = &c->s->queues[q];

		if (!within(why, GPUQ_R_LIMIT_QUEUE, PLAN_COUNT, queue->name, queue->max_running,
			    c->running[q] - (c->in_later ? c->parting[q] : 0), 1) ||
		    !devices_admit(c, q, gpus, why))
			return false;
		for (uint32_t res = 0; res < c->s->n_res; res++) {
			const int64_t need = holdings_need(c, job, flavor, res);
			const struct snap_share *share = share_of(c, q, res);

			if (need == 0)
				continue;
			if (!within(why, GPUQ_R_LIMIT_QUEUE, unit_of(c, res), queue->name,
				    share->limit, used(c, q, res), need))
				return false;
			/* A job that is not preemptible must stay within quotas,
			 * otherwise the quotas of other queues would guarantee nothing. */
			if (!j->preemptible &&
			    !within(why, GPUQ_R_QUOTA, unit_of(c, res), queue->name, share->quota,
				    *cell(c, c->firm, q, res), need))
				return false;
		}
	}
	return true;
}

/* Return the idle quota of the siblings of q that they do not lend. */
static int64_t kept_back(const struct cycle *c, uint32_t q, uint32_t res, const char **keeper)
{
	const uint32_t p = c->s->queues[q].parent;
	int64_t sum = 0;

	for (uint32_t y = c->kid_first[p == SNAP_NONE ? c->s->n_queues : p]; y != SNAP_NONE;
	     y = c->kid_next[y]) {
		const struct snap_share *share = share_of(c, y, res);
		int64_t kept;

		if (y == q || share->lend == GPUQ_UNLIMITED || share->quota == GPUQ_UNLIMITED)
			continue;
		kept = amount_less(share->quota - share->lend, used(c, y, res));
		if (kept <= 0)
			continue;
		sum += kept;
		*keeper = c->s->queues[y].name;
	}
	return sum;
}

/* A queue that exceeds a quota on the path up must leave what its siblings there do not lend. */
static bool lenders_admit(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why)
{
	for (uint32_t res = 0; c->lends_limited && res < c->s->n_res; res++) {
		const int64_t need = holdings_need(c, job, flavor, res);
		const char *keeper = NULL;
		int64_t kept = 0, taken = 0;

		if (need == 0 || c->s->capacity[res] == GPUQ_UNLIMITED)
			continue;
		for (uint32_t q = c->s->jobs[job].queue; q != SNAP_NONE; q = c->s->queues[q].parent)
			if (share_of(c, q, res)->quota - used(c, q, res) < need)
				kept += kept_back(c, q, res, &keeper);
		for (uint32_t q = c->kid_first[c->s->n_queues]; q != SNAP_NONE; q = c->kid_next[q])
			add(&taken, used(c, q, res));
		if (kept > 0 && !within(why, GPUQ_R_QUOTA, unit_of(c, res), keeper,
					c->s->capacity[res] - kept, taken, need))
			return false;
	}
	return true;
}

static bool licenses_admit(struct cycle *c, uint32_t job, struct plan_reason *why)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];

	for (uint32_t i = 0; i < r->n_licenses; i++) {
		const struct snap_license *l = &c->s->licenses[r->licenses[i].license];

		if (!within(why, GPUQ_R_LICENSE, PLAN_COUNT, l->name,
			    c->license_free[r->licenses[i].license], 0, r->licenses[i].count))
			return false;
	}
	return true;
}

bool holdings_admits_more(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts)
{
	const int64_t gpus = flavor == SNAP_NONE ? 0 : amounts[flavor];
	struct plan_reason why = { .object = "" };
	bool admitted = true;

	c->more = amounts;
	for (uint32_t q = c->s->jobs[job].queue; admitted && q != SNAP_NONE;
	     q = c->s->queues[q].parent) {
		admitted = devices_admit(c, q, gpus, &why);
		for (uint32_t res = 0; admitted && res < c->s->n_res; res++)
			admitted = amounts[res] == 0 ||
				   within(&why, GPUQ_R_LIMIT_QUEUE, unit_of(c, res),
					  c->s->queues[q].name, share_of(c, q, res)->limit,
					  used(c, q, res), amounts[res]);
	}
	for (uint32_t q = c->s->jobs[job].queue; admitted && q != SNAP_NONE && c->per_user[q];
	     q = c->s->queues[q].parent) {
		const struct user_use *u = limits_users(&c->s->queues[q])
						   ? user_use(c, q, c->s->jobs[job].user)
						   : NULL;

		admitted = !u || gpus == 0 ||
			   within(&why, GPUQ_R_LIMIT_USER, PLAN_GPUS, c->s->queues[q].name,
				  c->s->queues[q].user_max_gpus_milli, u->gpus_milli, gpus);
	}
	admitted = admitted && lenders_admit(c, job, flavor, &why) &&
		   caps_admit(c, job, gpus, false, &why) &&
		   budget_admits_more(c, job, flavor, gpus, &why);
	c->more = NULL;
	return admitted;
}

void holdings_grow(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts)
{
	const int64_t gpus = flavor == SNAP_NONE ? 0 : amounts[flavor];

	for (uint32_t res = 0; res < c->s->n_res; res++)
		charge(c, c->s->jobs[job].queue, res, amounts[res], false);
	count_user(c, job, gpus, false);
	caps_count(c, job, gpus, false);
	budget_grow(c, job, flavor, gpus);
}

bool holdings_admits(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why)
{
	*why = (struct plan_reason){ .object = "" };
	return job_admitted(c, job, why) && user_admitted(c, job, why) &&
	       caps_admit(c, job, c->s->requests[c->s->jobs[job].request].gpus_milli, true, why) &&
	       queues_admit(c, job, flavor, why) && budget_admits(c, job, flavor, why) &&
	       lenders_admit(c, job, flavor, why) && licenses_admit(c, job, why);
}
