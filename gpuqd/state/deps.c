/* Dependencies of jobs. The unmet dependencies of a live job are found by their subject: `awaited`
 * holds the first of all on the same subject, the others follow it. The end of a job evaluates no
 * dependency on another. */
#include "gpuqd/state/model_int.h"
#include "gpuqd/state/notify.h"

#include <stdlib.h>
#include <string.h>

struct deps *deps_new(uint32_t n)
{
	struct deps *all = must(calloc(1, sizeof(*all) + n * sizeof(all->items[0])));

	all->n = n;
	return all;
}

uint32_t deps_count(const struct job *j)
{
	return j->deps ? j->deps->n : 0;
}

/* ---- dependencies on the same subject ---- */

/* Hash what is awaited, not who waits: all jobs with the same dependency are one list in the
 * table. */
static uint32_t hash_of(const void *item)
{
	const struct dep *d = item;
	const struct job *j = d->job;

	if (d->type == GPUQ_DEP_SINGLETON)
		return hash_bytes(j->name, strlen(j->name)) ^ hash_bytes(j->user, strlen(j->user));
	return hash_mix(((uint64_t)d->on.id << 32 | (uint32_t)d->on.index) *
			(2 * (uint64_t)d->type + 3));
}

/* True if both wait for the same thing; a singleton waits for jobs of the same owner and name. */
static bool same(const struct dep *a, const struct dep *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == GPUQ_DEP_SINGLETON)
		return a->job->user == b->job->user && strcmp(a->job->name, b->job->name) == 0;
	return a->on.id == b->on.id && a->on.index == b->on.index;
}

/* Return the first dependency on the same subject as d. */
static struct dep *first_like(const struct model *m, const struct dep *d)
{
	struct dep *it;

	table_each(&m->awaited, hash_of(d), it)
		if (same(it, d))
			return it;
	return NULL;
}

static struct dep *first_on(const struct model *m, int type, struct job_key on)
{
	const struct dep d = { .type = type, .on = on };

	return m->awaited.n ? first_like(m, &d) : NULL;
}

static bool is_younger(const struct job *a, const struct job *b)
{
	return a->key.id > b->key.id || (a->key.id == b->key.id && a->key.index > b->key.index);
}

/* Link in order of arrival; singletons by age, the oldest first. */
static void link_dep(struct model *m, struct dep *d)
{
	struct dep *first = first_like(m, d), *before;

	if (!first) {
		DL_APPEND(first, d);
		table_add(&m->awaited, d, hash_of);
		return;
	}
	before = first->prev;
	while (before && d->type == GPUQ_DEP_SINGLETON && is_younger(before->job, d->job))
		before = before == first ? NULL : before->prev;
	if (before) {
		DL_APPEND_ELEM(first, before, d);
		return;
	}
	table_remove(&m->awaited, first, hash_of);
	DL_PREPEND(first, d);
	table_add(&m->awaited, d, hash_of);
}

/* Take a dependency out of the list of those that wait for the same; the table holds the first of
 * a list, so another one takes its slot. */
static void unlink_dep(struct model *m, struct dep *d)
{
	struct dep *first;

	if (!d->prev)
		return;
	first = first_like(m, d);
	if (first != d) {
		DL_DELETE(first, d);
	} else {
		table_remove(&m->awaited, d, hash_of);
		DL_DELETE(first, d);
		if (first)
			table_add(&m->awaited, first, hash_of);
	}
	d->prev = d->next = NULL;
}

void deps_link(struct model *m, struct job *j)
{
	for (uint32_t i = 0; i < deps_count(j) && !j->ended; i++)
		if (j->deps->items[i].state == DEP_WAITING)
			link_dep(m, &j->deps->items[i]);
}

void deps_unlink(struct model *m, struct job *j)
{
	for (uint32_t i = 0; i < deps_count(j); i++)
		unlink_dep(m, &j->deps->items[i]);
}

void deps_set(struct model *m, struct job *j, struct deps *all)
{
	deps_unlink(m, j);
	free(j->deps);
	j->deps = all;
	for (uint32_t i = 0; i < deps_count(j); i++)
		all->items[i].job = j;
	if (j->prev) /* it is in the model */
		deps_link(m, j);
}

void deps_like(struct model *m, struct job *j, const struct job *from)
{
	struct deps *all = from->deps ? deps_new(from->deps->n) : NULL;

	for (uint32_t i = 0; all && i < all->n; i++) {
		all->items[i] = from->deps->items[i];
		all->items[i].prev = all->items[i].next = NULL;
	}
	deps_set(m, j, all);
}

/* ---- dependencies that are met ---- */

static bool dep_never(int type, enum gpuq_job_state state)
{
	return (type == GPUQ_DEP_AFTEROK && state != GPUQ_JOB_COMPLETED) ||
	       (type == GPUQ_DEP_AFTERCORR && state != GPUQ_JOB_COMPLETED) ||
	       (type == GPUQ_DEP_AFTERNOTOK && state == GPUQ_JOB_COMPLETED);
}

/* Note that what was awaited has happened; the delay counts from then. */
static void done(struct model *m, struct dep *d, int64_t at_us)
{
	unlink_dep(m, d);
	d->state = DEP_DONE;
	d->at_us = at_us + d->delay_us;
	model_job_dirty(m, d->job);
}

/* Decide by how the awaited job ended whether the dependency is met or never will be; its owner is
 * notified of the latter at once. */
static void ended(struct model *m, struct dep *d, enum gpuq_job_state state, int64_t at_us)
{
	bool never;

	done(m, d, at_us);
	if (!dep_never(d->type, state))
		return;
	d->state = DEP_NEVER;
	deps_are_awaited(d->job, at_us, &never);
	if (never)
		notify_never(m, d->job);
}

/* Resolve dependencies on the end of exactly this job. */
static void tell_end(struct model *m, struct job_key on, enum gpuq_job_state state, int64_t at_us)
{
	static const int types[] = { GPUQ_DEP_AFTER, GPUQ_DEP_AFTERANY, GPUQ_DEP_AFTEROK,
				     GPUQ_DEP_AFTERNOTOK };
	struct dep *d, *next;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		DL_FOREACH_SAFE(first_on(m, types[i], on), d, next)
			ended(m, d, state, at_us);
}

/* Resolve aftercorr: an element of one array ended, so that the same element of another may
 * start. */
static void tell_likes(struct model *m, struct job_key on, enum gpuq_job_state state, int64_t at_us)
{
	struct dep *d, *next;

	/* That element is a job of its own from then on. */
	DL_FOREACH(first_on(m, GPUQ_DEP_AFTERCORR, (struct job_key){ on.id, -1 }), d)
		if (on.index >= 0 && d->job->array)
			(void)job_array_split(m, d->job, on.index);
	DL_FOREACH_SAFE(first_on(m, GPUQ_DEP_AFTERCORR, (struct job_key){ on.id, -1 }), d, next)
		if (on.index < 0 || d->job->key.index == on.index)
			ended(m, d, state, at_us);
}

void deps_ended(struct model *m, struct job_key on, enum gpuq_job_state state, int64_t at_us)
{
	if (m->awaited.n == 0)
		return;
	tell_end(m, on, state, at_us);
	tell_likes(m, on, state, at_us);
}

/* Resolve dependencies on the pending elements, which end with their array. */
void deps_elements_ended(struct model *m, const struct job *master, enum gpuq_job_state state,
			 int64_t at_us)
{
	const struct array *a = master->array;

	for (size_t i = 0; i < a->n_waiting_ranges && m->awaited.n; i++)
		for (int64_t k = a->waiting[i].first; k <= a->waiting[i].last;
		     k += a->waiting[i].step)
			tell_end(m, (struct job_key){ master->key.id, (int32_t)k }, state, at_us);
}

void deps_started(struct model *m, struct job_key on, int64_t at_us)
{
	struct dep *d, *next;

	DL_FOREACH_SAFE(first_on(m, GPUQ_DEP_AFTER, on), d, next)
		done(m, d, at_us);
	if (on.index < 0)
		return;
	DL_FOREACH_SAFE(first_on(m, GPUQ_DEP_AFTER, (struct job_key){ on.id, -1 }), d, next)
		done(m, d, at_us);
}

int deps_apply_ended(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	if (gpuq_job_state_ended(ev->dep.state))
		deps_ended(m, ev->job, ev->dep.state, ev->at_us);
	else
		deps_started(m, ev->job, ev->dep.start_us);
	return 0;
}

/* ---- singletons ---- */

/* True if an earlier job of the same owner and name is still pending or running. Jobs of one user
 * are in order of arrival, and such jobs mostly arrived one after the other. There are none before
 * job `from`. */
static bool has_elder(const struct model *m, const struct job *j, uint32_t from)
{
	const struct job *first = index_of_user(m, j->user);

	for (const struct job *it = j; it; it = it == first ? NULL : it->user_prev) {
		if (it->key.index < 0 && it->key.id < from)
			return false;
		if (!it->ended && it->key.id < j->key.id && strcmp(it->name, j->name) == 0)
			return true;
	}
	return false;
}

/* True if it was the next of its name: all jobs before it had ended. */
static bool was_next(const struct job *j)
{
	for (uint32_t i = 0; i < deps_count(j); i++)
		if (j->deps->items[i].type == GPUQ_DEP_SINGLETON &&
		    j->deps->items[i].state == DEP_DONE)
			return true;
	return false;
}

static struct dep *first_of_name(const struct model *m, struct job *j)
{
	const struct dep d = { .type = GPUQ_DEP_SINGLETON, .job = j };

	return m->awaited.n ? first_like(m, &d) : NULL;
}

struct job *deps_namesake(const struct model *m, struct job *j)
{
	const struct dep *d = first_of_name(m, j);

	return d ? d->job : NULL;
}

void deps_singletons(struct model *m, struct job *of, int64_t at_us)
{
	struct dep *first = first_of_name(m, of), *d, *next;
	uint32_t id;

	/* Only the oldest of them can be the next: it precedes the others. */
	if (!first || has_elder(m, first->job, was_next(of) ? of->key.id : 0))
		return;
	/* Release it, and the rest of its array. */
	id = first->job->key.id;
	DL_FOREACH_SAFE(first, d, next) {
		if (d->job->key.id != id)
			break;
		done(m, d, at_us);
	}
}

/* ---- the state of a job's dependencies ---- */

bool deps_are_awaited(const struct job *j, int64_t now_us, bool *never)
{
	const uint32_t n = deps_count(j);
	uint32_t n_open = 0, n_never = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct dep *d = &j->deps->items[i];

		n_never += d->state == DEP_NEVER;
		n_open += d->state == DEP_WAITING || (d->state == DEP_DONE && d->at_us > now_us);
	}
	*never = j->wish->depends_any ? n > 0 && n_never == n : n_never > 0;
	if (n == 0)
		return false;
	return j->wish->depends_any ? n_open + n_never == n : n_open + n_never > 0;
}
