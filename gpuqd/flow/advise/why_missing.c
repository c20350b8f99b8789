#include "gpuqd/flow/advise/why_missing.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/site/product_terms.h"
#include "gpuqd/snapshot/snapshot_take_pools.h"
#include "gpuqd/state/view/view_val.h"
#include "gpuqd/util/require.h"

#define OBSTACLES_MAX 24u
#define NAMED_MAX 5u /* nodes, or values of a label */
#define LINES_MAX 4u
#define OWN_LABELS "gpuq.io/" /* backend.h: how a node shares its devices */

enum what { NODE, EXCLUDE, LABEL, FLAVOR, SHARING, TAINT, SPOT };

static const char *const words[] = { "node",    "exclude", "label", "flavor",
				     "sharing", "taint",   "spot" };

/* A demand that some node does not meet. */
struct obstacle {
	enum what what;
	const struct gpuq_require *require; /* LABEL, FLAVOR by kind, SHARING */
	const struct snap_taint *taint;
	uint32_t n_failed; /* nodes that do not meet it */
	uint32_t n_alone; /* nodes that meet all but this */
	uint32_t nodes[NAMED_MAX];
};

struct search {
	const struct snapshot *s;
	const struct snap_request *r;
	const struct snap_group *g;
	struct obstacle all[OBSTACLES_MAX];
	uint32_t n, n_nodes; /* n_nodes: looked at */
	uint32_t n_met, n_fit; /* nodes that meet all; that are large enough besides */
	bool made_up; /* those looked at are ones that pools could get */
};

/* True if an empty node has the parts of devices that a pod takes. One of R replicas is an R-th of a device, and two may
 * be of the same. */
static bool has_parts(const struct snap_group *g, const struct snap_node *n)
{
	const uint32_t parts = snap_group_parts(g), r = n->replicas > 1 ? n->replicas : 1;

	return parts <= (r > 1 ? 1 : n->n_devices) && n->n_devices > 0 &&
	       (int64_t)snap_group_part(g) * r <= SNAP_MILLI &&
	       g->gpu_memory_bytes <= n->device_memory_bytes / r;
}

/* True if an empty node has the devices that a pod takes; its instances are among the resources. */
static bool has_devices(const struct snap_group *g, const struct snap_node *n)
{
	if (g->mig || g->gpus_milli == 0)
		return true;
	if (snap_group_parts(g))
		return has_parts(g, n);
	return n->replicas <= 1 && (int64_t)n->n_devices * SNAP_MILLI >= g->gpus_milli;
}

/* True if an empty node is large enough for a pod, and isolates its devices as much as that demands. */
static bool is_large(const struct search *x, uint32_t node)
{
	const struct snap_node *n = &x->s->nodes[node];
	const int64_t *have = &x->s->extra_total[(size_t)node * x->s->n_extras];

	/* A node that can be cut into instances, or out of them, has those that it is cut into. */
	for (uint32_t i = 0; i < x->g->n_takes && n->n_layouts == 0; i++)
		if (have[x->g->takes[i].extra] < x->g->takes[i].n)
			return false;
	return (n->n_layouts > 0 || has_devices(x->g, n)) && n->cpu_milli >= x->g->cpu_milli &&
	       n->memory_bytes >= x->g->memory_bytes && feasibility_isolates(x->g, n);
}

static bool has_flavor(const struct search *x, uint32_t flavor)
{
	for (uint32_t i = 0; i < x->r->n_flavor_ix; i++)
		if (x->r->flavor_ix[i] == flavor)
			return true;
	return x->g->gpus_milli == 0;
}

/* Return which kind of demand a requirement is. */
static enum what kind_of(const struct gpuq_require *r)
{
	if (strcmp(r->key, PRODUCT_LABEL) == 0)
		return FLAVOR;
	if (strcmp(r->key, SPOT_LABEL) == 0 &&
	    (r->op == GPUQ_OP_NOT_EXISTS || r->op == GPUQ_OP_NOT_IN))
		return SPOT;
	return strncmp(r->key, OWN_LABELS, sizeof(OWN_LABELS) - 1) == 0 ? SHARING : LABEL;
}

static struct obstacle *add(struct search *x, enum what what)
{
	struct obstacle *o = x->n < OBSTACLES_MAX ? &x->all[x->n++] : NULL;

	if (o)
		o->what = what;
	return o;
}

/* Note what the group demands; each term by its first requirement where one of several has to hold. */
static void demands(struct search *x)
{
	const struct snap_group *g = x->g;
	struct obstacle *o;

	if (g->nodes.n)
		add(x, NODE);
	if (g->exclude.n)
		add(x, EXCLUDE);
	if (g->gpus_milli > 0 && x->r->n_flavors)
		add(x, FLAVOR);
	for (size_t i = 0; g->n_required && i < g->required[0].n; i++) {
		const struct gpuq_require *r = &g->required[0].all[i];

		o = add(x, kind_of(r));
		if (o)
			o->require = r;
	}
}

/* Return the obstacle that a taint is; NULL = there are too many. */
static struct obstacle *of_taint(struct search *x, const struct snap_taint *t)
{
	struct obstacle *o;

	for (uint32_t i = 0; i < x->n; i++) {
		const struct snap_taint *had = x->all[i].taint;

		if (had && strcmp(had->key, t->key) == 0 && strcmp(had->value, t->value) == 0 &&
		    strcmp(had->effect, t->effect) == 0)
			return &x->all[i];
	}
	o = add(x, TAINT);
	if (o)
		o->taint = t;
	return o;
}

/* True if some term holds whole: then a requirement of the first that the node fails is no obstacle. */
static bool other_term(const struct search *x, uint32_t node)
{
	for (uint32_t t = 1; t < x->g->n_required; t++) {
		const struct gpuq_term *term = &x->g->required[t];
		size_t i = 0;

		while (i < term->n &&
		       require_holds(&term->all[i],
				     feasibility_label(x->s, node, term->all[i].key)))
			i++;
		if (i == term->n)
			return true;
	}
	return false;
}

static bool meets(const struct search *x, const struct obstacle *o, uint32_t node)
{
	const struct snap_node *n = &x->s->nodes[node];

	switch (o->what) {
	case NODE:
		return gpuq_strlist_has(&x->g->nodes, n->name);
	case EXCLUDE:
		return !gpuq_strlist_has(&x->g->exclude, n->name);
	case TAINT:
		return true; /* counted by node */
	default:
		if (o->require)
			return require_holds(o->require,
					     feasibility_label(x->s, node, o->require->key)) ||
			       other_term(x, node);
		return has_flavor(x, n->flavor);
	}
}

static void look_at(struct search *x, uint32_t node)
{
	const struct snap_class *cls = &x->s->classes[x->s->nodes[node].cls];
	struct obstacle *only = NULL;
	uint32_t failed = 0;

	x->n_nodes++;
	for (uint32_t i = 0; i < x->n; i++) {
		if (x->all[i].taint || meets(x, &x->all[i], node))
			continue;
		failed++;
		only = &x->all[i];
		only->n_failed++;
	}
	for (uint32_t t = 0; t < cls->n_taints; t++) {
		if (strcmp(cls->taints[t].effect, "PreferNoSchedule") == 0 ||
		    feasibility_tolerates(x->g, &cls->taints[t]))
			continue;
		failed++;
		only = of_taint(x, &cls->taints[t]);
		if (only)
			only->n_failed++;
	}
	x->n_met += failed == 0;
	if (!is_large(x, node))
		return;
	x->n_fit += failed == 0;
	if (failed != 1 || !only)
		return;
	if (only->n_alone < NAMED_MAX)
		only->nodes[only->n_alone] = node;
	only->n_alone++;
}

/* Look at the nodes that are there, or at those that pools could get. Returns how many there are. */
static uint32_t look_at_all(struct search *x, bool made_up)
{
	for (uint32_t i = 0; i < x->n; i++)
		x->all[i].n_failed = x->all[i].n_alone = 0;
	x->n_nodes = x->n_met = x->n_fit = 0;
	x->made_up = made_up;
	for (uint32_t n = 0; n < x->s->n_nodes; n++)
		if (x->s->nodes[n].made_up == made_up)
			look_at(x, n);
	return x->n_nodes;
}

/* True if one demand alone keeps the job off some node. */
static bool is_near(const struct search *x)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (x->all[i].n_alone)
			return true;
	return false;
}

/* The nearest first: what more nodes fail alone, then what more nodes fail. */
static int nearer(const void *a, const void *b)
{
	const struct obstacle *x = a, *y = b;

	if (x->n_alone != y->n_alone)
		return x->n_alone > y->n_alone ? -1 : 1;
	if (x->n_failed != y->n_failed)
		return x->n_failed > y->n_failed ? -1 : 1;
	return (int)x->what - (int)y->what;
}

static void add_word(struct gpuq_arena *a, struct gpuq_val *list, const char *word)
{
	if (!word || list->n >= NAMED_MAX)
		return;
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i]->s, word) == 0)
			return;
	gpuq_add(a, list, gpuq_str(a, word));
}

static struct gpuq_val *joined(struct gpuq_arena *a, const char *first, const char *const *words_,
			       size_t n)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct gpuq_val *v;

	gpuq_buf_adds(&text, first);
	for (size_t i = 0; i < n; i++)
		gpuq_buf_printf(&text, "%s%s", i ? "," : "", words_[i]);
	v = gpuq_strn(a, text.data ? text.data : "", text.len);
	gpuq_buf_done(&text);
	return v;
}

/* Return what the job asks for, or for a taint what the nodes have. */
static struct gpuq_val *object(const struct search *x, const struct obstacle *o,
			       struct gpuq_arena *a)
{
	static const char *const ops[] = {
		[GPUQ_OP_IN] = "%s=",         [GPUQ_OP_NOT_IN] = "%s!=", [GPUQ_OP_EXISTS] = "%s",
		[GPUQ_OP_NOT_EXISTS] = "!%s", [GPUQ_OP_GT] = "%s>",      [GPUQ_OP_LT] = "%s<"
	};
	const struct gpuq_require *r = o->require;
	const char *at, *first = "";

	if (o->what == NODE)
		return joined(a, "", x->g->nodes.items, x->g->nodes.n);
	if (o->what == EXCLUDE)
		return joined(a, "", x->g->exclude.items, x->g->exclude.n);
	if (o->what == TAINT) {
		at = gpuq_arena_printf(a, "%s%s%s:%s", o->taint->key, *o->taint->value ? "=" : "",
				       o->taint->value, o->taint->effect);
		return gpuq_str(a, at ? at : "");
	}
	if (!r)
		return joined(a, "", x->r->flavors, x->r->n_flavors);
	if (o->what != FLAVOR) {
		const char *form = ops[r->op], *mark = strstr(form, "%s");

		first = gpuq_arena_printf(a, "%.*s%s%s", (int)(mark - form), form, r->key,
					  mark + 2);
	}
	return joined(a, first ? first : "", r->values.items, r->values.n);
}

static struct gpuq_val *there(const struct search *x, const struct obstacle *o,
			      struct gpuq_arena *a)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t n = 0; o->what >= LABEL && o->what < TAINT && n < x->s->n_nodes; n++) {
		const struct snap_node *node = &x->s->nodes[n];

		if (node->made_up != x->made_up || (o->what == FLAVOR && node->n_devices == 0))
			continue;
		add_word(a, list,
			 o->require                  ? feasibility_label(x->s, n, o->require->key)
			 : node->flavor != SNAP_NONE ? x->s->flavors[node->flavor].name
						     : NULL);
	}
	return list;
}

/* Return what keeps the group off nodes that have the label; NULL = there are none, or it is not known. */
static const char *not_alone(const struct search *x, const struct obstacle *o)
{
	for (uint32_t n = 0; o->what == LABEL && o->require && n < x->s->n_nodes; n++)
		if (x->s->nodes[n].by_memory && x->g->gpus_milli > 1000 && meets(x, o, n))
			return "its nodes of gpushare give a pod one device or a part of one";
	return NULL;
}

static void report(const struct search *x, struct obstacle *o, struct gpuq_arena *a,
		   struct gpuq_val *list)
{
	struct gpuq_val *v = gpuq_map(a), *nodes = gpuq_list(a);

	/* Nodes that are not there yet have names of our own. */
	for (uint32_t i = 0; i < o->n_alone && i < NAMED_MAX; i++)
		if (!x->s->nodes[o->nodes[i]].made_up)
			gpuq_add(a, nodes, gpuq_str(a, x->s->nodes[o->nodes[i]].name));
	gpuq_put(a, v, "what", gpuq_str(a, words[o->what]));
	gpuq_put(a, v, "object", object(x, o, a));
	gpuq_put(a, v, "there", there(x, o, a));
	gpuq_put(a, v, "note", view_word(a, not_alone(x, o)));
	gpuq_put(a, v, "nodes", nodes);
	gpuq_put(a, v, "n_nodes", gpuq_int(a, nodes->n ? o->n_alone : 0));
	gpuq_add(a, list, v);
}

struct gpuq_val *why_missing(const struct why_case *c)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[c->job].request];
	struct gpuq_val *list = gpuq_list(c->a);

	for (uint32_t k = 0; k < r->n_groups && list && list->n < LINES_MAX; k++) {
		struct search x = { .s = c->s, .r = r, .g = &r->groups[k] };
		uint32_t best, least;
		bool near;

		demands(&x);
		/* Nothing is missing where a node that a pool could get would do. */
		look_at_all(&x, true);
		if (x.n_fit)
			continue;
		/* Pools of the right flavor, say, whose nodes lack a label alone, where no node is of that flavor. */
		near = is_near(&x);
		if (look_at_all(&x, false) == 0 || (near && !is_near(&x)))
			look_at_all(&x, true);
		if (x.n_fit || x.n == 0)
			continue;
		qsort(x.all, x.n, sizeof(x.all[0]), nearer);
		best = x.all[0].n_alone;
		/* Where nodes lack nothing by name, the pod is too large for them. */
		if (best == 0 && x.n_met)
			continue;
		/* Those that are near alone; else all that no node meets, or all that some do not. */
		least = x.all[0].n_failed == x.n_nodes ? x.n_nodes : 1;
		for (uint32_t i = 0; i < x.n && list->n < LINES_MAX; i++)
			if (best ? x.all[i].n_alone > 0 : x.all[i].n_failed >= least)
				report(&x, &x.all[i], c->a, list);
	}
	return list;
}
