#include "gpuqd/flow/advise/why.h"

#include "gpuqd/util/amount.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/snapshot/snapshot_pack.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/flow/advise/why_change.h"
#include "gpuqd/flow/advise/why_holders.h"
#include "gpuqd/flow/advise/why_missing.h"
#include "gpuqd/flow/advise/why_near.h"
#include "libgpuq/units.h"

/* ---- among the queues ---- */

/* Return the sum over the flavors that the job may use; flavors without devices do not count as
 * long as there are others. */
static int64_t over_flavors(const struct why_case *c, const int64_t *first, size_t step)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[c->job].request];
	bool any = false;
	int64_t sum = 0;

	for (uint32_t i = 0; i < r->n_flavor_ix; i++)
		any |= c->s->capacity[r->flavor_ix[i]] > 0;
	for (uint32_t i = 0; i < r->n_flavor_ix; i++)
		if (!any || c->s->capacity[r->flavor_ix[i]] > 0)
			sum = amount_sum(sum, first[r->flavor_ix[i] * step]);
	return sum;
}

static struct gpuq_val *queue_val(const struct why_case *c, uint32_t q, uint32_t waiting)
{
	const struct snapshot *s = c->s;
	const size_t at = (size_t)q * s->n_res;
	const struct snap_share *share = &s->shares[at];
	const size_t step = sizeof(*share) / sizeof(int64_t);
	const int64_t *fair = plan_fair_told(s, c->p, q, c->a);
	struct gpuq_val *v = gpuq_map(c->a);

	gpuq_put(c->a, v, "name", gpuq_str(c->a, s->queues[q].name));
	gpuq_put(c->a, v, "depth", gpuq_int(c->a, s->queues[q].depth));
	gpuq_put(c->a, v, "waiting", gpuq_int(c->a, waiting));
	gpuq_put(c->a, v, "allocated",
		 view_devices(c->a, over_flavors(c, &c->p->allocated[at], 1)));
	gpuq_put(c->a, v, "fair_share",
		 fair ? view_devices(c->a, over_flavors(c, fair, 1)) : gpuq_null(c->a));
	gpuq_put(c->a, v, "quota", view_devices(c->a, over_flavors(c, &share->quota, step)));
	gpuq_put(c->a, v, "limit", view_devices(c->a, over_flavors(c, &share->limit, step)));
	return v;
}

/* Append the queues with pending jobs below a parent, depth first; SNAP_NONE: below the root. */
static void put_below(const struct why_case *c, uint32_t parent, const uint32_t *waiting,
		      struct gpuq_val *list)
{
	for (uint32_t q = parent == SNAP_NONE ? 0 : parent + 1; q < c->s->n_queues; q++) {
		if (c->s->queues[q].parent != parent || !waiting[q])
			continue;
		gpuq_add(c->a, list, queue_val(c, q, waiting[q]));
		put_below(c, q, waiting, list);
	}
}

static void put_queues(struct why_case *c, struct gpuq_val *v)
{
	const struct snapshot *s = c->s;
	uint32_t *waiting = gpuq_arena_calloc(c->a, s->n_queues + 1, sizeof(*waiting));
	struct gpuq_val *list = gpuq_list(c->a);

	for (uint32_t i = 0; waiting && i < s->n_jobs; i++)
		waiting[s->jobs[i].queue] += s->jobs[i].n_waiting;
	/* Children come after their parents. */
	for (uint32_t q = s->n_queues; waiting && q-- > 0;)
		if (s->queues[q].parent != SNAP_NONE)
			waiting[s->queues[q].parent] += waiting[q];
	if (waiting)
		put_below(c, SNAP_NONE, waiting, list);
	gpuq_put(c->a, v, "queues", list);
}

/* ---- its entitlement ---- */

enum standing { QUOTA, FAIR_SHARE, BEYOND };

/* Return the level of its whole request on a flavor: quota only if the quota suffices on every
 * level of the tree. */
static enum standing standing_on(const struct why_case *c, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[c->job];
	/* As it is charged: a part, a replica or an instance is no whole device. */
	const int64_t asks = cost_of_request(c->s, &c->s->requests[j->request], flavor);
	const bool placed = why_outcome_of(c->p, c->tries->key) > WHY_WAITS;
	const size_t leaf = (size_t)j->queue * c->s->n_res + flavor;
	bool owed = true;

	for (uint32_t q = j->queue; q != SNAP_NONE; q = c->s->queues[q].parent) {
		const size_t at = (size_t)q * c->s->n_res + flavor;
		const int64_t quota = c->s->shares[at].quota;

		owed &= quota == GPUQ_UNLIMITED ||
			c->p->allocated[at] + (placed ? 0 : asks) <= quota;
	}
	if (owed)
		return QUOTA;
	return c->p->allocated[leaf] + (placed ? 0 : asks) <= c->p->fair_share[leaf] ? FAIR_SHARE
										     : BEYOND;
}

/* Report the flavor with the best level. */
static void put_standing(const struct why_case *c, struct gpuq_val *v)
{
	static const char *const words[] = { "quota", "fair_share", "beyond" };
	const struct snap_request *r = &c->s->requests[c->s->jobs[c->job].request];
	enum standing best = BEYOND;
	bool may = r->gpus_milli > 0;

	for (uint32_t i = 0; i < r->n_flavor_ix; i++) {
		const enum standing one = standing_on(c, r->flavor_ix[i]);

		if (c->s->capacity[r->flavor_ix[i]] > 0 && one < best)
			best = one;
	}
	/* A job that cannot be preempted must be within quota, or it does not start. */
	if (!c->s->jobs[c->job].preemptible && best != QUOTA)
		may = false;
	gpuq_put(c->a, v, "standing", may ? gpuq_str(c->a, words[best]) : gpuq_null(c->a));
}

/* ---- what is free ---- */

/* True if pods of the group may be on the node, whatever is free there. */
static bool admits_group(const struct snapshot *s, const struct snap_group *g, uint32_t node)
{
	return feasibility_is_named(g, s->nodes[node].name) && feasibility_allows(s, g, node) &&
	       feasibility_isolates(g, &s->nodes[node]);
}

/* True if the node is of a flavor of the request and admits some group of it that asks for devices. */
static bool may_use(const struct snapshot *s, const struct snap_request *r, uint32_t node)
{
	bool flavor = false, admits = false;

	for (uint32_t f = 0; f < r->n_flavor_ix; f++)
		flavor |= r->flavor_ix[f] == s->nodes[node].flavor;
	for (uint32_t g = 0; flavor && g < r->n_groups && !admits; g++)
		admits = r->groups[g].gpus_milli > 0 && admits_group(s, &r->groups[g], node);
	return admits;
}

/* Return the thousandths of whole devices, of parts or of instances that are free on the node, in the way
 * in which the group requests them. */
static int64_t free_of(const struct snapshot *s, const struct snap_group *g, uint32_t node)
{
	const struct snap_node *n = &s->nodes[node];
	const bool parts = snap_group_parts(g) > 0;
	int64_t milli = -(int64_t)n->foreign_gpus * SNAP_MILLI;

	if (g->mig) {
		const int64_t k = g->profile == SNAP_NONE
					  ? 0
					  : s->extra_free[(size_t)node * s->n_extras + g->profile];

		return k > 0 ? k * cost_of_profile(g->mig) : 0;
	}
	for (uint32_t d = 0; d < n->n_devices; d++) {
		const int32_t here = s->devices[n->device_first + d].free_milli;

		if (parts ? here > 0 : here == SNAP_MILLI && n->replicas <= 1)
			milli += here;
	}
	return milli > 0 ? milli : 0;
}

/* Return the same for all its groups: the most of them. */
static int64_t free_on(const struct snapshot *s, const struct snap_request *r, uint32_t node)
{
	int64_t most = 0;

	for (uint32_t g = 0; g < r->n_groups; g++) {
		const int64_t one =
			r->groups[g].gpus_milli > 0 ? free_of(s, &r->groups[g], node) : 0;

		most = one > most ? one : most;
	}
	return most;
}

/* Report the devices that it may use, cut or not, on nodes that accept pods: in total, and the most on
 * one node. */
static void put_free(const struct why_case *c, struct gpuq_val *v)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[c->job].request];
	struct gpuq_val *free_ = gpuq_map(c->a);
	int64_t sum = 0, largest = 0;

	for (uint32_t n = 0; n < c->s->n_nodes; n++) {
		int64_t here;

		if (c->s->nodes[n].state != SNAP_READY || !may_use(c->s, r, n))
			continue;
		here = free_on(c->s, r, n);
		sum += here;
		largest = here > largest ? here : largest;
	}
	gpuq_put(c->a, free_, "gpus", view_devices(c->a, sum));
	gpuq_put(c->a, free_, "largest", view_devices(c->a, largest));
	gpuq_put(c->a, v, "free", r->gpus_milli > 0 ? free_ : gpuq_null(c->a));
}

/* ---- what would happen now ---- */

static void put_next(struct why_case *c, struct gpuq_val *v)
{
	static const char *const outcomes[] = { "wait", "wait", "start", "claim" };
	const enum why_outcome out = why_outcome_of(c->p, c->tries->key);
	struct gpuq_val *victims = gpuq_list(c->a);

	gpuq_put(c->a, v, "next", gpuq_str(c->a, outcomes[out]));
	for (uint32_t i = 0; i < c->p->n_actions; i++) {
		const struct plan_action *a = &c->p->actions[i];
		struct gpuq_val *one;

		if ((a->kind != PLAN_EVICT && a->kind != PLAN_SHRINK && a->kind != PLAN_MOVE) ||
		    a->claimant != c->job)
			continue;
		one = why_job(c->a, c->s, a->job);
		gpuq_put(c->a, one, "cause", gpuq_str(c->a, gpuq_cause_word(a->cause)));
		gpuq_put(c->a, one, "rule", gpuq_str(c->a, a->rule ? a->rule : ""));
		gpuq_add(c->a, victims, one);
	}
	gpuq_put(c->a, v, "victims", victims);
}

/* Return the bounds at which the scheduler stopped short of a possible solution for the job. */
static struct gpuq_val *bounds_of(const struct why_case *c)
{
	struct gpuq_val *list = gpuq_list(c->a);

	for (uint32_t i = 0; i < c->p->n_bounds; i++) {
		const struct plan_bound *b = &c->p->bounds[i];
		struct gpuq_val *one;

		if (!plan_bound_concerns(c->s, c->p, b, c->job))
			continue;
		one = gpuq_map(c->a);
		gpuq_put(c->a, one, "bound", gpuq_str(c->a, plan_bound_word(b->what)));
		gpuq_put(c->a, one, "most", gpuq_int(c->a, b->most));
		gpuq_add(c->a, list, one);
	}
	return list;
}

static struct gpuq_val *explain(struct why_case *c)
{
	struct gpuq_val *v = gpuq_map(c->a);
	const bool waits = why_outcome_of(c->p, c->tries->key) == WHY_WAITS;

	put_next(c, v);
	put_standing(c, v);
	put_free(c, v);
	put_queues(c, v);
	gpuq_put(c->a, v, "holders", waits ? why_holders(c) : gpuq_list(c->a));
	gpuq_put(c->a, v, "missing", waits ? why_missing(c) : gpuq_list(c->a));
	/* A job with nominated placements is pending until its victims are gone, and no change
	 * helps. */
	gpuq_put(c->a, v, "changes",
		 waits && !c->s->jobs[c->job].n_promises ? why_changes(c) : gpuq_list(c->a));
	gpuq_put(c->a, v, "tries", gpuq_int(c->a, c->tries->n));
	gpuq_put(c->a, v, "cut_short", gpuq_bool(c->a, c->tries->cut_short));
	gpuq_put(c->a, v, "bounds", waits ? bounds_of(c) : gpuq_list(c->a));
	return v;
}

int why_explain(const struct why_question *q, struct gpuq_arena *mem, struct gpuq_val **out,
		struct gpuq_err *err)
{
	struct rec r = { (const unsigned char *)q->packed->data,
			 (const unsigned char *)q->packed->data + q->packed->len, false };
	struct gpuq_arena scratch = GPUQ_ARENA_INIT(0);
	struct gpuq_buf near = GPUQ_BUF_INIT;
	struct why_tries tries = { .packed = q->packed,
				   .key = q->key,
				   .stop = q->stop,
				   .stop_arg = q->stop_arg,
				   .err = err };
	struct why_case c = { .tries = &tries, .a = mem };
	struct snapshot *s = NULL;
	struct gpuq_val *v = NULL;
	struct plan p;
	uint32_t n_objects;
	int rc = snapshot_unpack(&r, &s, err);

	if (rc == 0)
		rc = snapshot_seal(s, err);
	if (rc == 0) {
		c.job = why_find(s, q->key);
		if (c.job == SNAP_NONE || s->jobs[c.job].state != SNAP_PENDING)
			rc = gpuq_fail(err, GPUQ_ENOENT, "the job is not pending");
	}
	if (rc == 0)
		rc = sched_cycle(s, &scratch, &p, err);
	if (rc == 0)
		rc = why_near(s, &p, c.job, q->packed, &near, &n_objects, err);
	if (rc == 0) {
		c.s = s;
		c.p = &p;
		tries.near = near.len ? &near : NULL;
		tries.most = why_most_tries(n_objects);
		v = explain(&c);
		rc = tries.rc;
	}
	if (rc == 0)
		*out = v;
	snapshot_free(s);
	gpuq_buf_done(&near);
	gpuq_arena_done(&scratch);
	return rc;
}
