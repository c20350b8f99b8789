#include "gpuqd/carry/carry.h"

#include "gpuqd/carry/claim_text.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/state/cuts/shared_claim.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/profile.h"

struct carry {
	const struct carry_to *to;
	const struct model *m;
	const struct snapshot *s;
	const struct plan *p;
	struct gpuq_arena *mem;
	struct carry_at *at; /* how far it has come */
};

static struct job_key key_of(const struct plan_action *a)
{
	return (struct job_key){ a->key.id, a->key.index };
}

static const char *flavor_of(const struct carry *c, const struct plan_action *a)
{
	return a->flavor == SNAP_NONE ? "" : c->s->flavors[a->flavor].name;
}

/* Tell the caller what became of an action. */
static void report(const struct carry *c, enum carry_news news, const struct plan_action *a,
		   const struct event *ev, const struct gpuq_err *err)
{
	if (c->to->news)
		c->to->news(c->to->arg, news, a, ev, err);
}

/* True if the action may still be carried out: nothing it relies on has changed since the
 * snapshot. */
static bool stands(const struct carry *c, const struct plan_action *a)
{
	return !c->to->stands || c->to->stands(c->to->arg, a);
}

/* Leave an action out, and report it: the next cycle decides anew. */
static void drop(const struct carry *c, const struct plan_action *a, enum carry_news news)
{
	c->at->n_dropped++;
	report(c, news, a, NULL, NULL);
}

/* Apply the event, and report the given news, or that it was refused. */
static bool apply(const struct carry *c, const struct plan_action *a, struct event *ev,
		  enum carry_news news)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (c->to->apply(c->to->arg, ev, &err) < 0) {
		report(c, CARRY_REFUSED, a, ev, &err);
		return false;
	}
	report(c, news, a, ev, NULL);
	return true;
}

/* Return the group of a pod, as the action places it. */
static const struct snap_group *group_of(const struct carry *c, const struct plan_action *a,
					 const struct plan_pod *pp)
{
	return &c->s->requests[a->request].groups[pp->group];
}

/* Instances are not devices, but are charged as the part of a device that they are. */
static int64_t milli_of(const struct carry *c, const struct plan_action *a,
			const struct plan_pod *pp)
{
	const struct snap_group *g = group_of(c, a, pp);

	return g->mig ? cost_of_pod(c->s, g, SNAP_NONE)
		      : (int64_t)pp->n_devices *
				cost_of_share(g, &c->s->nodes[pp->node], pp->milli);
}

/* Return the profile that a pod gets, where its group accepts several; NULL = it has no choice. */
static const char *profile_of(const struct carry *c, const struct plan_action *a,
			      const struct plan_pod *pp)
{
	const struct job *j = model_find_job(c->m, (struct job_key){ a->key.id, -1 });
	const struct request_group *g;

	if (!j || pp->group >= j->request->spec.n_groups)
		return NULL;
	g = &j->request->spec.groups[pp->group];
	return g->mig_more.n || g->mig_ok || (g->mig && gpuq_profile_is_any(g->mig))
		       ? group_of(c, a, pp)->mig
		       : NULL;
}

/* Return the job of an action, or the array of which it is an element that is not split off yet. */
static const struct job *job_of(const struct carry *c, const struct plan_action *a)
{
	const struct job *j = model_find_job(c->m, key_of(a));

	return j ? j : model_find_job(c->m, (struct job_key){ a->key.id, -1 });
}

/* A pod is not charged for devices of claims that another pod has, those before it included. Return how many it has of n
 * devices. */
static uint32_t leave_shared(const struct carry *c, const struct job *j, struct placed_pod *pods,
			     uint32_t at, uint32_t n)
{
	const struct gpuq_group *g =
		j ? shared_claim_group(&j->request->spec, pods[at].group) : NULL;
	const char *node;
	uint32_t own;

	if (!g)
		return n;
	pods[at].rides = shared_claim_rides(c->m, j, pods[at].group, pods, at, &node);
	own = (uint32_t)(g->gpus_milli / 1000) - shared_claim_devices(g, pods[at].rides);
	pods[at].n_devices = own < n ? own : n;
	pods[at].gpus_milli = (int64_t)pods[at].n_devices * 1000;
	return pods[at].n_devices;
}

/* Return for how many pods of a pending job a place is: those of a group that share a claim are one in the snapshot. */
static uint32_t pods_of(const struct carry *c, const struct plan_action *a, const struct job *j,
			const struct plan_pod *pp)
{
	const struct gpuq_group *g = j ? shared_claim_group(&j->request->spec, pp->group) : NULL;
	uint32_t n = 0;

	if (!g || a->kind == PLAN_GROW || a->kind == PLAN_MOVE)
		return 1;
	for (uint32_t i = 0; i < a->n_pods; i++)
		n += c->p->pods[a->pod_first + i].group == pp->group;
	return n == 1 ? shared_claim_pods(g) : 1;
}

/* True if the places are still those that its claims allow; else the next cycle decides anew. */
static bool shares(const struct carry *c, const struct plan_action *a,
		   const struct placed_pod *pods, uint32_t n)
{
	const struct job *j = job_of(c, a);
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!j || shared_claim_check(c->m, j, pods, n, &err) == 0)
		return true;
	drop(c, a, CARRY_DROPPED);
	return false;
}

/* Return the places of an action, *n of them; NULL when there is no memory. */
static struct placed_pod *places(const struct carry *c, const struct plan_action *a, uint32_t *n)
{
	const struct job *j = job_of(c, a);
	uint32_t in_group[GPUQ_GROUPS_MAX] = { 0 };
	struct placed_pod *pods;
	uint32_t most = 0;

	for (uint32_t i = 0; i < a->n_pods; i++)
		most += pods_of(c, a, j, &c->p->pods[a->pod_first + i]);
	pods = gpuq_arena_calloc(c->mem, most + 1, sizeof(*pods));
	*n = 0;
	for (uint32_t i = 0; pods && i < a->n_pods; i++) {
		const struct plan_pod *pp = &c->p->pods[a->pod_first + i];
		uint16_t *devices = gpuq_arena_calloc(c->mem, pp->n_devices + 1, sizeof(*devices));
		uint32_t taken = 0;

		if (!devices)
			return NULL;
		for (uint32_t k = 0; k < pp->n_devices; k++)
			devices[k] = (uint16_t)c->p->devices[pp->device_first + k];
		for (uint32_t k = pods_of(c, a, j, pp); k > 0; k--) {
			pods[*n] = (struct placed_pod){ .group = pp->group,
							.group_index = in_group[pp->group]++,
							.node = c->s->nodes[pp->node].name,
							.devices = devices + taken,
							.n_devices = pp->n_devices - taken,
							.gpus_milli = milli_of(c, a, pp),
							.mig = profile_of(c, a, pp),
							.choice = group_of(c, a, pp)->choice };
			taken += leave_shared(c, j, pods, *n, pp->n_devices - taken);
			++*n;
		}
	}
	return pods;
}

/* Start a job. The token makes its pods those of this attempt. */
static void place(const struct carry *c, const struct plan_action *a)
{
	struct event ev = { .type = EV_JOB_PLACED, .job = key_of(a) };
	char token[33];

	c->to->token(token);
	ev.placed.token = token;
	ev.placed.flavor = flavor_of(c, a);
	ev.placed.pods = places(c, a, &ev.placed.n_pods);
	ev.placed.yield_us = a->yield_us;
	ev.placed.time_limit_us = a->walltime_us;
	if (ev.placed.pods && shares(c, a, ev.placed.pods, ev.placed.n_pods))
		apply(c, a, &ev, CARRY_PLACED);
}

/* Add pods to a running elastic job. */
static void grow(const struct carry *c, const struct plan_action *a)
{
	struct event ev = { .type = EV_JOB_GROWN, .job = key_of(a) };

	ev.grown.pods = places(c, a, &ev.grown.n_pods);
	if (ev.grown.pods && shares(c, a, ev.grown.pods, ev.grown.n_pods))
		apply(c, a, &ev, CARRY_GROWN);
}

/* Release a nominated placement. */
static void release(const struct carry *c, const struct plan_action *a)
{
	struct event ev = { .type = EV_JOB_RENOUNCED, .job = key_of(a) };
	const struct job *j = model_find_job(c->m, ev.job);

	/* A job that has ended since has released its nominated placement. Capacity that other jobs
	 * got of it depends on this release, whatever has become of the job. */
	if (j && j->life->promise)
		apply(c, a, &ev, CARRY_RENOUNCED);
}

/* Nominate places for the job. leaving: the evictions for it; NULL = there are none. */
static void nominate(const struct carry *c, const struct plan_action *a,
		     const struct job_key *victims, uint32_t n, const struct plan_action *leaving,
		     uint32_t n_leaving)
{
	struct event ev = { .type = EV_JOB_NOMINATED, .job = key_of(a) };
	char rules[CLAIM_RULES_MAX], why[CLAIM_TEXT_MAX];

	ev.nominated.flavor = flavor_of(c, a);
	ev.nominated.pods = places(c, a, &ev.nominated.n_pods);
	ev.nominated.victims = victims;
	ev.nominated.n_victims = n;
	ev.nominated.rule = claim_rules(leaving, n_leaving, rules);
	ev.nominated.why = leaving ? claim_text(c->s, c->p, a->key, why) : "";
	if (ev.nominated.pods)
		apply(c, a, &ev, CARRY_NOMINATED);
}

/* Evict or shrink the job of an action, for the job of `claim`; NULL = for one that has no
 * nominated placement (it grows, or its reservation begins), or for no job. */
static void send_away(const struct carry *c, const struct plan_action *a,
		      const struct plan_action *claim)
{
	struct event ev = { .type = a->kind == PLAN_SHRINK ? EV_JOB_SHRINK_ASKED
							   : EV_JOB_EVICT_ASKED,
			    .job = key_of(a) };
	const struct job *j = model_find_job(c->m, ev.job);
	uint32_t *pods = gpuq_arena_calloc(c->mem, a->n_pods + 1, sizeof(*pods));
	char by[32] = "", why[CLAIM_TEXT_MAX] = "";

	if (!j || !pods)
		return;
	if (a->claimant != SNAP_NONE) {
		const struct snap_job *claimant = &c->s->jobs[a->claimant];
		const struct snap_key key = claim ? claim->key : claimant->key;

		plan_key_print(key, by, sizeof(by));
		claim_text(c->s, c->p, key, why);
		ev.evict.by_queue = c->s->queues[claimant->queue].name;
	}
	ev.evict.why = why;
	ev.evict.cause = a->cause;
	ev.evict.by = by;
	ev.evict.rule = a->rule ? a->rule : "";
	ev.evict.grace_us = job_grace_most_us(c->m, j);
	for (uint32_t i = 0; a->kind == PLAN_SHRINK && i < a->n_pods; i++)
		pods[i] = c->p->pods[a->pod_first + i].index;
	ev.evict.pods = pods;
	ev.evict.n_pods = a->kind == PLAN_SHRINK ? a->n_pods : 0;
	if (!apply(c, a, &ev, CARRY_EVICTED))
		return;
	/* It owns its new places before its old ones are released. */
	if (a->kind == PLAN_MOVE)
		nominate(c, a, NULL, 0, NULL, 0);
}

/* ---- claims ---- */

/* True if it still runs and was not signalled since the snapshot was taken. */
static bool can_leave(const struct carry *c, const struct plan_action *a)
{
	const struct job *j = model_find_job(c->m, key_of(a));

	return j && model_job_is_live(j) && !j->life->leave_us;
}

/* True if the action ends pods that run. */
static bool leaves(const struct plan_action *a)
{
	return a->kind == PLAN_EVICT || a->kind == PLAN_SHRINK || a->kind == PLAN_MOVE;
}

/* Add each victim once: a job may lose several pods. */
static uint32_t add_victim(struct job_key *victims, uint32_t n, struct job_key key)
{
	for (uint32_t i = 0; i < n; i++)
		if (victims[i].id == key.id && victims[i].index == key.index)
			return n;
	victims[n] = key;
	return n + 1;
}

/* Carry out a nomination and the evictions for it, which follow it. Returns their number. */
static uint32_t claim(const struct carry *c, const struct plan_action *a, uint32_t n_left)
{
	struct job_key *victims;
	bool sound = model_find_waiting(c->m, key_of(a)) && stands(c, a) && !c->at->claim_dropped;
	uint32_t n = 0, n_victims = 0;

	while (n < n_left && leaves(&a[1 + n]) && a[1 + n].claimant == a->job) {
		sound &= can_leave(c, &a[1 + n]) && stands(c, &a[1 + n]);
		n++;
	}
	if (n == 0)
		return 0; /* it waits for pods that are ending anyway: nothing to remember
			   * (plan.h) */
	victims = gpuq_arena_calloc(c->mem, n, sizeof(*victims));
	if (!sound || !victims) {
		drop(c, a, CARRY_STALE);
		c->at->claim_dropped = true;
		return n;
	}
	for (uint32_t i = 0; i < n; i++)
		n_victims = add_victim(victims, n_victims, key_of(&a[1 + i]));
	nominate(c, a, victims, n_victims, &a[1], n);
	report(c, CARRY_CLAIMED, a, NULL, NULL);
	for (uint32_t i = 0; i < n; i++)
		send_away(c, &a[1 + i], a);
	return n;
}

/* Carry out the action at index i; returns how many others were done with it. */
static uint32_t carry_one(const struct carry *c, uint32_t i)
{
	const struct plan_action *a = &c->p->actions[i];

	switch (a->kind) {
	case PLAN_NOMINATE:
		return claim(c, a, c->p->n_actions - i - 1);
	case PLAN_RELEASE:
		release(c, a);
		return 0;
	case PLAN_RESERVE:
		return 0; /* it is shown as the planned start */
	default:
		break;
	}
	if (!stands(c, a)) {
		drop(c, a, CARRY_DROPPED);
		return 0;
	}
	if (a->kind == PLAN_PLACE)
		place(c, a);
	else if (a->kind == PLAN_GROW)
		grow(c, a);
	else if (can_leave(c, a))
		send_away(c, a, NULL);
	return 0;
}

bool carry_some(const struct carry_to *to, const struct model *m, const struct snapshot *s,
		const struct plan *p, struct gpuq_arena *mem, struct carry_at *at, uint32_t most)
{
	const struct carry c = { to, m, s, p, mem, at };

	for (; most > 0 && at->next < p->n_actions; most--)
		at->next += 1 + carry_one(&c, at->next);
	return at->next >= p->n_actions;
}

void carry_plan(const struct carry_to *to, const struct model *m, const struct snapshot *s,
		const struct plan *p, struct gpuq_arena *mem)
{
	struct carry_at at = { 0 };

	carry_some(to, m, s, p, mem, &at, UINT32_MAX);
}
