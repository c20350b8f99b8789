#include "gpuqd/sched/place/layouts.h"

#include "libgpuq/spec/resource.h"

uint32_t layouts_room(const struct cycle *c, uint32_t node, const struct snap_layout *l,
		      const struct need *one, uint32_t max)
{
	struct need rest = *one; /* beside its devices */
	uint32_t pods = 0;

	if (one->migs && l->profile && gpuq_profile_same(c->s->extras[one->profile], l->profile))
		pods = l->count / one->migs;
	else if (one->whole && !l->profile)
		pods = l->count / one->whole;
	if (pods == 0)
		return 0;
	if (one->migs) { /* the instances are the first of what it takes */
		rest.takes++;
		rest.n_takes--;
	}
	rest.migs = rest.whole = 0;
	return nodes_room_empty(c, node, &rest, pods < max ? pods : max);
}

uint32_t layouts_room_most(const struct cycle *c, uint32_t node, const struct need *one,
			   uint32_t max)
{
	const struct snap_node *n = &c->s->nodes[node];
	uint32_t most = 0;

	for (uint32_t i = 0; i < n->n_layouts; i++) {
		const uint32_t room = layouts_room(c, node, &n->layouts[i], one, max);

		most = room > most ? room : most;
	}
	return most;
}
