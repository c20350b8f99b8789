#include "gpuqd/sched/preempt/entitlement.h"

#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/preempt_int.h"

#include <string.h>

#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/sort.h"

/* Entitlement of running work: which of it a queue is entitled to, and which it holds beyond. A
 * queue over its line must not lose just any unit: a queue over its share by one device would lose
 * a gang of eight that it is entitled to, would reclaim it in the next cycle, and so on for
 * ever. */

#define UNKNOWN 0x80u /* of a unit that was gone when its queue was evaluated */
#define WAS_INSIDE 0x40u /* for the current line, before a unit was tentatively removed */

int64_t entitlement_line_of(const struct cycle *c, uint32_t queue, uint32_t res, enum line line)
{
	const int64_t quota = c->s->shares[(size_t)queue * c->s->n_res + res].quota;
	int64_t fair;

	if (line == LINE_QUOTA)
		return quota;
	fair = holdings_fair(c, queue)[res];
	/* Cpu and memory that have no quota: the queue is entitled to its fair share. */
	if (res >= c->s->n_flavors && quota == GPUQ_UNLIMITED)
		return fair;
	return quota > fair ? quota : fair;
}

/* True if the current preemptor lacks this resource, while it lacks no devices. */
static bool is_lacking(const struct cycle *c, uint32_t res)
{
	return (res == snap_cpu(c->s) && c->units->lacks & SHORT_CPU) ||
	       (res == snap_memory(c->s) && c->units->lacks & SHORT_MEMORY);
}

bool entitlement_counts(const struct cycle *c, uint32_t queue, uint32_t res, enum line line)
{
	if (line == LINE_SHARE && c->units && c->units->lacks)
		return is_lacking(c, res);
	return c->s->shares[(size_t)queue * c->s->n_res + res].quota != GPUQ_UNLIMITED;
}

void entitlement_set_lacks(struct cycle *c, uint8_t lacks)
{
	if (!c->units || c->units->lacks == lacks)
		return;
	c->units->lacks = lacks;
	/* The entitlement of all queues changes then. */
	for (uint32_t q = 0; q < c->s->n_queues; q++) {
		c->units->standings[q].fresh = 0;
		c->units->standings[q].ordered = c->units->standings[q].classed = false;
	}
}

uint32_t entitlement_measure(const struct cycle *c, const struct claim *k)
{
	if (k->flavor != SNAP_NONE && !c->units->lacks)
		return k->flavor;
	return c->units->lacks == SHORT_MEMORY ? snap_memory(c->s) : snap_cpu(c->s);
}

bool entitlement_beyond(const struct cycle *c, const struct claim *k, uint32_t queue,
			enum line line)
{
	for (uint32_t res = 0; res < c->s->n_res; res++)
		if (k->need[res] > 0 && entitlement_counts(c, queue, res, line) &&
		    holdings_stays(c, queue, res) > entitlement_line_of(c, queue, res, line))
			return true;
	return false;
}

/* Return the flags of a unit in a queue on its path. Depths on a path differ, so one row per unit
 * suffices. */
static uint8_t *flags_of(const struct cycle *c, uint32_t unit, uint32_t queue)
{
	return &c->units->inside[(size_t)unit * c->units->n_depths + c->s->queues[queue].depth];
}

/* ---- order of entitlement ---- */

/* Order by entitlement, the most entitled first. It is roughly the reverse of the order of victims;
 * firm units come first, since they cannot be preempted anyway. */
static int cmp_entitled(const void *ctx, uint32_t x, uint32_t y)
{
	const struct unit *a = (const struct unit *)ctx + x, *b = (const struct unit *)ctx + y;
	int d = sort_i64(b->firm, a->firm);

	if (d == 0)
		d = sort_i64(a->leaf_class, b->leaf_class);
	if (d == 0)
		d = sort_i64(a->surplus, b->surplus);
	if (d == 0)
		d = sort_i64(b->priority, a->priority);
	if (d == 0)
		d = sort_i64(b->evict_last, a->evict_last);
	if (d == 0)
		d = sort_i64(a->start_us, b->start_us);
	if (d == 0)
		d = sort_i64(a->job, b->job);
	return d ? d : sort_i64(x, y);
}

/* Return the number of units in a queue and all below it. */
static uint32_t count_items(const struct cycle *c, uint32_t queue)
{
	uint32_t n = 0;

	for (uint32_t u = c->units->leaf_first[queue]; u != SNAP_NONE; u = c->units->leaf_next[u])
		n++;
	for (uint32_t k = c->kids.first[queue]; k != SNAP_NONE; k = c->kids.next[k])
		n += count_items(c, k);
	return n;
}

/* List these units. */
static void collect(struct cycle *c, uint32_t queue, struct standing *st)
{
	for (uint32_t u = c->units->leaf_first[queue]; u != SNAP_NONE; u = c->units->leaf_next[u])
		st->items[st->n_items++] = u;
	for (uint32_t k = c->kids.first[queue]; k != SNAP_NONE; k = c->kids.next[k])
		collect(c, k, st);
}

/* ---- first fit into a quota or fair share ---- */

/* Compute what is left of a line, by resource. */
static void open_line(const struct cycle *c, uint32_t queue, enum line line, int64_t *left)
{
	for (uint32_t res = 0; res < c->s->n_res; res++)
		left[res] = entitlement_counts(c, queue, res, line)
				    ? entitlement_line_of(c, queue, res, line)
				    : GPUQ_UNLIMITED;
}

/* Take a unit's amounts from what is left of a line. False, and nothing is taken, if any of them
 * does not fit. */
static bool fill(const struct cycle *c, uint32_t unit, int64_t *left)
{
	for (uint32_t res = 0; res < c->s->n_res; res++)
		if (gangs_amount(c, unit, res) > left[res])
			return false;
	for (uint32_t res = 0; res < c->s->n_res; res++)
		if (left[res] != GPUQ_UNLIMITED)
			left[res] -= gangs_amount(c, unit, res);
	return true;
}

/* Fill the line with units in their order: the first fit, so a smaller unit may be inside where a
 * larger one before it is not. */
static void fill_line(struct cycle *c, uint32_t queue, const struct standing *st, enum line line)
{
	const uint8_t bit = (uint8_t)(1u << line);
	int64_t *left = c->units->left;

	open_line(c, queue, line, left);
	for (uint32_t i = 0; i < st->n_items; i++) {
		const uint32_t u = st->items[i];
		uint8_t *flags = flags_of(c, u, queue);

		if (c->units->units[u].gone) {
			*flags |= UNKNOWN;
			continue;
		}
		*flags = (uint8_t)(*flags & ~(UNKNOWN | bit));
		if (fill(c, u, left))
			*flags |= bit;
	}
}

static void refresh(struct cycle *c, uint32_t queue, enum line line);

/* Classes in the leaves below decide the order above: invalidate that of every queue above a leaf
 * that was evaluated again, on any request. */
static void refresh_leaves(struct cycle *c, uint32_t queue)
{
	struct standing *st = &c->units->standings[queue];
	bool changed = false;

	for (uint32_t k = c->kids.first[queue]; k != SNAP_NONE; k = c->kids.next[k])
		refresh_leaves(c, k);
	if (c->kids.first[queue] != SNAP_NONE)
		return;
	for (int line = 0; line < N_LINES; line++)
		refresh(c, queue, (enum line)line);
	if (st->classed || !st->items)
		return;
	for (uint32_t i = 0; i < st->n_items; i++) {
		const uint8_t flags = *flags_of(c, st->items[i], queue);
		const uint8_t class = flags & (1u << LINE_QUOTA)   ? 0
				      : flags & (1u << LINE_SHARE) ? 1
								   : 2;

		changed |= c->units->units[st->items[i]].leaf_class != class;
		c->units->units[st->items[i]].leaf_class = class;
	}
	st->classed = true;
	for (uint32_t q = c->s->queues[queue].parent; changed && q != SNAP_NONE;
	     q = c->s->queues[q].parent) {
		c->units->standings[q].ordered = false;
		c->units->standings[q].fresh = 0;
	}
}

/* Sort the units of a queue by entitlement. */
static void sort_items(struct cycle *c, uint32_t queue, struct standing *st)
{
	uint32_t *scratch = cycle_alloc(c, st->n_items, sizeof(*scratch));

	/* In a leaf the class is the result of this evaluation. */
	for (uint32_t i = 0; c->kids.first[queue] == SNAP_NONE && i < st->n_items; i++)
		c->units->units[st->items[i]].leaf_class = 0;
	if (scratch)
		sort_ix(st->items, scratch, st->n_items, cmp_entitled, c->units->units);
}

/* Make the order of a queue's units against one line, quota or fair share, valid again. Collecting
 * is done once, sorting after a change below, and adding up for each line when it is asked for. */
static void refresh(struct cycle *c, uint32_t queue, enum line line)
{
	struct standing *st = &c->units->standings[queue];
	const bool leaf = c->kids.first[queue] == SNAP_NONE;

	if (st->items && st->fresh & (1u << line))
		return;
	if (!st->items) {
		const uint32_t n = count_items(c, queue);

		st->items = cycle_alloc(c, (size_t)n + 1, sizeof(*st->items));
		st->n_items = 0;
		st->fresh = 0;
		st->ordered = false;
		if (!st->items)
			return;
		collect(c, queue, st);
	}
	if (!leaf)
		refresh_leaves(c, queue);
	if (!st->ordered)
		sort_items(c, queue, st);
	st->ordered = true;
	fill_line(c, queue, st, line);
	st->fresh |= (uint8_t)(1u << line);
	st->classed = false;
}

/* Return the units of a queue, up to date for that line; NULL without memory. */
static struct standing *standing_of(struct cycle *c, uint32_t queue, enum line line)
{
	refresh(c, queue, line);
	return c->failed ? NULL : &c->units->standings[queue];
}

void entitlement_changed(struct cycle *c, uint32_t unit)
{
	const struct unit *u = &c->units->units[unit];
	uint8_t stale = 0;

	for (uint32_t q = u->queue; q != SNAP_NONE; q = c->s->queues[q].parent) {
		struct standing *st = &c->units->standings[q];

		/* A unit outside the line keeps no other out; but a change in a leaf may change the
		 * order above. */
		if (stale || (st->items && *flags_of(c, unit, q) & UNKNOWN))
			stale = UINT8_MAX;
		else if (st->items)
			stale = *flags_of(c, unit, q);
		st->fresh = (uint8_t)(st->fresh & ~stale);
	}
}

bool entitlement_stands_inside(struct cycle *c, uint32_t unit, uint32_t queue, enum line line)
{
	return standing_of(c, queue, line) && (*flags_of(c, unit, queue) & (1u << line));
}

enum claim_depth entitlement_depth_of(struct cycle *c, const struct claim *k, uint32_t unit)
{
	const uint32_t leaf = c->units->units[unit].queue;
	struct standing *st;

	if (c->units->standings[leaf].depths == k->stamp.number)
		return (enum claim_depth)c->units->units[unit].depth;
	refresh(c, leaf, LINE_QUOTA);
	st = standing_of(c, leaf, LINE_SHARE);
	for (uint32_t i = 0; st && i < st->n_items; i++) {
		const uint8_t flags = *flags_of(c, st->items[i], leaf);

		c->units->units[st->items[i]].depth = flags & 1u << LINE_QUOTA   ? DEPTH_QUOTA
						      : flags & 1u << LINE_SHARE ? DEPTH_SHARE
										 : DEPTH_BEYOND;
	}
	if (st)
		st->depths = k->stamp.number;
	return (enum claim_depth)c->units->units[unit].depth;
}

/* ---- may a unit be preempted without loss of entitlement? ---- */

#define GAINS_MAX 64 /* different priorities among the changes */

/* A change of the amount inside the line, by priority. */
struct gain {
	int64_t priority, amount;
};

/* Remember the units inside the line now, for a later comparison. */
static void remember_inside(const struct cycle *c, const struct standing *st, uint32_t queue,
			    enum line line)
{
	for (uint32_t i = 0; i < st->n_items; i++) {
		uint8_t *flags = flags_of(c, st->items[i], queue);

		*flags = (uint8_t)(*flags & ~WAS_INSIDE);
		if (!c->units->units[st->items[i]].gone && *flags & (1u << line))
			*flags |= WAS_INSIDE;
	}
}

/* List the changes since then, by priority; returns how many, GAINS_MAX + 1 = more than that. */
static uint32_t count_gains(const struct cycle *c, const struct claim *k, const struct standing *st,
			    uint32_t queue, enum line line, struct gain *gains)
{
	const uint32_t res = entitlement_measure(c, k);
	uint32_t n = 0;

	for (uint32_t i = 0; i < st->n_items; i++) {
		const uint32_t u = st->items[i];
		const uint8_t flags = *flags_of(c, u, queue);
		const bool was = flags & WAS_INSIDE;
		const bool is = !c->units->units[u].gone && flags & (1u << line);
		uint32_t at = 0;

		*flags_of(c, u, queue) = (uint8_t)(flags & ~WAS_INSIDE);
		if (is == was || n > GAINS_MAX)
			continue;
		while (at < n && gains[at].priority != c->units->units[u].priority)
			at++;
		if (at == n && n++ < GAINS_MAX)
			gains[at] = (struct gain){ c->units->units[u].priority, 0 };
		if (n <= GAINS_MAX)
			gains[at].amount += is ? gangs_amount(c, u, res) : -gangs_amount(c, u, res);
	}
	return n;
}

/* True if without the unit others move inside the line whose amounts are worth as much, from the
 * highest priority down. Its leaf is evaluated again as well: a unit that moves up there moves up
 * in the order of the queues above. */
static bool others_make_up(struct cycle *c, const struct claim *k, uint32_t unit, uint32_t queue,
			   enum line line)
{
	const struct standing *st = standing_of(c, queue, line);
	struct gain gains[GAINS_MAX];
	uint32_t n, top = SNAP_NONE;

	if (!st)
		return false;
	remember_inside(c, st, queue, line);
	/* Remove the unit as an experiment; the evaluation is repeated afterwards, and must be as
	 * before. */
	c->units->units[unit].gone = true;
	entitlement_changed(c, unit);
	st = standing_of(c, queue, line);
	n = st ? count_gains(c, k, st, queue, line, gains) : 0;
	c->units->units[unit].gone = false;
	entitlement_changed(c, unit);
	if (!standing_of(c, queue, line) || n > GAINS_MAX)
		return false; /* too many to compare: it stays */
	for (uint32_t i = 0; i < n; i++)
		if (gains[i].amount != 0 &&
		    (top == SNAP_NONE || gains[i].priority > gains[top].priority))
			top = i;
	return top == SNAP_NONE || gains[top].amount > 0;
}

bool entitlement_concerns(const struct cycle *c, const struct claim *k, uint32_t unit)
{
	return k->flavor == SNAP_NONE || c->units->units[unit].gpus_milli == 0 ||
	       gangs_amount(c, unit, k->flavor) > 0;
}

/* True if x holds no more than y of any resource. */
static bool no_larger(const struct cycle *c, uint32_t x, uint32_t y)
{
	for (uint32_t res = 0; res < c->s->n_res; res++)
		if (gangs_amount(c, x, res) > gangs_amount(c, y, res))
			return false;
	return true;
}

/* True if the current plan preempts the unit as well. */
static bool goes_as_well(const struct claim *k, const struct unit *u)
{
	return k->stamp.plan && u->planned == k->stamp.plan;
}

/* Return the smallest unit outside, of the same leaf and priority, that could have been preempted
 * by the same right; each counts once. */
static uint32_t outside_alike(struct cycle *c, const struct claim *k, uint32_t unit, uint32_t queue,
			      enum line line)
{
	const struct standing *st = standing_of(c, queue, line);
	const struct unit *u = &c->units->units[unit];
	uint32_t best = SNAP_NONE;

	for (uint32_t i = 0; st && i < st->n_items; i++) {
		const struct unit *o = &c->units->units[st->items[i]];

		if (o->gone || o->fixed || o->queue != u->queue || o->priority != u->priority ||
		    o->justifies[line] == k->stamp.number || goes_as_well(k, o) ||
		    *flags_of(c, st->items[i], queue) & (1u << line))
			continue;
		if (no_larger(c, unit, st->items[i]) &&
		    (best == SNAP_NONE || no_larger(c, st->items[i], best)))
			best = st->items[i];
	}
	return best;
}

/* Return the amount of the queue that is preempted by the same plan, or is only nominated on
 * capacity that is being released. */
static int64_t uncertain(struct cycle *c, const struct claim *k, uint32_t unit, uint32_t queue,
			 uint32_t res)
{
	const struct standing *st = standing_of(c, queue, LINE_QUOTA);
	int64_t sum = 0;

	for (uint32_t i = 0; st && i < st->n_items; i++) {
		const struct unit *u = &c->units->units[st->items[i]];

		if (st->items[i] != unit && !u->gone && (u->soft || goes_as_well(k, u)))
			sum += gangs_amount(c, st->items[i], res);
	}
	return sum;
}

bool entitlement_line_kept(struct cycle *c, const struct claim *k, uint32_t queue, enum line line,
			   uint32_t unit)
{
	for (uint32_t res = 0; res < c->s->n_res; res++) {
		int64_t kept = holdings_stays(c, queue, res);

		if (k->need[res] == 0 || !entitlement_counts(c, queue, res, line))
			continue;
		if (unit != SNAP_NONE)
			kept -= gangs_amount(c, unit, res);
		if (k->stamp.plan || c->units->any_soft)
			kept -= uncertain(c, k, unit, queue, res);
		if (kept < entitlement_line_of(c, queue, res, line))
			return false;
	}
	return true;
}

/* True if the queue fills the line without the unit, and all its units outside are of at least the
 * unit's priority. */
static bool holds_without(struct cycle *c, const struct claim *k, uint32_t unit, uint32_t queue,
			  enum line line)
{
	const struct standing *st = standing_of(c, queue, line);

	if (!entitlement_line_kept(c, k, queue, line, unit))
		return false;
	for (uint32_t i = 0; st && i < st->n_items; i++) {
		const struct unit *o = &c->units->units[st->items[i]];

		if (!o->gone && entitlement_concerns(c, k, st->items[i]) &&
		    o->priority < c->units->units[unit].priority &&
		    !(*flags_of(c, st->items[i], queue) & (1u << line)))
			return false;
	}
	return st;
}

bool entitlement_is_free(struct cycle *c, const struct claim *k, uint32_t unit, uint32_t queue,
			 enum line line, bool *must_keep, uint32_t *instead)
{
	*must_keep = false;
	*instead = SNAP_NONE;
	if (!standing_of(c, queue, line))
		return false;
	/* Outside the line there is no entitlement to lose. */
	if (!(*flags_of(c, unit, queue) & (1u << line)))
		return true;
	if (others_make_up(c, k, unit, queue, line))
		return true;
	*instead = outside_alike(c, k, unit, queue, line);
	if (*instead != SNAP_NONE)
		return true;
	*must_keep = holds_without(c, k, unit, queue, line);
	return *must_keep;
}

/* True if the unit comes before the preemptor in the order of their leaf. Among equals the longer
 * running does, and the preemptor has not started; growth is surplus, which comes after all
 * gangs. */
static bool stands_before(const struct cycle *c, const struct claim *k, const struct unit *u,
			  bool firm, bool all)
{
	if (claim_is(k, CLAIM_GROWTH))
		return u->firm || !u->surplus || u->priority >= k->priority;
	if (u->surplus || u->firm || firm)
		return u->firm && !u->surplus;
	return all ? u->priority >= k->priority : !rules_goes_before(c, k, u);
}

uint8_t entitlement_claimant_stands(struct cycle *c, const struct claim *k, bool all)
{
	const struct standing *st = standing_of(c, k->leaf, LINE_QUOTA);
	const bool firm = !c->s->jobs[k->job].preemptible && !claim_is(k, CLAIM_GROWTH);

	for (int line = 0; st && line < N_LINES; line++) {
		int64_t *left = c->units->left;
		bool fits = true;

		open_line(c, k->leaf, (enum line)line, left);
		for (uint32_t i = 0; i < st->n_items; i++) {
			const struct unit *u = &c->units->units[st->items[i]];

			if (!u->gone && stands_before(c, k, u, firm, all))
				fill(c, st->items[i], left);
		}
		for (uint32_t res = 0; res < c->s->n_res; res++)
			fits = fits && k->need[res] <= left[res];
		if (fits)
			return (uint8_t)line;
	}
	return 2;
}
