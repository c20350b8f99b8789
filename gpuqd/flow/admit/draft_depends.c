/* The jobs that a job depends on: each must exist, and may have started or ended before. */
#include "gpuqd/flow/admit/draft_depends.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gpuqd/state/job_keys.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/record/model_apply.h"
#include "gpuqd/flow/admit/draft_int.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"

/* ---- does it exist? ---- */

static const struct job *array_find(const struct model *m, uint32_t id)
{
	const struct job *j = model_find_job(m, (struct job_key){ id, -1 });

	return j && j->array ? j : NULL;
}

/* Get the elements that the array has or had; false: no such array. */
static bool elements(const struct draft *d, uint32_t id, struct gpuq_array *out)
{
	const struct job_key whole = { id, -1 };
	const struct job *on = model_find_job(d->m, whole);
	const struct gpuq_val *v = on ? NULL : history_job(journal_store(d->j), whole, d->a);
	const char *indices = on && on->array ? on->array->indices
					      : gpuq_get_str(gpuq_get(v, "array"), "indices", NULL);

	*out = (struct gpuq_array){ 0 };
	return indices && gpuq_array_parse(d->a, indices, out, NULL) == 0;
}

/* Get how a job ended that is not in memory any more; on its way to the disk history has no record of
 * it. */
static bool past_state(const struct draft *d, struct job_key key, enum gpuq_job_state *state)
{
	return model_departed(d->m, key, state) ||
	       history_state(journal_store(d->j), key, state) == 0;
}

/* Elements that ended while pending have no record of their own: the state of the array stands for
 * them. */
static bool dropped(const struct draft *d, uint32_t id, enum gpuq_job_state *state)
{
	const struct job *on = array_find(d->m, id);

	if (!on)
		return past_state(d, (struct job_key){ id, -1 }, state);
	*state = on->array->worst;
	return on->array->n_waiting == 0 && *state != GPUQ_JOB_COMPLETED;
}

/* Find out whether the job has ended, and how. GPUQ_ENOENT: no such job. */
static int find(const struct draft *d, struct job_key key, bool *has_ended,
		enum gpuq_job_state *state, struct gpuq_err *err)
{
	const struct job *on = model_find_job(d->m, key);
	struct gpuq_array set;

	if (!on && key.index >= 0) {
		on = array_find(d->m, key.id);
		if (on && !model_element_waits(on->array, key.index))
			on = NULL;
	}
	*has_ended = !on || on->ended;
	if (on) {
		*state = on->state;
		return 0;
	}
	if (key.id == 0 || key.id >= d->m->next_job_id)
		return gpuq_fail_field(err, GPUQ_ENOENT, "depends",
				       "job %" PRIu32 " does not exist", key.id);
	if (past_state(d, key, state))
		return 0;
	if (key.index < 0)
		return gpuq_fail_field(err, GPUQ_ENOENT, "depends",
				       "job %" PRIu32 " is no longer known", key.id);
	if (elements(d, key.id, &set) && !job_ranges_has(set.ranges, set.n_ranges, key.index))
		return gpuq_fail_field(err, GPUQ_ENOENT, "depends",
				       "array %" PRIu32 " has no element %" PRId32, key.id,
				       key.index);
	if (dropped(d, key.id, state))
		return 0;
	return gpuq_fail_field(err, GPUQ_ENOENT, "depends",
			       "job %" PRIu32 "_%" PRId32 " is no longer known", key.id, key.index);
}

/* Call for each element that has a counterpart in the other array; some of those may have ended. */
typedef int (*like_fn)(struct draft *d, struct job_key on, struct gpuq_err *err);

static int each_like(struct draft *d, uint32_t id, like_fn fn, struct gpuq_err *err)
{
	const struct job *on = array_find(d->m, id);
	struct gpuq_array set;
	int rc = 0;

	if ((on && on->array->n_waiting == on->array->size) || !elements(d, id, &set))
		return 0;
	for (size_t r = 0; r < d->spec.array.n_ranges && rc == 0; r++) {
		const struct gpuq_range *g = &d->spec.array.ranges[r];

		for (int64_t i = g->first; i <= g->last && rc == 0; i += g->step)
			if (job_ranges_has(set.ranges, set.n_ranges, i) &&
			    !(on && model_element_waits(on->array, i)))
				rc = fn(d, (struct job_key){ id, (int32_t)i }, err);
	}
	return rc;
}

static int is_there(struct draft *d, struct job_key on, struct gpuq_err *err)
{
	enum gpuq_job_state state;
	bool has_ended;

	return find(d, on, &has_ended, &state, err);
}

/* ---- does it depend on itself? ---- */

struct walk {
	const struct model *m;
	unsigned char *seen; /* one bit per id */
	struct job_keys left; /* still to be visited; whole jobs */
};

static bool walk_add(struct walk *w, uint32_t id)
{
	if (id >= w->m->next_job_id || w->seen[id / 8] >> id % 8 & 1)
		return true;
	w->seen[id / 8] |= (unsigned char)(1u << id % 8);
	return job_keys_add(&w->left, (struct job_key){ id, -1 });
}

static bool walk_job(struct walk *w, const struct job *j)
{
	bool fits = true;

	for (uint32_t i = 0; j && fits && i < deps_count(j); i++)
		if (j->deps->items[i].state == DEP_WAITING)
			fits = walk_add(w, j->deps->items[i].on.id);
	return fits;
}

/* Refuse a cycle. Only a changed description can close one: a new job has no dependents yet. */
static int check_circle(struct draft *d, struct gpuq_err *err)
{
	const uint32_t id = d->instead->key.id;
	struct walk w = { .m = d->m, .seen = calloc(d->m->next_job_id / 8 + 1, 1) };
	bool fits = w.seen != NULL;
	int rc = 0;

	for (size_t i = 0; i < d->spec.n_depends && fits; i++)
		fits = walk_add(&w, (uint32_t)d->spec.depends[i].job);
	while (fits && w.left.n > 0 && w.left.items[w.left.n - 1].id != id) {
		const struct job_key next = w.left.items[--w.left.n];

		fits = walk_job(&w, model_find_job(d->m, next));
		for (const struct job *j = index_elements(d->m, next.id); j && fits;
		     j = j->life->kin_next)
			fits = walk_job(&w, j);
	}
	if (!fits)
		rc = gpuq_no_memory(err);
	else if (w.left.n > 0)
		rc = gpuq_fail_field(err, GPUQ_EINVAL, "depends",
				     "job %" PRIu32 " would depend on itself", id);
	job_keys_done(&w.left);
	free(w.seen);
	return rc;
}

/* Name an element as its array has it where it was named by its own number. */
static void name_element(const struct draft *d, struct gpuq_depend *on)
{
	const struct job_key whole = { (uint32_t)on->job, -1 };
	struct job_key key = whole;
	const struct job *j;

	if (on->array_index >= 0 || model_find_job(d->m, whole))
		return;
	j = model_find_element(d->m, whole.id);
	if (j)
		key = j->key;
	else
		history_element(journal_store(d->j), whole.id, &key);
	on->job = key.id;
	on->array_index = key.index;
}

int draft_check_depends(struct draft *d, struct gpuq_err *err)
{
	int rc = 0;

	if (d->depends_stay)
		return 0;
	for (size_t i = 0; i < d->spec.n_depends && rc == 0; i++) {
		struct gpuq_depend *on = &d->spec.depends[i];

		if (on->type == GPUQ_DEP_SINGLETON)
			continue;
		name_element(d, on);
		rc = find(d, (struct job_key){ (uint32_t)on->job, (int32_t)on->array_index },
			  &d->dep_ended[i], &d->dep_state[i], err);
		if (rc == 0 && on->type == GPUQ_DEP_AFTERCORR && !d->dep_ended[i])
			rc = each_like(d, (uint32_t)on->job, is_there, err);
	}
	if (rc == 0 && d->instead && d->spec.n_depends)
		rc = check_circle(d, err);
	return rc;
}

/* ---- what has happened already ---- */

static int tell(struct draft *d, struct job_key on, enum gpuq_job_state state, int64_t start_us)
{
	struct event ev = { .type = EV_DEP_ENDED, .at_us = d->now_us, .job = on };

	ev.dep.state = state;
	ev.dep.start_us = start_us;
	return journal_apply(d->j, &ev, NULL);
}

static int tell_like(struct draft *d, struct job_key on, struct gpuq_err *err)
{
	enum gpuq_job_state state;
	bool has_ended;

	if (find(d, on, &has_ended, &state, err) == 0 && has_ended)
		(void)tell(d, on, state, 0);
	return 0;
}

/* Return when the job started; for an array, when its first element started as far as that is
 * known. 0: not yet. */
static int64_t started_at(const struct draft *d, struct job_key on)
{
	const struct job *j = model_find_job(d->m, on);
	int64_t first_us = 0;

	if (!j)
		return gpuq_get_int(history_job(journal_store(d->j), on, d->a), "start_time", 0);
	if (!j->array)
		return j->life->start_us;
	for (const struct job *it = index_elements(d->m, on.id); it; it = it->life->kin_next)
		if (it->life->start_us && (!first_us || it->life->start_us < first_us))
			first_us = it->life->start_us;
	if (!first_us && j->array->n_waiting + j->array->n_live < j->array->size)
		return d->now_us;
	return first_us;
}

void draft_tell_past(struct draft *d)
{
	for (size_t i = 0; i < d->spec.n_depends; i++) {
		const struct gpuq_depend *on = &d->spec.depends[i];
		const struct job_key key = { (uint32_t)on->job, (int32_t)on->array_index };
		const bool well = d->dep_ended[i] && d->dep_state[i] == GPUQ_JOB_COMPLETED;
		int64_t start_us = 0;

		/* If all elements of the array succeeded, there is no need to distinguish them. */
		if (on->type == GPUQ_DEP_AFTERCORR && key.index < 0 && !well)
			(void)each_like(d, key.id, tell_like, NULL);
		if (on->type == GPUQ_DEP_AFTER)
			start_us = started_at(d, key);
		if (start_us)
			(void)tell(d, key, GPUQ_JOB_RUNNING, start_us);
		else if (d->dep_ended[i])
			(void)tell(d, key, d->dep_state[i], 0);
	}
}
