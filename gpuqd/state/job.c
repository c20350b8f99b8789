#include "gpuqd/state/record/history_index.h"
#include "gpuqd/state/record/record.h"
#include "gpuqd/state/view/joblog.h"
#include "gpuqd/state/model_int.h"
#include "gpuqd/state/notify.h"

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

	if (text && text == j->life->message)
		return;
	fresh = dup_or_null(text);
	if (!fresh && !j->life->message)
		return;
	free(j->life->message);
	job_life(j)->message = fresh;
}

/* ---- jobs in the model ---- */

static uint32_t hash_of(const void *item)
{
	return job_key_hash(((const struct job *)item)->key);
}

void job_expect(struct model *m, size_t n_jobs, size_t n_keys)
{
	table_reserve(&m->jobs_by_key, (uint32_t)n_jobs, hash_of);
	keys_reserve(&m->keys, (uint32_t)n_keys);
}

void job_insert(struct model *m, struct job *j)
{
	table_add(&m->jobs_by_key, j, hash_of);
	DL_APPEND(m->jobs, j);
	m->n_jobs++;
	m->n_jobs_by_state[j->state]++;
	index_add(m, j);
	deps_link(m, j);
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
	j->queue->n_unknown += j->held_restore ? (uint32_t)sign : 0;
	j->queue->n_recovered += j->recovered ? (uint32_t)sign : 0;
	if (model_job_is_live(j))
		j->queue->n_running += (uint32_t)sign;
	else
		j->queue->n_pending += (uint32_t)sign * n_elements(j);
}

void job_set_state(struct model *m, struct job *j, enum gpuq_job_state s)
{
	if (j->state == s)
		return;
	if (j->life->apart)
		accounting_set_apart(m, j, NULL, 0);
	job_count(j, -1);
	m->n_jobs_by_state[j->state]--;
	index_state(m, j, s);
	m->n_jobs_by_state[s]++;
	if (gpuq_job_state_ended(s)) {
		index_stored(m, j, -1);
		j->ended = true;
		deps_unlink(m, j);
		joblog_ended(m, j);
		notify_ended(m, j);
	}
	job_count(j, 1);
	model_job_dirty(m, j);
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

	equivalent_forget(m, j);
	if (m->walk == j)
		m->walk = j->next;
	job_set_promise(m, j, NULL);
	DL_FOREACH_SAFE2(j->pods, p, pt, job_next)
		pod_free(m, p);
	if (j->dirty)
		m->dirty_jobs[j->dirty_at] = NULL;
	job_count(j, -1);
	m->n_jobs_by_state[j->state]--;
	index_remove(m, j);
	table_remove(&m->jobs_by_key, j, hash_of);
	DL_DELETE(m->jobs, j);
	m->n_jobs--;
	model_request_put(m, j->request);
	array_free(j->array);
	m->n_avoiding -= j->life->avoids != NULL;
	m->n_apart -= j->life->apart != NULL;
	job_parts_free(m, j);
	free(j);
}

/* ---- arrays ---- */

bool job_ranges_has(const struct gpuq_range *r, size_t n, int64_t index)
{
	for (size_t i = 0; i < n; i++)
		if (index >= r[i].first && index <= r[i].last &&
		    (index - r[i].first) % r[i].step == 0)
			return true;
	return false;
}

bool job_ranges_remove(struct gpuq_range **ranges, size_t *n, int64_t index)
{
	struct gpuq_range *r = *ranges;

	for (size_t i = 0; i < *n; i++) {
		if (!job_ranges_has(&r[i], 1, index))
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

struct job *job_array_split(struct model *m, struct job *master, int32_t index)
{
	struct array *a = master->array;
	struct job *j;

	if (!a || !job_ranges_has(a->waiting, a->n_waiting_ranges, index))
		return NULL;
	job_count(master, -1);
	job_ranges_remove(&a->waiting, &a->n_waiting_ranges, index);
	a->n_waiting--;
	a->n_live++;
	job_count(master, 1);
	model_job_dirty(m, master);

	j = job_new(m, (struct job_key){ master->key.id, index });
	j->user = master->user;
	j->qos = master->qos;
	j->queue = master->queue;
	j->request = master->request;
	j->request->n_jobs++;
	j->submit_us = master->submit_us;
	j->eligible_us = master->eligible_us;
	j->time_limit_us = master->time_limit_us;
	j->held_user = master->held_user;
	j->held_admin = master->held_admin;
	job_parts_like(m, j, master);
	job_insert(m, j);
	job_count(j, 1);
	model_job_dirty(m, j);
	return j;
}

/* Not COMPLETED beats COMPLETED; among the others the first that ended so stays. */
static void array_note_end(struct array *a, const struct job *child)
{
	if (child->life->exit_code > a->worst_exit)
		a->worst_exit = child->life->exit_code;
	if (a->worst == GPUQ_JOB_COMPLETED)
		a->worst = child->state;
}

static void array_end_if_done(struct model *m, struct job *master, int64_t at_us)
{
	struct array *a = master->array;

	if (a->n_waiting > 0 || a->n_live > 0 || master->ended)
		return;
	job_life(master)->end_us = at_us;
	job_life(master)->exit_code = a->worst_exit;
	job_set_state(m, master, a->worst);
	deps_ended(m, master->key, a->worst, at_us);
	deps_singletons(m, master, at_us);
	job_archive_if_done(m, master);
}

void job_array_child_ended(struct model *m, struct job *child, int64_t at_us)
{
	struct job *master = child->key.index < 0
				     ? NULL
				     : model_find_job(m, (struct job_key){ child->key.id, -1 });

	if (!master || !master->array)
		return;
	array_note_end(master->array, child);
	master->array->n_live--;
	model_job_dirty(m, master);
	array_end_if_done(m, master, at_us);
}

/* ---- the end ---- */

bool job_archive_if_done(struct model *m, struct job *j)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	const struct job_key whole = { j->key.id, -1 };
	struct job *master = j->key.index < 0 ? NULL : model_find_job(m, whole);
	struct pod *p, *pt;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->state != GPUQ_POD_GONE)
			return false;
	/* An array is there as long as one of its elements: they say which. */
	if (!j->ended || (j->array && index_elements(m, j->key.id)))
		return false;
	history_record(m, j, &m->direct);
	if (m->has_besides && !j->nothing_beside && (j->life->token || j->array))
		record_beside(j, &m->direct);
	change_batch_put(&m->direct, TABLE_JOB, key, change_key_job(key, j->key.id, j->key.index),
			 NULL, 0);
	DL_FOREACH_SAFE2(j->pods, p, pt, job_next)
		pod_remove(m, p);
	job_free(m, j);
	if (master)
		job_archive_if_done(m, master);
	return true;
}

void job_drop_gone_pods(struct model *m, struct job *j)
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
	if (!model_job_attempt_over(j))
		return gpuq_fail(err, GPUQ_EINVAL, "job %u still has pods", j->key.id);
	if (j->array && j->array->n_waiting > 0) {
		/* The waiting elements end as one: they share a record. */
		deps_elements_ended(m, j, ev->ended.state, ev->at_us);
		job_count(j, -1);
		j->array->n_waiting = 0;
		j->array->n_waiting_ranges = 0;
		job_count(j, 1);
		if (j->array->worst == GPUQ_JOB_COMPLETED)
			j->array->worst = ev->ended.state;
		model_job_dirty(m, j);
		array_end_if_done(m, j, ev->at_us);
		return 0;
	}
	if (ev->ended.state == GPUQ_JOB_PREEMPTED || ev->ended.state == GPUQ_JOB_NODE_FAIL)
		accounting_charge_attempt_lost(m, j,
					       j->life->leave_cause != GPUQ_CAUSE_NONE
						       ? j->life->leave_cause
						       : GPUQ_CAUSE_INFRA);
	/* The clock of a node may be ahead: no job ends before it started. */
	job_life(j)->end_us = ev->at_us > j->life->start_us ? ev->at_us : j->life->start_us;
	job_set_promise(m, j, NULL);
	job_life(j)->exit_code = ev->ended.exit_code;
	job_set_message(j, ev->ended.message);
	job_set_reasons(m, j, NULL, 0, ev->at_us);
	job_set_state(m, j, ev->ended.state);
	deps_ended(m, j->key, j->state, ev->at_us);
	deps_singletons(m, j, ev->at_us);
	job_array_child_ended(m, j, ev->at_us);
	job_archive_if_done(m, j);
	return 0;
}

/* It was to be evicted, but all of it had come to its end well by then. Whoever leaves
 * with 0 because he was told to may have saved himself only. */
static bool was_done_anyway(const struct job *j)
{
	const struct pod *p;
	bool any = false;

	if (j->life->outcome != GPUQ_JOB_PREEMPTED)
		return false;
	DL_FOREACH2(j->pods, p, job_next) {
		if (p->attempt != j->attempt || p->dropped)
			continue;
		if (p->exit_code != 0 || p->fault != POD_FAULT_NONE || !p->untold ||
		    p->end_us >= j->life->leave_us)
			return false;
		any = true;
	}
	return any;
}

void job_verdict(const struct job *j, struct event *out)
{
	const struct pod *p, *first = NULL;
	enum gpuq_job_state state = j->life->outcome;
	int exit_code = j->life->outcome_exit;
	bool again = false, counts = true;
	enum gpuq_cause cause = GPUQ_CAUSE_REQUEUE;
	const char *late = NULL;

	memset(out, 0, sizeof(*out));
	out->job = j->key;
	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && p->message && !first)
			first = p;
	/* Pods that never ran have nothing to say. */
	if (j->life->leave_cause == GPUQ_CAUSE_INFRA && j->life->n_evictions)
		late = j->life->evictions[j->life->n_evictions - 1].why;
	if (state == GPUQ_JOB_PENDING || was_done_anyway(j))
		state = GPUQ_JOB_COMPLETED;
	if (j->life->leave_cause != GPUQ_CAUSE_NONE && state == GPUQ_JOB_PREEMPTED) {
		/* Whoever asked for it himself need not have allowed it before. */
		again = j->wish->requeue || j->life->leave_cause == GPUQ_CAUSE_REQUEUE;
		counts = false;
		cause = j->life->leave_cause;
	} else if (state == GPUQ_JOB_NODE_FAIL) {
		/* The infrastructure's fault is not the owner's: always tried again, unless
		 * the owner forbade requeueing. */
		again = j->wish->requeue && !j->cancel_asked;
		counts = false;
		cause = GPUQ_CAUSE_INFRA;
	} else if (state == GPUQ_JOB_FAILED && exit_code == JOB_EXIT_SAVED && j->wish->saves &&
		   !j->cancel_asked) {
		again = true; /* no failure: it saved itself and wants to go on */
		counts = false;
	} else if (j->wish->retry_limit > j->life->n_retries && !j->cancel_asked &&
		   exit_code >= 0) {
		again = (state == GPUQ_JOB_FAILED && (job_wish_has_exit(j->wish, exit_code) ||
						      (j->wish->retry_on & GPUQ_RETRY_FAILURE))) ||
			(state == GPUQ_JOB_OUT_OF_MEMORY && (j->wish->retry_on & GPUQ_RETRY_OOM)) ||
			(state == GPUQ_JOB_TIMEOUT && j->life->leave_cause != GPUQ_CAUSE_IDLE &&
			 (j->wish->retry_on & GPUQ_RETRY_TIMEOUT));
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
	out->ended.message = j->life->message ? j->life->message
			     : first          ? first->message
			     : late           ? late
					      : "";
}

/* ---- placing and leaving ---- */

int job_placed_check(const struct model *m, const struct job *j, const struct placed_pod *pods,
		     uint32_t n, struct gpuq_err *err)
{
	for (uint32_t i = 0; i < n; i++)
		if (!model_find_node(m, pods[i].node) || pods[i].group >= j->request->spec.n_groups)
			return gpuq_fail(err, GPUQ_ENOENT, "no node is named %s", pods[i].node);
	return 0;
}

struct pod *job_placed_add(struct model *m, struct job *j, const struct placed_pod *pp,
			   int64_t at_us)
{
	const struct request_group *g = &j->request->spec.groups[pp->group];
	struct pod *p = pod_add(m, j, model_find_node(m, pp->node), pp->n_devices);

	p->attempt = j->attempt;
	p->index = job_life(j)->n_indexes++;
	p->group = pp->group;
	p->group_index = pp->group_index;
	p->placed_us = at_us;
	p->cpu_milli = g->cpu_milli;
	p->memory_bytes = g->memory_bytes;
	p->gpus_milli = pp->gpus_milli;
	if (pp->n_devices)
		memcpy(p->devices, pp->devices, pp->n_devices * sizeof(*p->devices));
	j->queue->allocated_milli += p->gpus_milli;
	accounting_charge_strand(m, p->node);
	p->strand_from_us = p->node->strand_us;
	return p;
}

static void job_unblock(struct job *j)
{
	if (!j->life->blocked)
		return;
	free(j->life->blocked);
	job_life(j)->blocked = NULL;
}

void job_attempt_begin(struct model *m, struct job *j, const char *token, const char *flavor,
		       int64_t at_us)
{
	struct life *l;

	job_unblock(j);
	job_set_promise(m, j, NULL);
	l = job_life(j);
	free(l->token);
	l->token = must(strdup(token));
	l->flavor = model_intern(m, flavor);
	l->placed_us = at_us;
	l->start_us = l->end_us = 0;
	l->outcome = GPUQ_JOB_PENDING;
	l->outcome_exit = -1;
	l->leave_cause = GPUQ_CAUSE_NONE;
	l->leave_us = 0;
	free(l->load);
	l->load = NULL;
	l->told &= ~(unsigned)GPUQ_NOTIFY_TIMES;
	l->n_indexes = 0;
	l->shrunk_us = l->short_us = 0;
	l->yield_us = 0;
	j->warned = j->warn_sent = false;
}

static int apply_placed(struct model *m, struct job *j, const struct event *ev,
			struct gpuq_err *err)
{
	int rc = job_placed_check(m, j ? j : model_find_job(m, (struct job_key){ ev->job.id, -1 }),
				  ev->placed.pods, ev->placed.n_pods, err);

	if (rc < 0)
		return rc;
	if (!j) {
		struct job *master = model_find_job(m, (struct job_key){ ev->job.id, -1 });

		j = job_array_split(m, master, ev->job.index);
		if (!j)
			return gpuq_fail(err, GPUQ_EINVAL, "element %d of job %u does not wait",
					 ev->job.index, ev->job.id);
	}
	if (j->state != GPUQ_JOB_PENDING && j->state != GPUQ_JOB_PROVISIONING)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u does not wait", j->key.id);
	if (j->started_once)
		j->attempt++;
	j->started_once = true;
	job_attempt_begin(m, j, ev->placed.token, ev->placed.flavor, ev->at_us);
	job_life(j)->yield_us = ev->placed.yield_us;
	if (ev->placed.time_limit_us)
		j->time_limit_us = ev->placed.time_limit_us;
	for (uint32_t i = 0; i < ev->placed.n_pods; i++)
		job_placed_add(m, j, &ev->placed.pods[i], ev->at_us);
	job_set_reasons(m, j, NULL, 0, ev->at_us);
	job_set_state(m, j, GPUQ_JOB_STARTING);
	model_job_dirty(m, j);
	return 0;
}

static int apply_cancel(struct model *m, struct job *j, const struct event *ev,
			struct gpuq_err *err)
{
	if (j->ended || j->cancel_asked)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended already", j->key.id);
	if (!model_job_is_live(j)) {
		struct event end = { .type = EV_JOB_ENDED, .at_us = ev->at_us, .job = j->key };

		end.ended.state = GPUQ_JOB_CANCELLED;
		end.ended.exit_code = -1;
		end.ended.message = ev->cancel.why ? ev->cancel.why : "";
		return apply_ended(m, j, &end, err);
	}
	j->cancel_asked = true;
	/* It leaves for another already: it will not come back. */
	if (j->life->outcome == GPUQ_JOB_PREEMPTED)
		job_life(j)->outcome = GPUQ_JOB_CANCELLED;
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

	while (n < j->life->n_evictions &&
	       strcmp(j->life->evictions[j->life->n_evictions - 1 - n].rule, RULE_START_TIMEOUT) ==
		       0)
		n++;
	j->held_retries |= n >= START_TIMEOUTS_MAX;
}

static int apply_requeued(struct model *m, struct job *j, const struct event *ev,
			  struct gpuq_err *err)
{
	const struct event lost = { .at_us = ev->at_us, .evict.rule = "pod_lost" };
	struct life *l;

	if (!model_job_is_live(j) || !model_job_attempt_over(j))
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has no attempt that is over", j->key.id);
	accounting_charge_attempt_lost(m, j, ev->requeued.cause);
	if (ev->requeued.counts)
		job_life(j)->n_retries++;
	/* It ran, and nobody here asked it to leave. */
	if (ev->requeued.cause == GPUQ_CAUSE_INFRA && j->life->start_us &&
	    j->life->leave_cause == GPUQ_CAUSE_NONE)
		job_note_eviction(m, j, GPUQ_CAUSE_INFRA, &lost);
	/* What is being moved leaves in order to start on its new places. */
	if (!job_cause_is_eviction(j->life->leave_cause))
		job_set_promise(m, j, NULL);
	if (j->wish->time_asked_us)
		j->time_limit_us = j->wish->time_asked_us;
	l = job_life(j);
	l->not_before_us = ev->requeued.not_before_us;
	l->outcome = GPUQ_JOB_PENDING;
	l->outcome_exit = -1;
	l->leave_cause = GPUQ_CAUSE_NONE;
	l->leave_us = 0;
	l->start_us = 0;
	if (ev->requeued.cause == GPUQ_CAUSE_INFRA)
		hold_if_it_never_runs(j);
	job_set_message(j, ev->requeued.message); /* it may be that of a pod that goes now */
	job_drop_gone_pods(m, j);
	job_set_reasons(m, j, NULL, 0, ev->at_us);
	job_set_state(m, j, GPUQ_JOB_PENDING);
	model_job_dirty(m, j);
	notify_requeued(m, j, ev->requeued.cause);
	return 0;
}

static void apply_niced(struct model *m, struct job *j, int64_t nice)
{
	struct wish w = *j->wish;

	w.nice = nice;
	job_set_wish(m, j, &w);
	model_job_dirty(m, j);
}

static void apply_blocked(struct model *m, struct job *j, const struct event *ev)
{
	struct life *l;

	equivalent_forget(m, j);
	job_unblock(j);
	if (ev->blocked.reason.code == GPUQ_R_NONE)
		return;
	l = job_life(j);
	l->blocked = must(malloc(sizeof(*l->blocked)));
	*l->blocked = (struct blocked){ ev->blocked.reason.code,
					model_intern(m, ev->blocked.reason.object),
					ev->blocked.until_us };
}

int job_apply(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j;
	bool splits; /* by itself, once nothing can fail any more */

	if (ev->type == EV_JOB_SUBMITTED)
		return job_submit_apply(m, ev, err);
	if (ev->type == EV_KEYS_EXPIRED) {
		job_submit_expire_keys(m, ev->at_us);
		account_expire_all(m, ev->at_us);
		return 0;
	}
	if (ev->type == EV_USE_MEASURED) {
		load_apply(m, ev);
		return 0;
	}
	if (ev->type == EV_DEP_ENDED) {
		if (gpuq_job_state_ended(ev->dep.state))
			deps_ended(m, ev->job, ev->dep.state, ev->at_us);
		else
			deps_started(m, ev->job, ev->dep.start_us);
		return 0;
	}
	if (ev->type == EV_BESIDE_GONE) {
		unsigned char key[CHANGE_KEY_BYTES_MAX];

		change_batch_put(&m->direct, TABLE_BESIDE, key,
				 change_key_cluster(key,
						    change_key_job(key, ev->job.id, ev->job.index),
						    CLUSTER_DEFAULT),
				 NULL, 0);
		return 0;
	}
	j = model_find_job(m, ev->job);
	splits = ev->type == EV_JOB_PLACED || ev->type == EV_JOB_NOMINATED;
	if (!j && ev->job.index >= 0 && !splits) {
		struct job *master = model_find_job(m, (struct job_key){ ev->job.id, -1 });

		j = master ? job_array_split(m, master, ev->job.index) : NULL;
	}
	if (!j && !(splits && model_find_job(m, (struct job_key){ ev->job.id, -1 })))
		return gpuq_fail(err, GPUQ_ENOENT, "no such job: %u", ev->job.id);

	switch (ev->type) {
	case EV_JOB_UPDATED:
		return job_submit_apply_update(m, j, ev, err);
	case EV_JOB_NICED:
		apply_niced(m, j, ev->nice);
		return 0;
	case EV_JOB_WARNED:
		j->warned = true;
		model_job_dirty(m, j);
		return 0;
	case EV_JOB_HELD:
		if (j->ended)
			return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended", j->key.id);
		j->held_admin |= ev->held.admin;
		j->held_user |= !ev->held.admin;
		job_set_promise(m, j, NULL); /* it does not start there */
		model_job_dirty(m, j);
		return 0;
	case EV_JOB_RELEASED:
		if (j->ended)
			return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended", j->key.id);
		j->held_user = j->held_retries = false;
		if (ev->held.admin) {
			job_count(j, -1);
			j->held_admin = j->held_restore = false;
			job_count(j, 1);
		}
		if (j->eligible_us < ev->at_us && j->state == GPUQ_JOB_PENDING)
			j->eligible_us = ev->at_us;
		model_job_dirty(m, j);
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
		return job_preempt_apply(m, j, ev, err);
	case EV_JOB_REQUEUED:
		return apply_requeued(m, j, ev, err);
	case EV_JOB_ENDED:
		return apply_ended(m, j, ev, err);
	case EV_JOB_REASONS:
		if (j->state == GPUQ_JOB_PENDING) {
			const struct outlook o = { .planned_us = ev->reasons.planned_us,
						   .terms = ev->reasons.terms,
						   .ranked = true };

			job_set_outlook(m, j, &o, ev->reasons.items, ev->reasons.n, ev->at_us);
		}
		return 0;
	case EV_JOB_FRAGMENTED:
		if (j->state != GPUQ_JOB_PENDING && ev->fragmented.milli)
			return gpuq_fail(err, GPUQ_EINVAL, "job %u does not wait", j->key.id);
		accounting_set_apart(m, j, ev->fragmented.flavor, ev->fragmented.milli);
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
	job_life(j)->start_us = at_us;
	job_set_state(m, j, GPUQ_JOB_RUNNING);
	joblog_started(m, j, at_us);
	notify_started(m, j);
	deps_started(m, j->key, at_us);
}
