#include "gpuqd/sched/timeline/emit.h"

#include "gpuqd/sched/place/charges.h"
#include "gpuqd/sched/quota/caps.h"
#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/sched/timeline/timeline.h"
#include "gpuqd/sched/timeline/timeline_pack.h"

void emit_next(struct cycle *c, enum plan_kind kind, uint32_t job, uint32_t flavor)
{
	const struct snap_key key = { c->s->jobs[job].key.id, plan_next_element(c, job) };
	struct plan_action *a = plan_emit_places(c, kind, job, key, flavor);

	if (!a || kind != PLAN_PLACE)
		return;
	a->backfilled = timeline_binds(c, job);
	a->yield_us = timeline_yield_us(c);
	a->walltime_us = timeline_given_us(c, job);
	timeline_started(c, a);
}

void emit_count(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[job];

	holdings_start(c, job, flavor, charges_of_places(c, job));
	if (c->s->lines.array_of[job] != SNAP_NONE && (j->n_ranges || j->key.index >= 0))
		caps_array_starts(c, job);
	c->plan.started[job]++;
}

void emit_start(struct cycle *c, uint32_t job, uint32_t flavor)
{
	emit_next(c, PLAN_PLACE, job, flavor);
	emit_count(c, job, flavor);
}
