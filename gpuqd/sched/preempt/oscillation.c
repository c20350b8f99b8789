#include "gpuqd/sched/preempt/oscillation.h"

#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/sched/preempt/preempt_int.h"
#include "gpuqd/util/sort.h"

/* A claim is a reversal when its job was itself preempted for the other side before. A queue may be
 * within its rights to do so once, as a quota that was requested late; when both do so within an
 * hour they pass the same places back and forth, whatever the rules say. */

#define HOUR_US (3600 * GPUQ_US_PER_S)

/* A claim by which x reclaimed from y, both below their nearest common ancestor. */
struct reversal {
	uint32_t x, y; /* the two sides, below their common ancestor */
	int64_t at_us;
};

struct reversals {
	struct reversal *items; /* by time */
	uint32_t n;
};

/* Compare losses by the job that lost, then by time: all losses of a job stand together. */
static int cmp_loser(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_loss *a = (const struct snap_loss *)ctx + x;
	const struct snap_loss *b = (const struct snap_loss *)ctx + y;
	int d = sort_i64(a->job.id, b->job.id);

	if (d == 0)
		d = sort_i64(a->job.index, b->job.index);
	return d ? d : sort_i64(a->at_us, b->at_us);
}

static bool same_key(struct snap_key a, struct snap_key b)
{
	return a.id == b.id && a.index == b.index;
}

/* True if the preemptor of that loss was preempted for the other side before. */
static bool takes_back(const struct cycle *c, const uint32_t *by_loser, uint32_t loss)
{
	const struct snap_loss *all = c->s->losses, *l = &all[loss];
	uint32_t low = 0, high = c->s->n_losses, x, y, was_x, was_y;

	/* Find the first loss of the preemptor. */
	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;
		const struct snap_key key = all[by_loser[mid]].job;

		if (key.id < l->by.id || (key.id == l->by.id && key.index < l->by.index))
			low = mid + 1;
		else
			high = mid;
	}
	rules_below_common(c, l->by_queue, l->queue, &x, &y);
	for (; low < c->s->n_losses && same_key(all[by_loser[low]].job, l->by); low++) {
		const struct snap_loss *was = &all[by_loser[low]];

		if (was->at_us > l->at_us || was->by_queue == was->queue)
			continue;
		rules_below_common(c, was->queue, was->by_queue, &was_x, &was_y);
		if (was_x == x && was_y == y)
			return true;
	}
	return false;
}

/* Find the reversals of the last hour: claims by which a queue took back what had just been taken
 * from it. */
static struct reversals *find(struct cycle *c)
{
	const struct snapshot *s = c->s;
	struct reversals *r = cycle_alloc(c, 1, sizeof(*r));
	uint32_t *by_loser = cycle_alloc(c, s->n_losses, sizeof(*by_loser));
	uint32_t *scratch = cycle_alloc(c, s->n_losses, sizeof(*scratch));
	const struct snap_loss *last = NULL;

	if (r)
		r->items = cycle_alloc(c, s->n_losses, sizeof(*r->items));
	if (c->failed)
		return NULL;
	for (uint32_t i = 0; i < s->n_losses; i++)
		by_loser[i] = i;
	sort_ix(by_loser, scratch, s->n_losses, cmp_loser, s->losses);
	for (uint32_t i = 0; i < s->n_losses; i++) {
		const struct snap_loss *l = &s->losses[i];

		/* A claim counts once, however many victims it has, and from however many
		 * queues. */
		if (l->at_us <= s->config.now_us - HOUR_US || l->queue == l->by_queue ||
		    (last && same_key(last->by, l->by) && last->at_us == l->at_us) ||
		    !takes_back(c, by_loser, i))
			continue;
		last = l;
		rules_below_common(c, l->by_queue, l->queue, &r->items[r->n].x, &r->items[r->n].y);
		r->items[r->n++].at_us = l->at_us;
	}
	return r;
}

int64_t oscillation_rests(struct cycle *c, uint32_t x, uint32_t y, bool owed)
{
	const int64_t most = c->s->config.claim_reversals;
	const int64_t cooldown = c->s->config.cooldown_us;
	int64_t last = 0, until;
	uint32_t n = 0;

	if (most == 0 || c->s->n_losses <= most)
		return 0;
	if (!c->reversals)
		c->reversals = find(c);
	for (uint32_t i = c->reversals ? c->reversals->n : 0; i-- > 0;) {
		const struct reversal *r = &c->reversals->items[i];

		if (!((r->x == x && r->y == y) || (r->x == y && r->y == x)))
			continue;
		if (n++ == 0)
			last = r->at_us;
		if (n < most)
			continue;
		until = amount_sum(r->at_us, HOUR_US);
		if (owed && cooldown > 0 && amount_sum(last, cooldown) < until)
			until = amount_sum(last, cooldown);
		return until;
	}
	return 0;
}
