#include "gpuqd/snapshot/seal/snapshot_past.h"
#include "gpuqd/snapshot/seal/snapshot_sort.h"

/* Sealing: losses of jobs to claims of other queues. */

/* Compare losses by time, then by preemptor and victim: a total order, so that the plan does not
 * depend on the order in which they were added. */
static int cmp_loss(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_loss *a = (const struct snap_loss *)ctx + x;
	const struct snap_loss *b = (const struct snap_loss *)ctx + y;
	int d = sort_i64(a->at_us, b->at_us);

	if (d == 0)
		d = sort_i64(a->by.id, b->by.id);
	if (d == 0)
		d = sort_i64(a->by.index, b->by.index);
	if (d == 0)
		d = sort_i64(a->job.id, b->job.id);
	return d ? d : sort_i64(a->job.index, b->job.index);
}

int snapshot_past_sort(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order, *map;
	const int rc = snapshot_seal_sorted(w, s->n_losses, cmp_loss, s->losses, &order, &map);

	return rc < 0 ? rc
		      : snapshot_seal_permute(w, &s->losses, s->n_losses, sizeof(*s->losses),
					      order);
}

int snapshot_seal_losses(struct seal *w)
{
	struct snapshot *s = w->s;

	for (uint32_t i = 0; i < s->n_losses; i++) {
		struct snap_loss *l = &s->losses[i];

		if (l->queue >= s->n_queues || l->by_queue >= s->n_queues)
			return gpuq_fail(w->err, GPUQ_EINVAL,
					 "something was lost by no queue, or to none");
		l->queue = w->map_queue[l->queue];
		l->by_queue = w->map_queue[l->by_queue];
	}
	return snapshot_past_sort(w);
}
