#include "gpuqd/sched/place/roles.h"

#include "gpuqd/sched/place/nodes_int.h"
#include "gpuqd/sched/place/pack_int.h"
#include "gpuqd/sched/place/topology.h"

#include <string.h>

#include "gpuqd/sched/place/topology_tree.h"
#include "libgpuq/limits.h"

#define DOMAINS_TRIED 64 /* for one job, on all levels together */

/* Gangs of several roles. Greedy choices are not complete here: one role may take the place that
 * another one needs. So the role with the fewest places goes first, and when that fails inside one
 * domain, the next domain is tried; nodes are never tried one by one. */

/* Return the number of places that the group would have if it were alone. */
static uint64_t places_of(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group)
{
	struct nodes *nodes = c->nodes;
	const struct snap_request *r = cycle_request(c, job);
	const struct need one = nodes_need(&r->groups[group]);
	const struct masks m = pack_masks(c, job, flavor, group);
	uint64_t n = 0;

	for (uint32_t w = 0; !c->failed && w < nodes->n_words; w++) {
		uint64_t word = masks_of(&m, nodes->now.usable[w], w);

		while (word) {
			n += nodes_room(c, bits_pop(&word, w * 64), &one, GPUQ_PODS_MAX);
			c->steps++;
		}
	}
	return n;
}

/* True if the pods of group x are harder to place: they are placed first. */
static bool larger_pods(const struct snap_request *r, uint32_t x, uint32_t y)
{
	const struct snap_group *a = &r->groups[x], *b = &r->groups[y];

	if (a->gpus_milli != b->gpus_milli)
		return a->gpus_milli > b->gpus_milli;
	if (a->cpu_milli != b->cpu_milli)
		return a->cpu_milli > b->cpu_milli;
	if (a->memory_bytes != b->memory_bytes)
		return a->memory_bytes > b->memory_bytes;
	return x < y;
}

void roles_order(struct cycle *c, uint32_t job, uint32_t flavor, bool by_size, uint32_t *order)
{
	const struct snap_request *r = cycle_request(c, job);
	uint64_t places[GPUQ_GROUPS_MAX] = { 0 };

	for (uint32_t g = 0; g < r->n_groups; g++) {
		uint32_t at = g;

		if (!by_size && r->n_groups > 1)
			places[g] = places_of(c, job, flavor, g);
		for (; at > 0; at--) {
			const uint32_t o = order[at - 1];
			const uint64_t mine = places[g] * r->groups[o].pods_min;
			const uint64_t other = places[o] * r->groups[g].pods_min;

			if (mine != other ? mine > other : !larger_pods(r, g, o))
				break;
			order[at] = o;
		}
		order[at] = g;
	}
}

static const char *wished(const struct snap_group *g, bool required)
{
	return required ? g->topology_required : g->topology_preferred;
}

/* Return the level that all groups which require (or prefer) one agree on; *lead = the one of them
 * with the largest request. NULL: each group finds a domain of its own. */
static const char *common_level(const struct snap_request *r, bool required, uint32_t *lead)
{
	const char *name = NULL;
	int64_t largest = -1;

	for (uint32_t g = 0; g < r->n_groups; g++) {
		const struct snap_group *in = &r->groups[g];

		if (!wished(in, required))
			continue;
		if (name && strcmp(name, wished(in, required)) != 0)
			return NULL;
		name = wished(in, required);
		if (in->gpus_milli * in->pods_min > largest) {
			largest = in->gpus_milli * in->pods_min;
			*lead = g;
		}
	}
	return name;
}

/* Return where the group may run when a domain is searched for the job as a whole. */
static struct masks whole_masks(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group)
{
	struct masks m = pack_masks(c, job, flavor, group);

	m.domain = c->pack->domain;
	return m;
}

/* Find domains of that level that hold each group by itself, the tightest for the leading group
 * first. */
static bool find_candidates(struct cycle *c, uint32_t job, uint32_t flavor, const char *level,
			    bool required, uint32_t lead, struct candidates *out)
{
	const struct snap_request *r = cycle_request(c, job);
	struct masks m = whole_masks(c, job, flavor, lead);
	struct batch b = { nodes_need(&r->groups[lead]), lead, 0, r->groups[lead].pods_min };
	struct candidates other;

	if (!topology_candidates_init(c, &r->groups[lead], level, &b, &m, out))
		return false;
	for (uint32_t g = 0; g < r->n_groups; g++) {
		const struct snap_group *in = &r->groups[g];

		if (g == lead || !wished(in, required) || in->pods_min == 0)
			continue;
		b = (struct batch){ nodes_need(in), g, 0, in->pods_min };
		m = whole_masks(c, job, flavor, g);
		if (!topology_candidates_init(c, in, level, &b, &m, &other))
			return false;
		for (uint32_t d = 0; d < out->measure.tree->rungs[0].n_domains; d++)
			if (other.measure.at[0][d].room < in->pods_min)
				out->measure.at[0][d].room = 0;
	}
	return true;
}

/* Try pack on one domain of a level after the other. */
static bool pack_in_one(struct cycle *c, uint32_t job, uint32_t flavor, const char *level,
			bool required, uint32_t lead,
			bool (*pack)(struct cycle *c, uint32_t job, uint32_t flavor))
{
	struct pack *packing = c->pack;
	const struct snap_group *g = &cycle_request(c, job)->groups[lead];
	const struct masks m = whole_masks(c, job, flavor, lead);
	const struct batch b = { nodes_need(g), lead, 0, g->pods_min };
	const uint64_t **where = required ? &packing->domain : &packing->near;
	uint64_t *set = cycle_scratch(c, c->nodes->n_words, sizeof(*set));
	struct candidates k;
	bool placed = false;

	if (!set || !find_candidates(c, job, flavor, level, required, lead, &k))
		return false;
	while (!placed && packing->n_tries < DOMAINS_TRIED &&
	       topology_candidates_next(c, &k, &b, &m, set)) {
		packing->n_tries += !required;
		*where = set;
		placed = pack(c, job, flavor);
		*where = NULL;
	}
	return placed;
}

/* Try the level that all prefer, each wider one inside what they require, then each group by
 * itself. */
static bool pack_near(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_request *r = cycle_request(c, job);
	const uint32_t n = c->s->config.n_levels;
	uint32_t lead = 0, at, first = 0;
	const char *level = common_level(r, false, &lead);

	c->pack->n_tries++;
	if (level && r->groups[lead].topology_required) {
		first = topology_position(c, r->groups[lead].topology_required);
		first = first < n ? first + 1 : 0;
	}
	at = level ? topology_position(c, level) : 0;
	if (level && at == n && pack_in_one(c, job, flavor, level, false, lead, pack_groups))
		return true;
	for (uint32_t i = at < n ? at + 1 : n; level && i-- > first;)
		if (pack_in_one(c, job, flavor, c->s->config.levels[i], false, lead, pack_groups))
			return true;
	return pack_groups(c, job, flavor);
}

bool roles_pack(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_request *r = cycle_request(c, job);
	uint32_t lead = 0;
	const char *level = common_level(r, true, &lead);

	c->pack->n_tries = 0;
	return level ? pack_in_one(c, job, flavor, level, true, lead, pack_near)
		     : pack_near(c, job, flavor);
}
