#include "gpuqd/flow/admit/calendar_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/sched/timeline/reservations_fit.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/view/cards.h"
#include "libgpuq/units.h"

struct checked {
	const struct model *m;
	struct gpuq_arena mem;
	const char **names; /* of flavors and pools, by number */
	uint32_t n_names, room_names;
	struct calendar_node *nodes;
	const struct node **node_of; /* NULL: it may come */
	const char **pool_of;
	uint32_t n_nodes;
	struct calendar_entry *entries;
	const struct site_reservation **of;
	uint32_t n_entries;
};

static uint32_t number(struct checked *c, const char *name)
{
	uint32_t i = 0;

	if (!name)
		return CALENDAR_NONE;
	while (i < c->n_names && strcmp(c->names[i], name) != 0)
		i++;
	if (i == c->n_names && c->n_names < c->room_names)
		c->names[c->n_names++] = name;
	return i;
}

static bool names_node(const struct checked *c, const struct site_reservation *r, uint32_t i)
{
	return (c->node_of[i] && gpuq_strlist_has(&r->nodes, c->node_of[i]->name)) ||
	       (r->nodes.n == 0 && r->pool && c->pool_of[i] && strcmp(r->pool, c->pool_of[i]) == 0);
}

static int add(struct checked *c, const struct site_reservation *r, struct gpuq_err *err)
{
	struct calendar_entry *e = &c->entries[c->n_entries];
	uint32_t *nodes = gpuq_arena_calloc(&c->mem, c->n_nodes + 1, sizeof(*nodes));
	const bool amount = r->nodes.n == 0 && r->gpus_milli > 0;

	if (!nodes)
		return gpuq_no_memory(err);
	*e = (struct calendar_entry){ .when = site_reservation_when(r),
				      .milli = amount ? r->gpus_milli : 0,
				      .flavor = number(c, r->flavor),
				      .pool = number(c, r->pool),
				      .nodes = nodes,
				      /* External nodes are still to come. */
				      .maintenance = r->external ||
						     site_reservation_has(r, "maintenance") ||
						     (!r->queue && r->users.n == 0) };
	for (uint32_t i = 0; !amount && i < c->n_nodes; i++)
		if (names_node(c, r, i))
			nodes[e->n_nodes++] = i;
	c->of[c->n_entries++] = r;
	return 0;
}

static bool is_changed(const struct gpuq_val *changes, const char *name)
{
	for (uint32_t i = 0; i < changes->n; i++) {
		const char *object = gpuq_get_str(changes->items[i], "object", "");

		if (strncmp(object, "reservation/", 12) == 0 && strcmp(object + 12, name) == 0)
			return true;
	}
	return false;
}

static int refuse(const struct checked *c, const struct calendar_misfit *lack, struct gpuq_err *err)
{
	const struct site_reservation *r = c->of[c->n_entries - 1];
	const struct calendar_entry *e = &c->entries[c->n_entries - 1];
	char have[32], need[32], at[64], when[64] = "none was found";

	gpuq_milli_print(lack->have_milli, have, sizeof(have));
	gpuq_milli_print(lack->need_milli, need, sizeof(need));
	gpuq_instant_print(lack->at_us, at, sizeof(at));
	if (lack->earliest_us != GPUQ_UNLIMITED)
		gpuq_instant_print(lack->earliest_us, when, sizeof(when));
	return gpuq_fail_field(err, GPUQ_ECONFLICT, "reservations",
			       "%s: %s of %s %s are free at %s%s%s; earliest start that fits: %s",
			       r->name, have, need, e->milli ? "devices" : "devices of its nodes",
			       at, lack->with == CALENDAR_NONE ? "" : " beside ",
			       lack->with == CALENDAR_NONE ? "" : c->of[lack->with]->name, when);
}

/* True if a maintenance needs more than all devices of its kind, whatever else is reserved. */
static bool is_too_much(const struct checked *c, const struct calendar_entry *e, int64_t *have)
{
	*have = 0;
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if ((e->flavor == CALENDAR_NONE || e->flavor == c->nodes[i].flavor) &&
		    (e->pool == CALENDAR_NONE || e->pool == c->nodes[i].pool))
			*have += c->nodes[i].milli;
	return c->n_nodes > 0 && e->maintenance && e->milli > *have;
}

static int refuse_amount(const struct site_reservation *r, int64_t have, struct gpuq_err *err)
{
	return gpuq_fail_field(err, GPUQ_ECONFLICT, "reservations",
			       "%s: the cluster has no more than %" PRId64 " such devices", r->name,
			       have / 1000);
}

static bool is_over(const struct site_reservation *r, int64_t now_us)
{
	const struct recur when = site_reservation_when(r);

	return r->duration_us > 0 && recur_at(&when, now_us) == GPUQ_UNLIMITED;
}

static int check(struct checked *c, const struct site *s, const struct gpuq_val *changes,
		 int64_t now_us, struct gpuq_err *err)
{
	struct calendar_misfit lack;
	int64_t have;
	int rc = 0;

	for (int fresh = 0; fresh < 2; fresh++)
		site_each(site_reservation, s->reservations, r) {
			if (is_changed(changes, r->name) != fresh)
				continue;
			rc = add(c, r, err);
			if (rc == 0 && fresh && is_over(r, now_us))
				rc = gpuq_fail_field(err, GPUQ_EINVAL, "reservations",
						     "%s: the end is in the past", r->name);
			/* One of before may have it, and means the same. */
			if (rc == 0 && fresh && r->external && r->flavor)
				rc = gpuq_fail_field(err, GPUQ_EINVAL, "reservations",
						     "%s: flavor: expected a pool and a count "
						     "alone: the window is external",
						     r->name);
			if (rc == 0 && fresh &&
			    is_too_much(c, &c->entries[c->n_entries - 1], &have))
				rc = refuse_amount(r, have, err);
			if (rc == 0 && fresh &&
			    !reservations_fits(c->nodes, c->n_nodes, c->entries, c->n_entries - 1,
					       now_us, &lack))
				rc = refuse(c, &lack, err);
			if (rc < 0)
				return rc;
		}
	return 0;
}

/* Return how many nodes the pool can get beside those that are there. */
static uint32_t may_come(const struct model *m, const struct site_pool *p)
{
	const int64_t left = p->provisioning->max_nodes - model_pool_nodes(m, p->name);

	return left <= 0 ? 0 : left < PROVISION_NODES_MAX ? (uint32_t)left : PROVISION_NODES_MAX;
}

static size_t count_to_come(const struct model *m, const struct site *s)
{
	size_t n = 0;

	site_each(site_pool, s->pools, p)
		n += site_pool_grows(p) ? may_come(m, p) : 0;
	return n;
}

static void add_node(struct checked *c, const struct node *node, const char *flavor,
		     const char *pool, int64_t milli, int64_t cut_milli)
{
	c->node_of[c->n_nodes] = node;
	c->pool_of[c->n_nodes] = pool;
	c->nodes[c->n_nodes++] = (struct calendar_node){ .flavor = number(c, flavor),
							 .pool = number(c, pool),
							 .milli = milli,
							 .cut_milli = cut_milli };
}

/* No amount is kept of cards in instances or replicas, nor of those that another scheduler gives. */
static void add_present(struct checked *c, const struct node *n)
{
	const int64_t uncut = (int64_t)n->n_devices * 1000, cut = cards_of(n).total_milli;

	add_node(c, n, n->flavor, n->pool, uncut + cut,
		 cut + (n->closed || n->fact.replicas > 1 ? uncut : 0));
}

static void add_nodes(struct checked *c, const struct site *s)
{
	for (const struct node *node = c->m->nodes; node; node = node->hh.next)
		if (!node->gone)
			add_present(c, node);
	site_each(site_pool, s->pools, p)
		for (uint32_t left = site_pool_grows(p) ? may_come(c->m, p) : 0; left > 0; left--)
			add_node(c, NULL, p->flavor, p->name,
				 (int64_t)p->provisioning->machine->gpus * 1000, 0);
}

int calendar_check(const struct model *m, const struct site *s, const struct gpuq_val *changes,
		   int64_t now_us, struct gpuq_err *err)
{
	struct checked c = { .m = m, .mem = GPUQ_ARENA_INIT(0) };
	const size_t n = s->reservations.n;
	size_t n_nodes;
	bool any = false;
	int rc = 0;

	site_each(site_reservation, s->reservations, r)
		any |= is_changed(changes, r->name);
	if (!any)
		return 0;
	n_nodes = HASH_COUNT(m->nodes) + count_to_come(m, s);
	c.room_names = (uint32_t)(2 * (n_nodes + n));
	c.names = gpuq_arena_calloc(&c.mem, c.room_names + 1, sizeof(*c.names));
	c.nodes = gpuq_arena_calloc(&c.mem, n_nodes + 1, sizeof(*c.nodes));
	c.node_of = gpuq_arena_calloc(&c.mem, n_nodes + 1, sizeof(*c.node_of));
	c.pool_of = gpuq_arena_calloc(&c.mem, n_nodes + 1, sizeof(*c.pool_of));
	c.entries = gpuq_arena_calloc(&c.mem, n + 1, sizeof(*c.entries));
	c.of = gpuq_arena_calloc(&c.mem, n + 1, sizeof(*c.of));
	if (!c.names || !c.nodes || !c.node_of || !c.pool_of || !c.entries || !c.of)
		rc = gpuq_no_memory(err);
	if (rc == 0)
		add_nodes(&c, s);
	if (rc == 0)
		rc = check(&c, s, changes, now_us, err);
	gpuq_arena_done(&c.mem);
	return rc;
}
