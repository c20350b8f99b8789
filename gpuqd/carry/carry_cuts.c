#include "gpuqd/carry/carry_cuts.h"

#include <string.h>

#include "gpuqd/snapshot/cost.h"
#include "gpuqd/state/cuts/cut.h"

/* True if a node of the pool is being cut, of this plan or of an earlier one. */
static bool is_busy(const struct model *m, const char *pool)
{
	node_each(m, n)
		if (cut_is_under_way(n) && strcmp(n->pool, pool) == 0)
			return true;
	return false;
}

void carry_cuts(const struct carry_to *to, const struct model *m, const struct snapshot *s,
		const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_cuts; i++) {
		const struct plan_cut *c = &p->cuts[i];
		const struct snap_layout *l = &s->nodes[c->node].layouts[c->layout];
		const struct node *n = model_find_node(m, s->nodes[c->node].name);
		struct event ev = { .type = EV_NODE_CUT, .job = { c->key.id, c->key.index } };
		struct gpuq_err err = GPUQ_ERR_INIT;
		const char *product;

		if (!n || n->drain || !n->fact.ready || !cut_node_is_idle(n) || is_busy(m, n->pool))
			continue;
		product = gpuq_strmap_text(&n->fact.labels, "nvidia.com/gpu.product");
		ev.cut.name = n->name;
		ev.cut.state = CUT_SET;
		ev.cut.layout = l->name;
		ev.cut.before = gpuq_strmap_text(&n->fact.labels, CUT_LABEL);
		ev.cut.cards = l->profile
				       ? (uint32_t)(l->count / cost_instances(l->profile, product))
				       : l->count;
		to->apply(to->arg, &ev, &err);
	}
}
