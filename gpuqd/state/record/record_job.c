/* Records of jobs. Positions are fixed for ever: append, never insert (varint.h). */
#include "gpuqd/state/record/record_job.h"

#include "gpuqd/state/model_int.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/record/record.h"
#include "gpuqd/state/record/record_int.h"
#include "gpuqd/state/record/record_like.h"

/* Append the nominated placement; an empty array for none. */
static void record_promise(const struct promise *p, struct gpuq_buf *b)
{
	if (!p) {
		varint_array(b, 0);
		return;
	}
	varint_array(b, 4);
	varint_int(b, p->at_us);
	varint_str(b, p->flavor);
	varint_array(b, p->n_victims);
	for (uint32_t i = 0; i < p->n_victims; i++) {
		varint_array(b, 2);
		varint_int(b, p->victims[i].id);
		varint_int(b, p->victims[i].index);
	}
	varint_array(b, p->n_pods);
	for (uint32_t i = 0; i < p->n_pods; i++) {
		const struct promised_pod *pp = &p->pods[i];

		varint_array(b, 7);
		varint_int(b, pp->group);
		varint_int(b, pp->group_index);
		varint_str(b, pp->node);
		varint_int(b, pp->gpus_milli);
		varint_array(b, pp->n_devices);
		for (uint32_t k = 0; k < pp->n_devices; k++)
			varint_int(b, pp->devices[k]);
		varint_str(b, pp->mig);
		record_put_choice(b, pp->choice);
	}
}

/* Append the exit codes after which the job is retried, one byte each; most words of the bit set
 * are empty. */
static void record_exits(const struct wish *w, struct gpuq_buf *b)
{
	uint8_t codes[256];
	size_t n = 0;

	for (int i = 0; i < 256; i++) {
		if (w->retry_exits[i / 64] == 0)
			i += 63;
		else if (job_wish_has_exit(w, i))
			codes[n++] = (uint8_t)i;
	}
	varint_bin(b, codes, n);
}

/* Fields are appended at the end, and read there only where a record has them: the first ones of
 * this schema are in all. */
#define RECORD_JOB_FIELDS 64
#define RECORD_JOB_FIELDS_FIRST 62

void record_job(struct model *m, const struct job *j, struct batch *out)
{
	const struct wish *w = j->wish;
	const struct life *l = j->life;
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	/* Most are pending, and used nothing yet. */
	varint_array(&b, RECORD_JOB_FIELDS - (l->used ? 0 : 1));
	varint_str(&b, j->name);
	varint_str(&b, j->user);
	varint_str(&b, j->queue->name);
	varint_int(&b, j->request->id);
	varint_int(&b, j->state);
	varint_int(&b, w->uid);
	varint_int(&b, w->gid);
	varint_str(&b, w->account);
	varint_str(&b, j->qos);
	varint_str(&b, l->flavor);
	varint_int(&b, j->submit_us);
	varint_int(&b, j->eligible_us);
	varint_int(&b, j->spec_bytes);
	varint_int(&b, w->begin_us);
	varint_int(&b, w->deadline_us);
	varint_int(&b, j->time_limit_us);
	varint_int(&b, l->start_us);
	varint_int(&b, l->end_us);
	varint_int(&b, l->placed_us);
	varint_int(&b, w->nice);
	varint_int(&b, l->gpu_us);
	varint_int(&b, l->not_before_us);
	varint_int(&b, j->attempt);
	varint_int(&b, l->n_retries);
	varint_int(&b, (j->held_user ? 1 : 0) | (j->held_admin ? 2 : 0) |
			       (j->held_retries ? 4 : 0) | (w->requeue ? 8 : 0) |
			       (j->started_once ? 16 : 0) | (j->cancel_asked ? 32 : 0) |
			       (w->depends_any ? 64 : 0) | (w->kill_on_invalid_dep ? 128 : 0) |
			       (w->saves ? 256 : 0) | (j->warned ? 512 : 0) |
			       (j->held_restore ? 1024 : 0) | (j->recovered ? 2048 : 0) |
			       (int64_t)j->n_log << 32);
	varint_int(&b, l->outcome);
	varint_int(&b, l->outcome_exit);
	varint_int(&b, l->leave_cause);
	varint_int(&b, l->leave_us);
	varint_int(&b, l->leave_grace_us);
	varint_int(&b, w->lease_us);
	varint_int(&b, l->exit_code);
	varint_str(&b, l->message);
	varint_str(&b, l->token);
	varint_int(&b, w->retry_limit);
	varint_int(&b, w->retry_on);
	record_exits(w, &b);
	varint_array(&b, j->array ? 8 : 0);
	if (j->array) {
		const struct array *a = j->array;

		varint_str(&b, a->indices);
		varint_int(&b, a->size);
		varint_int(&b, a->throttle);
		varint_int(&b, a->n_waiting);
		varint_int(&b, a->n_live);
		varint_int(&b, a->worst_exit);
		varint_int(&b, a->worst);
		varint_array(&b, (uint32_t)a->n_waiting_ranges);
		for (size_t i = 0; i < a->n_waiting_ranges; i++) {
			varint_array(&b, 3);
			varint_int(&b, a->waiting[i].first);
			varint_int(&b, a->waiting[i].last);
			varint_int(&b, a->waiting[i].step);
		}
	}
	varint_array(&b, deps_count(j));
	for (uint32_t i = 0; i < deps_count(j); i++) {
		const struct dep *d = &j->deps->items[i];

		varint_array(&b, 6);
		varint_int(&b, d->type);
		varint_int(&b, d->on.id);
		varint_int(&b, d->on.index);
		varint_int(&b, d->delay_us);
		varint_int(&b, d->state);
		varint_int(&b, d->at_us);
	}
	varint_array(&b, l->n_evictions);
	for (uint32_t i = 0; i < l->n_evictions; i++) {
		varint_array(&b, 4);
		varint_int(&b, l->evictions[i].at_us);
		varint_int(&b, l->evictions[i].cause);
		varint_str(&b, l->evictions[i].rule);
		varint_str(&b, l->evictions[i].by);
	}
	varint_int(&b, j->ended);
	varint_int(&b, w->checkpoint_every_us);
	varint_int(&b, l->shrunk_us);
	varint_int(&b, l->short_us);
	varint_int(&b, l->n_indexes);
	varint_array(&b, l->n_evictions);
	for (uint32_t i = 0; i < l->n_evictions; i++)
		varint_str(&b, l->evictions[i].by_queue);
	record_promise(l->promise, &b);
	varint_int(&b, l->yield_us);
	varint_int(&b, w->grace_us);
	varint_int(&b, w->warn_lead_us);
	varint_array(&b, l->n_evictions);
	for (uint32_t i = 0; i < l->n_evictions; i++)
		varint_str(&b, l->evictions[i].why ? l->evictions[i].why : "");
	varint_str(&b, l->promise ? l->promise->rule : "");
	varint_str(&b, l->promise && l->promise->why ? l->promise->why : "");
	varint_array(&b, l->apart ? 3 : 0);
	if (l->apart) {
		varint_str(&b, l->apart->flavor);
		varint_int(&b, l->apart->milli);
		varint_int(&b, l->apart->since_us);
	}
	varint_int(&b, w->time_asked_us);
	varint_int(&b, w->time_min_us);
	varint_int(&b, w->fixed_priority);
	varint_array(&b, w->mail_on || w->web_on ? 4 : 0);
	if (w->mail_on || w->web_on) {
		varint_int(&b, w->mail_on);
		varint_str(&b, w->mail);
		varint_int(&b, w->web_on);
		varint_str(&b, w->web);
	}
	varint_int(&b, l->told);
	varint_str(&b, j->labels ? j->labels : "");
	varint_array(&b, l->avoids ? l->avoids->n : 0);
	for (uint32_t i = 0; l->avoids && i < l->avoids->n; i++) {
		varint_array(&b, 2);
		varint_str(&b, l->avoids->items[i].node);
		varint_int(&b, l->avoids->items[i].until_us);
	}
	varint_str(&b, j->notes ? j->notes : "");
	varint_int(&b, l->element_id);
	if (l->used) {
		varint_array(&b, 8);
		varint_int(&b, l->used->user_us);
		varint_int(&b, l->used->system_us);
		varint_int(&b, l->used->memory_bytes);
		varint_int(&b, l->used->read_bytes);
		varint_int(&b, l->used->written_bytes);
		varint_int(&b, l->used->gpu_milli);
		varint_int(&b, l->used->cpu_us);
		varint_int(&b, l->used->gpu_bytes);
	}
	record_put(out, TABLE_JOB, key, change_key_job(key, j->key.id, j->key.index), &b);
}

/* Read the pending part of an array; -1 if it is not whole. */
static int load_array(struct job *j, struct rec *r)
{
	const uint32_t n = rec_get_array(r);
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
	a->n_waiting_ranges = rec_get_array(r);
	if (n < 8 || !a->indices)
		return -1;
	a->waiting = record_alloc(a->n_waiting_ranges, sizeof(*a->waiting));
	for (size_t i = 0; i < a->n_waiting_ranges; i++) {
		const uint32_t more = rec_get_row(r, 3);

		a->waiting[i].first = rec_get_int(r);
		a->waiting[i].last = rec_get_int(r);
		a->waiting[i].step = rec_get_int(r);
		varint_skip_more(r, more);
		if (a->waiting[i].step < 1)
			return -1;
	}
	varint_skip_more(r, n - 8);
	return 0;
}

/* The victims' count comes before the pods' in the record, so the first list is kept. */
static struct promise *load_promise(struct model *m, const struct request *of, struct rec *r)
{
	struct job_key *victims;
	struct promise *p;
	const char *flavor;
	const uint32_t n_fields = rec_get_array(r);
	int64_t at_us;
	uint32_t n, more;

	if (n_fields == 0)
		return NULL;
	at_us = rec_get_int(r);
	flavor = record_get_name(m, r, NULL);
	n = rec_get_array(r);
	victims = record_alloc(n, sizeof(*victims));
	for (uint32_t i = 0; i < n; i++) {
		more = rec_get_row(r, 2);
		victims[i].id = (uint32_t)rec_get_int(r);
		victims[i].index = (int32_t)rec_get_int(r);
		varint_skip_more(r, more);
	}
	p = job_promise_new(rec_get_array(r), n);
	p->at_us = at_us;
	p->flavor = flavor;
	memcpy(p->victims, victims, n * sizeof(*victims));
	free(victims);
	for (uint32_t i = 0; i < p->n_pods; i++) {
		struct promised_pod *pp = &p->pods[i];

		more = rec_get_row(r, 5);
		pp->group = (uint32_t)rec_get_int(r);
		pp->group_index = (uint32_t)rec_get_int(r);
		pp->node = record_get_name(m, r, NULL);
		pp->gpus_milli = rec_get_int(r);
		pp->n_devices = rec_get_array(r);
		pp->devices = record_alloc(pp->n_devices, sizeof(*pp->devices));
		for (uint32_t k = 0; k < pp->n_devices; k++)
			pp->devices[k] = (uint16_t)rec_get_int(r);
		pp->mig = more > 0 ? record_get_name(m, r, NULL) : NULL;
		if (pp->mig && !*pp->mig)
			pp->mig = NULL;
		if (more > 1)
			pp->choice = record_get_choice(r);
		varint_skip_more(r, more > 2 ? more - 2 : 0);
		if (of && pp->group >= of->spec.n_groups)
			r->bad = true;
	}
	if (n_fields < 4)
		r->bad = true;
	else
		varint_skip_more(r, n_fields - 4);
	return p;
}

/* Read rule words, under their present names. A job's record keeps the words that were written: an
 * upgrade copies it. Objects of history and logs are printed as they are stored, and the upgrade
 * renames the words in them. */
static const char *get_rules(struct model *m, struct rec *r)
{
	char stored[128], now[128];

	record_get_text(r, stored, sizeof(stored));
	gpuq_rules_now(stored, now, sizeof(now));
	return model_intern(m, now);
}

/* Read the numbers behind evictions and the nominated placement. */
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
	rule = get_rules(m, r);
	why = record_get_line(r);
	if (!l->promise) {
		free(why);
		return;
	}
	l->promise->rule = rule;
	l->promise->why = why;
}

/* Read its evictions; the rule may stand under the word of an earlier version. */
static void load_evictions(struct model *m, struct life *l, struct rec *r)
{
	const uint32_t n = rec_get_array(r);

	l->n_evictions = n;
	l->evictions = n ? record_alloc(n, sizeof(*l->evictions)) : NULL;
	for (uint32_t i = 0; i < l->n_evictions; i++) {
		const uint32_t more = rec_get_row(r, 4);

		l->evictions[i].at_us = rec_get_int(r);
		l->evictions[i].cause = (enum gpuq_cause)rec_get_int(r);
		l->evictions[i].rule = get_rules(m, r);
		l->evictions[i].by = record_get_name(m, r, NULL);
		l->evictions[i].by_queue = "";
		varint_skip_more(r, more);
		if (l->evictions[i].at_us > m->evicted_us)
			m->evicted_us = l->evictions[i].at_us;
	}
}

/* Read the queues of preemptors, which were appended after the evictions themselves. */
static void load_evictors(struct model *m, struct life *l, struct rec *r)
{
	const uint32_t n = rec_get_array(r);

	for (uint32_t i = 0; i < n; i++) {
		const char *queue = record_get_name(m, r, NULL);

		if (i < l->n_evictions)
			l->evictions[i].by_queue = queue;
	}
}

/* Read since when it was charged for fragmentation. */
static struct apart *load_apart(struct model *m, struct rec *r)
{
	struct apart *a;
	uint32_t more;

	/* An empty array: it is charged for no fragmentation. */
	if (r->p < r->end && *r->p == 0x90)
		return varint_skip(r), NULL;
	more = rec_get_row(r, 3);
	a = record_alloc(1, sizeof(*a));
	a->flavor = record_get_name(m, r, NULL);
	a->milli = rec_get_int(r);
	a->since_us = rec_get_int(r);
	varint_skip_more(r, more);
	return a;
}

/* Read where its events are reported. */
static void load_notify(struct model *m, struct wish *w, struct rec *r)
{
	const uint32_t n = rec_get_array(r);

	if (n == 0)
		return;
	w->mail_on = (unsigned)rec_get_int(r);
	w->mail = record_get_name(m, r, NULL);
	w->web_on = (unsigned)rec_get_int(r);
	w->web = record_get_name(m, r, NULL);
	if (n < 4)
		r->bad = true;
	else
		varint_skip_more(r, n - 4);
}

/* Read the exit codes after which it is requeued, a byte each. */
static void load_exits(struct wish *w, struct rec *r)
{
	size_t n;
	const char *codes = rec_get_str(r, &n);

	for (size_t i = 0; i < n; i++)
		job_wish_add_exit(w, (uint8_t)codes[i]);
}

/* Read its dependencies, met ones too: an update shows them all. */
static void load_deps(struct model *m, struct job *j, struct rec *r)
{
	const uint32_t n = rec_get_array(r);
	struct deps *all = n ? deps_new(n) : NULL;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t more = rec_get_row(r, 6);
		struct dep *d = &all->items[i];

		d->type = (int)rec_get_int(r);
		d->on.id = (uint32_t)rec_get_int(r);
		d->on.index = (int32_t)rec_get_int(r);
		d->delay_us = rec_get_int(r);
		d->state = (int)rec_get_int(r);
		d->at_us = rec_get_int(r);
		varint_skip_more(r, more);
	}
	deps_set(m, j, all);
}

/* Set the flags of a job and its wish, and the length of its log, from one number: as record_job()
 * packs them. */
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
	j->held_restore = flags & 1024;
	j->recovered = flags & 2048;
	j->n_log = (uint32_t)((uint64_t)flags >> 32);
}

/* Most jobs have the request of the previous job, or the one behind that. */
static struct request *load_request_of(struct model *m, const struct job *before, uint32_t id)
{
	struct request *r = before ? before->request : NULL;

	if (r && r->id != id)
		r = r->next;
	if (!r || r->id != id)
		r = request_find(&m->requests, id);
	if (r)
		r->n_jobs++;
	return r;
}

/* Return the queue of that name, mostly the one of the job before; NULL = there is none. */
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
	return model_find_queue(m, name);
}

/* Read its name; equal names of neighbours share their memory. */
static void load_name(struct model *m, struct job *j, const struct job *before, struct rec *r)
{
	size_t n;
	const char *s = rec_get_str(r, &n);
	char *text;

	if (!s)
		return;
	if (before && strlen(before->name) == n && memcmp(before->name, s, n) == 0) {
		j->name = blob_more(before->name);
		return;
	}
	text = record_alloc(n + 1, 1);
	memcpy(text, s, n);
	job_set_name(m, j, text);
	free(text);
}

/* Read its labels. */
static void load_labels(struct model *m, struct job *j, struct rec *r)
{
	char *labels = record_get_line(r);

	job_set_labels(m, j, labels);
	free(labels);
}

/* Read its notes. */
static void load_notes(struct model *m, struct job *j, struct rec *r)
{
	char *notes = record_get_line(r);

	job_set_notes(m, j, notes);
	free(notes);
}

/* Read the nodes that it avoids, and until when. */
static void load_avoids(struct model *m, struct job *j, struct rec *r)
{
	for (uint32_t n = rec_get_array(r); n > 0 && !r->bad; n--) {
		const uint32_t more = rec_get_row(r, 2);
		const char *node = record_get_name(m, r, NULL);

		pod_avoid(m, j, node, rec_get_int(r));
		varint_skip_more(r, more);
	}
}

/* Read what its last attempt used, where that is known. */
static void load_used(struct job *j, struct rec *r)
{
	struct used *s;
	uint32_t more;

	if (r->p < r->end && *r->p == 0x90) {
		varint_skip(r);
		return;
	}
	more = rec_get_row(r, 6);
	s = job_life(j)->used = record_alloc(1, sizeof(*s));
	s->user_us = rec_get_int(r);
	s->system_us = rec_get_int(r);
	s->memory_bytes = rec_get_int(r);
	s->read_bytes = rec_get_int(r);
	s->written_bytes = rec_get_int(r);
	s->gpu_milli = rec_get_int(r);
	s->cpu_us = s->user_us >= 0 && s->system_us >= 0 ? s->user_us + s->system_us : -1;
	s->gpu_bytes = -1;
	if (more >= 2) { /* older records have none of them */
		s->cpu_us = rec_get_int(r);
		s->gpu_bytes = rec_get_int(r);
		more -= 2;
	}
	varint_skip_more(r, more);
}

/* Most jobs are like the previous one: its values are tried first. */
static void load_fields(struct model *m, struct job *j, struct rec *r)
{
	const struct job *before = m->jobs ? m->jobs->prev : NULL;
	struct life l = life_none;
	const char *s;
	struct wish w;
	int64_t state, number;
	uint32_t more;
	size_t n;

	memset(&w, 0, sizeof(w)); /* compared byte by byte */
	w.mail = w.web = "";
	more = rec_get_row(r, RECORD_JOB_FIELDS_FIRST);
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
	clock_seen(m, j->submit_us);
	j->eligible_us = rec_get_int(r);
	j->spec_bytes = (uint32_t)rec_get_int(r);
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
	w.checkpoint_every_us = rec_get_int(r);
	l.shrunk_us = rec_get_int(r);
	l.short_us = rec_get_int(r);
	l.n_indexes = (uint32_t)rec_get_int(r);
	load_evictors(m, &l, r);
	l.promise = load_promise(m, j->request, r);
	l.yield_us = rec_get_int(r);
	w.grace_us = rec_get_int(r);
	w.warn_lead_us = rec_get_int(r);
	load_whys(m, &l, r);
	l.apart = load_apart(m, r);
	w.time_asked_us = rec_get_int(r);
	w.time_min_us = rec_get_int(r);
	w.fixed_priority = rec_get_int(r);
	load_notify(m, &w, r);
	l.told = (unsigned)rec_get_int(r);
	load_labels(m, j, r);
	job_set_wish(m, j, &w);
	job_set_life(j, &l);
	/* Counters that events keep up to date are set here by hand. */
	m->n_apart += l.apart != NULL;
	load_avoids(m, j, r);
	load_notes(m, j, r);
	number = more > 0 ? rec_get_int(r) : 0;
	if (number > 0 && number <= UINT32_MAX)
		job_set_number(m, j, (uint32_t)number);
	if (more > 1)
		load_used(j, r);
}

/* Return why the record cannot be used; NULL: it can. */
static const char *what_is_wrong(const struct job *j, const struct rec *r)
{
	return r->bad || !j->name ? "is incomplete"
	       : !j->queue        ? "names a queue that is not there"
	       : !j->request      ? "names a request that is not there"
	       : j->state >= N_GPUQ_JOB_STATES || j->life->outcome >= N_GPUQ_JOB_STATES
		       ? "has an unknown state"
		       : NULL;
}

int record_load_job(struct model *m, struct job_key key, struct rec *r, struct gpuq_err *err)
{
	const struct rec whole = *r;
	const char *wrong;
	struct job *j;

	/* A job that differs from the last one only in numbers and times is copied from it. */
	if (record_like_load(m, key, r))
		return 0;
	j = job_new(m, key);
	load_fields(m, j, r);
	wrong = what_is_wrong(j, r);
	if (wrong) {
		/* Link the parts that were read into the lists, so that job_free() can remove
		 * them. */
		if (!j->queue)
			j->queue = m->queues[0];
		if (j->state >= N_GPUQ_JOB_STATES)
			j->state = GPUQ_JOB_PENDING;
		j->ended = true;
	}
	job_insert(m, j);
	job_promise_count(m, j);
	if (wrong) {
		job_free(m, j);
		return gpuq_fail(err, GPUQ_ECORRUPT, "job %u %s", key.id, wrong);
	}
	job_count(j, 1);
	record_like_note(m, j, &whole);
	return 0;
}
