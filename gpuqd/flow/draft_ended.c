/* What a job waits for may have ended before it came. */
#include "gpuqd/core/model.h"
#include "gpuqd/flow/draft.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"

static void tell(struct draft *d, struct job_key on, enum gpuq_job_state state)
{
	struct event ev = { .type = EV_DEP_ENDED, .at_us = d->now_us, .job = on };

	ev.dep_state = state;
	(void)journal_apply(d->j, &ev, NULL);
}

static bool has_ended(const struct draft *d, struct job_key key, enum gpuq_job_state *state)
{
	const struct job *j = job_find(d->m, key);

	if (!j)
		return history_state(journal_store(d->j), key, state) == 0;
	*state = j->state;
	return j->ended;
}

/* aftercorr: each element by its like in the other array. */
static void tell_elements(struct draft *d, uint32_t id)
{
	const struct job *on = job_find(d->m, (struct job_key){ id, -1 });
	enum gpuq_job_state state;

	if (on && !on->array)
		return;
	for (size_t r = 0; r < d->spec.array.n_ranges; r++) {
		const struct gpuq_range *g = &d->spec.array.ranges[r];

		for (int64_t i = g->first; i <= g->last; i += g->step > 0 ? g->step : 1) {
			const struct job_key key = { id, (int32_t)i };

			if (!(on && array_waits(on->array, i)) && has_ended(d, key, &state))
				tell(d, key, state);
		}
	}
}

void draft_tell_ended(struct draft *d)
{
	for (size_t i = 0; i < d->spec.n_depends; i++) {
		const struct gpuq_depend *on = &d->spec.depends[i];
		const struct job_key key = { (uint32_t)on->job, (int32_t)on->array_index };
		const bool done = d->dep_ended[i] && d->dep_state[i] == GPUQ_JOB_COMPLETED;

		/* Of an array of which all went well there is nothing to tell apart. */
		if (on->type == GPUQ_DEP_AFTERCORR && key.index < 0 && !done)
			tell_elements(d, key.id);
		if (d->dep_ended[i])
			tell(d, key, d->dep_state[i]);
	}
}
