/* Records of jobs. Positions are fixed for ever: append, never insert (rec.h). */
#include "gpuqd/core/model_int.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/record_int.h"

static void record_promise(const struct promise *p, struct gpuq_buf *b)
{
	if (!p) {
		rec_array(b, 0);
		return;
	}
	rec_array(b, 4);
	rec_int(b, p->at_us);
	rec_str(b, p->flavor);
	rec_array(b, 2 * p->n_victims);
	for (uint32_t i = 0; i < p->n_victims; i++) {
		rec_int(b, p->victims[i].id);
		rec_int(b, p->victims[i].index);
	}
	rec_array(b, 5 * p->n_pods);
	for (uint32_t i = 0; i < p->n_pods; i++) {
		const struct promised_pod *pp = &p->pods[i];

		rec_int(b, pp->group);
		rec_int(b, pp->group_index);
		rec_str(b, pp->node);
		rec_int(b, pp->gpus_milli);
		rec_array(b, pp->n_devices);
		for (uint32_t k = 0; k < pp->n_devices; k++)
			rec_int(b, pp->devices[k]);
	}
}

static void record_exits(const struct wish *w, struct gpuq_buf *b)
{
	uint8_t codes[256];
	size_t n = 0;

	for (int i = 0; i < 256; i++) {
		if (w->retry_exits[i / 64] == 0)
			i += 63;
		else if (wish_has_exit(w, i))
			codes[n++] = (uint8_t)i;
	}
	rec_bin(b, codes, n);
}

void record_job(struct model *m, const struct job *j, struct batch *out)
{
	const struct wish *w = j->wish;
	const struct life *l = j->life;
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	rec_array(&b, 61);
	rec_str(&b, j->name);
	rec_str(&b, j->user);
	rec_str(&b, j->queue->name);
	rec_int(&b, j->request->id);
	rec_int(&b, j->state);
	rec_int(&b, w->uid);
	rec_int(&b, w->gid);
	rec_str(&b, w->account);
	rec_str(&b, j->qos);
	rec_str(&b, l->flavor);
	rec_int(&b, j->submit_us);
	rec_int(&b, j->eligible_us);
	rec_int(&b, w->begin_us);
	rec_int(&b, w->deadline_us);
	rec_int(&b, j->time_limit_us);
	rec_int(&b, l->start_us);
	rec_int(&b, l->end_us);
	rec_int(&b, l->placed_us);
	rec_int(&b, w->nice);
	rec_int(&b, l->gpu_us);
	rec_int(&b, l->not_before_us);
	rec_int(&b, j->attempt);
	rec_int(&b, l->n_retries);
	rec_int(&b, (j->held_user ? 1 : 0) | (j->held_admin ? 2 : 0) | (j->held_retries ? 4 : 0) |
			    (w->requeue ? 8 : 0) | (j->started_once ? 16 : 0) |
			    (j->cancel_asked ? 32 : 0) | (w->depends_any ? 64 : 0) |
			    (w->kill_on_invalid_dep ? 128 : 0) | (w->saves ? 256 : 0) |
			    (j->warned ? 512 : 0) | (int64_t)j->n_log << 32);
	rec_int(&b, l->outcome);
	rec_int(&b, l->outcome_exit);
	rec_int(&b, l->leave_cause);
	rec_int(&b, l->leave_us);
	rec_int(&b, l->leave_grace_us);
	rec_int(&b, w->lease_us);
	rec_int(&b, l->exit_code);
	rec_str(&b, l->message);
	rec_str(&b, l->token);
	rec_int(&b, w->retry_limit);
	rec_int(&b, w->retry_on);
	record_exits(w, &b);
	rec_array(&b, j->array ? (uint32_t)(8 + 3 * j->array->n_waiting_ranges) : 0);
	if (j->array) {
		const struct array *a = j->array;

		rec_str(&b, a->indices);
		rec_int(&b, a->size);
		rec_int(&b, a->throttle);
		rec_int(&b, a->n_waiting);
		rec_int(&b, a->n_live);
		rec_int(&b, a->worst_exit);
		rec_int(&b, a->worst);
		rec_int(&b, (int64_t)a->n_waiting_ranges);
		for (size_t i = 0; i < a->n_waiting_ranges; i++) {
			rec_int(&b, a->waiting[i].first);
			rec_int(&b, a->waiting[i].last);
			rec_int(&b, a->waiting[i].step);
		}
	}
	rec_array(&b, job_n_deps(j) * 6);
	for (uint32_t i = 0; i < job_n_deps(j); i++) {
		const struct dep *d = &j->deps->items[i];

		rec_int(&b, d->type);
		rec_int(&b, d->on.id);
		rec_int(&b, d->on.index);
		rec_int(&b, d->delay_us);
		rec_int(&b, d->state);
		rec_int(&b, d->at_us);
	}
	rec_array(&b, l->n_evictions * 4);
	for (uint32_t i = 0; i < l->n_evictions; i++) {
		rec_int(&b, l->evictions[i].at_us);
		rec_int(&b, l->evictions[i].cause);
		rec_str(&b, l->evictions[i].rule);
		rec_str(&b, l->evictions[i].by);
	}
	rec_int(&b, j->ended);
	rec_int(&b, w->checkpoint_every_us);
	rec_int(&b, l->shrunk_us);
	rec_int(&b, l->short_us);
	rec_int(&b, l->n_indexes);
	rec_array(&b, l->n_evictions);
	for (uint32_t i = 0; i < l->n_evictions; i++)
		rec_str(&b, l->evictions[i].by_queue);
	record_promise(l->promise, &b);
	rec_int(&b, l->yield_us);
	rec_int(&b, w->grace_us);
	rec_int(&b, w->warn_lead_us);
	rec_array(&b, l->n_evictions);
	for (uint32_t i = 0; i < l->n_evictions; i++)
		rec_str(&b, l->evictions[i].why ? l->evictions[i].why : "");
	rec_str(&b, l->promise ? l->promise->rule : "");
	rec_str(&b, l->promise && l->promise->why ? l->promise->why : "");
	rec_array(&b, l->apart ? 3 : 0);
	if (l->apart) {
		rec_str(&b, l->apart->flavor);
		rec_int(&b, l->apart->milli);
		rec_int(&b, l->apart->since_us);
	}
	rec_int(&b, w->time_asked_us);
	rec_int(&b, w->time_min_us);
	rec_int(&b, w->fixed_priority);
	rec_array(&b, w->mail_on || w->web_on ? 4 : 0);
	if (w->mail_on || w->web_on) {
		rec_int(&b, w->mail_on);
		rec_str(&b, w->mail);
		rec_int(&b, w->web_on);
		rec_str(&b, w->web);
	}
	rec_int(&b, l->told);
	rec_str(&b, j->labels ? j->labels : "");
	rec_array(&b, l->avoids ? 2 * l->avoids->n : 0);
	for (uint32_t i = 0; l->avoids && i < l->avoids->n; i++) {
		rec_str(&b, l->avoids->items[i].node);
		rec_int(&b, l->avoids->items[i].until_us);
	}
	rec_str(&b, j->notes ? j->notes : "");
	record_put(out, TABLE_JOB, key, key_job(key, j->key.id, j->key.index), &b);
}

static int load_array(struct job *j, struct rec *r)
{
	uint32_t n = rec_get_array(r);
	struct array *a;

	if (n == 0)
		return 0;
	a = j->array = record_alloc(1, sizeof(*a));
	a->indices = record_get_dup(r);
	a->size = rec_get_int(r);
	a->throttle = rec_get_int(r);
	a->n_waiting = rec_get_int(r);
	a->n_live = rec_get_int(r);
	a->worst_exit = (int)rec_get_int(r);
	a->worst = (enum gpuq_job_state)rec_get_int(r);
	a->n_waiting_ranges = (size_t)rec_get_int(r);
	if (n < 8 || a->n_waiting_ranges != (n - 8) / 3 || !a->indices)
		return -1;
	a->waiting = record_alloc(a->n_waiting_ranges, sizeof(*a->waiting));
	for (size_t i = 0; i < a->n_waiting_ranges; i++) {
		a->waiting[i].first = rec_get_int(r);
		a->waiting[i].last = rec_get_int(r);
		a->waiting[i].step = rec_get_int(r);
		if (a->waiting[i].step < 1)
			return -1;
	}
	return 0;
}

/* The victims' count comes before the pods' in the record, so the first list is kept. */
static struct promise *load_promise(struct model *m, const struct request *of, struct rec *r)
{
	struct job_key *victims;
	struct promise *p;
	const char *flavor;
	int64_t at_us;
	uint32_t n;

	if (rec_get_array(r) == 0)
		return NULL;
	at_us = rec_get_int(r);
	flavor = record_get_name(m, r, NULL);
	n = rec_get_array(r) / 2;
	victims = record_alloc(n, sizeof(*victims));
	for (uint32_t i = 0; i < n; i++) {
		victims[i].id = (uint32_t)rec_get_int(r);
		victims[i].index = (int32_t)rec_get_int(r);
	}
	p = promise_new(rec_get_array(r) / 5, n);
	p->at_us = at_us;
	p->flavor = flavor;
	memcpy(p->victims, victims, n * sizeof(*victims));
	free(victims);
	for (uint32_t i = 0; i < p->n_pods; i++) {
		struct promised_pod *pp = &p->pods[i];

		pp->group = (uint32_t)rec_get_int(r);
		pp->group_index = (uint32_t)rec_get_int(r);
		pp->node = record_get_name(m, r, NULL);
		pp->gpus_milli = rec_get_int(r);
		pp->n_devices = rec_get_array(r);
		pp->devices = record_alloc(pp->n_devices, sizeof(*pp->devices));
		for (uint32_t k = 0; k < pp->n_devices; k++)
			pp->devices[k] = (uint16_t)rec_get_int(r);
		if (of && pp->group >= of->spec.n_groups)
			r->bad = true;
	}
	return p;
}

/* The numbers behind evictions and the promise. */
static void load_whys(struct model *m, struct life *l, struct rec *r)
{
	const uint32_t n = rec_get_array(r);
	const char *rule;
	char *why;

	for (uint32_t i = 0; i < n; i++) {
		why = record_get_line(r);
		if (i < l->n_evictions)
			l->evictions[i].why = why;
		else
			free(why);
	}
	rule = record_get_name(m, r, NULL);
	why = record_get_line(r);
	if (!l->promise) {
		free(why);
		return;
	}
	l->promise->rule = rule;
	l->promise->why = why;
}

static void load_evictions(struct model *m, struct life *l, struct rec *r)
{
	const uint32_t n = rec_get_array(r);

	l->n_evictions = n / 4;
	l->evictions = n ? record_alloc(l->n_evictions, sizeof(*l->evictions)) : NULL;
	for (uint32_t i = 0; i < l->n_evictions; i++) {
		l->evictions[i].at_us = rec_get_int(r);
		l->evictions[i].cause = (enum gpuq_cause)rec_get_int(r);
		l->evictions[i].rule = record_get_name(m, r, NULL);
		l->evictions[i].by = record_get_name(m, r, NULL);
		l->evictions[i].by_queue = "";
		if (l->evictions[i].at_us > m->evicted_us)
			m->evicted_us = l->evictions[i].at_us;
	}
}

static void load_evictors(struct model *m, struct life *l, struct rec *r)
{
	const uint32_t n = rec_get_array(r);

	for (uint32_t i = 0; i < n; i++) {
		const char *queue = record_get_name(m, r, NULL);

		if (i < l->n_evictions)
			l->evictions[i].by_queue = queue;
	}
}

static struct apart *load_apart(struct model *m, struct rec *r)
{
	struct apart *a;

	if (rec_get_array(r) == 0)
		return NULL;
	a = record_alloc(1, sizeof(*a));
	a->flavor = record_get_name(m, r, NULL);
	a->milli = rec_get_int(r);
	a->since_us = rec_get_int(r);
	return a;
}

static void load_notify(struct model *m, struct wish *w, struct rec *r)
{
	if (rec_get_array(r) != 4)
		return;
	w->mail_on = (unsigned)rec_get_int(r);
	w->mail = record_get_name(m, r, NULL);
	w->web_on = (unsigned)rec_get_int(r);
	w->web = record_get_name(m, r, NULL);
}

static void load_exits(struct wish *w, struct rec *r)
{
	size_t n;
	const char *codes = rec_get_str(r, &n);

	for (size_t i = 0; i < n; i++)
		wish_add_exit(w, (uint8_t)codes[i]);
}

static void load_deps(struct model *m, struct job *j, struct rec *r)
{
	const uint32_t n = rec_get_array(r) / 6;
	struct deps *all = n ? deps_new(n) : NULL;

	for (uint32_t i = 0; i < n; i++) {
		struct dep *d = &all->items[i];

		d->type = (int)rec_get_int(r);
		d->on.id = (uint32_t)rec_get_int(r);
		d->on.index = (int32_t)rec_get_int(r);
		d->delay_us = rec_get_int(r);
		d->state = (int)rec_get_int(r);
		d->at_us = rec_get_int(r);
	}
	job_set_deps(m, j, all);
}

static void load_flags(struct job *j, struct wish *w, int64_t flags)
{
	j->held_user = flags & 1;
	j->held_admin = flags & 2;
	j->held_retries = flags & 4;
	w->requeue = flags & 8;
	j->started_once = flags & 16;
	j->cancel_asked = flags & 32;
	w->depends_any = flags & 64;
	w->kill_on_invalid_dep = flags & 128;
	w->saves = flags & 256;
	j->warned = flags & 512;
	j->n_log = (uint32_t)((uint64_t)flags >> 32);
}

static struct request *load_request_of(struct model *m, const struct job *before, uint32_t id)
{
	struct request *r = before ? before->request : NULL;

	if (!r || r->id != id)
		HASH_FIND(hh_id, m->requests_by_id, &id, sizeof(id), r);
	if (r)
		r->n_jobs++;
	return r;
}

static struct queue *load_queue_of(const struct model *m, const struct job *before, const char *s,
				   size_t n)
{
	char name[256];

	if (before && strlen(before->queue->name) == n && memcmp(before->queue->name, s, n) == 0)
		return before->queue;
	if (n >= sizeof(name))
		return NULL;
	memcpy(name, s, n);
	name[n] = '\0';
	return queue_find(m, name);
}

static void load_name(struct model *m, struct job *j, const struct job *before, struct rec *r)
{
	size_t n;
	const char *s = rec_get_str(r, &n);
	char *text;

	if (!s)
		return;
	if (before && strlen(before->name) == n && memcmp(before->name, s, n) == 0) {
		j->name = shared_more(before->name);
		return;
	}
	text = record_alloc(n + 1, 1);
	memcpy(text, s, n);
	job_set_name(m, j, text);
	free(text);
}

/* Fields that later versions appended. */
static void load_later(struct model *m, struct job *j, struct wish *w, struct life *l,
		       struct rec *r, uint32_t n_fields)
{
	if (n_fields > 40) {
		w->checkpoint_every_us = rec_get_int(r);
		l->shrunk_us = rec_get_int(r);
		l->short_us = rec_get_int(r);
		l->n_indexes = (uint32_t)rec_get_int(r);
		load_evictors(m, l, r);
		l->promise = load_promise(m, j->request, r);
		l->yield_us = rec_get_int(r);
		w->grace_us = rec_get_int(r);
	}
	if (n_fields > 48)
		w->warn_lead_us = rec_get_int(r);
	if (n_fields > 49)
		load_whys(m, l, r);
	if (n_fields > 52)
		l->apart = load_apart(m, r);
	if (n_fields > 53) {
		w->time_asked_us = rec_get_int(r);
		w->time_min_us = rec_get_int(r);
		w->fixed_priority = rec_get_int(r);
	}
	if (n_fields > 56) {
		load_notify(m, w, r);
		l->told = (unsigned)rec_get_int(r);
	}
	if (n_fields > 58) {
		char *labels = record_get_line(r);

		job_set_labels(m, j, labels);
		free(labels);
	}
}

static void load_notes(struct model *m, struct job *j, struct rec *r)
{
	char *notes = record_get_line(r);

	job_set_notes(m, j, notes);
	free(notes);
}

static void load_avoids(struct model *m, struct job *j, struct rec *r)
{
	for (uint32_t n = rec_get_array(r) / 2; n > 0 && !r->bad; n--) {
		const char *node = record_get_name(m, r, NULL);

		job_avoid(m, j, node, rec_get_int(r));
	}
}

/* Most jobs are like the one before them: what that has is looked at first. */
static void load_fields(struct model *m, struct job *j, struct rec *r)
{
	const struct job *before = m->jobs ? m->jobs->prev : NULL;
	const uint32_t n_fields = rec_get_array(r);
	struct life l = life_none;
	const char *s;
	struct wish w;
	int64_t state;
	size_t n;

	memset(&w, 0, sizeof(w)); /* compared byte by byte */
	w.mail = w.web = "";
	load_name(m, j, before, r);
	j->user = record_get_name(m, r, before ? before->user : NULL);
	s = rec_get_str(r, &n);
	j->queue = load_queue_of(m, before, s ? s : "", n);
	j->request = load_request_of(m, before, (uint32_t)rec_get_int(r));
	state = rec_get_int(r);
	j->state = state >= 0 && state < N_GPUQ_JOB_STATES ? (enum gpuq_job_state)state
							   : N_GPUQ_JOB_STATES;
	w.uid = (uint32_t)rec_get_int(r);
	w.gid = (uint32_t)rec_get_int(r);
	w.account = record_get_name(m, r, before ? before->wish->account : NULL);
	j->qos = record_get_name(m, r, before ? before->qos : NULL);
	l.flavor = record_get_name(m, r, before ? before->life->flavor : life_none.flavor);
	j->submit_us = rec_get_int(r);
	j->eligible_us = rec_get_int(r);
	w.begin_us = rec_get_int(r);
	w.deadline_us = rec_get_int(r);
	j->time_limit_us = rec_get_int(r);
	l.start_us = rec_get_int(r);
	l.end_us = rec_get_int(r);
	l.placed_us = rec_get_int(r);
	w.nice = rec_get_int(r);
	l.gpu_us = rec_get_int(r);
	l.not_before_us = rec_get_int(r);
	j->attempt = (uint32_t)rec_get_int(r);
	l.n_retries = (uint32_t)rec_get_int(r);
	load_flags(j, &w, rec_get_int(r));
	l.outcome = (enum gpuq_job_state)rec_get_int(r);
	l.outcome_exit = (int)rec_get_int(r);
	l.leave_cause = (enum gpuq_cause)rec_get_int(r);
	l.leave_us = rec_get_int(r);
	l.leave_grace_us = rec_get_int(r);
	w.lease_us = rec_get_int(r);
	l.exit_code = (int)rec_get_int(r);
	l.message = record_get_dup(r);
	l.token = record_get_dup(r);
	w.retry_limit = rec_get_int(r);
	w.retry_on = (unsigned)rec_get_int(r);
	load_exits(&w, r);
	if (load_array(j, r) < 0)
		r->bad = true;
	load_deps(m, j, r);
	load_evictions(m, &l, r);
	j->ended = rec_get_int(r) != 0;
	load_later(m, j, &w, &l, r, n_fields);
	job_set_wish(m, j, &w);
	job_set_life(j, &l);
	m->n_apart += l.apart != NULL;
	if (n_fields > 59)
		load_avoids(m, j, r);
	if (n_fields > 60)
		load_notes(m, j, r);
}

/* Why it cannot be used; NULL: it can. */
static const char *what_is_wrong(const struct job *j, const struct rec *r)
{
	return r->bad || !j->name ? "is not whole"
	       : !j->queue        ? "names a queue that is not there"
	       : !j->request      ? "names a request that is not there"
	       : j->state >= N_GPUQ_JOB_STATES || j->life->outcome >= N_GPUQ_JOB_STATES
		       ? "has a state that is none"
		       : NULL;
}

int load_job(struct model *m, struct job_key key, struct rec *r, struct gpuq_err *err)
{
	const struct rec whole = *r;
	const char *wrong;
	struct job *j;

	if (load_job_like(m, key, r))
		return 0;
	j = job_new(m, key);
	load_fields(m, j, r);
	wrong = what_is_wrong(j, r);
	if (wrong) {
		/* What there is of it is put into lists, to be taken out of them. */
		if (!j->queue)
			j->queue = m->queues[0];
		if (j->state >= N_GPUQ_JOB_STATES)
			j->state = GPUQ_JOB_PENDING;
		j->ended = true;
	}
	job_insert(m, j);
	promise_count(m, j);
	if (wrong) {
		job_free(m, j);
		return gpuq_fail(err, GPUQ_ECORRUPT, "job %u %s", key.id, wrong);
	}
	job_count(j, 1);
	load_job_note(m, j, &whole);
	return 0;
}
