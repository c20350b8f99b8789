#include "gpuqd/sched/timeline/timeline_pack.h"

#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/sched/timeline/timeline_int.h"

#include <string.h>

#include "gpuqd/sched/timeline/timeline_free.h"
#include "gpuqd/sched/timeline/timeline_extras.h"
#include "gpuqd/sched/timeline/timeline_licenses.h"
#include "gpuqd/sched/timeline/timeline_parts.h"
#include "gpuqd/sched/timeline/timeline_plan.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/sort.h"

/* Starting beside start reservations, and ahead of them (backfill). A job that ends in time, or
 * leaves start reservations what they count on, simply starts. One that allows a shorter time limit
 * gets the time until then. A preemptible one without a time limit may start ahead of them: it
 * yields in time. */

#define WORTH_US (60 * GPUQ_US_PER_S) /* no job starts that must yield sooner */

bool timeline_binds(struct cycle *c, uint32_t job)
{
	const int64_t now = c->s->config.now_us, end = timeline_end(c, job, now);

	/* Without a timeline no job was blocked yet, and nothing is planned. */
	if (!c->timeline->future || !timeline_look_ahead(c))
		return false;
	for (uint32_t i = 0; i < c->timeline->future->n_booked; i++)
		if (c->timeline->future->booked[i].start_us < end &&
		    timeline_bars(c, &c->timeline->future->booked[i], job, now))
			return true;
	return reservations_bars(c, job, now, end, NULL) != SNAP_NONE ||
	       timeline_licenses_clash(c, job, now, end);
}

/* Withhold on a node what one start reservation there counts on. */
static void withhold(struct cycle *c, const struct booked *b, uint32_t job, bool exclusive)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct spare left = timeline_spare(c, b, job, c->s->config.now_us);
	const uint32_t n = b->node;
	const int64_t spare = left.whole > 0 ? left.whole : 0;
	int64_t pods = b->pods;

	nodes_change(c, n);
	avail->cpu[n] = left.cpu < avail->cpu[n] ? left.cpu : avail->cpu[n];
	avail->memory[n] = left.memory < avail->memory[n] ? left.memory : avail->memory[n];
	/* An exclusive job and a start reservation cannot share a node. */
	if (exclusive || b->alone)
		pods = 0;
	avail->pods[n] = pods < avail->pods[n] ? pods : avail->pods[n];
	if (avail->whole[n] > spare)
		avail->withheld[n] = (uint16_t)(avail->withheld[n] + avail->whole[n] - spare);
	nodes_changed(c, n);
}

/* Return how much of an amount is kept from a job; unlimited before is unlimited afterwards. */
static int64_t held_back(int64_t before, int64_t now)
{
	return before == GPUQ_UNLIMITED ? GPUQ_UNLIMITED : before - now;
}

/* The inverse of held_back(). */
static void give_back(int64_t *amount, int64_t kept)
{
	*amount = kept == GPUQ_UNLIMITED ? GPUQ_UNLIMITED : *amount + kept;
}

/* Add the need of one pod of a group. */
static void add_need(struct need *sum, struct need one)
{
	sum->whole += one.whole;
	sum->cpu = amount_sum(sum->cpu, one.cpu);
	sum->memory = amount_sum(sum->memory, one.memory);
	sum->pods++;
}

/* True if the amounts on the node of a hold (uncounted ones are ignored) are no more than it has to
 * spare when it begins. */
static bool spares(const struct cycle *c, const struct booked *b, uint32_t job,
		   const struct need *n)
{
	struct spare left;

	if (n->pods == 0)
		return true;
	left = timeline_spare(c, b, job, c->s->config.now_us);
	return !b->alone && !cycle_request(c, job)->exclusive &&
	       (n->whole == 0 || n->whole <= left.whole) && (n->cpu == 0 || n->cpu <= left.cpu) &&
	       (n->memory == 0 || n->memory <= left.memory) && n->pods <= b->pods;
}

/* Return what the current places take of a node. */
static struct need taken_of(const struct cycle *c, const struct snap_request *r, uint32_t node)
{
	struct need all = { 0 };

	for (uint32_t k = 0; k < c->places.n_pods; k++)
		if (c->places.pods[k].node == node)
			add_need(&all, nodes_need(&r->groups[c->places.pods[k].group]));
	return all;
}

bool timeline_spares(const struct cycle *c, const struct booked *b, uint32_t job)
{
	const struct need all = taken_of(c, cycle_request(c, job), b->node);

	return spares(c, b, job, &all);
}

/* The amount of a single device that is kept from a job. */
struct kept_device {
	uint32_t mark;
	int16_t milli;
	int64_t bytes;
};

/* Withhold on devices what start reservations there count on. Returns what to restore. */
static struct kept_device *withhold_devices(struct cycle *c, uint32_t job, int64_t end, uint32_t *n)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct future *f = c->timeline->future;
	const int64_t now = c->s->config.now_us;
	struct kept_device *kept = f->n_marks ? cycle_scratch(c, f->n_marks, sizeof(*kept)) : NULL;

	*n = 0;
	for (uint32_t i = 0; kept && i < f->n_marks; i++) {
		const struct mark *m = &f->marks[i];
		int32_t milli;
		int64_t bytes;

		if (m->start_us >= end || !timeline_parts_bars(c, m, job, now))
			continue;
		timeline_parts_spare(c, m, job, now, &milli, &bytes);
		if (milli >= avail->device_free[m->device] &&
		    bytes >= avail->device_memory[m->device])
			continue;
		milli = milli < avail->device_free[m->device]
				? avail->device_free[m->device] - milli
				: 0;
		bytes = bytes < avail->device_memory[m->device]
				? avail->device_memory[m->device] - bytes
				: 0;
		kept[(*n)++] = (struct kept_device){ i, (int16_t)milli, bytes };
		nodes_change(c, m->node);
		avail->device_free[m->device] = (int16_t)(avail->device_free[m->device] - milli);
		avail->device_memory[m->device] -= bytes;
		nodes_changed(c, m->node);
	}
	return kept;
}

/* Restore what withhold_devices() took. */
static void release_devices(struct cycle *c, const struct kept_device *kept, uint32_t n)
{
	const struct amounts *avail = nodes_amounts(c);

	while (n-- > 0) {
		const struct mark *m = &c->timeline->future->marks[kept[n].mark];

		nodes_change(c, m->node);
		avail->device_free[m->device] =
			(int16_t)(avail->device_free[m->device] + kept[n].milli);
		avail->device_memory[m->device] += kept[n].bytes;
		nodes_changed(c, m->node);
	}
}

/* pack_job on what is left when all holds that begin before end are honoured. */
static bool pack_beside(struct cycle *c, uint32_t job, uint32_t flavor, int64_t end,
			uint32_t *behind)
{
	const struct amounts *avail = nodes_amounts(c);
	struct future *f = c->timeline->future;
	const int64_t now = c->s->config.now_us;
	const struct snap_request *r = cycle_request(c, job);
	struct kept_device *devices;
	int64_t *extras;
	uint32_t n_kept;
	struct kept {
		int64_t cpu, memory, pods;
		uint16_t withheld;
		bool touched;
	} *kept = cycle_scratch(c, f->n_booked, sizeof(*kept));
	bool placed;

	*behind = SNAP_NONE;
	if (!kept)
		return false;
	devices = withhold_devices(c, job, end, &n_kept);
	extras = timeline_extras_withhold(c, job, end);
	for (uint32_t i = 0; i < f->n_booked; i++) {
		const struct booked *b = &f->booked[i];
		const uint32_t n = b->node;

		if (b->start_us >= end || !timeline_bars(c, b, job, now))
			continue;
		kept[i] = (struct kept){ avail->cpu[n], avail->memory[n], avail->pods[n],
					 avail->withheld[n], true };
		if (*behind == SNAP_NONE)
			*behind = i;
		withhold(c, b, job, r->exclusive);
		kept[i].cpu = held_back(kept[i].cpu, avail->cpu[n]);
		kept[i].memory = held_back(kept[i].memory, avail->memory[n]);
		kept[i].pods = held_back(kept[i].pods, avail->pods[n]);
	}
	pack_withhold(c, true);
	placed = pack_job(c, job, flavor);
	pack_withhold(c, false);
	/* In reverse order, since several holds may be on one node. */
	for (uint32_t i = f->n_booked; i-- > 0;) {
		const uint32_t n = f->booked[i].node;

		if (!kept[i].touched)
			continue;
		nodes_change(c, n);
		give_back(&avail->cpu[n], kept[i].cpu);
		give_back(&avail->memory[n], kept[i].memory);
		give_back(&avail->pods[n], kept[i].pods);
		avail->withheld[n] = kept[i].withheld;
		nodes_changed(c, n);
	}
	release_devices(c, devices, n_kept);
	timeline_extras_release(c, extras);
	return placed;
}

/* As pack_beside, and off the nodes that reservations keep from it. */
static bool pack_within(struct cycle *c, uint32_t job, uint32_t flavor, int64_t end,
			struct future_bar *bar)
{
	struct future *f = c->timeline->future;
	const uint32_t by = reservations_bars(c, job, c->s->config.now_us, end, f->barred);
	const struct planned *licensed = timeline_licenses_clash(c, job, c->s->config.now_us, end);
	const bool within = f->over_planned && f->within != SNAP_NONE;
	const bool barred = by != SNAP_NONE || within;
	uint32_t behind;
	bool placed;

	*bar = (struct future_bar){ SNAP_NONE, SNAP_NONE };
	if (licensed) {
		bar->job = licensed->job;
		return false;
	}
	if (within)
		reservations_bar_others(c, f->within, f->barred);
	pack_bar(c, barred ? f->barred : NULL);
	/* Find out first whether reservations alone are in the way, so that the reason names them. */
	if (barred && !pack_job(c, job, flavor)) {
		pack_bar(c, NULL);
		bar->reservation = by;
		return false;
	}
	if (barred)
		pack_undo(c, job);
	/* Its own start reservation must not be in its way. */
	timeline_own(c, job, -1);
	placed = pack_beside(c, job, flavor, end, &behind);
	timeline_own(c, job, 1);
	pack_bar(c, NULL);
	if (behind != SNAP_NONE) {
		bar->job = f->booked[behind].job;
		bar->reservation = f->booked[behind].reservation;
	}
	return placed;
}

/* ---- with a shorter time limit than requested ---- */

/* Compare moments. */
static int cmp_limit(const void *ctx, uint32_t x, uint32_t y)
{
	const int64_t *limits = ctx;

	return sort_i64(limits[x], limits[y]);
}

/* List the time limits with which the job is gone when a start reservation or a reservation begins:
 * each such length between the shortest that it allows and the one it requested, ascending by
 * *order. NULL: no memory. */
static int64_t *lengths(struct cycle *c, uint32_t job, uint32_t *n, uint32_t **order)
{
	const struct future *f = c->timeline->future;
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t now = c->s->config.now_us, least = timeline_least_us(j);
	const int64_t most = timeline_walltime(c, job, now);
	const uint32_t room = f->n_booked + c->s->n_reservations;
	int64_t *out = cycle_scratch(c, (size_t)room + 1, sizeof(*out));
	uint32_t *ix = cycle_scratch(c, (size_t)room + 1, sizeof(*ix));
	uint32_t *scratch = cycle_scratch(c, (size_t)room + 1, sizeof(*scratch));

	*n = 0;
	if (!out || !ix || !scratch)
		return NULL;
	out[(*n)++] = least;
	for (uint32_t i = 0; i < room; i++) {
		const int64_t start = i < f->n_booked
					      ? f->booked[i].start_us
					      : c->s->reservations[i - f->n_booked].start_us;
		int64_t us = amount_less(amount_less(start, now), j->grace_us);

		us -= us % GPUQ_US_PER_S; /* time limits are in seconds */
		if (us > least && us < most)
			out[(*n)++] = us;
	}
	for (uint32_t i = 0; i < *n; i++)
		ix[i] = i;
	sort_ix(ix, scratch, *n, cmp_limit, out);
	*order = ix;
	return out;
}

/* Pack the job as if its time limit were `us`. */
static bool pack_for(struct cycle *c, uint32_t job, uint32_t flavor, int64_t us)
{
	struct future_bar bar;

	return pack_within(
		c, job, flavor,
		amount_later(amount_later(c->s->config.now_us, us), c->s->jobs[job].grace_us),
		&bar);
}

/* Pack with the longest of the lengths that allows a start now. The fewer start reservations and
 * reservations begin before its end, the more is free: so a binary search is enough. */
static bool pack_shorter(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[job];
	uint32_t n, fits = 0, fails, *order;
	int64_t *us;

	if (timeline_least_us(j) >= timeline_walltime(c, job, c->s->config.now_us) ||
	    !pack_for(c, job, flavor, timeline_least_us(j)))
		return false;
	us = lengths(c, job, &n, &order);
	if (!us)
		return false;
	fails = n;
	while (fails - fits > 1) {
		const uint32_t at = fits + (fails - fits) / 2;

		/* Only one attempt may hold places at a time; the best length is packed again when
		 * needed. */
		pack_undo(c, job);
		if (pack_for(c, job, flavor, us[order[at]])) {
			fits = at;
			continue;
		}
		fails = at;
		if (!pack_for(c, job, flavor, us[order[fits]]))
			return false;
	}
	c->timeline->future->given_us = us[order[fits]];
	return true;
}

int64_t timeline_given_us(const struct cycle *c, uint32_t job)
{
	const int64_t most = timeline_walltime(c, job, c->s->config.now_us);

	if (c->timeline->future && c->timeline->future->given_us)
		return c->timeline->future->given_us;
	return most < c->s->jobs[job].walltime_us ? most : 0;
}

/* Return when the current places must be yielded: before the first hold there that does not have
 * enough to spare, and before a reservation takes the node. */
static int64_t time_of_yield(struct cycle *c, uint32_t job)
{
	const struct future *f = c->timeline->future;
	const struct snap_request *r = cycle_request(c, job);
	const int64_t now = c->s->config.now_us;
	const struct planned *licensed;
	const struct extra_hold *extra;
	int64_t first = GPUQ_UNLIMITED;

	timeline_own(c, job, -1);
	for (uint32_t i = 0; i < f->n_booked; i++) {
		const struct booked *b = &f->booked[i];
		struct need all;

		if (b->start_us >= first || !timeline_bars(c, b, job, now))
			continue;
		all = taken_of(c, r, b->node);
		if (!spares(c, b, job, &all))
			first = b->start_us;
	}
	for (uint32_t k = 0; k < c->places.n_pods; k++) {
		const struct place *p = &c->places.pods[k];

		for (uint32_t d = 0; f->by_device && d < p->n_devices; d++) {
			const uint32_t ix = c->s->nodes[p->node].device_first +
					    c->places.devices[p->device_first + d];
			const struct mark *m;
			int32_t milli;
			int64_t bytes;

			timeline_parts_at_hand(c, r, ix, &milli, &bytes);
			m = timeline_parts_clash(c, job, ix, milli, bytes);
			if (m && m->start_us < first)
				first = m->start_us;
		}
		first = reservations_takes(c, job, p->node, first);
	}
	/* The earliest moment at which something must have the place counts. */
	extra = timeline_extras_clash(c, job, false, first);
	first = extra ? extra->start_us : first;
	timeline_own(c, job, 1);
	licensed = timeline_licenses_clash(c, job, now, first);
	return licensed ? licensed->start_us : first;
}

/* Pack ahead of start reservations, when it is preemptible and has no known end. */
static bool pack_ahead(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[job];
	struct future_bar bar;

	if (!j->preemptible || j->walltime_us != GPUQ_UNLIMITED)
		return false;
	if (!pack_within(c, job, flavor,
			 amount_later(c->s->config.now_us, amount_later(j->grace_us, WORTH_US)),
			 &bar))
		return false;
	/* The time is computed for the places it has just got. */
	c->timeline->future->yield_us = time_of_yield(c, job);
	return true;
}

bool timeline_pack_strictly(struct cycle *c, uint32_t job, uint32_t flavor)
{
	struct future_bar bar;

	if (!timeline_binds(c, job))
		return pack_job(c, job, flavor);
	return pack_within(c, job, flavor, timeline_end(c, job, c->s->config.now_us), &bar);
}

void timeline_keep_off(struct cycle *c, uint32_t job, uint64_t *set)
{
	memset(set, 0, cycle_words(c) * sizeof(*set));
	if (!c->timeline->future || !timeline_look_ahead(c))
		return;
	reservations_bars(c, job, c->s->config.now_us, GPUQ_UNLIMITED, set);
	for (uint32_t i = 0; i < c->timeline->future->n_booked; i++)
		bits_add(set, c->timeline->future->booked[i].node);
}

bool timeline_pack_on_planned(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t within)
{
	struct future_bar bar;
	bool placed;

	c->timeline->future->over_planned = true;
	c->timeline->future->within = within;
	placed = pack_within(c, job, flavor, timeline_end(c, job, c->s->config.now_us), &bar);
	c->timeline->future->over_planned = false;
	return placed;
}

bool timeline_pack(struct cycle *c, uint32_t job, uint32_t flavor, struct future_bar *bar)
{
	c->timeline->future->yield_us = c->timeline->future->given_us = 0;
	return pack_within(c, job, flavor, timeline_end(c, job, c->s->config.now_us), bar) ||
	       pack_shorter(c, job, flavor) || pack_ahead(c, job, flavor);
}

int64_t timeline_yield_us(const struct cycle *c)
{
	return c->timeline->future && c->timeline->future->yield_us != GPUQ_UNLIMITED
		       ? c->timeline->future->yield_us
		       : 0;
}

/* ---- yielding in time ---- */

void timeline_wake(struct cycle *c, int64_t t)
{
	if (t > c->s->config.now_us && t < c->plan.wake_us)
		c->plan.wake_us = t;
}

void timeline_evict(struct cycle *c, uint32_t job, enum gpuq_cause cause, uint32_t claimant,
		    const char *rule)
{
	struct plan_action *a = PLAN_PUSH(c, actions, 1);

	if (!a)
		return;
	*a = (struct plan_action){ .kind = PLAN_EVICT,
				   .job = job,
				   .request = cycle_request_ix(c, job),
				   .key = c->s->jobs[job].key,
				   .flavor = SNAP_NONE,
				   .start_us = c->s->config.now_us,
				   .cause = cause,
				   .claimant = claimant,
				   .rule = rule };
}

/* True if the job can stay when the hold b begins. */
static bool can_stay(const struct cycle *c, const struct booked *b, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	struct need all = { 0 };

	for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++) {
		const struct snap_alloc *a = &c->s->allocs[i];

		if (a->node == b->node)
			add_need(&all, nodes_need_of(c->s, a));
	}
	return spares(c, b, job, &all);
}

/* Take what a job that stays holds from all later holds, so that those after it see what is left. */
static void spend_all(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];

	for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++) {
		const struct snap_alloc *a = &c->s->allocs[i];
		const struct need one = nodes_need_of(c->s, a);

		timeline_spend(c, a->node, c->s->config.now_us, GPUQ_UNLIMITED, &one, 1);
		for (uint32_t d = 0; d < a->n_devices; d++) {
			const uint32_t ix = c->s->nodes[a->node].device_first + a->devices[d];

			timeline_parts_spend(
				c, ix, c->s->config.now_us, GPUQ_UNLIMITED, a->milli,
				timeline_parts_bytes(c, ix, a->milli, snap_group_of(c->s, a)), 1);
		}
	}
}

/* Return the first hold that begins on a device of the job and needs it. */
static const struct mark *device_in_the_way(const struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct mark *first = NULL;

	for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++) {
		const struct snap_alloc *a = &c->s->allocs[i];

		for (uint32_t d = 0; c->timeline->future->by_device && d < a->n_devices; d++) {
			const uint32_t ix = c->s->nodes[a->node].device_first + a->devices[d];
			const struct mark *m;
			int32_t milli;
			int64_t bytes;

			timeline_parts_held(c, job, ix, &milli, &bytes);
			m = timeline_parts_clash(c, job, ix, milli, bytes);

			if (m && (!first || m->start_us < first->start_us))
				first = m;
		}
	}
	return first;
}

/* True if it is in the way of a start reservation or a reservation; *by = the job that begins first
 * of those, SNAP_NONE = a reservation does. */
static bool in_the_way(const struct cycle *c, uint32_t job, uint32_t *by)
{
	const struct future *f = c->timeline->future;
	const struct booked *first = NULL;
	const struct mark *device = device_in_the_way(c, job);
	const struct planned *licensed = timeline_licenses_wanted(c, job);
	const struct extra_hold *extra = timeline_extras_clash(c, job, true, GPUQ_UNLIMITED);

	for (uint32_t i = 0; i < f->n_booked; i++)
		if (timeline_bars(c, &f->booked[i], job, c->s->config.now_us) &&
		    !can_stay(c, &f->booked[i], job) &&
		    (!first || f->booked[i].start_us < first->start_us))
			first = &f->booked[i];
	*by = first ? first->job : SNAP_NONE;
	if (device && (!first || device->start_us < first->start_us))
		*by = device->job;
	if (extra && *by == SNAP_NONE)
		*by = extra->job;
	if (licensed && *by == SNAP_NONE)
		*by = licensed->job;
	return first || device || extra || licensed;
}

bool timeline_leaves(const struct cycle *c, uint32_t job)
{
	for (uint32_t i = 0; i < c->plan.n_actions; i++)
		if (c->plan.actions[i].job == job &&
		    (c->plan.actions[i].kind == PLAN_EVICT || c->plan.actions[i].kind == PLAN_MOVE))
			return true;
	return false;
}

void timeline_yield(struct cycle *c)
{
	const int64_t now = c->s->config.now_us;

	for (uint32_t k = 0; k < c->s->lines.n_busy && !c->failed; k++) {
		const uint32_t i = c->s->lines.busy[k];
		const struct snap_job *j = &c->s->jobs[i];
		uint32_t by;
		bool blocks;
		int64_t takes = GPUQ_UNLIMITED;

		/* One that stayed long beyond its time need not yield any more: see
		 * end_of_running(). */
		if (j->state != SNAP_RUNNING || j->yield_us == 0 ||
		    now - j->yield_us > FUTURE_OVERRUN_US || timeline_leaves(c, i))
			continue;
		/* It is signalled early enough for its grace period. */
		if (j->yield_us - j->grace_us > now) {
			timeline_wake(c, j->yield_us - j->grace_us);
			continue;
		}
		for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++)
			takes = reservations_takes(c, i, c->s->allocs[a].node, takes);
		blocks = in_the_way(c, i, &by);
		if (blocks || takes != GPUQ_UNLIMITED)
			timeline_evict(c, i, GPUQ_CAUSE_YIELD, by,
				       gpuq_rule_word(GPUQ_RULE_YIELD_PLANNED));
		else
			spend_all(c, i); /* it stays: those after it may have to yield */
	}
	/* Jobs that have just been started yield, too. */
	for (uint32_t i = 0; i < c->plan.n_actions; i++)
		if (c->plan.actions[i].kind == PLAN_PLACE && c->plan.actions[i].yield_us)
			timeline_wake(c, c->plan.actions[i].yield_us -
						 c->s->jobs[c->plan.actions[i].job].grace_us);
}
