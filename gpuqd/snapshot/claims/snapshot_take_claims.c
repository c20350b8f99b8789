#include "gpuqd/snapshot/claims/snapshot_take_claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "gpuqd/devices/dra/dra_cards.h"
#include "gpuqd/devices/dra/dra_choice.h"
#include "gpuqd/devices/dra/dra_match.h"
#include "gpuqd/devices/dra/dra_weights.h"
#include "gpuqd/state/cuts/shared_claim.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/require.h"
#include "libgpuq/limits.h"

#define FITS_MAX 1024u /* pods of one group on a node */

/* A group of a request, in a namespace. */
struct kind {
	const struct request *r;
	const struct gpuq_group *g;
	uint32_t ix;
	struct gpuq_alternatives choice; /* of alternatives */
	const char *namespace_, *name; /* of the resource */
};

/* The pods with a claim of that name, as they were when that was first asked. */
struct has {
	struct has *next;
	const char *namespace_, *claim;
	const char *node; /* of the pod that is charged for it; NULL = none is */
	bool isolated; /* whose job demands that no other has its devices */
	bool foreign; /* pods of others have it */
};

struct snap_claims {
	struct has *has;
	const struct model *m;
	const struct dra *d;
	struct gpuq_arena *mem;
	struct gpuq_strlist classes; /* that flavors name */
	struct gpuq_strlist namespaces;
	struct kind *kinds;
	size_t n, room;
};

/* The name tells people of which devices, and is that of the group, and of a choice, alone. */
static const char *name_of(struct snap_claims *c, const struct request *r, uint32_t ix,
			   const struct gpuq_group *g, struct gpuq_alternatives choice,
			   const char *namespace_)
{
	const struct gpuq_claim *first = &g->claims[0];
	const size_t at = g->n_claims == 1 && choice.first && choice.first <= first->n_first
				  ? choice.first - 1u
				  : 0;
	const char *of = first->class_      ? first->class_
			 : first->n_first   ? first->first[at].class_
			 : first->claim     ? first->claim
			 : first->template_ ? first->template_
					    : "";
	char which[24] = "";

	if (choice.first)
		snprintf(which, sizeof(which), choice.last > choice.first ? ".%u-%u" : ".%u",
			 choice.first, choice.last);
	return gpuq_arena_printf(c->mem, "claims/%s/%u.%u%s%s%s", of, r->id, ix, which,
				 *namespace_ ? "/" : "", namespace_);
}

/* True if its objects are those of a namespace. */
static bool names_objects(const struct gpuq_group *g)
{
	for (size_t i = 0; i < g->n_claims; i++)
		if (!g->claims[i].class_ && !g->claims[i].n_first)
			return true;
	return false;
}

/* Each group with claims is a resource of its own: what it can have of a node is no sum of devices. */
static void add(struct snap_claims *c, const struct request *r, uint32_t ix,
		const struct gpuq_group *g, struct gpuq_alternatives choice, const char *namespace_)
{
	if (c->n == c->room) {
		const size_t room = c->room ? c->room * 2 : 16;
		struct kind *kinds = realloc(c->kinds, room * sizeof(*kinds));

		if (!kinds)
			return;
		c->kinds = kinds;
		c->room = room;
	}
	c->kinds[c->n++] =
		(struct kind){ r,      g,          ix,
			       choice, namespace_, name_of(c, r, ix, g, choice, namespace_) };
}

/* List the choices of the group in a namespace. */
static uint32_t choices_of(const struct snap_claims *c, const struct gpuq_group *g,
			   const char *namespace_, struct dra_choice out[DRA_CHOICES_MAX])
{
	return g->claims_beside ? 0
				: dra_choices(c->d, g->claims, g->n_claims,
					      objects_namespace(c->m->objects, namespace_),
					      &c->classes, g->pods_max > 1, out);
}

/* Add one for each choice; and one for pods that were placed without. */
static void add_choices(struct snap_claims *c, const struct request *r, uint32_t ix,
			const struct gpuq_group *g, const char *namespace_)
{
	struct dra_choice all[DRA_CHOICES_MAX];
	const uint32_t n = choices_of(c, g, namespace_, all);

	add(c, r, ix, g, (struct gpuq_alternatives){ 0, 0 }, namespace_);
	for (uint32_t i = 0; i < n; i++)
		if (all[i].is.first)
			add(c, r, ix, g, all[i].is, namespace_);
}

/* Claims of one name are different objects in the namespaces of queues. */
static void find_namespaces(struct snap_claims *c)
{
	c->namespaces.items =
		gpuq_arena_calloc(c->mem, c->m->n_queues + 1, sizeof(*c->namespaces.items));
	for (uint32_t i = 0; c->namespaces.items && i < c->m->n_queues; i++) {
		const char *s = model_queue_namespace(c->m->queues[i]);

		if (c->m->queues[i]->n_children == 0 && !gpuq_strlist_has(&c->namespaces, s))
			c->namespaces.items[c->namespaces.n++] = s;
	}
}

struct snap_claims *snapshot_claims_new(const struct model *m, struct gpuq_arena *mem)
{
	struct snap_claims *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->m = m;
	c->d = objects_dra(m->objects);
	c->mem = mem;
	model_classes(m, mem, &c->classes);
	find_namespaces(c);
	for (const struct request *r = m->requests.list; r; r = r->next)
		for (uint32_t i = 0; i < r->spec.n_groups; i++) {
			const struct gpuq_group *g = r->spec.groups[i].where;

			if (!g || g->n_claims == 0)
				continue;
			if (!names_objects(g))
				add_choices(c, r, i, g, "");
			for (size_t k = 0; names_objects(g) && k < c->namespaces.n; k++)
				add_choices(c, r, i, g, c->namespaces.items[k]);
		}
	return c;
}

void snapshot_claims_done(struct snap_claims *c)
{
	if (!c)
		return;
	free(c->kinds);
	free(c);
}

/* ---- pods with a claim ---- */

/* True if the job, or a queue of it, demands that its devices are apart from those of others. */
static bool demands(const struct job *j)
{
	return j->request->spec.isolation > GPUQ_ISOLATION_NONE ||
	       model_queue_isolation(j->queue) > GPUQ_ISOLATION_NONE;
}

/* All pods are looked at for it: once a snapshot. */
static const struct has *has_of(struct snap_claims *c, const char *namespace_, const char *claim)
{
	static const struct has none = { .namespace_ = "", .claim = "" };
	const char *home = objects_namespace(c->m->objects, namespace_);
	const struct dra_claim *is = dra_claim(c->d, home, claim);
	const struct pod *holder;
	struct has *h;

	for (h = c->has; h; h = h->next)
		if (strcmp(h->claim, claim) == 0 && strcmp(h->namespace_, home) == 0)
			return h;
	h = gpuq_arena_calloc(c->mem, 1, sizeof(*h));
	if (!h)
		return &none;
	holder = shared_claim_holder(c->m, namespace_, claim);
	*h = (struct has){ .next = c->has,
			   .namespace_ = gpuq_arena_strdup(c->mem, home),
			   .claim = gpuq_arena_strdup(c->mem, claim),
			   .node = holder ? holder->node->name : NULL,
			   .isolated = holder && demands(holder->job),
			   .foreign = !holder && is && is->allocated &&
				      shared_claim_is_foreign(c->m, is) };
	if (!h->namespace_ || !h->claim)
		return &none;
	c->has = h;
	return h;
}

/* ---- what cannot be served anywhere ---- */

/* Hold the job back, with the object that keeps it from starting. */
static void wait_for(struct snap_claims *c, struct snap_variant *v, uint8_t gate,
		     const char *object)
{
	const char *kept = gpuq_arena_strdup(c->mem, object);

	v->gate = gate;
	v->gate_object = kept ? kept : "";
}

/* True if a claim would have several pods, whose devices are not apart, and one of them demands it. */
static bool is_too_close(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
			 bool isolated)
{
	for (size_t i = 0; i < g->n_claims; i++) {
		const struct has *h =
			g->claims[i].shares ? has_of(c, namespace_, g->claims[i].claim) : NULL;

		if (h && (h->node ? isolated || h->isolated
				  : isolated && (g->pods_max > 1 || h->foreign)))
			return true;
	}
	return false;
}

/* True if the group is charged for so many devices: those of a part of a card are one or more. */
static bool is_counted(const struct gpuq_group *g, int64_t n)
{
	const int64_t charged = g->claims_beside ? 0 : g->gpus_milli;

	return charged % 1000 ? n > 0 : n * 1000 == charged;
}

void snapshot_claims_gate(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
			  bool isolated, struct snap_variant *v)
{
	const struct objects *o = c->m->objects;
	const char *lack, *words;
	int64_t n = 0, least = 0;
	bool all = false;

	if (v->gate != GPUQ_R_NONE)
		return;
	lack = objects_claims_lack(o, &words);
	if (lack) {
		wait_for(c, v, GPUQ_R_CLUSTER_REFUSED, lack);
		return;
	}
	for (size_t i = 0; i < g->n_claims; i++) {
		const struct gpuq_claim *ask = &g->claims[i];
		const char *kind = ask->claim ? "ResourceClaim" : "ResourceClaimTemplate";
		const struct dra_claim *claim;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct dra_spec spec;

		if (dra_find(c->d, ask, objects_namespace(o, namespace_), c->mem, &spec, &claim) !=
		    DRA_FOUND)
			gpuq_fail(&err, GPUQ_ENOENT, "%s %s does not exist", kind,
				  ask->claim ? ask->claim : ask->template_);
		else if (claim && claim->leaving)
			gpuq_fail(&err, GPUQ_ENOENT, "ResourceClaim %s is being deleted",
				  claim->name);
		else if (!claim || !claim->allocated)
			dra_check(c->d, &spec, &err);
		if (err.code) {
			if (!ask->class_ && !ask->n_first && err.code != GPUQ_ENOENT)
				gpuq_err_prefix(&err, "%s %s", kind,
						ask->claim ? ask->claim : ask->template_);
			wait_for(c, v, GPUQ_R_DEVICE_CLAIM, err.text);
			return;
		}
		if (!dra_named_before(g, i)) {
			n += dra_devices_of(&spec, &c->classes, &all);
			least += dra_least_of(&spec, &c->classes);
		}
	}
	if (is_too_close(c, namespace_, g, isolated))
		wait_for(c, v, GPUQ_R_DEVICE_CLAIM,
			 "its claim has other pods, and one of them demands isolation");
	/* At submission the least of alternatives is counted; earlier versions counted the most. */
	if (least > 0 && !is_counted(g, n))
		n = least;
	if (all && g->gpus_milli == 0)
		wait_for(c, v, GPUQ_R_DEVICE_CLAIM,
			 "no node had devices for its claims when it was submitted: submit it "
			 "again");
	if (!all && !is_counted(g, n))
		wait_for(c, v, GPUQ_R_DEVICE_CLAIM,
			 gpuq_arena_printf(
				 c->mem,
				 "its claims have %lld devices, it was submitted with "
				 "%lld: submit it again",
				 (long long)n,
				 (long long)(g->claims_beside ? 0 : (g->gpus_milli + 999) / 1000)));
}

/* ---- how often it fits ---- */

/* Collect what is to be allocated for a pod. False: it cannot be on the node. *shared: all of it is
 * allocated already, or will be for all pods at once. */
static bool specs_for(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
		      struct gpuq_alternatives choice, const char *node, struct gpuq_arena *a,
		      const struct dra_spec **specs, size_t *n, bool *shared)
{
	const struct dra_claim *claims[GPUQ_CLAIMS_MAX];
	const struct dra_spec *all[GPUQ_CLAIMS_MAX];
	struct dra_spec *chosen = gpuq_arena_calloc(a, g->n_claims + 1, sizeof(*chosen));
	size_t n_all = 0;

	*n = 0;
	*shared = true;
	for (size_t i = 0; i < g->n_claims; i++) {
		struct dra_spec *spec = gpuq_arena_calloc(a, 1, sizeof(*spec));

		if (dra_named_before(g, i))
			continue;
		if (!spec ||
		    dra_find(c->d, &g->claims[i], objects_namespace(c->m->objects, namespace_), a,
			     spec, &claims[n_all]) != DRA_FOUND)
			return false;
		all[n_all++] = spec;
	}
	if (!chosen || !dra_choose(all, n_all, choice, a, chosen))
		return false;
	for (size_t i = 0; i < n_all; i++) {
		const struct dra_claim *claim = claims[i];
		/* All pods of a claim are on the node of the first, from its placement on. */
		const char *holder = claim ? has_of(c, namespace_, claim->name)->node : NULL;

		if (holder && strcmp(holder, node) != 0)
			return false;
		if (claim && claim->allocated && *claim->node && strcmp(claim->node, node) != 0)
			return false;
		if (holder || (claim && claim->allocated))
			continue;
		*shared &= claim != NULL;
		specs[(*n)++] = &chosen[i];
	}
	return true;
}

/* True if a pod has several parts of a card, which are to be of one. */
static bool has_parts(const struct snap_claims *c, const struct dra_spec *const *specs, size_t n)
{
	int64_t devices = 0;
	bool all = false;

	for (size_t i = 0; i < n; i++)
		devices += dra_devices_of(specs[i], &c->classes, &all);
	return devices > 1 && !all && dra_charge(c->d, specs, n, &c->classes, false) < 1000;
}

/* Return how many pods fit, at most so many, where each has its parts of one card. */
static uint32_t fits_cards(const struct snap_claims *c, const struct dra_at *at, size_t n_at,
			   const struct dra_spec *const *specs, size_t n, uint32_t most,
			   struct gpuq_arena *a)
{
	struct dra_at *cards, *some = gpuq_arena_calloc(a, n_at, sizeof(*some));
	const size_t n_cards = dra_cards_among(c->d, at, n_at, &c->classes, a, &cards);
	uint32_t sum = 0;

	for (size_t k = 0; some && k < n_cards && sum < most; k++)
		sum += dra_fits(c->d, some, dra_cards_one(cards, n_cards, k, at, n_at, some), specs,
				n, most - sum);
	return sum;
}

/* Return how many pods of the group the node's devices, beyond those in use, are enough for. */
static uint32_t fits(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
		     struct gpuq_alternatives choice, const char *node, const struct dra_at *at,
		     size_t n_at)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct dra_spec **specs = gpuq_arena_calloc(&a, g->n_claims + 1, sizeof(*specs));
	uint32_t most = 0;
	bool shared;
	size_t n;

	if (specs && specs_for(c, namespace_, g, choice, node, &a, specs, &n, &shared)) {
		most = n ? dra_fits(c->d, at, n_at, specs, n, shared ? 1 : FITS_MAX) : 1;
		if (n && most && has_parts(c, specs, n))
			most = fits_cards(c, at, n_at, specs, n, most, &a);
		if (most && shared)
			most = FITS_MAX;
	}
	gpuq_arena_done(&a);
	return most;
}

/* True if the pod has its devices: they are not among the free ones. */
static bool has_its_own(const struct snap_claims *c, const struct pod *p,
			const struct gpuq_group *g)
{
	const struct dra_claim *own;

	if (p->state == GPUQ_POD_RUNNING)
		return true;
	for (size_t i = 0; i < g->n_claims; i++) {
		own = g->claims[i].claim ? NULL : dra_claim_of(c->d, p->uid, g->claims[i].name);
		if (own && own->allocated)
			return true;
	}
	return false;
}

/* Count the pods of the group that have their devices on the node: they are not among the free ones. */
static uint32_t held(const struct snap_claims *c, const struct kind *k, const struct node *n)
{
	uint32_t sum = 0;
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (p->job->request == k->r && p->group == k->ix && model_pod_takes(p) &&
		    p->choice.first == k->choice.first && p->choice.last == k->choice.last &&
		    (!names_objects(k->g) ||
		     strcmp(model_queue_namespace(p->job->queue), k->namespace_) == 0))
			sum += has_its_own(c, p, k->g);
	return sum;
}

/* ---- devices with taints ---- */

/* True if a request of the spec may have the device, taints and all. */
static bool spec_tolerates(const struct dra_spec *spec, const struct dra_device *device)
{
	for (uint32_t i = 0; i < spec->n_requests; i++)
		for (uint32_t k = 0; k < spec->requests[i].n_options; k++)
			if (dra_tolerates(&spec->requests[i].options[k], device))
				return true;
	return false;
}

/* True if a group may have it. */
static bool is_tolerated(struct snap_claims *c, const struct dra_device *device,
			 struct gpuq_arena *a)
{
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->kinds[i].g->n_claims; k++) {
			const char *home = objects_namespace(c->m->objects, c->kinds[i].namespace_);
			const struct dra_claim *claim;
			struct dra_spec spec;

			if (dra_find(c->d, &c->kinds[i].g->claims[k], home, a, &spec, &claim) ==
				    DRA_FOUND &&
			    spec_tolerates(&spec, device))
				return true;
		}
	return false;
}

/* Return the requests that a card serves: what its driver lists of it is the card, parts of it, or both. */
static uint8_t serves_of(const struct dra_at *cards, size_t n_cards, size_t card,
			 const struct dra_at *at, size_t n_at)
{
	bool whole = false, parts = false;

	for (size_t i = 0; i < n_at; i++)
		if (dra_card_of(cards, n_cards, at[i].slice, at[i].device) == card) {
			const bool is_part = dra_part_milli(cards, n_cards, &at[i]) < SNAP_MILLI;

			whole |= !is_part;
			parts |= is_part;
		}
	return whole && parts ? SNAP_SERVES_ALL : parts ? SNAP_SERVES_PARTS : SNAP_SERVES_WHOLE;
}

/* The scheduler knows the cards of a node, and which requests each serves: those for parts are placed on cards that have
 * some, or the ledger would have them on one that another pod is to have whole. A card whose taints some group tolerates
 * is there: that others do not get it is a matter of the resource of each group. */
static void take_cards(struct snap_claims *c, const struct node *n, const struct dra_at *at,
		       size_t n_at, struct gpuq_arena *a, struct snap_node *sn)
{
	struct snap_device *devices = gpuq_arena_calloc(c->mem, sn->n_devices, sizeof(*devices));
	const bool parts = dra_weights(c->d);
	struct dra_at *cards;
	const size_t n_cards = dra_cards_among(c->d, at, n_at, &c->classes, a, &cards);

	if (!devices || !sn->devices_in)
		return;
	memcpy(devices, sn->devices_in, sn->n_devices * sizeof(*devices));
	for (uint32_t i = 0; i < sn->n_devices && i < n_cards; i++) {
		devices[i].healthy = n->devices[i].healthy || is_tolerated(c, cards[i].device, a);
		if (parts)
			devices[i].serves = serves_of(cards, n_cards, i, at, n_at);
	}
	sn->devices_in = devices;
}

static bool has_unwell(const struct node *n, const struct snap_node *sn)
{
	for (uint32_t i = 0; i < sn->n_devices; i++)
		if (!n->devices[i].healthy)
			return true;
	return false;
}

/* The devices of a node in other states than that which they are in. */
struct others {
	struct dra_at *unused; /* nothing has any */
	struct dra_at *own_gone; /* those of gpuq's pods are free; NULL = these have none */
	size_t n_left; /* of these: that no claim of others has */
};

/* The devices of a pod of gpuq are free once it ends, and it may be preempted. Those of others are known by their
 * claims alone, and gpuqd ends none of them. */
static struct others others_of(const struct snap_claims *c, const struct dra_at *at, size_t n,
			       struct gpuq_arena *a)
{
	struct others o = { gpuq_arena_calloc(a, n, sizeof(*o.unused)),
			    gpuq_arena_calloc(a, n, sizeof(*o.own_gone)), 0 };
	bool any = false;

	for (size_t i = 0; o.unused && o.own_gone && i < n; i++) {
		const bool foreign = at[i].used && shared_claim_is_foreign(c->m, at[i].used);

		o.unused[i] = (struct dra_at){ at[i].slice, at[i].device, NULL };
		o.own_gone[i] =
			(struct dra_at){ at[i].slice, at[i].device, foreign ? at[i].used : NULL };
		o.n_left += !foreign;
		any |= at[i].used && !foreign;
	}
	if (!any)
		o.own_gone = NULL;
	return o;
}

/* Return how many pods of the group the node is enough for once gpuq's other pods are gone, where any devices of it
 * serve them: then it is the devices that they lack, which the scheduler counts. 0 = it does not know that from them
 * alone. has: for how many it is enough now.
 *
 * Where only some devices serve the group, a number of free ones does not tell that these are among them. Jobs would be
 * preempted for it whose devices it cannot use. */
static uint32_t when_own_gone(struct snap_claims *c, const struct kind *k, const struct node *n,
			      const struct snap_node *sn, const struct others *o, size_t n_at,
			      uint32_t has)
{
	const size_t each = k->g->claims_beside ? 0 : (size_t)(k->g->gpus_milli / 1000);
	uint32_t most;

	if (!o->own_gone || each == 0 || n_at != sn->n_devices || k->choice.first ||
	    has >= o->n_left / each)
		return 0;
	most = fits(c, k->namespace_, k->g, k->choice, n->name, o->own_gone, n_at);
	return most == o->n_left / each ? most : 0;
}

void snapshot_claims_node(struct snap_claims *c, const struct node *n, struct snap_node *sn)
{
	struct snap_resource *all;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct others other = { 0 };
	struct dra_at *at;
	size_t n_at;
	const char *odd;

	n_at = c->n ? dra_node(c->d, n->name, &a, &at, &odd) : 0;
	all = n_at ? gpuq_arena_calloc(c->mem, sn->n_resources + c->n, sizeof(*all)) : NULL;
	if (all)
		other = others_of(c, at, n_at, &a);
	for (uint32_t i = 0; all && i < sn->n_resources; i++)
		all[i] = sn->resources[i];
	for (size_t i = 0; all && i < c->n; i++) {
		const struct kind *k = &c->kinds[i];
		const uint32_t own = held(c, k, n);
		const uint32_t more = fits(c, k->namespace_, k->g, k->choice, n->name, at, n_at);
		const uint32_t gone = when_own_gone(c, k, n, sn, &other, n_at, own + more);

		/* In use by others: it may be free later. */
		const bool later =
			own + more + gone == 0 && other.unused &&
			fits(c, k->namespace_, k->g, k->choice, n->name, other.unused, n_at) > 0;

		const uint32_t count = gone ? gone : own + more + later;

		if (k->name && count > 0)
			all[sn->n_resources++] = (struct snap_resource){ k->name, count, later };
	}
	if (all)
		sn->resources = all;
	if (all && node_is_of_claims(n) && (dra_weights(c->d) || has_unwell(n, sn)))
		take_cards(c, n, at, n_at, &a, sn);
	gpuq_arena_done(&a);
}

/* ---- what a pod takes ---- */

/* For a request that is not kept no node has a resource: name the nodes. */
static void name_nodes(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
		       struct gpuq_alternatives choice, struct snap_group *out)
{
	const char **names = gpuq_arena_calloc(c->mem, HASH_COUNT(c->m->nodes) + 1, sizeof(*names));
	size_t n_names = 0;

	for (const struct node *n = c->m->nodes; names && n; n = n->hh.next) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct dra_at *at;
		const char *odd;
		const size_t n_at = dra_node(c->d, n->name, &a, &at, &odd);

		if (n_at && fits(c, namespace_, g, choice, n->name, at, n_at) &&
		    (out->nodes.n == 0 || gpuq_strlist_has(&out->nodes, n->name)))
			names[n_names++] = n->name;
		gpuq_arena_done(&a);
	}
	/* Where it fits on none, no node has this name. */
	if (names && n_names == 0)
		names[n_names++] = "no node with its devices";
	if (names)
		out->nodes = (struct gpuq_strlist){ names, n_names };
}

/* Devices that other pods are charged for are there: none that are free are needed for them. Return those that the first
 * pod of the group is charged for and the others are not, in thousandths. */
static int64_t leave_shared(struct snap_claims *c, const char *namespace_,
			    const struct gpuq_group *g, struct snap_group *out)
{
	int64_t once = 0;

	for (size_t i = 0; i < g->n_claims; i++) {
		const struct gpuq_claim *ask = &g->claims[i];
		const struct has *h = ask->shares ? has_of(c, namespace_, ask->claim) : NULL;

		if (h && (h->node || h->foreign))
			out->gpus_milli -= ask->shares * 1000;
		else
			once += ask->shares * 1000;
	}
	return once;
}

/* Make one pod of n that share a claim: it takes what all of them take, and the devices of the claim once. */
static void make_one(struct snap_claims *c, uint32_t n, int64_t once_milli, struct snap_group *out)
{
	struct gpuq_amount *all = gpuq_arena_calloc(c->mem, out->n_resources + 1, sizeof(*all));

	if (!all)
		return;
	for (uint32_t i = 0; i < out->n_resources; i++)
		all[i] = (struct gpuq_amount){ out->resources[i].name,
					       amount_times(out->resources[i].count, n) };
	out->resources = all;
	out->gpus_milli = once_milli + n * (out->gpus_milli - once_milli);
	out->cpu_milli = amount_times(out->cpu_milli, n);
	out->memory_bytes = amount_times(out->memory_bytes, n);
	out->pods_min = out->pods_max = 1;
	out->topology_required = NULL;
}

void snapshot_claims_group(struct snap_claims *c, const char *namespace_, const struct request *r,
			   uint32_t ix, const struct gpuq_group *g, struct gpuq_alternatives choice,
			   bool together, struct snap_group *out)
{
	struct gpuq_amount *all;
	bool shares = false;
	int64_t once;
	uint32_t n;

	for (size_t i = 0; i < g->n_claims; i++)
		shares |= g->claims[i].claim != NULL;
	/* Pods of one claim are on the node of its devices. */
	if (shares && out->pods_max > 1 && !out->topology_required)
		out->topology_required = "host";
	once = leave_shared(c, namespace_, g, out);
	n = shared_claim_pods(g);
	if (once && n > 1 && together && out->pods_min == n)
		make_one(c, n, once, out);
	if (!r) {
		name_nodes(c, namespace_, g, choice, out);
		return;
	}
	all = gpuq_arena_calloc(c->mem, out->n_resources + 1, sizeof(*all));
	if (!all)
		return;
	for (uint32_t i = 0; i < out->n_resources; i++)
		all[i] = out->resources[i];
	all[out->n_resources++] = (struct gpuq_amount){
		name_of(c, r, ix, g, choice, names_objects(g) ? namespace_ : ""), 1
	};
	out->resources = all;
}
