#include "gpuqd/sched/place/topology_count.h"

#include "gpuqd/sched/place/topology.h"
#include "gpuqd/sched/place/topology_tree.h"

/* How many pods domains hold: counted on nodes, summed up the tree. On a rung with slices only
 * whole ones count, so that the rungs above count whole ones, too. */

bool topology_measure_init(struct cycle *c, const struct tree *tree, const struct snap_group *g,
			   struct measure *out)
{
	out->tree = tree;
	out->size = cycle_scratch(c, tree->n_rungs, sizeof(*out->size));
	out->at = cycle_scratch(c, tree->n_rungs, sizeof(*out->at));
	for (uint32_t r = 0; !c->failed && r < tree->n_rungs; r++) {
		out->at[r] = cycle_scratch(c, tree->rungs[r].n_domains, sizeof(**out->at));
		/* The outer one of two at one level: the inner follows from it. */
		for (uint32_t i = g->n_slices; i-- > 0;)
			if (topology_level(c, g->slices[i].level) == tree->rungs[r].level)
				out->size[r] = (uint32_t)g->slices[i].size;
	}
	return !c->failed;
}

void topology_measure_node(struct measure *m, uint32_t node, uint64_t pods, uint64_t devices)
{
	const uint32_t last = m->tree->n_rungs - 1;
	struct domain *d;

	if (m->tree->n_rungs == 0)
		return;
	d = &m->at[last][m->tree->rungs[last].domain_of[node]];
	d->room += pods;
	d->raw += pods;
	d->free += devices;
}

void topology_measure_sum(struct measure *m)
{
	for (uint32_t r = m->tree->n_rungs; r-- > 0;) {
		const struct rung *rung = &m->tree->rungs[r];
		uint32_t parent = 0;

		for (uint32_t i = 0; i < rung->n_domains; i++) {
			struct domain *d = &m->at[r][i];

			if (m->size[r])
				d->room = rung->loose[i] ? 0 : d->room - d->room % m->size[r];
			if (r == 0)
				continue;
			while (rung->child_first[parent + 1] <= i)
				parent++;
			m->at[r - 1][parent].room += d->room;
			m->at[r - 1][parent].raw += d->raw;
			m->at[r - 1][parent].free += d->free;
		}
	}
}

/* True if x comes before y when that many pods are left: a labelled domain first; then one that
 * holds all of them, the tighter first; else the roomier. */
static bool better(const struct measure *m, uint32_t rung, uint32_t x, uint32_t y, uint64_t pods)
{
	const struct domain *a = &m->at[rung][x], *b = &m->at[rung][y];
	const bool *loose = m->tree->rungs[rung].loose;

	if (loose[x] != loose[y])
		return loose[y];
	if ((a->room >= pods) != (b->room >= pods))
		return a->room >= pods;
	if (a->room != b->room)
		return (a->room < b->room) == (a->room >= pods);
	if (a->raw != b->raw)
		return a->raw < b->raw;
	if (a->free != b->free)
		return a->free < b->free;
	return x < y;
}

uint32_t topology_measure_pick(const struct measure *m, uint32_t rung, const uint32_t *parents,
			       uint32_t n_parents, uint64_t pods)
{
	const uint32_t *child_first = m->tree->rungs[rung].child_first;
	uint32_t best = SNAP_NONE;

	for (uint32_t p = 0; p < n_parents; p++)
		for (uint32_t i = child_first[parents[p]]; i < child_first[parents[p] + 1]; i++)
			if (m->at[rung][i].room > 0 &&
			    (best == SNAP_NONE || better(m, rung, i, best, pods)))
				best = i;
	return best;
}
