#include "gpuqd/sched/provision.h"

#include <string.h>

#include "gpuqd/sched/order.h"
#include "gpuqd/sched/place/ends.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/quota/caps.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/reasons.h"
#include "gpuqd/sched/timeline/emit.h"
#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/util/sort.h"

/* A pool with nodes that do not exist, all of one flavor. */
struct growing {
	const char *pool;
	uint32_t flavor, node; /* node: one of them, the others are alike */
	int64_t price;
	uint32_t *nodes; /* that were requested, then those that could be, by name */
	uint32_t n_nodes, n_open; /* the first n_open of them are open to jobs */
	uint32_t n_asks, max_asks; /* requests under way, and allowed at once */
	uint64_t *others; /* nodes of other pools that do not exist */
	uint64_t *rest; /* these, and all that exist */
};

struct provision {
	struct amounts before; /* of the nodes that exist; exchanged while jobs are served */
	uint64_t *made_up; /* nodes that do not exist */
	uint64_t *open; /* of made_up: those that a job may use without asking for more */
	struct growing *pools; /* by price, then name */
	uint32_t n_pools, room_pools, n_left; /* n_left: nodes that could still be requested */
	uint32_t latest; /* pool_of() */
	uint32_t *pool_ix; /* by node that does not exist: its pool, before they are sorted */
	uint32_t *shapes, n_shapes; /* one node of each kind of them */
	uint32_t *ask_of; /* by node: into plan.asks; SNAP_NONE */
	uint64_t *barred; /* scratch: nodes that reservations keep from a job */
	uint64_t *asked; /* jobs with an element that has a place there */
	uint32_t *served, n_served, room; /* a job for each such element */
	struct job_class *classes; /* as they were */
	uint32_t n_classes;
};

/* True for a node that could come: it stands for those that a pool may still get. */
static bool is_made_up(const struct snap_node *n)
{
	return n->state >= SNAP_ASKED && n->flavor != SNAP_NONE;
}

/* ---- the nodes ---- */

static bool is_in(const struct growing *g, const struct snap_node *n)
{
	return g->flavor == n->flavor && (g->pool == n->pool || strcmp(g->pool, n->pool) == 0);
}

/* Return the index of the pool of a node that does not exist; a new one where it is the first. Nodes of
 * one pool follow one another. SNAP_NONE without memory. */
static uint32_t pool_of(struct cycle *c, struct provision *p, uint32_t node)
{
	const struct snap_node *n = &c->s->nodes[node];
	struct growing *g;
	uint32_t i = 0;

	if (p->latest < p->n_pools && is_in(&p->pools[p->latest], n))
		return p->latest;
	while (i < p->n_pools && !is_in(&p->pools[i], n))
		i++;
	p->latest = i;
	if (i < p->n_pools)
		return i;
	g = CYCLE_PUSH(c, p, pools, 1);
	if (!g)
		return SNAP_NONE;
	*g = (struct growing){
		.pool = n->pool,
		.flavor = n->flavor,
		.node = node,
		.price = n->price,
		.n_asks = n->n_asks,
		.max_asks = n->max_asks,
	};
	return i;
}

static int by_price(const void *ctx, uint32_t x, uint32_t y)
{
	const struct growing *all = ctx, *a = &all[x], *b = &all[y];
	const int c = sort_i64(a->price, b->price);

	return c ? c : strcmp(a->pool, b->pool);
}

/* Cheaper pools are asked first; of equal ones, in order of the site. */
static void sort_pools(struct cycle *c, struct provision *p)
{
	struct growing *sorted = cycle_alloc(c, p->n_pools, sizeof(*sorted));
	uint32_t *ix = cycle_alloc(c, 2 * (size_t)p->n_pools, sizeof(*ix));

	if (c->failed)
		return;
	for (uint32_t i = 0; i < p->n_pools; i++)
		ix[i] = i;
	sort_ix(ix, ix + p->n_pools, p->n_pools, by_price, p->pools);
	for (uint32_t i = 0; i < p->n_pools; i++)
		sorted[i] = p->pools[ix[i]];
	p->pools = sorted;
}

/* Sort the nodes into those that a job of the pool may use and those that it may not: it may use
 * nodes that exist, and those of one pool. */
static void part(struct cycle *c, const struct provision *p, struct growing *g)
{
	g->others = cycle_alloc(c, cycle_words(c), sizeof(*g->others));
	g->rest = cycle_alloc(c, cycle_words(c), sizeof(*g->rest));
	if (c->failed)
		return;
	memcpy(g->others, p->made_up, cycle_words(c) * sizeof(*g->others));
	memset(g->rest, 0xff, c->s->n_nodes / 64 * sizeof(*g->rest));
	for (uint32_t n = c->s->n_nodes / 64 * 64; n < c->s->n_nodes; n++)
		bits_add(g->rest, n);
	for (uint32_t i = 0; i < g->n_nodes; i++) {
		bits_del(g->others, g->nodes[i]);
		bits_del(g->rest, g->nodes[i]);
	}
}

/* Find the pools and count their nodes. */
static void find_pools(struct cycle *c, struct provision *p)
{
	const struct snapshot *s = c->s;

	p->made_up = cycle_alloc(c, cycle_words(c), sizeof(*p->made_up));
	p->pool_ix = cycle_alloc(c, s->n_nodes, sizeof(*p->pool_ix));
	for (uint32_t n = 0; !c->failed && n < s->n_nodes; n++)
		if (is_made_up(&s->nodes[n])) {
			const uint32_t ix = pool_of(c, p, n);

			if (ix == SNAP_NONE)
				return;
			p->pool_ix[n] = ix;
			bits_add(p->made_up, n);
			p->pools[ix].n_nodes++;
			p->pools[ix].n_open += s->nodes[n].state == SNAP_ASKED;
		}
}

/* Note the nodes of the pools in the order of their names, which is that of the snapshot: those that were
 * requested, then the others. */
static void list_nodes(struct cycle *c, struct provision *p, uint32_t n_planned, uint32_t n_asked)
{
	const struct snapshot *s = c->s;
	uint32_t *nodes = cycle_alloc(c, n_planned + n_asked, sizeof(*nodes)), used = 0;

	for (uint32_t i = 0; i < p->n_pools; i++) {
		p->pools[i].nodes = nodes + used;
		used += p->pools[i].n_nodes;
		p->pools[i].n_nodes = 0;
	}
	for (int state = SNAP_ASKED; state <= SNAP_PLANNED; state++)
		for (uint32_t w = 0; !c->failed && w < cycle_words(c); w++) {
			uint64_t word = p->made_up[w];

			while (word) {
				const uint32_t n = bits_pop(&word, w * 64);
				struct growing *g = &p->pools[p->pool_ix[n]];

				if (s->nodes[n].state == state)
					g->nodes[g->n_nodes++] = n;
			}
		}
	for (uint32_t i = 0; !c->failed && i < p->n_pools; i++)
		part(c, p, &p->pools[i]);
	p->n_left = n_planned;
	if (!c->failed)
		sort_pools(c, p);
}

/* Let placements use a node that could come, or no longer. */
static void open_node(struct cycle *c, uint32_t node, bool on)
{
	if (on)
		bits_add(c->provision->open, node);
	else
		bits_del(c->provision->open, node);
	nodes_open(c, node, on);
}

static int by_ask(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_node *nodes = ctx;

	return sort_i64(nodes[x].ask, nodes[y].ask);
}

/* List the requests that were made, by their numbers, and let jobs use their nodes. */
static void open_asked(struct cycle *c, uint32_t n_asked)
{
	const struct snapshot *s = c->s;
	uint32_t *nodes = cycle_alloc(c, 2 * (size_t)n_asked, sizeof(*nodes)), n = 0;
	struct plan_ask *a = NULL;

	if (c->failed)
		return;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (is_made_up(&s->nodes[i]) && s->nodes[i].state == SNAP_ASKED)
			nodes[n++] = i;
	sort_ix(nodes, nodes + n_asked, n, by_ask, s->nodes);
	for (uint32_t i = 0; i < n; i++) {
		const struct snap_node *node = &s->nodes[nodes[i]];

		if (!a || a->ask != node->ask) {
			a = PLAN_PUSH(c, asks, 1);
			if (!a)
				return;
			*a = (struct plan_ask){ .ask = node->ask,
						.pool = node->pool,
						.flavor = node->flavor,
						.job = SNAP_NONE };
		}
		a->n_nodes++;
		c->provision->ask_of[nodes[i]] = c->plan.n_asks - 1;
		open_node(c, nodes[i], true);
	}
}

/* True if a pod of some group with devices could be on such a node. */
static bool could_be_on(struct cycle *c, uint32_t job, uint32_t node)
{
	const struct snap_request *r = cycle_request(c, job);

	for (uint32_t k = 0; k < r->n_groups; k++) {
		const struct need one = nodes_need(&r->groups[k]);

		if (r->groups[k].gpus_milli > 0 && nodes_room_empty(c, node, &one, 1) &&
		    bits_has(feasibility_of(c, cycle_request_ix(c, job), k)->nodes, node))
			return true;
	}
	return false;
}

/* True if what may run on one may run on the other. */
static bool is_like(const struct cycle *c, const struct snap_node *a, const struct snap_node *b)
{
	const struct snap_class *x = &c->s->classes[a->cls], *y = &c->s->classes[b->cls];

	if (a->flavor != b->flavor || a->n_devices != b->n_devices ||
	    a->cpu_milli != b->cpu_milli || a->memory_bytes != b->memory_bytes ||
	    a->pods != b->pods || a->device_memory_bytes != b->device_memory_bytes ||
	    a->replicas != b->replicas ||
	    a->n_resources + b->n_resources + a->n_mig + b->n_mig + x->n_taints + y->n_taints)
		return false;
	for (uint32_t k = 0; k < c->s->n_label_keys; k++)
		if (!x->values[k] != !y->values[k] ||
		    (x->values[k] && strcmp(x->values[k], y->values[k]) != 0))
			return false;
	return true;
}

/* Note one node of each kind: many pools may have the same. */
static void find_shapes(struct cycle *c, struct provision *p)
{
	p->shapes = cycle_alloc(c, p->n_pools, sizeof(*p->shapes));
	for (uint32_t i = 0; !c->failed && i < p->n_pools; i++) {
		const struct snap_node *n = &c->s->nodes[p->pools[i].node];
		uint32_t k = 0;

		while (k < p->n_shapes && !is_like(c, &c->s->nodes[p->shapes[k]], n))
			k++;
		if (k == p->n_shapes)
			p->shapes[p->n_shapes++] = p->pools[i].node;
	}
}

/* True if the job could be in some pool. */
static bool could_be(struct cycle *c, const struct provision *p, uint32_t job)
{
	for (uint32_t i = 0; !c->failed && i < p->n_shapes; i++)
		if (could_be_on(c, job, p->shapes[i]))
			return true;
	return false;
}

/* Unblock the classes with jobs that could be on such nodes, and block the others. True if there are
 * such. */
static bool unblock(struct cycle *c, struct provision *p)
{
	bool any = false;

	for (uint32_t i = 0; i < c->s->lines.n_runs; i++)
		if (c->classes.of_run[i] != SNAP_NONE && c->classes.of_run[i] >= p->n_classes)
			p->n_classes = c->classes.of_run[i] + 1;
	p->classes = cycle_alloc(c, p->n_classes, sizeof(*p->classes));
	if (c->failed)
		return false;
	memcpy(p->classes, c->classes.items, p->n_classes * sizeof(*p->classes));
	for (uint32_t i = 0; i < p->n_classes; i++) {
		c->classes.items[i].blocked = true;
		c->classes.items[i].from_walltime_us = 0;
	}
	find_shapes(c, p);
	for (uint32_t i = 0; !c->failed && i < c->s->lines.n_runs; i++) {
		const uint32_t cls = c->classes.of_run[i];

		if (cls != SNAP_NONE && c->classes.items[cls].blocked)
			c->classes.items[cls].blocked = !could_be(c, p, c->s->lines.runs[i].first);
		any |= cls != SNAP_NONE && !c->classes.items[cls].blocked;
	}
	return any;
}

/* Jobs that could be in no pool ask for nothing: the state of the nodes is not copied for them. */
static void leave_out(struct cycle *c, const struct provision *p)
{
	const uint64_t max_steps = c->s->config.max_steps;

	memcpy(c->classes.items, p->classes, p->n_classes * sizeof(*p->classes));
	if (max_steps && c->steps >= max_steps)
		c->plan.cut_short = true;
}

void provision_begin(struct cycle *c)
{
	const uint32_t n = c->s->n_nodes;
	uint32_t n_planned = 0, n_asked = 0;
	struct provision *p;
	bool any;

	for (uint32_t i = 0; i < n; i++)
		if (is_made_up(&c->s->nodes[i])) {
			n_planned += c->s->nodes[i].state == SNAP_PLANNED;
			n_asked += c->s->nodes[i].state == SNAP_ASKED;
		}
	if (n_planned + n_asked == 0)
		return;
	p = cycle_alloc(c, 1, sizeof(*p));
	if (!p)
		return;
	find_pools(c, p);
	any = !c->failed && unblock(c, p);
	if (c->failed)
		return;
	if (!any && n_asked == 0) {
		leave_out(c, p);
		return;
	}
	p->before = nodes_amounts_new(c, true, true);
	p->open = cycle_alloc(c, cycle_words(c), sizeof(*p->open));
	p->ask_of = cycle_alloc(c, n, sizeof(*p->ask_of));
	p->barred = cycle_alloc(c, cycle_words(c), sizeof(*p->barred));
	p->asked = cycle_alloc(c, bits_words(c->s->n_jobs) + 1, sizeof(*p->asked));
	if (!c->failed)
		list_nodes(c, p, n_planned, n_asked);
	holdings_keep(c);
	if (c->failed)
		return;
	for (uint32_t i = 0; i < n; i++)
		p->ask_of[i] = SNAP_NONE;
	c->provision = p;
	nodes_copy(c, &p->before);
	nodes_swap(c, &p->before);
	nodes_fill_buckets(c);
	open_asked(c, n_asked);
	if (!c->failed)
		order_init(c);
}

/* ---- one job ---- */

/* True if one of its places is on a node of the set. */
static bool is_on(const struct cycle *c, const uint64_t *set)
{
	for (uint32_t i = 0; i < c->places.n_pods; i++)
		if (bits_has(set, c->places.pods[i].node))
			return true;
	return false;
}

/* Place it on what is open in the pool, and on nodes that exist. A job that would only take these was
 * kept off them by what is planned there, and gets none of them. */
static bool pack_open(struct cycle *c, uint32_t job, const struct growing *g)
{
	bool placed;

	pack_bar(c, g->others);
	placed = pack_job(c, job, g->flavor);
	if (placed && !is_on(c, c->provision->made_up)) {
		pack_undo(c, job);
		pack_bar(c, g->rest);
		placed = pack_job(c, job, g->flavor);
	}
	pack_bar(c, NULL);
	return placed;
}

/* Let jobs use this many nodes of the pool. */
static void set_open(struct cycle *c, struct growing *g, uint32_t n)
{
	while (g->n_open < n) {
		open_node(c, g->nodes[g->n_open++], true);
		c->provision->n_left--;
	}
	while (g->n_open > n) {
		open_node(c, g->nodes[--g->n_open], false);
		c->provision->n_left++;
	}
}

static bool fits_with(struct cycle *c, uint32_t job, struct growing *g, uint32_t n)
{
	set_open(c, g, n);
	return pack_open(c, job, g);
}

/* True if some pod of it has room on a node that is open. */
static bool has_room(const struct cycle *c, uint32_t job, const struct growing *g)
{
	const struct snap_request *r = cycle_request(c, job);

	for (uint32_t k = 0; k < r->n_groups; k++) {
		const struct need one = nodes_need(&r->groups[k]);

		for (uint32_t i = 0; r->groups[k].gpus_milli > 0 && i < g->n_open; i++)
			if (nodes_room(c, g->nodes[i], &one, 1))
				return true;
	}
	return false;
}

/* Return the reservation that keeps the pool's nodes from the job as they come; SNAP_NONE = none does. A job without
 * a time limit leaves them when it begins, where it may be preempted. */
static uint32_t reserved_for_others(struct cycle *c, uint32_t job, const struct growing *g)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t now = c->s->config.now_us;
	const bool leaves = j->walltime_us == GPUQ_UNLIMITED && j->preemptible;
	uint64_t *barred = c->provision->barred;
	uint32_t by;

	if (c->s->n_reservations == 0)
		return SNAP_NONE;
	by = reservations_bars(c, job, now, leaves ? now + 1 : timeline_end(c, job, now), barred);
	return by != SNAP_NONE && bits_has(barred, g->node) ? by : SNAP_NONE;
}

/* Ask for nodes of the pool, as few as will do. */
static bool extend(struct cycle *c, uint32_t job, struct growing *g)
{
	const uint32_t had = g->n_open;
	const uint32_t less = c->s->n_reservations ? reservations_takes_new(c, job, g->node) : 0;
	const uint32_t most = g->n_nodes > less ? g->n_nodes - less : 0;
	uint32_t too_few = had, enough = had + 1;
	struct plan_ask *a;

	if (had >= most || (g->max_asks && g->n_asks >= g->max_asks))
		return false;
	if (!fits_with(c, job, g, enough)) {
		too_few = enough;
		enough = most;
		if (too_few == enough || !fits_with(c, job, g, enough)) {
			set_open(c, g, had);
			return false;
		}
		while (too_few + 1 < enough) {
			const uint32_t n = too_few + (enough - too_few) / 2;

			pack_undo(c, job);
			if (fits_with(c, job, g, n))
				enough = n;
			else if (too_few = n, !fits_with(c, job, g, enough))
				c->failed = true; /* it did before */
		}
	}
	while (g->n_open > had) {
		const uint32_t last = g->nodes[g->n_open - 1];
		bool used = false;

		for (uint32_t i = 0; i < c->places.n_pods; i++)
			used |= c->places.pods[i].node == last;
		if (used)
			break;
		set_open(c, g, g->n_open - 1);
	}
	a = g->n_open > had ? PLAN_PUSH(c, asks, 1) : NULL;
	if (!a)
		return g->n_open == had;
	*a = (struct plan_ask){
		.pool = g->pool, .flavor = g->flavor, .n_nodes = g->n_open - had, .job = SNAP_NONE
	};
	g->n_asks++;
	for (uint32_t i = had; i < g->n_open; i++)
		c->provision->ask_of[g->nodes[i]] = c->plan.n_asks - 1;
	return true;
}

/* Count the element that has places now among those of the requests whose nodes it is on, and say
 * what it waits for. */
static void note_places(struct cycle *c, uint32_t job)
{
	const struct snap_key key = { c->s->jobs[job].key.id, plan_next_element(c, job) };
	struct provision *p = c->provision;
	const uint32_t first = c->plan.n_reasons;
	struct plan_reason *why = PLAN_PUSH(c, reasons, 1);
	uint32_t n = 0, *seen = cycle_scratch(c, c->places.n_pods, sizeof(*seen)), n_seen = 0;
	const char *pool = NULL;

	if (!why || !seen)
		return;
	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const uint32_t node = c->places.pods[i].node, ask = p->ask_of[node];
		uint32_t k = 0;

		if (ask == SNAP_NONE)
			continue;
		pool = c->s->nodes[node].pool;
		n++;
		while (k < n_seen && seen[k] != ask)
			k++;
		if (k < n_seen)
			continue;
		seen[n_seen++] = ask;
		if (c->plan.asks[ask].job == SNAP_NONE) {
			c->plan.asks[ask].job = job;
			c->plan.asks[ask].key = key;
		}
		c->plan.asks[ask].n_jobs++;
		if (c->s->jobs[job].walltime_us > c->plan.asks[ask].run_us)
			c->plan.asks[ask].run_us = c->s->jobs[job].walltime_us;
	}
	*why = (struct plan_reason){ .code = GPUQ_R_PROVISIONING,
				     .unit = PLAN_COUNT,
				     .need = n,
				     .object = pool ? pool : "",
				     .ask = n_seen > 0 ? c->plan.asks[seen[0]].ask : 0 };
	if (bits_has(p->asked, job)) {
		c->plan.n_reasons--;
		return;
	}
	reasons_flavor_wait(c, job);
	c->plan.why_of_job[job] = (struct plan_why){ first, c->plan.n_reasons - first };
}

/* A walk over the pools whose nodes a job could be on, by its flavors in order. */
struct walk {
	uint32_t flavor, pool; /* which come next */
};

/* Return the next pool; NULL = there are no more. */
static const struct growing *next_pool(struct cycle *c, uint32_t job, struct walk *w)
{
	const struct snap_request *r = cycle_request(c, job);
	const uint32_t n = r->gpus_milli > 0 ? cycle_flavors(c, job) : 0;
	const struct provision *p = c->provision;

	for (; w->flavor < n && !c->failed; w->flavor++, w->pool = 0)
		while (w->pool < p->n_pools) {
			const struct growing *g = &p->pools[w->pool++];

			if (g->flavor == r->flavor_ix[w->flavor] && could_be_on(c, job, g->node))
				return g;
		}
	return NULL;
}

/* Go on with the next flavor. */
static void skip_flavor(struct walk *w)
{
	w->flavor++;
	w->pool = 0;
}

/* Have jobs of the class pend for the reasons from the first one on. */
static void note_why(struct cycle *c, uint32_t cls, uint32_t first)
{
	c->provision->classes[cls].why = (struct plan_why){ first, c->plan.n_reasons - first };
}

/* Report that the job is pending since no more requests are allowed at once, where that is why. */
static void note_limit(struct cycle *c, uint32_t job, uint32_t cls)
{
	const uint32_t first = c->plan.n_reasons;
	struct plan_reason none, *why;
	struct walk w = { 0 };
	const struct growing *g;

	do
		g = next_pool(c, job, &w);
	while (g && (!g->max_asks || g->n_asks < g->max_asks ||
		     !holdings_admits(c, job, g->flavor, &none)));
	why = g ? PLAN_PUSH(c, reasons, 1) : NULL;
	if (!why)
		return;
	*why = (struct plan_reason){ .code = GPUQ_R_PROVISIONING_LIMIT,
				     .unit = PLAN_COUNT,
				     .have = g->n_asks,
				     .need = g->max_asks,
				     .object = g->pool };
	reasons_flavor_wait(c, job);
	note_why(c, cls, first);
}

/* Report the reservation that keeps the nodes that could come from the job, where that is why. */
static void note_reserved(struct cycle *c, uint32_t job, uint32_t cls)
{
	const uint32_t first = c->plan.n_reasons;
	uint32_t by = SNAP_NONE;
	const struct growing *g;
	struct plan_reason *why;
	struct walk w = { 0 };

	while ((g = next_pool(c, job, &w)) != NULL) {
		by = reserved_for_others(c, job, g);
		if (by == SNAP_NONE)
			return;
	}
	why = by != SNAP_NONE ? PLAN_PUSH(c, reasons, 1) : NULL;
	if (!why)
		return;
	*why = (struct plan_reason){ .code = GPUQ_R_NONE };
	reservations_name(c, by, why);
	note_why(c, cls, first);
}

/* Report the limit or quota that keeps the job from nodes that could come, where each of its flavors has
 * one: what is requested for others counts. */
static void note_refused(struct cycle *c, uint32_t job, uint32_t cls)
{
	const uint32_t first = c->plan.n_reasons;
	struct plan_reason found, *why;
	const struct growing *g;
	struct walk w = { 0 };
	bool any = false;

	/* It is the same for all pools of a flavor; the first one is reported. */
	for (; (g = next_pool(c, job, &w)) != NULL; skip_flavor(&w)) {
		struct plan_reason one;

		if (holdings_admits(c, job, g->flavor, &one))
			return;
		if (!any)
			found = one;
		any = true;
	}
	why = any ? PLAN_PUSH(c, reasons, 1) : NULL;
	if (!why)
		return;
	*why = found;
	reasons_flavor_wait(c, job);
	note_why(c, cls, first);
}

/* Report why nothing was requested for a job that has no place. */
static void note_none(struct cycle *c, uint32_t job)
{
	const uint32_t cls = cycle_class(c, job);

	if (cls >= c->provision->n_classes)
		return;
	note_reserved(c, job, cls);
	note_refused(c, job, cls);
	note_limit(c, job, cls);
}

static void note_served(struct cycle *c, uint32_t job)
{
	struct provision *p = c->provision;
	uint32_t *at = cycle_push(c, &p->served, &p->n_served, &p->room, sizeof(*at), 1);

	if (at)
		*at = job;
	bits_add(p->asked, job);
}

/* True if the job has waited for the flavor for as long as it would. */
static bool is_given_up(const struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_request *r = cycle_request(c, job);

	return r->wait_ix_us && flavor + 1 < cycle_flavors(c, job) && r->wait_ix_us[flavor] != 0;
}

/* Place it on nodes that were requested, or request some; on_its_way: on those alone that the cloud has said
 * it provides. */
static bool place_on(struct cycle *c, uint32_t job, struct growing *g, bool asking, bool on_its_way)
{
	bool placed;

	if (!could_be_on(c, job, g->node) || reserved_for_others(c, job, g) != SNAP_NONE)
		return false;
	placed = asking ? extend(c, job, g) : has_room(c, job, g) && pack_open(c, job, g);
	for (uint32_t i = 0; placed && on_its_way && i < c->places.n_pods; i++) {
		const uint32_t node = c->places.pods[i].node;

		if (!bits_has(c->provision->made_up, node) || c->s->nodes[node].coming)
			continue;
		pack_undo(c, job);
		placed = false;
	}
	return placed;
}

/* In which order nodes that may come are tried: those of flavors that the job has waited for as long as it would
 * are the last, unless they are on their way. */
static const struct {
	bool given_up, asking, on_its_way;
} tries[] = {
	{ .given_up = false, .asking = false }, { .given_up = true, .on_its_way = true },
	{ .given_up = false, .asking = true },  { .given_up = true, .asking = false },
	{ .given_up = true, .asking = true },
};

/* Give the next element of a job places, on nodes that may come. */
static bool serve(struct cycle *c, uint32_t job)
{
	const struct snap_request *r = cycle_request(c, job);
	const uint32_t n = cycle_flavors(c, job);
	struct provision *p = c->provision;
	struct plan_reason why;

	for (size_t t = 0; t < sizeof(tries) / sizeof(*tries) && r->gpus_milli > 0; t++)
		for (uint32_t i = 0; i < n && !c->failed; i++) {
			const uint32_t flavor = r->flavor_ix[i];
			bool placed = false;

			if (is_given_up(c, job, i) != tries[t].given_up ||
			    !holdings_admits(c, job, flavor, &why))
				continue;
			for (uint32_t k = 0; !placed && k < p->n_pools; k++)
				placed = p->pools[k].flavor == flavor &&
					 place_on(c, job, &p->pools[k], tries[t].asking,
						  tries[t].on_its_way);
			if (!placed || c->failed)
				continue;
			note_places(c, job);
			emit_count(c, job, flavor);
			note_served(c, job);
			return true;
		}
	return false;
}

/* True if no node could come, and those that may have nothing free. */
static bool is_used_up(const struct cycle *c)
{
	const struct provision *p = c->provision;
	const struct amounts *now = nodes_amounts(c);

	if (p->n_left)
		return false;
	for (uint32_t w = 0; w < cycle_words(c); w++) {
		uint64_t word = p->open[w];

		while (word) {
			const uint32_t node = bits_pop(&word, w * 64);

			if (now->whole[node] || bits_has(now->parted, node))
				return false;
		}
	}
	return true;
}

/* True if some pool has as many requests as it may: the jobs that wait for that are to hear of it. */
static bool is_capped(const struct provision *p)
{
	for (uint32_t i = 0; i < p->n_pools; i++)
		if (p->pools[i].max_asks && p->pools[i].n_asks >= p->pools[i].max_asks)
			return true;
	return false;
}

bool provision_next(struct cycle *c)
{
	const uint64_t max_steps = c->s->config.max_steps;
	struct plan_reason why;
	uint32_t job;

	if (!c->provision || c->failed || (is_used_up(c) && !is_capped(c->provision)))
		return false;
	/* Requests of jobs that were not reached are kept. */
	if (max_steps && c->steps >= max_steps) {
		c->plan.cut_short = true;
		return false;
	}
	job = order_next(c);
	if (job == SNAP_NONE)
		return false;
	c->steps++;
	gpuq_arena_reset(&c->scratch);
	/* One that started in this cycle is first in its run again. */
	if (c->plan.started[job] == c->s->jobs[job].n_waiting || caps_array_full(c, job, &why)) {
		order_done(c, job);
	} else if (!serve(c, job)) {
		struct job_class *cls = &c->classes.items[cycle_class(c, job)];

		note_none(c, job);
		cls->blocked = true;
		cls->from_walltime_us = ends_of(c, job) ? c->s->jobs[job].walltime_us : 0;
		order_done(c, job);
	} else if (c->plan.started[job] == c->s->jobs[job].n_waiting) {
		order_done(c, job);
	} else {
		order_changed(c, job);
	}
	return true;
}

void provision_end(struct cycle *c)
{
	struct provision *p = c->provision;

	if (!p)
		return;
	for (uint32_t i = 0; i < p->n_served; i++)
		c->plan.started[p->served[i]]--;
	memcpy(c->classes.items, p->classes, p->n_classes * sizeof(*p->classes));
	nodes_swap(c, &p->before);
}
