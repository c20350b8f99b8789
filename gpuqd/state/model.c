#include "gpuqd/snapshot/policy_sched.h"
#include "gpuqd/state/record/record.h"
#include "gpuqd/state/record/record_job.h"
#include "gpuqd/state/record/record_usage.h"
#include "gpuqd/state/view/joblog.h"
#include "gpuqd/state/model_int.h"
#include "gpuqd/state/record/history_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct str {
	UT_hash_handle hh;
	size_t len;
	char s[];
};

const char *const event_words[N_EVENTS] = {
#define X(sym, word, stored) word,
	EVENTS(X)
#undef X
};

bool model_event_is_stored(enum event_type t)
{
	static const bool stored[N_EVENTS] = {
#define X(sym, word, is) [EV_##sym] = is,
		EVENTS(X)
#undef X
	};

	return stored[t];
}

struct model *model_new(const char *cluster_id)
{
	struct model *m = calloc(1, sizeof(*m));
	struct site *s = site_default();

	if (!m || !s) {
		site_free(s);
		free(m);
		return NULL;
	}
	queue_set_site(m, s);
	snprintf(m->cluster_id, sizeof(m->cluster_id), "%s", cluster_id);
	m->next_job_id = 1;
	m->next_request_id = 1;
	m->policy = policy_default();
	m->meta_dirty = true;
	m->site_dirty = false;
	change_batch_init(&m->direct);
	return m;
}

void model_free(struct model *m)
{
	struct node *n, *nt;
	struct request *r, *rt;
	struct foreign *f, *ft;
	struct usage *u, *ut;
	struct str *s, *st;

	if (!m)
		return;
	m->now_us = 0; /* what ends now was not over */
	job_each(m, j)
		job_free(m, j);
	table_done(&m->jobs_by_key);
	table_done(&m->awaited);
	free(m->dirty_jobs);
	blob_done(&m->shared);
	free(m->pattern);
	HASH_ITER(hh, m->nodes, n, nt)
		node_free(m, n);
	HASH_ITER(hh_bytes, m->requests_by_bytes, r, rt) {
		HASH_DELETE(hh_bytes, m->requests_by_bytes, r);
		HASH_DELETE(hh_id, m->requests_by_id, r);
		request_free(r);
	}
	HASH_ITER(hh, m->foreigns, f, ft) {
		HASH_DEL(m->foreigns, f);
		free(f);
	}
	keys_done(&m->keys);
	HASH_ITER(hh, m->usages, u, ut) {
		HASH_DEL(m->usages, u);
		free(u);
	}
	account_free_all(m);
	for (uint32_t i = 0; i < m->n_queues; i++)
		free(m->queues[i]);
	free(m->queues);
	site_free(m->site);
	HASH_ITER(hh, m->strs, s, st) {
		HASH_DEL(m->strs, s);
		free(s);
	}
	change_batch_done(&m->direct);
	free(m);
}

const char *model_intern(struct model *m, const char *s)
{
	struct str *p = NULL;
	size_t len;

	if (!s || !*s)
		return "";
	len = strlen(s);
	HASH_FIND(hh, m->strs, s, len, p);
	if (p)
		return p->s;
	p = malloc(sizeof(*p) + len + 1);
	if (!p)
		abort(); /* the ledger is on disk: a restart is the recovery */
	p->len = len;
	memcpy(p->s, s, len + 1);
	HASH_ADD_KEYPTR(hh, m->strs, p->s, len, p);
	return p->s;
}

const char *model_interned(const struct model *m, const char *s)
{
	struct str *p = NULL;

	if (!s || !*s)
		return "";
	HASH_FIND(hh, m->strs, s, strlen(s), p);
	return p ? p->s : NULL;
}

int model_apply(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct joblog_entry log;
	int rc;

	m->now_us = ev->at_us;
	joblog_begin(m, ev, &log);
	switch (ev->type) {
	case EV_JOB_SUBMITTED:
	case EV_JOB_UPDATED:
	case EV_JOB_NICED:
	case EV_JOB_WARNED:
	case EV_JOB_HELD:
	case EV_JOB_RELEASED:
	case EV_JOB_CANCEL_ASKED:
	case EV_JOB_NOMINATED:
	case EV_JOB_PLACED:
	case EV_JOB_EVICT_ASKED:
	case EV_JOB_SHRINK_ASKED:
	case EV_JOB_GROWN:
	case EV_JOB_RENOUNCED:
	case EV_JOB_REQUEUED:
	case EV_JOB_ENDED:
	case EV_JOB_REASONS:
	case EV_JOB_FRAGMENTED:
	case EV_JOB_BLOCKED:
	case EV_KEYS_EXPIRED:
	case EV_USE_MEASURED:
	case EV_DEP_ENDED:
	case EV_BESIDE_GONE:
		rc = job_apply(m, ev, err);
		break;
	case EV_CLUSTER_KNOWN:
		snprintf(m->cluster_uid, sizeof(m->cluster_uid), "%s", ev->name);
		m->meta_dirty = true;
		rc = 0;
		break;
	case EV_CLOCK_SET:
		clock_apply_clock(m, ev);
		rc = 0;
		break;
	case EV_HISTORY_EXPIRED:
		for (size_t i = 0; i < ev->expired.n; i++)
			history_forget(&m->direct, ev->expired.jobs[i]);
		rc = 0;
		break;
	case EV_POD_CREATED:
	case EV_POD_STARTED:
	case EV_POD_ENDED:
	case EV_POD_GONE:
	case EV_POD_LEAVING:
	case EV_POD_DEVICES:
	case EV_POD_SIGNALLED:
		rc = pod_apply(m, ev, err);
		break;
	case EV_NODE_SEEN:
	case EV_NODE_GONE:
	case EV_NODE_DRAIN:
	case EV_NODE_BACKOFF:
	case EV_NODE_FROZEN:
	case EV_FOREIGN_SEEN:
	case EV_FOREIGN_GONE:
		rc = node_apply(m, ev, err);
		break;
	case EV_SITE_APPLIED:
	case EV_QUEUE_SHARE:
	case EV_QUEUE_GRANTED:
		rc = queue_apply_site(m, ev, err);
		break;
	case EV_CHARGES_EXPIRED:
		rc = accounting_apply_expired(m, ev);
		break;
	case EV_JOB_TIME_PASSED:
	case EV_NOTICES_DONE:
		rc = notify_apply(m, ev, err);
		break;
	case EV_RECOVERY_BEGUN:
	case EV_RECOVERY_LISTED:
	case EV_RECOVERY_ENDED:
	case EV_JOB_RECOVERED:
	case EV_JOB_UNKNOWN:
		rc = recover_apply(m, ev, err);
		break;
	case EV_AUDITED:
	case EV_AUDIT_DROPPED:
		rc = audit_apply(m, ev, err);
		break;
	default:
		rc = gpuq_fail(err, GPUQ_EINTERNAL, "unknown event %d", (int)ev->type);
	}
	joblog_end(m, &log, rc == 0);
	if (rc == 0)
		m->n_events++;
	return rc;
}

/* ---- looking ---- */

struct job *model_find_job(const struct model *m, struct job_key key)
{
	struct job *j;

	table_each(&m->jobs_by_key, job_key_hash(key), j)
		if (j->key.id == key.id && j->key.index == key.index)
			return j;
	return NULL;
}

struct node *model_find_node(const struct model *m, const char *name)
{
	struct node *n = NULL;

	HASH_FIND_STR(m->nodes, name, n);
	return n;
}

struct queue *model_find_queue(const struct model *m, const char *name)
{
	for (uint32_t i = 0; i < m->n_queues; i++)
		if (strcmp(m->queues[i]->name, name) == 0)
			return m->queues[i];
	return NULL;
}

struct pod *model_find_pod(const struct model *m, struct pod_key key)
{
	struct job *j = model_find_job(m, key.job);
	struct pod *p;

	if (!j)
		return NULL;
	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == key.attempt && p->index == key.index)
			return p;
	return NULL;
}

struct idem_key *model_find_key(const struct model *m, const char *user, const char *key)
{
	unsigned char bytes[CHANGE_KEY_BYTES_MAX];

	return keys_find(&m->keys, bytes, change_key_strs(bytes, user, key, NULL));
}

void model_pod_key_name(const char *cluster_id, struct pod_key key, char *out)
{
	if (key.job.index >= 0)
		snprintf(out, 64, "gpuq-%s-%" PRIu32 "-%" PRId32 "-%" PRIu32 "-%" PRIu32,
			 cluster_id, key.job.id, key.job.index, key.attempt, key.index);
	else
		snprintf(out, 64, "gpuq-%s-%" PRIu32 "-%" PRIu32 "-%" PRIu32, cluster_id,
			 key.job.id, key.attempt, key.index);
}

void model_pod_name(const struct model *m, const struct pod *p, char *out)
{
	model_pod_key_name(m->cluster_id, (struct pod_key){ p->job->key, p->attempt, p->index },
			   out);
}

bool model_pod_name_parse(const struct model *m, const char *name, struct pod_key *key)
{
	uint32_t part[4];
	int n = 0;
	char *end;

	if (strncmp(name, "gpuq-", 5) != 0 || strncmp(name + 5, m->cluster_id, 8) != 0 ||
	    name[13] != '-')
		return false;
	for (name += 14; n < 4; name = end + 1) {
		unsigned long x;

		if (*name < '0' || *name > '9')
			return false;
		x = strtoul(name, &end, 10);
		if (x > UINT32_MAX)
			return false;
		part[n++] = (uint32_t)x;
		if (*end == '\0')
			break;
		if (*end != '-')
			return false;
	}
	if (*end != '\0' || n < 3 || (n == 4 && part[1] > INT32_MAX))
		return false;
	key->job.id = part[0];
	key->job.index = n == 4 ? (int32_t)part[1] : -1;
	key->attempt = part[n - 2];
	key->index = part[n - 1];
	return true;
}

bool model_job_is_live(const struct job *j)
{
	return j->state == GPUQ_JOB_STARTING || j->state == GPUQ_JOB_RUNNING ||
	       j->state == GPUQ_JOB_COMPLETING;
}

bool model_job_is_over(const struct job *j)
{
	return j->life->leave_us || j->life->outcome != GPUQ_JOB_PENDING;
}

bool model_element_waits(const struct array *a, int64_t index)
{
	return job_ranges_has(a->waiting, a->n_waiting_ranges, index);
}

bool model_pod_takes(const struct pod *p)
{
	return p->state < GPUQ_POD_ENDED;
}

uint32_t model_job_pods(const struct job *j)
{
	return j->request->n_pods;
}

int64_t model_job_gpus_milli(const struct job *j)
{
	return j->request->gpus_milli;
}

bool model_job_attempt_over(const struct job *j)
{
	struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && model_pod_takes(p))
			return false;
	return true;
}

/* ---- changes ---- */

void model_job_dirty(struct model *m, struct job *j)
{
	equivalent_forget(m, j);
	if (j->dirty)
		return;
	if (m->n_dirty_jobs == m->room_dirty_jobs) {
		m->room_dirty_jobs = m->room_dirty_jobs ? 2 * m->room_dirty_jobs : 64;
		m->dirty_jobs =
			must(realloc(m->dirty_jobs, m->room_dirty_jobs * sizeof(*m->dirty_jobs)));
	}
	j->dirty = true;
	j->dirty_at = m->n_dirty_jobs;
	m->dirty_jobs[m->n_dirty_jobs++] = j;
}

bool model_is_dirty(const struct model *m)
{
	return m->n_dirty_jobs || m->direct.n || m->meta_dirty || m->site_dirty || m->nodes_dirty ||
	       m->usages_dirty || m->dirty_accounts || m->recovery_dirty;
}

void model_collect(struct model *m, struct batch *out)
{
	struct pod *p;
	struct usage *u;

	/* Objects that left memory first: a name may have come back since. */
	for (size_t i = 0; i < m->direct.n; i++) {
		const struct change *c = &m->direct.items[i];

		change_batch_put(out, c->table, c->key, c->key_len, c->val, c->val_len);
	}
	out->failed |= m->direct.failed;
	if (m->direct.n)
		change_batch_done(&m->direct);
	for (uint32_t i = 0; i < m->n_dirty_jobs; i++) {
		struct job *j = m->dirty_jobs[i];

		if (!j)
			continue;
		if (j->request->dirty) {
			record_request(m, j->request, out);
			j->request->dirty = false;
		}
		record_job(m, j, out);
		DL_FOREACH2(j->pods, p, job_next)
			if (p->dirty) {
				record_pod(m, p, out);
				p->dirty = false;
			}
		j->dirty = false;
	}
	m->n_dirty_jobs = 0;
	for (struct node *n = m->nodes_dirty ? m->nodes : NULL; n; n = n->hh.next)
		if (n->dirty) {
			record_node(m, n, out);
			n->dirty = false;
		}
	for (u = m->usages_dirty ? m->usages : NULL; u; u = u->hh.next)
		if (u->dirty) {
			record_usage(m, u, out);
			u->dirty = false;
		}
	account_collect_all(m, out);
	if (m->site_dirty)
		record_site(m, out);
	if (m->meta_dirty)
		record_meta(m, out);
	if (m->recovery_dirty)
		recover_record(m, out);
	m->recovery_dirty = false;
	m->site_dirty = m->meta_dirty = m->nodes_dirty = m->usages_dirty = false;
}

/* ---- requests ---- */

static struct request *add_request(struct model *m, struct request *r)
{
	r->id = m->next_request_id++;
	r->n_jobs = 1;
	r->dirty = true;
	m->meta_dirty = true;
	HASH_ADD_KEYPTR(hh_bytes, m->requests_by_bytes, r->bytes, r->len, r);
	HASH_ADD(hh_id, m->requests_by_id, id, sizeof(r->id), r);
	return r;
}

struct request *model_request_intern(struct model *m, const void *bytes, size_t n,
				     struct gpuq_err *err)
{
	struct request *r = NULL;

	HASH_FIND(hh_bytes, m->requests_by_bytes, bytes, n, r);
	if (r) {
		r->n_jobs++;
		return r;
	}
	if (request_decode(bytes, n, &r, err) != 0)
		return NULL;
	return add_request(m, r);
}

struct request *model_request_borrow(struct model *m, const struct gpuq_spec *spec,
				     const void *bytes, size_t n)
{
	struct request *r = NULL;

	HASH_FIND(hh_bytes, m->requests_by_bytes, bytes, n, r);
	if (!r)
		return add_request(m, must(request_borrow(spec, bytes, n)));
	r->n_jobs++;
	return r;
}

void model_request_put(struct model *m, struct request *r)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	if (!r || --r->n_jobs > 0)
		return;
	change_batch_put(&m->direct, TABLE_REQUEST, key, change_key_u32(key, r->id), NULL, 0);
	HASH_DELETE(hh_bytes, m->requests_by_bytes, r);
	HASH_DELETE(hh_id, m->requests_by_id, r);
	request_free(r);
}
