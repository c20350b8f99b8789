#include "gpuqd/core/model_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/rec.h"
#include "gpuqd/core/view.h"
#include "libgpuq/mp.h"

/* Positions are fixed for ever: append, never insert (rec.h). A field count below is
 * the number of rec_ calls of its record. */

void record_put(struct batch *out, enum table t, const unsigned char *key, size_t n,
		struct gpuq_buf *b)
{
	batch_put(out, t, key, n, b->data ? b->data : "", b->len);
	out->failed |= b->failed;
	gpuq_buf_done(b);
}

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

void record_job(struct model *m, const struct job *j, struct batch *out)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	rec_array(&b, 60);
	rec_str(&b, j->name);
	rec_str(&b, j->user);
	rec_str(&b, j->queue->name);
	rec_int(&b, j->request->id);
	rec_int(&b, j->state);
	rec_int(&b, j->uid);
	rec_int(&b, j->gid);
	rec_str(&b, j->account);
	rec_str(&b, j->qos);
	rec_str(&b, j->flavor);
	rec_int(&b, j->submit_us);
	rec_int(&b, j->eligible_us);
	rec_int(&b, j->begin_us);
	rec_int(&b, j->deadline_us);
	rec_int(&b, j->time_limit_us);
	rec_int(&b, j->start_us);
	rec_int(&b, j->end_us);
	rec_int(&b, j->placed_us);
	rec_int(&b, j->nice);
	rec_int(&b, j->gpu_us);
	rec_int(&b, j->not_before_us);
	rec_int(&b, j->attempt);
	rec_int(&b, j->n_retries);
	rec_int(&b, (j->held_user ? 1 : 0) | (j->held_admin ? 2 : 0) | (j->held_retries ? 4 : 0) |
			    (j->requeue ? 8 : 0) | (j->started_once ? 16 : 0) |
			    (j->cancel_asked ? 32 : 0) | (j->depends_any ? 64 : 0) |
			    (j->kill_on_invalid_dep ? 128 : 0) | (j->saves ? 256 : 0) |
			    (j->warned ? 512 : 0) | (int64_t)j->n_log << 32);
	rec_int(&b, j->outcome);
	rec_int(&b, j->outcome_exit);
	rec_int(&b, j->leave_cause);
	rec_int(&b, j->leave_us);
	rec_int(&b, j->leave_grace_us);
	rec_int(&b, j->lease_us);
	rec_int(&b, j->exit_code);
	rec_str(&b, j->message);
	rec_str(&b, j->token);
	rec_int(&b, j->retry.limit);
	rec_int(&b, j->retry.on);
	rec_bin(&b, j->retry.exits ? j->retry.exits : (const uint8_t *)"", j->retry.n_exits);
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
	rec_array(&b, j->n_deps * 6);
	for (uint32_t i = 0; i < j->n_deps; i++) {
		const struct dep *d = &j->deps[i];

		rec_int(&b, d->type);
		rec_int(&b, d->on.id);
		rec_int(&b, d->on.index);
		rec_int(&b, d->delay_us);
		rec_int(&b, d->state);
		rec_int(&b, d->at_us);
	}
	rec_array(&b, j->n_evictions * 4);
	for (uint32_t i = 0; i < j->n_evictions; i++) {
		rec_int(&b, j->evictions[i].at_us);
		rec_int(&b, j->evictions[i].cause);
		rec_str(&b, j->evictions[i].rule);
		rec_str(&b, j->evictions[i].by);
	}
	rec_int(&b, j->ended);
	rec_int(&b, j->checkpoint_every_us);
	rec_int(&b, j->shrunk_us);
	rec_int(&b, j->short_us);
	rec_int(&b, j->n_indexes);
	rec_array(&b, j->n_evictions);
	for (uint32_t i = 0; i < j->n_evictions; i++)
		rec_str(&b, j->evictions[i].by_queue);
	record_promise(j->promise, &b);
	rec_int(&b, j->yield_us);
	rec_int(&b, j->grace_us);
	rec_int(&b, j->warn_lead_us);
	rec_array(&b, j->n_evictions);
	for (uint32_t i = 0; i < j->n_evictions; i++)
		rec_str(&b, j->evictions[i].why ? j->evictions[i].why : "");
	rec_str(&b, j->promise ? j->promise->rule : "");
	rec_str(&b, j->promise && j->promise->why ? j->promise->why : "");
	rec_array(&b, j->apart ? 3 : 0);
	if (j->apart) {
		rec_str(&b, j->apart->flavor);
		rec_int(&b, j->apart->milli);
		rec_int(&b, j->apart->since_us);
	}
	rec_int(&b, j->time_asked_us);
	rec_int(&b, j->time_min_us);
	rec_int(&b, j->fixed_priority);
	rec_array(&b, j->notify ? 4 : 0);
	if (j->notify) {
		rec_int(&b, j->notify->mail_on);
		rec_str(&b, j->notify->mail);
		rec_int(&b, j->notify->web_on);
		rec_str(&b, j->notify->web);
	}
	rec_int(&b, j->told);
	rec_str(&b, j->labels ? j->labels : "");
	rec_array(&b, j->avoids ? 2 * j->avoids->n : 0);
	for (uint32_t i = 0; j->avoids && i < j->avoids->n; i++) {
		rec_str(&b, j->avoids->items[i].node);
		rec_int(&b, j->avoids->items[i].until_us);
	}
	record_put(out, TABLE_JOB, key, key_job(key, j->key.id, j->key.index), &b);
}

static const char *get_interned(struct model *m, struct rec *r)
{
	char text[1100];
	size_t n;
	const char *s = rec_get_str(r, &n);

	if (!s)
		return "";
	if (n >= sizeof(text))
		n = sizeof(text) - 1;
	memcpy(text, s, n);
	text[n] = '\0';
	return model_intern(m, text);
}

static char *get_dup(struct rec *r)
{
	size_t n;
	const char *s = rec_get_str(r, &n);
	char *p;

	if (!s)
		return NULL;
	p = malloc(n + 1);
	if (!p)
		abort();
	memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

static void get_text(struct rec *r, char *out, size_t room)
{
	size_t n;
	const char *s = rec_get_str(r, &n);

	if (n >= room)
		n = room - 1;
	if (n)
		memcpy(out, s, n);
	out[n] = '\0';
}

static void *alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		abort();
	return p;
}

static int load_array(struct job *j, struct rec *r)
{
	uint32_t n = rec_get_array(r);
	struct array *a;

	if (n == 0)
		return 0;
	a = j->array = alloc(1, sizeof(*a));
	a->indices = get_dup(r);
	a->size = rec_get_int(r);
	a->throttle = rec_get_int(r);
	a->n_waiting = rec_get_int(r);
	a->n_live = rec_get_int(r);
	a->worst_exit = (int)rec_get_int(r);
	a->worst = (enum gpuq_job_state)rec_get_int(r);
	a->n_waiting_ranges = (size_t)rec_get_int(r);
	if (n < 8 || a->n_waiting_ranges != (n - 8) / 3 || !a->indices)
		return -1;
	a->waiting = alloc(a->n_waiting_ranges, sizeof(*a->waiting));
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
static void load_promise(struct model *m, struct job *j, struct rec *r)
{
	struct job_key *victims;
	struct promise *p;
	const char *flavor;
	int64_t at_us;
	uint32_t n;

	if (rec_get_array(r) == 0)
		return;
	at_us = rec_get_int(r);
	flavor = get_interned(m, r);
	n = rec_get_array(r) / 2;
	victims = alloc(n, sizeof(*victims));
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
		pp->node = get_interned(m, r);
		pp->gpus_milli = rec_get_int(r);
		pp->n_devices = rec_get_array(r);
		pp->devices = alloc(pp->n_devices, sizeof(*pp->devices));
		for (uint32_t k = 0; k < pp->n_devices; k++)
			pp->devices[k] = (uint16_t)rec_get_int(r);
		if (j->request && pp->group >= j->request->spec.n_groups)
			r->bad = true;
	}
	j->promise = p;
}

static char *get_line(struct rec *r)
{
	char *text = get_dup(r);

	if (text && *text)
		return text;
	free(text);
	return NULL;
}

/* The numbers behind evictions and the promise. */
static void load_whys(struct model *m, struct job *j, struct rec *r)
{
	const uint32_t n = rec_get_array(r);
	const char *rule;
	char *why;

	for (uint32_t i = 0; i < n; i++) {
		why = get_line(r);
		if (i < j->n_evictions)
			j->evictions[i].why = why;
		else
			free(why);
	}
	rule = get_interned(m, r);
	why = get_line(r);
	if (!j->promise) {
		free(why);
		return;
	}
	j->promise->rule = rule;
	j->promise->why = why;
}

static void load_notify(struct model *m, struct job *j, struct rec *r)
{
	if (rec_get_array(r) == 4) {
		j->notify = alloc(1, sizeof(*j->notify));
		j->notify->mail_on = (unsigned)rec_get_int(r);
		j->notify->mail = get_interned(m, r);
		j->notify->web_on = (unsigned)rec_get_int(r);
		j->notify->web = get_interned(m, r);
	}
	j->told = (unsigned)rec_get_int(r);
}

static int load_job(struct model *m, struct job_key key, struct rec *r, struct gpuq_err *err)
{
	struct job *j = job_new(m, key);
	const char *queue;
	uint32_t n, rid, n_fields;
	int64_t flags;
	size_t len;
	const char *s;

	n_fields = rec_get_array(r);
	j->name = get_dup(r);
	j->user = get_interned(m, r);
	queue = get_interned(m, r);
	rid = (uint32_t)rec_get_int(r);
	j->state = (enum gpuq_job_state)rec_get_int(r);
	j->uid = (uint32_t)rec_get_int(r);
	j->gid = (uint32_t)rec_get_int(r);
	j->account = get_interned(m, r);
	j->qos = get_interned(m, r);
	j->flavor = get_interned(m, r);
	j->submit_us = rec_get_int(r);
	j->eligible_us = rec_get_int(r);
	j->begin_us = rec_get_int(r);
	j->deadline_us = rec_get_int(r);
	j->time_limit_us = rec_get_int(r);
	j->start_us = rec_get_int(r);
	j->end_us = rec_get_int(r);
	j->placed_us = rec_get_int(r);
	j->nice = rec_get_int(r);
	j->gpu_us = rec_get_int(r);
	j->not_before_us = rec_get_int(r);
	j->attempt = (uint32_t)rec_get_int(r);
	j->n_retries = (uint32_t)rec_get_int(r);
	flags = rec_get_int(r);
	j->held_user = flags & 1;
	j->held_admin = flags & 2;
	j->held_retries = flags & 4;
	j->requeue = flags & 8;
	j->started_once = flags & 16;
	j->cancel_asked = flags & 32;
	j->depends_any = flags & 64;
	j->kill_on_invalid_dep = flags & 128;
	j->saves = flags & 256;
	j->warned = flags & 512;
	j->n_log = (uint32_t)((uint64_t)flags >> 32);
	j->outcome = (enum gpuq_job_state)rec_get_int(r);
	j->outcome_exit = (int)rec_get_int(r);
	j->leave_cause = (enum gpuq_cause)rec_get_int(r);
	j->leave_us = rec_get_int(r);
	j->leave_grace_us = rec_get_int(r);
	j->lease_us = rec_get_int(r);
	j->exit_code = (int)rec_get_int(r);
	j->message = get_dup(r);
	j->token = get_dup(r);
	j->retry.limit = rec_get_int(r);
	j->retry.on = (unsigned)rec_get_int(r);
	s = rec_get_str(r, &len);
	if (s && len) {
		j->retry.exits = alloc(len, 1);
		memcpy(j->retry.exits, s, len);
		j->retry.n_exits = len;
	}
	if (load_array(j, r) < 0)
		r->bad = true;
	n = rec_get_array(r);
	j->n_deps = n / 6;
	j->deps = n ? alloc(j->n_deps, sizeof(*j->deps)) : NULL;
	for (uint32_t i = 0; i < j->n_deps; i++) {
		j->deps[i].type = (int)rec_get_int(r);
		j->deps[i].on.id = (uint32_t)rec_get_int(r);
		j->deps[i].on.index = (int32_t)rec_get_int(r);
		j->deps[i].delay_us = rec_get_int(r);
		j->deps[i].state = (int)rec_get_int(r);
		j->deps[i].at_us = rec_get_int(r);
	}
	n = rec_get_array(r);
	j->n_evictions = n / 4;
	j->evictions = n ? alloc(j->n_evictions, sizeof(*j->evictions)) : NULL;
	for (uint32_t i = 0; i < j->n_evictions; i++) {
		j->evictions[i].at_us = rec_get_int(r);
		j->evictions[i].cause = (enum gpuq_cause)rec_get_int(r);
		j->evictions[i].rule = get_interned(m, r);
		j->evictions[i].by = get_interned(m, r);
		j->evictions[i].by_queue = "";
		if (j->evictions[i].at_us > m->evicted_us)
			m->evicted_us = j->evictions[i].at_us;
	}
	j->ended = rec_get_int(r) != 0;

	j->queue = queue_find(m, queue);
	HASH_FIND(hh_id, m->requests_by_id, &rid, sizeof(rid), j->request);
	if (j->request)
		j->request->n_jobs++;
	if (n_fields > 40) {
		j->checkpoint_every_us = rec_get_int(r);
		j->shrunk_us = rec_get_int(r);
		j->short_us = rec_get_int(r);
		j->n_indexes = (uint32_t)rec_get_int(r);
		n = rec_get_array(r);
		for (uint32_t i = 0; i < n; i++) {
			s = get_interned(m, r);
			if (i < j->n_evictions)
				j->evictions[i].by_queue = s;
		}
		load_promise(m, j, r);
		j->yield_us = rec_get_int(r);
		j->grace_us = rec_get_int(r);
	}
	if (n_fields > 48)
		j->warn_lead_us = rec_get_int(r);
	if (n_fields > 49)
		load_whys(m, j, r);
	if (n_fields > 52 && rec_get_array(r)) {
		j->apart = alloc(1, sizeof(*j->apart));
		j->apart->flavor = get_interned(m, r);
		j->apart->milli = rec_get_int(r);
		j->apart->since_us = rec_get_int(r);
		m->n_apart++;
	}
	if (n_fields > 53) {
		j->time_asked_us = rec_get_int(r);
		j->time_min_us = rec_get_int(r);
		j->fixed_priority = rec_get_int(r);
	}
	if (n_fields > 56)
		load_notify(m, j, r);
	if (n_fields > 58)
		j->labels = get_line(r);
	for (n = n_fields > 59 ? rec_get_array(r) / 2 : 0; n > 0 && !r->bad; n--) {
		s = get_interned(m, r);
		job_avoid(m, j, s, rec_get_int(r));
	}
	if (r->bad || !j->name || !j->queue || !j->request || j->state >= N_GPUQ_JOB_STATES ||
	    j->outcome >= N_GPUQ_JOB_STATES) {
		const char *why = r->bad        ? "is not whole"
				  : !j->queue   ? "names a queue that is not there"
				  : !j->request ? "names a request that is not there"
						: "has a state that is none";
		gpuq_fail(err, GPUQ_ECORRUPT, "job %u %s", key.id, why);
		if (!j->queue)
			j->queue = m->queues[0];
		if (j->state >= N_GPUQ_JOB_STATES)
			j->state =
				GPUQ_JOB_PENDING; /* a list that there is, to be taken out of it */
		promise_count(m, j);
		j->ended = true;
		job_insert(m, j);
		job_free(m, j);
		return GPUQ_ECORRUPT;
	}
	job_insert(m, j);
	promise_count(m, j);
	if (!j->ended) {
		if (job_is_live(j))
			j->queue->n_running++;
		else
			j->queue->n_pending += j->array ? (uint32_t)j->array->n_waiting : 1;
	}
	return 0;
}

void record_pod(struct model *m, const struct pod *p, struct batch *out)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	rec_array(&b, 16);
	rec_str(&b, p->node->name);
	rec_int(&b, p->group);
	rec_int(&b, p->group_index);
	rec_int(&b, p->state);
	rec_int(&b, p->fault);
	rec_int(&b, p->exit_code);
	rec_int(&b, p->placed_us);
	rec_int(&b, p->start_us);
	rec_int(&b, p->end_us);
	rec_int(&b, p->cpu_milli);
	rec_int(&b, p->memory_bytes);
	rec_int(&b, p->gpus_milli);
	rec_str(&b, p->uid);
	rec_str(&b, p->message);
	rec_array(&b, p->n_devices);
	for (uint32_t i = 0; i < p->n_devices; i++)
		rec_int(&b, p->devices[i]);
	rec_bool(&b, p->dropped);
	record_put(out, TABLE_POD, key,
		   key_pod(key, p->job->key.id, p->job->key.index, p->attempt, p->index), &b);
}

static int load_pod(struct model *m, const unsigned char *key, struct rec *r, struct gpuq_err *err)
{
	static const struct node_fact bare = { .note = "not seen since the daemon started" };
	struct job_key jk;
	int64_t index;
	uint32_t id, n, n_fields;
	struct job *j;
	struct pod *p;
	struct pod t = { .node = NULL };
	struct node *node;
	const char *name;

	key_job_read(key, 8, &id, &index);
	jk = (struct job_key){ id, (int32_t)index };
	j = job_find(m, jk);
	if (!j)
		return gpuq_fail(err, GPUQ_ECORRUPT, "a pod of job %u, which is not there", id);
	n_fields = rec_get_array(r);
	name = get_interned(m, r);
	t.group = (uint32_t)rec_get_int(r);
	t.group_index = (uint32_t)rec_get_int(r);
	t.state = (enum gpuq_pod_state)rec_get_int(r);
	t.fault = (enum pod_fault)rec_get_int(r);
	t.exit_code = (int)rec_get_int(r);
	t.placed_us = rec_get_int(r);
	t.start_us = rec_get_int(r);
	t.end_us = rec_get_int(r);
	t.cpu_milli = rec_get_int(r);
	t.memory_bytes = rec_get_int(r);
	t.gpus_milli = rec_get_int(r);
	get_text(r, t.uid, sizeof(t.uid));
	t.message = get_dup(r);
	n = rec_get_array(r);
	if (r->bad || t.group >= j->request->spec.n_groups || t.state >= N_GPUQ_POD_STATES) {
		free(t.message);
		return gpuq_fail(err, GPUQ_ECORRUPT, "a pod of job %u is not whole", id);
	}
	node = node_find(m, name);
	if (!node) {
		struct node_fact f = bare;

		f.name = name;
		node = node_get(m, name);
		node_set_fact(m, node, &f);
		node->gone = true;
	}
	p = pod_add(m, j, node, n);
	p->attempt =
		(uint32_t)key[8] << 24 | (uint32_t)key[9] << 16 | (uint32_t)key[10] << 8 | key[11];
	p->index = (uint32_t)key[12] << 24 | (uint32_t)key[13] << 16 | (uint32_t)key[14] << 8 |
		   key[15];
	p->group = t.group;
	p->group_index = t.group_index;
	p->state = t.state;
	p->fault = t.fault;
	p->exit_code = t.exit_code;
	p->placed_us = t.placed_us;
	p->start_us = t.start_us;
	p->end_us = t.end_us;
	p->cpu_milli = t.cpu_milli;
	p->memory_bytes = t.memory_bytes;
	p->gpus_milli = t.gpus_milli;
	memcpy(p->uid, t.uid, sizeof(p->uid));
	p->message = t.message;
	p->dirty = false;
	for (uint32_t i = 0; i < n; i++)
		p->devices[i] = (uint16_t)rec_get_int(r);
	p->dropped = n_fields > 15 && rec_get_bool(r);
	if (p->attempt == j->attempt && p->index >= j->n_indexes)
		j->n_indexes = p->index + 1; /* of a record that did not tell */
	if (pod_takes(p))
		j->queue->allocated_milli += p->gpus_milli;
	return 0;
}

void record_node(struct model *m, const struct node *n, struct batch *out)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	rec_array(&b, 13);
	rec_int(&b, n->fact.cpu_milli);
	rec_int(&b, n->fact.memory_bytes);
	rec_int(&b, n->fact.max_pods);
	rec_bool(&b, n->fact.ready);
	rec_bool(&b, n->fact.unschedulable);
	rec_str(&b, n->fact.note);
	rec_bool(&b, n->gone);
	rec_bool(&b, n->drain);
	rec_str(&b, n->drain_why);
	rec_int(&b, n->seen_us);
	rec_array(&b, (uint32_t)n->fact.labels.n * 2);
	for (size_t i = 0; i < n->fact.labels.n; i++) {
		rec_str(&b, n->fact.labels.keys[i]);
		rec_str(&b, n->fact.labels.vals[i]);
	}
	rec_array(&b, (uint32_t)n->fact.n_taints * 3);
	for (size_t i = 0; i < n->fact.n_taints; i++) {
		rec_str(&b, n->fact.taints[i].key);
		rec_str(&b, n->fact.taints[i].value);
		rec_str(&b, n->fact.taints[i].effect);
	}
	rec_array(&b, n->n_devices * 4);
	for (uint32_t i = 0; i < n->n_devices; i++) {
		rec_str(&b, n->devices[i].uuid);
		rec_str(&b, n->devices[i].product);
		rec_int(&b, n->devices[i].memory_mib);
		rec_bool(&b, n->devices[i].healthy);
	}
	record_put(out, TABLE_NODE, key, key_strs(key, n->name, NULL), &b);
}

static int load_node(struct model *m, const char *name, struct rec *r, struct gpuq_err *err)
{
	struct node_fact f = { .name = name };
	struct taint_fact *taints;
	struct device_fact *devices;
	bool gone, drain;
	const char *why;
	int64_t seen;
	struct node *n;
	uint32_t k;

	rec_get_array(r);
	f.cpu_milli = rec_get_int(r);
	f.memory_bytes = rec_get_int(r);
	f.max_pods = rec_get_int(r);
	f.ready = rec_get_bool(r);
	f.unschedulable = rec_get_bool(r);
	f.note = get_interned(m, r);
	gone = rec_get_bool(r);
	drain = rec_get_bool(r);
	why = get_interned(m, r);
	seen = rec_get_int(r);
	k = rec_get_array(r) / 2;
	f.labels.n = k;
	f.labels.keys = alloc(k, sizeof(char *));
	f.labels.vals = alloc(k, sizeof(char *));
	for (uint32_t i = 0; i < k; i++) {
		f.labels.keys[i] = get_interned(m, r);
		f.labels.vals[i] = get_interned(m, r);
	}
	k = rec_get_array(r) / 3;
	taints = alloc(k, sizeof(*taints));
	for (uint32_t i = 0; i < k; i++) {
		taints[i].key = get_interned(m, r);
		taints[i].value = get_interned(m, r);
		taints[i].effect = get_interned(m, r);
	}
	f.taints = taints;
	f.n_taints = k;
	k = rec_get_array(r) / 4;
	devices = alloc(k, sizeof(*devices));
	for (uint32_t i = 0; i < k; i++) {
		devices[i].uuid = get_interned(m, r);
		devices[i].product = get_interned(m, r);
		devices[i].memory_mib = rec_get_int(r);
		devices[i].healthy = rec_get_bool(r);
	}
	f.devices = devices;
	f.n_devices = k;
	if (!r->bad) {
		n = node_get(m, name);
		node_set_fact(m, n, &f);
		n->gone = gone;
		n->drain = drain;
		n->drain_why = why;
		n->seen_us = seen;
	}
	free(f.labels.keys);
	free(f.labels.vals);
	free(taints);
	free(devices);
	return r->bad ? gpuq_fail(err, GPUQ_ECORRUPT, "node %s is not whole", name) : 0;
}

void record_request(struct model *m, const struct request *r, struct batch *out)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	(void)m;
	batch_put(out, TABLE_REQUEST, key, key_u32(key, r->id), r->bytes, r->len);
}

static int load_request(struct model *m, uint32_t id, const void *bytes, size_t n,
			struct gpuq_err *err)
{
	struct request *r;
	int rc = request_decode(bytes, n, &r, err);

	if (rc != 0) {
		gpuq_err_prefix(err, "request %u", id);
		return GPUQ_ECORRUPT;
	}
	r->id = id;
	HASH_ADD_KEYPTR(hh_bytes, m->requests_by_bytes, r->bytes, r->len, r);
	HASH_ADD(hh_id, m->requests_by_id, id, sizeof(r->id), r);
	return 0;
}

void record_key(struct model *m, const struct idem_key *k, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	(void)m;
	rec_array(&b, 4);
	rec_int(&b, (int64_t)k->hash);
	rec_int(&b, k->first_id);
	rec_int(&b, k->n_jobs);
	rec_int(&b, k->at_us);
	record_put(out, TABLE_KEY, k->bytes, k->len, &b);
}

static int load_key(struct model *m, const unsigned char *key, size_t n, struct rec *r,
		    struct gpuq_err *err)
{
	struct idem_key *k = alloc(1, sizeof(*k) + n);

	rec_get_array(r);
	k->hash = (uint64_t)rec_get_int(r);
	k->first_id = (uint32_t)rec_get_int(r);
	k->n_jobs = (uint32_t)rec_get_int(r);
	k->at_us = rec_get_int(r);
	k->len = (uint16_t)n;
	memcpy(k->bytes, key, n);
	if (r->bad) {
		free(k);
		return gpuq_fail(err, GPUQ_ECORRUPT, "a key is not whole");
	}
	HASH_ADD_KEYPTR(hh, m->keys, k->bytes, n, k);
	return 0;
}

void record_meta(struct model *m, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	rec_array(&b, 7);
	rec_str(&b, m->cluster_id);
	rec_int(&b, m->next_job_id);
	rec_int(&b, m->next_request_id);
	rec_int(&b, m->site_generation);
	rec_str(&b, m->cluster_uid);
	rec_int(&b, (int64_t)m->next_notice);
	rec_int(&b, m->charges_from);
	record_put(out, TABLE_META, (const unsigned char *)"model", 5, &b);
}

void record_site(struct model *m, struct batch *out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	gpuq_mp_write(&b, m->site->tree);
	record_put(out, TABLE_SITE, (const unsigned char *)"site", 4, &b);
}

void record_beside(const struct job *j, struct batch *out)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const struct queue *q = j->queue;

	while (q && !q->site->namespace_)
		q = q->parent;
	rec_array(&b, 1);
	rec_str(&b, q ? q->site->namespace_ : "");
	record_put(out, TABLE_BESIDE, key, key_job(key, j->key.id, j->key.index), &b);
}

bool model_beside_read(const unsigned char *val, size_t n, char namespace_[64])
{
	struct rec r = { val, val + n, false };

	rec_get_array(&r);
	get_text(&r, namespace_, 64);
	return !r.bad;
}

const enum table model_load_order[] = { TABLE_META,    TABLE_SITE,  TABLE_NODE,
					TABLE_REQUEST, TABLE_JOB,   TABLE_POD,
					TABLE_KEY,     TABLE_USAGE, TABLE_ACCOUNT };
const size_t model_load_order_n = sizeof(model_load_order) / sizeof(model_load_order[0]);

static int load_meta(struct model *m, struct rec *r, struct gpuq_err *err)
{
	const uint32_t n = rec_get_array(r);

	get_text(r, m->cluster_id, sizeof(m->cluster_id));
	m->next_job_id = (uint32_t)rec_get_int(r);
	m->next_request_id = (uint32_t)rec_get_int(r);
	if (n > 3)
		m->site_generation = (uint32_t)rec_get_int(r);
	if (n > 4)
		get_text(r, m->cluster_uid, sizeof(m->cluster_uid));
	if (n > 5)
		m->next_notice = (uint64_t)rec_get_int(r);
	if (n > 6)
		m->charges_from = rec_get_int(r);
	m->meta_dirty = false;
	return r->bad || m->next_job_id == 0
		       ? gpuq_fail(err, GPUQ_ECORRUPT, "the counters are not whole")
		       : 0;
}

int model_load(struct model *m, enum table t, const unsigned char *key, size_t key_len,
	       const unsigned char *val, size_t val_len, struct gpuq_err *err)
{
	struct rec r = { val, val + val_len, false };
	struct job_key jk;
	char name[CHANGE_KEY_BYTES_MAX + 1];
	int64_t index;
	uint32_t id;
	int rc;

	switch (t) {
	case TABLE_META:
		return key_len == 5 && memcmp(key, "model", 5) == 0 ? load_meta(m, &r, err) : 0;
	case TABLE_SITE: {
		struct event ev = { .type = EV_SITE_APPLIED };

		ev.site.bytes = val;
		ev.site.len = val_len;
		id = m->site_generation; /* it was counted when it was applied */
		rc = model_apply(m, &ev, err);
		m->site_generation = id;
		m->site_dirty = m->meta_dirty = false;
		return rc;
	}
	case TABLE_NODE:
		snprintf(name, sizeof(name), "%.*s", (int)key_len, (const char *)key);
		return load_node(m, name, &r, err);
	case TABLE_REQUEST:
		if (key_len != 4)
			break;
		id = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 |
		     key[3];
		return load_request(m, id, val, val_len, err);
	case TABLE_JOB:
		if (!key_job_read(key, key_len, &id, &index))
			break;
		jk = (struct job_key){ id, (int32_t)index };
		return load_job(m, jk, &r, err);
	case TABLE_POD:
		if (key_len != 16)
			break;
		return load_pod(m, key, &r, err);
	case TABLE_KEY:
		return load_key(m, key, key_len, &r, err);
	case TABLE_USAGE:
		return load_usage(usage_get(m, key, key_len), &r, err);
	case TABLE_ACCOUNT:
		return load_account(m, key, key_len, &r, err);
	default:
		return 0;
	}
	return gpuq_fail(err, GPUQ_ECORRUPT, "a key of table %s is not of its form",
			 table_names[t]);
}
