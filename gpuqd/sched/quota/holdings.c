#include "gpuqd/sched/quota/holdings.h"

#include <string.h>

#include "gpuqd/sched/quota/budget.h"
#include "gpuqd/sched/quota/caps.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/quota/cycle.h"

#include "gpuqd/sched/quota/fairshare.h"
#include "gpuqd/sched/quota/holdings_int.h"
#include "gpuqd/sched/quota/users.h"

/* Holdings, demand and fair shares of queues, and whether a queue may hold more. */

#define MEMORY_UNIT (INT64_C(1) << 30) /* memory is divided in GiB */

/* Return the entry of a table by queue and resource. */
static int64_t *cell(const struct cycle *c, int64_t *table, uint32_t queue, uint32_t res)
{
	return &table[(size_t)queue * c->s->n_res + res];
}

/* Add an amount, without overflow. */
static void add(int64_t *to, int64_t amount)
{
	*to = amount_sum(*to, amount);
}

static const struct snap_share *share_of(const struct cycle *c, uint32_t queue, uint32_t res)
{
	return &c->s->shares[(size_t)queue * c->s->n_res + res];
}

/* Return the devices that limits count for the start of a job on the flavor: the most that it can be charged
 * there. The charge of a part by its memory is known when it is placed, and is no more. */
static int64_t devices_need(const struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_request *r = cycle_request(c, job);

	return r->by_memory && flavor != SNAP_NONE ? cost_of_request(c->s, r, flavor)
						   : r->gpus_milli;
}

int64_t holdings_need(const struct cycle *c, uint32_t job, uint32_t flavor, uint32_t res)
{
	const struct snap_request *r = cycle_request(c, job);

	/* An elastic job's growth is tested by the same rules with the amounts of its new pods. */
	if (c->holdings->more)
		return c->holdings->more[res];
	if (res == flavor)
		return c->holdings->charge >= 0 ? c->holdings->charge
						: devices_need(c, job, flavor);
	if (res == snap_cpu(c->s))
		return r->cpu_milli;
	if (res == snap_memory(c->s))
		return r->memory_bytes;
	return 0;
}

/* ---- holdings ---- */

/* Charge an amount to a queue and all its ancestors. `firm` marks what cannot be preempted: only
 * that counts against the quota of jobs that are not preemptible. */
static void charge(struct cycle *c, uint32_t queue, uint32_t res, int64_t amount, bool firm)
{
	c->holdings->idle[res] = amount_less(c->holdings->idle[res], amount);
	for (uint32_t q = queue; amount && q != SNAP_NONE; q = c->s->queues[q].parent) {
		add(cell(c, c->holdings->held, q, res), amount);
		if (firm)
			add(cell(c, c->holdings->firm, q, res), amount);
	}
}

/* Count a job in its queue and all its ancestors. */
static void count_running(struct cycle *c, uint32_t queue)
{
	for (uint32_t q = queue; q != SNAP_NONE; q = c->s->queues[q].parent)
		c->holdings->running[q]++;
}

void holdings_leaves(struct cycle *c, uint32_t queue, const int64_t *amounts, int64_t sign)
{
	for (uint32_t q = queue; q != SNAP_NONE; q = c->s->queues[q].parent)
		for (uint32_t res = 0; res < c->s->n_res; res++)
			*cell(c, c->holdings->leaving, q, res) += sign * amounts[res];
}

void holdings_job_leaves(struct cycle *c, uint32_t queue, int64_t sign)
{
	for (uint32_t q = queue; q != SNAP_NONE; q = c->s->queues[q].parent)
		c->holdings->parting[q] += sign;
}

/* Pods of a group are ordered by index: the surplus comes after the pods that the group must
 * have. */
bool holdings_is_surplus(const struct cycle *c, const struct snap_alloc *a)
{
	const struct snap_job *j = &c->s->jobs[a->job];
	const uint32_t must = snap_group_of(c->s, a)->pods_min;
	uint32_t before = 0;

	/* A gang without additional pods has no surplus: the common case needs no counting. */
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
			add(cell(c, c->holdings->leaving, q, parts[i].res), parts[i].amount);
	}
	return devices;
}

/* Return what the n pods of a group want that share claims: what they are charged, since a group that has such claims
 * requests no more devices for them. Some of these pods may be charged nothing, as another job's pod is charged for the
 * claim. -1 = it has none. */
static int64_t shared_demand(const struct snapshot *s, const struct snap_alloc *pods, uint32_t n,
			     uint32_t group)
{
	bool shares = false;
	int64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (pods[i].group != group)
			continue;
		shares |= pods[i].shares;
		add(&sum, cost_of_alloc(s, &pods[i]));
	}
	return shares ? sum : -1;
}

/* Add what a running job wants in the end, by the flavor it is on. */
static void demand_of(struct cycle *c, const struct snap_job *j)
{
	const struct snapshot *s = c->s;
	const struct snap_request *r = &s->requests[j->request];
	/* A job without pods has a nominated placement: its flavor counts then. */
	const struct snap_alloc *pods =
		j->n_allocs ? &s->allocs[j->alloc_first] : &s->promises[j->promise_first];
	const uint32_t n = j->n_allocs ? j->n_allocs : j->n_promises;
	const uint32_t f = cost_flavor(s, pods, n);

	for (uint32_t g = 0; g < r->n_groups; g++) {
		const struct snap_group *group = &r->groups[g];
		const int64_t shared = shared_demand(s, pods, n, g);

		if (f != SNAP_NONE)
			add(cell(c, c->holdings->demand, j->queue, f),
			    shared >= 0 ? shared
					: amount_times(cost_of_pod(s, group, f), group->pods_max));
		add(cell(c, c->holdings->demand, j->queue, snap_cpu(s)),
		    amount_times(group->cpu_milli, group->pods_max));
		add(cell(c, c->holdings->demand, j->queue, snap_memory(s)),
		    amount_times(group->memory_bytes, group->pods_max));
	}
}

/* Charge all jobs that hold capacity or have a nominated placement; jobs that are merely pending
 * hold nothing. */
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
		if (j->state == SNAP_RUNNING &&
		    j->priority < c->holdings->least_priority[j->queue] &&
		    (j->preemptible || j->n_allocs > s->requests[j->request].n_pods))
			c->holdings->least_priority[j->queue] = j->priority;
		for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++) {
			const struct snap_alloc *al = &s->allocs[a];

			/* Surplus pods can be released at any time, so they are firm in no case. */
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
		/* A job being preempted that will be pending again still wants its devices. */
		if (j->state == SNAP_RUNNING || promised ||
		    (j->state == SNAP_LEAVING && j->returns))
			demand_of(c, j);
		count_running(c, j->queue);
		if (j->state == SNAP_LEAVING && !promised)
			holdings_job_leaves(c, j->queue, 1);
		users_count(c, i, gpus, true);
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
	room = (int64_t)j->throttle - c->holdings->array_running[c->s->lines.array_of[job]];
	if (room < 0)
		room = 0;
	return room < j->n_waiting ? room : j->n_waiting;
}

/* Add the demand of n pending jobs that request the same to a table of one queue; a request that
 * accepts several flavors counts in each of them, since any may serve it. */
static void add_wanted(const struct cycle *c, const struct snap_request *r, int64_t n, int64_t *to)
{
	const struct snapshot *s = c->s;

	for (uint32_t g = 0; g < r->n_groups; g++) {
		const struct snap_group *group = &r->groups[g];
		const int64_t pods = amount_times(group->pods_max, n);

		for (uint32_t f = 0; group->gpus_milli && f < r->n_flavor_ix; f++)
			add(&to[r->flavor_ix[f]],
			    amount_times(cost_of_pod(s, group, r->flavor_ix[f]), pods));
		add(&to[snap_cpu(s)], amount_times(group->cpu_milli, pods));
		add(&to[snap_memory(s)], amount_times(group->memory_bytes, pods));
	}
}

/* Add the demand of pending jobs, those that were left out of the snapshot too, and sum demand up
 * the tree. A run of equal jobs is counted at once. */
static void sum_demand(struct cycle *c)
{
	const struct snapshot *s = c->s;

	for (uint32_t k = 0; k < s->lines.n_runs; k++) {
		const struct snap_run *run = &s->lines.runs[k];
		const struct snap_job *j = &s->jobs[run->first];

		if (c->classes.of_run[k] != SNAP_NONE)
			add_wanted(c, &s->requests[j->request],
				   run->n_jobs == 1 ? startable(c, run->first) : run->n_jobs,
				   cell(c, c->holdings->pending, j->queue, 0));
	}
	for (size_t i = 0; i < (size_t)s->n_queues * s->n_res; i++) {
		if (s->left_out)
			add(&c->holdings->pending[i], s->left_out[i]);
		add(&c->holdings->demand[i], c->holdings->pending[i]);
	}
	/* Children come after their parents, so each queue is capped before it is added to its
	 * parent. */
	for (uint32_t q = s->n_queues; q-- > 0;) {
		for (uint32_t res = 0; res < s->n_res; res++) {
			int64_t *d = cell(c, c->holdings->demand, q, res);
			const int64_t limit = share_of(c, q, res)->limit;

			if (*d > limit)
				*d = limit;
			if (s->queues[q].parent != SNAP_NONE) {
				int64_t *up =
					cell(c, c->holdings->demand, s->queues[q].parent, res);

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
	const uint32_t first = c->kids.first[parent == SNAP_NONE ? s->n_queues : parent];
	const int64_t total =
		parent == SNAP_NONE ? s->capacity[res] : *cell(c, c->holdings->fair, parent, res);
	uint32_t n = 0;

	for (uint32_t q = first; q != SNAP_NONE; q = c->kids.next[q]) {
		kids[n++] = (struct share_child){
			.quota = guaranteed(c, q, res),
			.demand = *cell(c, c->holdings->demand, q, res),
			.weight_milli = s->queues[q].weight_milli,
			.rank = budget_rank(s, q),
			.usage_micro = s->queues[q].usage_micro,
		};
	}
	if (n == 0)
		return;
	fairshare_divide(kids, n, total, res == snap_memory(s) ? MEMORY_UNIT : SNAP_MILLI,
			 s->config.usage_k_milli);
	/* The children are visited in the same order as above. */
	n = 0;
	for (uint32_t q = first; q != SNAP_NONE; q = c->kids.next[q])
		*cell(c, c->holdings->fair, q, res) = kids[n++].fair;
}

void holdings_shares(struct cycle *c)
{
	const struct snapshot *s = c->s;
	struct share_child *kids = cycle_alloc(c, s->n_queues, sizeof(*kids));

	if (!kids)
		return;
	/* Shares that depend on usage change as it decays: the next cycle is due after one step. */
	if (s->config.usage_k_milli > 0 && s->config.usage_step_us > 0 &&
	    amount_sum(s->config.now_us, s->config.usage_step_us) < c->plan.wake_us)
		c->plan.wake_us = amount_sum(s->config.now_us, s->config.usage_step_us);
	sum_demand(c);
	for (uint32_t res = 0; res < s->n_res; res++) {
		divide_below(c, SNAP_NONE, res, kids);
		/* Parents precede their children: a queue's share is known before it is divided. */
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
			c->holdings->license_free[r->licenses[i].license] -= r->licenses[i].count;
	}
}

void holdings_init(struct cycle *c)
{
	const struct snapshot *s = c->s;
	const size_t cells = (size_t)s->n_queues * s->n_res;
	struct holdings *h = cycle_alloc(c, 1, sizeof(*h));

	c->holdings = h;
	if (!h)
		return;
	h->charge = -1;
	for (uint32_t n = 0; n < s->n_nodes && !h->sevenths; n++)
		h->sevenths = s->nodes[n].n_mig > 0;
	h->held = cycle_alloc(c, cells, sizeof(*h->held));
	h->leaving = cycle_alloc(c, cells, sizeof(*h->leaving));
	h->firm = cycle_alloc(c, cells, sizeof(*h->firm));
	h->demand = cycle_alloc(c, cells, sizeof(*h->demand));
	h->pending = cycle_alloc(c, cells, sizeof(*h->pending));
	h->fair = cycle_alloc(c, cells, sizeof(*h->fair));
	h->idle = cycle_alloc(c, s->n_res, sizeof(*h->idle));
	h->running = cycle_alloc(c, s->n_queues, sizeof(*h->running));
	h->parting = cycle_alloc(c, s->n_queues, sizeof(*h->parting));
	h->least_priority = cycle_alloc(c, s->n_queues, sizeof(*h->least_priority));
	h->stopped = cycle_alloc(c, s->n_queues, sizeof(*h->stopped));
	h->per_user = cycle_alloc(c, s->n_queues, sizeof(*h->per_user));
	h->license_free = cycle_alloc(c, s->n_licenses, sizeof(*h->license_free));
	c->kids.first = cycle_alloc(c, (size_t)s->n_queues + 1, sizeof(*c->kids.first));
	c->kids.next = cycle_alloc(c, s->n_queues, sizeof(*c->kids.next));
	if (c->failed)
		return;
	if (s->n_res)
		memcpy(h->idle, s->capacity, s->n_res * sizeof(*h->idle));
	for (uint32_t q = 0; q < s->n_queues; q++) {
		const uint32_t p = s->queues[q].parent;

		h->least_priority[q] = INT64_MAX;
		/* Parents precede their children, so a stopped ancestor is already known. */
		h->stopped[q] = s->queues[q].stopped || (p != SNAP_NONE && h->stopped[p]);
		for (uint32_t r = 0; r < s->n_res; r++)
			h->lends_limited |= share_of(c, q, r)->lend != GPUQ_UNLIMITED;
	}
	for (uint32_t l = 0; l < s->n_licenses; l++)
		h->license_free[l] = s->licenses[l].count - s->licenses[l].used;
	for (uint32_t q = 0; q <= s->n_queues; q++)
		c->kids.first[q] = SNAP_NONE;
	/* Backwards, so that each list of children is in ascending order. */
	for (uint32_t q = s->n_queues; q-- > 0;) {
		const uint32_t p = s->queues[q].parent;
		uint32_t *first = &c->kids.first[p == SNAP_NONE ? s->n_queues : p];

		c->kids.next[q] = *first;
		*first = q;
	}
	users_init(c);
	caps_init(c);
	if (!c->failed)
		charge_held(c);
	if (!c->failed)
		hold_licenses(c);
	budget_init(c);
}

/* Rooms above this one know which nodes a job may use and what they have; limits know neither. */
void holdings_ask_charges(struct cycle *c, holdings_charge_fn *least)
{
	c->holdings->least_charge = least;
}

void holdings_start(struct cycle *c, uint32_t job, uint32_t flavor, int64_t devices)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = cycle_request(c, job);

	if (devices < 0)
		devices = devices_need(c, job, flavor);
	for (uint32_t res = 0; res < c->s->n_res; res++)
		charge(c, j->queue, res,
		       res == flavor ? devices : holdings_need(c, job, flavor, res),
		       !j->preemptible);
	count_running(c, j->queue);
	users_count(c, job, devices, true);
	caps_count(c, job, devices, true);
	budget_start(c, job, flavor, devices);
	for (uint32_t i = 0; i < r->n_licenses; i++)
		c->holdings->license_free[r->licenses[i].license] -= r->licenses[i].count;
}

/* ---- limits on a start ---- */

/* Return the unit in which an amount of the resource is reported. */
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

	return c->holdings->held[at] - (c->in_later ? c->holdings->leaving[at] : 0);
}

/* Refuse unless need <= limit - used. */
static bool within(const struct cycle *c, struct plan_reason *why, enum gpuq_reason code,
		   enum plan_unit unit, const char *object, int64_t limit, int64_t used,
		   int64_t need)
{
	const int64_t allowed = unit == PLAN_GPUS ? holdings_allowed(c, limit) : limit;

	if (limit == GPUQ_UNLIMITED || need <= allowed - used)
		return true;
	why->code = code;
	why->unit = unit;
	why->object = object;
	why->have = limit > used ? limit - used : 0;
	why->need = need;
	return false;
}

/* True unless some queue on the path limits the devices of a single job to fewer. */
static bool job_admitted(struct cycle *c, uint32_t job, int64_t gpus, struct plan_reason *why)
{
	const struct snap_job *j = &c->s->jobs[job];

	for (uint32_t q = j->queue; q != SNAP_NONE; q = c->s->queues[q].parent) {
		const struct snap_queue *queue = &c->s->queues[q];

		if (!within(c, why, GPUQ_R_LIMIT_JOB, PLAN_GPUS, queue->name,
			    queue->job_max_gpus_milli, 0, gpus))
			return false;
	}
	return true;
}

/* True unless the user has reached a limit of some queue on the path. per_user is set in a queue if
 * it is set in an ancestor, so the walk may stop at the first queue without it. */
static bool user_admitted(struct cycle *c, uint32_t job, int64_t gpus, struct plan_reason *why)
{
	const struct snap_job *j = &c->s->jobs[job];

	for (uint32_t q = j->queue; q != SNAP_NONE && c->holdings->per_user[q];
	     q = c->s->queues[q].parent) {
		const struct snap_queue *queue = &c->s->queues[q];
		const struct user_use *u;

		if (!users_limited(queue))
			continue;
		u = users_use(c, q, j->user);
		if (!u)
			return false;
		if (!within(c, why, GPUQ_R_LIMIT_USER, PLAN_COUNT, queue->name,
			    queue->user_max_running, u->running, 1) ||
		    !within(c, why, GPUQ_R_LIMIT_USER, PLAN_GPUS, queue->name,
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
	return within(c, why, GPUQ_R_LIMIT_QUEUE, PLAN_GPUS, queue->name, queue->max_gpus_milli,
		      sum, need);
}

/* True unless some queue on the path has reached a limit on jobs, devices or another resource, or,
 * for a job that is not preemptible, its quota. */
static bool queues_admit(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t gpus = flavor == SNAP_NONE ? 0 : holdings_need(c, job, flavor, flavor);

	for (uint32_t q = j->queue; q != SNAP_NONE; q = c->s->queues[q].parent) {
		const struct snap_queue *queue = &c->s->queues[q];

		if (!within(c, why, GPUQ_R_LIMIT_QUEUE, PLAN_COUNT, queue->name, queue->max_running,
			    c->holdings->running[q] - (c->in_later ? c->holdings->parting[q] : 0),
			    1) ||
		    !devices_admit(c, q, gpus, why))
			return false;
		for (uint32_t res = 0; res < c->s->n_res; res++) {
			const int64_t need = holdings_need(c, job, flavor, res);
			const struct snap_share *share = share_of(c, q, res);

			if (need == 0)
				continue;
			if (!within(c, why, GPUQ_R_LIMIT_QUEUE, unit_of(c, res), queue->name,
				    share->limit, used(c, q, res), need))
				return false;
			/* A job that is not preemptible must stay within quotas,
			 * otherwise the quotas of other queues would guarantee nothing. */
			if (!j->preemptible &&
			    !within(c, why, GPUQ_R_QUOTA, unit_of(c, res), queue->name,
				    share->quota, *cell(c, c->holdings->firm, q, res), need))
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

	for (uint32_t y = c->kids.first[p == SNAP_NONE ? c->s->n_queues : p]; y != SNAP_NONE;
	     y = c->kids.next[y]) {
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
	for (uint32_t res = 0; c->holdings->lends_limited && res < c->s->n_res; res++) {
		const int64_t need = holdings_need(c, job, flavor, res);
		const char *keeper = NULL;
		int64_t kept = 0, taken = 0;

		if (need == 0 || c->s->capacity[res] == GPUQ_UNLIMITED)
			continue;
		for (uint32_t q = c->s->jobs[job].queue; q != SNAP_NONE; q = c->s->queues[q].parent)
			/* Only above its own quota does a queue borrow, and has to leave what
			 * others keep. */
			if (share_of(c, q, res)->quota - used(c, q, res) < need)
				kept += kept_back(c, q, res, &keeper);
		/* The root's children together hold what the whole tree holds. */
		for (uint32_t q = c->kids.first[c->s->n_queues]; q != SNAP_NONE;
		     q = c->kids.next[q])
			add(&taken, used(c, q, res));
		if (kept > 0 && !within(c, why, GPUQ_R_QUOTA, unit_of(c, res), keeper,
					c->s->capacity[res] - kept, taken, need))
			return false;
	}
	return true;
}

bool holdings_is_license(enum gpuq_reason code)
{
	return code == GPUQ_R_LICENSE || code == GPUQ_R_VOLUME_IN_USE;
}

/* True unless too few are left of some license. */
static bool licenses_admit(struct cycle *c, uint32_t job, struct plan_reason *why)
{
	const struct snap_request *r = cycle_request(c, job);

	for (uint32_t i = 0; i < r->n_licenses; i++) {
		const struct snap_license *l = &c->s->licenses[r->licenses[i].license];
		const char *claim = strchr(l->name, '/');

		if (!within(c, why, claim ? GPUQ_R_VOLUME_IN_USE : GPUQ_R_LICENSE, PLAN_COUNT,
			    claim ? claim + 1 : l->name,
			    c->holdings->license_free[r->licenses[i].license], 0,
			    r->licenses[i].count))
			return false;
	}
	return true;
}

bool holdings_admits_more(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts)
{
	const int64_t gpus = flavor == SNAP_NONE ? 0 : amounts[flavor];
	struct plan_reason why = { .object = "" };
	bool admitted = true;

	/* From here on holdings_need() returns these amounts, for whatever is called below. */
	c->holdings->more = amounts;
	for (uint32_t q = c->s->jobs[job].queue; admitted && q != SNAP_NONE;
	     q = c->s->queues[q].parent) {
		admitted = devices_admit(c, q, gpus, &why);
		for (uint32_t res = 0; admitted && res < c->s->n_res; res++)
			admitted = amounts[res] == 0 ||
				   within(c, &why, GPUQ_R_LIMIT_QUEUE, unit_of(c, res),
					  c->s->queues[q].name, share_of(c, q, res)->limit,
					  used(c, q, res), amounts[res]);
	}
	for (uint32_t q = c->s->jobs[job].queue;
	     admitted && q != SNAP_NONE && c->holdings->per_user[q]; q = c->s->queues[q].parent) {
		const struct user_use *u = users_limited(&c->s->queues[q])
						   ? users_use(c, q, c->s->jobs[job].user)
						   : NULL;

		admitted = !u || gpus == 0 ||
			   within(c, &why, GPUQ_R_LIMIT_USER, PLAN_GPUS, c->s->queues[q].name,
				  c->s->queues[q].user_max_gpus_milli, u->gpus_milli, gpus);
	}
	admitted = admitted && lenders_admit(c, job, flavor, &why) &&
		   caps_admit(c, job, gpus, false, &why) &&
		   budget_admits_more(c, job, flavor, gpus, &why);
	c->holdings->more = NULL;
	return admitted;
}

void holdings_grow(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts)
{
	const int64_t gpus = flavor == SNAP_NONE ? 0 : amounts[flavor];

	for (uint32_t res = 0; res < c->s->n_res; res++)
		charge(c, c->s->jobs[job].queue, res, amounts[res], false);
	users_count(c, job, gpus, false);
	caps_count(c, job, gpus, false);
	budget_grow(c, job, flavor, gpus);
}

/* Test one start with that charge in devices. The order decides which reason is reported when several apply: the
 * narrowest limit, of the job itself, comes first. */
static bool charge_admitted(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus,
			    struct plan_reason *why)
{
	bool admitted;

	*why = (struct plan_reason){ .object = "" };
	c->holdings->charge = gpus;
	admitted = job_admitted(c, job, gpus, why) && user_admitted(c, job, gpus, why) &&
		   caps_admit(c, job, gpus, true, why) && queues_admit(c, job, flavor, why) &&
		   budget_admits(c, job, flavor, gpus, why) && lenders_admit(c, job, flavor, why);
	c->holdings->charge = -1;
	return admitted;
}

/* True if what a start is charged depends on the node. */
static bool charge_varies(const struct cycle *c, uint32_t job, uint32_t flavor)
{
	return c->holdings->least_charge && flavor != SNAP_NONE && cycle_request(c, job)->by_memory;
}

bool holdings_admits(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why)
{
	const int64_t most = devices_need(c, job, flavor);

	/* The most is tested first: it mostly passes, and then no node needs to be looked at. Once the least passes,
	 * the search for places keeps to what is left (place/charges.c). */
	if (!charge_admitted(c, job, flavor, most, why)) {
		if (!charge_varies(c, job, flavor) ||
		    !charge_admitted(c, job, flavor, c->holdings->least_charge(c, job, flavor),
				     why))
			return false;
	}
	return licenses_admit(c, job, why);
}

/* Return what the pods of a job that is to be moved are charged where they are. */
static int64_t charged_now(const struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	int64_t sum = 0;

	for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++)
		add(&sum, cost_of_alloc(c->s, &c->s->allocs[a]));
	return sum;
}

/* Return the largest charge from least on, below most, that is admitted; least is. Many limits hold at once, in devices
 * and in GPU-minutes, each rounded in its own way: what one charge passes, all smaller ones do, so that halving finds
 * the bound without an inverse of each of them. */
static int64_t largest_admitted(struct cycle *c, uint32_t job, uint32_t flavor, int64_t least,
				int64_t most, int64_t *amounts)
{
	struct plan_reason why;

	while (most - least > 1) {
		const int64_t at = least + (most - least) / 2;
		bool admitted;

		if (amounts)
			amounts[flavor] = at;
		admitted = amounts ? holdings_admits_more(c, job, flavor, amounts)
				   : charge_admitted(c, job, flavor, at, &why);
		if (admitted)
			least = at;
		else
			most = at;
	}
	return least;
}

/* A job that has reached a limit on other things than devices is not told apart here: it is admitted nowhere, and is not
 * placed. While start reservations are planned, licenses may be lacking; they do not depend on nodes either. */
int64_t holdings_spare(struct cycle *c, uint32_t job, uint32_t flavor)
{
	struct plan_reason why;
	int64_t most, least, now;

	if (!charge_varies(c, job, flavor))
		return GPUQ_UNLIMITED;
	most = devices_need(c, job, flavor);
	if (charge_admitted(c, job, flavor, most, &why))
		return GPUQ_UNLIMITED;
	least = c->holdings->least_charge(c, job, flavor);
	/* It counts already, and is not charged more than now. */
	if (c->s->jobs[job].state != SNAP_PENDING) {
		now = charged_now(c, job);
		return now > least ? now - least : 0;
	}
	/* Other limits than on devices do not depend on where it runs. */
	if (least >= most || !charge_admitted(c, job, flavor, least, &why))
		return GPUQ_UNLIMITED;
	return largest_admitted(c, job, flavor, least, most, NULL) - least;
}

/* Growth adds to what the job has: limits on the number of jobs, and on the devices of one, are no matter of it. */
int64_t holdings_spare_more(struct cycle *c, uint32_t job, uint32_t flavor, int64_t *amounts,
			    int64_t least)
{
	const int64_t most = flavor == SNAP_NONE ? 0 : amounts[flavor];
	int64_t largest;

	if (holdings_admits_more(c, job, flavor, amounts))
		return GPUQ_UNLIMITED;
	if (!charge_varies(c, job, flavor) || least >= most)
		return -1;
	amounts[flavor] = least;
	if (!holdings_admits_more(c, job, flavor, amounts))
		return -1;
	largest = largest_admitted(c, job, flavor, least, most, amounts);
	return largest - least;
}

/* ---- for the rooms above ---- */

const int64_t *holdings_fair(const struct cycle *c, uint32_t queue)
{
	return cell(c, c->holdings->fair, queue, 0);
}

const int64_t *holdings_demand(const struct cycle *c, uint32_t queue)
{
	return cell(c, c->holdings->demand, queue, 0);
}

struct holding holdings_of(const struct cycle *c, uint32_t queue)
{
	const size_t at = (size_t)queue * c->s->n_res;
	const struct holdings *h = c->holdings;

	return (struct holding){ &h->held[at], &h->leaving[at], &h->fair[at] };
}

int64_t holdings_stays(const struct cycle *c, uint32_t queue, uint32_t res)
{
	const size_t at = (size_t)queue * c->s->n_res + res;

	return c->holdings->held[at] - c->holdings->leaving[at];
}

int64_t holdings_all_stays(const struct cycle *c, uint32_t res)
{
	int64_t sum = 0;

	for (uint32_t q = c->kids.first[c->s->n_queues]; q != SNAP_NONE; q = c->kids.next[q])
		add(&sum, holdings_stays(c, q, res));
	return sum;
}

int64_t holdings_idle(const struct cycle *c, uint32_t res)
{
	return c->holdings->idle[res];
}

int64_t holdings_least_priority(const struct cycle *c, uint32_t queue)
{
	return c->holdings->least_priority[queue];
}

bool holdings_stopped(const struct cycle *c, uint32_t queue)
{
	return c->holdings->stopped[queue];
}

bool holdings_per_user(const struct cycle *c, uint32_t queue)
{
	return c->holdings->per_user[queue];
}

int64_t holdings_license_free(const struct cycle *c, uint32_t license)
{
	return c->holdings->license_free[license];
}

void holdings_keep(struct cycle *c)
{
	const size_t n = (size_t)c->s->n_queues * c->s->n_res;

	c->holdings->kept = cycle_alloc(c, n, sizeof(*c->holdings->kept));
	if (c->holdings->kept)
		memcpy(c->holdings->kept, c->holdings->held, n * sizeof(*c->holdings->kept));
}

/* Take the demand of jobs with a start reservation from that of all pending ones. */
static void leave_reserved(struct cycle *c)
{
	uint64_t *seen = cycle_alloc(c, bits_words(c->s->n_jobs), sizeof(*seen));
	int64_t *wanted = cycle_alloc(c, c->s->n_res, sizeof(*wanted));

	for (uint32_t i = 0; !c->failed && i < c->plan.n_actions; i++) {
		const uint32_t job = c->plan.actions[i].job;
		const struct snap_job *j = &c->s->jobs[job];
		const uint32_t run = c->s->lines.run_of[job];

		/* An array may have several. */
		if (c->plan.actions[i].kind != PLAN_RESERVE || run == SNAP_NONE ||
		    bits_has(seen, job))
			continue;
		bits_add(seen, job);
		memset(wanted, 0, c->s->n_res * sizeof(*wanted));
		add_wanted(c, &c->s->requests[j->request],
			   c->s->lines.runs[run].n_jobs == 1 ? startable(c, job) : 1, wanted);
		for (uint32_t res = 0; res < c->s->n_res; res++)
			*cell(c, c->holdings->pending, j->queue, res) -= wanted[res];
	}
}

/* Return what the fair shares of the queues below the root add up to, by flavor. */
static const int64_t *fair_sum(struct cycle *c)
{
	const struct snapshot *s = c->s;
	int64_t *sum = cycle_alloc(c, s->n_flavors + 1, sizeof(*sum));

	for (uint32_t q = 0; sum && q < s->n_queues; q++)
		for (uint32_t f = 0; s->queues[q].parent == SNAP_NONE && f < s->n_flavors; f++)
			sum[f] = amount_sum(sum[f], *cell(c, c->holdings->fair, q, f));
	return sum;
}

void holdings_finish(struct cycle *c, struct plan *out)
{
	struct holdings *h = c->holdings;

	if (h->kept)
		h->held = h->kept;

	/* All is decided: capacity that is being released counts as released. */
	for (size_t i = 0; i < (size_t)c->s->n_queues * c->s->n_res; i++)
		h->held[i] -= h->leaving[i];
	out->fair_share = h->fair;
	out->fair_sum = fair_sum(c);
	out->allocated = h->held;
	out->demand = h->demand;
	leave_reserved(c);
	out->left_out = c->failed ? NULL : h->pending;
}
