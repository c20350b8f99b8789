#include "gpuqd/flow/admit/warn/place_warn.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/flow/admit/warn/claim_fit.h"
#include "gpuqd/flow/admit/warn/run_limit.h"
#include "gpuqd/site/inventory.h"
#include "gpuqd/site/pod_keys.h"
#include "gpuqd/site/provision.h"
#include "gpuqd/site/site_find.h"
#include "gpuqd/snapshot/choices/snapshot_choices.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/asks/ask_near.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/require.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

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

/* True if it is a flavor of some node: sinfo has flavors in the column of Slurm's features. */
static bool is_flavor(const struct model *m, const char *name)
{
	node_each(m, n)
		if (!n->gone && n->flavor && strcmp(n->flavor, name) == 0)
			return true;
	return false;
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
	if (is_flavor(m, unmet->key))
		gpuq_buf_printf(warnings, " (it is a flavor: --flavor %s)", unmet->key);
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

/* ---- where a group may run ---- */

/* True if one of the group's terms holds for the labels that are there. */
static bool is_wanted(const struct gpuq_group *g,
		      const char *(*label)(const void *of, const char *), const void *of)
{
	for (size_t t = 0; t < g->n_required; t++) {
		const struct gpuq_term *term = &g->required[t];
		size_t i = 0;

		while (i < term->n && require_holds(&term->all[i], label(of, term->all[i].key)))
			i++;
		if (i == term->n)
			return true;
	}
	return g->n_required == 0;
}

static const char *node_label(const void *of, const char *key)
{
	return label_of(of, key);
}

static const char *pool_label(const void *of, const char *key)
{
	return label_to_come(of, key);
}

/* True if the group's names and labels let its pods be on the node. */
static bool may_be_on(const struct node *n, const struct gpuq_group *g)
{
	return !n->gone && (g->nodes.n == 0 || gpuq_strlist_has(&g->nodes, n->name)) &&
	       !gpuq_strlist_has(&g->exclude, n->name) && is_wanted(g, node_label, n);
}

/* True if the group names nodes or labels, and some node, or one that a pool could get, has them; where none has, place_warn()
 * tells it. */
static bool is_bound(const struct model *m, const struct gpuq_group *g)
{
	if (g->nodes.n == 0 && g->exclude.n == 0 && g->n_required == 0)
		return false;
	node_each(m, n)
		if (may_be_on(n, g))
			return true;
	site_each(site_pool, m->site->pools, p)
		if (g->nodes.n == 0 && site_pool_grows(p) && is_wanted(g, pool_label, p))
			return true;
	return false;
}

/* ---- sizes ---- */

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* True if the node has of each countable resource what a pod takes. Local storage that it does not
 * report is not counted. */
static bool has_resources(const struct node *n, const struct gpuq_group *g)
{
	for (size_t i = 0; i < g->n_resources; i++) {
		const int64_t have = gpuq_amounts_get(n->fact.resources, n->fact.n_resources,
						      g->resources[i].name);

		if (have < g->resources[i].count &&
		    (have || strcmp(g->resources[i].name, GPUQ_RESOURCE_STORAGE) != 0))
			return false;
	}
	return true;
}

/* Return the most instances that a node has of one of the profiles that do. */
static int64_t instances(const struct node *n, const struct gpuq_group *g)
{
	int64_t count = 0;

	for (size_t k = 0; g->mig && k <= g->mig_more.n; k++)
		for (size_t i = 0; i < n->fact.n_mig; i++)
			if (gpuq_profile_serves(n->fact.mig[i].profile,
						k ? g->mig_more.items[k - 1] : g->mig))
				count = most(count, n->fact.mig[i].count);
	return count;
}

/* A part of a device, as a group requests it. */
struct piece {
	int64_t milli; /* of one device; 0 = memory alone */
	int64_t bytes; /* of its memory; 0 = in proportion */
	int64_t devices; /* of which it takes a part each; 0 = it takes no parts */
};

static struct piece piece_of(const struct gpuq_group *g)
{
	const int64_t part = g->gpus_milli % SNAP_MILLI;
	const int64_t cores = amount_percent(g->gpu_cores);

	if (!backend_shares(g))
		return (struct piece){ 0 };
	return (struct piece){ most(part, cores), g->gpu_memory_bytes,
			       g->gpus_milli < SNAP_MILLI ? 1 : g->gpus_milli / SNAP_MILLI };
}

/* The devices of a node, or of one that a pool could get, for one pod. */
struct offer {
	int64_t gpus_milli; /* whole devices */
	int64_t share,
		shared; /* thousandths of a device that can be had, and of how many devices */
	int64_t bytes; /* of the memory of one device, or of such a share */
	bool replicas;
	const char *
		one; /* the system that would give a pod one device or a part of one, and no more; NULL */
};

/* True if the group takes no devices but NVIDIA's. */
static bool takes_nvidia(const struct model *m, const struct gpuq_group *g, bool flavors)
{
	return backend_wants_nvidia(g, flavors) || inventory_is_nvidia(m->site, g);
}

/* Return the devices of a node, in the way that the group requests some. */
static struct offer offer_of(const struct model *m, const struct node *n,
			     const struct gpuq_group *g, bool flavors)
{
	const char *device = gpuq_strmap_text(&n->fact.labels, SHARE_DEVICES);
	const int64_t r = n->fact.replicas > 1 ? n->fact.replicas : 1;
	struct offer o = { .replicas = r > 1 };

	if (n->closed || n->n_devices == 0)
		return o;
	if (*device && takes_nvidia(m, g, flavors))
		return o;
	for (uint32_t i = 0; i < n->n_devices; i++)
		o.bytes = most(o.bytes, (n->devices[i].memory_mib / r) << 20);
	if (g->n_claims == 0 && n->backend && n->backend->takes && !n->backend->takes(g)) {
		o.one = g->gpus_milli > SNAP_MILLI ? n->backend->title : NULL;
		return o;
	}
	o.gpus_milli = r > 1 ? 0 : (int64_t)n->n_devices * SNAP_MILLI;
	o.share = SNAP_MILLI / r;
	o.shared = r > 1 ? 1 : n->n_devices;
	return o;
}

/* True if devices of that sort have room for a pod of the group. */
static bool holds(const struct offer *o, const struct gpuq_group *g)
{
	const struct piece p = piece_of(g);

	if (g->mig)
		return false;
	if (p.devices == 0)
		return o->gpus_milli >= g->gpus_milli;
	return o->share > 0 && o->share >= p.milli && o->shared >= p.devices && o->bytes >= p.bytes;
}

enum much { MILLI, GIB, BYTES, COUNT };

static const char *much_text(int64_t n, enum much unit, char out[32])
{
	static const double of[] = { [MILLI] = 1000, [GIB] = 1 << 30, [COUNT] = 1 };

	if (unit == BYTES)
		gpuq_bytes_print(n, out, 32);
	else
		snprintf(out, 32, "%.4g", (double)n / of[unit]);
	return out;
}

/* Append a request that exceeds the largest node. */
static void warn_much(struct gpuq_buf *out, int64_t asked, int64_t largest, enum much unit,
		      const char *of)
{
	char one[32], two[32];

	if (asked > largest)
		gpuq_buf_printf(out, "%s%s %s requested, %s on the largest node",
				out->len ? "; " : " (", much_text(asked, unit, one), of,
				much_text(largest, unit, two));
}

/* The flavors that bind the nodes of a group; NULL: none does, or no node at all is of them, which
 * flavor_warn() tells. */
static const struct gpuq_strlist *bound_to(const struct model *m, const struct gpuq_spec *spec,
					   const struct gpuq_group *g)
{
	if (spec->flavors.n == 0 || g->gpus_milli == 0)
		return NULL;
	node_each(m, n)
		if (!n->gone && node_is_of(m, n, &spec->flavors))
			return &spec->flavors;
	return NULL;
}

static void add_flavors(struct gpuq_buf *out, const struct gpuq_strlist *flavors)
{
	for (size_t i = 0; i < flavors->n; i++)
		gpuq_buf_printf(out, "%s%s", i ? " or " : " of ", flavors->items[i]);
}

/* Return the machine that a pool could get for the group; NULL = none, or one of another flavor, or with other labels
 * than those that bind the group. A pool that grows has a flavor; others need none. */
static const struct provision_machine *machine_for(const struct model *m, const struct site_pool *p,
						   const struct gpuq_group *g,
						   const struct gpuq_strlist *flavors, bool bound)
{
	if (bound && (g->nodes.n || !is_wanted(g, pool_label, p)))
		return NULL;
	if (takes_nvidia(m, g, flavors->n > 0) && inventory_comes(m->site, p))
		return NULL;
	if (!site_pool_grows(p) || (g->gpus_milli > 0 && !gpuq_strlist_passes(flavors, p->flavor)))
		return NULL;
	return p->provisioning->machine;
}

/* Return its devices: their memory is not known, and they have no instances. */
static struct offer offer_of_machine(const struct site_pool *p, const struct provision_machine *is,
				     const struct gpuq_group *g)
{
	struct offer o = { .gpus_milli = is->gpus * SNAP_MILLI };

	if (backend_pool_takes(site_sharing_word(p->sharing), g)) {
		o.share = SNAP_MILLI;
		o.shared = is->gpus;
	}
	return o;
}

/* True if a node of a pool that grows could hold a pod of the group. */
static bool may_come(const struct model *m, const struct gpuq_group *g,
		     const struct gpuq_strlist *flavors, bool bound)
{
	site_each(site_pool, m->site->pools, p) {
		const struct provision_machine *is = machine_for(m, p, g, flavors, bound);
		const struct offer o =
			is ? offer_of_machine(p, is, g) : (struct offer){ .share = 0 };

		if (is && holds(&o, g) && run_limit_holds(is, g))
			return true;
	}
	return false;
}

/* The most of each amount that a node has, or one that a pool could get. */
struct largest {
	struct offer devices;
	int64_t migs, cpu_milli, memory_bytes;
	int64_t resources[GPUQ_RESOURCES_MAX];
};

static void count_devices(struct largest *l, struct offer o)
{
	l->devices.gpus_milli = most(l->devices.gpus_milli, o.gpus_milli);
	l->devices.share = most(l->devices.share, o.share);
	l->devices.shared = most(l->devices.shared, o.shared);
	l->devices.bytes = most(l->devices.bytes, o.bytes);
	l->devices.replicas |= o.replicas;
	l->devices.one = o.one ? o.one : l->devices.one;
}

/* Count the machines of pools that grow. */
static void count_machines(const struct model *m, const struct gpuq_group *g,
			   const struct gpuq_strlist *flavors, bool bound, struct largest *l)
{
	site_each(site_pool, m->site->pools, p) {
		const struct provision_machine *is = machine_for(m, p, g, flavors, bound);

		if (!is)
			continue;
		count_devices(l, offer_of_machine(p, is, g));
		l->cpu_milli = most(l->cpu_milli, is->cpu_milli ? is->cpu_milli : INT64_MAX);
		l->memory_bytes =
			most(l->memory_bytes, is->memory_bytes ? is->memory_bytes : INT64_MAX);
		for (size_t i = 0; i < g->n_resources; i++)
			l->resources[i] =
				most(l->resources[i], provision_has(is, g->resources[i].name));
	}
}

/* Append the pool whose machine comes nearest. */
static void add_nearest(const struct model *m, const struct gpuq_spec *spec,
			const struct gpuq_group *g, struct gpuq_buf *out)
{
	const struct ask_pod pod = { .flavors = &spec->flavors,
				     .gpus_milli = g->mig ? 0 : g->gpus_milli,
				     .cpu_milli = g->cpu_milli,
				     .memory_bytes = g->memory_bytes,
				     .resources = g->resources,
				     .n_resources = (uint32_t)g->n_resources };
	struct gpuq_buf text = GPUQ_BUF_INIT;

	if (ask_near(m->site, &pod, &text))
		gpuq_buf_printf(out, "%s%s", out->len ? "; " : " (", gpuq_buf_str(&text));
	gpuq_buf_done(&text);
}

/* True if the node could hold a pod of the group if nothing ran there; counts what it has. */
static bool fits_on(const struct model *m, const struct node *n, const struct gpuq_group *g,
		    bool flavors, struct largest *l)
{
	const struct offer o = offer_of(m, n, g, flavors);

	count_devices(l, o);
	l->migs = most(l->migs, instances(n, g));
	l->cpu_milli = most(l->cpu_milli, n->fact.cpu_milli);
	l->memory_bytes = most(l->memory_bytes, n->fact.memory_bytes);
	for (size_t i = 0; i < g->n_resources; i++)
		l->resources[i] = most(l->resources[i],
				       gpuq_amounts_get(n->fact.resources, n->fact.n_resources,
							g->resources[i].name));
	return (gpuq_group_claimed(g) || holds(&o, g) || snapshot_choices_on(m, n, g)) &&
	       has_resources(n, g) && n->fact.cpu_milli >= g->cpu_milli &&
	       n->fact.memory_bytes >= g->memory_bytes;
}

static void warn_instances(struct gpuq_buf *out, const struct gpuq_group *g, int64_t migs)
{
	struct gpuq_buf names = GPUQ_BUF_INIT;

	gpuq_buf_adds(&names, g->mig);
	for (size_t i = 0; i < g->mig_more.n; i++)
		gpuq_buf_printf(&names, " or %s", g->mig_more.items[i]);
	warn_much(out, g->gpus_milli, migs * SNAP_MILLI, MILLI, gpuq_buf_str(&names));
	gpuq_buf_done(&names);
}

/* Append what lacks of the devices of which the group takes a part. */
static void warn_parts(struct gpuq_buf *out, const struct gpuq_group *g, const struct offer *most_)
{
	const struct piece p = piece_of(g);

	if (most_->share == 0) {
		gpuq_buf_printf(out,
				" (a part of a device requested by %s%s%s, and no node serves %s",
				p.bytes ? "gpu_memory" : "", p.bytes && p.milli ? " and " : "",
				p.milli == 0                           ? ""
				: p.milli > g->gpus_milli % SNAP_MILLI ? "gpu_cores"
								       : "gpus",
				p.devices > 1 ? "several of them" : "such parts");
		return;
	}
	warn_much(out, p.milli, most_->share, MILLI, "of a device");
	warn_much(out, p.devices, most_->shared, COUNT, "devices, of each a part,");
	warn_much(out, p.bytes, most_->bytes, BYTES, "of GPU memory");
}

static void warn_devices(struct gpuq_buf *out, const struct gpuq_group *g, const struct largest *l)
{
	if (gpuq_group_claimed(g))
		return;
	if (g->mig) {
		warn_instances(out, g, l->migs);
		return;
	}
	if (backend_shares(g) && !gpuq_group_device(g)) {
		warn_parts(out, g, &l->devices);
		return;
	}
	warn_much(out, g->gpus_milli, l->devices.gpus_milli, MILLI, "GPUs");
	if (l->devices.one && g->gpus_milli > l->devices.gpus_milli)
		gpuq_buf_printf(out, ": %s gives a pod one device or a part of one",
				l->devices.one);
}

static void warn_rest(struct gpuq_buf *out, const struct gpuq_group *g, const struct largest *l)
{
	warn_much(out, g->cpu_milli, l->cpu_milli, MILLI, "CPUs");
	warn_much(out, g->memory_bytes, l->memory_bytes, GIB, "GiB of memory");
	for (size_t k = 0; k < g->n_resources; k++)
		warn_much(out, g->resources[k].count, l->resources[k],
			  gpuq_resource_is_bytes(g->resources[k].name) ? BYTES : COUNT,
			  g->resources[k].name);
}

static void warn_one(struct gpuq_buf *out, int64_t asked, enum much unit, const char *of)
{
	char text[32];

	if (asked > 0)
		gpuq_buf_printf(out, "%s%s %s", out->len ? ", " : " (no node has all of ",
				much_text(asked, unit, text), of);
}

/* Append all that a pod requests, where each of it is to be had, but not on one node. */
static void warn_together(struct gpuq_buf *out, const struct gpuq_group *g)
{
	if ((g->gpus_milli > 0) + (g->cpu_milli > 0) + (g->memory_bytes > 0) + g->n_resources < 2)
		return;
	warn_one(out, g->gpus_milli, MILLI, g->mig ? g->mig : "GPUs");
	warn_one(out, g->cpu_milli, MILLI, "CPUs");
	warn_one(out, g->memory_bytes, GIB, "GiB of memory");
	for (size_t k = 0; k < g->n_resources; k++)
		warn_one(out, g->resources[k].count,
			 gpuq_resource_is_bytes(g->resources[k].name) ? BYTES : COUNT,
			 g->resources[k].name);
}

/* Nodes where a group may be: by its names and labels, and by the flavors of the job. */
struct where {
	const struct model *m;
	const struct gpuq_group *g;
	const struct gpuq_strlist *flavors; /* NULL = any */
	bool bound; /* its names and labels bind it */
};

static bool may_be(const void *arg, const struct node *n)
{
	const struct where *w = arg;

	return (w->bound ? may_be_on(n, w->g) : !n->gone) &&
	       (!w->flavors || node_is_of(w->m, n, w->flavors));
}

static void warn_group(const struct where *w, const struct queue *q, const struct gpuq_spec *spec,
		       struct gpuq_buf *warnings)
{
	const struct gpuq_group *g = w->g;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf why = GPUQ_BUF_INIT;
	bool fits = may_come(w->m, g, &spec->flavors, w->bound);
	uint32_t n_seen = 0;
	struct largest l = { .migs = 0 };
	struct claim_fit claims;

	claim_fit_of(w->m, q, g, &a, &claims);
	count_machines(w->m, g, &spec->flavors, w->bound, &l);
	for (const struct node *n = w->m->nodes; n && !fits; n = n->hh.next)
		if (may_be(w, n)) {
			n_seen++;
			fits = fits_on(w->m, n, g, spec->flavors.n > 0, &l) &&
			       (claims.n == 0 || claim_fit_on(&claims, n->name));
		}
	if (fits)
		goto done;
	if (w->bound && w->flavors && n_seen == 0)
		gpuq_buf_adds(&why, " (none is");
	else {
		warn_devices(&why, g, &l);
		claim_fit_tell(&claims, w->m, may_be, w, &why);
		warn_rest(&why, g, &l);
		if (!why.len && n_seen && claims.n == 0)
			warn_together(&why, g);
	}
	if (l.devices.replicas && l.devices.gpus_milli == 0 && g->gpus_milli >= SNAP_MILLI &&
	    !g->mig && !backend_shares(g) && !gpuq_group_claimed(g))
		gpuq_buf_printf(&why,
				"%sdevices are offered in replicas, of which a pod gets "
				"one, a part of a device",
				why.len ? "; " : " (");
	if (w->flavors && why.len)
		add_flavors(&why, w->flavors);
	add_nearest(w->m, spec, g, &why);
	gpuq_buf_printf(warnings,
			"no node %scan hold a pod of this job%s%s: it is pending until one can\n",
			w->bound ? "of those that it asks for " : "",
			why.len ? gpuq_buf_str(&why) : "", why.len ? ")" : "");
done:
	gpuq_buf_done(&why);
	gpuq_arena_done(&a);
}

void place_warn_size(const struct model *m, const struct queue *q, const struct gpuq_spec *spec,
		     struct gpuq_buf *warnings)
{
	for (size_t i = 0; i < spec->n_groups; i++) {
		const struct gpuq_group *g = &spec->groups[i];

		warn_group(&(struct where){ m, g, bound_to(m, spec, g), is_bound(m, g) }, q, spec,
			   warnings);
	}
}

/* Refuse a relative --chdir that is outside of the files that the job carries. */
static int leaves_code(struct gpuq_arena *a, const struct gpuq_spec *spec, struct gpuq_err *err)
{
	const size_t n = strlen(GPUQ_CODE_PATH);
	const char *to;

	if (!spec->code.digest || !spec->chdir || *spec->chdir == '/')
		return 0;
	to = pod_keys_in_code(a, spec);
	if (!to)
		return gpuq_no_memory(err);
	if (strncmp(to, GPUQ_CODE_PATH, n) == 0 && (!to[n] || to[n] == '/'))
		return 0;
	return gpuq_fail_field(err, GPUQ_EINVAL, "chdir",
			       "chdir: %.300s leaves the directory that the job carries: "
			       "carry one that holds both with --code DIR",
			       spec->chdir);
}

int place_check_dir(struct gpuq_arena *a, const struct gpuq_spec *spec,
		    const struct gpuq_spec *whole, bool known, struct gpuq_buf *warnings,
		    struct gpuq_err *err)
{
	const struct gpuq_group *g = &whole->groups[0];
	const char *from = spec->context.cwd && *spec->context.cwd ? spec->context.cwd : "/";
	const char *asked;
	int rc = leaves_code(a, spec, err);

	if (rc < 0 || !known || !spec->chdir || g->template_ ||
	    (spec->code.digest && *spec->chdir != '/'))
		return rc;
	asked = gpuq_path_join(a, from, spec->chdir);
	if (!asked)
		return gpuq_no_memory(err);
	if (g->workdir && strcmp(g->workdir, asked) == 0)
		return 0;
	gpuq_buf_printf(
		warnings,
		"--chdir %.300s is ignored: it is below no volume of the job, which runs in "
		"%.300s; workdir of a job file names a directory of the image\n",
		asked, g->workdir ? g->workdir : "the directory of its image");
	return 0;
}
