#include "gpuqd/snapshot/seal/snapshot_usage.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/snapshot/seal/snapshot_sort.h"

/* Sealing: usage of users in queues, and which budgets are exhausted. */

/* Compare by queue, then by user. */
static int cmp_usage(const void *ctx, uint32_t x, uint32_t y)
{
	const struct seal *w = ctx;
	const struct snap_usage *a = &w->s->usages[x], *b = &w->s->usages[y];
	const int c = sort_i64(a->queue, b->queue);

	return c ? c : sort_i64(a->user, b->user);
}

/* Propagate exhausted soft budgets: each lowers the entitlement of every queue below it. */
static void seal_budgets(struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_queues; i++) {
		struct snap_queue *q = &s->queues[i];

		q->over_budget = q->budget_gpu_ms != GPUQ_UNLIMITED && !q->budget_hard &&
				 q->budget_used_gpu_ms >= q->budget_gpu_ms;
		q->demoted = q->over_budget && q->budget_demotes_guarantee;
		if (q->parent != SNAP_NONE) {
			q->over_budget |= s->queues[q->parent].over_budget;
			q->demoted |= s->queues[q->parent].demoted;
		}
		for (uint32_t r = 0; q->demoted && r < s->n_res; r++)
			s->shares[(size_t)i * s->n_res + r].quota = 0;
	}
}

/* True if caps and capsets that are referred to exist: they may come from a file. */
static bool caps_are_there(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_capsets; i++)
		for (uint32_t k = 0; k < SNAP_CAPS_MAX; k++)
			if (s->capsets[i].caps[k] != SNAP_NONE &&
			    s->capsets[i].caps[k] >= s->n_caps)
				return false;
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i].capset != SNAP_NONE && s->jobs[i].capset >= s->n_capsets)
			return false;
	return true;
}

int snapshot_seal_usages(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order;
	int rc;

	for (uint32_t i = 0; i < s->n_usages; i++) {
		if (s->usages[i].queue >= s->n_queues || s->usages[i].user >= s->n_users)
			return gpuq_fail(w->err, GPUQ_EINVAL,
					 "something was used by no user, or in no queue");
		s->usages[i].queue = w->map_queue[s->usages[i].queue];
	}
	if (!caps_are_there(s))
		return gpuq_fail(w->err, GPUQ_EINVAL, "a job counts against no cap");
	seal_budgets(s);
	rc = snapshot_seal_sorted(w, s->n_usages, cmp_usage, w, &order, &w->map_usage);
	return rc < 0 ? rc
		      : snapshot_seal_permute(w, &s->usages, s->n_usages, sizeof(*s->usages),
					      order);
}
