#include "gpuqd/sched/place/score.h"

#include "gpuqd/sched/place/devices.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes_int.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/place/fgd.h"
#include "gpuqd/sched/place/pack_int.h"
#include "gpuqd/util/sort.h"

#include <string.h>

/* The node of a single pod where best fit alone would waste devices: where cpu or memory can run
 * out before devices do, or where some nodes are in special demand. Nodes are then scored, in this
 * order: no devices for a pod that needs none; fewest devices opened for a part of one; least of
 * what is left stranded for the expected pods (fgd.h), in steps, so that small differences decide
 * nothing; fewest whole devices left (best fit); the fullest device; cpu and memory in balance; the
 * lower name. Where nothing can be stranded the third does not decide; whole devices then take the
 * fast way of best fit (pack.c), while parts of devices are still found here, without a search of
 * all nodes for each of them. Measured on a public trace, see `gpuq-sim pack`: the step and the
 * order are chosen so that none of its lists packs worse than with fragmentation gradient
 * descent. */

#define GRADES_MAX (1u << 18) /* in one cycle; beyond that best fit is used */
#define STEP ((int64_t)60 * 10 * FGD_WHOLE_MIX) /* 0.06 devices, in fgd_stranded's unit */
#define TABLES_MAX 512
#define GROUPS_MAX 256 /* of pods, in the expected mix */
#define COUNT_MAX (INT64_C(1) << 32)

/* Lower is better; nodes that cannot take the pod have the highest. */
#define GRADE_NONE UINT64_MAX

/* Grades of all nodes for one kind of pod, with the best always known: a tournament tree over them.
 * Nodes that changed are graded again at the next query. */
struct grade_table {
	uint32_t group, flavor; /* group: over all requests */
	bool spread;
	struct need need; /* of one pod */
	uint64_t *grades; /* by node */
	uint32_t *seen; /* by node: its generation at that time */
	uint32_t *winners; /* [1] = the best; leaf of node n: n_leaves + n, not stored */
	uint32_t n_leaves;
	uint32_t at; /* into grading.journal */
	uint32_t next; /* table of the same group; SNAP_NONE */
};

struct grading {
	bool wanted; /* something can be stranded; else tables only serve to find room for parts */
	struct fgd_kind *kinds; /* the most frequent first */
	uint32_t n_kinds; /* of which n_measured are evaluated below */
	uint32_t n_measured;
	int64_t *barred; /* by node: fgd_bar() of all kinds */
	uint32_t n_graded;
	uint32_t *generation; /* by node */
	int64_t *waste; /* by node, in its current state */
	uint32_t *waste_seen;
	uint32_t *journal; /* nodes that changed */
	uint32_t n_journal, room_journal;
	struct grade_table *tables; /* by kind of pod, made on first use */
	uint32_t n_tables, room_tables;
	uint32_t *table_of; /* by group */
};

/* ---- the expected mix ---- */

/* Return the request that the group of this number over all requests belongs to. */
static uint32_t request_of(const struct snapshot *s, uint32_t group)
{
	uint32_t lo = 0, hi = s->n_requests;

	while (hi - lo > 1) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (s->requests[mid].group_first <= group)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* A group of pods, by its number over all requests, and how many run or are pending. */
struct frequent {
	uint32_t group;
	uint64_t count; /* of its pods */
	const struct snap_group *what;
};

/* True if x has more pods than y, or larger ones. */
static bool before(const struct frequent *x, const struct frequent *y)
{
	if (x->count != y->count)
		return x->count > y->count;
	if (x->what->gpus_milli != y->what->gpus_milli)
		return x->what->gpus_milli > y->what->gpus_milli;
	if (x->what->cpu_milli != y->what->cpu_milli)
		return x->what->cpu_milli > y->what->cpu_milli;
	return x->what->memory_bytes > y->what->memory_bytes;
}

/* Count the pods of a job this many times, by group. */
static void add_groups(const struct snapshot *s, uint32_t job, uint64_t times, uint64_t *of_group)
{
	const struct snap_request *r = &s->requests[s->jobs[job].request];

	for (uint32_t g = 0; g < r->n_groups; g++)
		of_group[r->group_first + g] += times * r->groups[g].pods_min;
}

/* Insert into a table of n in order, whose last entry is free: after its equals. */
static void put_in_order(struct frequent *top, uint32_t n, const struct frequent *one)
{
	uint32_t lo = 0, hi = n - 1;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (before(one, &top[mid]))
			hi = mid;
		else
			lo = mid + 1;
	}
	memmove(&top[lo + 1], &top[lo], (n - 1 - lo) * sizeof(*top));
	top[lo] = *one;
}

/* Count the most frequent groups. */
static uint32_t count_groups(struct cycle *c, struct frequent *top)
{
	const struct snapshot *s = c->s;
	uint64_t *of_group = cycle_scratch(c, s->n_groups, sizeof(*of_group));
	struct frequent dropped = { 0 };
	uint32_t n = 0;

	for (uint32_t i = 0; of_group && i < s->lines.n_runs; i++) {
		const struct snap_run *run = &s->lines.runs[i];

		add_groups(s, run->first, (uint64_t)run->n_jobs * s->jobs[run->first].n_waiting,
			   of_group);
	}
	for (uint32_t i = 0; of_group && i < s->lines.n_busy; i++)
		if (s->jobs[s->lines.busy[i]].state != SNAP_PENDING)
			add_groups(s, s->lines.busy[i], 1, of_group);
	for (uint32_t g = 0; of_group && g < s->n_groups; g++) {
		const struct snap_request *r;
		struct frequent one;

		if (of_group[g] == 0) /* true for most, where few of many jobs are evaluated */
			continue;
		r = &s->requests[request_of(s, g)];
		one = (struct frequent){ g, of_group[g], &r->groups[g - r->group_first] };
		/* Instances of MIG profiles exist beforehand: nothing to waste. */
		if (one.what->mig)
			continue;
		if (n == GROUPS_MAX && !before(&one, &top[n - 1])) {
			/* Among equals either all are counted or none, whatever their order. */
			if (!before(&top[n - 1], &one))
				dropped = one;
			continue;
		}
		if (n < GROUPS_MAX)
			n++;
		else
			dropped = top[n - 1];
		put_in_order(top, n, &one);
	}
	while (n > 0 && dropped.count && !before(&top[n - 1], &dropped))
		n--;
	return n;
}

/* Find the nodes where the group's pods may run, on any of its flavors, NULL = on all that have
 * devices; and their share of the cluster's devices. False: no node. */
static bool reach(struct cycle *c, uint32_t request, uint32_t group, struct fgd_kind *out)
{
	struct nodes *nodes = c->nodes;
	const struct snap_request *r = &c->s->requests[request];
	const struct group_fit *fit = feasibility_of(c, request, group);
	uint64_t *set = cycle_alloc(c, nodes->n_words, sizeof(*set));
	int64_t all = 0, own = 0;

	if (!set)
		return false;
	for (uint32_t i = 0; i < c->s->n_nodes; i++) {
		const struct snap_node *n = &c->s->nodes[i];
		bool may = bits_has(fit->nodes, i) && r->n_flavors == 0;

		for (uint32_t f = 0; f < r->n_flavor_ix && !may; f++)
			may = n->flavor == r->flavor_ix[f] && bits_has(fit->nodes, i);
		if (!bits_has(nodes->ready, i))
			continue;
		all += n->n_devices;
		if (may) {
			bits_add(set, i);
			own += n->n_devices;
		}
	}
	out->nodes = own == all ? NULL : set;
	out->scarcity = own ? all * 1000 / own : 0;
	return own > 0;
}

/* Return the thousandths of each device that it takes a part of; the most, where memory decides. */
static int32_t part_of(const struct cycle *c, uint32_t request, uint32_t group, uint32_t parts)
{
	const struct snap_group *g = &c->s->requests[request].groups[group];

	return parts ? (int32_t)(cost_of_pod(c->s, g, SNAP_NONE) / parts) : 0;
}

/* True if two groups differ in memory only. They then count as one kind. */
static bool same_kind(const struct cycle *c, const struct fgd_kind *k, uint32_t request,
		      uint32_t group, const struct fgd_kind *other, uint32_t other_request,
		      uint32_t other_group)
{
	const struct snap_request *r = &c->s->requests[request];
	const struct snap_request *o = &c->s->requests[other_request];

	return k->whole == other->whole && k->parts == other->parts && k->part == other->part &&
	       k->cpu == other->cpu && r->where[group] == o->where[other_group] &&
	       r->n_flavor_ix == o->n_flavor_ix &&
	       memcmp(r->flavor_ix, o->flavor_ix, r->n_flavor_ix * sizeof(*r->flavor_ix)) == 0;
}

/* Kinds that are equal here differ in nothing that is measured, except the nodes where they may
 * run. */
static int cmp_kind(const void *ctx, uint32_t x, uint32_t y)
{
	const struct fgd_kind *a = (const struct fgd_kind *)ctx + x;
	const struct fgd_kind *b = (const struct fgd_kind *)ctx + y;
	const int64_t keys[][2] = {
		{ b->weight, a->weight },     { b->whole, a->whole }, { b->parts, a->parts },
		{ b->part, a->part },         { b->cpu, a->cpu },     { b->memory, a->memory },
		{ b->scarcity, a->scarcity },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i][0] != keys[i][1])
			return sort_i64(keys[i][0], keys[i][1]);
	return 0;
}

/* Collect the kinds, each with its number of pods as weight and their mean memory. */
static uint32_t gather(struct cycle *c, struct fgd_kind *kinds)
{
	struct frequent *top = cycle_scratch(c, GROUPS_MAX, sizeof(*top));
	uint32_t *request = cycle_scratch(c, GROUPS_MAX, sizeof(*request));
	uint32_t *group = cycle_scratch(c, GROUPS_MAX, sizeof(*group));
	uint32_t n_top = c->failed ? 0 : count_groups(c, top), n = 0;

	for (uint32_t i = 0; i < n_top && !c->failed; i++) {
		const uint32_t r = request_of(c->s, top[i].group),
			       g = top[i].group - c->s->requests[r].group_first;
		const struct need one = nodes_need(&c->s->requests[r].groups[g]);
		const int64_t more = top[i].count < COUNT_MAX ? (int64_t)top[i].count : COUNT_MAX;
		struct fgd_kind k = { .whole = one.whole,
				      .parts = one.parts,
				      .part = part_of(c, r, g, one.parts),
				      .cpu = one.cpu,
				      .memory = one.memory,
				      .weight = more };
		uint32_t at = 0;

		while (at < n && !same_kind(c, &k, r, g, &kinds[at], request[at], group[at]))
			at++;
		if (at < n) {
			kinds[at].memory =
				amount_sum(kinds[at].memory, amount_times(k.memory, more));
			kinds[at].weight += more;
		} else if (reach(c, r, g, &k)) {
			request[n] = r;
			group[n] = g;
			kinds[n] = k;
			kinds[n++].memory = amount_times(k.memory, more);
		}
	}
	for (uint32_t i = 0; i < n; i++)
		kinds[i].memory /= kinds[i].weight;
	return n;
}

/* Measure the kinds that make up 95 of 100 pods, as the published source does. */
static void expect(struct cycle *c, struct grading *g)
{
	struct fgd_kind *found = cycle_scratch(c, GROUPS_MAX, sizeof(*found));
	uint32_t *order = cycle_scratch(c, 2 * GROUPS_MAX, sizeof(*order));
	int64_t sum = 0, covered = 0;

	g->kinds = cycle_alloc(c, GROUPS_MAX, sizeof(*g->kinds));
	g->n_kinds = c->failed ? 0 : gather(c, found);
	if (c->failed)
		return;
	for (uint32_t i = 0; i < g->n_kinds; i++) {
		order[i] = i;
		sum += found[i].weight;
	}
	sort_ix(order, order + GROUPS_MAX, g->n_kinds, cmp_kind, found);
	for (uint32_t i = 0; i < g->n_kinds; i++) {
		g->kinds[i] = found[order[i]];
		if (covered * 100 < sum * 95 && i < FGD_KINDS_MAX) {
			covered += g->kinds[i].weight;
			g->n_measured++;
		}
	}
	/* The last kind measured and the first left out must not be equal. */
	while (g->n_measured && g->n_measured < g->n_kinds &&
	       cmp_kind(g->kinds, g->n_measured - 1, g->n_measured) == 0)
		covered -= g->kinds[--g->n_measured].weight;
	if (g->n_measured == 0)
		g->n_kinds = 0;
	for (uint32_t i = 0; i < g->n_kinds; i++)
		g->kinds[i].weight = g->kinds[i].weight * FGD_WHOLE_MIX / covered;
}

/* True if x needs more cpu (memory) for each of its devices than y. */
static bool hungrier(const struct fgd_kind *x, const struct fgd_kind *y, bool memory)
{
	const int64_t nx = memory ? x->memory : x->cpu, ny = memory ? y->memory : y->cpu;
	const int64_t sx = x->whole * INT64_C(1000) + (int64_t)x->parts * x->part;
	const int64_t sy = y->whole * INT64_C(1000) + (int64_t)y->parts * y->part;
	int64_t a, b;

	return __builtin_mul_overflow(nx, sy, &a) || (!__builtin_mul_overflow(ny, sx, &b) && a > b);
}

/* Describe the free resources of a node as the measures of waste need them. */
static void look(const struct cycle *c, uint32_t node, struct fgd_left *out)
{
	struct nodes *nodes = c->nodes;
	const struct snap_node *n = &c->s->nodes[node];
	const int16_t *free_milli = &nodes->now.device_free[n->device_first];

	out->cpu = nodes->now.cpu[node];
	out->memory = nodes->now.memory[node];
	out->whole = nodes->now.whole[node];
	out->n_parts = 0;
	for (uint32_t d = 0; bits_has(nodes->now.parted, node) && d < n->n_devices; d++)
		if (free_milli[d] > 0 && free_milli[d] < SNAP_MILLI)
			out->parts[out->n_parts++] = free_milli[d];
}

/* True if something matters that best fit does not see. */
static bool matters(const struct cycle *c, const struct grading *g)
{
	struct fgd_kind worst[2];
	struct fgd_left left;

	for (uint32_t i = 0; i < g->n_kinds; i++) {
		if (g->kinds[i].nodes)
			return true;
		if (i == 0 || hungrier(&g->kinds[i], &worst[0], false))
			worst[0] = g->kinds[i];
		if (i == 0 || hungrier(&g->kinds[i], &worst[1], true))
			worst[1] = g->kinds[i];
	}
	for (uint32_t i = 0; g->n_kinds && i < c->s->n_nodes; i++) {
		if (!bits_has(c->nodes->now.usable, i) || c->s->nodes[i].n_devices == 0)
			continue;
		look(c, i, &left);
		if (fgd_may_strand(worst, 2, &left))
			return true;
	}
	return false;
}

/* Return the tables of this cycle, made when a pod is first scored; NULL without memory. */
static struct grading *grading_of(struct cycle *c)
{
	struct pack *packing = c->pack;
	const uint32_t n = c->s->n_nodes;
	struct grading *g = packing->grading;
	bool constrained = false;

	if (g)
		return g;
	g = packing->grading = cycle_alloc(c, 1, sizeof(*g));
	if (!g)
		return NULL;
	expect(c, g);
	g->wanted = !c->failed && (packing->policy != PACK_DEFAULT || matters(c, g));
	for (uint32_t k = 0; k < g->n_kinds; k++)
		constrained |= g->kinds[k].nodes != NULL;
	g->generation = cycle_alloc(c, n, sizeof(*g->generation));
	g->waste = cycle_alloc(c, n, sizeof(*g->waste));
	g->waste_seen = cycle_alloc(c, n, sizeof(*g->waste_seen));
	g->table_of = cycle_alloc(c, c->s->n_groups, sizeof(*g->table_of));
	g->barred = cycle_alloc(c, n, sizeof(*g->barred));
	for (uint32_t i = 0; !c->failed && i < n; i++)
		g->generation[i] = 1;
	if (constrained && !c->failed)
		fgd_bar(g->kinds, g->n_kinds, n, g->barred);
	for (uint32_t i = 0; !c->failed && i < c->s->n_groups; i++)
		g->table_of[i] = SNAP_NONE;
	return g;
}

void score_touch(struct cycle *c, uint32_t node)
{
	struct grading *g = c->pack->grading;
	uint32_t *at;

	/* Grades are of the present: changes while planning are undone before the next query. */
	if (!g || g->n_tables == 0 || c->nodes->planning)
		return;
	at = cycle_push(c, &g->journal, &g->n_journal, &g->room_journal, sizeof(*at), 1);
	if (!at)
		return;
	*at = node;
	g->generation[node]++;
}

/* ---- grades ---- */

/* Return the measure of waste of the policy in force. */
static int64_t waste(const struct cycle *c, const struct grading *g, const struct fgd_left *l,
		     uint32_t node)
{
	if (c->pack->policy == PACK_FGD)
		return fgd_fragments(g->kinds, g->n_measured, l, node);
	return fgd_stranded(g->kinds, g->n_measured, l, node, g->barred[node]);
}

/* Subtract, unless the amount is unlimited. */
static int64_t less(int64_t have, int64_t need)
{
	return have == GPUQ_UNLIMITED ? have : have - need;
}

/* Grade by the published simulator's best fit: how full cpu and devices would be, in 100ths of its
 * largest node, cut to integers. */
static uint64_t grade_bestfit(const struct fgd_left *after)
{
	const int64_t cpu = after->cpu == GPUQ_UNLIMITED ? 0 : after->cpu;
	const int64_t left = cpu * 8000 + fgd_free(after) * 128000;
	const int64_t unit = INT64_C(2) * 128000 * 8000;

	return (uint64_t)((INT64_C(1) << 40) - (100 * unit - 100 * left) / unit);
}

/* Take a part of one device that has this much left: the node's state after it. */
static void take_part(struct fgd_left *l, int32_t from, int32_t part)
{
	uint32_t d = 0;

	if (from == SNAP_MILLI) {
		l->whole -= l->whole > 0; /* may be one of those that are withheld */
		if (part < from)
			l->parts[l->n_parts++] = (int16_t)(from - part);
		return;
	}
	while (l->parts[d] != from)
		d++;
	l->parts[d] = (int16_t)(from - part);
	if (l->parts[d] == 0)
		l->parts[d] = l->parts[--l->n_parts];
}

/* Take n parts of as many devices, the fullest that have room: those that devices_parts()
 * counts. */
static void take_fullest(struct fgd_left *l, uint32_t n, int32_t part)
{
	int16_t taken[SNAP_DEVICES_MAX];
	uint32_t n_taken = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t best = SNAP_NONE;

		for (uint32_t d = 0; d < l->n_parts; d++)
			if (l->parts[d] >= part &&
			    (best == SNAP_NONE || l->parts[d] < l->parts[best]))
				best = d;
		if (best == SNAP_NONE) {
			l->whole -= l->whole > 0; /* may be one of those that are withheld */
			taken[n_taken++] = (int16_t)(SNAP_MILLI - part);
			continue;
		}
		taken[n_taken++] = (int16_t)(l->parts[best] - part);
		l->parts[best] = l->parts[--l->n_parts];
	}
	for (uint32_t i = 0; i < n_taken && l->n_parts < SNAP_DEVICES_MAX; i++)
		if (taken[i] > 0)
			l->parts[l->n_parts++] = taken[i];
}

int32_t score_fgd_device(const struct cycle *c, uint32_t node, int32_t part)
{
	struct pack *packing = c->pack;
	const struct grading *g = packing->grading;
	const struct snap_node *n = &c->s->nodes[node];
	const int16_t *free_milli = &c->nodes->now.device_free[n->device_first];
	int32_t best = -1;
	int64_t least = 0;

	for (uint32_t d = 0; d < n->n_devices; d++) {
		struct fgd_left after;
		int64_t f;

		if (free_milli[d] < part ||
		    c->s->devices[n->device_first + d].serves == SNAP_SERVES_WHOLE)
			continue;
		look(c, node, &after);
		take_part(&after, free_milli[d], part);
		after.cpu = less(after.cpu, packing->part_cpu);
		f = fgd_fragments(g->kinds, g->n_measured, &after, node);
		if (best < 0 || f < least) {
			best = (int32_t)d;
			least = f;
		}
	}
	return best;
}

/* Return x as an offset from lo, bounded to what hi allows. */
static uint64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
	return (uint64_t)(x < lo ? 0 : x > hi ? hi - lo : x - lo);
}

/* Divide, rounding down for negative numbers as well, so that steps have equal size on both sides
 * of 0. */
static int64_t floor_div(int64_t x, int64_t y)
{
	return x / y - (x % y < 0);
}

/* Pack the grade, the most important bits first. */
static uint64_t pack_grade(bool wasted, uint32_t opened, int64_t steps, uint32_t left,
			   int32_t part_left, int64_t imbalance)
{
	uint64_t g = wasted;

	g = g << 4 | clamp(opened, 0, 15);
	g = g << 20 | clamp(steps, -(1 << 19), (1 << 19) - 1);
	g = g << 11 | clamp(left, 0, 2047);
	g = g << 10 | clamp(part_left, 0, 1023);
	return g << 18 | clamp(imbalance, 0, (1 << 18) - 2);
}

/* Return the grade of a node for one pod: of the state that the node would be in with it. */
static uint64_t grade(struct cycle *c, struct grading *g, const struct grade_table *t,
		      uint32_t node)
{
	struct pack *packing = c->pack;
	struct nodes *nodes = c->nodes;
	struct parts p = { 0 };
	struct fgd_left left;
	int32_t from = 0;
	int64_t gain;

	g->n_graded++;
	c->steps++;
	if (nodes_room(c, node, &t->need, 1) == 0)
		return GRADE_NONE;
	look(c, node, &left);
	if (g->wanted && g->waste_seen[node] != g->generation[node]) {
		g->waste_seen[node] = g->generation[node];
		g->waste[node] = waste(c, g, &left, node);
	}
	if (t->need.parts && packing->policy == PACK_FGD) {
		packing->part_cpu = t->need.cpu;
		from = score_fgd_device(c, node, t->need.part);
		from = nodes->now.device_free[c->s->nodes[node].device_first + (uint32_t)from];
		take_part(&left, from, t->need.part);
	} else if (t->need.parts) {
		if (!devices_parts(c, node, &t->need, &p))
			return GRADE_NONE;
		take_fullest(&left, t->need.parts, p.part);
	}
	left.whole -= t->need.whole;
	left.cpu = less(left.cpu, t->need.cpu);
	left.memory = less(left.memory, t->need.memory);
	if (packing->policy == PACK_BESTFIT)
		return grade_bestfit(&left);
	gain = g->wanted ? g->waste[node] - waste(c, g, &left, node) : 0;
	if (packing->policy == PACK_FGD)
		return 100 - fgd_score(gain);
	return pack_grade(
		t->need.whole == 0 && t->need.parts == 0 && !bits_has(nodes->gpuless, node),
		packing->spread ? 0 : p.opened, -floor_div(gain, STEP),
		t->spread ? SNAP_DEVICES_MAX - left.whole : left.whole,
		packing->spread ? SNAP_MILLI - p.left : p.left, pack_imbalance(c, node, &t->need));
}

/* ---- the best of them ---- */

/* Return the node of the lower grade. */
static uint32_t better(const struct grade_table *t, uint32_t x, uint32_t y)
{
	/* x is left of y, so that equals go to the lower node. */
	if (y == SNAP_NONE || (x != SNAP_NONE && t->grades[x] <= t->grades[y]))
		return x;
	return y;
}

/* Return the best node below a place of the tree; leaves are the nodes themselves. */
static uint32_t winner(const struct cycle *c, const struct grade_table *t, uint32_t at)
{
	if (at < t->n_leaves)
		return t->winners[at];
	at -= t->n_leaves;
	return at < c->s->n_nodes ? at : SNAP_NONE;
}

/* Decide one place of the tree again. */
static void replay(const struct cycle *c, struct grade_table *t, uint32_t at)
{
	t->winners[at] = better(t, winner(c, t, at * 2), winner(c, t, at * 2 + 1));
}

/* Grade a node again; one outside the masks gets the worst grade. */
static void grade_node(struct cycle *c, struct grading *g, struct grade_table *t, uint32_t node,
		       const struct masks *m)
{
	t->seen[node] = g->generation[node];
	t->grades[node] = masks_of(m, c->nodes->now.usable[node / 64], node / 64) >> (node % 64) & 1
				  ? grade(c, g, t, node)
				  : GRADE_NONE;
}

/* Grade all nodes for the pods of a group, and build the tree whose root is the best of them: a
 * placement then costs the path of one node instead of a pass over all. */
static struct grade_table *new_table(struct cycle *c, struct grading *g, uint32_t group,
				     uint32_t flavor, const struct need *need,
				     const struct masks *m)
{
	const uint32_t n = c->s->n_nodes;
	struct grade_table *t =
		cycle_push(c, &g->tables, &g->n_tables, &g->room_tables, sizeof(*t), 1);

	if (!t)
		return NULL;
	*t = (struct grade_table){ .group = group,
				   .flavor = flavor,
				   .spread = c->pack->spread,
				   .need = *need,
				   .n_leaves = 1,
				   .at = g->n_journal,
				   .next = g->table_of[group] };
	while (t->n_leaves < n)
		t->n_leaves *= 2;
	t->grades = cycle_alloc(c, n, sizeof(*t->grades));
	t->seen = cycle_alloc(c, n, sizeof(*t->seen));
	t->winners = cycle_alloc(c, t->n_leaves, sizeof(*t->winners));
	if (c->failed)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		grade_node(c, g, t, i, m);
	for (uint32_t at = t->n_leaves; --at > 0;)
		replay(c, t, at);
	g->table_of[group] = g->n_tables - 1;
	return t;
}

/* Grade again the nodes that changed. */
static void catch_up(struct cycle *c, struct grading *g, struct grade_table *t,
		     const struct masks *m)
{
	for (; t->at < g->n_journal; t->at++) {
		const uint32_t node = g->journal[t->at];

		if (t->seen[node] == g->generation[node])
			continue;
		grade_node(c, g, t, node, m);
		for (uint32_t at = (t->n_leaves + node) / 2; at > 0; at /= 2)
			replay(c, t, at);
	}
}

/* Return the up-to-date table for such pods; NULL when there are too many tables, or without
 * memory. */
static struct grade_table *table_for(struct cycle *c, struct grading *g, uint32_t group,
				     uint32_t flavor, const struct need *need,
				     const struct masks *m)
{
	for (uint32_t i = g->table_of[group]; i != SNAP_NONE; i = g->tables[i].next) {
		if (g->tables[i].flavor != flavor || g->tables[i].spread != c->pack->spread)
			continue;
		catch_up(c, g, &g->tables[i], m);
		return &g->tables[i];
	}
	return g->n_tables < TABLES_MAX ? new_table(c, g, group, flavor, need, m) : NULL;
}

bool score_choose(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor,
		  const struct need *need, const struct masks *m, uint32_t *node)
{
	struct nodes *nodes = c->nodes;
	const struct masks own = { .fit = m->fit, .flavor = m->flavor };
	struct grading *g = nodes->planning || c->s->n_nodes == 0 ? NULL : grading_of(c);
	struct grade_table *t;
	uint32_t best = SNAP_NONE;

	if (!g || (!g->wanted && need->parts == 0) ||
	    (g->n_graded > GRADES_MAX && !c->pack->unhurried))
		return false;
	t = table_for(c, g, c->s->requests[request].group_first + group, flavor, need, &own);
	if (!t)
		return false;
	*node = SNAP_NONE;
	/* The tree knows the best of all nodes; under further restrictions the grades are compared
	 * one by one. */
	if (!m->tier && !m->domain && !m->also && !m->skip && !m->dear) {
		best = t->n_leaves > 1 ? t->winners[1] : 0;
		if (t->grades[best] != GRADE_NONE)
			*node = best;
		return true;
	}
	for (uint32_t w = 0; w < nodes->n_words; w++) {
		uint64_t word = masks_of(m, nodes->now.usable[w], w);

		while (word) {
			const uint32_t i = bits_pop(&word, w * 64);

			if (t->grades[i] != GRADE_NONE &&
			    (best == SNAP_NONE || t->grades[i] < t->grades[best]))
				best = i;
		}
	}
	*node = best;
	return true;
}
