#include "gpuqd/sched/cut.h"

#include <string.h>

#include "gpuqd/sched/order.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/layouts.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/util/amount.h"

struct cutting {
	uint64_t *taken; /* nodes for which anything is planned, or kept */
	struct job_class *classes; /* as they were */
	uint32_t n_classes;
};

/* ---- layouts and nodes ---- */

/* True if the group requests what a layout can give: instances, or whole devices. */
static bool is_served(const struct snap_group *g)
{
	const struct need one = nodes_need(g);

	return one.migs > 0 || one.whole > 0;
}

static bool is_any_served(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (is_served(&r->groups[g]))
			return true;
	return false;
}

/* True if the nodes of the flavor, empty, have room for the group. */
static bool is_there(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor,
		     int64_t *room)
{
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct group_fit *fit = feasibility_of(c, request, group);
	const struct need one = nodes_need(g);

	*room = 0;
	for (uint32_t n = 0; !c->failed && n < c->s->n_nodes && *room < g->pods_min; n++) {
		const struct snap_node *node = &c->s->nodes[n];

		if (node->state > SNAP_SUSPECT || node->state == SNAP_DRAINED || node->cutting ||
		    node->flavor != flavor || !bits_has(fit->nodes, n))
			continue;
		c->steps++;
		*room += nodes_room_empty(c, n, &one, g->pods_min);
	}
	return *room >= g->pods_min;
}

/* Return the layout that a node is being given; NULL: it is given none. */
static const struct snap_layout *layout_coming(const struct cycle *c, uint32_t node)
{
	for (uint32_t i = 0; i < c->plan.n_cuts; i++)
		if (c->plan.cuts[i].node == node)
			return &c->s->nodes[node].layouts[c->plan.cuts[i].layout];
	return c->s->nodes[node].cutting && c->s->nodes[node].n_layouts ? c->s->nodes[node].layouts
									: NULL;
}

/* Add the room of nodes that are being cut; return the first of them, SNAP_NONE = there is none. */
static uint32_t coming(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor,
		       int64_t *room)
{
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct group_fit *fit = feasibility_of(c, request, group);
	const struct need one = nodes_need(g);
	uint32_t first = SNAP_NONE;

	for (uint32_t n = 0; !c->failed && n < c->s->n_nodes; n++) {
		const struct snap_layout *l = c->s->nodes[n].n_layouts ? layout_coming(c, n) : NULL;
		const int64_t pods = l && c->s->nodes[n].flavor == flavor && bits_has(fit->nodes, n)
					     ? layouts_room(c, n, l, &one, g->pods_min)
					     : 0;

		if (pods > 0 && first == SNAP_NONE)
			first = n;
		*room = amount_sum(*room, pods);
	}
	return first;
}

/* True if a node of its pool is being cut. */
static bool is_pool_busy(const struct cycle *c, uint32_t node)
{
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if ((c->s->nodes[n].cutting || layout_coming(c, n)) &&
		    strcmp(c->s->nodes[n].pool, c->s->nodes[node].pool) == 0)
			return true;
	return false;
}

static bool is_idle(const struct cycle *c, const struct cutting *k, uint32_t node)
{
	const struct snap_node *n = &c->s->nodes[node];

	if (n->state != SNAP_READY || bits_has(k->taken, node) || n->foreign_gpus ||
	    !bits_has(nodes_amounts(c)->vacant, node))
		return false;
	for (uint32_t d = n->device_first; d < n->device_first + n->n_devices; d++)
		if (c->s->devices[d].foreign_milli)
			return false;
	for (uint32_t i = 0; i < n->n_mig; i++)
		if (n->mig[i].foreign)
			return false;
	return true;
}

/* Find a node for the group, and its layout: whole cards are cut before idle instances. */
static bool choose(struct cycle *c, const struct cutting *k, uint32_t request, uint32_t group,
		   uint32_t flavor, struct plan_cut *out)
{
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct group_fit *fit = feasibility_of(c, request, group);
	const struct need one = nodes_need(g);

	for (int cut = 0; cut < 2 && !c->failed; cut++)
		for (uint32_t n = 0; n < c->s->n_nodes; n++) {
			const struct snap_node *node = &c->s->nodes[n];
			uint32_t i = 0, has;

			if (!node->n_layouts || node->cutting || node->flavor != flavor ||
			    (node->n_mig > 0) != cut || !bits_has(fit->nodes, n) ||
			    !is_idle(c, k, n) || is_pool_busy(c, n))
				continue;
			c->steps++;
			has = nodes_room_empty(c, n, &one, g->pods_min);
			while (i < node->n_layouts &&
			       (node->layouts[i].again_us ||
				layouts_room(c, n, &node->layouts[i], &one, g->pods_min) <= has))
				i++;
			if (i == node->n_layouts)
				continue;
			*out = (struct plan_cut){ .node = n, .layout = i };
			return true;
		}
	return false;
}

/* A node that a job waits for. */
struct awaited {
	uint32_t node; /* SNAP_NONE = nothing */
	int64_t again_us; /* when it gets a layout that it was given not long ago; 0 = it is being cut */
};

/* Find the node that is the first to get the layout which serves the group again; none where another, once it is
 * idle, could be given one at once. */
static struct awaited later(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor)
{
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct group_fit *fit = feasibility_of(c, request, group);
	const struct need one = nodes_need(g);
	struct awaited first = { SNAP_NONE, 0 };

	for (uint32_t n = 0; !c->failed && n < c->s->n_nodes; n++) {
		const struct snap_node *node = &c->s->nodes[n];

		if (node->cutting || node->flavor != flavor || !bits_has(fit->nodes, n))
			continue;
		for (uint32_t i = 0; i < node->n_layouts; i++) {
			const struct snap_layout *l = &node->layouts[i];

			if (layouts_room(c, n, l, &one, g->pods_min) == 0)
				continue;
			if (l->again_us == 0)
				return (struct awaited){ SNAP_NONE, 0 };
			if (first.node == SNAP_NONE || l->again_us < first.again_us)
				first = (struct awaited){ n, l->again_us };
		}
	}
	return first;
}

/* ---- jobs ---- */

/* Give the class of the job the reason that it waits for that node. */
static void tell(struct cycle *c, struct cutting *k, uint32_t job, uint32_t cls,
		 const struct awaited *awaited)
{
	struct plan_reason *why = PLAN_PUSH(c, reasons, 1);

	if (!why)
		return;
	*why = (struct plan_reason){ .code = GPUQ_R_MIG_LAYOUT,
				     .object = c->s->nodes[awaited->node].name };
	if (awaited->again_us) {
		why->unit = PLAN_TIME;
		why->have = c->s->jobs[job].wait_from_us; /* not now: it is the same until then */
		why->need = awaited->again_us;
	}
	k->classes[cls].why = (struct plan_why){ c->plan.n_reasons - 1, 1 };
}

/* Decide for one group on one flavor. True: the job waits for a node that is cut, now or later. */
static bool serve_group(struct cycle *c, const struct cutting *k, uint32_t job, uint32_t group,
			uint32_t flavor, struct awaited *out)
{
	const uint32_t request = cycle_request_ix(c, job);
	const struct snap_group *g = &c->s->requests[request].groups[group];
	struct plan_cut chosen, *cut;
	int64_t room = 0;

	if (!is_served(g) || is_there(c, request, group, flavor, &room))
		return false;
	*out = (struct awaited){ coming(c, request, group, flavor, &room), 0 };
	if (room < g->pods_min && choose(c, k, request, group, flavor, &chosen)) {
		cut = PLAN_PUSH(c, cuts, 1);
		if (!cut)
			return false;
		chosen.job = job;
		chosen.key = (struct snap_key){ c->s->jobs[job].key.id, plan_next_element(c, job) };
		*cut = chosen;
		if (out->node == SNAP_NONE)
			out->node = chosen.node;
	}
	if (out->node == SNAP_NONE)
		*out = later(c, request, group, flavor);
	return out->node != SNAP_NONE;
}

/* True if the nodes of the flavor, empty, have room for the job in one of the ways that do: it waits for
 * those. */
static bool is_served_there(struct cycle *c, uint32_t job, uint32_t first, uint32_t choices)
{
	for (uint32_t i = 0; choices > 1 && i < choices && !c->failed; i++) {
		const uint32_t flavor = cycle_try_as(c, job, first + i);
		const struct snap_request *r = cycle_request(c, job);
		bool all = true;
		int64_t room;

		for (uint32_t g = 0; all && g < r->n_groups; g++)
			all = r->groups[g].gpus_milli == 0 ||
			      is_there(c, cycle_request_ix(c, job), g, flavor, &room);
		if (all)
			return true;
	}
	return false;
}

static void serve(struct cycle *c, struct cutting *k, uint32_t job, uint32_t cls)
{
	const struct snap_request *own = &c->s->requests[c->s->jobs[job].request];
	const uint32_t choices = cycle_choices(c, job);
	const uint32_t n = own->gpus_milli > 0 ? own->n_flavor_ix * choices : 0;
	struct plan_reason none;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t flavor;

		if (i % choices == 0 && is_served_there(c, job, i, choices)) {
			i += choices - 1;
			continue;
		}
		flavor = cycle_try_as(c, job, i);
		if (!holdings_admits(c, job, flavor, &none))
			continue;
		for (uint32_t g = 0; g < own->n_groups; g++) {
			struct awaited awaited;

			if (!serve_group(c, k, job, g, flavor, &awaited))
				continue;
			tell(c, k, job, cls, &awaited);
			cycle_try_own(c, job);
			return;
		}
	}
	cycle_try_own(c, job);
}

/* ---- all of them ---- */

/* Note the nodes for which pods, nominated placements, start reservations or reservations are kept. */
static void note_taken(struct cycle *c, struct cutting *k)
{
	for (uint32_t i = 0; i < c->plan.n_pods; i++)
		bits_add(k->taken, c->plan.pods[i].node);
	for (uint32_t i = 0; i < c->s->n_promises; i++)
		bits_add(k->taken, c->s->promises[i].node);
	for (uint32_t i = 0; i < c->s->n_allocs; i++)
		bits_add(k->taken, c->s->allocs[i].node);
	for (uint32_t i = 0; i < c->s->n_reservations; i++)
		for (uint32_t n = 0; n < c->s->reservations[i].n_nodes; n++)
			bits_add(k->taken, c->s->reservations[i].nodes[n]);
}

/* Leave open the classes that are blocked, and that some layout could serve. */
static void open_classes(struct cycle *c, struct cutting *k)
{
	for (uint32_t i = 0; i < c->s->lines.n_runs; i++)
		if (c->classes.of_run[i] != SNAP_NONE && c->classes.of_run[i] >= k->n_classes)
			k->n_classes = c->classes.of_run[i] + 1;
	k->classes = cycle_alloc(c, k->n_classes, sizeof(*k->classes));
	if (c->failed)
		return;
	memcpy(k->classes, c->classes.items, k->n_classes * sizeof(*k->classes));
	for (uint32_t i = 0; i < k->n_classes; i++) {
		c->classes.items[i].blocked = true;
		c->classes.items[i].from_walltime_us = 0;
	}
	for (uint32_t i = 0; i < c->s->lines.n_runs; i++) {
		const uint32_t cls = c->classes.of_run[i], job = c->s->lines.runs[i].first;
		const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];

		if (cls == SNAP_NONE || !k->classes[cls].blocked)
			continue;
		if (is_any_served(r))
			c->classes.items[cls].blocked = false;
		for (uint32_t o = 0; o < r->n_others; o++)
			if (is_any_served(&c->s->requests[r->others[o]]))
				c->classes.items[cls].blocked = false;
	}
}

static bool has_layouts(const struct cycle *c)
{
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if (c->s->nodes[n].n_layouts)
			return true;
	return false;
}

void cut_decide(struct cycle *c)
{
	const uint64_t max_steps = c->s->config.max_steps;
	struct cutting k = { 0 };
	uint32_t job;

	if (!has_layouts(c))
		return;
	k.taken = cycle_alloc(c, cycle_words(c), sizeof(*k.taken));
	if (!c->failed)
		open_classes(c, &k);
	if (c->failed)
		return;
	note_taken(c, &k);
	order_init(c);
	while (!c->failed && (!max_steps || c->steps < max_steps) &&
	       (job = order_next(c)) != SNAP_NONE) {
		const uint32_t cls = cycle_class(c, job);

		c->steps++;
		gpuq_arena_reset(&c->scratch);
		if (c->plan.started[job] < c->s->jobs[job].n_waiting)
			serve(c, &k, job, cls);
		c->classes.items[cls].blocked = true;
		order_done(c, job);
	}
	memcpy(c->classes.items, k.classes, k.n_classes * sizeof(*k.classes));
}
