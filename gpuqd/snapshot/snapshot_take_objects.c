#include "gpuqd/snapshot/snapshot_take_objects.h"
#include "gpuqd/snapshot/claims/snapshot_take_claims.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/state/takes.h"
#include "gpuqd/util/require.h"
#include "libgpuq/spec/resource.h"

#define HOST_LABEL "kubernetes.io/hostname"
/* Terms of volumes and of the job multiply. Beyond this many those of a volume are left to the
 * node's kubelet. */
#define TERMS_MAX 256

struct variant {
	UT_hash_handle hh;
	struct {
		uint32_t request, queue; /* numbers: between two steps a request may go */
	} key;
	struct snap_variant v;
};

/* A claim, copied: between two steps it may go. */
struct single {
	const char *namespace_, *name;
};

struct snap_objects {
	const struct model *m;
	struct gpuq_arena *mem;
	bool *adds; /* by queue */
	struct variant *variants;
	struct snap_claims *claims;
	/* Claims which one pod can be using at a time, sorted, and the number of the first one's license. */
	struct single *single;
	size_t n_single;
	uint32_t first_single;
};

struct snap_objects *snapshot_objects_new(const struct model *m, struct gpuq_arena *mem)
{
	struct snap_objects *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->m = m;
	o->mem = mem;
	o->adds = gpuq_arena_calloc(mem, m->n_queues + 1, sizeof(*o->adds));
	for (uint32_t i = 0; o->adds && i < m->n_queues; i++)
		o->adds[i] = m->queues[i]->n_children == 0 &&
			     (model_queue_isolation(m->queues[i]) ||
			      objects_adds(m->objects, m->queues[i]->name,
					   model_queue_namespace(m->queues[i])));
	o->claims = snapshot_claims_new(m, mem);
	if (!o->adds || !o->claims) {
		snapshot_objects_done(o);
		return NULL;
	}
	return o;
}

void snapshot_objects_done(struct snap_objects *o)
{
	if (!o)
		return;
	HASH_CLEAR(hh, o->variants); /* they live in the arena */
	snapshot_claims_done(o->claims);
	free(o);
}

/* ---- what may start ---- */

/* Note the first volume claim that keeps the group pending, where one that does not exist explains more
 * than one that is not bound; else a runtime whose pods take more devices than their job. */
static void gate(const struct snap_objects *o, const struct queue *q, const struct gpuq_group *g,
		 bool isolated, struct snap_variant *v)
{
	const char *namespace_ = model_queue_namespace(q);
	const struct object_fact *volume;

	for (size_t i = 0; i < g->n_volumes && v->gate != GPUQ_R_VOLUME_NOT_FOUND; i++) {
		const char *claim = g->volumes[i].claim;
		const enum objects_claim is =
			objects_claim(o->m->objects, namespace_, claim, &volume);

		if (is == OBJECTS_CLAIM_MISSING)
			v->gate = GPUQ_R_VOLUME_NOT_FOUND;
		else if (v->gate == GPUQ_R_NONE &&
			 (is == OBJECTS_CLAIM_UNBOUND ||
			  (is == OBJECTS_CLAIM_CHOOSES &&
			   !objects_volume(o->m->objects, namespace_, claim, NULL))))
			v->gate = GPUQ_R_VOLUME_PENDING;
		else
			continue;
		v->gate_object = claim;
	}
	/* The device would be counted by the kubelet and by nothing else: it has no index, belongs to no
	 * quota, and the pod cannot use it. */
	if (v->gate == GPUQ_R_NONE && g->runtime_class &&
	    takes_overhead_device(o->m, g->runtime_class)) {
		v->gate = GPUQ_R_CLUSTER_REFUSED;
		v->gate_object =
			gpuq_arena_printf(o->mem, OBJECT_RUNTIME_PREFIX "%s", g->runtime_class);
	}
	if (g->n_claims)
		snapshot_claims_gate(o->claims, namespace_, g, isolated, v);
}

bool snapshot_objects_named(const struct request_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_groups; i++) {
		const struct gpuq_group *g = spec->groups[i].where;

		if (g && (g->n_volumes || g->runtime_class || g->n_claims))
			return true;
	}
	return false;
}

struct snap_variant *snapshot_objects_of(struct snap_objects *o, const struct queue *q,
					 const struct request_spec *spec, const struct request *r)
{
	const bool isolated = spec->isolation > GPUQ_ISOLATION_NONE ||
			      model_queue_isolation(q) > GPUQ_ISOLATION_NONE;
	struct variant *v = NULL, find;

	if (!o->adds[q->ix] && !snapshot_objects_named(spec))
		return NULL;
	memset(&find, 0, sizeof(find)); /* hashed byte by byte */
	find.key.request = r ? r->id : 0;
	find.key.queue = q->ix;
	if (r)
		HASH_FIND(hh, o->variants, &find.key, sizeof(find.key), v);
	if (v)
		return &v->v;
	v = gpuq_arena_alloc(o->mem, sizeof(*v));
	if (!v)
		return NULL;
	v->key = find.key;
	v->v.request = SNAP_NONE;
	for (uint32_t i = 0; i < spec->n_groups; i++)
		if (spec->groups[i].where)
			gate(o, q, spec->groups[i].where, isolated, &v->v);
	if (r)
		HASH_ADD(hh, o->variants, key, sizeof(v->key), v);
	return &v->v;
}

/* ---- claims which one pod can be using at a time ---- */

void snapshot_objects_licenses(struct snap_objects *o, struct snapshot *s)
{
	size_t n;
	const struct object_fact **claims = objects_one_pod(o->m->objects, o->mem, &n);

	o->single = gpuq_arena_calloc(o->mem, n + 1, sizeof(*o->single));
	o->first_single = s->n_licenses;
	for (size_t i = 0; o->single && i < n; i++) {
		const struct single one = { gpuq_arena_strdup(o->mem, claims[i]->namespace_),
					    gpuq_arena_strdup(o->mem, claims[i]->name) };
		const char *name =
			gpuq_arena_printf(o->mem, "%s/%s", claims[i]->namespace_, claims[i]->name);

		if (!one.namespace_ || !one.name || !name ||
		    snapshot_add_license(s, name, 1) == SNAP_NONE)
			return;
		o->single[o->n_single++] = one;
	}
}

static int by_name(const void *x, const void *y)
{
	const struct single *a = x, *b = y;
	const int spaces = strcmp(a->namespace_, b->namespace_);

	return spaces ? spaces : strcmp(a->name, b->name);
}

size_t snapshot_objects_volumes(const struct request_spec *spec)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->n_groups; i++)
		n += spec->groups[i].where ? spec->groups[i].where->n_volumes : 0;
	return n;
}

void snapshot_objects_needs(const struct snap_objects *o, const struct queue *q,
			    const struct request_spec *spec, struct snap_license_need *needs,
			    uint32_t *n_needs)
{
	const char *namespace_ = objects_namespace(o->m->objects, model_queue_namespace(q));
	const uint32_t n_before = *n_needs;

	for (size_t i = 0; o->n_single && i < spec->n_groups; i++) {
		const struct gpuq_group *g = spec->groups[i].where;

		for (size_t k = 0; g && k < g->n_volumes; k++) {
			const struct single key = { namespace_, g->volumes[k].claim };
			const struct single *is = key.name ? bsearch(&key, o->single, o->n_single,
								     sizeof(key), by_name)
							   : NULL;
			uint32_t n = n_before, license;

			if (!is)
				continue;
			license = o->first_single + (uint32_t)(is - o->single);
			while (n < *n_needs && needs[n].license != license)
				n++;
			if (n == *n_needs)
				needs[(*n_needs)++] =
					(struct snap_license_need){ .license = license };
			/* A volume may be mounted twice, each pod has it once. */
			if (needs[n].count < spec->groups[i].pods_max)
				needs[n].count = spec->groups[i].pods_max;
		}
	}
}

/* ---- where it may run ---- */

/* A term over the host label would make each node a class of its own (snap_class). Where it is the
 * node's name, as nearly everywhere, the name is requested instead. */
static const char *key_for(const struct snap_objects *o, const struct gpuq_require *r)
{
	if (r->op != GPUQ_OP_IN || strcmp(r->key, HOST_LABEL) != 0)
		return r->key;
	for (size_t i = 0; i < r->values.n; i++) {
		const struct node *n = model_find_node(o->m, r->values.items[i]);
		const char *host = n ? gpuq_strmap_get(&n->fact.labels, HOST_LABEL) : NULL;

		if (!host || strcmp(host, n->name) != 0)
			return r->key;
	}
	return REQUIRE_NAME_KEY;
}

/* Make the term that requires what both require: nodes that the pod wants and that the volume can
 * be reached from. */
static bool joined(struct snap_objects *o, const struct gpuq_term *a, const struct gpuq_term *b,
		   struct gpuq_term *out)
{
	const size_t n_a = a ? a->n : 0;
	struct gpuq_require *all = gpuq_arena_calloc(o->mem, n_a + b->n, sizeof(*all));

	if (!all)
		return false;
	for (size_t i = 0; i < n_a; i++)
		all[i] = a->all[i];
	for (size_t i = 0; i < b->n; i++) {
		all[n_a + i] = b->all[i];
		all[n_a + i].key = key_for(o, &b->all[i]);
	}
	*out = (struct gpuq_term){ .all = all, .n = n_a + b->n };
	return true;
}

/* Demand that one of these terms holds as well. */
static void restrict_to(struct snap_objects *o, const struct object_fact *f, struct snap_group *g)
{
	const size_t n_had = g->n_required ? g->n_required : 1, n = n_had * f->n_required;
	struct gpuq_term *terms;

	if (f->n_required == 0 || n > TERMS_MAX)
		return;
	terms = gpuq_arena_calloc(o->mem, n, sizeof(*terms));
	for (size_t i = 0; terms && i < n; i++) {
		const struct gpuq_term *had =
			g->n_required ? &g->required[i / f->n_required] : NULL;

		if (!joined(o, had, &f->required[i % f->n_required], &terms[i]))
			return;
	}
	g->required = terms;
	g->n_required = terms ? (uint32_t)n : 0;
}

/* Demand the nodes from which the volume of a claim can be reached.
 *
 * The first claim that restricts them is kept by name, for the reason of a job which no node can hold: its owner cannot
 * see from "nodes" that a volume is meant, and which of several. Its first label stands for all of them: volumes tell
 * their nodes by one label, a host name or a zone. */
static void restrict_to_volume(struct snap_objects *o, const struct object_fact *f,
			       const char *claim, struct snap_group *g)
{
	const uint32_t had = g->n_required;
	const struct gpuq_term *before = g->required;

	restrict_to(o, f, g);
	if (g->volume || (g->required == before && g->n_required == had) || f->required[0].n == 0)
		return;
	g->volume = gpuq_arena_printf(o->mem, "claim %s", claim);
	g->volume_label = key_for(o, &f->required[0].all[0]);
}

/* Return what a volume requires of its node, where that is one of some values of a label; NULL = it is more, or
 * less. */
static const struct gpuq_require *label_of(const struct object_fact *v)
{
	const struct gpuq_term *t = v->n_required == 1 ? &v->required[0] : NULL;

	return t && t->n == 1 && t->all[0].op == GPUQ_OP_IN ? &t->all[0] : NULL;
}

/* Demand the node of one of the volumes which the claim may have. A local volume names its node, and there
 * may be one on each: of those that name the same label one requirement has all values. */
static void near_volumes(struct snap_objects *o, const char *namespace_, const char *claim,
			 struct snap_group *g)
{
	const struct objects *all = o->m->objects;
	const size_t room = objects_count(all, OBJECT_VOLUME);
	struct gpuq_term *terms = gpuq_arena_calloc(o->mem, room + 1, sizeof(*terms));
	struct gpuq_require *label = gpuq_arena_calloc(o->mem, 1, sizeof(*label));
	struct object_fact any = { .required = terms };
	size_t n_values = 0;
	const char **values;

	for (const struct object_fact *v = NULL;
	     (v = objects_volume(all, namespace_, claim, v)) != NULL;)
		n_values += label_of(v) ? label_of(v)->values.n : 0;
	values = gpuq_arena_calloc(o->mem, n_values + 1, sizeof(*values));
	if (!terms || !label || !values)
		return;
	for (const struct object_fact *v = NULL;
	     (v = objects_volume(all, namespace_, claim, v)) != NULL;) {
		const struct gpuq_require *is = label_of(v);

		if (v->n_required == 0)
			return; /* it can be reached from any node */
		if (is && (!label->key || strcmp(label->key, is->key) == 0)) {
			*label = (struct gpuq_require){ is->key,
							is->op,
							{ values, label->values.n } };
			for (size_t i = 0; i < is->values.n; i++)
				values[label->values.n++] = is->values.items[i];
			continue;
		}
		if (any.n_required + v->n_required >= room)
			return; /* several of each: the cluster decides */
		for (size_t i = 0; i < v->n_required; i++)
			terms[any.n_required++] = v->required[i];
	}
	if (label->key)
		terms[any.n_required++] = (struct gpuq_term){ .all = label, .n = 1 };
	restrict_to_volume(o, &any, claim, g);
	/* Pods of one claim are where its volume is. */
	if (g->pods_max > 1 && !g->topology_required)
		g->topology_required = "host";
}

/* Add the taints that pods of a RuntimeClass tolerate. */
static void tolerate(struct snap_objects *o, const struct object_fact *f, struct snap_group *g)
{
	const size_t n = g->n_tolerations + f->n_tolerations;
	struct gpuq_toleration *all;

	if (f->n_tolerations == 0)
		return;
	all = gpuq_arena_calloc(o->mem, n, sizeof(*all));
	if (!all)
		return;
	for (size_t i = 0; i < n; i++)
		all[i] = i < g->n_tolerations ? g->tolerations[i]
					      : f->tolerations[i - g->n_tolerations];
	g->tolerations = all;
	g->n_tolerations = (uint32_t)n;
}

/* Add countable resources: what runs is taken to have them as well. */
static void add_amounts(struct snap_objects *o, const struct objects_pod *p, struct snap_group *g)
{
	struct gpuq_amount all[GPUQ_RESOURCES_MAX], *kept;
	const size_t n = objects_add_amounts(o->m->objects, p, g->resources, g->n_resources, all,
					     GPUQ_RESOURCES_MAX);

	if (gpuq_amounts_same(all, n, g->resources, g->n_resources))
		return;
	kept = gpuq_arena_calloc(o->mem, n + 1, sizeof(*kept));
	if (!kept)
		return;
	memcpy(kept, all, n * sizeof(*kept));
	g->resources = kept;
	g->n_resources = (uint32_t)n;
}

struct snap_claims *snapshot_objects_claims(struct snap_objects *o)
{
	return o->claims;
}

void snapshot_objects_group(struct snap_objects *o, const struct queue *q,
			    const struct request_group *g, struct snap_group *out)
{
	const char *namespace_ = model_queue_namespace(q);
	const struct gpuq_group *where = g->where;
	const struct object_fact *f;
	struct objects_pod p = { .queue = q->name,
				 .namespace_ = namespace_,
				 .runtime_class = where ? where->runtime_class : NULL,
				 .cpu_milli = out->cpu_milli,
				 .memory_bytes = out->memory_bytes };

	objects_add(o->m->objects, &p);
	out->cpu_milli = p.cpu_milli;
	out->memory_bytes = p.memory_bytes;
	add_amounts(o, &p, out);
	if (p.runtime_class) {
		f = objects_find(o->m->objects, OBJECT_RUNTIME, "", p.runtime_class);
		if (f) {
			restrict_to(o, f, out);
			tolerate(o, f, out);
		}
	}
	for (size_t i = 0; where && i < where->n_volumes; i++)
		if (objects_claim(o->m->objects, namespace_, where->volumes[i].claim, &f) ==
		    OBJECTS_CLAIM_CHOOSES)
			near_volumes(o, namespace_, where->volumes[i].claim, out);
		else if (f)
			restrict_to_volume(o, f, where->volumes[i].claim, out);
}

/* ---- what runs ---- */

static void most(struct snap_amounts *a, int64_t cpu_milli, int64_t memory_bytes)
{
	a->cpu_milli = cpu_milli > a->cpu_milli ? cpu_milli : a->cpu_milli;
	a->memory_bytes = memory_bytes > a->memory_bytes ? memory_bytes : a->memory_bytes;
}

/* True if the cluster may have reported what the pod takes. */
static bool counts(const struct job *j, const struct pod *p)
{
	return p->attempt == j->attempt && model_pod_takes(p) && p->state != GPUQ_POD_PLANNED &&
	       p->group < j->request->spec.n_groups;
}

/* Return what a pod of the group will take when admission has added defaults and the overhead of
 * its runtime class. */
static struct snap_amounts predicted(const struct snap_objects *o, const struct job *j, uint32_t i)
{
	const struct request_group *g = &j->request->spec.groups[i];
	struct objects_pod p = { .queue = j->queue->name,
				 .namespace_ = model_queue_namespace(j->queue),
				 .runtime_class = g->where ? g->where->runtime_class : NULL,
				 .cpu_milli = g->cpu_milli,
				 .memory_bytes = g->memory_bytes };

	objects_add(o->m->objects, &p);
	return (struct snap_amounts){ p.cpu_milli, p.memory_bytes };
}

const struct snap_amounts *snapshot_objects_taken(struct snap_objects *o, const struct job *j)
{
	const struct request_spec *spec = &j->request->spec;
	struct snap_amounts *a, *expected;
	const struct pod *p;
	bool differs = false;

	/* Nothing is added anywhere, and nothing was: the usual case. */
	DL_FOREACH2(j->pods, p, job_next)
		differs |= counts(j, p) && (p->cpu_milli != spec->groups[p->group].cpu_milli ||
					    p->memory_bytes != spec->groups[p->group].memory_bytes);
	if (!differs && !o->adds[j->queue->ix] && !snapshot_objects_named(spec))
		return NULL;
	a = gpuq_arena_calloc(o->mem, spec->n_groups, sizeof(*a));
	expected = gpuq_arena_calloc(o->mem, spec->n_groups, sizeof(*expected));
	if (!a || !expected)
		return NULL;
	for (uint32_t i = 0; i < spec->n_groups; i++)
		expected[i] = predicted(o, j, i);
	DL_FOREACH2(j->pods, p, job_next)
		if (counts(j, p))
			most(&a[p->group], p->cpu_milli, p->memory_bytes);
		else if (p->attempt == j->attempt && model_pod_takes(p) &&
			 p->group < spec->n_groups)
			most(&a[p->group], expected[p->group].cpu_milli,
			     expected[p->group].memory_bytes);
	differs = false;
	for (uint32_t i = 0; i < spec->n_groups; i++)
		differs |= a[i].cpu_milli != expected[i].cpu_milli ||
			   a[i].memory_bytes != expected[i].memory_bytes;
	return differs ? a : NULL;
}
