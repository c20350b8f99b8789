#include "gpuqd/sched/reasons.h"

#include <string.h>

#include "gpuqd/sched/place/charges.h"
#include "gpuqd/sched/place/devices.h"
#include "gpuqd/sched/place/ends.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/layouts.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/topology_count.h"
#include "gpuqd/sched/place/topology_why.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/place/topology.h"

/* Why a gang has no place, in the numbers that decided it. Evaluates one group after the other, as
 * packing does: does such a node exist; is it in service; is enough free in total; is enough free
 * in one piece. */

/* Whether a request could be met if nothing ran; made on first use. */
struct request_verdict {
	bool known, never; /* computed; it could not start on an empty cluster */
	struct plan_reason why;
};

/* Totals over the nodes where a group may run. */
struct survey {
	uint32_t nodes; /* how many there are */
	/* Pods that would fit, up to the number requested; of nodes that do not exist those of one pool, since a job
	 * requests all of its nodes there. */
	uint64_t room;
	const char *pool; /* of the last node that does not exist; NULL = there was none */
	uint64_t pool_room,
		made_up_room; /* pods that would fit in it, and in the pool with most room */
	int64_t devices, largest; /* whole devices: in total, on one node */
	bool replicas; /* some of them offer devices in replicas alone */
	int64_t parts, part; /* thousandths of devices: in total, of one device */
	int64_t share; /* thousandths of a device that one pod can have, where devices are shared */
	uint32_t shared; /* devices of one node of which one pod can have a part each */
	int64_t migs, mig; /* instances of the profile: in total, on one node */
	/* Countable resources that the group takes, in its order, on nodes with enough devices. */
	int64_t extra_all[GPUQ_RESOURCES_MAX + 1]; /* in total */
	int64_t extra_most[GPUQ_RESOURCES_MAX + 1]; /* on one node */
	int64_t device_memory; /* the largest device */
	int64_t bytes, byte; /* memory of devices: in total, of one device */
	uint64_t pods_by_devices; /* pods that would fit if only devices counted */
	int64_t cpu, memory, pods; /* the largest of one node, among those with enough devices */
	uint32_t first; /* the first node with room for a pod; SNAP_NONE */
	uint32_t vacant;
	bool limited; /* some nodes are left out, which would be charged more than limits leave */
	/* The node with enough devices that lacks the fewest other things of one pod; of those that could hold one
	 * when empty, if there are any. SNAP_NONE */
	uint32_t near, near_lacks;
	bool near_could, now; /* now: as it is, not empty */
};

/* How much of something countable a node has, and how much of it one pod needs. Devices are not among
 * it: a node without enough of them is left out of a survey before its other amounts are read. */
struct held {
	const char *name;
	enum plan_unit unit;
	int64_t have, need;
};

#define N_AMOUNTS 3 /* cpu, memory, pods; after them the resources that the pod takes */

enum view {
	AS_BUILT /* empty, in service or not */,
	IN_SERVICE /* empty, ready; or it could come */,
	AS_IT_IS /* what is free now */,
	OUT_OF_SERVICE
};

static int64_t larger(int64_t x, int64_t y)
{
	return x > y ? x : y;
}

/* True if the node is part of this view. */
static bool seen(const struct cycle *c, uint32_t node, enum view view)
{
	switch (view) {
	case AS_BUILT:
		return true;
	case IN_SERVICE:
		return bits_has(nodes_ready(c), node) || c->s->nodes[node].state >= SNAP_ASKED;
	case OUT_OF_SERVICE:
		return !bits_has(nodes_ready(c), node) && c->s->nodes[node].state < SNAP_ASKED;
	default:
		return bits_has(nodes_amounts(c)->usable, node);
	}
}

/* Add the parts of devices and the instances on a node, where those are requested. */
static void look_at_pieces(const struct cycle *c, uint32_t node, bool now, const struct need *one,
			   uint32_t pods, struct survey *out)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snap_node *n = &c->s->nodes[node];
	const size_t at = (size_t)node * c->s->n_extras + one->profile;

	if (one->migs) {
		const int64_t have = larger(now ? avail->extra_free[at] : c->s->extra_total[at], 0);

		out->migs += have;
		out->mig = larger(out->mig, have);
		out->pods_by_devices += (uint64_t)(have / one->migs);
		return;
	}
	if (n->n_devices) {
		const uint32_t shared = n->replicas > 1 ? 1 : n->n_parts;

		out->share = larger(out->share,
				    n->replicas > 1 ? snap_replica_milli(n->replicas) : SNAP_MILLI);
		out->shared = shared > out->shared ? shared : out->shared;
	}
	for (uint32_t d = n->device_first; d < n->device_first + n->n_devices; d++) {
		const int64_t have = now ? avail->device_free[d] : SNAP_MILLI;
		const int64_t memory = c->s->devices[d].memory_bytes;

		if (c->s->devices[d].serves == SNAP_SERVES_WHOLE)
			continue;
		out->parts += larger(have, 0);
		out->part = larger(out->part, have);
		out->device_memory =
			larger(out->device_memory,
			       n->replicas > 1 ? (memory >> 20) / n->replicas << 20 : memory);
		out->bytes = amount_sum(out->bytes, larger(avail->device_memory[d], 0));
		out->byte = larger(out->byte, avail->device_memory[d]);
	}
	if (now)
		out->pods_by_devices += devices_room(c, node, one, pods);
	else
		out->pods_by_devices += pods;
}

/* Add the room of a node. Those of a pool that do not exist follow one another. */
static void add_room(const struct snap_node *n, uint32_t room, struct survey *out)
{
	if (!n->made_up) {
		out->room += room;
		return;
	}
	if (!out->pool || strcmp(out->pool, n->pool) != 0)
		out->pool_room = 0;
	out->pool = n->pool;
	out->pool_room += room;
	if (out->pool_room <= out->made_up_room)
		return;
	out->room += out->pool_room - out->made_up_room;
	out->made_up_room = out->pool_room;
}

/* Return one of the amounts by which a node is too small for a pod, devices aside: cores, memory and
 * pods first, as every node has them, and then the resources in the order of the request. */
static struct held held_of(const struct cycle *c, uint32_t node, bool now, const struct need *one,
			   uint32_t i)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snap_node *n = &c->s->nodes[node];
	const struct snap_take *t = i < N_AMOUNTS ? NULL : &one->takes[i - N_AMOUNTS];
	const size_t at = t ? (size_t)node * c->s->n_extras + t->extra : 0;

	switch (i) {
	case 0:
		return (struct held){ "cpu", PLAN_CPU, now ? avail->cpu[node] : n->cpu_milli,
				      one->cpu };
	case 1:
		return (struct held){ "memory", PLAN_BYTES,
				      now ? avail->memory[node] : n->memory_bytes, one->memory };
	case 2:
		return (struct held){ "pods", PLAN_COUNT, now ? avail->pods[node] : n->pods,
				      one->pods };
	default:
		return (struct held){ c->s->extras[t->extra],
				      gpuq_resource_is_bytes(c->s->extras[t->extra]) ? PLAN_BYTES
										     : PLAN_COUNT,
				      now ? avail->extra_free[at] : c->s->extra_total[at], t->n };
	}
}

/* Note the node if it is nearer to hold a pod than those before.
 *
 * Where each thing that a pod needs is to be had on some node, but all of them on none, the largest
 * amounts explain nothing. The reason is then read from one node: one where the pod could run when the
 * node is empty, since waiting for the others is no use; of several, where the fewest things lack, as
 * that is where it will start first. The first of equal ones is kept, so that the reason stays the
 * same from cycle to cycle, and the same on every machine.
 */
static void look_how_near(const struct cycle *c, uint32_t node, bool now, const struct need *one,
			  struct survey *out)
{
	uint32_t lacks = 0;
	bool could;

	/* The instances that it takes are among the resources, and are reported by their own name. */
	if (one->migs && held_of(c, node, now, one, N_AMOUNTS).have < one->migs)
		return;
	for (uint32_t i = 0; i < N_AMOUNTS + one->n_takes; i++) {
		const struct held is = held_of(c, node, now, one, i);

		lacks += is.have < is.need;
	}
	if (lacks == 0 || (out->near != SNAP_NONE && out->near_could && lacks >= out->near_lacks))
		return;
	/* The dearer question is asked of nodes alone that could still be the nearest. */
	could = nodes_room_empty(c, node, one, 1) > 0;
	if (out->near != SNAP_NONE &&
	    (out->near_could > could || (out->near_could == could && lacks >= out->near_lacks)))
		return;
	out->near = node;
	out->near_lacks = lacks;
	out->near_could = could;
}

/* Add a node to the survey from which the reason is read: as it is now, or as it is when empty. */
static void look_at(const struct cycle *c, uint32_t node, enum view view, const struct need *one,
		    uint32_t pods, struct survey *out)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snap_node *n = &c->s->nodes[node];
	const bool now = view == AS_IT_IS;
	const int64_t whole = now ? avail->whole[node] : n->replicas > 1 ? 0 : n->n_whole;
	uint32_t room = now ? nodes_room(c, node, one, pods) : nodes_room_empty(c, node, one, pods);

	/* A layout that the node could get is as good as what it has, once nothing runs there. */
	if (!now && n->n_layouts && room < pods)
		room = (uint32_t)larger(room, layouts_room_most(c, node, one, pods));
	out->nodes++;
	add_room(n, room, out);
	out->vacant += bits_has(avail->vacant, node);
	if (room && out->first == SNAP_NONE)
		out->first = node;
	out->devices += whole;
	out->replicas |= n->replicas > 1;
	out->largest = larger(out->largest, whole);
	if (whole < one->whole)
		return;
	if (one->parts || one->migs)
		look_at_pieces(c, node, now, one, pods, out);
	else
		out->pods_by_devices += one->whole ? (uint64_t)(whole / one->whole) : pods;
	for (uint32_t i = 0; i < one->n_takes && i <= GPUQ_RESOURCES_MAX; i++) {
		const size_t at = (size_t)node * c->s->n_extras + one->takes[i].extra;
		const int64_t have = larger(now ? avail->extra_free[at] : c->s->extra_total[at], 0);

		out->extra_all[i] = amount_sum(out->extra_all[i], have);
		out->extra_most[i] = larger(out->extra_most[i], have);
	}
	if (one->n_takes && room == 0)
		look_how_near(c, node, now, one, out);
	out->cpu = larger(out->cpu, now ? avail->cpu[node] : n->cpu_milli);
	out->memory = larger(out->memory, now ? avail->memory[node] : n->memory_bytes);
	out->pods = larger(out->pods, now ? avail->pods[node] : n->pods);
}

/* Return the nodes where limits do not leave what a pod of the group is charged: others are what it is pending for. If
 * one of those were free it would start, while any number of free devices on the nodes left out would not help. */
static const uint64_t *dear_to(struct cycle *c, uint32_t job, uint32_t group, uint32_t flavor)
{
	if (!cycle_request(c, job)->by_memory || flavor == SNAP_NONE)
		return NULL;
	return charges_dear(c, cycle_request_ix(c, job), group, flavor,
			    holdings_spare(c, job, flavor));
}

/* enough: stop as soon as the pods fit (the other numbers are then incomplete). */
static struct survey survey(struct cycle *c, uint32_t job, uint32_t group, uint32_t flavor,
			    enum view view, bool enough)
{
	const struct snap_group *g = &cycle_request(c, job)->groups[group];
	const struct group_fit *fit = feasibility_of(c, cycle_request_ix(c, job), group);
	const struct need one = nodes_need(g);
	struct survey out = { .first = SNAP_NONE, .near = SNAP_NONE, .now = view == AS_IT_IS };
	const uint64_t *of =
		g->gpus_milli > 0 && flavor != SNAP_NONE ? nodes_of_flavor(c, flavor) : NULL;
	const uint64_t *dear = view == AS_BUILT ? NULL : dear_to(c, job, group, flavor);

	out.limited = dear;
	for (uint32_t w = 0; !c->failed && w < cycle_words(c); w++) {
		uint64_t word = fit->nodes[w];

		if (of)
			word &= of[w];
		if (dear)
			word &= ~dear[w];
		while (word) {
			const uint32_t node = bits_pop(&word, w * 64);

			if (!seen(c, node, view))
				continue;
			c->steps++;
			look_at(c, node, view, &one, g->pods_min, &out);
			if (enough && out.room >= g->pods_min)
				return out;
		}
	}
	return out;
}

/* Set a reason. */
static void say(struct plan_reason *why, enum gpuq_reason code, enum plan_unit unit, int64_t have,
		int64_t need, const char *object)
{
	why->code = code;
	why->unit = unit;
	why->have = have;
	why->need = need;
	why->object = object;
}

/* True if a resource is short: on every node, for one pod; or in total, for all of them. */
static bool say_extra(const struct cycle *c, const struct snap_group *g, const struct survey *v,
		      enum gpuq_reason code, struct plan_reason *why)
{
	for (uint32_t i = g->mig ? 1 : 0; i < g->n_takes && i <= GPUQ_RESOURCES_MAX; i++) {
		const char *name = c->s->extras[g->takes[i].extra];
		const int64_t all = amount_times(g->takes[i].n, g->pods_min);
		const enum plan_unit unit = gpuq_resource_is_bytes(name) ? PLAN_BYTES : PLAN_COUNT;

		if (v->extra_most[i] < g->takes[i].n)
			say(why, code, unit, v->extra_most[i], g->takes[i].n, name);
		else if (v->extra_all[i] < all)
			say(why, code, unit, v->extra_all[i], all, name);
		else
			continue;
		return true;
	}
	return false;
}

/* Report what of a part of a device is not to be had: most of it is, 0 = nothing. */
static void say_part(const struct snap_group *g, int64_t most, enum gpuq_reason code,
		     struct plan_reason *why)
{
	if (g->gpu_part_milli > g->gpus_milli % SNAP_MILLI)
		say(why, code, PLAN_COUNT, most / 10, g->gpu_part_milli / 10, "gpu_cores");
	else if (g->gpu_memory_bytes > 0 && g->gpus_milli % SNAP_MILLI == 0 && most == 0)
		say(why, code, PLAN_BYTES, 0, g->gpu_memory_bytes, "gpu_memory");
	else
		say(why, code, PLAN_GPUS, most, g->gpus_milli % SNAP_MILLI, "parts");
}

/* True if no node can give one pod its part of a device, or of so many devices. */
static bool say_share(const struct snap_group *g, const struct need *one, const struct survey *v,
		      enum gpuq_reason code, struct plan_reason *why)
{
	if (one->parts == 0)
		return false;
	if (v->share == 0 || one->part > v->share)
		say_part(g, v->share, code, why);
	else if (one->parts > v->shared)
		say(why, code, PLAN_GPUS, (int64_t)v->shared * SNAP_MILLI,
		    (int64_t)one->parts * SNAP_MILLI, v->replicas ? "replicas" : "gpus");
	else if (one->part_memory > v->device_memory)
		say(why, code, PLAN_BYTES, v->device_memory, one->part_memory, "gpu_memory");
	else
		return false;
	return true;
}

/* Report what one pod lacks on the node that is nearest to hold it: a node that could do so when it is
 * empty, if there is one. False: some node holds a pod, and what lacks is room for more of them. */
static bool say_nearest(const struct cycle *c, const struct snap_group *g, const struct survey *v,
			enum gpuq_reason code, struct plan_reason *why)
{
	const struct need one = nodes_need(g);

	if (v->room > 0 || v->near == SNAP_NONE)
		return false;
	for (uint32_t i = 0; i < N_AMOUNTS + one.n_takes; i++) {
		const struct held is = held_of(c, v->near, v->now, &one, i);

		if (is.have >= is.need)
			continue;
		say(why, code, is.unit, larger(is.have, 0), is.need, is.name);
		return true;
	}
	return false;
}

/* Report which of a pod's needs no node meets, else how many of the pods fit. */
static void say_shortest(const struct cycle *c, const struct snap_group *g, const struct survey *v,
			 enum gpuq_reason code, struct plan_reason *why)
{
	const struct need one = nodes_need(g);

	if (v->largest < one.whole)
		say(why, code, PLAN_GPUS, v->largest * SNAP_MILLI, g->gpus_milli,
		    v->largest == 0 && v->replicas ? "replicas" : "gpus");
	else if (say_share(g, &one, v, code, why))
		return;
	else if (one.parts && v->part == 0)
		say(why, code, PLAN_GPUS, 0, cost_of_pod(c->s, g, SNAP_NONE), "gpus");
	else if (v->mig < one.migs)
		say(why, code, PLAN_COUNT, v->mig, one.migs, g->mig_name);
	else if (v->cpu < one.cpu)
		say(why, code, PLAN_CPU, larger(v->cpu, 0), one.cpu, "cpu");
	else if (v->memory < one.memory)
		say(why, code, PLAN_BYTES, larger(v->memory, 0), one.memory, "memory");
	else if (!say_extra(c, g, v, code, why) && !say_nearest(c, g, v, code, why))
		say(why, code, PLAN_COUNT, (int64_t)v->room, g->pods_min, "pods");
}

/* True if no domain of the level that the group requires is large enough in this view, or its
 * slices do not fit into theirs. more: every level that lacks some gets a reason. */
static bool no_domain(struct cycle *c, uint32_t job, uint32_t group, uint32_t flavor,
		      enum view view, enum gpuq_reason code, struct plan_reason *why, bool more)
{
	const uint32_t request = cycle_request_ix(c, job);
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct group_fit *fit = feasibility_of(c, request, group);
	const struct need one = nodes_need(g);
	struct measure m;

	if ((!g->topology_required && !g->n_slices) || !topology_survey(c, g, &m))
		return false;
	for (uint32_t n = 0; n < c->s->n_nodes; n++) {
		if (!bits_has(fit->nodes, n) || !seen(c, n, view) ||
		    (g->gpus_milli > 0 && c->s->nodes[n].flavor != flavor))
			continue;
		c->steps++;
		topology_measure_node(&m, n,
				      view == AS_IT_IS ? nodes_room(c, n, &one, g->pods_min)
						       : nodes_room_empty(c, n, &one, g->pods_min),
				      0);
	}
	topology_measure_sum(&m);
	return topology_lacks(c, g, &m, code, why, more);
}

/* Return why no node of the flavor may hold the group. */
static const char *no_node(const struct cycle *c, const struct snap_group *g,
			   const struct group_fit *fit)
{
	static const char *const demands[] = {
#define X(sym, word, doc) "isolation " word,
		GPUQ_ISOLATIONS(X)
#undef X
	};

	return fit->n_nodes                     ? "flavor"
	       : fit->n_weak                    ? demands[g->isolation]
	       : feasibility_lacks_volume(c, g) ? g->volume
						: "nodes";
}

/* True if this group could not run on nodes of that flavor even if nothing ran. */
static bool group_never(struct cycle *c, uint32_t job, uint32_t group, uint32_t flavor,
			struct plan_reason *why)
{
	const struct snap_request *r = cycle_request(c, job);
	const struct snap_group *g = &r->groups[group];
	const struct group_fit *fit;
	struct survey v;

	if (g->gpus_milli > SNAP_MILLI && g->gpus_milli % SNAP_MILLI != 0) {
		say(why, GPUQ_R_UNSATISFIABLE, PLAN_COUNT, 0, 0, g->mig ? g->mig_name : "gpus");
		return true;
	}
	v = survey(c, job, group, flavor, AS_BUILT, true);
	if (v.room >= g->pods_min)
		return no_domain(c, job, group, flavor, AS_BUILT, GPUQ_R_UNSATISFIABLE, why, false);
	fit = feasibility_of(c, cycle_request_ix(c, job), group);
	if (v.nodes == 0 && snap_group_parts(g) && (fit->n_nodes || !fit->n_weak) &&
	    feasibility_lacks_sharing(c, g, flavor))
		say_part(g, 0, GPUQ_R_UNSATISFIABLE, why);
	else if (v.nodes == 0)
		say(why, GPUQ_R_UNSATISFIABLE, PLAN_COUNT, 0, 1, no_node(c, g, fit));
	else
		say_shortest(c, g, &v, GPUQ_R_UNSATISFIABLE, why);
	return true;
}

/* True if some group of the job could not run on the flavor even if it were empty. */
static bool flavor_never(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why)
{
	const struct snap_request *r = cycle_request(c, job);

	for (uint32_t g = 0; g < r->n_groups; g++)
		if (group_never(c, job, g, flavor, why))
			return true;
	return false;
}

bool reasons_never_there(struct cycle *c, uint32_t job, uint32_t flavor)
{
	struct plan_reason why;

	return flavor_never(c, job, flavor, &why);
}

void reasons_init(struct cycle *c)
{
	c->verdicts = cycle_alloc(c, c->s->n_requests, sizeof(*c->verdicts));
}

bool reasons_some_time(const struct cycle *c, uint32_t request)
{
	return c->verdicts[request].known && !c->verdicts[request].never;
}

/* True if the request that the job is tried with could not run anywhere even if all were empty. */
static bool nowhere(struct cycle *c, uint32_t job, struct plan_reason *why)
{
	const struct snap_request *r = cycle_request(c, job);
	bool never = true, said = false;

	if (r->gpus_milli == 0)
		return flavor_never(c, job, SNAP_NONE, why);
	say(why, GPUQ_R_UNSATISFIABLE, PLAN_COUNT, 0, 1, r->n_flavors ? r->flavors[0] : "flavor");
	/* The reason of the first flavor is kept, unless one of the flavors would do; but that it is another
	 * than those of the nodes says less than what these lack. */
	for (uint32_t f = r->n_flavor_ix; never && f-- > 0;) {
		struct plan_reason of = { .object = "" };

		never = flavor_never(c, job, r->flavor_ix[f], &of);
		if (!said || strcmp(of.object, "flavor") != 0)
			*why = of;
		said |= strcmp(of.object, "flavor") != 0;
	}
	return never;
}

bool reasons_never(struct cycle *c, uint32_t job, struct plan_reason *why)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];
	struct request_verdict *verdict = &c->verdicts[c->s->jobs[job].request];
	struct plan_reason further = { .object = "" };

	if (!verdict->known) {
		verdict->known = true;
		verdict->why = (struct plan_reason){ .object = "" };
		verdict->never = nowhere(c, job, &verdict->why);
		/* One of the others may do. */
		for (uint32_t i = 0; verdict->never && i < r->n_others; i++) {
			c->plan.tried_as[job] = r->others[i];
			verdict->never = nowhere(c, job, &further);
		}
		cycle_try_own(c, job);
	}
	if (verdict->never)
		*why = verdict->why;
	return verdict->never;
}

/* True if the group lacks whole devices, or whole devices in one piece. */
static bool devices_lack(struct cycle *c, uint32_t job, uint32_t group, uint32_t flavor,
			 struct plan_reason *why)
{
	const uint32_t request = cycle_request_ix(c, job);
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct need one = nodes_need(g);
	const struct glance *free =
		one.whole ? feasibility_glance(c, request, group, flavor) : NULL;

	if (!free)
		return false;
	if (free->devices < (int64_t)one.whole * g->pods_min)
		say(why, GPUQ_R_RESOURCES, PLAN_GPUS, free->devices * SNAP_MILLI,
		    amount_times(g->gpus_milli, g->pods_min), "gpus");
	else if (free->largest < one.whole)
		say(why, GPUQ_R_FRAGMENTED, PLAN_GPUS, free->largest * SNAP_MILLI, g->gpus_milli,
		    "gpus");
	else
		return false;
	return true;
}

/* The same for parts of devices and for instances. */
static bool pieces_lack(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor,
			const struct survey *v, struct plan_reason *why)
{
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct need one = nodes_need(g);
	const int64_t pod = v->limited ? charges_least(c, request, group, flavor)
				       : cost_of_pod(c->s, g, flavor);
	const int64_t all = amount_times(pod, g->pods_min);
	const int64_t bytes = amount_times(amount_times(one.part_memory, one.parts), g->pods_min);

	if ((one.parts == 0 && one.migs == 0) || v->pods_by_devices >= g->pods_min)
		return false;
	if (one.migs && v->migs < amount_times(one.migs, g->pods_min))
		say(why, GPUQ_R_RESOURCES, PLAN_COUNT, v->migs, amount_times(one.migs, g->pods_min),
		    g->mig_name);
	else if (one.migs)
		say(why, GPUQ_R_FRAGMENTED, PLAN_COUNT, v->mig, one.migs, g->mig_name);
	else if (v->parts < all)
		say(why, GPUQ_R_RESOURCES, PLAN_GPUS, v->parts, all, "gpus");
	else if (v->part < pod / one.parts)
		say(why, GPUQ_R_FRAGMENTED, PLAN_GPUS, v->part, pod / one.parts, "gpus");
	else if (v->bytes < bytes)
		say(why, GPUQ_R_RESOURCES, PLAN_BYTES, v->bytes, bytes, "gpu_memory");
	else if (v->byte < one.part_memory)
		say(why, GPUQ_R_FRAGMENTED, PLAN_BYTES, v->byte, one.part_memory, "gpu_memory");
	else
		return false;
	return true;
}

/* True if clearly no node has what the only pod needs. This is the reason of most jobs that are
 * pending beside idle devices, each for another amount: free capacity was evaluated once for all of
 * them. */
static bool plainly_full(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor,
			 struct plan_reason *why)
{
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct need one = nodes_need(g);
	const uint32_t of = g->gpus_milli > 0 ? flavor : SNAP_NONE;
	const struct glance *free;
	struct survey v = { .first = SNAP_NONE, .near = SNAP_NONE };

	if (g->pods_min != 1 || one.parts || one.migs || c->s->requests[request].exclusive)
		return false;
	free = feasibility_glance(c, request, group, of);
	if (c->failed || !feasibility_glance_rules_out(c, request, group, of, &one))
		return false;
	v.largest = free->largest;
	v.cpu = free->cpu[one.whole];
	v.memory = free->memory[one.whole];
	say_shortest(c, g, &v, GPUQ_R_RESOURCES, why);
	return true;
}

/* Report why a node that does not exist is not requested now. */
static void say_closed(const struct snap_node *n, struct plan_reason *why)
{
	if (!n->made_up)
		return;
	if (n->closed)
		say(why, GPUQ_R_PROVISIONING_FAILED, why->unit, why->have, why->need, n->pool);
	else if (n->max_asks && n->n_asks >= n->max_asks)
		say(why, GPUQ_R_PROVISIONING_LIMIT, PLAN_COUNT, n->n_asks, n->max_asks, n->pool);
	else
		why->object = n->pool;
}

/* Report what one group lacks now. False: nothing, considered by itself. */
static bool group_lacks(struct cycle *c, uint32_t job, uint32_t group, uint32_t flavor,
			struct plan_reason *why)
{
	const struct snap_request *r = cycle_request(c, job);
	const struct snap_group *g = &r->groups[group];
	struct survey v = survey(c, job, group, flavor, IN_SERVICE, true);

	if (v.room < g->pods_min) {
		struct survey out = survey(c, job, group, flavor, OUT_OF_SERVICE, false);

		say(why, GPUQ_R_NODES_UNAVAILABLE, PLAN_COUNT, (int64_t)v.room, g->pods_min,
		    out.first != SNAP_NONE ? c->s->nodes[out.first].name : "");
		if (out.first != SNAP_NONE)
			say_closed(&c->s->nodes[out.first], why);
		return true;
	}
	if (no_domain(c, job, group, flavor, IN_SERVICE, GPUQ_R_NODES_UNAVAILABLE, why, true))
		return true;
	if (!r->exclusive && devices_lack(c, job, group, flavor, why))
		return true;
	if (plainly_full(c, cycle_request_ix(c, job), group, flavor, why))
		return true;
	v = survey(c, job, group, flavor, AS_IT_IS, false);
	if (r->exclusive && v.vacant < g->pods_min) {
		say(why, GPUQ_R_RESOURCES, PLAN_COUNT, v.vacant, g->pods_min, "nodes");
		return true;
	}
	if (v.room >= g->pods_min)
		return no_domain(c, job, group, flavor, AS_IT_IS, GPUQ_R_FRAGMENTED, why, true);
	if (pieces_lack(c, cycle_request_ix(c, job), group, flavor, &v, why))
		return true;
	if (v.pods_by_devices < g->pods_min)
		say(why, GPUQ_R_FRAGMENTED, PLAN_COUNT, (int64_t)v.pods_by_devices, g->pods_min,
		    "pods");
	else
		say_shortest(c, g, &v, GPUQ_R_RESOURCES, why);
	return true;
}

/* True if nodes have room for a pod, but are taken away before the job could end; of these the last is named. */
static bool say_ends(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = cycle_request(c, job);
	const int64_t now_us = c->s->config.now_us;
	const uint64_t *ends = ends_of(c, job), *usable = nodes_amounts(c)->usable;
	uint32_t last = SNAP_NONE;

	for (uint32_t g = 0; ends && g < r->n_groups; g++) {
		const uint64_t *fit = feasibility_of(c, cycle_request_ix(c, job), g)->nodes;
		const struct need one = nodes_need(&r->groups[g]);

		for (uint32_t w = 0; !c->failed && w < cycle_words(c); w++) {
			uint64_t word = ends[w] & fit[w] & usable[w];

			while (word) {
				const uint32_t n = bits_pop(&word, w * 64);

				if ((r->groups[g].gpus_milli == 0 ||
				     c->s->nodes[n].flavor == flavor) &&
				    nodes_room(c, n, &one, 1) &&
				    (last == SNAP_NONE ||
				     c->s->nodes[n].run_us > c->s->nodes[last].run_us))
					last = n;
			}
		}
	}
	if (last == SNAP_NONE)
		return false;
	say(why, GPUQ_R_NODE_ENDS, PLAN_TIME, now_us + c->s->nodes[last].run_us,
	    amount_later(now_us, amount_later(j->walltime_us, j->grace_us)),
	    c->s->nodes[last].name);
	return true;
}

void reasons_no_place(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = cycle_request(c, job);
	struct plan_reason *why = PLAN_PUSH(c, reasons, 1);

	if (!why)
		return;
	*why = (struct plan_reason){ .object = "" };
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (group_lacks(c, job, g, flavor, why))
			return;
	/* Each group fits by itself: either together they are too much, or the nodes that would do
	 * are those it failed on, or those that do not last. */
	if (say_ends(c, job, flavor, why))
		return;
	if (j->n_exclude && r->n_groups == 1)
		say(why, GPUQ_R_NODES_AVOIDED, PLAN_COUNT, 0, r->groups[0].pods_min,
		    c->s->nodes[j->exclude[0]].name);
	else
		say(why, GPUQ_R_RESOURCES, PLAN_COUNT, 0, r->n_pods, "pods");
}

void reasons_flavor_wait(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = &c->s->requests[j->request];
	int64_t opens_us = GPUQ_UNLIMITED;
	const uint32_t n =
		r->gpus_milli > 0 ? snap_flavors_open(c->s, j, &opens_us) : r->n_flavor_ix;
	struct plan_reason *why = n < r->n_flavor_ix ? PLAN_PUSH(c, reasons, 1) : NULL;

	if (!why)
		return;
	*why = (struct plan_reason){ .code = GPUQ_R_FLAVOR_WAIT,
				     .object = c->s->flavors[r->flavor_ix[n - 1]].name };
	if (opens_us == GPUQ_UNLIMITED)
		return;
	why->unit = PLAN_TIME;
	why->have = j->wait_from_us; /* not now: a reason that stays the same is not told again */
	why->need = opens_us;
	if (opens_us < c->plan.wake_us)
		c->plan.wake_us = opens_us;
}
