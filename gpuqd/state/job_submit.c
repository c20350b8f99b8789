/* Submission and update of jobs. */
#include "gpuqd/state/notes/joblabel.h"
#include "gpuqd/state/notes/jobnote.h"
#include "gpuqd/state/model_int.h"
#include "gpuqd/state/record/token.h"
#include "gpuqd/state/notify.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* Take its settings for priority, retries, checkpoints and signals, and its recipients. */
static void take_rules(struct model *m, const struct job *j, const struct gpuq_spec *spec,
		       struct wish *w)
{
	const struct gpuq_checkpoint *save = &spec->checkpoint;

	w->nice = spec->nice;
	w->fixed_priority = spec->priority;
	w->time_min_us = spec->time_min_us;
	w->requeue = spec->requeue;
	w->depends_any = spec->depends_any;
	w->kill_on_invalid_dep = spec->kill_on_invalid_dep;
	w->checkpoint_every_us = save->interval_us;
	w->saves = save->signal || save->grace_us || save->interval_us;
	w->warn_lead_us = spec->signal ? spec->signal_lead_us : 0;
	w->grace_us = save->grace_us ? save->grace_us : spec->grace_us;
	w->retry_limit = spec->retry.limit;
	w->retry_on = spec->retry.on;
	memset(w->retry_exits, 0, sizeof(w->retry_exits));
	for (size_t i = 0; i < spec->retry.n_exits; i++)
		job_wish_add_exit(w, spec->retry.exits[i]);
	notify_take(m, j, spec, w);
}

/* Keep the labels of the spec as one string, which equal jobs share. */
static void take_labels(struct model *m, struct job *j, const struct gpuq_spec *spec)
{
	char *labels = joblabel_take(spec);

	job_set_labels(m, j, labels);
	free(labels);
}

/* Keep its comment, directory and output paths in the same way. Notes that came later than the spec stay: pods
 * (EV_JOB_FILLED), and how it ends. */
static void take_notes(struct model *m, struct job *j, const struct gpuq_spec *spec)
{
	static const char *const later[] = { JOBNOTE_CANCELLED_BY, JOBNOTE_REST };
	char *notes = jobnote_take(spec), *kept;
	size_t n = 0;
	const char *value = jobnote_find(j->notes, JOBNOTE_PODS, &n);

	if (value) {
		kept = jobnote_with_pods(notes, value, n);
		free(notes);
		notes = kept;
	}
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		value = jobnote_find(j->notes, later[i], &n);
		if (!value)
			continue;
		kept = jobnote_with(notes, later[i], value, n);
		free(notes);
		notes = kept;
	}
	job_set_notes(m, j, notes);
	free(notes);
}

static void take_name(struct model *m, struct job *j, const struct gpuq_spec *spec)
{
	job_set_name(m, j, spec->name ? spec->name : "job");
}

/* Note what it depends on; job_insert() links these to their subjects. */
static void take_depends(struct model *m, struct job *j, const struct gpuq_spec *spec)
{
	struct deps *all = spec->n_depends ? deps_new((uint32_t)spec->n_depends) : NULL;

	for (size_t i = 0; i < spec->n_depends; i++) {
		const struct gpuq_depend *d = &spec->depends[i];

		all->items[i].type = d->type;
		all->items[i].on = (struct job_key){ (uint32_t)d->job, (int32_t)d->array_index };
		all->items[i].delay_us = d->delay_us;
	}
	deps_set(m, j, all);
}

/* Make the pending part of an array: an element becomes a job of its own when an event names it. */
static void take_array(struct job *j, const struct gpuq_spec *spec)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct array *a = must(calloc(1, sizeof(*a)));

	a->waiting = must(calloc(spec->array.n_ranges, sizeof(*a->waiting)));
	memcpy(a->waiting, spec->array.ranges, spec->array.n_ranges * sizeof(*a->waiting));
	a->n_waiting_ranges = spec->array.n_ranges;
	a->n_waiting = a->size = spec->array.size;
	a->throttle = spec->array.throttle;
	a->worst = GPUQ_JOB_COMPLETED;
	a->worst_exit = -1; /* no element has ended with an exit code */
	gpuq_array_print(&spec->array, &text);
	a->indices = must(strdup(gpuq_buf_str(&text)));
	gpuq_buf_done(&text);
	j->array = a;
}

/* Note which call made it. */
static void take_key(struct model *m, const struct job *j, const struct event *ev)
{
	unsigned char bytes[CHANGE_KEY_BYTES_MAX];
	size_t n;
	struct idem_key *k;

	if (!ev->submitted.key || !*ev->submitted.key)
		return;
	n = change_key_strs(bytes, ev->submitted.user, ev->submitted.key, NULL);
	k = keys_find(&m->keys, bytes, n);
	if (!k) {
		k = keys_add(&m->keys, bytes, n, ev->at_us);
		k->hash = ev->submitted.key_hash;
		k->first_id = j->key.id;
	}
	k->n_jobs++; /* the key belongs to the same call */
	marks_key(m, k);
}

int job_submit_apply(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j;
	int rc;

	/* An id that skips or repeats belongs to an event made for another state. */
	if (ev->job.id != m->next_job_id)
		return gpuq_fail(err, GPUQ_EINTERNAL, "job ids must come in order");
	rc = job_submit(m, ev, &j, err);
	if (rc == 0)
		m->next_job_id++;
	return rc;
}

int job_submit(struct model *m, const struct event *ev, struct job **out, struct gpuq_err *err)
{
	const struct gpuq_spec *spec = ev->submitted.spec;
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct queue *q = model_find_queue(m, ev->submitted.queue);
	struct request *r;
	struct wish w;
	struct job *j;

	memset(&w, 0, sizeof(w)); /* compared byte by byte */
	if (!q)
		return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %s", ev->submitted.queue);
	r = ev->submitted.as_written ? model_request_borrow(m, spec, ev->submitted.request_bytes,
							    ev->submitted.request_len)
				     : model_request_intern(m, ev->submitted.request_bytes,
							    ev->submitted.request_len, err);
	if (!r)
		return err && err->code ? err->code : GPUQ_EINVAL;

	m->meta_dirty = true;
	/* Nothing below can fail: the job becomes part of the model as a whole. */
	j = job_new(m, ev->job);
	j->request = r;
	take_name(m, j, spec);
	j->user = model_intern(m, ev->submitted.user);
	j->qos = model_intern(m, ev->submitted.qos);
	j->queue = q;
	j->submit_us = ev->at_us;
	j->eligible_us = clock_job_eligible_from(m, spec->begin_us, ev->at_us);
	j->time_limit_us = ev->submitted.time_limit_us;
	j->held_user = spec->hold;
	j->spec_bytes = (uint32_t)ev->submitted.spec_len;
	w.account = model_intern(m, spec->account);
	w.uid = ev->submitted.uid;
	w.gid = ev->submitted.gid;
	w.begin_us = spec->begin_us;
	w.deadline_us = spec->deadline_us;
	w.time_asked_us = spec->time_min_us ? j->time_limit_us : 0;
	w.lease_us = ev->submitted.lease_us;
	take_rules(m, j, spec, &w);
	job_set_wish(m, j, &w);
	take_labels(m, j, spec);
	take_notes(m, j, spec);
	take_depends(m, j, spec);
	if (spec->array.n_ranges)
		take_array(j, spec);
	job_insert(m, j);
	deps_singletons(m, j, ev->at_us);
	job_count(j, 1);
	model_job_dirty(m, j);
	/* The specification is stored as submitted, and not kept in memory. */
	change_batch_put(&m->direct, TABLE_SPEC, key, change_key_u32(key, j->key.id),
			 ev->submitted.spec_bytes, ev->submitted.spec_len);
	take_key(m, j, ev);
	*out = j;
	return 0;
}

/* ---- changes ---- */

int job_submit_apply_update(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);
	const struct gpuq_spec *spec = ev->updated.spec;
	struct queue *q = model_find_queue(m, ev->updated.queue);
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct request *r = NULL;
	struct job *next;
	struct wish w;

	if (!j)
		return GPUQ_ENOENT;
	w = *j->wish;
	if (j->ended)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended", j->key.id);
	if (!q || (model_job_is_live(j) && q != j->queue))
		return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %s", ev->updated.queue);
	if (!model_job_is_live(j)) {
		r = ev->updated.as_written
			    ? model_request_borrow(m, spec, ev->updated.request_bytes,
						   ev->updated.request_len)
			    : model_request_intern(m, ev->updated.request_bytes,
						   ev->updated.request_len, err);
		if (!r)
			return err && err->code ? err->code : GPUQ_EINVAL;
		model_request_put(m, j->request);
		j->request = r;
		job_count(j, -1);
		index_queue(j, q);
		job_count(j, 1);
		j->qos = model_intern(m, ev->updated.qos);
		w.account = model_intern(m, spec->account);
		if (ev->updated.begin) {
			w.begin_us = spec->begin_us;
			j->eligible_us = clock_job_eligible_from(m, spec->begin_us, ev->at_us);
		}
		if (ev->updated.depends)
			take_depends(m, j, spec);
		job_set_promise(m, j, NULL); /* it may not fit there any more */
	}
	if (ev->updated.deadline)
		w.deadline_us = spec->deadline_us;
	/* The time that an attempt was given is not a new wish. */
	if (!spec->time_min_us || !w.time_asked_us)
		w.time_asked_us = spec->time_min_us ? ev->updated.time_limit_us : 0;
	else if (ev->updated.time_limit_us != j->time_limit_us)
		w.time_asked_us = ev->updated.time_limit_us;
	j->time_limit_us = ev->updated.time_limit_us;
	take_rules(m, j, spec, &w);
	job_set_wish(m, j, &w);
	next = deps_namesake(m, j);
	take_name(m, j, spec);
	take_labels(m, j, spec);
	take_notes(m, j, spec);
	deps_singletons(m, j, ev->at_us);
	if (next) /* it may have been the one waited for */
		deps_singletons(m, next, ev->at_us);
	if (j->array)
		j->array->throttle = spec->array.throttle;
	if (ev->updated.spec_bytes) {
		index_stored(m, j, -1);
		j->spec_bytes = (uint32_t)ev->updated.spec_len;
		index_stored(m, j, 1);
		change_batch_put(&m->direct, TABLE_SPEC, key, change_key_u32(key, j->key.id),
				 ev->updated.spec_bytes, ev->updated.spec_len);
	}
	model_job_dirty(m, j);
	return 0;
}

/* Store that an idempotency key has expired. */
static void key_gone(void *arg, const struct idem_key *k)
{
	struct model *m = arg;

	change_batch_put(&m->direct, TABLE_KEY, k->bytes, k->len, NULL, 0);
}

int job_submit_apply_expired(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	keys_expire(&m->keys, ev->at_us - GPUQ_KEY_KEEP_S * GPUQ_US_PER_S, key_gone, m);
	account_expire_all(m, ev->at_us);
	token_drop_old(m, ev->at_us);
	return 0;
}
