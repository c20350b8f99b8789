#include "gpuqd/sched/order.h"

#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/timeline/timeline_plan.h"
#include "gpuqd/sched/timeline/timeline_starve.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline.h"
#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/util/sort.h"

/* The queue order. From the root down, the child that the order of service selects; in the leaf its
 * first job. The children of each queue play a knockout tournament: when one of them changes, only
 * its own matches are played again. See gpuqd-scheduling(7), QUEUE ORDER. */

/* num / den, den 0 = infinite. */
struct ratio {
	int64_t num, den;
};

/* The keys of the order, for a queue with a head job. */
struct rank_key {
	bool demoted; /* beyond its quota, and a budget above the head is used up */
	bool over; /* holds more than its fair share of what the head requests */
	bool outside; /* with the head it would exceed its quota */
	int64_t rank;
	bool unentitled; /* has neither share nor quota of the devices the head requests */
	/* The quotient of held and entitlement, with and without the head: the largest of all
	 * resources, its dominant share. */
	struct ratio with, without;
	int64_t fair;
	uint64_t job; /* the head's priority, where the site wants it compared; else 0 */
};

/* The next job of a run. */
struct waiter {
	uint64_t key; /* priority_key(), where there are others to compare with */
	int64_t submit_us;
	uint32_t job, run;
};

struct turn {
	uint32_t first, n; /* of a leaf: its heap of waiters */
	uint32_t head; /* job, SNAP_NONE = no job is pending below */
	uint32_t bracket, width; /* of the children: width leaves from brackets[bracket] */
	uint32_t seat; /* its own place among its siblings */
	struct rank_key key;
};

struct order {
	struct turn *turns; /* by queue, then the root's */
	struct waiter *waiters; /* runs by queue: a heap each, the next to be served on top */
	uint32_t *brackets; /* winners among siblings, one run of words for each parent */
	bool starving; /* timeline_any_starving() */
};

/* Compare fractions without rounding; a denominator of 0 is infinity. */
static int cmp_ratio(struct ratio x, struct ratio y)
{
	__int128 a, b;

	if (x.den == 0 || y.den == 0)
		return (x.den == 0) - (y.den == 0);
	/* Thousandths of devices are mostly so small that their products fit a word. */
	if ((uint64_t)(x.num | x.den | y.num | y.den) >> 31 == 0)
		return sort_i64(x.num * y.den, y.num * x.den);
	a = (__int128)x.num * y.den;
	b = (__int128)y.num * x.den;
	return (a > b) - (a < b);
}

static struct ratio larger(struct ratio x, struct ratio y)
{
	return cmp_ratio(x, y) >= 0 ? x : y;
}

/* Compare queues among their siblings: < 0 if x is served first. gpuqd-scheduling(7), QUEUE ORDER, has
 * the same sequence. */
static int cmp_key(const struct rank_key *x, const struct rank_key *y)
{
	int c;

	if (x->demoted != y->demoted)
		return x->demoted ? 1 : -1;
	if (x->over != y->over)
		return x->over ? 1 : -1;
	if (x->outside != y->outside)
		return x->outside ? 1 : -1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	if (x->unentitled != y->unentitled)
		return x->unentitled ? 1 : -1;
	c = cmp_ratio(x->with, y->with);
	if (c == 0)
		c = cmp_ratio(x->without, y->without);
	if (c == 0)
		c = sort_i64(x->fair, y->fair);
	return c ? c : (x->job < y->job) - (x->job > y->job);
}

/* Return the flavor that the head would be served in: the first of its flavors that may have
 * room. */
static uint32_t flavor_asked(const struct cycle *c, uint32_t job)
{
	const struct snap_request *r = cycle_request(c, job);

	return r->gpus_milli > 0 && r->n_flavor_ix > 0
		       ? r->flavor_ix[c->classes.items[cycle_class(c, job)].flavor_at]
		       : SNAP_NONE;
}

/* Return in *by the measure of the share of one resource. Cpu and memory count where a quota is set
 * on them, or where the head requests nothing else. */
static bool measured(const struct cycle *c, uint32_t q, uint32_t res, int64_t fair, bool bare,
		     int64_t *by)
{
	const size_t at = (size_t)q * c->s->n_res + res;

	if (res < c->s->n_flavors) {
		*by = fair > c->s->shares[at].quota ? fair : c->s->shares[at].quota;
		return true;
	}
	*by = c->s->capacity[res];
	return *by != GPUQ_UNLIMITED && (bare || c->s->shares[at].quota != GPUQ_UNLIMITED);
}

/* True if the head, which would exceed the queue's fair share, is larger than all that is idle when
 * the key is made. It takes nothing of that, and must not delay smaller jobs after it that are
 * entitled to it: another job beyond its share would start, and be preempted again for them. */
static bool takes_nothing(const struct cycle *c, uint32_t q, const struct snap_request *r,
			  const struct holding *has)
{
	const uint32_t res = r->flavor_ix[0];
	bool idle = false;

	if (c->s->shares[(size_t)q * c->s->n_res + res].quota == GPUQ_UNLIMITED ||
	    has->fair[res] - (has->held[res] - has->leaving[res]) >= r->gpus_milli)
		return false;
	for (uint32_t i = 0; i < r->n_flavor_ix; i++) {
		const int64_t left = holdings_idle(c, r->flavor_ix[i]);

		idle |= left >= SNAP_MILLI;
		if (left >= r->gpus_milli)
			return false;
	}
	return idle;
}

/* Make the key of a queue from what it holds and what its first job requests. */
static void make_key(struct cycle *c, uint32_t q)
{
	struct turn *t = &c->order->turns[q];
	const struct snap_request *r = cycle_request(c, t->head);
	const struct holding has = holdings_of(c, q);
	const uint32_t asked = flavor_asked(c, t->head);
	const bool nothing = asked != SNAP_NONE && takes_nothing(c, q, r, &has);
	/* Then it is compared on its first flavor. */
	const uint32_t flavor = nothing ? r->flavor_ix[0] : asked;
	struct rank_key key = { .rank = c->s->queues[q].rank,
				.unentitled = flavor != SNAP_NONE,
				.with = { 0, 1 },
				.without = { 0, 1 } };

	for (uint32_t res = 0; res < c->s->n_res; res++) {
		const size_t at = (size_t)q * c->s->n_res + res;
		const int64_t held = has.held[res] - has.leaving[res],
			      need = holdings_need(c, t->head, flavor, res);
		const int64_t takes = nothing ? 0 : need;
		int64_t by;

		if (need > 0 && c->s->shares[at].quota != GPUQ_UNLIMITED) {
			key.over |= held > has.fair[res];
			key.outside |= c->s->shares[at].quota - held < need;
		}
		if (!measured(c, q, res, has.fair[res], flavor == SNAP_NONE, &by))
			continue;
		if (res == flavor && by > 0)
			key.unentitled = false;
		if (held > 0 || need > 0)
			key.with = larger(key.with, (struct ratio){ amount_sum(held, takes), by });
		if (held > 0)
			key.without = larger(key.without, (struct ratio){ held, by });
	}
	key.demoted = key.outside && flavor != SNAP_NONE &&
		      c->s->queues[c->s->jobs[t->head].queue].over_budget;
	if (flavor != SNAP_NONE)
		key.fair = has.fair[flavor];
	if (c->s->config.cross_queue_priority)
		key.job = priority_key(c->priority, t->head);
	t->key = key;
}

/* Return the winner of two siblings; SNAP_NONE loses against every queue. Siblings are ordered by
 * age, so that the lower index is the older. */
static uint32_t winner(const struct cycle *c, uint32_t x, uint32_t y)
{
	int r;

	if (x == SNAP_NONE || c->order->turns[x].head == SNAP_NONE)
		return y;
	if (y == SNAP_NONE || c->order->turns[y].head == SNAP_NONE)
		return x;
	r = cmp_key(&c->order->turns[x].key, &c->order->turns[y].key);
	if (r == 0)
		return x < y ? x : y;
	return r < 0 ? x : y;
}

/* Return the parent of a queue; all at the top have one whose index is beyond the others. */
static uint32_t parent_of(const struct cycle *c, uint32_t q)
{
	const uint32_t p = c->s->queues[q].parent;

	return p == SNAP_NONE ? c->s->n_queues : p;
}

/* Return the child whose turn it is; SNAP_NONE without any. */
static uint32_t best_child(const struct cycle *c, uint32_t q)
{
	const struct turn *t = &c->order->turns[q];

	return t->width ? c->order->brackets[t->bracket + 1] : SNAP_NONE;
}

/* Update a queue whose head or holdings have changed: its key, and its matches. */
static void replay(struct cycle *c, uint32_t q)
{
	struct order *o = c->order;
	struct turn *t = &o->turns[q], *p = &o->turns[parent_of(c, q)];
	uint32_t *w = &o->brackets[p->bracket];

	if (t->head != SNAP_NONE)
		make_key(c, q);
	for (uint32_t at = (p->width + t->seat) / 2; at >= 1; at /= 2)
		w[at] = winner(c, w[2 * at], w[2 * at + 1]);
	q = best_child(c, parent_of(c, q));
	p->head = q == SNAP_NONE ? SNAP_NONE : o->turns[q].head;
}

/* Play the matches from a queue up to the root again. */
static void replay_up(struct cycle *c, uint32_t q)
{
	for (; q != SNAP_NONE; q = c->s->queues[q].parent)
		replay(c, q);
}

/* ---- the order within leaf queues ---- */

/* Jobs are served by priority, submit time and id. The jobs of a run are in this order; of the runs
 * of a queue the one whose next job is first continues. */
static bool is_before(const struct waiter *x, const struct waiter *y)
{
	if (x->key != y->key)
		return x->key > y->key;
	return x->submit_us != y->submit_us ? x->submit_us < y->submit_us : x->job < y->job;
}

/* Restore the heap of a queue's runs after the item at one place became later. */
static void sift_down(struct waiter *heap, uint32_t n, uint32_t at)
{
	const struct waiter moved = heap[at];
	uint32_t kid;

	while ((kid = 2 * at + 1) < n) {
		if (kid + 1 < n && is_before(&heap[kid + 1], &heap[kid]))
			kid++;
		if (!is_before(&heap[kid], &moved))
			break;
		heap[at] = heap[kid];
		at = kid;
	}
	heap[at] = moved;
}

/* Order the runs of a queue, the first on top. */
static void make_heap(struct waiter *heap, uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		sift_down(heap, n, i);
}

/* Set which job stands for its run; keys are read only where a queue has several runs. */
static void set_waiter(const struct cycle *c, struct waiter *w, uint32_t job, bool compared)
{
	w->job = job;
	w->submit_us = c->s->jobs[job].submit_us;
	w->key = compared ? priority_key(c->priority, job) : 0;
}

/* Remove the first run of a queue. */
static void drop_run(struct cycle *c, struct turn *t)
{
	struct waiter *heap = &c->order->waiters[t->first];

	heap[0] = heap[--t->n];
	if (t->n > 1)
		sift_down(heap, t->n, 0);
}

/* Return the first of a run, from that job on, that did not start before its turn. */
static uint32_t still_waiting(const struct cycle *c, uint32_t job)
{
	while (c->order->starving && job != SNAP_NONE &&
	       c->plan.started[job] == c->s->jobs[job].n_waiting)
		job = c->s->lines.behind[job];
	return job;
}

/* Step past the first, which has had its turn. */
static void step(struct cycle *c, struct turn *t)
{
	struct waiter *heap = &c->order->waiters[t->first];
	const uint32_t next = still_waiting(c, c->s->lines.behind[heap[0].job]);

	if (next == SNAP_NONE) {
		drop_run(c, t);
		return;
	}
	set_waiter(c, &heap[0], next, t->n > 1);
	sift_down(heap, t->n, 0);
}

/* True if a job like it, of the same class, found no place in this cycle, so that a try cannot
 * succeed. */
static bool blocked(const struct cycle *c, const struct waiter *w)
{
	const struct job_class *cls = &c->classes.items[c->classes.of_run[w->run]];
	const struct snap_job *j = &c->s->jobs[w->job];

	if (!cls->blocked || (cls->from_walltime_us && (j->walltime_us < cls->from_walltime_us ||
							timeline_least_us(j) < cls->from_least_us)))
		return false;
	/* A starving job has its planned start before its turn comes; others have none at that
	 * point. */
	return !c->order->starving || !timeline_has_plan(c, w->job);
}

/* Remove all runs that are blocked. */
static void sweep(struct cycle *c, struct turn *t)
{
	struct waiter *heap = &c->order->waiters[t->first];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (!blocked(c, &heap[i]))
			heap[kept++] = heap[i];
	t->n = kept;
	make_heap(heap, kept);
}

/* Skip jobs of a class that has failed in this cycle: all of the run at once, unless some of it may
 * have planned starts of their own. */
static void settle_head(struct cycle *c, uint32_t q)
{
	struct turn *t = &c->order->turns[q];

	for (uint32_t n = 1; t->n > 0 && blocked(c, &c->order->waiters[t->first]); n++) {
		if (c->order->starving)
			step(c, t);
		else if (n < t->n / 8)
			drop_run(c, t);
		else /* several in a row: more will follow */
			sweep(c, t);
	}
	t->head = t->n > 0 ? c->order->waiters[t->first].job : SNAP_NONE;
}

/* True if no job of the class can start, however long it runs. */
static bool never(const struct job_class *cls)
{
	return cls->blocked && !cls->from_walltime_us;
}

/* Make the heaps of every queue: its runs of jobs that may start. */
static void make_lines(struct cycle *c)
{
	const struct snap_lines *lines = &c->s->lines;
	struct order *o = c->order;
	uint32_t n = 0;

	o->waiters = cycle_alloc(c, lines->n_runs, sizeof(*o->waiters));
	for (uint32_t q = 0; !c->failed && q < c->s->n_queues; q++) {
		struct turn *t = &o->turns[q];

		t->first = n;
		for (uint32_t r = lines->first_run[q]; r != SNAP_NONE; r = lines->runs[r].next)
			if (c->classes.of_run[r] != SNAP_NONE &&
			    !never(&c->classes.items[c->classes.of_run[r]]) &&
			    still_waiting(c, lines->runs[r].first) != SNAP_NONE)
				o->waiters[n++].run = r;
		t->n = n - t->first;
		for (uint32_t i = t->first; i < n; i++)
			set_waiter(c, &o->waiters[i],
				   still_waiting(c, lines->runs[o->waiters[i].run].first),
				   t->n > 1);
		make_heap(&o->waiters[t->first], t->n);
	}
}

/* Seat the children of one queue: brackets[bracket + width + seat] is the child, below that the
 * winners, [1] the best of all. */
static void seat_children(struct cycle *c, uint32_t q, uint32_t *used)
{
	struct order *o = c->order;
	struct turn *t = &o->turns[q];
	uint32_t n = 0;

	for (uint32_t k = c->kids.first[q]; k != SNAP_NONE; k = c->kids.next[k])
		o->turns[k].seat = n++;
	if (n == 0)
		return;
	for (t->width = 1; t->width < n; t->width *= 2)
		;
	t->bracket = *used;
	*used += 2 * t->width;
	for (uint32_t i = 0; i < 2 * t->width; i++)
		o->brackets[t->bracket + i] = SNAP_NONE;
	for (uint32_t k = c->kids.first[q]; k != SNAP_NONE; k = c->kids.next[k])
		o->brackets[t->bracket + t->width + o->turns[k].seat] = k;
}

void order_init(struct cycle *c)
{
	const uint32_t n = c->s->n_queues;
	struct order *o = cycle_alloc(c, 1, sizeof(*o));
	uint32_t used = 0;

	c->order = o;
	if (!o)
		return;
	o->starving = timeline_any_starving(c);
	o->turns = cycle_alloc(c, (size_t)n + 1, sizeof(*o->turns));
	/* A width is less than twice the children, each a child once. */
	o->brackets = cycle_alloc(c, 4 * (size_t)n + 4, sizeof(*o->brackets));
	if (!c->failed)
		make_lines(c);
	if (c->failed)
		return;
	for (uint32_t q = 0; q <= n; q++) {
		o->turns[q].head = SNAP_NONE;
		seat_children(c, q, &used);
	}
	/* Children come after their parents: backwards is from the leaves up. */
	for (uint32_t q = n; q-- > 0;) {
		if (c->kids.first[q] == SNAP_NONE)
			settle_head(c, q);
		replay(c, q);
	}
}

uint32_t order_next(const struct cycle *c)
{
	return c->order->turns[c->s->n_queues].head;
}

void order_done(struct cycle *c, uint32_t job)
{
	const uint32_t q = c->s->jobs[job].queue;

	step(c, &c->order->turns[q]);
	settle_head(c, q);
	replay_up(c, q);
}

void order_changed(struct cycle *c, uint32_t job)
{
	replay_up(c, c->s->jobs[job].queue);
}
