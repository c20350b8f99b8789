#include <string.h>

#include "gpuqd/core/amount.h"
#include "gpuqd/core/recur.h"
#include "gpuqd/sim/world_int.h"

/* A case's calendar, as the scheduler is shown it. */

static int bad(const struct world *w, const struct sc_reservation *in, const char *what,
	       const char *name, struct gpuq_err *err)
{
	return gpuq_fail_field(err, GPUQ_EINVAL, "config.reservations", "%s: reservation %s: %s%s",
			       w->c->id, in->name ? in->name : "(no name)", what, name);
}

static int add_one(const struct world *w, struct snapshot *s, const struct sc_reservation *in,
		   uint32_t *nodes, struct gpuq_err *err)
{
	struct snap_reservation r = { .name = in->name,
				      .start_us = world_us(w, in->start),
				      .nodes = nodes,
				      .flavor = SNAP_NONE,
				      .queue = SNAP_NONE,
				      .gpus_milli = in->gpus,
				      .release_us = world_us(w, in->release_after),
				      .maintenance = in->kind == SC_MAINTENANCE || !in->queue };

	const int64_t duration_us = world_us(w, in->duration);
	int64_t starts[RECUR_MAX];
	uint32_t n;

	if (!in->name)
		return bad(w, in, "it has no name", "", err);
	if (in->duration <= 0)
		return bad(w, in, "expected a duration above 0", "", err);
	if (in->every != 0 && in->every < in->duration)
		return bad(w, in, "expected to come again when it is over", "", err);
	for (size_t i = 0; i < in->nodes.n + (in->node != NULL); i++) {
		const char *name = i < in->nodes.n ? in->nodes.items[i] : in->node;

		nodes[r.n_nodes] = world_node(w, name);
		if (nodes[r.n_nodes++] == SNAP_NONE)
			return bad(w, in, "unknown node ", name, err);
	}
	if ((r.n_nodes == 0) == (in->gpus <= 0))
		return bad(w, in, "expected either nodes or gpus", "", err);
	for (uint32_t q = 0; in->queue && q < w->n_queues; q++)
		if (strcmp(w->queues[q].name, in->queue) == 0)
			r.queue = q;
	if (in->queue && r.queue == SNAP_NONE)
		return bad(w, in, "unknown queue ", in->queue, err);
	n = recur_starts(r.start_us, duration_us, world_us(w, in->every), w->now_us, starts);
	for (uint32_t i = 0; i < n; i++) {
		r.start_us = starts[i];
		r.end_us = amount_sum(starts[i], duration_us);
		snapshot_add_reservation(s, &r);
	}
	return 0;
}

int world_add_calendar(struct world *w, struct snapshot *s, struct gpuq_err *err)
{
	const struct sc_reservation *in = w->c->config.reservations.items;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->c->config.reservations.n; i++) {
		uint32_t *nodes = gpuq_arena_calloc(&w->arena, in[i].nodes.n + 1, sizeof(*nodes));

		rc = nodes ? add_one(w, s, &in[i], nodes, err) : world_no_memory(err);
	}
	return rc;
}
