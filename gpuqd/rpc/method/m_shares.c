/* shares.list: what every queue and every user of one is due, and has used. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/quota/fairtree.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/rpc/method/m_ask.h"
#include "libgpuq/units.h"

struct shares_params {
	struct gpuq_strlist users, queues;
};

static const struct gpuq_field shares_fields[] = {
	P(shares_params, "users", GPUQ_K_STRLIST, users),
	P(shares_params, "queues", GPUQ_K_STRLIST, queues),
	P_END,
};
const struct gpuq_schema p_shares_list = P_SCHEMA(shares_params, shares_fields);

/* Usage is handed to the scheduler in 2^-20 GPU-seconds: snapshot/snapshot_take_usage. */
#define USED_UNIT 1048576.0

struct tree {
	struct gpuq_arena *a;
	const struct snapshot *s;
	const struct plan *plan;
	const struct shares_params *p;
	const uint32_t *ranks; /* by usage */
	uint64_t *used; /* by queue, what is below it included; the root's last */
	uint64_t *weights; /* of the children of a queue; the root's last */
	struct gpuq_val *list;
};

static uint32_t parent_of(const struct tree *t, uint32_t q)
{
	return t->s->queues[q].parent == SNAP_NONE ? t->s->n_queues : t->s->queues[q].parent;
}

static struct gpuq_val *ratio(struct gpuq_arena *a, double part, double whole)
{
	return whole > 0 ? gpuq_real(a, part / whole) : gpuq_int(a, 0);
}

/* By flavor, of those that there are devices of; a plain number where that is one. */
static struct gpuq_val *by_flavor(const struct tree *t, const int64_t *milli, size_t step)
{
	struct gpuq_val *map = gpuq_map(t->a);
	uint32_t n = 0, last = 0;

	for (uint32_t f = 0; f < t->s->n_flavors; f++)
		if (t->s->capacity[f] > 0) {
			n++;
			last = f;
		}
	if (n <= 1)
		return view_devices(t->a, milli[last * step]);
	for (uint32_t f = 0; f < t->s->n_flavors; f++)
		if (t->s->capacity[f] > 0)
			gpuq_put(t->a, map, t->s->flavors[f].name,
				 view_devices(t->a, milli[f * step]));
	return map;
}

/* Terms that queues and users have alike; of a user's the weight is 1. */
static struct gpuq_val *row(const struct tree *t, uint32_t q, uint32_t parent, uint64_t weight,
			    uint64_t used)
{
	const struct snap_queue *sq = &t->s->queues[q];
	const double norm = t->weights[parent] ? (double)weight / (double)t->weights[parent] : 0;
	const double effective = t->used[parent] ? (double)used / (double)t->used[parent] : 0;
	struct gpuq_val *v = gpuq_map(t->a);

	gpuq_put(t->a, v, "queue", gpuq_str(t->a, sq->name));
	gpuq_put(t->a, v, "raw_shares", view_devices(t->a, (int64_t)weight));
	gpuq_put(t->a, v, "norm_shares", gpuq_real(t->a, norm));
	gpuq_put(t->a, v, "raw_usage", gpuq_real(t->a, (double)used / USED_UNIT));
	gpuq_put(t->a, v, "norm_usage", ratio(t->a, (double)used, (double)t->used[t->s->n_queues]));
	gpuq_put(t->a, v, "effective_usage", gpuq_real(t->a, effective));
	/* Infinite where nothing was used. */
	gpuq_put(t->a, v, "level_fs",
		 effective > 0 ? gpuq_real(t->a, norm / effective) : gpuq_null(t->a));
	return v;
}

static struct gpuq_val *budget_minutes(struct gpuq_arena *a, int64_t ms, bool given)
{
	return given ? gpuq_real(a, (double)(ms / 600) / 100) : gpuq_null(a);
}

static void queue_row(struct tree *t, uint32_t q)
{
	const struct snap_queue *sq = &t->s->queues[q];
	const struct snap_share *shares = &t->s->shares[(size_t)q * t->s->n_res];
	const size_t step = sizeof(*shares) / sizeof(int64_t), at = (size_t)q * t->s->n_res;
	const int64_t *fair = plan_fair_told(t->s, t->plan, q, t->a);
	const bool budget = sq->budget_gpu_ms != GPUQ_UNLIMITED;
	struct gpuq_val *v = row(t, q, parent_of(t, q), (uint64_t)sq->weight_milli, t->used[q]);

	gpuq_put(t->a, v, "user", gpuq_null(t->a));
	gpuq_put(t->a, v, "parent",
		 sq->parent == SNAP_NONE ? gpuq_null(t->a)
					 : gpuq_str(t->a, t->s->queues[sq->parent].name));
	gpuq_put(t->a, v, "depth", gpuq_int(t->a, sq->depth));
	gpuq_put(t->a, v, "fair_share_factor", gpuq_null(t->a));
	gpuq_put(t->a, v, "quota", by_flavor(t, &shares->quota, step));
	gpuq_put(t->a, v, "limit", by_flavor(t, &shares->limit, step));
	gpuq_put(t->a, v, "lend", by_flavor(t, &shares->lend, step));
	gpuq_put(t->a, v, "rank", gpuq_int(t->a, sq->rank));
	gpuq_put(t->a, v, "fair_share", fair ? by_flavor(t, fair, 1) : gpuq_null(t->a));
	gpuq_put(t->a, v, "allocated", by_flavor(t, &t->plan->allocated[at], 1));
	gpuq_put(t->a, v, "demand", by_flavor(t, &t->plan->demand[at], 1));
	gpuq_put(t->a, v, "budget_gpu_minutes", budget_minutes(t->a, sq->budget_gpu_ms, budget));
	gpuq_put(t->a, v, "used_gpu_minutes", budget_minutes(t->a, sq->budget_used_gpu_ms, budget));
	gpuq_put(t->a, v, "over_budget", gpuq_bool(t->a, sq->over_budget));
	gpuq_add(t->a, t->list, v);
}

/* Jobs of a queue's users hold what the queue holds: count here the part of one user. */
static int64_t held_by(const struct tree *t, uint32_t usage)
{
	int64_t milli = 0;

	for (uint32_t i = 0; i < t->s->n_allocs; i++) {
		const struct snap_alloc *al = &t->s->allocs[i];

		if (t->s->jobs[al->job].usage == usage)
			milli += (int64_t)al->n_devices * al->milli;
	}
	return milli;
}

static void user_row(struct tree *t, uint32_t usage)
{
	const struct snap_usage *u = &t->s->usages[usage];
	struct gpuq_val *v = row(t, u->queue, u->queue, SNAP_MILLI, u->used);

	gpuq_put(t->a, v, "user", gpuq_str(t->a, t->s->users[u->user]));
	gpuq_put(t->a, v, "parent", gpuq_str(t->a, t->s->queues[u->queue].name));
	gpuq_put(t->a, v, "depth", gpuq_int(t->a, t->s->queues[u->queue].depth + 1));
	gpuq_put(t->a, v, "fair_share_factor", ratio(t->a, t->ranks[usage], t->s->n_usages));
	gpuq_put(t->a, v, "allocated", view_devices(t->a, held_by(t, usage)));
	gpuq_add(t->a, t->list, v);
}

/* A queue, its users, and what is below it; those that were not requested are passed
 * over, but those above one that was are not. */
static bool wanted(const struct tree *t, uint32_t q)
{
	for (uint32_t k = q; k < t->s->n_queues; k++) {
		uint32_t up = k;

		while (up != SNAP_NONE && up != q)
			up = t->s->queues[up].parent;
		if (up == q && gpuq_strlist_passes(&t->p->queues, t->s->queues[k].name))
			return true;
	}
	/* Below one that was requested. */
	for (uint32_t up = t->s->queues[q].parent; up != SNAP_NONE; up = t->s->queues[up].parent)
		if (gpuq_strlist_passes(&t->p->queues, t->s->queues[up].name))
			return true;
	return false;
}

static void walk(struct tree *t, uint32_t q)
{
	if (!wanted(t, q))
		return;
	queue_row(t, q);
	for (uint32_t u = 0; u < t->s->n_usages; u++)
		if (t->s->usages[u].queue == q &&
		    gpuq_strlist_passes(&t->p->users, t->s->users[t->s->usages[u].user]))
			user_row(t, u);
	for (uint32_t k = q + 1; k < t->s->n_queues; k++)
		if (t->s->queues[k].parent == q)
			walk(t, k);
}

static int sum_up(struct tree *t, struct gpuq_err *err)
{
	const uint32_t n = t->s->n_queues;

	t->used = gpuq_arena_calloc(t->a, (size_t)n + 1, sizeof(*t->used));
	t->weights = gpuq_arena_calloc(t->a, (size_t)n + 1, sizeof(*t->weights));
	if (!t->used || !t->weights || !t->ranks)
		return gpuq_no_memory(err);
	for (uint32_t u = 0; u < t->s->n_usages; u++) {
		t->used[t->s->usages[u].queue] += t->s->usages[u].used;
		t->weights[t->s->usages[u].queue] += SNAP_MILLI;
	}
	/* Children stand behind their parents. */
	for (uint32_t q = n; q-- > 0;) {
		t->used[parent_of(t, q)] += t->used[q];
		t->weights[parent_of(t, q)] += (uint64_t)t->s->queues[q].weight_milli;
	}
	return 0;
}

static int check_names(const struct snapshot *s, const struct shares_params *p,
		       struct gpuq_err *err)
{
	for (size_t i = 0; i < p->queues.n; i++)
		if (snapshot_find_queue(s, p->queues.items[i]) == SNAP_NONE)
			return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %s",
					 p->queues.items[i]);
	return 0;
}

static int shares(struct ask *ask, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct tree t = { .a = &ask->mem, .p = ask->arg };
	struct snapshot *s = NULL;
	struct plan plan;
	int rc = ask_snapshot(ask, &s, err);

	if (rc == 0)
		rc = check_names(s, t.p, err);
	if (rc == 0)
		rc = sched_cycle(s, &mem, &plan, err);
	if (rc == 0) {
		t.s = s;
		t.plan = &plan;
		t.list = gpuq_list(t.a);
		t.ranks = fairtree_ranks(s, &mem);
		rc = sum_up(&t, err);
	}
	for (uint32_t q = 0; rc == 0 && q < s->n_queues; q++)
		if (s->queues[q].parent == SNAP_NONE)
			walk(&t, q);
	if (rc == 0 && !gpuq_val_ok(t.list))
		rc = gpuq_no_memory(err);
	for (uint32_t i = 0; rc == 0 && i < t.list->n; i++)
		ask_item(ask, t.list->items[i]);
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return rc;
}

static int copy_names(struct gpuq_arena *a, const struct gpuq_strlist *in, struct gpuq_strlist *out)
{
	out->items = gpuq_arena_calloc(a, in->n, sizeof(*out->items));
	if (!out->items)
		return GPUQ_ENOMEM;
	for (size_t i = 0; i < in->n; i++)
		out->items[out->n++] = gpuq_arena_strdup(a, in->items[i]);
	return 0;
}

int m_shares_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct shares_params *in = params;
	struct ask *ask = ask_new(arg, c, NULL, err);
	struct shares_params *p = ask ? gpuq_arena_alloc(&ask->mem, sizeof(*p)) : NULL;

	if (!ask)
		return err->code;
	ask->arg = p;
	ask->stream = true;
	/* The call's own memory may be gone before the thread is done. */
	if (!p || copy_names(&ask->mem, &in->users, &p->users) < 0 ||
	    copy_names(&ask->mem, &in->queues, &p->queues) < 0)
		return ask_drop(ask), gpuq_no_memory(err);
	return ask_run(ask, shares, err);
}
