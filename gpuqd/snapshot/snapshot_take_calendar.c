#include "gpuqd/snapshot/snapshot_take_calendar.h"

#include <string.h>

#include "gpuqd/util/amount.h"
#include "gpuqd/util/recur.h"
#include "gpuqd/util/walltime.h"

#define FAR_US (INT64_C(3650) * 86400 * GPUQ_US_PER_S)
/* While gpuqd was down a reservation may have ended: its jobs are signalled within this time. */
#define ENDED_US (86400 * GPUQ_US_PER_S)

/* Collect the nodes that it names; without names and an amount, those of its pool, and those that may come. */
static uint32_t take_nodes(const struct model *m, const struct site_reservation *in,
			   const struct snapshot *s, uint32_t *nodes)
{
	uint32_t n = 0;

	for (size_t i = 0; i < in->nodes.n; i++) {
		const struct node *node = model_find_node(m, in->nodes.items[i]);

		if (node && node->snap_ix != SNAP_NONE)
			nodes[n++] = node->snap_ix;
	}
	if (in->nodes.n > 0 || in->gpus_milli > 0 || !in->pool)
		return n;
	for (const struct node *node = m->nodes; node; node = node->hh.next)
		if (node->snap_ix != SNAP_NONE && node->pool && strcmp(node->pool, in->pool) == 0)
			nodes[n++] = node->snap_ix;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].state >= SNAP_ASKED && s->nodes[i].made_up &&
		    strcmp(s->nodes[i].pool, in->pool) == 0)
			nodes[n++] = i;
	return n;
}

/* Return the start of the next external window of the same pool; far away if there is none. */
static int64_t next_window(const struct model *m, const struct site_reservation *in,
			   int64_t from_us)
{
	int64_t next = from_us + FAR_US;

	site_each(site_reservation, m->site->reservations, r)
		if (r->external && r != in && strcmp(r->pool, in->pool) == 0 &&
		    r->start_us >= from_us && r->start_us < next)
			next = r->start_us;
	return next;
}

/* Add the end of an external window as a maintenance. No job may use the nodes of an external window when it is about to end, nor what is left of them
 * afterwards: so jobs there end in time. */
static void take_end(const struct model *m, const struct site_reservation *in, struct snapshot *s,
		     struct gpuq_arena *mem)
{
	const int64_t clears_us = site_reservation_clears(in);
	const int64_t next_us = next_window(m, in, amount_sum(in->start_us, in->duration_us));
	uint32_t *nodes =
		gpuq_arena_calloc(mem, HASH_COUNT(m->nodes) + s->n_nodes + 1, sizeof(*nodes));
	struct snap_reservation r = { .name = in->name,
				      .start_us = walltime_to_ledger(clears_us, m->ahead_us),
				      .end_us = walltime_to_ledger(next_us, m->ahead_us),
				      .nodes = nodes,
				      .flavor = SNAP_NONE,
				      .queue = SNAP_NONE,
				      .maintenance = true };

	if (!nodes)
		return;
	r.n_nodes = take_nodes(m, in, s, nodes);
	if (r.n_nodes > 0)
		snapshot_add_reservation(s, &r);
}

/* True if jobs in it are signalled before its end; take_end() does that on external nodes. */
static bool ends_jobs(const struct site_reservation *in)
{
	return !in->external && in->at_end == SITE_AT_END_EVICT;
}

/* Add one occurrence of a reservation. One that names what no longer exists is left out, or kept
 * from all if only its owner is gone. */
static void take(const struct model *m, const struct site_reservation *in, int64_t start_us,
		 const uint32_t *queue_of, struct snapshot *s, struct gpuq_arena *mem)
{
	const size_t room = in->nodes.n + HASH_COUNT(m->nodes) + s->n_nodes + 1;
	uint32_t *nodes = gpuq_arena_calloc(mem, room, sizeof(*nodes));
	uint32_t *users = gpuq_arena_calloc(mem, in->users.n + 1, sizeof(*users));
	const struct queue *q = in->queue ? model_find_queue(m, in->queue) : NULL;
	struct snap_reservation r = { .name = in->name,
				      .start_us = start_us,
				      .release_us = site_reservation_release_us(in),
				      .nodes = nodes,
				      .users = users,
				      .flavor = SNAP_NONE,
				      .queue = q ? queue_of[q->ix] : SNAP_NONE };

	if (!nodes || !users || __builtin_add_overflow(start_us, in->duration_us, &r.end_us))
		return;
	r.n_nodes = take_nodes(m, in, s, nodes);
	if (in->nodes.n == 0 && r.n_nodes == 0) {
		r.gpus_milli = in->gpus_milli;
		r.pool = in->pool;
		r.flavor = in->flavor ? snapshot_find_flavor(s, in->flavor) : SNAP_NONE;
		if (in->flavor && r.flavor == SNAP_NONE)
			return;
	}
	if (r.end_us <= r.start_us || (r.n_nodes == 0 && r.gpus_milli <= 0))
		return;
	for (size_t i = 0; i < in->users.n; i++)
		users[r.n_users++] = snapshot_user(s, in->users.items[i]);
	/* Without its queue the reservation has no owner. */
	r.maintenance = site_reservation_has(in, "maintenance") || (in->queue && !q) ||
			(!in->queue && in->users.n == 0);
	r.ends_jobs = ends_jobs(in);
	snapshot_add_reservation(s, &r);
}

/* Add those that ended lately, while something may still run in them. */
static void take_ended(const struct model *m, const struct site_reservation *in, int64_t wall_us,
		       const uint32_t *queue_of, struct snapshot *s, struct gpuq_arena *mem)
{
	const struct recur when = site_reservation_when(in);
	int64_t starts[RECUR_MAX];
	const uint32_t n =
		ends_jobs(in) ? recur_starts(&when, amount_less(wall_us, ENDED_US), starts) : 0;

	for (uint32_t i = 0; i < n; i++)
		if (amount_sum(starts[i], in->duration_us) <= wall_us)
			take(m, in, walltime_to_ledger(starts[i], m->ahead_us), queue_of, s, mem);
}

void snapshot_add_calendar(const struct model *m, int64_t now_us, const uint32_t *queue_of,
			   struct snapshot *s)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);

	site_each(site_reservation, m->site->reservations, r) {
		const struct recur when = site_reservation_when(r);
		const int64_t wall_us = walltime_of(now_us, m->ahead_us);
		int64_t starts[RECUR_MAX];
		const uint32_t n = recur_starts(&when, wall_us, starts);

		take_ended(m, r, wall_us, queue_of, s, &mem);
		for (uint32_t i = 0; i < n; i++)
			take(m, r, walltime_to_ledger(starts[i], m->ahead_us), queue_of, s, &mem);
		if (r->external)
			take_end(m, r, s, &mem);
	}
	gpuq_arena_done(&mem);
}
