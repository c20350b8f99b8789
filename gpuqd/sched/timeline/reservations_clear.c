#include "gpuqd/sched/timeline/reservations_int.h"

#include <string.h>

#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/sched/timeline/reservations_end.h"
#include "gpuqd/sched/timeline/timeline_int.h"
#include "gpuqd/sched/timeline/timeline_pack.h"

/* When a reservation begins, preemptible jobs of others that still run there leave: all of them from nodes that
 * are reserved, and as many as an amount lacks. These are preempted where the most is free or becomes free, since
 * an amount is rarely wanted in single devices: the least important first, then those that were placed last. */

static const struct snap_reservation *slice(const struct cycle *c, uint32_t i)
{
	return &c->s->reservations[i];
}

/* ---- nodes ---- */

/* True if the reservation of whole nodes preempts the job there when it begins. */
static bool clears(const struct cycle *c, uint32_t i, uint32_t job)
{
	const struct snap_reservation *r = slice(c, i);
	const struct snap_job *j = &c->s->jobs[job];

	if (r->gpus_milli > 0 || reservations_over(c, i) ||
	    (!r->maintenance && (!j->preemptible || j->spared)) || reservations_owns(c, i, job))
		return false;
	for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++)
		if (bits_has(c->timeline->future->slices[i], c->s->allocs[a].node))
			return true;
	return false;
}

int64_t reservations_clears(const struct cycle *c, uint32_t job)
{
	const int64_t now = c->s->config.now_us;

	/* They are ordered by start. */
	for (uint32_t i = 0; i < c->s->n_reservations; i++)
		if (clears(c, i, job))
			return slice(c, i)->start_us > now ? slice(c, i)->start_us : now;
	return GPUQ_UNLIMITED;
}

/* Preempt jobs that are still on the nodes of a reservation when it begins. */
static void clear_nodes(struct cycle *c)
{
	const int64_t now = c->s->config.now_us;

	for (uint32_t i = 0; i < c->s->n_reservations && slice(c, i)->start_us <= now; i++)
		for (uint32_t k = 0; k < c->s->lines.n_busy && !c->failed; k++) {
			const uint32_t j = c->s->lines.busy[k];

			if (c->s->jobs[j].state != SNAP_RUNNING || !clears(c, i, j) ||
			    timeline_leaves(c, j))
				continue;
			timeline_evict(c, j,
				       slice(c, i)->maintenance ? GPUQ_CAUSE_DRAIN
								: GPUQ_CAUSE_YIELD,
				       SNAP_NONE, gpuq_rule_word(GPUQ_RULE_YIELD_RESERVATION));
			c->timeline->future->stale = true;
		}
}

/* ---- amounts ---- */

/* True if the job ends anyway. */
static bool leaves(const struct cycle *c, uint32_t job)
{
	return c->s->jobs[job].state == SNAP_LEAVING || timeline_leaves(c, job);
}

/* True if the job may be preempted for the amount. */
static bool may_leave(const struct cycle *c, uint32_t i, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];

	return j->state == SNAP_RUNNING && j->preemptible && !j->spared && !leaves(c, job) &&
	       !reservations_owns(c, i, job) && !reservations_shields(c, job, SNAP_NONE);
}

/* Return the whole devices that the pod gives back for the amount, on a node (SNAP_NONE: on any). */
static uint32_t gives(const struct cycle *c, uint32_t i, const struct snap_alloc *al, uint32_t node)
{
	return al->milli == SNAP_MILLI && (node == SNAP_NONE || node == al->node) &&
			       reservations_counts_there(c, slice(c, i), al->node)
		       ? al->n_devices
		       : 0;
}

/* The same of a job. */
static int64_t job_gives(const struct cycle *c, uint32_t i, uint32_t job, uint32_t node)
{
	const struct snap_job *j = &c->s->jobs[job];
	int64_t n = 0;

	for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++)
		n += gives(c, i, &c->s->allocs[a], node);
	return n;
}

/* Return the devices of the amount that neither are taken nor kept free. */
static int64_t unmet(const struct cycle *c, uint32_t i)
{
	return slice(c, i)->gpus_milli / SNAP_MILLI - reservations_taken(c, i) -
	       reservations_kept(c, i);
}

/* Return the devices that the amount lacks once all that ends has ended. */
static int64_t lacks(const struct cycle *c, uint32_t i)
{
	int64_t n = unmet(c, i);

	for (uint32_t a = 0; n > 0 && a < c->s->n_allocs; a++)
		if (c->s->allocs[a].releasing || leaves(c, c->s->allocs[a].job))
			n -= gives(c, i, &c->s->allocs[a], SNAP_NONE);
	return n;
}

/* Return the node with the most devices that are free, become free or can be preempted; SNAP_NONE: none has any of
 * the last. can: by node, those. */
static uint32_t best_node(const struct cycle *c, const uint32_t *can, const uint32_t *open)
{
	uint32_t best = SNAP_NONE;

	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if (can[n] > 0 && (best == SNAP_NONE || can[n] + open[n] > can[best] + open[best]))
			best = n;
	return best;
}

/* True if the job x is rather preempted than y. */
static bool rather(const struct cycle *c, uint32_t x, uint32_t y)
{
	const struct snap_job *a = &c->s->jobs[x], *b = &c->s->jobs[y];
	const int64_t from_a = a->placed_us ? a->placed_us : a->start_us;
	const int64_t from_b = b->placed_us ? b->placed_us : b->start_us;

	if (a->priority != b->priority)
		return a->priority < b->priority;
	return from_a != from_b ? from_a > from_b : x > y;
}

/* Return the job on the node that is preempted first; SNAP_NONE = none may be. */
static uint32_t first_on(const struct cycle *c, uint32_t i, uint32_t node)
{
	uint32_t first = SNAP_NONE;

	for (uint32_t k = 0; k < c->s->lines.n_busy; k++) {
		const uint32_t job = c->s->lines.busy[k];

		if (may_leave(c, i, job) && job_gives(c, i, job, node) > 0 &&
		    (first == SNAP_NONE || rather(c, job, first)))
			first = job;
	}
	return first;
}

/* Count by node what can be preempted, and what is free or becomes free. */
static void count(const struct cycle *c, uint32_t i, uint32_t *can, uint32_t *open)
{
	for (uint32_t n = 0; n < c->s->n_nodes; n++) {
		can[n] = 0;
		open[n] = reservations_counts_there(c, slice(c, i), n)
				  ? c->timeline->future->whole_now[n]
				  : 0;
	}
	for (uint32_t a = 0; a < c->s->n_allocs; a++) {
		const struct snap_alloc *al = &c->s->allocs[a];

		if (al->releasing || leaves(c, al->job))
			open[al->node] += gives(c, i, al, SNAP_NONE);
		else if (may_leave(c, i, al->job))
			can[al->node] += gives(c, i, al, SNAP_NONE);
	}
}

static void clear_amount(struct cycle *c, uint32_t i)
{
	uint32_t *can = cycle_scratch(c, c->s->n_nodes, sizeof(*can));
	uint32_t *open = cycle_scratch(c, c->s->n_nodes, sizeof(*open));
	int64_t left = lacks(c, i);

	while (can && open && left > 0 && !c->failed) {
		uint32_t node, job;

		count(c, i, can, open);
		node = best_node(c, can, open);
		if (node == SNAP_NONE)
			break;
		while (left > 0 && (job = first_on(c, i, node)) != SNAP_NONE && !c->failed) {
			left -= job_gives(c, i, job, SNAP_NONE);
			timeline_evict(c, job, GPUQ_CAUSE_YIELD, SNAP_NONE,
				       gpuq_rule_word(GPUQ_RULE_YIELD_RESERVATION));
			c->timeline->future->stale = true;
		}
	}
}

void reservations_clear(struct cycle *c)
{
	clear_nodes(c);
	for (uint32_t i = 0;
	     i < c->s->n_reservations && slice(c, i)->start_us <= c->s->config.now_us && !c->failed;
	     i++)
		if (slice(c, i)->gpus_milli > 0 && !slice(c, i)->maintenance &&
		    !reservations_over(c, i))
			clear_amount(c, i);
}

/* ---- nodes that do not exist yet ---- */

uint32_t reservations_takes_new(const struct cycle *c, uint32_t job, uint32_t node)
{
	const struct snap_node *n = &c->s->nodes[node];
	uint32_t nodes = 0;

	for (uint32_t i = 0; i < c->s->n_reservations; i++) {
		const struct snap_reservation *r = slice(c, i);
		const int64_t now = c->s->config.now_us;
		int64_t left;

		if (r->gpus_milli == 0 || r->start_us > now || reservations_over(c, i) ||
		    (r->flavor != SNAP_NONE && r->flavor != n->flavor) ||
		    (r->pool && strcmp(r->pool, n->pool) != 0) || n->n_devices == 0 ||
		    reservations_admits(c, i, job, now))
			continue;
		left = unmet(c, i);
		if (left > 0)
			nodes += (uint32_t)((left + n->n_devices - 1) / n->n_devices);
	}
	return nodes;
}
