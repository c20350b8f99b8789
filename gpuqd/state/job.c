#include "gpuqd/state/asks/ask_end.h"
#include "gpuqd/state/notes/jobnote.h"
#include "gpuqd/state/model_int.h"
#include "gpuqd/state/notify.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/cuts/shared_claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* A job from its placement to its end: states, attempts, and the elements of arrays, which become
 * jobs of their own when they start. Its other parts: job_submit.c (its beginning), job_preempt.c
 * (holds, evictions, nominated placements, elastic jobs), job_parts.c (memory), job_facts.c
 * (questions about it). Applying only changes members and lists; marks say what is to be stored. */

/* Return a copy; NULL for no text. */
static char *dup_or_null(const char *s)
{
	return s && *s ? must(strdup(s)) : NULL;
}

/* The text may be the present one: then it stays, since readers of the event still use it. */
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

/* Dependencies of the type singleton are found by name, so they are relinked under the new one. The
 * old name is released last: `name` may be the same text. */
void job_set_name(struct model *m, struct job *j, const char *name)
{
	const char *old = j->name;

	deps_unlink(m, j);
	j->name = blob_get(&m->shared, name, strlen(name) + 1);
	if (j->prev)
		deps_link(m, j);
	blob_put(&m->shared, old);
}

static uint32_t hash_of(const void *item)
{
	return job_key_hash(((const struct job *)item)->key);
}

static uint32_t hash_of_number(const void *item)
{
	return hash_number(((const struct job *)item)->life->element_id);
}

void job_set_number(struct model *m, struct job *j, uint32_t number)
{
	if (j->life->element_id)
		return;
	job_life(j)->element_id = number;
	if (j->prev)
		table_add(&m->elements, j, hash_of_number);
}

/* Reserve room once before loading, instead of growing the tables again and again. */
void job_expect(struct model *m, size_t n_jobs, size_t n_keys)
{
	table_reserve(&m->jobs_by_key, (uint32_t)n_jobs, hash_of);
	keys_reserve(&m->keys, (uint32_t)n_keys);
}

void job_insert(struct model *m, struct job *j)
{
	table_add(&m->jobs_by_key, j, hash_of);
	if (j->life->element_id)
		table_add(&m->elements, j, hash_of_number);
	DL_APPEND(m->jobs, j);
	m->n_jobs++;
	m->n_jobs_by_state[j->state]++;
	index_add(m, j);
	deps_link(m, j);
}

/* Return the number of jobs that an entry counts for. */
static uint32_t n_elements(const struct job *j)
{
	return j->array ? (uint32_t)j->array->n_waiting : 1;
}

/* Counters of the queue follow the state; an array's pending part counts each element. */
void job_count(struct job *j, int sign)
{
	if (!j->queue || j->ended)
		return;
	/* Changes are made between job_count(j, -1) and job_count(j, 1), so counters cannot drift. */
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
	/* Fragmentation is charged to pending jobs only. */
	if (j->life->apart)
		accounting_set_apart(m, j, NULL, 0);
	job_count(j, -1);
	m->n_jobs_by_state[j->state]--;
	index_state(m, j, s);
	m->n_jobs_by_state[s]++;
	/* From here on it counts for no queue, and nothing can make it pending again. */
	if (gpuq_job_state_ended(s)) {
		index_stored(m, j, -1);
		j->ended = true;
		deps_unlink(m, j);
		marks_ended(m, j);
		notify_ended(m, j);
	}
	job_count(j, 1);
	model_job_dirty(m, j);
}

/* Release the indexes of an array that are still pending, and all of them. */
static void array_free(struct array *a)
{
	if (!a)
		return;
	free(a->waiting);
	free(a->indices);
	free(a);
}

/* No reader stops at a job that leaves. */
static void readers_pass(const struct model *m, const struct job *j)
{
	struct readers *r = m->readers;

	if (r->walk == j)
		r->walk = j->next;
	/* A snapshot is taken over several turns, between which jobs come and go. */
	if (r->take_next == j)
		r->take_next = j == r->take_last ? NULL : j->next;
	if (r->take_last == j)
		r->take_last = j == m->jobs ? NULL : j->prev;
}

void job_free(struct model *m, struct job *j)
{
	struct pod *p, *pt;

	/* Whatever points to it is detached before its memory is released. */
	equivalent_forget(m, j);
	readers_pass(m, j);
	job_set_promise(m, j, NULL);
	DL_FOREACH_SAFE2(j->pods, p, pt, job_next)
		pod_free(m, p);
	if (j->dirty)
		m->dirty_jobs[j->dirty_at] = NULL;
	job_count(j, -1);
	m->n_jobs_by_state[j->state]--;
	index_remove(m, j);
	table_remove(&m->jobs_by_key, j, hash_of);
	if (j->life->element_id)
		table_remove(&m->elements, j, hash_of_number);
	DL_DELETE(m->jobs, j);
	m->n_jobs--;
	model_request_put(m, j->request);
	array_free(j->array);
	m->n_avoiding -= j->life->avoids != NULL;
	m->n_apart -= j->life->apart != NULL;
	deps_set(m, j, NULL);
	if (m->origins && j->key.index < 0)
		origin_drop(&m->origins, j->key.id);
	job_parts_free(m, j);
	free(j);
}

/* ---- arrays ---- */

/* A range of one index disappears, an end is moved inwards, and an inner index splits its range in
 * two. */
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
	/* The master counts one pending element less; the element counts for itself below. */
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
	/* It takes the place of its part of the array in queue order, so its times are the array's. */
	j->submit_us = master->submit_us;
	j->eligible_us = master->eligible_us;
	j->time_limit_us = master->time_limit_us;
	j->held_user = master->held_user;
	j->held_admin = master->held_admin;
	job_parts_like(m, j, master);
	deps_like(m, j, master);
	job_insert(m, j);
	job_count(j, 1);
	model_job_dirty(m, j);
	return j;
}

/* An event may name an element that is still part of its array: it becomes a job of its own. */
struct job *job_of_event(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = model_find_job(m, ev->job);

	if (!j && ev->job.index >= 0) {
		struct job *master = model_find_job(m, (struct job_key){ ev->job.id, -1 });

		j = master ? job_array_split(m, master, ev->job.index) : NULL;
	}
	if (!j)
		gpuq_fail(err, GPUQ_ENOENT, "no such job: %u", ev->job.id);
	return j;
}

/* Note an element's end: not COMPLETED beats COMPLETED; among the others the first stays. */
static void array_note_end(struct array *a, const struct job *child)
{
	if (child->life->exit_code > a->worst_exit)
		a->worst_exit = child->life->exit_code;
	if (a->worst == GPUQ_JOB_COMPLETED)
		a->worst = child->state;
}

/* End the array when its last element has ended. Dependencies on the array as a whole are decided
 * then. */
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
	marks_done(m, master);
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

bool job_is_done(const struct model *m, const struct job *j)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->state != GPUQ_POD_GONE)
			return false;
	/* An array stays as long as any of its elements: index_elements() has those. */
	return j->ended && !(j->array && index_elements(m, j->key.id));
}

/* Remove an ended job from memory and from the table of jobs; history keeps its record. Returns the
 * master of an element, which may now be done as well. */
struct job *job_depart(struct model *m, struct job *j)
{
	const struct job_key whole = { j->key.id, -1 };
	struct job *master = j->key.index < 0 ? NULL : model_find_job(m, whole);
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct pod *p, *pt;

	change_batch_put(&m->direct, TABLE_JOB, key, change_key_job(key, j->key.id, j->key.index),
			 NULL, 0);
	DL_FOREACH_SAFE2(j->pods, p, pt, job_next)
		pod_remove(m, p);
	job_free(m, j);
	return master;
}

void job_drop_gone_pods(struct model *m, struct job *j)
{
	struct pod *p, *pt;

	DL_FOREACH_SAFE2(j->pods, p, pt, job_next)
		if (p->state == GPUQ_POD_GONE)
			pod_remove(m, p);
}

/* End a job. Its pods must have ended: no device is released by a state alone. */
static void add_note(struct model *m, struct job *j, const char *key, const char *value)
{
	char *notes = jobnote_with(j->notes, key, value, strlen(value));

	job_set_notes(m, j, notes);
	free(notes);
}

/* Note which elements of an array end without a start of their own. */
static void note_rest(struct model *m, struct job *j, const struct event *ev)
{
	const struct gpuq_array rest = { j->array->waiting, j->array->n_waiting_ranges,
					 j->array->n_waiting, 0 };
	struct gpuq_buf text = GPUQ_BUF_INIT;

	gpuq_buf_printf(&text, "%s %" PRId64 " ", gpuq_job_state_word(ev->ended.state), ev->at_us);
	gpuq_array_print(&rest, &text);
	if (text.failed)
		abort(); /* the ledger is on disk: a restart is the recovery */
	add_note(m, j, JOBNOTE_REST, gpuq_buf_str(&text));
	gpuq_buf_done(&text);
}

static int end_job(struct model *m, struct job *j, const struct event *ev, struct gpuq_err *err)
{
	if (j->ended)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended already", j->key.id);
	if (!gpuq_job_state_ended(ev->ended.state))
		return gpuq_fail(err, GPUQ_EINTERNAL, "not a final state");
	if (!model_job_attempt_over(j))
		return gpuq_fail(err, GPUQ_EINVAL, "job %u still has pods", j->key.id);
	if (j->array && j->array->n_waiting > 0) {
		/* The pending elements end as one: they share a record. */
		deps_elements_ended(m, j, ev->ended.state, ev->at_us);
		job_count(j, -1);
		note_rest(m, j, ev);
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
		/* The work of an attempt that was cut short is lost, unless it was saved. */
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
	marks_done(m, j);
	return 0;
}

int job_apply_ended(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);

	return j ? end_job(m, j, ev, err) : GPUQ_ENOENT;
}

/* ---- placing and preempting ---- */

/* Check everything that could fail before anything is changed. */
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
	p->rides = pp->rides;
	p->mig = pp->mig ? model_intern(m, pp->mig) : NULL;
	p->choice = pp->choice;
	if (pp->n_devices)
		memcpy(p->devices, pp->devices, pp->n_devices * sizeof(*p->devices));
	j->queue->allocated_milli += p->gpus_milli;
	accounting_charge_strand(m, p->node);
	p->strand_from_us = p->node->strand_us;
	pod_claims_placed(m, p);
	return p;
}

/* Forget that an outside cause blocks the job. */
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
	job_clear_trouble(j);
	job_set_promise(m, j, NULL);
	job_set_message(j, NULL); /* why the one before ended */
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
	free(l->used);
	l->used = NULL;
	l->told &= ~(unsigned)GPUQ_NOTIFY_TIMES;
	l->n_indexes = 0;
	l->shrunk_us = l->short_us = 0;
	l->yield_us = 0;
	j->warned = false;
}

/* Give an element its own number at its first start. Scenarios number their jobs themselves. */
static void number_element(struct model *m, struct job *j)
{
	if (j->key.index < 0 || j->life->element_id || j->request->as_written ||
	    m->next_job_id == UINT32_MAX)
		return;
	job_set_number(m, j, m->next_job_id++);
	m->meta_dirty = true;
}

/* An element of an array is split off here, once nothing can fail any more. */
int job_apply_placed(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = model_find_job(m, ev->job);
	struct job *master = j ? j : model_find_job(m, (struct job_key){ ev->job.id, -1 });
	int rc;

	if (!master)
		return gpuq_fail(err, GPUQ_ENOENT, "no such job: %u", ev->job.id);
	rc = job_placed_check(m, master, ev->placed.pods, ev->placed.n_pods, err);
	if (rc == 0)
		rc = shared_claim_check(m, master, ev->placed.pods, ev->placed.n_pods, err);
	if (rc < 0)
		return rc;
	if (!j) {
		j = job_array_split(m, master, ev->job.index);
		if (!j)
			return gpuq_fail(err, GPUQ_EINVAL, "element %d of job %u is not pending",
					 ev->job.index, ev->job.id);
	}
	if (j->state != GPUQ_JOB_PENDING && j->state != GPUQ_JOB_PROVISIONING)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u is not pending", j->key.id);
	/* The first attempt has the number 0. */
	if (j->started_once)
		j->attempt++;
	j->started_once = true;
	number_element(m, j);
	job_attempt_begin(m, j, ev->placed.token, ev->placed.flavor, ev->at_us);
	job_life(j)->yield_us = ev->placed.yield_us;
	/* It may have been given less time, to fit before a start reservation. */
	if (ev->placed.time_limit_us)
		j->time_limit_us = ev->placed.time_limit_us;
	for (uint32_t i = 0; i < ev->placed.n_pods; i++)
		job_placed_add(m, j, &ev->placed.pods[i], ev->at_us);
	for (uint32_t i = 0; m->asks && i < ev->placed.n_pods; i++)
		ask_node_used(m, ev->placed.pods[i].node);
	job_set_reasons(m, j, NULL, 0, ev->at_us);
	job_set_state(m, j, GPUQ_JOB_STARTING);
	model_job_dirty(m, j);
	return 0;
}

/* A pending job ends at once; a live one is signalled first, and ends when its pods have ended. */
int job_apply_cancel(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);

	if (!j)
		return GPUQ_ENOENT;
	if (j->ended || j->cancel_asked)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended already", j->key.id);
	if (ev->cancel.who && *ev->cancel.who)
		add_note(m, j, JOBNOTE_CANCELLED_BY, ev->cancel.who);
	if (!model_job_is_live(j) && model_is_adopted(m, j)) {
		/* It ends when its pods are gone: they would be queued anew. */
		j->cancel_asked = j->held_admin = true;
		job_set_promise(m, j, NULL);
		if (ev->cancel.why)
			job_set_message(j, ev->cancel.why);
		model_job_dirty(m, j);
		return 0;
	}
	if (!model_job_is_live(j)) {
		struct event end = { .type = EV_JOB_ENDED, .at_us = ev->at_us, .job = j->key };

		end.ended.state = GPUQ_JOB_CANCELLED;
		end.ended.exit_code = -1;
		end.ended.message = ev->cancel.why ? ev->cancel.why : "";
		return end_job(m, j, &end, err);
	}
	j->cancel_asked = true;
	/* It is being preempted: it will not be pending again. */
	if (j->life->outcome == GPUQ_JOB_PREEMPTED)
		job_life(j)->outcome = GPUQ_JOB_CANCELLED;
	job_set_promise(m, j, NULL);
	if (ev->cancel.why)
		job_set_message(j, ev->cancel.why);
	job_leave(m, j, GPUQ_CAUSE_ADMIN, GPUQ_JOB_CANCELLED, ev->at_us, -1);
	return 0;
}

/* Repeated starts timed out, wherever it was placed: further ones would only hold devices that
 * others could use. An operator should check and release it. */
#define START_TIMEOUTS_MAX 5

static bool never_ran(const char *rule)
{
	return strcmp(rule, RULE_START_TIMEOUT) == 0 || strcmp(rule, RULE_PLUGIN) == 0;
}

/* Count the evictions from the last one back, as long as all are start timeouts. */
static void hold_if_it_never_runs(struct job *j)
{
	uint32_t n = 0;

	while (n < j->life->n_evictions &&
	       never_ran(j->life->evictions[j->life->n_evictions - 1 - n].rule))
		n++;
	j->held_retries |= n >= START_TIMEOUTS_MAX;
}

/* A node that refuses the pods of others as well is suspect, and no witness. */
static bool is_rejected(const struct model *m, const struct job *j)
{
	const struct rejected *r = j->life->rejected;
	uint32_t n = 0, n_suspect = 0;

	for (uint32_t i = 0; r && i < r->n_nodes; i++) {
		const struct node *node = model_find_node(m, r->nodes[i]);

		n_suspect += node && node->suspect;
		n += !node || !node->suspect;
	}
	return r && (n >= REJECTED_NODES || (n_suspect == 0 && r->n >= REJECTED_MAX));
}

int job_apply_requeued(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct event lost = { .at_us = ev->at_us, .evict.rule = RULE_POD_LOST };
	struct job *j = job_of_event(m, ev, err);
	struct life *l;

	if (!j)
		return GPUQ_ENOENT;
	if (!model_job_is_live(j) || !model_job_attempt_over(j))
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has no attempt that is over", j->key.id);
	/* Losses are charged while the pods of the attempt are still known. */
	accounting_charge_attempt_lost(m, j, ev->requeued.cause);
	if (ev->requeued.counts)
		job_life(j)->n_retries++;
	/* It ran, and gpuqd did not signal it to end. */
	if (ask_spot_lost(m, j))
		lost.evict.rule = RULE_SPOT;
	if (ev->requeued.cause == GPUQ_CAUSE_INFRA && j->life->start_us &&
	    j->life->leave_cause == GPUQ_CAUSE_NONE)
		job_note_eviction(m, j, GPUQ_CAUSE_INFRA, &lost);
	/* A job being moved leaves in order to start on its new places: they stay nominated. */
	if (!job_cause_is_eviction(j->life->leave_cause))
		job_set_promise(m, j, NULL);
	/* A shortened time limit was for that attempt only. */
	if (j->wish->time_asked_us)
		j->time_limit_us = j->wish->time_asked_us;
	l = job_life(j);
	l->not_before_us = ev->requeued.not_before_us;
	l->outcome = GPUQ_JOB_PENDING;
	l->outcome_exit = -1;
	l->leave_cause = GPUQ_CAUSE_NONE;
	l->leave_us = 0;
	l->start_us = 0;
	if (ev->requeued.cause == GPUQ_CAUSE_INFRA) {
		hold_if_it_never_runs(j);
		j->held_retries |= is_rejected(m, j);
	}
	job_set_message(j, ev->requeued.message); /* it may belong to a pod that is removed now */
	job_drop_gone_pods(m, j);
	job_set_reasons(m, j, NULL, 0, ev->at_us);
	job_set_state(m, j, GPUQ_JOB_PENDING);
	model_job_dirty(m, j);
	notify_requeued(m, j, ev->requeued.cause);
	return 0;
}

int job_apply_blocked(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);
	const char *words;
	struct life *l;

	if (!j)
		return GPUQ_ENOENT;
	/* It may no longer start when its equals do. */
	equivalent_forget(m, j);
	job_unblock(j);
	if (ev->blocked.reason.code == GPUQ_R_NONE)
		return 0;
	l = job_life(j);
	words = ev->blocked.words ? ev->blocked.words : "";
	l->blocked = must(malloc(sizeof(*l->blocked) + strlen(words) + 1));
	l->blocked->code = ev->blocked.reason.code;
	l->blocked->object = model_intern(m, ev->blocked.reason.object);
	l->blocked->since_us = ev->at_us;
	l->blocked->until_us = ev->blocked.until_us;
	memcpy(l->blocked->words, words, strlen(words) + 1);
	return 0;
}

int job_apply_trouble(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);
	const char *words = ev->trouble.words ? ev->trouble.words : "";
	struct trouble *t;

	if (!j)
		return GPUQ_ENOENT;
	if (!ev->trouble.object) {
		job_clear_trouble(j);
		return 0;
	}
	/* Copied before the present one is freed: the words may be its own. */
	t = must(malloc(sizeof(*t) + strlen(words) + 1));
	t->object = model_intern(m, ev->trouble.object);
	t->whose = ev->trouble.whose;
	t->pod = ev->trouble.pod;
	t->since_us = ev->at_us;
	memcpy(t->words, words, strlen(words) + 1);
	job_clear_trouble(j);
	job_life(j)->trouble = t;
	if (ev->trouble.tell_site)
		notify_refused(m, j);
	return 0;
}

/* ---- notes about a job ---- */

int job_apply_niced(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);
	struct wish w;

	if (!j)
		return GPUQ_ENOENT;
	/* A wish is shared by jobs with equal settings: it is replaced, never changed. */
	w = *j->wish;
	w.nice = ev->nice;
	job_set_wish(m, j, &w);
	model_job_dirty(m, j);
	return 0;
}

int job_apply_filled(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);
	const struct origin *o = j ? origin_of(m->origins, j->key.id) : NULL;
	char pods[400];
	char *notes;
	int n;

	if (!j)
		return GPUQ_ENOENT;
	n = snprintf(pods, sizeof(pods), "%s %s", ev->filled.name, ev->filled.uid);
	if (j->ended || !o || !origin_is_suspended(o) || n >= (int)sizeof(pods) ||
	    strpbrk(pods, ",\n"))
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has its pods", j->key.id);
	notes = jobnote_with_pods(j->notes, pods, (size_t)n);
	job_set_notes(m, j, notes);
	free(notes);
	model_job_dirty(m, j);
	return 0;
}

int job_apply_nothing_beside(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);

	if (!j)
		return GPUQ_ENOENT;
	j->nothing_beside = ev->nothing_beside;
	return 0;
}

int job_apply_warned(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);

	if (!j)
		return GPUQ_ENOENT;
	j->warned = true;
	model_job_dirty(m, j);
	return 0;
}

int job_apply_held(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);

	if (!j)
		return GPUQ_ENOENT;
	if (j->ended)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended", j->key.id);
	j->held_admin |= ev->held.admin;
	j->held_user |= !ev->held.admin;
	job_set_promise(m, j, NULL); /* it does not start there */
	model_job_dirty(m, j);
	return 0;
}

/* A job that is released by hand tries all nodes anew. */
static void forget_nodes(struct model *m, struct job *j)
{
	job_clear_rejected(j);
	if (!j->life->avoids)
		return;
	free(j->life->avoids);
	job_life(j)->avoids = NULL;
	m->n_avoiding--;
}

int job_apply_released(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);

	if (!j)
		return GPUQ_ENOENT;
	if (j->ended)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended", j->key.id);
	if (j->cancel_asked && !model_job_is_live(j))
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has been cancelled", j->key.id);
	if (j->held_retries)
		forget_nodes(m, j);
	j->held_user = j->held_retries = false;
	/* Only an operator may release what an operator held, or what a restore left unknown. */
	if (ev->held.admin) {
		job_count(j, -1);
		j->held_admin = j->held_restore = false;
		job_count(j, 1);
	}
	/* Time in which it was held does not count as pending time. */
	if (j->eligible_us < ev->at_us && j->state == GPUQ_JOB_PENDING)
		j->eligible_us = ev->at_us;
	model_job_dirty(m, j);
	return 0;
}

int job_apply_reasons(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	const struct outlook o = { .planned_us = ev->reasons.planned_us,
				   .terms = ev->reasons.terms,
				   .ranked = true };
	struct job *j = job_of_event(m, ev, err);

	if (!j)
		return GPUQ_ENOENT;
	/* It may have started since the cycle began. */
	if (j->state == GPUQ_JOB_PENDING)
		job_set_outlook(m, j, &o, ev->reasons.items, ev->reasons.n, ev->at_us);
	return 0;
}

int job_apply_fragmented(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);

	if (!j)
		return GPUQ_ENOENT;
	if (j->state != GPUQ_JOB_PENDING && ev->fragmented.milli)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u is not pending", j->key.id);
	accounting_set_apart(m, j, ev->fragmented.flavor, ev->fragmented.milli);
	return 0;
}

void job_note_started(struct model *m, struct job *j, int64_t at_us)
{
	job_life(j)->start_us = at_us;
	job_set_state(m, j, GPUQ_JOB_RUNNING);
	marks_started(m, j, at_us);
	notify_started(m, j);
	deps_started(m, j->key, at_us);
}
