#include <string.h>

#include "gpuqd/util/amount.h"
#include "gpuqd/sched/timeline/reservations_fit.h"
#include "gpuqd/sim/world_int.h"

/* Reservations of a case: checks that a site file would have failed. */

static int bad(const struct world *w, const struct sc_reservation *in, const char *field,
	       const char *what, const char *name, struct gpuq_err *err)
{
	const struct sc_reservation *all = w->c->config.reservations.items;

	gpuq_fail_field(err, GPUQ_EINVAL, field, "reservation %s: %s%s",
			in->name ? in->name : "(no name)", what, name);
	return scenario_within(err, "config.reservations", (size_t)(in - all));
}

/* Check a single reservation by itself. */
static int check_entry(const struct world *w, const struct sc_reservation *in, struct gpuq_err *err)
{
	const size_t n_nodes = in->nodes.n + (in->node != NULL);

	if (!in->name)
		return bad(w, in, "", "it has no name", "", err);
	if (in->duration <= 0)
		return bad(w, in, "duration", "expected a duration above 0", "", err);
	if (in->every != 0 && in->every < in->duration)
		return bad(w, in, "every", "expected to come again when it is over", "", err);
	for (size_t i = 0; i < n_nodes; i++) {
		const char *name = i < in->nodes.n ? in->nodes.items[i] : in->node;

		if (world_node(w, name) == SNAP_NONE)
			return bad(w, in, "nodes", "unknown node ", name, err);
	}
	if ((n_nodes == 0) == (in->gpus <= 0))
		return bad(w, in, "", "expected either nodes or gpus", "", err);
	if (in->queue && !world_queue(w, in->queue))
		return bad(w, in, "queue", "unknown queue ", in->queue, err);
	return 0;
}

static int check_one(struct world *w, const struct calendar_node *nodes,
		     const struct calendar_entry *entries, uint32_t i, struct gpuq_err *err)
{
	const struct sc_reservation *in = w->c->config.reservations.items;
	struct calendar_misfit lack;
	const char *text;

	if (reservations_fits(nodes, w->n_nodes, entries, i, w->now_us, &lack))
		return 0;
	text = gpuq_arena_printf(
		&w->arena, "%g of %g devices are left at %g beside %s; earliest start that fits: ",
		(double)lack.have_milli / 1000, (double)lack.need_milli / 1000,
		(double)(lack.at_us - WORLD_BASE_US) / (double)w->unit_us,
		lack.with == CALENDAR_NONE ? "nothing" : in[lack.with].name);
	return bad(w, &in[i], "", text ? text : "",
		   lack.earliest_us == GPUQ_UNLIMITED
			   ? "none"
			   : gpuq_arena_printf(&w->arena, "%g",
					       (double)(lack.earliest_us - WORLD_BASE_US) /
						       (double)w->unit_us),
		   err);
}

int world_check_calendar(struct world *w, struct gpuq_err *err)
{
	const struct sc_reservation *in = w->c->config.reservations.items;
	const size_t n = w->c->config.reservations.n;
	struct calendar_node *nodes = gpuq_arena_calloc(&w->arena, w->n_nodes + 1, sizeof(*nodes));
	struct calendar_entry *all = gpuq_arena_calloc(&w->arena, n + 1, sizeof(*all));
	int rc = nodes && all ? 0 : gpuq_no_memory(err);

	for (uint32_t i = 0; rc == 0 && i < w->n_nodes; i++)
		nodes[i] = (struct calendar_node){ .milli = world_node_exists(&w->nodes[i])
								    ? w->nodes[i].spec->gpus
								    : 0 };
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		const size_t n_named = in[i].nodes.n + (in[i].node != NULL);
		uint32_t *named = gpuq_arena_calloc(&w->arena, n_named + 1, sizeof(*named));

		if (!named)
			return gpuq_no_memory(err);
		all[i] = (struct calendar_entry){
			.when = { .start_us = world_at(w, in[i].start),
				  .duration_us = world_us(w, in[i].duration),
				  .every_us = world_us(w, in[i].every) },
			.milli = n_named ? 0 : in[i].gpus,
			.flavor = CALENDAR_NONE,
			.pool = CALENDAR_NONE,
			.nodes = named,
			.maintenance = in[i].kind == SC_MAINTENANCE || !in[i].queue
		};
		for (size_t k = 0; k < n_named; k++) {
			const uint32_t node = world_node(w, k < in[i].nodes.n ? in[i].nodes.items[k]
									      : in[i].node);

			if (node != SNAP_NONE)
				named[all[i].n_nodes++] = node;
		}
		rc = check_entry(w, &in[i], err);
		if (rc == 0)
			rc = check_one(w, nodes, all, i, err);
	}
	return rc;
}
