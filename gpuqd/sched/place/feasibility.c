#include "gpuqd/sched/place/feasibility.h"

#include "gpuqd/sched/place/nodes_int.h"
#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/util/require.h"
#include "libgpuq/spec/toleration.h"
#include "libgpuq/spec/profile.h"

#include <string.h>

/* Where the constraints of a pod allow it to run: names, labels, taints; whether capacity is free
 * there is decided elsewhere. Evaluated once per node class, and per node only where a constraint
 * names nodes. Semantics: Kubernetes, "Assigning Pods to Nodes" and "Taints and Tolerations". */

const char *feasibility_label(const struct snapshot *s, uint32_t node, const char *key)
{
	if (strcmp(key, REQUIRE_NAME_KEY) == 0)
		return s->nodes[node].name;
	for (uint32_t k = 0; k < s->n_label_keys; k++)
		if (strcmp(s->label_keys[k], key) == 0)
			return s->classes[s->nodes[node].cls].values[k];
	return NULL;
}

/* True if the node meets all requirements of a term, but for those on the label `but` (NULL = all). */
static bool term_holds(const struct snapshot *s, uint32_t node, const struct gpuq_term *t,
		       const char *but)
{
	for (size_t i = 0; i < t->n; i++)
		if ((!but || strcmp(t->all[i].key, but) != 0) &&
		    !require_holds(&t->all[i], feasibility_label(s, node, t->all[i].key)))
			return false;
	return t->n > 0; /* a term without requirements matches no node */
}

bool feasibility_tolerates(const struct snap_group *g, const struct snap_taint *t)
{
	/* A pod that requests devices tolerates the taint that keeps others off them, as the
	 * apiserver's ExtendedResourceToleration would have it. */
	if (g->gpus_milli > 0 && strcmp(t->key, "nvidia.com/gpu") == 0)
		return true;
	for (uint32_t i = 0; i < g->n_tolerations; i++)
		if (gpuq_tolerates(&g->tolerations[i], t->key, t->value, t->effect))
			return true;
	return false;
}

/* Check labels and hard taints of the node's class (and its name, where terms mention it). */
static bool allows(const struct snapshot *s, const struct snap_group *g, uint32_t node,
		   const char *but)
{
	const struct snap_class *cls = &s->classes[s->nodes[node].cls];
	bool any = g->n_required == 0;

	for (uint32_t t = 0; t < cls->n_taints; t++)
		if (strcmp(cls->taints[t].effect, "PreferNoSchedule") != 0 &&
		    !feasibility_tolerates(g, &cls->taints[t]))
			return false;
	for (uint32_t t = 0; !any && t < g->n_required; t++)
		any = term_holds(s, node, &g->required[t], but);
	return any;
}

bool feasibility_allows(const struct snapshot *s, const struct snap_group *g, uint32_t node)
{
	return allows(s, g, node, NULL);
}

bool feasibility_is_named(const struct snap_group *g, const char *node)
{
	return (g->nodes.n == 0 || gpuq_strlist_has(&g->nodes, node)) &&
	       !(g->exclude.n && gpuq_strlist_has(&g->exclude, node));
}

bool feasibility_lacks_sharing(const struct cycle *c, const struct snap_group *g, uint32_t flavor)
{
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if (c->s->nodes[n].flavor == flavor && c->s->nodes[n].n_devices &&
		    feasibility_is_named(g, c->s->nodes[n].name) &&
		    allows(c->s, g, n, REQUIRE_SHARING_KEY))
			return true;
	return false;
}

/* Return the points of preferred terms; an untolerated soft taint outweighs all of them. */
static int64_t preference(const struct cycle *c, const struct snap_group *g, uint32_t node)
{
	const struct snap_class *cls = &c->s->classes[c->s->nodes[node].cls];
	int64_t points = 0;

	for (uint32_t t = 0; t < g->n_preferred; t++)
		if (term_holds(c->s, node, &g->preferred[t], NULL))
			points += g->preferred[t].weight;
	for (uint32_t t = 0; t < cls->n_taints; t++)
		if (strcmp(cls->taints[t].effect, "PreferNoSchedule") == 0 &&
		    !feasibility_tolerates(g, &cls->taints[t]))
			points -= 1000000;
	return points;
}

/* True if a pod of the group would be apart from others there as it demands. */
bool feasibility_isolates(const struct snap_group *g, const struct snap_node *n)
{
	const bool shared = g->mig && gpuq_profile_is_shared(g->mig);
	const int gives = shared                ? GPUQ_ISOLATION_TIME_SLICE
			  : g->mig              ? GPUQ_ISOLATION_MIG
			  : snap_group_parts(g) ? n->isolation_part
						: n->isolation_whole;

	return g->gpus_milli == 0 || gives >= g->isolation;
}

/* True if a term mentions the names of nodes: then the answer for a class is not that for each of
 * its nodes. */
static bool speaks_of_names(const struct gpuq_term *terms, uint32_t n)
{
	for (uint32_t t = 0; t < n; t++)
		for (size_t i = 0; i < terms[t].n; i++)
			if (strcmp(terms[t].all[i].key, REQUIRE_NAME_KEY) == 0)
				return true;
	return false;
}

/* Sort the group's nodes into tiers of equal preference; a single tier is dropped. */
static void make_tiers(struct cycle *c, const struct snap_group *g, struct group_fit *fit,
		       const int64_t *points)
{
	int64_t above = INT64_MAX;

	for (;;) {
		int64_t level = INT64_MIN;
		uint64_t *tier, **tiers;

		for (uint32_t n = 0; n < c->s->n_nodes; n++)
			if (bits_has(fit->nodes, n) && points[n] < above && points[n] > level)
				level = points[n];
		if (level == INT64_MIN)
			return;
		tier = cycle_alloc(c, c->nodes->n_words, sizeof(*tier));
		tiers = cycle_alloc(c, fit->n_tiers + 1, sizeof(*tiers));
		if (!tier || !tiers)
			return;
		for (uint32_t n = 0; n < c->s->n_nodes; n++)
			if (bits_has(fit->nodes, n) && points[n] == level)
				bits_add(tier, n);
		if (fit->n_tiers)
			memcpy(tiers, fit->tiers, fit->n_tiers * sizeof(*tiers));
		tiers[fit->n_tiers++] = tier;
		fit->tiers = tiers;
		above = level;
	}
}

/* Sort the nodes by preference, where anything is preferred or a taint discourages; otherwise all
 * are equal. */
static void prefer(struct cycle *c, const struct snap_group *g, struct group_fit *fit)
{
	const struct snapshot *s = c->s;
	const bool by_name = speaks_of_names(g->preferred, g->n_preferred);
	int64_t *points, *of_class;
	bool *done, soft = g->n_preferred > 0;

	for (uint32_t k = 0; !soft && k < s->n_classes; k++)
		for (uint32_t t = 0; t < s->classes[k].n_taints; t++)
			soft |= strcmp(s->classes[k].taints[t].effect, "PreferNoSchedule") == 0;
	if (!soft)
		return;
	points = cycle_alloc(c, s->n_nodes, sizeof(*points));
	of_class = cycle_alloc(c, s->n_classes, sizeof(*of_class));
	done = cycle_alloc(c, s->n_classes, sizeof(*done));
	if (c->failed)
		return;
	for (uint32_t n = 0; n < s->n_nodes; n++) {
		const uint32_t k = s->nodes[n].cls;

		if (!done[k] || by_name)
			of_class[k] = preference(c, g, n);
		done[k] = true;
		points[n] = of_class[k];
	}
	make_tiers(c, g, fit, points);
	if (fit->n_tiers < 2)
		fit->n_tiers = 0;
}

struct feasibility {
	struct group_fit *fits; /* by snap_request.where */
	struct glance *glances; /* by where, then flavor (n_flavors = none) */
};

void feasibility_init(struct cycle *c)
{
	const size_t n = c->s->n_wheres;
	struct feasibility *f = cycle_alloc(c, 1, sizeof(*f));

	c->feasibility = f;
	if (!f)
		return;
	f->fits = cycle_alloc(c, n, sizeof(*f->fits));
	f->glances = cycle_alloc(c, n * (c->s->n_flavors + 1), sizeof(*f->glances));
}

const struct group_fit *feasibility_of(struct cycle *c, uint32_t request, uint32_t group)
{
	const struct snapshot *s = c->s;
	const struct snap_group *g = &s->requests[request].groups[group];
	struct group_fit *fit = &c->feasibility->fits[s->requests[request].where[group]];
	enum { UNKNOWN, YES, NO };
	uint8_t *verdict;
	bool by_name;

	/* Groups with equal constraints share one answer, computed once in a cycle. */
	if (fit->nodes)
		return fit;
	by_name = speaks_of_names(g->required, g->n_required);
	verdict = cycle_alloc(c, s->n_classes, sizeof(*verdict));
	fit->nodes = cycle_alloc(c, c->nodes->n_words, sizeof(*fit->nodes));
	if (!verdict || !fit->nodes)
		return fit;
	for (uint32_t n = 0; n < s->n_nodes; n++) {
		const uint32_t k = s->nodes[n].cls;

		if (!feasibility_is_named(g, s->nodes[n].name))
			continue;
		if (verdict[k] == UNKNOWN || by_name)
			verdict[k] = feasibility_allows(c->s, g, n) ? YES : NO;
		if (verdict[k] == YES && !feasibility_isolates(g, &s->nodes[n])) {
			fit->n_weak++;
		} else if (verdict[k] == YES) {
			bits_add(fit->nodes, n);
			fit->n_nodes++;
		}
	}
	prefer(c, g, fit);
	return fit;
}

/* Return the entry for the group's constraints on one flavor. */
static struct glance *glance_at(const struct cycle *c, uint32_t request, uint32_t group,
				uint32_t flavor)
{
	const uint32_t where = c->s->requests[request].where[group];

	return &c->feasibility->glances[(size_t)where * (c->s->n_flavors + 1) +
					(flavor == SNAP_NONE ? c->s->n_flavors : flavor)];
}

/* Free devices only become fewer in a cycle, so that the last count is still a bound. */
int64_t feasibility_glance_bound(const struct cycle *c, uint32_t request, uint32_t group,
				 uint32_t flavor)
{
	const struct glance *g = glance_at(c, request, group, flavor);

	return g->generation ? g->devices : INT64_MAX;
}

bool feasibility_glance_rules_out(const struct cycle *c, uint32_t request, uint32_t group,
				  uint32_t flavor, const struct need *one)
{
	const struct glance *g = glance_at(c, request, group, flavor);

	/* Parts and instances may fit where no whole device is free. */
	if (!g->generation || !g->cpu || one->parts || one->migs)
		return false;
	return one->whole > c->nodes->max_whole ||
	       (one->cpu > 0 && one->cpu > g->cpu[one->whole]) ||
	       (one->memory > 0 && one->memory > g->memory[one->whole]);
}

/* Count a node: its free devices, and the most cpu and memory beside exactly this many of them. */
static void glance_at_node(struct cycle *c, struct glance *g, uint32_t node)
{
	struct nodes *nodes = c->nodes;
	const uint32_t whole = nodes->now.whole[node];

	c->steps++;
	g->devices += whole;
	if (g->largest < whole)
		g->largest = whole;
	if (g->cpu[whole] < nodes->now.cpu[node])
		g->cpu[whole] = nodes->now.cpu[node];
	if (g->memory[whole] < nodes->now.memory[node])
		g->memory[whole] = nodes->now.memory[node];
}

const struct glance *feasibility_glance(struct cycle *c, uint32_t request, uint32_t group,
					uint32_t flavor)
{
	struct nodes *nodes = c->nodes;
	struct glance *g = glance_at(c, request, group, flavor);
	const struct group_fit *fit = feasibility_of(c, request, group);

	/* Nothing has started since it was computed. */
	if (g->generation == c->plan.n_actions + 1 || c->failed)
		return g;
	if (!g->cpu) {
		g->cpu = cycle_alloc(c, nodes->max_whole + 1, sizeof(*g->cpu));
		g->memory = cycle_alloc(c, nodes->max_whole + 1, sizeof(*g->memory));
	}
	if (c->failed)
		return g;
	memset(g->cpu, 0, (nodes->max_whole + 1) * sizeof(*g->cpu));
	memset(g->memory, 0, (nodes->max_whole + 1) * sizeof(*g->memory));
	*g = (struct glance){ .generation = c->plan.n_actions + 1,
			      .cpu = g->cpu,
			      .memory = g->memory };
	for (uint32_t w = 0; w < nodes->n_words; w++) {
		uint64_t word = fit->nodes[w] & nodes->now.usable[w];

		if (flavor != SNAP_NONE)
			word &= nodes->flavors[flavor][w];
		while (word)
			glance_at_node(c, g, bits_pop(&word, w * 64));
	}
	/* A node with more free devices can serve a request for fewer as well. */
	for (uint32_t k = nodes->max_whole; k-- > 0;) {
		if (g->cpu[k] < g->cpu[k + 1])
			g->cpu[k] = g->cpu[k + 1];
		if (g->memory[k] < g->memory[k + 1])
			g->memory[k] = g->memory[k + 1];
	}
	return g;
}
