#include "gpuqd/flow/admit/place_warn.h"

#include <string.h>

#include "gpuqd/site/provision.h"
#include "gpuqd/site/site_find.h"
#include "gpuqd/util/require.h"

#define NAMES_MAX 255
#define VALUES_MAX 5 /* of a label that are named */

/* Warn of nodes that are named and do not exist. */
static void warn_nodes(const struct model *m, const struct gpuq_strlist *nodes,
		       struct gpuq_buf *warnings)
{
	const char *names[NAMES_MAX + 1], *near;
	size_t n = 0;

	node_each(m, node)
		if (!node->gone && n < NAMES_MAX)
			names[n++] = node->name;
	names[n] = NULL;
	for (size_t i = 0; i < nodes->n && n > 0; i++) {
		const struct node *node = model_find_node(m, nodes->items[i]);

		if (node && !node->gone)
			continue;
		near = gpuq_nearest(nodes->items[i], names);
		gpuq_buf_printf(warnings, "no node is named %s%s%s%s: see gpuq nodes\n",
				nodes->items[i], near ? " (did you mean " : "", near ? near : "",
				near ? "?)" : "");
	}
}

static const char *label_of(const struct node *n, const char *key)
{
	return strcmp(key, "metadata.name") == 0 ? n->name : gpuq_strmap_get(&n->fact.labels, key);
}

/* Return the value of the label of nodes that the pool gets; NULL = it gets none, or they lack it. */
static const char *label_to_come(const struct site_pool *p, const char *key)
{
	return site_pool_grows(p) ? gpuq_strmap_get(&p->provisioning->machine->labels, key) : NULL;
}

/* True if some node, or one that a pool could get, meets it. */
static bool is_met(const struct model *m, const struct gpuq_require *r)
{
	node_each(m, n)
		if (!n->gone && require_holds(r, label_of(n, r->key)))
			return true;
	site_each(site_pool, m->site->pools, p)
		if (site_pool_grows(p) && require_holds(r, label_to_come(p, r->key)))
			return true;
	return false;
}

struct values {
	const char *seen[VALUES_MAX];
	size_t n;
};

static void add_value(struct values *v, const char *value, struct gpuq_buf *out)
{
	size_t i = 0;

	while (value && i < v->n && strcmp(v->seen[i], value) != 0)
		i++;
	if (!value || i < v->n || v->n == VALUES_MAX)
		return;
	gpuq_buf_printf(out, "%s%s", v->n ? ", " : " (there are: ", value);
	v->seen[v->n++] = value;
}

/* Append the values that nodes have, or would have, of a label, each once. */
static void add_values(const struct model *m, const char *key, struct gpuq_buf *out)
{
	struct values v = { .n = 0 };

	node_each(m, node)
		add_value(&v, node->gone ? NULL : label_of(node, key), out);
	site_each(site_pool, m->site->pools, p)
		add_value(&v, label_to_come(p, key), out);
	gpuq_buf_adds(out, v.n ? ")" : "");
}

/* Warn where each of the terms, of which one has to hold, has a requirement that no node meets. */
static void warn_labels(const struct model *m, const struct gpuq_group *g,
			struct gpuq_buf *warnings)
{
	const struct gpuq_require *unmet = NULL;

	for (size_t t = 0; t < g->n_required; t++) {
		const struct gpuq_term *term = &g->required[t];
		size_t i = 0;

		while (i < term->n && is_met(m, &term->all[i]))
			i++;
		if (i == term->n)
			return;
		if (!unmet)
			unmet = &term->all[i];
	}
	if (!unmet)
		return;
	gpuq_buf_printf(warnings, "no node has a label that the job asks for: %s", unmet->key);
	for (size_t i = 0; i < unmet->values.n && unmet->op == GPUQ_OP_IN; i++)
		gpuq_buf_printf(warnings, "%s%s", i ? " or " : "=", unmet->values.items[i]);
	add_values(m, unmet->key, warnings);
	gpuq_buf_adds(warnings, ": it is pending until one has\n");
}

void place_warn(const struct model *m, const struct gpuq_spec *spec, struct gpuq_buf *warnings)
{
	bool any = false;

	node_each(m, n)
		any |= !n->gone;
	for (size_t i = 0; any && i < spec->n_groups; i++) {
		warn_nodes(m, &spec->groups[i].nodes, warnings);
		warn_labels(m, &spec->groups[i], warnings);
	}
}
