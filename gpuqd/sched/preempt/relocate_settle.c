#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/minimise.h"
#include "gpuqd/sched/preempt/relocate.h"

#include <string.h>

#include "gpuqd/sched/timeline/emit.h"
#include "gpuqd/sched/timeline/nominated.h"
#include "gpuqd/sched/timeline/timeline.h"
#include "gpuqd/sched/timeline/timeline_pack.h"

/* Carrying out the relocations that were found: the places of every job are kept, and nominated in
 * the end. */

/* ---- relocated jobs ---- */

uint32_t relocate_surplus_end(const struct cycle *c, uint32_t gang)
{
	uint32_t end = gang + 1;

	while (end < c->units->n_units && c->units->units[end].surplus &&
	       c->units->units[end].gang == gang)
		end++;
	return end;
}

void relocate_take(struct cycle *c, uint32_t gang)
{
	for (uint32_t u = relocate_surplus_end(c, gang); u-- > gang;)
		gangs_take(c, u);
}

void relocate_put_back(struct cycle *c, uint32_t gang)
{
	for (uint32_t u = gang; u < relocate_surplus_end(c, gang); u++)
		gangs_put_back(c, u);
}

/* ---- places ---- */

bool relocate_keep_places(struct cycle *c, struct moving *m, uint32_t job, uint32_t unit,
			  uint32_t flavor)
{
	struct kept *kept = &m->kept[m->n_kept];
	struct snap_alloc *pods = cycle_scratch(c, c->places.n_pods, sizeof(*pods));
	uint32_t *devices = cycle_scratch(c, c->places.n_devices, sizeof(*devices));

	if (!pods || !devices)
		return false;
	if (c->places.n_devices)
		memcpy(devices, c->places.devices, c->places.n_devices * sizeof(*devices));
	*kept = (struct kept){ unit, flavor, pods, c->places.n_pods };
	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const struct place *p = &c->places.pods[i];

		pods[i] = (struct snap_alloc){ .job = job,
					       .node = p->node,
					       .group = p->group,
					       .index = p->index,
					       .devices = devices + p->device_first,
					       .n_devices = p->n_devices,
					       .milli = p->milli };
		nodes_shift(c, &pods[i], -1);
	}
	m->n_kept++;
	return true;
}

static void let_go(struct cycle *c, const struct kept *kept)
{
	for (uint32_t i = 0; i < kept->n_pods; i++)
		nodes_shift(c, &kept->pods[i], 1);
}

/* Hold the same places as before; false: they are in use, and nothing has changed. */
static bool hold(struct cycle *c, const struct kept *kept)
{
	struct kept held = *kept;

	for (held.n_pods = 0; held.n_pods < kept->n_pods; held.n_pods++)
		if (!nodes_hold(c, &kept->pods[held.n_pods])) {
			let_go(c, &held);
			return false;
		}
	return true;
}

void relocate_give_up_places(struct cycle *c, struct moving *m)
{
	while (m->n_kept > 0)
		let_go(c, &m->kept[--m->n_kept]);
}

/* Restore the places as those of the current job. */
static void recall_places(struct cycle *c, const struct kept *kept)
{
	c->places.n_pods = c->places.n_devices = 0;
	for (uint32_t i = 0; i < kept->n_pods; i++) {
		const struct snap_alloc *p = &kept->pods[i];
		struct place *at = CYCLE_PUSH(c, &c->places, pods, 1);
		uint32_t *devices = CYCLE_PUSH(c, &c->places, devices, p->n_devices);

		if (!at || !devices)
			return;
		if (p->n_devices)
			memcpy(devices, p->devices, p->n_devices * sizeof(*devices));
		*at = (struct place){ .group = p->group,
				      .index = p->index,
				      .node = p->node,
				      .device_first = c->places.n_devices - p->n_devices,
				      .n_devices = p->n_devices,
				      .milli = p->milli };
	}
}

/* ---- the decision ---- */

/* Put the relocations into the plan; the first kept places are those of the preemptor itself. */
static void emit_moves(struct cycle *c, struct moving *m)
{
	for (uint32_t i = 1; i < m->n_kept; i++) {
		const uint32_t job = c->units->units[m->kept[i].unit].job;
		struct plan_action *a;

		recall_places(c, &m->kept[i]);
		emit_next(c, PLAN_MOVE, job, m->kept[i].flavor);
		if (c->failed)
			return;
		a = &c->plan.actions[c->plan.n_actions - 1];
		a->key = c->s->jobs[job].key;
		a->cause = GPUQ_CAUSE_CONSOLIDATE;
		a->claimant = m->k->job;
		a->rule = gpuq_rule_word(GPUQ_RULE_CONSOLIDATION);
		nominated_places(c, job);
	}
}

/* Put every job back where it runs; m remembers the new places. */
static void stand_back(struct cycle *c, struct moving *m)
{
	const uint32_t n_kept = m->n_kept;

	relocate_give_up_places(c, m);
	m->n_kept = n_kept;
	for (uint32_t i = 0; i < m->n_movers; i++)
		relocate_put_back(c, m->movers[i]);
}

/* True if, with the relocated jobs at their new places, the preemptor has room beside all that now
 * stay. Then that is its place. */
static bool fits_beside(struct cycle *c, void *ctx)
{
	struct moving *m = ctx;
	const struct claim *k = m->k;
	const uint32_t n_kept = m->n_kept;
	uint32_t held = 1;
	bool fits;

	for (uint32_t i = 0; i < m->n_movers; i++)
		relocate_take(c, m->movers[i]);
	while (held < n_kept && hold(c, &m->kept[held]))
		held++;
	fits = held == n_kept && timeline_pack_strictly(c, k->job, k->flavor);
	if (fits) {
		pack_undo(c, k->job);
		m->n_kept = 0;
		fits = relocate_keep_places(c, m, k->job, SNAP_NONE, k->flavor);
		relocate_give_up_places(c, m);
		m->n_kept = n_kept;
	}
	while (held > 1)
		let_go(c, &m->kept[--held]);
	for (uint32_t i = 0; i < m->n_movers; i++)
		relocate_put_back(c, m->movers[i]);
	return fits;
}

/* Drop victims of the claim that are no longer in the way: other jobs than those searched first may
 * have been relocated in the end. */
static void spare_victims(struct cycle *c, struct moving *m)
{
	struct claim *k = m->k;

	if (k->victims.n == 0)
		return;
	k->room.fits = fits_beside;
	k->room.ctx = m;
	claim_set(k, CLAIM_MOVERS, true);
	k->tries.packs = 0;
	minimise_fewer(c, k);
	claim_set(k, CLAIM_MOVERS, false);
	k->room.fits = NULL;
}

/* Forget a job that turned out not to be in the way: it stays where it is. */
static void forget_mover(struct moving *m, uint32_t i)
{
	uint32_t kept = 1;

	while (m->kept[kept].unit != m->movers[i])
		kept++;
	m->n_kept--;
	m->n_movers--;
	memmove(&m->kept[kept], &m->kept[kept + 1], (m->n_kept - kept) * sizeof(m->kept[0]));
	memmove(&m->movers[i], &m->movers[i + 1], (m->n_movers - i) * sizeof(m->movers[0]));
}

/* Drop relocations that are not needed: nodes were cleared one after the other, and the gang may
 * not use some of them in the end. A job may stay only as long as its place is not the new place of
 * another. */
static void spare_movers(struct cycle *c, struct moving *m)
{
	uint32_t n;

	do {
		n = m->n_movers;
		for (uint32_t i = n; i-- > 0;) {
			const struct moving before = *m;

			forget_mover(m, i);
			if (!fits_beside(c, m))
				*m = before;
		}
	} while (m->n_movers < n);
}

/* Release the surplus of a relocated job, which gets no nominated placement: its queue holds that
 * much less, though its pods run where they are until they are gone. */
static void let_surplus_go(struct cycle *c, uint32_t gang)
{
	for (uint32_t u = gang + 1; u < relocate_surplus_end(c, gang); u++) {
		const struct unit *unit = &c->units->units[u];

		gangs_take(c, u);
		for (uint32_t p = 0; p < unit->n_pods; p++)
			timeline_shift(c, &c->s->allocs[c->units->pods[unit->pod_first + p]], -1);
	}
}

void relocate_settle(struct cycle *c, struct moving *m)
{
	struct kept claimant;

	stand_back(c, m);
	spare_victims(c, m);
	spare_movers(c, m);
	claimant = m->kept[0];
	for (uint32_t i = 0; i < m->n_movers; i++)
		for (uint32_t u = m->movers[i]; u < relocate_surplus_end(c, m->movers[i]); u++)
			c->units->units[u].fixed = true;
	for (uint32_t i = 0; i < m->n_movers; i++)
		let_surplus_go(c, m->movers[i]);
	if (m->k->victims.n)
		preempt_let_go(c, m->k);
	else
		nominated_later_leave(c);
	for (uint32_t i = 0; i < m->n_movers; i++)
		for (uint32_t u = m->movers[i]; u < relocate_surplus_end(c, m->movers[i]); u++)
			preempt_unit_leaves(c, u);
	recall_places(c, &claimant);
	emit_next(c, PLAN_NOMINATE, m->k->job, m->k->flavor);
	nominated_places(c, m->k->job);
	preempt_emit_victims(c, m->k);
	emit_moves(c, m);
	recall_places(c, &claimant);
}
