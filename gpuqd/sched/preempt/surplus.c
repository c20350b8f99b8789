#include "gpuqd/sched/preempt/surplus.h"

#include "gpuqd/sched/preempt/minimise.h"
#include "gpuqd/sched/preempt/preempt_int.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/preempt/search_set.h"
#include "gpuqd/sched/timeline/nominated.h"

/* Take surplus of other jobs, also of lower priority in its own queue, one after the other, until a
 * set of pods fits. */
static bool take_surplus(struct cycle *c, struct claim *k)
{
	const struct units *u = c->units;

	for (uint32_t i = 0; i < u->n_by_rank && !c->failed; i++) {
		const struct unit *unit = &u->units[u->by_rank[i]];

		if (unit->surplus && !unit->gone && unit->job != k->job &&
		    (unit->queue != k->leaf || unit->priority < k->priority) &&
		    search_take(c, k, u->by_rank[i]) && search_fits(c, k))
			return minimise_improve(c, k);
	}
	return false;
}

bool surplus_reclaim(struct cycle *c, uint32_t job, uint32_t flavor, int64_t *amounts,
		     bool (*fits)(struct cycle *c, void *ctx), void *ctx)
{
	const struct snap_job *j = &c->s->jobs[job];
	struct claim k = { .job = job,
			   .flavor = flavor,
			   .leaf = j->queue,
			   .priority = j->priority,
			   .need = amounts,
			   .modes = CLAIM_GROWTH | CLAIM_OTHERS | CLAIM_OWN,
			   .stamp = { .number = ++c->units->n_claims },
			   .spare_max = GPUQ_UNLIMITED,
			   .room = { fits, ctx },
			   .told = CLAIM_TOLD_NOTHING };

	claim_set(&k, CLAIM_ONLY_QUOTA, preempt_only_quota(c, job));
	nominated_later_enter(c);
	if (!rules_possible(c, &k) || !take_surplus(c, &k)) {
		search_drop_all(c, &k);
		nominated_later_leave(c);
		return false;
	}
	preempt_let_go(c, &k);
	preempt_emit_victims(c, &k);
	return true;
}
