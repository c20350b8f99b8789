/* How a job comes in, and is described anew. */
#include "gpuqd/core/joblabel.h"
#include "gpuqd/core/model_int.h"
#include "gpuqd/core/notice.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/units.h"

static void set_name(struct job *j, const char *name)
{
	free(j->name);
	j->name = must(strdup(name ? name : "job"));
}

/* What it is called by, how it is treated once it has been placed, and how nice it is. */
static void take_rules(struct job *j, const struct gpuq_spec *spec)
{
	const struct gpuq_checkpoint *save = &spec->checkpoint;

	j->nice = spec->nice;
	j->fixed_priority = spec->priority;
	j->time_min_us = spec->time_min_us;
	j->requeue = spec->requeue;
	j->depends_any = spec->depends_any;
	j->kill_on_invalid_dep = spec->kill_on_invalid_dep;
	j->checkpoint_every_us = save->interval_us;
	j->saves = save->signal || save->grace_us || save->interval_us;
	j->warn_lead_us = spec->signal ? spec->signal_lead_us : 0;
	j->grace_us = save->grace_us ? save->grace_us : spec->grace_us;
	free(j->labels);
	j->labels = joblabel_take(spec);
	free(j->retry.exits);
	j->retry = spec->retry;
	j->retry.exits = NULL;
	if (spec->retry.n_exits) {
		j->retry.exits = must(malloc(spec->retry.n_exits));
		memcpy(j->retry.exits, spec->retry.exits, spec->retry.n_exits);
	}
}

static void take_depends(struct job *j, const struct gpuq_spec *spec)
{
	free(j->deps);
	j->deps = NULL;
	j->n_deps = (uint32_t)spec->n_depends;
	if (j->n_deps)
		j->deps = must(calloc(j->n_deps, sizeof(*j->deps)));
	for (size_t i = 0; i < spec->n_depends; i++) {
		const struct gpuq_depend *d = &spec->depends[i];

		j->deps[i] = (struct dep){ d->type,
					   { (uint32_t)d->job, (int32_t)d->array_index },
					   d->delay_us,
					   DEP_WAITING,
					   0 };
	}
}

int model_apply_submitted(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	const struct gpuq_spec *spec = ev->submitted.spec;
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct queue *q = queue_find(m, ev->submitted.queue);
	struct request *r;
	struct job *j;

	if (ev->job.id != m->next_job_id)
		return gpuq_fail(err, GPUQ_EINTERNAL, "job ids must come in order");
	if (!q)
		return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %s", ev->submitted.queue);
	r = request_intern(m, ev->submitted.request_bytes, ev->submitted.request_len, err);
	if (!r)
		return err && err->code ? err->code : GPUQ_EINVAL;

	m->next_job_id++;
	m->meta_dirty = true;
	j = job_new(m, (struct job_key){ ev->job.id, -1 });
	j->request = r;
	set_name(j, spec->name);
	j->user = model_intern(m, ev->submitted.user);
	j->account = model_intern(m, spec->account);
	j->qos = model_intern(m, ev->submitted.qos);
	j->uid = ev->submitted.uid;
	j->gid = ev->submitted.gid;
	j->queue = q;
	j->submit_us = ev->at_us;
	j->begin_us = spec->begin_us;
	j->eligible_us = spec->begin_us > ev->at_us ? spec->begin_us : ev->at_us;
	j->deadline_us = spec->deadline_us;
	j->time_limit_us = ev->submitted.time_limit_us;
	j->time_asked_us = spec->time_min_us ? j->time_limit_us : 0;
	j->lease_us = ev->submitted.lease_us;
	j->held_user = spec->hold;
	take_rules(j, spec);
	notice_take(m, j, spec);
	take_depends(j, spec);
	if (spec->array.n_ranges) {
		struct gpuq_buf text = GPUQ_BUF_INIT;
		struct array *a = must(calloc(1, sizeof(*a)));

		a->waiting = must(calloc(spec->array.n_ranges, sizeof(*a->waiting)));
		memcpy(a->waiting, spec->array.ranges, spec->array.n_ranges * sizeof(*a->waiting));
		a->n_waiting_ranges = spec->array.n_ranges;
		a->n_waiting = a->size = spec->array.size;
		a->throttle = spec->array.throttle;
		a->worst = GPUQ_JOB_COMPLETED;
		a->worst_exit = -1; /* none has ended with one */
		gpuq_array_print(&spec->array, &text);
		a->indices = must(strdup(gpuq_buf_str(&text)));
		gpuq_buf_done(&text);
		j->array = a;
	}
	job_insert(m, j);
	model_singletons(m, j, ev->at_us);
	job_count(j, 1);
	job_dirty(m, j);
	batch_put(&m->direct, TABLE_SPEC, key, key_u32(key, j->key.id), ev->submitted.spec_bytes,
		  ev->submitted.spec_len);
	if (ev->submitted.key && *ev->submitted.key) {
		size_t n = key_strs(key, ev->submitted.user, ev->submitted.key, NULL);
		struct idem_key *k = key_find(m, ev->submitted.user, ev->submitted.key);

		if (k) {
			k->n_jobs++; /* another job of the same call */
			record_key(m, k, &m->direct);
		} else {
			k = must(calloc(1, sizeof(*k) + n));
			k->hash = ev->submitted.key_hash;
			k->first_id = j->key.id;
			k->n_jobs = 1;
			k->at_us = ev->at_us;
			k->dirty = true;
			k->len = (uint16_t)n;
			memcpy(k->bytes, key, n);
			HASH_ADD_KEYPTR(hh, m->keys, k->bytes, n, k);
		}
	}
	return 0;
}

/* ---- changes ---- */

int model_apply_updated(struct model *m, struct job *j, const struct event *ev,
			struct gpuq_err *err)
{
	const struct gpuq_spec *spec = ev->updated.spec;
	struct queue *q = queue_find(m, ev->updated.queue);
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct request *r = NULL;

	if (j->ended)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended", j->key.id);
	if (!q || (job_is_live(j) && q != j->queue))
		return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %s", ev->updated.queue);
	if (!job_is_live(j)) {
		r = request_intern(m, ev->updated.request_bytes, ev->updated.request_len, err);
		if (!r)
			return err && err->code ? err->code : GPUQ_EINVAL;
		request_put(m, j->request);
		j->request = r;
		job_count(j, -1);
		index_queue(j, q);
		job_count(j, 1);
		j->qos = model_intern(m, ev->updated.qos);
		j->account = model_intern(m, spec->account);
		if (ev->updated.begin) {
			j->begin_us = spec->begin_us;
			j->eligible_us = spec->begin_us > ev->at_us ? spec->begin_us : ev->at_us;
		}
		if (ev->updated.depends) {
			if (j->n_deps)
				DL_DELETE2(m->depending, j, dep_prev, dep_next);
			take_depends(j, spec);
			if (j->n_deps)
				DL_APPEND2(m->depending, j, dep_prev, dep_next);
		}
		job_set_promise(m, j, NULL); /* it may fit there no more */
	}
	if (ev->updated.deadline)
		j->deadline_us = spec->deadline_us;
	set_name(j, spec->name);
	model_singletons(m, j, ev->at_us);
	/* What an attempt was given is no new wish. */
	if (!spec->time_min_us || !j->time_asked_us)
		j->time_asked_us = spec->time_min_us ? ev->updated.time_limit_us : 0;
	else if (ev->updated.time_limit_us != j->time_limit_us)
		j->time_asked_us = ev->updated.time_limit_us;
	j->time_limit_us = ev->updated.time_limit_us;
	take_rules(j, spec);
	notice_take(m, j, spec);
	if (j->array)
		j->array->throttle = spec->array.throttle;
	if (ev->updated.spec_bytes)
		batch_put(&m->direct, TABLE_SPEC, key, key_u32(key, j->key.id),
			  ev->updated.spec_bytes, ev->updated.spec_len);
	job_dirty(m, j);
	return 0;
}

void model_expire_keys(struct model *m, int64_t at_us)
{
	struct idem_key *k, *kt;

	HASH_ITER (hh, m->keys, k, kt) {
		if (k->at_us > at_us - GPUQ_KEY_KEEP_S * GPUQ_US_PER_S)
			return; /* in order of age */
		batch_put(&m->direct, TABLE_KEY, k->bytes, k->len, NULL, 0);
		HASH_DEL(m->keys, k);
		free(k);
	}
}
