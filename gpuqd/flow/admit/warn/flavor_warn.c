#include "gpuqd/flow/admit/warn/flavor_warn.h"

#include <inttypes.h>
#include <string.h>

#include "gpuqd/site/product.h"

#define NAMES_MAX 63

/* The flavors that nodes have, or the kinds of their devices where the site has no flavors. */
struct there {
	const char *names[NAMES_MAX + 1];
	uint32_t n_nodes[NAMES_MAX];
	size_t n;
	bool nameless; /* devices of no kind that is known */
};

static void count(const struct model *m, struct there *t)
{
	node_each(m, node) {
		const char *name = m->site->flavors.n ? node->flavor : node->kind;
		size_t i = 0;

		if (node->gone || (node->n_devices == 0 && node->fact.n_mig == 0))
			continue;
		if (!*name) {
			t->nameless = true;
			continue;
		}
		while (i < t->n && strcmp(t->names[i], name) != 0)
			i++;
		if (i == t->n && t->n < NAMES_MAX)
			t->names[t->n++] = name;
		if (i < NAMES_MAX)
			t->n_nodes[i]++;
	}
	t->names[t->n] = NULL;
}

/* Warn of a name that means several kinds: memory of different sizes, mostly. */
static void warn_several(const struct there *t, const char *wanted, struct gpuq_buf *warnings)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += product_is(t->names[i], wanted);
	if (n < 2)
		return;
	gpuq_buf_printf(warnings, "%s is", wanted);
	for (size_t i = 0, k = 0; i < t->n; i++) {
		if (!product_is(t->names[i], wanted))
			continue;
		k++;
		gpuq_buf_printf(warnings, "%s%s (%" PRIu32 " node%s)",
				k == 1   ? " "
				: k == n ? " or "
					 : ", ",
				t->names[i], t->n_nodes[i], t->n_nodes[i] == 1 ? "" : "s");
	}
	gpuq_buf_adds(warnings, ": the job gets any of them; name one for that one only\n");
}

void flavor_warn(const struct model *m, const struct gpuq_spec *spec, struct gpuq_buf *warnings)
{
	const struct gpuq_strlist *flavors = &spec->flavors;
	struct there t = { .n = 0 };
	const char *near;

	if (flavors->n == 0 || gpuq_spec_gpus_milli(spec) == 0)
		return;
	/* Nodes that can be requested are no mistake. */
	site_each(site_pool, m->site->pools, p)
		if (site_pool_grows(p) && gpuq_strlist_has(flavors, p->flavor))
			return;
	count(m, &t);
	for (size_t i = 0; m->site->flavors.n == 0 && i < flavors->n; i++)
		warn_several(&t, flavors->items[i], warnings);
	node_each(m, node)
		if (!node->gone && (node->n_devices || node->fact.n_mig) &&
		    node_is_of(m, node, flavors))
			return;
	near = gpuq_nearest(flavors->items[0], t.names);
	gpuq_buf_adds(warnings, "no node has devices of flavor ");
	for (size_t i = 0; i < flavors->n; i++)
		gpuq_buf_printf(warnings, "%s%s", i ? " or " : "", flavors->items[i]);
	for (size_t i = 0; i < t.n; i++)
		gpuq_buf_printf(warnings, "%s%s", i ? ", " : " (there are: ", t.names[i]);
	if (near)
		gpuq_buf_printf(warnings, "; did you mean %s?", near);
	if (t.n)
		gpuq_buf_addc(warnings, ')');
	else if (t.nameless)
		gpuq_buf_adds(warnings, " (the devices that there are have no type)");
	gpuq_buf_adds(warnings, ": the job is pending until one has\n");
}
