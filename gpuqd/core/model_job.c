#include "gpuqd/core/joblog.h"
#include "gpuqd/core/model_int.h"
#include "gpuqd/core/notice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/units.h"

static char *dup_or_null(const char *s)
{
	return s && *s ? must(strdup(s)) : NULL;
}

/* The text may be the one that is there: then it stays, as whoever hears of the event still
 * reads it. */
void job_set_message(struct job *j, const char *text)
{
	char *fresh;

	if (text && text == j->message)
		return;
	fresh = dup_or_null(text);
	free(j->message);
	j->message = fresh;
}

/* ---- jobs in the model ---- */

struct job *job_new(struct model *m, struct job_key key)
{
	struct job *j = must(calloc(1, sizeof(*j)));

	(void)m;
	j->key = key;
	j->exit_code = -1;
	j->outcome_exit = -1;
	j->user = j->account = j->qos = j->flavor = "";
	j->requeue = true;
	return j;
}

void job_insert(struct model *m, struct job *j)
{
	HASH_ADD(hh, m->jobs, key, sizeof(j->key), j);
	m->n_jobs_by_state[j->state]++;
	index_add(m, j);
	if (j->n_deps)
		DL_APPEND2(m->depending, j, dep_prev, dep_next);
}

static uint32_t n_elements(const struct job *j)
{
	return j->array ? (uint32_t)j->array->n_waiting : 1;
}

/* Counters of the queue follow the state; an array's waiting part counts each element. */
void job_count(struct job *j, int sign)
{
	if (!j->queue || j->ended)
		return;
	if (job_is_live(j))
		j->queue->n_running += (uint32_t)sign;
	else
		j->queue->n_pending += (uint32_t)sign * n_elements(j);
}

void job_set_state(struct model *m, struct job *j, enum gpuq_job_state s)
{
	if (j->state == s)
		return;
	if (j->apart)
		job_set_apart(m, j, NULL, 0);
	job_count(j, -1);
	m->n_jobs_by_state[j->state]--;
	index_state(m, j, s);
	m->n_jobs_by_state[s]++;
	if (gpuq_job_state_ended(s)) {
		j->ended = true;
		joblog_ended(m, j);
		notice_ended(m, j);
	}
	job_count(j, 1);
	job_dirty(m, j);
}

static void array_free(struct array *a)
{
	if (!a)
		return;
	free(a->waiting);
	free(a->indices);
	free(a);
}

void job_free(struct model *m, struct job *j)
{
	struct pod *p, *pt;

	job_unlike(m, j);
	if (m->walk == j)
		m->walk = j->hh.next;
	job_set_promise(m, j, NULL);
	DL_FOREACH_SAFE2(j->pods, p, pt, job_next) pod_free(m, p);
	if (j->dirty)
		DL_DELETE2(m->dirty_jobs, j, dirty_prev, dirty_next);
	job_count(j, -1);
	m->n_jobs_by_state[j->state]--;
	index_remove(m, j);
	if (j->n_deps)
		DL_DELETE2(m->depending, j, dep_prev, dep_next);
	HASH_DEL(m->jobs, j);
	request_put(m, j->request);
	array_free(j->array);
	free(j->reasons);
	free(j->deps);
	evictions_free(j);
	free(j->retry.exits);
	free(j->name);
	free(j->labels);
	free(j->message);
	free(j->blocked);
	m->n_avoiding -= j->avoids != NULL;
	free(j->avoids);
	free(j->load);
	m->n_apart -= j->apart != NULL;
	free(j->apart);
	free(j->notify);
	free(j->token);
	free(j);
}

bool job_has_reasons(const struct job *j, const struct reason_fact *items, size_t n)
{
	bool same = n == j->n_reasons;

	for (size_t i = 0; i < n && same; i++)
		same = items[i].code == j->reasons[i].code && items[i].have == j->reasons[i].have &&
		       items[i].need == j->reasons[i].need &&
		       strcmp(items[i].object ? items[i].object : "", j->reasons[i].object) == 0;
	return same;
}

void job_set_reasons(struct model *m, struct job *j, const struct reason_fact *items, size_t n,
		     int64_t at_us)
{
	struct reason *fresh = NULL;

	if (n > 16)
		n = 16;
	/* Most cycles find most jobs waiting for what they waited for. */
	if (job_has_reasons(j, items, n))
		return;
	if (n)
		fresh = must(calloc(n, sizeof(*fresh)));
	for (size_t i = 0; i < n; i++) {
		fresh[i] = (struct reason){ .code = (uint16_t)items[i].code,
					    .unit = (uint16_t)items[i].unit,
					    .object = model_intern(m, items[i].object),
					    .have = items[i].have,
					    .need = items[i].need,
					    .since_us = at_us };
		for (size_t k = 0; k < j->n_reasons; k++)
			if (j->reasons[k].code == fresh[i].code &&
			    j->reasons[k].object == fresh[i].object)
				fresh[i].since_us = j->reasons[k].since_us;
	}
	free(j->reasons);
	j->reasons = fresh;
	j->n_reasons = (uint8_t)n;
}

/* ---- dependencies ---- */

static bool dep_never(int type, enum gpuq_job_state state)
{
	return (type == GPUQ_DEP_AFTEROK && state != GPUQ_JOB_COMPLETED) ||
	       (type == GPUQ_DEP_AFTERCORR && state != GPUQ_JOB_COMPLETED) ||
	       (type == GPUQ_DEP_AFTERNOTOK && state == GPUQ_JOB_COMPLETED);
}

static bool dep_names(const struct job *j, const struct dep *d, struct job_key key)
{
	if (d->type == GPUQ_DEP_SINGLETON || d->on.id != key.id)
		return false;
	if (d->type == GPUQ_DEP_AFTERCORR && j->key.index >= 0)
		return key.index == j->key.index || key.index == -1;
	return d->on.index == key.index;
}

static bool waits_for_like(const struct job *j, struct job_key on)
{
	if (!j->array || !array_waits(j->array, on.index))
		return false;
	for (uint32_t i = 0; i < j->n_deps; i++)
		if (j->deps[i].type == GPUQ_DEP_AFTERCORR && j->deps[i].state == DEP_WAITING &&
		    j->deps[i].on.id == on.id)
			return true;
	return false;
}

void model_dep_ended(struct model *m, struct job_key on, enum gpuq_job_state state, int64_t at_us)
{
	struct job *j;

	/* An element that waited for its like goes its own way from then on. */
	DL_FOREACH2(m->depending, j, dep_next)
	if (on.index >= 0 && waits_for_like(j, on))
		(void)array_split(m, j, on.index);
	DL_FOREACH2(m->depending, j, dep_next)
	{
		bool told = false, never;

		for (uint32_t i = 0; i < j->n_deps; i++) {
			struct dep *d = &j->deps[i];

			if (d->state != DEP_WAITING || !dep_names(j, d, on))
				continue;
			d->state = dep_never(d->type, state) ? DEP_NEVER : DEP_DONE;
			d->at_us = at_us + d->delay_us;
			job_dirty(m, j);
			told |= d->state == DEP_NEVER;
		}
		if (told) {
			job_waits_for_deps(j, at_us, &never);
			if (never)
				notice_never(m, j);
		}
	}
}

/* Does a job of the same owner and name that came before it still wait or run? Jobs of one
 * user stand in the order in which they came. */
static bool has_elder(const struct model *m, const struct job *j)
{
	for (const struct job *it = jobs_of_user(m, j->user); it; it = it->user_next)
		if (!it->ended && it->key.id < j->key.id && strcmp(it->name, j->name) == 0)
			return true;
	return false;
}

void model_singletons(struct model *m, const struct job *of, int64_t at_us)
{
	struct job *j;

	DL_FOREACH2(m->depending, j, dep_next)
	{
		if (j->user != of->user || strcmp(j->name, of->name) != 0)
			continue;
		for (uint32_t i = 0; i < j->n_deps; i++) {
			struct dep *d = &j->deps[i];

			if (d->type != GPUQ_DEP_SINGLETON || d->state != DEP_WAITING ||
			    has_elder(m, j))
				continue;
			d->state = DEP_DONE;
			d->at_us = at_us;
			job_dirty(m, j);
		}
	}
}

static void dep_started(struct model *m, const struct job *on, int64_t at_us)
{
	struct job *j;

	DL_FOREACH2(m->depending, j, dep_next)
	{
		for (uint32_t i = 0; i < j->n_deps; i++) {
			struct dep *d = &j->deps[i];

			if (d->type != GPUQ_DEP_AFTER || d->state != DEP_WAITING ||
			    d->on.id != on->key.id ||
			    (d->on.index >= 0 && d->on.index != on->key.index))
				continue;
			d->state = DEP_DONE;
			d->at_us = at_us + d->delay_us;
			job_dirty(m, j);
		}
	}
}

bool job_waits_for_deps(const struct job *j, int64_t now_us, bool *never)
{
	uint32_t n_open = 0, n_never = 0;

	for (uint32_t i = 0; i < j->n_deps; i++) {
		const struct dep *d = &j->deps[i];

		n_never += d->state == DEP_NEVER;
		n_open += d->state == DEP_WAITING || (d->state == DEP_DONE && d->at_us > now_us);
	}
	*never = j->depends_any ? j->n_deps > 0 && n_never == j->n_deps : n_never > 0;
	if (j->n_deps == 0)
		return false;
	return j->depends_any ? n_open + n_never == j->n_deps : n_open + n_never > 0;
}

/* ---- arrays ---- */

bool ranges_has(const struct gpuq_range *r, size_t n, int64_t index)
{
	for (size_t i = 0; i < n; i++)
		if (index >= r[i].first && index <= r[i].last &&
		    (index - r[i].first) % r[i].step == 0)
			return true;
	return false;
}

bool ranges_remove(struct gpuq_range **ranges, size_t *n, int64_t index)
{
	struct gpuq_range *r = *ranges;

	for (size_t i = 0; i < *n; i++) {
		if (!ranges_has(&r[i], 1, index))
			continue;
		if (r[i].first == r[i].last) {
			memmove(&r[i], &r[i + 1], (*n - i - 1) * sizeof(*r));
			--*n;
		} else if (index == r[i].first) {
			r[i].first += r[i].step;
		} else if (index == r[i].last || index + r[i].step > r[i].last) {
			r[i].last = index - r[i].step;
		} else {
			r = must(realloc(r, (*n + 1) * sizeof(*r)));
			*ranges = r;
			memmove(&r[i + 1], &r[i], (*n - i) * sizeof(*r));
			++*n;
			r[i].last = index - r[i].step;
			r[i + 1].first = index + r[i].step;
		}
		return true;
	}
	return false;
}

struct job *array_split(struct model *m, struct job *master, int32_t index)
{
	struct array *a = master->array;
	struct job *j;

	if (!a || !ranges_has(a->waiting, a->n_waiting_ranges, index))
		return NULL;
	job_count(master, -1);
	ranges_remove(&a->waiting, &a->n_waiting_ranges, index);
	a->n_waiting--;
	a->n_live++;
	job_count(master, 1);
	job_dirty(m, master);

	j = job_new(m, (struct job_key){ master->key.id, index });
	j->name = dup_or_null(master->name);
	j->user = master->user;
	j->account = master->account;
	j->qos = master->qos;
	j->uid = master->uid;
	j->gid = master->gid;
	j->queue = master->queue;
	j->request = master->request;
	j->request->n_jobs++;
	j->submit_us = master->submit_us;
	j->eligible_us = master->eligible_us;
	j->begin_us = master->begin_us;
	j->deadline_us = master->deadline_us;
	j->time_limit_us = master->time_limit_us;
	j->time_asked_us = master->time_asked_us;
	j->time_min_us = master->time_min_us;
	j->fixed_priority = master->fixed_priority;
	j->nice = master->nice;
	j->priority = master->priority;
	j->requeue = master->requeue;
	j->held_user = master->held_user;
	j->held_admin = master->held_admin;
	j->depends_any = master->depends_any;
	j->kill_on_invalid_dep = master->kill_on_invalid_dep;
	j->saves = master->saves;
	j->lease_us = master->lease_us;
	j->warn_lead_us = master->warn_lead_us;
	j->checkpoint_every_us = master->checkpoint_every_us;
	j->grace_us = master->grace_us;
	j->retry = master->retry;
	j->retry.exits = NULL;
	if (master->retry.n_exits) {
		j->retry.exits = must(malloc(master->retry.n_exits));
		memcpy(j->retry.exits, master->retry.exits, master->retry.n_exits);
	}
	j->labels = dup_or_null(master->labels);
	notice_copy(j, master);
	j->n_deps = master->n_deps;
	if (j->n_deps) {
		j->deps = must(calloc(j->n_deps, sizeof(*j->deps)));
		memcpy(j->deps, master->deps, j->n_deps * sizeof(*j->deps));
	}
	job_insert(m, j);
	job_count(j, 1);
	job_dirty(m, j);
	return j;
}

/* Not COMPLETED beats COMPLETED; among the others the first that ended so stays. */
static void array_note_end(struct array *a, const struct job *child)
{
	if (child->exit_code > a->worst_exit)
		a->worst_exit = child->exit_code;
	if (a->worst == GPUQ_JOB_COMPLETED)
		a->worst = child->state;
}

static void array_end_if_done(struct model *m, struct job *master, int64_t at_us)
{
	struct array *a = master->array;

	if (a->n_waiting > 0 || a->n_live > 0 || master->ended)
		return;
	master->end_us = at_us;
	master->exit_code = a->worst_exit;
	job_set_state(m, master, a->worst);
	model_dep_ended(m, master->key, a->worst, at_us);
	model_singletons(m, master, at_us);
	job_archive_if_done(m, master);
}

void array_child_ended(struct model *m, struct job *child, int64_t at_us)
{
	struct job *master =
		child->key.index < 0 ? NULL : job_find(m, (struct job_key){ child->key.id, -1 });

	if (!master || !master->array)
		return;
	array_note_end(master->array, child);
	master->array->n_live--;
	job_dirty(m, master);
	array_end_if_done(m, master, at_us);
}

/* ---- the end ---- */

bool job_archive_if_done(struct model *m, struct job *j)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct pod *p, *pt;

	DL_FOREACH2(j->pods, p, job_next)
	if (p->state != GPUQ_POD_GONE)
		return false;
	if (!j->ended)
		return false;
	record_history(m, j, &m->direct);
	if (m->has_besides && !j->nothing_beside && (j->token || j->array))
		record_beside(j, &m->direct);
	batch_put(&m->direct, TABLE_JOB, key, key_job(key, j->key.id, j->key.index), NULL, 0);
	DL_FOREACH_SAFE2(j->pods, p, pt, job_next) pod_remove(m, p);
	job_free(m, j);
	return true;
}

static void drop_gone_pods(struct model *m, struct job *j)
{
	struct pod *p, *pt;

	DL_FOREACH_SAFE2(j->pods, p, pt, job_next)
	if (p->state == GPUQ_POD_GONE)
		pod_remove(m, p);
}

static int apply_ended(struct model *m, struct job *j, const struct event *ev, struct gpuq_err *err)
{
	if (j->ended)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended already", j->key.id);
	if (!gpuq_job_state_ended(ev->ended.state))
		return gpuq_fail(err, GPUQ_EINTERNAL, "no final state");
	if (!job_attempt_over(j))
		return gpuq_fail(err, GPUQ_EINVAL, "job %u still has pods", j->key.id);
	if (j->array && j->array->n_waiting > 0) {
		/* The waiting elements end as one: they share a record. */
		job_count(j, -1);
		j->array->n_waiting = 0;
		j->array->n_waiting_ranges = 0;
		job_count(j, 1);
		if (j->array->worst == GPUQ_JOB_COMPLETED)
			j->array->worst = ev->ended.state;
		job_dirty(m, j);
		array_end_if_done(m, j, ev->at_us);
		return 0;
	}
	if (ev->ended.state == GPUQ_JOB_PREEMPTED || ev->ended.state == GPUQ_JOB_NODE_FAIL)
		charge_attempt_lost(m, j,
				    j->leave_cause != GPUQ_CAUSE_NONE ? j->leave_cause
								      : GPUQ_CAUSE_INFRA);
	j->end_us = ev->at_us;
	job_set_promise(m, j, NULL);
	j->exit_code = ev->ended.exit_code;
	job_set_message(j, ev->ended.message);
	job_set_reasons(m, j, NULL, 0, ev->at_us);
	job_set_state(m, j, ev->ended.state);
	model_dep_ended(m, j->key, j->state, ev->at_us);
	model_singletons(m, j, ev->at_us);
	array_child_ended(m, j, ev->at_us);
	job_archive_if_done(m, j);
	return 0;
}

/* It was to be evicted, but all of it had come to its end well by then. Whoever leaves
 * with 0 because he was told to may have saved himself only. */
static bool was_done_anyway(const struct job *j)
{
	const struct pod *p;
	bool any = false;

	if (j->outcome != GPUQ_JOB_PREEMPTED)
		return false;
	DL_FOREACH2(j->pods, p, job_next)
	{
		if (p->attempt != j->attempt || p->dropped)
			continue;
		if (p->exit_code != 0 || p->fault != POD_FAULT_NONE || !p->untold ||
		    p->end_us >= j->leave_us)
			return false;
		any = true;
	}
	return any;
}

void job_verdict(const struct job *j, struct event *out)
{
	const struct pod *p, *first = NULL;
	enum gpuq_job_state state = j->outcome;
	int exit_code = j->outcome_exit;
	bool again = false, counts = true;
	enum gpuq_cause cause = GPUQ_CAUSE_REQUEUE;
	const char *late = NULL;

	memset(out, 0, sizeof(*out));
	out->job = j->key;
	DL_FOREACH2(j->pods, p, job_next)
	if (p->attempt == j->attempt && p->message && !first)
		first = p;
	/* Pods that never ran have nothing to say. */
	if (j->leave_cause == GPUQ_CAUSE_INFRA && j->n_evictions)
		late = j->evictions[j->n_evictions - 1].why;
	if (state == GPUQ_JOB_PENDING || was_done_anyway(j))
		state = GPUQ_JOB_COMPLETED;
	if (j->leave_cause != GPUQ_CAUSE_NONE && state == GPUQ_JOB_PREEMPTED) {
		/* Whoever asked for it himself need not have allowed it before. */
		again = j->requeue || j->leave_cause == GPUQ_CAUSE_REQUEUE;
		counts = false;
		cause = j->leave_cause;
	} else if (state == GPUQ_JOB_NODE_FAIL) {
		/* The infrastructure's fault is not the owner's: always tried again, unless
		 * the owner forbade requeueing. */
		again = j->requeue && !j->cancel_asked;
		counts = false;
		cause = GPUQ_CAUSE_INFRA;
	} else if (state == GPUQ_JOB_FAILED && exit_code == JOB_EXIT_SAVED && j->saves &&
		   !j->cancel_asked) {
		again = true; /* no failure: it saved itself and wants to go on */
		counts = false;
	} else if (j->retry.limit > j->n_retries && !j->cancel_asked && exit_code >= 0) {
		bool listed = false;

		for (size_t i = 0; i < j->retry.n_exits; i++)
			listed |= j->retry.exits[i] == exit_code;
		again = (state == GPUQ_JOB_FAILED &&
			 (listed || (j->retry.on & GPUQ_RETRY_FAILURE))) ||
			(state == GPUQ_JOB_OUT_OF_MEMORY && (j->retry.on & GPUQ_RETRY_OOM)) ||
			(state == GPUQ_JOB_TIMEOUT && j->leave_cause != GPUQ_CAUSE_IDLE &&
			 (j->retry.on & GPUQ_RETRY_TIMEOUT));
	}
	if (again) {
		out->type = EV_JOB_REQUEUED;
		out->requeued.cause = cause;
		out->requeued.counts = counts;
		out->requeued.message = first ? first->message : late ? late : "";
		return;
	}
	out->type = EV_JOB_ENDED;
	out->ended.state = state;
	out->ended.exit_code = state == GPUQ_JOB_COMPLETED ? 0 : exit_code;
	out->ended.message = j->message ? j->message : first ? first->message : late ? late : "";
}

/* ---- placing and leaving ---- */

int placed_check(const struct model *m, const struct job *j, const struct placed_pod *pods,
		 uint32_t n, struct gpuq_err *err)
{
	for (uint32_t i = 0; i < n; i++)
		if (!node_find(m, pods[i].node) || pods[i].group >= j->request->spec.n_groups)
			return gpuq_fail(err, GPUQ_ENOENT, "no node is named %s", pods[i].node);
	return 0;
}

struct pod *placed_add(struct model *m, struct job *j, const struct placed_pod *pp, int64_t at_us)
{
	const struct gpuq_group *g = &j->request->spec.groups[pp->group];
	struct pod *p = pod_add(m, j, node_find(m, pp->node), pp->n_devices);

	p->attempt = j->attempt;
	p->index = j->n_indexes++;
	p->group = pp->group;
	p->group_index = pp->group_index;
	p->placed_us = at_us;
	p->cpu_milli = g->cpu_milli;
	p->memory_bytes = g->memory_bytes;
	p->gpus_milli = pp->gpus_milli;
	if (pp->n_devices)
		memcpy(p->devices, pp->devices, pp->n_devices * sizeof(*p->devices));
	j->queue->allocated_milli += p->gpus_milli;
	charge_strand(m, p->node);
	p->strand_from_us = p->node->strand_us;
	return p;
}

static int apply_placed(struct model *m, struct job *j, const struct event *ev,
			struct gpuq_err *err)
{
	int rc = placed_check(m, j ? j : job_find(m, (struct job_key){ ev->job.id, -1 }),
			      ev->placed.pods, ev->placed.n_pods, err);

	if (rc < 0)
		return rc;
	if (!j) {
		struct job *master = job_find(m, (struct job_key){ ev->job.id, -1 });

		j = array_split(m, master, ev->job.index);
		if (!j)
			return gpuq_fail(err, GPUQ_EINVAL, "element %d of job %u does not wait",
					 ev->job.index, ev->job.id);
	}
	if (j->state != GPUQ_JOB_PENDING && j->state != GPUQ_JOB_PROVISIONING)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u does not wait", j->key.id);
	if (j->started_once)
		j->attempt++;
	j->started_once = true;
	free(j->token);
	j->token = must(strdup(ev->placed.token));
	j->flavor = model_intern(m, ev->placed.flavor);
	j->placed_us = ev->at_us;
	j->start_us = j->end_us = 0;
	j->outcome = GPUQ_JOB_PENDING;
	j->outcome_exit = -1;
	j->leave_cause = GPUQ_CAUSE_NONE;
	j->leave_us = 0;
	free(j->load);
	j->load = NULL;
	j->warned = j->warn_sent = false;
	j->told &= ~(unsigned)GPUQ_NOTIFY_TIMES;
	free(j->blocked);
	j->blocked = NULL;
	job_set_promise(m, j, NULL);
	j->n_indexes = 0;
	j->shrunk_us = j->short_us = 0;
	j->yield_us = ev->placed.yield_us;
	if (ev->placed.time_limit_us)
		j->time_limit_us = ev->placed.time_limit_us;
	for (uint32_t i = 0; i < ev->placed.n_pods; i++)
		placed_add(m, j, &ev->placed.pods[i], ev->at_us);
	job_set_reasons(m, j, NULL, 0, ev->at_us);
	job_set_state(m, j, GPUQ_JOB_STARTING);
	job_dirty(m, j);
	return 0;
}

static int apply_cancel(struct model *m, struct job *j, const struct event *ev,
			struct gpuq_err *err)
{
	if (j->ended || j->cancel_asked)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended already", j->key.id);
	if (!job_is_live(j)) {
		struct event end = { .type = EV_JOB_ENDED, .at_us = ev->at_us, .job = j->key };

		end.ended.state = GPUQ_JOB_CANCELLED;
		end.ended.exit_code = -1;
		end.ended.message = ev->cancel.why ? ev->cancel.why : "";
		return apply_ended(m, j, &end, err);
	}
	j->cancel_asked = true;
	/* It leaves for another already: it will not come back. */
	if (j->outcome == GPUQ_JOB_PREEMPTED)
		j->outcome = GPUQ_JOB_CANCELLED;
	job_set_promise(m, j, NULL);
	if (ev->cancel.why)
		job_set_message(j, ev->cancel.why);
	job_leave(m, j, GPUQ_CAUSE_ADMIN, GPUQ_JOB_CANCELLED, ev->at_us, -1);
	return 0;
}

/* Start after start it did not run in time, wherever it was: more of the same only holds
 * devices that others could use. Somebody should look, and release it. */
#define START_TIMEOUTS_MAX 5

static void hold_if_it_never_runs(struct job *j)
{
	uint32_t n = 0;

	while (n < j->n_evictions &&
	       strcmp(j->evictions[j->n_evictions - 1 - n].rule, RULE_START_TIMEOUT) == 0)
		n++;
	j->held_retries |= n >= START_TIMEOUTS_MAX;
}

static int apply_requeued(struct model *m, struct job *j, const struct event *ev,
			  struct gpuq_err *err)
{
	const struct event lost = { .at_us = ev->at_us, .evict.rule = "pod_lost" };

	if (!job_is_live(j) || !job_attempt_over(j))
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has no attempt that is over", j->key.id);
	charge_attempt_lost(m, j, ev->requeued.cause);
	if (ev->requeued.counts)
		j->n_retries++;
	/* It ran, and nobody here asked it to leave. */
	if (ev->requeued.cause == GPUQ_CAUSE_INFRA && j->start_us &&
	    j->leave_cause == GPUQ_CAUSE_NONE)
		note_eviction(m, j, GPUQ_CAUSE_INFRA, &lost);
	/* What is being moved leaves in order to start on its new places. */
	if (!cause_is_eviction(j->leave_cause))
		job_set_promise(m, j, NULL);
	if (j->time_asked_us)
		j->time_limit_us = j->time_asked_us;
	j->not_before_us = ev->requeued.not_before_us;
	j->outcome = GPUQ_JOB_PENDING;
	j->outcome_exit = -1;
	j->leave_cause = GPUQ_CAUSE_NONE;
	j->leave_us = 0;
	j->start_us = 0;
	if (ev->requeued.cause == GPUQ_CAUSE_INFRA)
		hold_if_it_never_runs(j);
	job_set_message(j, ev->requeued.message); /* it may be that of a pod that goes now */
	drop_gone_pods(m, j);
	job_set_reasons(m, j, NULL, 0, ev->at_us);
	job_set_state(m, j, GPUQ_JOB_PENDING);
	job_dirty(m, j);
	notice_requeued(m, j, ev->requeued.cause);
	return 0;
}

static void apply_blocked(struct model *m, struct job *j, const struct event *ev)
{
	job_unlike(m, j);
	free(j->blocked);
	j->blocked = NULL;
	if (ev->blocked.reason.code == GPUQ_R_NONE)
		return;
	j->blocked = must(malloc(sizeof(*j->blocked)));
	*j->blocked = (struct blocked){ ev->blocked.reason.code,
					model_intern(m, ev->blocked.reason.object),
					ev->blocked.until_us };
}

int model_apply_job(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j;
	bool splits; /* by itself, once nothing can fail any more */

	if (ev->type == EV_JOB_SUBMITTED)
		return model_apply_submitted(m, ev, err);
	if (ev->type == EV_KEYS_EXPIRED) {
		model_expire_keys(m, ev->at_us);
		accounts_expire(m, ev->at_us);
		return 0;
	}
	if (ev->type == EV_USE_MEASURED) {
		model_apply_measured(m, ev);
		return 0;
	}
	if (ev->type == EV_DEP_ENDED) {
		model_dep_ended(m, ev->job, ev->dep_state, ev->at_us);
		return 0;
	}
	if (ev->type == EV_BESIDE_GONE) {
		unsigned char key[CHANGE_KEY_BYTES_MAX];

		batch_put(&m->direct, TABLE_BESIDE, key, key_job(key, ev->job.id, ev->job.index),
			  NULL, 0);
		return 0;
	}
	j = job_find(m, ev->job);
	splits = ev->type == EV_JOB_PLACED || ev->type == EV_JOB_NOMINATED;
	if (!j && ev->job.index >= 0 && !splits) {
		struct job *master = job_find(m, (struct job_key){ ev->job.id, -1 });

		j = master ? array_split(m, master, ev->job.index) : NULL;
	}
	if (!j && !(splits && job_find(m, (struct job_key){ ev->job.id, -1 })))
		return gpuq_fail(err, GPUQ_ENOENT, "no such job: %u", ev->job.id);

	switch (ev->type) {
	case EV_JOB_UPDATED:
		return model_apply_updated(m, j, ev, err);
	case EV_JOB_NICED:
		j->nice = ev->nice;
		job_dirty(m, j);
		return 0;
	case EV_JOB_WARNED:
		j->warned = true;
		job_dirty(m, j);
		return 0;
	case EV_JOB_HELD:
		if (j->ended)
			return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended", j->key.id);
		*(ev->held.admin ? &j->held_admin : &j->held_user) = true;
		job_set_promise(m, j, NULL); /* it does not start there */
		job_dirty(m, j);
		return 0;
	case EV_JOB_RELEASED:
		if (j->ended)
			return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended", j->key.id);
		j->held_user = j->held_retries = false;
		if (ev->held.admin)
			j->held_admin = false;
		if (j->eligible_us < ev->at_us && j->state == GPUQ_JOB_PENDING)
			j->eligible_us = ev->at_us;
		job_dirty(m, j);
		return 0;
	case EV_JOB_CANCEL_ASKED:
		return apply_cancel(m, j, ev, err);
	case EV_JOB_PLACED:
		return apply_placed(m, j, ev, err);
	case EV_JOB_NOMINATED:
	case EV_JOB_RENOUNCED:
	case EV_JOB_EVICT_ASKED:
	case EV_JOB_SHRINK_ASKED:
	case EV_JOB_GROWN:
		return model_apply_claim(m, j, ev, err);
	case EV_JOB_REQUEUED:
		return apply_requeued(m, j, ev, err);
	case EV_JOB_ENDED:
		return apply_ended(m, j, ev, err);
	case EV_JOB_REASONS:
		if (j->state == GPUQ_JOB_PENDING) {
			job_set_reasons(m, j, ev->reasons.items, ev->reasons.n, ev->at_us);
			j->priority = ev->reasons.terms.total;
			j->terms = ev->reasons.terms;
			j->ranked = true;
			j->planned_us = ev->reasons.planned_us;
		}
		return 0;
	case EV_JOB_FRAGMENTED:
		if (j->state != GPUQ_JOB_PENDING && ev->fragmented.milli)
			return gpuq_fail(err, GPUQ_EINVAL, "job %u does not wait", j->key.id);
		job_set_apart(m, j, ev->fragmented.flavor, ev->fragmented.milli);
		return 0;
	case EV_JOB_BLOCKED:
		apply_blocked(m, j, ev);
		return 0;
	default:
		return gpuq_fail(err, GPUQ_EINTERNAL, "%s: no such thing happens yet",
				 event_words[ev->type]);
	}
}

void job_note_started(struct model *m, struct job *j, int64_t at_us)
{
	j->start_us = at_us;
	job_set_state(m, j, GPUQ_JOB_RUNNING);
	joblog_started(m, j, at_us);
	notice_started(m, j);
	dep_started(m, j, at_us);
}
