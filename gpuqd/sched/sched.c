#include "gpuqd/sched/sched.h"

#include <string.h>

#include "gpuqd/sched/cut.h"
#include "gpuqd/sched/elastic.h"
#include "gpuqd/sched/eligibility.h"
#include "gpuqd/sched/order.h"
#include "gpuqd/sched/place/charges.h"
#include "gpuqd/sched/place/ends.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/preempt.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/quota/budget.h"
#include "gpuqd/sched/quota/caps.h"
#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/provision.h"
#include "gpuqd/sched/reasons.h"
#include "gpuqd/sched/timeline/emit.h"
#include "gpuqd/sched/timeline/nominated.h"
#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/sched/timeline/timeline.h"
#include "gpuqd/sched/timeline/timeline_displace.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/sched/timeline/timeline_plan.h"
#include "gpuqd/sched/timeline/timeline_starve.h"
#include "gpuqd/util/intern.h"

/* ---- jobs: eligible or not, and of which class ---- */

/* Classes while they are being numbered. */
struct class_keys {
	struct intern seen;
	uint32_t *of_key; /* class, by number in seen */
	uint32_t n_of_key, room_of_key;
	uint32_t *n_runs; /* by request */
	uint32_t n; /* classes */
};

/* Return the class of a job. Jobs of one class request the same, in the same queue and, where users
 * are limited, for the same user, and count against the same caps: when one cannot start, none of
 * them can, until the next cycle. */
static uint32_t class_of(struct cycle *c, struct class_keys *k, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	bool fresh = false;
	int64_t opens_us;
	uint32_t ix;
	struct {
		uint32_t queue, request, user, alone;
		uint32_t preemptible, capset;
		int64_t charge_milli; /* a hard budget may refuse one job and admit another */
		int64_t opens_us; /* when it may use another flavor; 0 = it may use all */
		uint32_t n_open, none; /* none: 0 */
	} key;

	/* No other run requests the same: where 100,000 jobs differ, no key is needed. */
	if (k->n_runs[j->request] < 2)
		return k->n++;
	/* Keys are compared byte by byte, padding included. */
	memset(&key, 0, sizeof(key));
	key.queue = j->queue;
	key.request = j->request;
	key.user = holdings_per_user(c, j->queue) || c->s->n_reservations > 0 ? j->user : SNAP_NONE;
	key.alone = j->n_exclude ? job : SNAP_NONE;
	key.preemptible = j->preemptible;
	key.capset = j->capset;
	key.charge_milli = j->charge_milli;
	key.n_open = snap_flavors_open(c->s, j, &opens_us);
	key.opens_us = opens_us;
	ix = intern(&k->seen, &key, sizeof(key), &fresh);
	if (ix == INTERN_FAILED || (fresh && !CYCLE_PUSH(c, k, of_key, 1))) {
		c->failed = true;
		return SNAP_NONE;
	}
	if (fresh)
		k->of_key[ix] = k->n++;
	return k->of_key[ix];
}

/* Get the tables of classes and reasons; they are by run, since equal jobs share both. */
static void classify_begin(struct cycle *c, struct class_keys *k)
{
	const struct snapshot *s = c->s;

	k->n_runs = cycle_alloc(c, s->n_requests, sizeof(*k->n_runs));
	for (uint32_t i = 0; k->n_runs && i < s->lines.n_runs; i++)
		k->n_runs[s->jobs[s->lines.runs[i].first].request]++;

	c->classes.of_run = cycle_alloc(c, s->lines.n_runs, sizeof(*c->classes.of_run));
	c->plan.why_of_run = cycle_alloc(c, s->lines.n_runs, sizeof(*c->plan.why_of_run));
	c->plan.started = cycle_alloc(c, s->n_jobs, sizeof(*c->plan.started));
	c->plan.why_of_job = cycle_alloc(c, s->n_jobs, sizeof(*c->plan.why_of_job));
}

/* Give a run of equal jobs its class, or note why its jobs are not eligible. Jobs with a nominated
 * placement are served apart. */
static void classify(struct cycle *c, struct class_keys *k, uint32_t run)
{
	const uint32_t job = c->s->lines.runs[run].first;
	const uint32_t why_first = c->plan.n_reasons;

	c->classes.of_run[run] = SNAP_NONE;
	if (bits_has(c->promised, job))
		return;
	if (eligibility_closed(c, job)) {
		c->plan.why_of_run[run] =
			(struct plan_why){ why_first, c->plan.n_reasons - why_first };
		return;
	}
	timeline_note_waiting(c, job);
	c->classes.of_run[run] = class_of(c, k, job);
}

/* ---- decisions ---- */

/* Block the class: no job of it that runs at least as long can start either. */
static void block_class(struct cycle *c, uint32_t job, uint32_t why_first, int64_t from_walltime_us)
{
	struct job_class *cls = &c->classes.items[cycle_class(c, job)];

	cls->blocked = true;
	cls->from_walltime_us = from_walltime_us;
	cls->from_least_us = timeline_least_us(&c->s->jobs[job]);
	cls->why = (struct plan_why){ why_first, c->plan.n_reasons - why_first };
}

/* Give the job the reasons added since then, instead of those of its class. */
static void own_reasons(struct cycle *c, uint32_t job, uint32_t why_first)
{
	c->plan.why_of_job[job] = (struct plan_why){ why_first, c->plan.n_reasons - why_first };
}

/* Give the job this one reason. */
static void own_reason(struct cycle *c, uint32_t job, const struct plan_reason *why)
{
	struct plan_reason *own = PLAN_PUSH(c, reasons, 1);

	if (own)
		*own = *why;
	own_reasons(c, job, c->plan.n_reasons - 1);
}

/* Count one element as served: it starts at its places, or has a nominated placement. */
static void served_one(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[job];
	struct plan_reason why;

	emit_count(c, job, flavor);
	gangs_add_started(c, job, flavor);
	/* The last one of its job may grow in this cycle, as it was placed. */
	if (c->plan.started[job] == j->n_waiting) {
		order_done(c, job);
		return;
	}
	cycle_try_own(c, job);
	if (caps_array_full(c, job, &why)) {
		own_reason(c, job, &why);
		order_done(c, job);
	} else {
		order_changed(c, job);
	}
}

/* How an attempt to place a job on one flavor ended. */
enum attempt { PLACED, NO_ROOM, BEHIND /* room, but for a start reservation */ };

/* Place a job now if planned starts allow it; BEHIND if only these prevent it. */
static enum attempt attempt(struct cycle *c, uint32_t job, uint32_t flavor, struct future_bar *bar)
{
	/* Checked first: it may plan again, and c->places are those of the current job. */
	const bool binds = timeline_binds(c, job);

	if (!pack_job(c, job, flavor))
		return NO_ROOM;
	if (!binds)
		return PLACED;
	pack_undo(c, job);
	return timeline_pack(c, job, flavor, bar) || timeline_displace(c, job, flavor) ||
			       timeline_enter(c, job, flavor)
		       ? PLACED
		       : BEHIND;
}

/* Add the reason that a start reservation, or a reservation, is in the way. */
static void why_behind(struct cycle *c, const struct future_bar *bar)
{
	struct plan_reason *why = PLAN_PUSH(c, reasons, 1);
	char key[32];

	if (!why)
		return;
	*why = (struct plan_reason){ .code = GPUQ_R_PRIORITY };
	if (bar->reservation != SNAP_NONE) {
		reservations_name(c, bar->reservation, why);
		return;
	}
	why->object = gpuq_arena_strdup(c->mem,
					plan_key_print(c->s->jobs[bar->job].key, key, sizeof(key)));
	if (!why->object)
		c->failed = true;
}

/* Add the reason that the job would exceed its queue's share, within which it could reclaim. */
static void why_beyond_share(struct cycle *c, uint32_t job, uint32_t flavor)
{
	struct plan_reason why, *at;

	if (!c->s->config.reclaim || !rules_exceeds_share(c, job, flavor, &why))
		return;
	at = PLAN_PUSH(c, reasons, 1);
	if (at)
		*at = why;
}

/* Report a nominated placement that the job does not own yet: it is waiting for its victims, the
 * first of which is named. Their actions end at `end`. */
static void tell_victims(struct cycle *c, uint32_t job, uint32_t end)
{
	struct plan_reason why = { .code = GPUQ_R_VICTIMS, .object = "" };
	const struct plan_action *first = NULL;
	char key[32];

	for (uint32_t i = end; i-- > 0 && c->plan.actions[i].claimant == job; why.need++)
		first = &c->plan.actions[i];
	if (first)
		why.object =
			gpuq_arena_strdup(c->mem, plan_key_print(first->key, key, sizeof(key)));
	if (!why.object)
		c->failed = true;
	else
		own_reason(c, job, &why);
}

/* True if it continues with the flavor after those that were full: there other jobs may come
 * first. */
static bool passes_turn(struct cycle *c, uint32_t job, uint32_t flavor_at)
{
	struct job_class *cls = &c->classes.items[cycle_class(c, job)];

	/* The class has come as far as this flavor before. */
	if (cls->flavor_at >= flavor_at)
		return false;
	cls->flavor_at = flavor_at;
	order_changed(c, job);
	return order_next(c) != job;
}

/* True if it does not use all its flavors yet, since it waits for one. */
static bool waits_for_flavor(struct cycle *c, uint32_t job)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];

	return r->gpus_milli > 0 && cycle_flavors(c, job) < r->n_flavor_ix;
}

/* Report the lack on a flavor that it could run on; of one with no nodes for it, or no nodes at
 * all, only when no other flavor is left, now or once it has waited long enough. further: another of its requests lacks something there, too. */
static bool tell_lack(struct cycle *c, uint32_t job, uint32_t flavor, bool last, bool further)
{
	if (!last && reasons_never_there(c, job, flavor))
		return false;
	reasons_no_place(c, job, flavor);
	if (!further)
		why_beyond_share(c, job, flavor);
	return true;
}

/* Start it on the first of its flavors that has room and where limits allow it; else note why not:
 * the lack on the first flavor within its limits, else the limit on the first of all. False: it has
 * had its turn. */
static bool try_start(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const uint32_t n = cycle_flavors(c, job) * cycle_choices(c, job);
	const bool in_order = c->s->requests[j->request].in_order;
	const uint32_t why_first = c->plan.n_reasons;
	uint32_t claimed;
	struct plan_reason refused = { .code = GPUQ_R_NONE };
	struct future_bar bar = { SNAP_NONE, SNAP_NONE };
	uint32_t lacking = 0, first_lack = 0, told_on = SNAP_NONE;
	const bool waits = waits_for_flavor(c, job);
	bool behind = false, reserved = false;

	for (uint32_t i = 0; i < n && !c->failed; i++) {
		const struct cycle_way at = cycle_way(c, job, i);
		const uint32_t told = in_order ? at.request : at.flavor;
		struct plan_reason why;
		enum attempt how;
		uint32_t flavor;

		cycle_try_own(c, job);
		if (at.request == 0 && passes_turn(c, job, at.flavor)) {
			c->plan.n_reasons = why_first;
			return true;
		}
		flavor = cycle_try_as(c, job, i);
		if (!holdings_admits(c, job, flavor, &why)) {
			if (refused.code == GPUQ_R_NONE)
				refused = why;
			continue;
		}
		how = attempt(c, job, flavor, &bar);
		if (how == PLACED) {
			c->plan.n_reasons = why_first;
			emit_next(c, PLAN_PLACE, job, flavor);
			served_one(c, job, flavor);
			return true;
		}
		behind |= how == BEHIND;
		if (how != NO_ROOM)
			continue;
		if (lacking++ == 0)
			first_lack = i;
		/* Tell the lack of all requests on one flavor; of requests in order, that of each on one. */
		if ((told_on == SNAP_NONE || (told_on == told) != in_order) &&
		    tell_lack(c, job, flavor, n == 1 && !waits, told_on != SNAP_NONE))
			told_on = told;
	}
	if (lacking && told_on == SNAP_NONE && !waits && !behind && refused.code == GPUQ_R_NONE)
		tell_lack(c, job, cycle_try_as(c, job, first_lack), true, false);
	cycle_try_own(c, job);
	if (behind)
		why_behind(c, &bar);
	reasons_flavor_wait(c, job);
	if (refused.code != GPUQ_R_NONE) {
		struct plan_reason *why = PLAN_PUSH(c, reasons, 1);

		if (why)
			*why = refused;
	}
	timeline_refresh(c);
	/* A job that is blocked only by start reservations preempts nothing. */
	if (!behind && !budget_refused(&refused) && preempt_job(c, job, &claimed)) {
		c->plan.n_reasons = why_first;
		served_one(c, job, claimed);
		timeline_changed(c);
		if (j->n_ranges == 0 || c->plan.started[job] == j->n_waiting)
			tell_victims(c, job, c->plan.n_actions);
		return true;
	}
	for (uint32_t i = 0;
	     (lacking || behind || holdings_is_license(refused.code)) && !reserved && i < n; i++) {
		const uint32_t flavor = cycle_try_as(c, job, i);
		struct plan_reason why;

		reserved =
			timeline_may_plan(c, job, flavor, &why) && timeline_reserve(c, job, flavor);
	}
	if (!reserved)
		cycle_try_own(c, job);
	/* The next of its class may get a planned start as well, or fit a budget; where this one
	 * got none because of its length, a shorter one may. */
	if (reserved || (budget_refused(&refused) && !lacking && !behind))
		own_reasons(c, job, why_first);
	else
		block_class(c, job, why_first,
			    behind || budget_refused(&refused) || ends_of(c, job) ||
					    (lacking && !timeline_full(c, job))
				    ? c->s->jobs[job].walltime_us
				    : 0);
	return false;
}

/* Serve the next job. False: no job is left, or the bound on work is reached. */
static bool serve_next(struct cycle *c)
{
	const uint64_t max_steps = c->s->config.max_steps;
	const uint32_t job = order_next(c);
	struct plan_reason why;

	/* Every job had its turn, or its class is blocked. */
	if (job == SNAP_NONE)
		return false;
	/* The bound counts work, not time, so that the same snapshot gives the same plan on any
	 * machine. */
	if (max_steps && c->steps >= max_steps) {
		c->plan.cut_short = true;
		return false;
	}
	c->steps++;
	gpuq_arena_reset(&c->scratch);
	/* Another entry of the same array may have used up the throttle. */
	if (caps_array_full(c, job, &why)) {
		own_reason(c, job, &why);
		order_done(c, job);
	} else if (!try_start(c, job)) {
		order_done(c, job);
	}
	return true;
}

/* ---- reasons of pending jobs ---- */

/* An element of an array may have got a nominated placement before all others started: then it is what the
 * array is pending for. */
static void explain_nominated(struct cycle *c)
{
	for (uint32_t i = 0; !c->failed && i < c->plan.n_actions; i++) {
		const uint32_t job = c->plan.actions[i].job;
		uint32_t end = i + 1;

		if (c->plan.actions[i].kind != PLAN_NOMINATE || c->plan.why_of_job[job].n ||
		    c->plan.started[job] < c->s->jobs[job].n_waiting)
			continue;
		while (end < c->plan.n_actions && c->plan.actions[end].claimant == job)
			end++;
		tell_victims(c, job, end);
	}
}

/* Give the jobs of every run without reasons of their own the reasons of their run. */
static void explain(struct cycle *c)
{
	struct plan_reason *none = PLAN_PUSH(c, reasons, 1);
	const struct plan_why not_looked_at = { c->plan.n_reasons - 1, 1 };

	if (!none)
		return;
	*none = (struct plan_reason){ .code = GPUQ_R_NOT_EVALUATED, .object = "" };
	for (uint32_t i = 0; i < c->s->lines.n_runs; i++) {
		const uint32_t cls = c->classes.of_run[i];

		if (c->plan.why_of_run[i].n == 0)
			c->plan.why_of_run[i] = cls != SNAP_NONE && c->classes.items[cls].blocked
							? c->classes.items[cls].why
							: not_looked_at;
	}
}

/* ---- a cycle, in steps ---- */

#define RUN_WORK 16 /* evaluating one run of jobs, in node visits */
#define JOB_WORK 64 /* a job's turn, beside the nodes it visits */

enum phase {
	LOOK, /* free capacity, holdings, nominated places */
	CLASSIFY,
	DIVIDE, /* shares */
	KEEP, /* nominated placements and reservations */
	LINE_UP,
	SERVE, /* jobs start, or are found blocked */
	GROW, /* elastic jobs get more pods */
	SETTLE, /* start reservations are emitted */
	CUT, /* idle nodes get another layout of MIG instances */
	EXTEND, /* begin to pack what is pending on nodes that do not exist */
	ASK, /* ... job by job */
	FINISH, /* reasons, and the tables of the plan */
	DONE,
};

struct sched_run {
	struct cycle c;
	struct class_keys keys;
	enum phase phase;
	uint32_t next; /* CLASSIFY: the next run of jobs */
	uint64_t work;
};

/* Begin the cycle: compute what is free, what queues hold, and which nominated placements stand. */
static void look(struct cycle *c, struct class_keys *keys)
{
	feasibility_init(c);
	ends_init(c);
	pack_init(c, PACK_DEFAULT, false);
	reasons_init(c);
	nodes_init(c);
	cycle_choices_init(c);
	if (!c->failed)
		nominated_init(c);
	if (!c->failed)
		holdings_init(c);
	if (!c->failed)
		holdings_ask_charges(c, charges_of_start);
	if (!c->failed)
		classify_begin(c, keys);
}

/* Classify the next run. Returns whether the phase goes on. */
static bool classify_next(struct sched_run *r)
{
	struct cycle *c = &r->c;

	if (r->next < c->s->lines.n_runs) {
		r->work += RUN_WORK;
		classify(c, &r->keys, r->next++);
		return true;
	}
	c->classes.items = cycle_alloc(c, r->keys.n, sizeof(*c->classes.items));
	intern_done(&r->keys.seen);
	return false;
}

/* Divide capacity among the queues, then compute the priorities of jobs. */
static void divide(struct cycle *c)
{
	holdings_shares(c);
	c->priority = c->failed ? NULL : priority_new(c->s, c->mem);
	c->failed |= !c->priority;
}

/* Serve nominated placements and reservations before any other job can take their places. */
static void keep(struct cycle *c)
{
	nominated_serve(c);
	if (!c->failed)
		reservations_begin(c);
}

/* Do part of a phase, or all of it. Returns whether it goes on. */
static bool phase_goes_on(struct sched_run *r)
{
	struct cycle *c = &r->c;

	switch (r->phase) {
	case LOOK:
		look(c, &r->keys);
		return false;
	case CLASSIFY:
		return classify_next(r);
	case DIVIDE:
		divide(c);
		return false;
	case KEEP:
		keep(c);
		return false;
	case LINE_UP:
		order_init(c);
		return false;
	case SERVE:
		r->work += JOB_WORK;
		return serve_next(c);
	case GROW:
		elastic_serve(c);
		return false;
	case SETTLE:
		timeline_finish(c);
		return false;
	case CUT:
		cut_decide(c);
		return false;
	case EXTEND:
		provision_begin(c);
		return false;
	case ASK:
		r->work += JOB_WORK;
		return provision_next(c);
	default:
		provision_end(c);
		explain_nominated(c);
		if (!c->failed)
			explain(c);
		return false;
	}
}

bool sched_go_on(struct sched_run *r, uint64_t work)
{
	const uint64_t until = r->work + r->c.steps + work;

	while (r->phase != DONE && !r->c.failed) {
		if (phase_goes_on(r)) {
			if (work && r->work + r->c.steps >= until)
				return true;
			continue;
		}
		r->phase++;
		/* All other phases take time in proportion to the cluster, and so are one step
		 * each. */
		if (work)
			return r->phase != DONE;
	}
	return false;
}

int sched_begin(const struct snapshot *in, struct gpuq_arena *mem, struct sched_run **out,
		struct gpuq_err *err)
{
	struct sched_run *r;

	if (!in->sealed)
		return gpuq_fail(err, GPUQ_EINVAL, "the snapshot has not been sealed");
	r = gpuq_arena_calloc(mem, 1, sizeof(*r));
	if (!r)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a scheduling cycle");
	r->c = (struct cycle){ .s = in, .mem = mem, .plan = { .wake_us = GPUQ_UNLIMITED } };
	r->keys.seen = (struct intern)INTERN_INIT(mem);
	if (in->config.wake_us > in->config.now_us)
		r->c.plan.wake_us = in->config.wake_us;
	*out = r;
	return 0;
}

void sched_drop(struct sched_run *r)
{
	if (!r)
		return;
	intern_done(&r->keys.seen);
	gpuq_arena_done(&r->c.scratch);
}

int sched_end(struct sched_run *r, struct plan *out, struct gpuq_err *err)
{
	struct cycle *c = &r->c;
	struct plan plan = { 0 };

	sched_go_on(r, 0);
	sched_drop(r);
	if (c->failed)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a scheduling cycle");
	plan.actions = c->plan.actions;
	plan.n_actions = c->plan.n_actions;
	plan.pods = c->plan.pods;
	plan.n_pods = c->plan.n_pods;
	plan.devices = c->plan.devices;
	plan.reasons = c->plan.reasons;
	plan.why_of_run = c->plan.why_of_run;
	plan.why_of_job = c->plan.why_of_job;
	plan.started = c->plan.started;
	plan.n_devices = c->plan.n_devices;
	holdings_finish(c, &plan);
	plan.priority = c->priority;
	plan.claims = c->plan.claims;
	plan.n_claims = c->plan.n_claims;
	plan.claim_sides = c->plan.sides;
	plan.wake_us = c->plan.wake_us;
	plan.steps = c->steps;
	plan.cut_short = c->plan.cut_short;
	plan.asks = c->plan.asks;
	plan.n_asks = c->plan.n_asks;
	plan.cuts = c->plan.cuts;
	plan.n_cuts = c->plan.n_cuts;
	plan.bounds = c->plan.bounds;
	plan.n_bounds = c->plan.n_bounds;
	*out = plan;
	return 0;
}

int sched_cycle(const struct snapshot *in, struct gpuq_arena *mem, struct plan *out,
		struct gpuq_err *err)
{
	struct sched_run *r = NULL;
	const int rc = sched_begin(in, mem, &r, err);

	return rc < 0 ? rc : sched_end(r, out, err);
}
