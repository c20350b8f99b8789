#include "gpuqd/sched/place/charges.h"

#include <string.h>

#include "gpuqd/sched/place/devices.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes_int.h"
#include "gpuqd/sched/place/pack_int.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/util/amount.h"

/* Limits are tested with the least that a job could be charged: if that is too much, no place needs to be searched.
 * The rest that they allow is spent pod by pod while places are searched. A node is left out as soon as a pod there would
 * spend more than what is left; since each pod after it can still be charged its least, a gang that has places on cheap
 * nodes for some of its pods and on dear ones for the others gets them in any order. With more than two charges the
 * first pods may spend what later ones need: such a gang then waits until more of its nodes are free.
 *
 * Once a pod runs, cost_of_alloc() is its charge; charge_at() is the same before. */
struct charges {
	/* By group of all requests, then flavor: of one pod; 0 = not known yet. NULL until the first limit refuses
	 * the most that some job can be charged. */
	int64_t *least;
	uint64_t *dear; /* scratch */
	int64_t spare; /* what limits leave to the current job beyond its least charge */
};

/* Return what one pod of the group is charged on the node; INT64_MAX: no device there serves it. Whole devices and
 * instances are charged the same everywhere. */
static int64_t charge_at(const struct cycle *c, const struct snap_group *g, uint32_t node)
{
	const struct need one = nodes_need(g);
	const int32_t part = one.parts ? devices_part(c, node, &one) : 0;

	if (part > SNAP_MILLI)
		return INT64_MAX;
	return one.parts ? one.parts * cost_of_share(g, &c->s->nodes[node], part)
			 : cost_of_pod(c->s, g, c->s->nodes[node].flavor);
}

/* Return the least that any node could charge: that of the part itself, where one is requested; memory counts
 * as more than nothing. */
static int64_t least_anywhere(const struct cycle *c, const struct snap_group *g, uint32_t flavor)
{
	const uint32_t parts = snap_group_parts(g);

	return parts ? amount_times(snap_group_part(g) ? snap_group_part(g) : 1, parts)
		     : cost_of_pod(c->s, g, flavor);
}

/* Find the node that charges least among those where it may run. A node that is gone charges nothing. Where none is
 * there, limits are not what the job is pending for. */
static int64_t find_least(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor)
{
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const uint64_t *fit = feasibility_of(c, request, group)->nodes;
	const struct need one = nodes_need(g);
	int64_t least = INT64_MAX;

	for (uint32_t w = 0; one.parts && !c->failed && w < cycle_words(c); w++) {
		uint64_t word = fit[w] & c->nodes->flavors[flavor][w];

		while (word) {
			const uint32_t n = bits_pop(&word, w * 64);
			const bool gone =
				c->s->nodes[n].state == SNAP_DOWN && !c->s->nodes[n].made_up;
			const int64_t charge = gone ? INT64_MAX : charge_at(c, g, n);

			c->steps++;
			if (charge < least && nodes_room_empty(c, n, &one, 1))
				least = charge;
		}
	}
	return least < INT64_MAX ? least : least_anywhere(c, g, flavor);
}

/* Nodes are looked at once for each group and flavor, and only for those that a limit would refuse where they are
 * charged most: mostly for none. */
int64_t charges_least(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor)
{
	struct charges *h = c->pack->charges;
	int64_t *at;

	if (!h->least)
		h->least =
			cycle_alloc(c, (size_t)c->s->n_groups * c->s->n_flavors, sizeof(*h->least));
	if (c->failed)
		return 0;
	at = &h->least[(size_t)(c->s->requests[request].group_first + group) * c->s->n_flavors +
		       flavor];
	if (*at == 0)
		*at = find_least(c, request, group, flavor);
	return *at;
}

int64_t charges_of_start(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_request *r = cycle_request(c, job);
	int64_t sum = 0;

	for (uint32_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].gpus_milli > 0)
			sum = amount_sum(
				sum,
				amount_times(charges_least(c, cycle_request_ix(c, job), g, flavor),
					     r->groups[g].pods_min));
	return sum;
}

void charges_init(struct cycle *c)
{
	c->pack->charges = cycle_alloc(c, 1, sizeof(*c->pack->charges));
	if (c->pack->charges)
		c->pack->charges->spare = GPUQ_UNLIMITED;
}

void charges_begin(struct cycle *c, uint32_t job, uint32_t flavor)
{
	/* Packing alone knows no limits. */
	charges_begin_with(c, c->holdings && cycle_request(c, job)->by_memory
				      ? holdings_spare(c, job, flavor)
				      : GPUQ_UNLIMITED);
}

void charges_begin_with(struct cycle *c, int64_t spare)
{
	c->pack->charges->spare = spare;
}

int64_t charges_extra(struct cycle *c, uint32_t request, uint32_t group, uint32_t node)
{
	const struct snap_group *g = &c->s->requests[request].groups[group];

	return g->gpus_milli == 0
		       ? 0
		       : amount_less(charge_at(c, g, node),
				     charges_least(c, request, group, c->s->nodes[node].flavor));
}

/* The places are added up anew, since a search takes many of them back: sums of its own would have to be undone with
 * them, one by one. It is called once for each group and set of nodes that is tried. */
int64_t charges_left(struct cycle *c, uint32_t request, uint32_t flavor)
{
	int64_t left = c->pack->charges->spare;

	if (left == GPUQ_UNLIMITED || flavor == SNAP_NONE)
		return GPUQ_UNLIMITED;
	for (uint32_t i = 0; i < c->places.n_pods; i++)
		left = amount_less(left, charges_extra(c, request, c->places.pods[i].group,
						       c->places.pods[i].node));
	return left;
}

/* A set beside the others, and not a part of the question whether a node has room: the grades of nodes (score.c) are
 * kept from job to job, and must not depend on what limits leave to one of them. Other rooms also ask for the room of
 * nodes, for jobs that they only think of. */
const uint64_t *charges_dear(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor,
			     int64_t left)
{
	struct charges *h = c->pack->charges;
	const struct snap_group *g = &c->s->requests[request].groups[group];

	if (left == GPUQ_UNLIMITED || flavor == SNAP_NONE || !snap_group_parts(g))
		return NULL;
	if (!h->dear)
		h->dear = cycle_alloc(c, cycle_words(c), sizeof(*h->dear));
	if (!h->dear)
		return NULL;
	memset(h->dear, 0, cycle_words(c) * sizeof(*h->dear));
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if (c->s->nodes[n].flavor == flavor && charges_extra(c, request, group, n) > left)
			bits_add(h->dear, n);
	return h->dear;
}

/* Devices need not be known: what is charged follows from the node, so that it is the same for places of a later
 * moment, where devices are counted and not named. */
int64_t charges_of_places(struct cycle *c, uint32_t job)
{
	const struct snap_request *r = cycle_request(c, job);
	int64_t sum = 0;

	if (!r->by_memory)
		return -1;
	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const struct snap_group *g = &r->groups[c->places.pods[i].group];

		if (g->gpus_milli > 0)
			sum = amount_sum(sum, charge_at(c, g, c->places.pods[i].node));
	}
	return sum;
}
