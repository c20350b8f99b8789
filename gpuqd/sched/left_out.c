#include "gpuqd/sched/left_out.h"

#include <stdlib.h>
#include <string.h>

#define WANTED_MOST (INT64_MAX / 4) /* beyond, a sum may have been cut to what fits */

/* True if the plan changes nothing now. */
static bool decides_nothing(const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_actions; i++)
		if (p->actions[i].kind != PLAN_RESERVE)
			return false;
	return !p->cut_short;
}

/* True if there are pools that could grow: jobs that cannot start request nodes for each other. */
static bool may_grow(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].state >= SNAP_ASKED)
			return true;
	return false;
}

/* True if no amount is so large that it is no longer exact. */
static bool is_exact(const int64_t *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (wanted[i] >= WANTED_MOST)
			return false;
	return true;
}

bool left_out_take(struct left_out *out, const struct snapshot *s, const struct plan *p)
{
	struct left_out l = { .n = (size_t)s->n_queues * s->n_res };

	*out = (struct left_out){ 0 };
	if (!p->left_out || !p->fair_share || !decides_nothing(p) || !is_exact(p->left_out, l.n) ||
	    may_grow(s))
		return false;
	l.wanted = malloc((l.n + 1) * sizeof(*l.wanted));
	l.fair = malloc((l.n + 1) * sizeof(*l.fair));
	l.demand = malloc((l.n + 1) * sizeof(*l.demand));
	l.reserved = malloc((p->n_actions + 1) * sizeof(*l.reserved));
	if (!l.wanted || !l.fair || !l.demand || !l.reserved) {
		left_out_done(&l);
		return false;
	}
	memcpy(l.wanted, p->left_out, l.n * sizeof(*l.wanted));
	memcpy(l.fair, p->fair_share, l.n * sizeof(*l.fair));
	memcpy(l.demand, p->demand, l.n * sizeof(*l.demand));
	for (uint32_t i = 0; i < p->n_actions; i++)
		l.reserved[l.n_reserved++] = p->actions[i].key;
	*out = l;
	return true;
}

/* True if the job had a start reservation before. */
static bool was_reserved(const struct left_out *l, struct snap_key key)
{
	for (uint32_t i = 0; i < l->n_reserved; i++)
		if (l->reserved[i].id == key.id && l->reserved[i].index == key.index)
			return true;
	return false;
}

/* True if no share is another one. A queue with a share as large as its demand has grown by what its new
 * jobs want, which admits none of the others: it admitted all of them before. */
static bool shares_stand(const struct left_out *l, const struct plan *p)
{
	for (size_t i = 0; i < l->n; i++)
		if (p->fair_share[i] != l->fair[i] &&
		    (p->fair_share[i] != p->demand[i] || l->fair[i] != l->demand[i] ||
		     p->fair_share[i] < l->fair[i]))
			return false;
	return true;
}

bool left_out_confirmed(const struct left_out *l, const struct snapshot *s, const struct plan *p)
{
	const size_t n = (size_t)s->n_queues * s->n_res;

	if (!decides_nothing(p) || n != l->n || p->n_actions != l->n_reserved ||
	    !shares_stand(l, p))
		return false;
	for (uint32_t i = 0; i < p->n_actions; i++)
		if (!was_reserved(l, p->actions[i].key))
			return false;
	return true;
}

void left_out_done(struct left_out *l)
{
	free(l->wanted);
	free(l->fair);
	free(l->demand);
	free(l->reserved);
	*l = (struct left_out){ 0 };
}
