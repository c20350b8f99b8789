#include <stdlib.h>
#include <string.h>

#include "tests/prop/claims.h"

/* The rules of preemption of gpuqd-scheduling(7), with no regard for speed: everything is computed
 * again for each question. Amounts are of the one flavor that the preemption is about. */

#define PRIORITIES 8

enum { GUARANTEE, SHARE };

struct item {
	int job, pod; /* pod -1 = the gang */
	int queue, priority, class; /* class: within the leaf's guarantee, its share, beyond */
	int64_t start, amount;
	int cpu;
	bool firm, fixed, gone, inside;
	bool soft; /* nominated places of leaving pods, perhaps of another job soon */
	bool in_share, in_quota; /* of its leaf */
	bool used[2]; /* beyond, and has justified another victim; by line */
};

struct law {
	const struct pc_world *w;
	int job, flavor;
	int64_t need;
	bool grows; /* by one pod, and takes surplus only */
	bool strict; /* a unit that is taken itself justifies no other */
	struct item items[PC_UNITS + 1];
	int n;
	int victims[PC_UNITS], n_victims; /* of the whole plan */
};

static void add_item(struct law *law, int job, int pod, int pods, int64_t start, bool fixed)
{
	const struct pc_job *j = &law->w->pc->jobs[job];

	law->items[law->n++] = (struct item){ .job = job,
					      .pod = pod,
					      .queue = j->queue,
					      .priority = j->priority,
					      .start = start,
					      .amount = (int64_t)pods * j->milli,
					      .cpu = pods * j->cpu,
					      .firm = !j->preemptible && pod < 0,
					      .fixed = fixed };
}

static void make(struct law *law, const struct pc_world *w, int job, int flavor)
{
	law->w = w;
	law->job = job;
	law->flavor = flavor;
	law->need = (int64_t)pc_asks(w, job) * w->pc->jobs[job].milli;
	law->grows = w->live[job].state == PC_RUNNING;
	law->strict = false;
	law->n = law->n_victims = 0;
	for (int j = 0; j < PC_JOBS; j++) {
		const struct pc_live *l = &w->live[j];
		const int min = w->pc->jobs[j].min, staying = pc_staying(l);
		int seen = 0;

		if (pc_flavor(w, j) != flavor)
			continue;
		if (l->n_promise) {
			add_item(law, j, -1, l->n_promise,
				 l->state == PC_LEAVING && l->fresh ? l->start : w->now, true);
			law->items[law->n - 1].soft = !l->owns;
		}
		if (staying == 0)
			continue;
		add_item(law, j, -1, staying < min ? staying : min, l->start,
			 l->fresh || !w->pc->jobs[j].preemptible);
		for (int p = 0; p < l->n_pods; p++)
			if (l->pods[p].gone == 0 && ++seen > min)
				add_item(law, j, l->pods[p].index, 1, l->start,
					 l->fresh || l->pods[p].fresh);
	}
}

/* ---- entitlement levels ---- */

static int64_t line_of(const struct law *law, int q, int line)
{
	const int64_t g = law->w->quota[q][law->flavor], f = law->w->fair[q][law->flavor];

	return line == SHARE && f > g ? f : g;
}

static bool in(const struct law *law, const struct item *i, int y)
{
	return !i->gone && pc_below(law->w->pc, i->queue, y);
}

static int64_t held(const struct law *law, int y)
{
	int64_t sum = 0;

	for (int i = 0; i < law->n; i++)
		if (in(law, &law->items[i], y))
			sum += law->items[i].amount;
	return sum;
}

static int cmp_entitled(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

	if (x->firm != y->firm)
		return x->firm ? -1 : 1;
	if (x->class != y->class)
		return x->class - y->class;
	if ((x->pod < 0) != (y->pod < 0))
		return x->pod < 0 ? -1 : 1;
	if (x->priority != y->priority)
		return y->priority - x->priority;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->job != y->job ? x->job - y->job : x->pod - y->pod;
}

static void fill(struct item **list, int n, int64_t room)
{
	for (int i = 0; i < n; i++) {
		list[i]->inside = list[i]->amount <= room;
		if (list[i]->inside)
			room -= list[i]->amount;
	}
}

static void class_leaf(struct law *law, int leaf)
{
	struct item *list[PC_UNITS + 1];
	int n = 0;

	for (int i = 0; i < law->n; i++)
		if (in(law, &law->items[i], leaf)) {
			law->items[i].class = 0;
			list[n++] = &law->items[i];
		}
	qsort(list, (size_t)n, sizeof(*list), cmp_entitled);
	fill(list, n, line_of(law, leaf, SHARE));
	for (int i = 0; i < n; i++) {
		list[i]->in_share = list[i]->inside;
		list[i]->class = list[i]->inside ? 1 : 2;
	}
	/* The order does not change while the classes do. */
	fill(list, n, line_of(law, leaf, GUARANTEE));
	for (int i = 0; i < n; i++) {
		list[i]->in_quota = list[i]->inside;
		if (list[i]->inside)
			list[i]->class = 0;
	}
}

static void stand(struct law *law, int y, int line)
{
	struct item *list[PC_UNITS + 1];
	int n = 0;

	for (int q = 0; q < PC_QUEUES; q++)
		if (law->w->pc->queues[q].there && pc_is_leaf(law->w->pc, q) &&
		    pc_below(law->w->pc, q, y))
			class_leaf(law, q);
	/* In a leaf itself the level there is the one to be computed. */
	for (int i = 0; i < law->n; i++)
		if (in(law, &law->items[i], y)) {
			if (pc_is_leaf(law->w->pc, y))
				law->items[i].class = 0;
			list[n++] = &law->items[i];
		}
	qsort(list, (size_t)n, sizeof(*list), cmp_entitled);
	fill(list, n, line_of(law, y, line));
}

static void value(struct law *law, int y, int line, int64_t *phi)
{
	memset(phi, 0, PRIORITIES * sizeof(*phi));
	stand(law, y, line);
	for (int i = 0; i < law->n; i++)
		if (in(law, &law->items[i], y) && law->items[i].inside)
			phi[PRIORITIES - 1 - law->items[i].priority] += law->items[i].amount;
}

static int cmp_value(const int64_t *x, const int64_t *y)
{
	for (int i = 0; i < PRIORITIES; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

/* Return y's soft amount. */
static int64_t soft(const struct law *law, int y)
{
	int64_t sum = 0;

	for (int i = 0; i < law->n; i++)
		if (law->items[i].soft && in(law, &law->items[i], y))
			sum += law->items[i].amount;
	return sum;
}

/* Return what y holds with the whole plan carried out, the preemptor aside. */
static int64_t held_finally(const struct law *law, int y)
{
	int64_t sum = held(law, y);

	for (int v = 0; v < law->n_victims; v++)
		if (in(law, &law->items[law->victims[v]], y))
			sum -= law->items[law->victims[v]].amount;
	return sum;
}

static bool is_victim(const struct law *law, int item)
{
	for (int v = 0; v < law->n_victims; v++)
		if (law->victims[v] == item)
			return true;
	return false;
}

/* The four clauses. *justifier = an outside item that clause iii uses up; -1. */
static bool is_free(struct law *law, int u, int y, int line, int *justifier)
{
	struct item *unit = &law->items[u];
	const int64_t amount = line_of(law, y, line);
	int64_t before[PRIORITIES], after[PRIORITIES];
	bool lower_outside = false;

	*justifier = -1;
	value(law, y, line, before);
	if (!unit->inside)
		return true; /* i */
	for (int i = 0; i < law->n; i++) {
		const struct item *o = &law->items[i];

		if (!in(law, o, y) || o->inside)
			continue;
		lower_outside |= o->priority < unit->priority;
		if (o->queue == unit->queue && o->priority == unit->priority && !o->used[line] &&
		    !o->fixed && o->amount >= unit->amount && o->cpu >= unit->cpu &&
		    !(law->strict && is_victim(law, i)) &&
		    (*justifier < 0 || o->amount < law->items[*justifier].amount))
			*justifier = i;
	}
	unit->gone = true;
	value(law, y, line, after);
	unit->gone = false;
	if (cmp_value(after, before) >= 0 || /* ii */
	    (!lower_outside && held(law, y) - soft(law, y) - unit->amount >= amount &&
	     held_finally(law, y) - soft(law, y) >= amount)) { /* iv */
		*justifier = -1;
		return true;
	}
	return *justifier >= 0; /* iii */
}

/* ---- settings ---- */

static void sides(const struct pc_case *pc, int a, int b, int *x, int *y)
{
	*x = a;
	while (!pc_below(pc, b, pc->queues[*x].parent) && pc->queues[*x].parent >= 0)
		*x = pc->queues[*x].parent;
	*y = b;
	while (pc->queues[*y].parent != pc->queues[*x].parent)
		*y = pc->queues[*y].parent;
}

static int64_t runtime(int half)
{
	return half * PC_MINUTE / 2 + (half ? PC_MINUTE / 4 : 0);
}

/* Return the minimum of the queue or the nearest queue above that sets one. */
static int64_t min_runtime(const struct pc_case *pc, int from, bool preempt)
{
	for (int q = from; q >= 0; q = pc->queues[q].parent) {
		const int own = preempt ? pc->queues[q].preempt_min : pc->queues[q].reclaim_min;

		if (own >= 0)
			return runtime(own);
	}
	return runtime(preempt ? pc->preempt_min : pc->reclaim_min);
}

static bool too_young(const struct law *law, const struct item *u, int from, bool preempt)
{
	return u->pod < 0 && law->w->now - u->start < min_runtime(law->w->pc, from, preempt);
}

/* True if it was evicted too often today: exempt from fair-share reclaim until it has run long
 * enough. */
static bool exempt(const struct law *law, const struct item *u)
{
	const int64_t least = min_runtime(law->w->pc, u->queue, false);

	return law->w->live[u->job].n_evicted >= PC_EXEMPT &&
	       (least == 0 || law->w->now - u->start < 4 * least);
}

/* Return the preemptor's level in its leaf once all victims are gone. */
static int claimant_class(struct law *law)
{
	const struct pc_job *j = &law->w->pc->jobs[law->job];
	int class;

	for (int v = 0; v < law->n_victims; v++)
		law->items[law->victims[v]].fixed = law->items[law->victims[v]].gone;
	for (int v = 0; v < law->n_victims; v++)
		law->items[law->victims[v]].gone = true;
	add_item(law, law->job, law->grows ? PC_ROOM : -1, pc_asks(law->w, law->job), INT64_MAX,
		 true);
	class_leaf(law, j->queue);
	class = law->items[--law->n].class;
	for (int v = 0; v < law->n_victims; v++) {
		law->items[law->victims[v]].gone = law->items[law->victims[v]].fixed;
		law->items[law->victims[v]].fixed = false;
	}
	return class;
}

static bool own_allows(struct law *law, const struct item *u)
{
	const struct pc_case *pc = law->w->pc;
	const struct pc_job *j = &pc->jobs[law->job];
	const int64_t submit = (10000 + j->round * 7 - j->submit) * PC_MINUTE;
	const struct pc_job *v = &pc->jobs[u->job];
	const int64_t victim_submit = (10000 + v->round * 7 - v->submit) * PC_MINUTE;
	int class;

	if (u->queue != j->queue || pc->queues[j->queue].preempt_within == SNAP_PREEMPT_NEVER ||
	    too_young(law, u, u->queue, true))
		return false;
	if (u->priority > j->priority ||
	    (u->priority == j->priority &&
	     (pc->queues[j->queue].preempt_within != SNAP_PREEMPT_LOWER_OR_NEWER ||
	      victim_submit <= submit)))
		return false;
	class = claimant_class(law);
	class_leaf(law, j->queue);
	if (class == 2 && u->in_share)
		return false;
	return !pc->queues[j->queue].own_strict || class == 0 ||
	       (class == 1 ? !u->in_quota : !u->in_share);
}

static bool reclaim_allows(const struct law *law, const struct item *u, int x, int y)
{
	const struct pc_case *pc = law->w->pc;
	const int from = pc->jobs[law->job].queue, priority = pc->jobs[law->job].priority;

	/* A fence around a leaf does not hide the siblings of the same parent. */
	for (int q = from; q >= 0; q = pc->queues[q].parent) {
		const int around = q == from ? pc->queues[q].parent : q;

		if (pc->queues[q].fence && around >= 0 && !pc_below(pc, u->queue, around))
			return false;
	}
	for (int q = u->queue; q >= 0 && pc_below(pc, q, y); q = pc->queues[q].parent)
		if (pc->queues[q].not_reclaimable)
			return false;
	if (too_young(law, u, pc->method == SNAP_RUNTIME_QUEUE ? u->queue : y, false))
		return false;
	(void)x;
	switch (pc->queues[from].reclaim) {
	case SNAP_RECLAIM_ANY:
		return true;
	case SNAP_RECLAIM_LOWER_OR_EQUAL:
		return u->priority <= priority;
	case SNAP_RECLAIM_LOWER:
		return u->priority < priority;
	default:
		return false;
	}
}

/* ---- one unit, and a whole plan ---- */

/* The claimant's leaf stays within its fair share. */
static bool leaf_within(const struct law *law)
{
	const int leaf = law->w->pc->jobs[law->job].queue;

	return held_finally(law, leaf) + law->need <= law->w->fair[leaf][law->flavor];
}

/* If x ends above its share, no touched sibling may end with a smaller ratio. */
static bool in_order(const struct law *law, int x, int y)
{
	const int64_t fx = law->w->fair[x][law->flavor], fy = law->w->fair[y][law->flavor];
	const int64_t ax = held_finally(law, x) + law->need, ay = held_finally(law, y);

	if (fx == 0 && fy == 0)
		return ax <= ay;
	return ax <= fx || ay * fx >= ax * fy;
}

/* True unless a job is evicted for a borrower whose queue could reclaim the devices at once: those
 * within a guarantee, or within a fair share that the queue may reclaim from any job. */
static bool borrow_free(struct law *law, int u, int y, int justifier[2])
{
	const struct pc_case *pc = law->w->pc;
	const int leaf = law->items[u].queue;

	if (!is_free(law, u, y, GUARANTEE, &justifier[0]))
		return false;
	if (pc->reclaim_to != SNAP_RECLAIM_FAIR_SHARE ||
	    pc->queues[leaf].reclaim != SNAP_RECLAIM_ANY)
		return true;
	return held(law, leaf) > line_of(law, leaf, SHARE) &&
	       held(law, y) > line_of(law, y, SHARE) && is_free(law, u, y, SHARE, &justifier[1]);
}

/* True if the preemptor was evicted for another queue a moment ago: it reclaims only what it is
 * guaranteed. */
static bool cools_down(const struct law *law)
{
	const struct pc_live *l = &law->w->live[law->job];

	return law->w->pc->belts && l->evicted &&
	       law->w->now - l->evicted < PC_COOLDOWN_MINUTES * PC_MINUTE;
}

/* True beyond twice the request, except for a guarantee and in the preemptor's own queue. */
static bool too_large(const struct law *law)
{
	int64_t sum = 0;

	for (int v = 0; v < law->n_victims; v++)
		sum += law->items[law->victims[v]].amount;
	return sum > 2 * law->need;
}

static bool may_take(struct law *law, int u, int justifier[2])
{
	const struct pc_case *pc = law->w->pc;
	struct item *unit = &law->items[u];
	const int leaf = pc->jobs[law->job].queue, priority = pc->jobs[law->job].priority;
	const int borrow = pc->queues[leaf].borrow_priority;
	int x, y;

	justifier[0] = justifier[1] = -1;
	if (unit->job == law->job || (law->grows && unit->pod < 0))
		return false;
	if (unit->queue == leaf)
		return own_allows(law, unit);
	sides(pc, leaf, unit->queue, &x, &y);
	if (!pc->reclaim || !reclaim_allows(law, unit, x, y) ||
	    held(law, y) <= line_of(law, y, GUARANTEE))
		return false;
	if (!law->grows && !cools_down(law) && !too_large(law) && borrow >= unit->priority &&
	    unit->priority < priority && borrow_free(law, u, y, justifier))
		return true; /* B */
	justifier[0] = justifier[1] = -1;
	if (!leaf_within(law) || !in_order(law, x, y))
		return false;
	if (held_finally(law, x) + law->need <= law->w->quota[x][law->flavor] &&
	    is_free(law, u, y, GUARANTEE, &justifier[0]))
		return true; /* G */
	justifier[0] = justifier[1] = -1;
	return !cools_down(law) && !exempt(law, unit) && !too_large(law) &&
	       pc->reclaim_to == SNAP_RECLAIM_FAIR_SHARE && held(law, y) > line_of(law, y, SHARE) &&
	       is_free(law, u, y, SHARE, &justifier[1]) &&
	       is_free(law, u, y, GUARANTEE, &justifier[0]); /* F */
}

static bool surplus_stays(const struct law *law, int u)
{
	for (int i = 0; law->items[u].pod < 0 && i < law->n; i++)
		if (law->items[i].job == law->items[u].job && law->items[i].pod >= 0 &&
		    !law->items[i].gone)
			return true;
	return false;
}

/* Take the remaining victims in any order; *tries bounds the search. */
static bool in_some_order(struct law *law, int left, int *tries)
{
	if (left == 0)
		return true;
	for (int v = 0; v < law->n_victims && (*tries)-- > 0; v++) {
		const int u = law->victims[v];
		int justifier[2];

		if (law->items[u].gone || surplus_stays(law, u) || !may_take(law, u, justifier))
			continue;
		law->items[u].gone = true;
		for (int l = 0; l < 2; l++)
			if (justifier[l] >= 0)
				law->items[justifier[l]].used[l] = true;
		if (in_some_order(law, left - 1, tries))
			return true;
		law->items[u].gone = false;
		for (int l = 0; l < 2; l++)
			if (justifier[l] >= 0)
				law->items[justifier[l]].used[l] = false;
	}
	return false;
}

static int find(const struct law *law, const struct pc_unit *u)
{
	for (int i = 0; i < law->n; i++)
		if (law->items[i].job == u->job && law->items[i].pod == u->pod &&
		    !law->items[i].fixed)
			return i;
	return -1;
}

bool pc_admissible(const struct pc_world *w, int job, int flavor, const struct pc_unit *victims,
		   int n)
{
	static struct law law;
	const struct pc_job *j = &w->pc->jobs[job];

	make(&law, w, job, flavor);
	for (int v = 0; v < n; v++) {
		const int u = find(&law, &victims[v]);

		if (u >= 0)
			law.items[u].gone = true;
	}
	for (int q = j->queue; q >= 0; q = w->pc->queues[q].parent)
		if (held(&law, q) + law.need > w->limit[q][flavor] ||
		    (!j->preemptible && !law.grows &&
		     pc_held(w, q, flavor, true) + law.need > w->quota[q][flavor]))
			return false;
	return true;
}

bool pc_lawful(const struct pc_world *w, int job, int flavor, const struct pc_unit *victims, int n,
	       bool strict)
{
	static struct law law;
	int tries = 3000;

	if (!pc_admissible(w, job, flavor, victims, n))
		return false;
	make(&law, w, job, flavor);
	law.strict = strict;
	for (int v = 0; v < n; v++) {
		const int u = find(&law, &victims[v]);

		if (u < 0)
			return false;
		law.victims[law.n_victims++] = u;
	}
	return in_some_order(&law, n, &tries);
}

int pc_owed(const struct pc_world *w, int job, int flavor, struct pc_unit *out)
{
	static struct law law;
	const struct pc_case *pc = w->pc;
	const int leaf = pc->jobs[job].queue;
	bool more = true;
	int n = 0;

	make(&law, w, job, flavor);
	for (int q = leaf; q >= 0; q = pc->queues[q].parent)
		if (held(&law, q) + law.need > w->quota[q][flavor])
			return 0;
	if (!leaf_within(&law))
		return 0;
	while (more) {
		more = false;
		for (int u = 0; u < law.n; u++) {
			struct item *unit = &law.items[u];
			int x, y;

			if (unit->gone || unit->fixed || unit->queue == leaf ||
			    surplus_stays(&law, u))
				continue;
			sides(pc, leaf, unit->queue, &x, &y);
			stand(&law, y, GUARANTEE);
			if (unit->inside || held(&law, y) <= line_of(&law, y, GUARANTEE) ||
			    !reclaim_allows(&law, unit, x, y))
				continue;
			unit->gone = more = true;
			out[n++] = (struct pc_unit){ unit->job, unit->pod, GPUQ_CAUSE_RECLAIM };
		}
	}
	return n;
}
