#include "gpuqd/sim/world_cuts.h"

#include <string.h>

#include "gpuqd/carry/carry_cuts.h"
#include "gpuqd/devices/backend.h"
#include "gpuqd/sim/world_int.h"
#include "gpuqd/site/layouts.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/state/cuts/cut.h"

const struct sc_pool *world_cuts_pool(const struct world *w, const struct sim_node *n)
{
	for (uint32_t p = 0; n->spec->pool && p < w->n_pools; p++)
		if (w->pools[p].spec->mig && w->pools[p].spec->mig->manager &&
		    strcmp(w->pools[p].spec->name, n->spec->pool) == 0)
			return w->pools[p].spec;
	return NULL;
}

/* ---- what a node offers ---- */

static bool set_label(struct gpuq_arena *a, struct gpuq_strmap *map, const char *key,
		      const char *value)
{
	struct gpuq_strmap to = { .keys = gpuq_arena_calloc(a, map->n + 1, sizeof(char *)),
				  .vals = gpuq_arena_calloc(a, map->n + 1, sizeof(char *)) };

	if (!to.keys || !to.vals)
		return false;
	for (size_t i = 0; i < map->n; i++)
		if (strcmp(map->keys[i], key) != 0) {
			to.keys[to.n] = map->keys[i];
			to.vals[to.n++] = map->vals[i];
		}
	to.keys[to.n] = key;
	to.vals[to.n++] = value;
	*map = to;
	return true;
}

/* Make the cards those of the layout: instances of its profile, or whole devices. */
static bool lay(const struct sim_node *n, struct gpuq_arena *a, struct node_fact *f)
{
	const char *product = gpuq_strmap_text(&f->labels, "nvidia.com/gpu.product");
	const char *profile = layouts_profile(n->layout);
	struct device_fact *devices = gpuq_arena_calloc(a, n->cards + 1, sizeof(*devices));
	struct mig_fact *mig = gpuq_arena_calloc(a, 1, sizeof(*mig));

	if (!devices || !mig)
		return false;
	for (uint32_t d = 0; d < n->cards; d++)
		devices[d] =
			(struct device_fact){ "", n->spec->flavor ? n->spec->flavor : "default",
					      n->spec->gpu_mem_mb / 1000, true };
	*mig = (struct mig_fact){ profile, n->cards * (uint32_t)cost_instances(profile, product) };
	f->devices = devices;
	f->n_devices = *profile ? 0 : n->cards;
	f->mig = mig;
	f->n_mig = *profile ? 1 : 0;
	f->links = f->numa = NULL;
	return set_label(a, &f->labels, CUT_LABEL, n->layout) &&
	       set_label(a, &f->labels, CUT_LABEL_STATE, CUT_SUCCESS);
}

bool world_cuts_fact(const struct world *w, const struct sim_node *n, struct gpuq_arena *a,
		     struct node_fact *f)
{
	const struct sc_pool *pool = world_cuts_pool(w, n);

	if (!pool)
		return true;
	if (!set_label(a, &f->labels, WORLD_POOL_LABEL, pool->name) || (n->layout && !lay(n, a, f)))
		return false;
	return f->replicas > 1 ||
	       set_label(a, &f->labels, SHARE_LABEL, f->n_mig && !f->n_devices ? "mig" : "whole");
}

/* ---- cuts ---- */

/* End a cut: the node has its layout, or its manager failed. */
static int end(struct world *w, struct sim_node *n, bool well, struct gpuq_err *err)
{
	const struct node *of = model_find_node(w->m, n->name);
	struct event ev = { .type = EV_NODE_CUT };
	int rc = 0;

	if (well) {
		n->layout = gpuq_arena_strdup(&w->arena, of->cut->layout);
		n->cards = of->cut->cards;
		rc = n->layout ? world_node_event(w, n, err) : gpuq_no_memory(err);
	}
	n->cut_us = 0;
	ev.cut.name = n->name;
	ev.cut.state = well ? CUT_DONE : CUT_FAILED;
	ev.cut.message = well ? "" : "the MIG manager failed";
	return rc < 0 ? rc : world_event(w, &ev, err);
}

int world_cuts_carry(struct world *w, const struct snapshot *s, const struct plan *p, bool *changed,
		     struct gpuq_err *err)
{
	const struct carry_to to = { .apply = world_event_fn, .arg = w };
	int rc = 0;

	carry_cuts(&to, w->m, s, p);
	for (uint32_t i = 0; rc == 0 && i < p->n_cuts; i++) {
		const uint32_t at = world_node(w, s->nodes[p->cuts[i].node].name);
		struct sim_node *n = at == SNAP_NONE ? NULL : &w->nodes[at];
		const struct node *of = n ? model_find_node(w->m, n->name) : NULL;
		const struct sc_pool *pool =
			of && cut_is_under_way(of) ? world_cuts_pool(w, n) : NULL;

		if (!pool)
			continue;
		*changed = true;
		n->cut_us = pool->mig->delay == SC_ABSENT
				    ? GPUQ_UNLIMITED
				    : w->now_us + world_us(w, pool->mig->delay);
		if (n->cut_us <= w->now_us)
			rc = end(w, n, true, err);
	}
	return rc;
}

int64_t world_cuts_next(const struct world *w)
{
	int64_t next = GPUQ_UNLIMITED;

	for (uint32_t i = 0; i < w->n_nodes; i++)
		if (w->nodes[i].cut_us > w->now_us && w->nodes[i].cut_us < next)
			next = w->nodes[i].cut_us;
	return next;
}

int world_cuts_fall_due(struct world *w, struct gpuq_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < w->n_nodes; i++)
		if (w->nodes[i].cut_us && w->nodes[i].cut_us <= w->now_us)
			rc = end(w, &w->nodes[i], true, err);
	return rc;
}

int world_cuts_step(struct world *w, const struct sc_step *s, struct gpuq_err *err)
{
	const uint32_t n = world_node(w, s->node);

	if (n == SNAP_NONE || !w->nodes[n].cut_us)
		return gpuq_fail_field(err, GPUQ_EINVAL, "node", "node %s is not being cut",
				       s->node);
	return end(w, &w->nodes[n], s->event == SC_NODE_CUT, err);
}
