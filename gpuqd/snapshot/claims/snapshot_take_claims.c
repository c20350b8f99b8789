#include "gpuqd/snapshot/claims/snapshot_take_claims.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "gpuqd/devices/dra/dra_ask.h"
#include "gpuqd/util/require.h"
#include "libgpuq/limits.h"

#define FITS_MAX 1024u /* pods of one group on a node */

/* A group of a request, in a namespace. */
struct kind {
	const struct request *r;
	const struct gpuq_group *g;
	uint32_t ix;
	const char *namespace_, *name; /* of the resource */
};

struct snap_claims {
	const struct model *m;
	const struct dra *d;
	struct gpuq_arena *mem;
	struct gpuq_strlist classes; /* that flavors name */
	struct gpuq_strlist namespaces;
	struct kind *kinds;
	size_t n, room;
};

/* The name tells people of which devices, and is that of the group alone. */
static const char *name_of(struct snap_claims *c, const struct request *r, uint32_t ix,
			   const struct gpuq_group *g, const char *namespace_)
{
	const struct gpuq_claim *first = &g->claims[0];
	const char *of = first->class_      ? first->class_
			 : first->n_first   ? first->first[0].class_
			 : first->claim     ? first->claim
			 : first->template_ ? first->template_
					    : "";

	return gpuq_arena_printf(c->mem, "claims/%s/%u.%u%s%s", of, r->id, ix,
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

static void add(struct snap_claims *c, const struct request *r, uint32_t ix,
		const struct gpuq_group *g, const char *namespace_)
{
	if (c->n == c->room) {
		const size_t room = c->room ? c->room * 2 : 16;
		struct kind *kinds = realloc(c->kinds, room * sizeof(*kinds));

		if (!kinds)
			return;
		c->kinds = kinds;
		c->room = room;
	}
	c->kinds[c->n++] = (struct kind){ r, g, ix, namespace_, name_of(c, r, ix, g, namespace_) };
}

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
				add(c, r, i, g, "");
			for (size_t k = 0; names_objects(g) && k < c->namespaces.n; k++)
				add(c, r, i, g, c->namespaces.items[k]);
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

/* ---- what cannot be served anywhere ---- */

static void wait_for(struct snap_claims *c, struct snap_variant *v, uint8_t gate,
		     const char *object)
{
	const char *kept = gpuq_arena_strdup(c->mem, object);

	v->gate = gate;
	v->gate_object = kept ? kept : "";
}

void snapshot_claims_gate(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
			  struct snap_variant *v)
{
	const struct objects *o = c->m->objects;
	int64_t n = 0;
	bool all = false;

	if (v->gate != GPUQ_R_NONE)
		return;
	for (int k = OBJECT_SLICE; k <= OBJECT_DEVICE_TEMPLATE; k++)
		if (!objects_is_known(o, (enum object_kind)k)) {
			wait_for(c, v, GPUQ_R_CLUSTER_REFUSED, "resource.k8s.io");
			return;
		}
	if (!objects_is_known(o, OBJECT_BINDING)) {
		wait_for(c, v, GPUQ_R_CLUSTER_REFUSED, "pods/binding");
		return;
	}
	if (!objects_is_known(o, OBJECT_ALLOCATING)) {
		wait_for(c, v, GPUQ_R_CLUSTER_REFUSED, "resourceclaims/status");
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
		n += dra_devices_of(&spec, &c->classes, &all);
	}
	if (all && g->gpus_milli == 0)
		wait_for(c, v, GPUQ_R_DEVICE_CLAIM,
			 "no node had devices for its claims when it was submitted: submit it "
			 "again");
	if (n * 1000 != (g->claims_beside ? 0 : g->gpus_milli) && !all)
		wait_for(c, v, GPUQ_R_DEVICE_CLAIM,
			 gpuq_arena_printf(
				 c->mem,
				 "its claims have %lld devices, it was submitted with "
				 "%lld: submit it again",
				 (long long)n,
				 (long long)(g->claims_beside ? 0 : g->gpus_milli / 1000)));
}

/* ---- how often it fits ---- */

/* Collect what is to be allocated for a pod. False: it cannot be on the node. *shared: all of it is
 * allocated already, or will be for all pods at once. */
static bool specs_for(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
		      const char *node, struct gpuq_arena *a, const struct dra_spec **specs,
		      size_t *n, bool *shared)
{
	*n = 0;
	*shared = true;
	for (size_t i = 0; i < g->n_claims; i++) {
		struct dra_spec *spec = gpuq_arena_calloc(a, 1, sizeof(*spec));
		const struct dra_claim *claim;

		if (!spec ||
		    dra_find(c->d, &g->claims[i], objects_namespace(c->m->objects, namespace_), a,
			     spec, &claim) != DRA_FOUND)
			return false;
		if (claim && claim->allocated) {
			if (*claim->node && strcmp(claim->node, node) != 0)
				return false;
			continue;
		}
		*shared &= claim != NULL;
		specs[(*n)++] = spec;
	}
	return true;
}

/* Return how many pods of the group the node's devices, beyond those in use, are enough for. */
static uint32_t fits(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
		     const char *node, const struct dra_at *at, size_t n_at)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct dra_spec **specs = gpuq_arena_calloc(&a, g->n_claims + 1, sizeof(*specs));
	uint32_t most = 0;
	bool shared;
	size_t n;

	if (specs && specs_for(c, namespace_, g, node, &a, specs, &n, &shared)) {
		most = n ? dra_fits(c->d, at, n_at, specs, n, shared ? 1 : FITS_MAX) : 1;
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

static uint32_t held(const struct snap_claims *c, const struct kind *k, const struct node *n)
{
	uint32_t sum = 0;
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (p->job->request == k->r && p->group == k->ix && model_pod_takes(p) &&
		    (!names_objects(k->g) ||
		     strcmp(model_queue_namespace(p->job->queue), k->namespace_) == 0))
			sum += has_its_own(c, p, k->g);
	return sum;
}

void snapshot_claims_node(struct snap_claims *c, const struct node *n, struct snap_node *sn)
{
	struct snap_resource *all;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra_at *at, *unused;
	size_t n_at;
	const char *odd;

	n_at = c->n ? dra_node(c->d, n->name, &a, &at, &odd) : 0;
	all = n_at ? gpuq_arena_calloc(c->mem, sn->n_resources + c->n, sizeof(*all)) : NULL;
	unused = all ? gpuq_arena_calloc(&a, n_at, sizeof(*unused)) : NULL;
	for (size_t i = 0; unused && i < n_at; i++)
		unused[i] = (struct dra_at){ at[i].slice, at[i].device, NULL };
	for (uint32_t i = 0; all && i < sn->n_resources; i++)
		all[i] = sn->resources[i];
	for (size_t i = 0; all && i < c->n; i++) {
		const struct kind *k = &c->kinds[i];
		const uint32_t own = held(c, k, n);
		const uint32_t more = fits(c, k->namespace_, k->g, n->name, at, n_at);

		/* In use by others: it may be free later. */
		const bool later = own + more == 0 && unused &&
				   fits(c, k->namespace_, k->g, n->name, unused, n_at) > 0;

		if (k->name && (own + more > 0 || later))
			all[sn->n_resources++] =
				(struct snap_resource){ k->name, later ? 1 : (int64_t)own + more,
							later };
	}
	if (all)
		sn->resources = all;
	gpuq_arena_done(&a);
}

/* ---- what a pod takes ---- */

/* For a request that is not kept no node has a resource: name the nodes. */
static void name_nodes(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
		       struct snap_group *out)
{
	const char **names = gpuq_arena_calloc(c->mem, HASH_COUNT(c->m->nodes) + 1, sizeof(*names));
	size_t n_names = 0;

	for (const struct node *n = c->m->nodes; names && n; n = n->hh.next) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct dra_at *at;
		const char *odd;
		const size_t n_at = dra_node(c->d, n->name, &a, &at, &odd);

		if (n_at && fits(c, namespace_, g, n->name, at, n_at) &&
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

void snapshot_claims_group(struct snap_claims *c, const char *namespace_, const struct request *r,
			   uint32_t ix, const struct gpuq_group *g, struct snap_group *out)
{
	struct gpuq_amount *all;
	bool shares = false;

	for (size_t i = 0; i < g->n_claims; i++)
		shares |= g->claims[i].claim != NULL;
	/* Pods of one claim are on the node of its devices. */
	if (shares && out->pods_max > 1 && !out->topology_required)
		out->topology_required = "host";
	if (!r) {
		name_nodes(c, namespace_, g, out);
		return;
	}
	all = gpuq_arena_calloc(c->mem, out->n_resources + 1, sizeof(*all));
	if (!all)
		return;
	for (uint32_t i = 0; i < out->n_resources; i++)
		all[i] = out->resources[i];
	all[out->n_resources++] =
		(struct gpuq_amount){ name_of(c, r, ix, g, names_objects(g) ? namespace_ : ""), 1 };
	out->resources = all;
}
