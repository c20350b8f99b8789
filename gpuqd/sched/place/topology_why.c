#include "gpuqd/sched/place/topology_why.h"

#include "gpuqd/sched/place/topology.h"
#include "gpuqd/sched/place/topology_count.h"
#include "gpuqd/sched/place/topology_tree.h"

/* Why pods do not fit into domains, in the numbers of the domain that comes nearest to holding
 * them. */

bool topology_survey(struct cycle *c, const struct snap_group *g, struct measure *out)
{
	const uint32_t at = g->topology_required ? topology_position(c, g->topology_required) : 0;
	const bool listed = g->topology_required && at < c->s->config.n_levels;
	const struct tree *tree = topology_tree(c, g, g->topology_required, listed ? at + 1 : 0);

	return tree && topology_measure_init(c, tree, g, out);
}

/* Consecutive domains of one rung. */
struct range {
	uint32_t first, end; /* domains of a rung, neighbours by number */
};

/* Return where all pods would go: the roomiest domain of the required level, or everywhere. */
static struct range widest(const struct snap_group *g, const struct measure *m)
{
	const struct rung *rung = &m->tree->rungs[0];
	const struct domain *d = m->at[0];
	uint32_t best = SNAP_NONE;

	if (!g->topology_required)
		return (struct range){ 0, rung->n_domains };
	for (uint32_t i = 0; i < rung->n_domains; i++)
		if (!rung->loose[i] && (best == SNAP_NONE || d[i].room > d[best].room ||
					(d[i].room == d[best].room && d[i].raw > d[best].raw)))
			best = i;
	return best == SNAP_NONE ? (struct range){ 0, 0 } : (struct range){ best, best + 1 };
}

/* Return how many pods have room in some domains of a level. */
static uint64_t room_in(const struct measure *m, uint32_t rung, struct range in)
{
	uint64_t sum = 0;

	for (uint32_t i = in.first; i < in.end; i++)
		sum += m->at[rung][i].room;
	return sum;
}

/* Return a reason that counts pods at a level. */
static struct plan_reason reason(enum gpuq_reason code, uint64_t have, uint64_t need,
				 const char *level)
{
	return (struct plan_reason){ .code = code,
				     .unit = PLAN_COUNT,
				     .have = (int64_t)have,
				     .need = (int64_t)need,
				     .object = level };
}

bool topology_lacks(struct cycle *c, const struct snap_group *g, const struct measure *m,
		    enum gpuq_reason code, struct plan_reason *why, bool more)
{
	const uint32_t n = m->tree->n_rungs;
	struct range in = n ? widest(g, m) : (struct range){ 0, 0 };
	bool said = false;

	if (n == 0 || room_in(m, 0, in) >= g->pods_min)
		return false;
	for (uint32_t r = 0; r < n && !c->failed; r++) {
		const uint32_t size = m->size[r];
		const uint32_t *down = r + 1 < n ? m->tree->rungs[r + 1].child_first : NULL;
		const uint64_t need = size ? (g->pods_min + size - 1) / size : 0;
		const uint64_t have = size ? room_in(m, r, in) / size : 0;
		struct plan_reason *to = why;

		if (have < need) {
			if (said)
				to = more ? PLAN_PUSH(c, reasons, 1) : NULL;
			if (to)
				*to = reason(code, have, need, m->tree->rungs[r].level->name);
			said = true;
		}
		if (down)
			in = (struct range){ down[in.first], down[in.end] };
	}
	if (!said)
		*why = reason(code, room_in(m, 0, widest(g, m)), g->pods_min,
			      g->topology_required ? g->topology_required : "pods");
	return true;
}
