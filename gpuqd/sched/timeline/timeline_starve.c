#include "gpuqd/sched/timeline/timeline_starve.h"

#include "gpuqd/sched/quota/caps.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/sched/timeline/timeline_plan.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/sched/timeline/emit.h"
#include "gpuqd/sched/timeline/timeline_int.h"

#include "gpuqd/util/sort.h"

/* Starving jobs start, or have start reservations, before all others, the longest pending first:
 * then small jobs that come often cannot keep a large one pending for ever. A job that fits now
 * starts at once: a place that was only held for it would keep others from it, should the job's own
 * turn find a limit reached. The job that has been pending longest for a flavor gets a start
 * reservation however large it is, so each of them has one in the end: no later than the time of starving
 * plus, for each job that has been pending longer, the longest time limit. Further ones, as many as
 * other jobs may have start reservations, together get a small part of the flavor: more of them
 * would leave no gap for anything else on a crowded cluster. Jobs without devices have the same
 * bound on cpu and memory.
 * A job that exceeds the share of its queue has no such right where it would take what other queues
 * are entitled to and request. */

#define FURTHER_PART 8 /* one in this many devices is reserved for further ones */

struct line {
	const struct snapshot *s; /* for the times */
	uint32_t *jobs; /* a heap, the youngest on top; then in order */
	uint32_t n, room;
};

/* Return since when the job could have started: a begin time does not count as pending. */
static int64_t waits_since(const struct snap_job *j)
{
	return j->begin_us > j->eligible_us ? j->begin_us : j->eligible_us;
}

void timeline_note_waiting(struct cycle *c, uint32_t job)
{
	if (c->s->config.now_us - waits_since(&c->s->jobs[job]) > c->s->config.starve_us)
		c->timeline->any_starving = true;
}

bool timeline_any_starving(const struct cycle *c)
{
	return c->timeline->any_starving;
}

/* < 0: x has been pending longer */
static int cmp_wait(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_job *jobs = ctx;
	int d = sort_i64(waits_since(&jobs[x]), waits_since(&jobs[y]));

	return d ? d : sort_i64(x, y);
}

/* Restore the heap after the job at one place became later. */
static void sift_down(struct line *l, uint32_t at)
{
	for (;;) {
		const uint32_t job = l->jobs[at];
		uint32_t top = at;

		for (uint32_t kid = 2 * at + 1; kid <= 2 * at + 2 && kid < l->n; kid++)
			if (cmp_wait(l->s->jobs, l->jobs[kid], l->jobs[top]) > 0)
				top = kid;
		if (top == at)
			return;
		l->jobs[at] = l->jobs[top];
		l->jobs[top] = job;
		at = top;
	}
}

/* Keep the longest pending ones. */
static void offer(struct line *l, uint32_t job)
{
	if (l->n < l->room) {
		l->jobs[l->n++] = job;
		for (uint32_t i = l->n == l->room ? l->n / 2 : 0; i-- > 0;)
			sift_down(l, i);
	} else if (cmp_wait(l->s->jobs, job, l->jobs[0]) < 0) {
		l->jobs[0] = job;
		sift_down(l, 0);
	}
}

/* True if the job has been pending for the time of starving, and for longer than its own time limit: on a busy
 * cluster many jobs of days are pending for a day, and start reservations for all of them would
 * leave no gap for the short ones. */
static bool is_starving(const struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t waited = amount_less(c->s->config.now_us, waits_since(j));

	return j->state == SNAP_PENDING && cycle_class(c, job) != SNAP_NONE && j->n_promises == 0 &&
	       waited > c->s->config.starve_us &&
	       (j->walltime_us == GPUQ_UNLIMITED || waited > j->walltime_us);
}

/* Return what others are entitled to of the flavor and request: queues beside its own, and beside
 * those above it. */
static int64_t owed_to_others(const struct cycle *c, uint32_t queue, uint32_t flavor)
{
	const uint32_t parent = c->s->queues[queue].parent;
	int64_t sum = 0;

	for (uint32_t q = 0; q < c->s->n_queues; q++) {
		const int64_t quota = c->s->shares[(size_t)q * c->s->n_res + flavor].quota;
		const int64_t demand = holdings_demand(c, q)[flavor];

		if (q != queue && c->s->queues[q].parent == parent)
			sum = amount_sum(sum, quota < demand ? quota : demand);
	}
	return parent == SNAP_NONE ? sum : amount_sum(sum, owed_to_others(c, parent, flavor));
}

/* True if it and the starving jobs before it have a small part of the flavor, or without devices of
 * cpu and memory. */
static bool is_small(const struct cycle *c, uint32_t job, uint32_t flavor)
{
	const uint32_t first = flavor == SNAP_NONE ? c->s->n_flavors : flavor;
	const uint32_t n = flavor == SNAP_NONE ? 2 : 1;

	for (uint32_t res = first; res < first + n; res++) {
		const int64_t sum = amount_sum(c->timeline->future->starving_held[res],
					       holdings_need(c, job, flavor, res));

		if (c->s->capacity[res] != GPUQ_UNLIMITED &&
		    sum > c->s->capacity[res] / FURTHER_PART)
			return false;
	}
	return true;
}

/* True if it may start, or have a start reservation, before all others on that flavor. */
static bool has_right(const struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t need = cycle_request(c, job)->gpus_milli;
	const uint32_t n =
		c->timeline->future->n_starving[flavor == SNAP_NONE ? c->s->n_flavors : flavor];

	if (flavor != SNAP_NONE && holdings_fair(c, j->queue)[flavor] < need &&
	    amount_sum(owed_to_others(c, j->queue, flavor), need) > c->s->capacity[flavor])
		return false;
	return n == 0 || (n < timeline_depth(&c->s->config) && is_small(c, job, flavor));
}

/* Count a served job against the part of its flavor, or of cpu and memory, that starving jobs may
 * have together. */
static void count_one(struct cycle *c, uint32_t job, uint32_t flavor)
{
	struct future *f = c->timeline->future;

	if (flavor != SNAP_NONE) {
		f->n_starving[flavor]++;
		f->starving_held[flavor] += holdings_need(c, job, flavor, flavor);
		return;
	}
	f->n_starving[c->s->n_flavors]++;
	for (uint32_t res = c->s->n_flavors; res < c->s->n_flavors + 2; res++)
		f->starving_held[res] =
			amount_sum(f->starving_held[res], holdings_need(c, job, flavor, res));
}

/* Start it now where it fits beside those before it, on any of its flavors; else plan it. */
static void serve_one(struct cycle *c, uint32_t job)
{
	const uint32_t n = cycle_flavors(c, job) * cycle_choices(c, job);

	for (int now = 1; now >= 0; now--)
		for (uint32_t i = 0; i < n && !c->failed; i++) {
			const uint32_t flavor = cycle_try_as(c, job, i);
			struct plan_reason why;

			if (caps_array_full(c, job, &why) || !has_right(c, job, flavor) ||
			    !(now ? holdings_admits(c, job, flavor, &why)
				  : timeline_may_plan(c, job, flavor, &why)) ||
			    !timeline_look_ahead(c))
				continue;
			if (now ? !timeline_pack_strictly(c, job, flavor)
				: !timeline_plan(c, job, flavor, true))
				continue;
			count_one(c, job, flavor);
			if (now)
				emit_start(c, job, flavor);
			return;
		}
	cycle_try_own(c, job);
}

void timeline_starving(struct cycle *c)
{
	struct line l = { .s = c->s };
	uint32_t *scratch;

	if (timeline_depth(&c->s->config) == 0 || !c->timeline->any_starving)
		return;
	for (uint32_t i = 0; i < c->s->n_jobs; i++)
		l.room += is_starving(c, i);
	if (l.room == 0 || !timeline_look_ahead(c))
		return;
	if (l.room > timeline_tests(&c->s->config))
		l.room = (uint32_t)timeline_tests(&c->s->config);
	l.jobs = cycle_alloc(c, l.room, sizeof(*l.jobs));
	scratch = cycle_alloc(c, l.room, sizeof(*scratch));
	if (c->failed)
		return;
	for (uint32_t i = 0; l.room > 0 && i < c->s->n_jobs; i++)
		if (is_starving(c, i))
			offer(&l, i);
	sort_ix(l.jobs, scratch, l.n, cmp_wait, c->s->jobs);
	for (uint32_t i = 0; i < l.n && !c->failed; i++) {
		gpuq_arena_reset(&c->scratch);
		serve_one(c, l.jobs[i]);
	}
}
