#include "gpuqd/flow/recover.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/state/job_keys.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/record/podrecord.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/recover_job.h"
#include "gpuqd/util/keyset.h"
#include "libgpuq/grow.h"
#include "libgpuq/units.h"

#define LOOK_US GPUQ_US_PER_S /* kept pods are tried again, and the end is checked */

struct recover {
	struct journal *j;
	recover_again_fn again;
	void *arg;
	struct stray *strays;
	struct loop_timer *look;
};

static void on_look(void *arg);

static void look_later(struct recover *r)
{
	if (!r->look)
		r->look = loop_after(journal_loop(r->j), LOOK_US, on_look, r);
}

/* ---- the pods that are kept ---- */

static const char *copy(struct gpuq_arena *a, const char *s)
{
	const char *out = gpuq_arena_strdup(a, s ? s : "");

	if (!out)
		abort(); /* forgotten, its devices would count as free */
	return out;
}

static void stray_fill(struct stray *s, const struct pod_fact *f)
{
	struct gpuq_arena *a = &s->mem;
	int *devices = NULL;

	gpuq_arena_reset(a);
	s->fact = *f;
	s->fact.name = copy(a, f->name);
	s->fact.namespace_ = copy(a, f->namespace_);
	s->fact.uid = copy(a, f->uid);
	s->fact.token = copy(a, f->token);
	s->fact.record = copy(a, f->record);
	s->fact.node = copy(a, f->node);
	s->fact.reason = copy(a, f->reason);
	s->fact.message = copy(a, f->message);
	s->fact.mig = NULL; /* as others report it; the record has the instances it was given */
	s->fact.n_mig = 0;
	s->fact.resources = NULL;
	s->fact.n_resources = 0;
	if (f->n_devices) {
		devices = gpuq_arena_alloc(a, f->n_devices * sizeof(*devices));
		if (!devices)
			abort();
		memcpy(devices, f->devices, f->n_devices * sizeof(*devices));
	}
	s->fact.devices = devices;
	s->has_record = *s->fact.record && podrecord_read(a, s->fact.record, strlen(s->fact.record),
							  &s->record, &s->record_err) == 0;
	/* The pod may have been charged for more than the cluster sees of it; an edited record does
	 * not make it less. */
	if (s->has_record && s->record.gpus_milli > f->gpus_milli)
		s->fact.gpus_milli = s->record.gpus_milli;
}

static struct stray *stray_get(struct recover *r, const struct pod_fact *f, struct pod_key key)
{
	struct stray *s = NULL;

	HASH_FIND_STR(r->strays, f->name, s);
	if (!s) {
		s = calloc(1, sizeof(*s) + strlen(f->name) + 1);
		if (!s)
			abort();
		memcpy(s->name, f->name, strlen(f->name) + 1);
		s->mem = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
		HASH_ADD_STR(r->strays, name, s);
	}
	s->key = key;
	stray_fill(s, f);
	return s;
}

/* Tell the model that its devices are in use, or not any more. */
static void tell_taken(struct recover *r, struct stray *s, bool gone)
{
	struct event ev = { .type = gone ? EV_FOREIGN_GONE : EV_FOREIGN_SEEN };

	ev.foreign = &s->fact;
	if (gone && !s->counted)
		return;
	s->counted = !gone;
	journal_apply(r->j, &ev, NULL);
}

static void stray_free(struct recover *r, struct stray *s)
{
	tell_taken(r, s, true);
	HASH_DEL(r->strays, s);
	gpuq_arena_done(&s->mem);
	free(s);
}

/* Stop keeping it: it is processed as any other pod. */
static void let_go(struct recover *r, struct stray *s)
{
	tell_taken(r, s, true);
	HASH_DEL(r->strays, s);
	r->again(r->arg, &s->fact);
	gpuq_arena_done(&s->mem);
	free(s);
}

static bool has_ended(const struct pod_fact *f)
{
	return f->phase == POD_SUCCEEDED || f->phase == POD_FAILED;
}

static void keep(struct recover *r, struct stray *s, const char *why)
{
	if (strcmp(s->why, why) != 0) {
		snprintf(s->why, sizeof(s->why), "%s", why);
		log_warn("recover.pod_kept", "pod=%s uid=%s why=%s", LOGS(s->name),
			 LOGS(s->fact.uid), LOGS(why));
	}
	tell_taken(r, s, false);
}

/* ---- pods are adopted ---- */

static int by_pod(const void *a, const void *b)
{
	const struct stray *x = *(struct stray *const *)a, *y = *(struct stray *const *)b;
	const int d = job_key_cmp(x->key.job, y->key.job);

	if (d)
		return d;
	if (x->key.attempt != y->key.attempt) /* the last attempt first */
		return x->key.attempt < y->key.attempt ? 1 : -1;
	return (x->key.index > y->key.index) - (x->key.index < y->key.index);
}

/* Make the n pods of one attempt pods of their job: all of them, or none. */
static void adopt(struct recover *r, struct stray **pods, size_t n)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = recover_job(r->j, pods, n, &err);

	if (rc == 0)
		log_notice("recover.job", "job=%" PRIu32 " attempt=%" PRIu32 " pods=%zu",
			   pods[0]->key.job.id, pods[0]->key.attempt, n);
	for (size_t i = 0; i < n; i++) {
		struct stray *s = pods[i];

		if (rc != 0)
			keep(r, s, err.text);
		else
			let_go(r, s);
	}
}

static void adopt_all(struct recover *r)
{
	const size_t n = HASH_COUNT(r->strays);
	struct stray **all = calloc(n + 1, sizeof(struct stray *)), *s, *next;
	size_t at = 0;

	if (!all)
		abort();
	HASH_ITER(hh, r->strays, s, next)
		all[at++] = s;
	qsort(all, n, sizeof(struct stray *), by_pod);
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && job_key_cmp(all[k]->key.job, all[i]->key.job) == 0 &&
				all[k]->key.attempt == all[i]->key.attempt;)
			k++;
		adopt(r, &all[i], k - i);
	}
	free(all);
}

/* True if it is of an attempt that this ledger began, or of a job that ended in it, since the
 * cluster was listed: nothing was lost then, and it is an orphan as any. */
static bool is_done_with(struct recover *r, struct pod_key key)
{
	const struct model *m = journal_model(r->j);
	const int64_t since_us = m->recovery.listed_us;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct job *j = model_find_job(m, key.job);
	const struct gpuq_val *past;
	bool done;

	if (j)
		return j->started_once && key.attempt <= j->attempt &&
		       j->life->placed_us > since_us;
	past = history_job(journal_store(r->j), key.job, &mem);
	done = past && (!m->recovery.since_us || gpuq_get_int(past, "end_time", 0) > since_us);
	gpuq_arena_done(&mem);
	return done;
}

void recover_gone(struct recover *r, const char *name)
{
	struct stray *s = NULL;

	HASH_FIND_STR(r->strays, name, s);
	if (!s)
		return;
	log_notice("recover.pod_gone", "pod=%s", LOGS(name));
	stray_free(r, s);
}

bool recover_keeps(struct recover *r, const struct pod_fact *f, struct pod_key key,
		   uint32_t generation)
{
	const struct model *m = journal_model(r->j);
	struct stray *s;

	if (!recovery_waits(m) && (key.job.id >= m->recovery.floor || is_done_with(r, key)))
		return false;
	if (!m->recovery.since_us && has_ended(f)) {
		recover_gone(r, f->name);
		return false; /* it holds nothing any more */
	}
	s = stray_get(r, f, key);
	s->seen = generation;
	if (m->recovery.since_us && m->recovery.listed)
		adopt(r, &s, 1);
	else if (!m->recovery.since_us)
		keep(r, s, "created before the restore, by an unknown job");
	look_later(r);
	return true;
}

void recover_drop(struct recover *r)
{
	struct stray *s, *next;

	HASH_ITER(hh, r->strays, s, next)
		stray_free(r, s);
}

/* ---- the first list ---- */

struct left {
	struct pod_key key;
	bool over; /* how its attempt ends was known when the copy was made */
};

static bool is_there(const struct pod *p, const struct keyset *seen)
{
	const struct pod_key key = model_pod_key(p);

	return p->state == GPUQ_POD_GONE || keyset_has(seen, &key);
}

/* End a pod that the copy has and the cluster does not, whenever it went: its use after the copy
 * was made is not known, and not charged. */
static void pod_left(struct recover *r, const struct pod *p, const struct keyset *seen)
{
	const struct recovery *rec = &journal_model(r->j)->recovery;
	const struct pod_key key = model_pod_key(p);
	struct event ev = { .type = EV_POD_ENDED, .pod = key };
	const struct pod *other;

	if (model_pod_takes(p)) {
		ev.pod_ended.end_us = rec->copied_us;
		ev.pod_ended.exit_code = -1;
		/* It is lost if its attempt goes on; else its node is not blamed. */
		DL_FOREACH2(p->job->pods, other, job_next)
			if (other->attempt == p->attempt && is_there(other, seen) &&
			    model_pod_takes(other))
				ev.pod_ended.fault = POD_FAULT_INFRA;
		ev.pod_ended.message = "gone when the store was restored";
		journal_apply(r->j, &ev, NULL);
	}
	ev = (struct event){ .type = EV_POD_GONE, .pod = key };
	journal_apply(r->j, &ev, NULL);
}

/* Its pods are gone. A job whose end was known ends; one that was running may have ended since. */
static void job_left(struct recover *r, const struct left *l)
{
	const struct job *j = model_find_job(journal_model(r->j), l->key.job);
	struct event ev;

	if (!j || !model_job_is_live(j) || !model_job_attempt_over(j))
		return;
	job_verdict(j, &ev);
	if (l->over && ev.type == EV_JOB_ENDED)
		return; /* it ends with all others whose attempt is over */
	ev = (struct event){ .type = EV_JOB_UNKNOWN, .job = l->key.job };
	log_warn("recover.job_unknown", "job=%" PRIu32 " index=%" PRId32, l->key.job.id,
		 l->key.job.index);
	journal_apply(r->j, &ev, NULL);
}

static void first_list(struct recover *r, const struct keyset *seen, uint32_t highest)
{
	const struct model *m = journal_model(r->j);
	struct event ev = { .type = EV_RECOVERY_LISTED };
	struct left *left = NULL;
	size_t n = 0, room = 0;

	node_each(m, node) {
		const struct pod *p;

		DL_FOREACH2(node->pods, p, node_next) {
			highest = p->job->key.id > highest ? p->job->key.id : highest;
			if (is_there(p, seen))
				continue;
			if (!grow_to(&left, &room, n + 1))
				abort();
			left[n++] = (struct left){ model_pod_key(p), model_job_is_over(p->job) };
		}
	}
	for (size_t i = 0; i < n; i++) {
		const struct pod *p = model_find_pod(m, left[i].key);

		if (p)
			pod_left(r, p, seen);
	}
	adopt_all(r);
	for (size_t i = 0; i < n; i++)
		job_left(r, &left[i]);
	free(left);
	ev.listed.highest = highest;
	journal_apply(r->j, &ev, NULL);
	log_notice("recover.listed", "pods_kept=%u highest=%" PRIu32 " next=%" PRIu32,
		   HASH_COUNT(r->strays), highest, m->next_job_id);
}

/* ---- the end ---- */

static bool is_open(const struct recover *r)
{
	uint32_t n_unknown, n_recovered;

	recover_count(journal_model(r->j), &n_unknown, &n_recovered);
	return r->strays || n_unknown || n_recovered;
}

static int finish(struct recover *r, const char *by, struct gpuq_err *err)
{
	const struct audit_note note = { .who = *by ? by : "gpuqd",
					 .action = "recovery.finish",
					 .kind = "store",
					 .name = journal_model(r->j)->cluster_id,
					 .note = *by ? NULL : "no pod of it was left" };
	struct event ev = { .type = EV_RECOVERY_ENDED };
	struct stray *s, *next;
	int rc;

	ev.by = by;
	rc = journal_apply(r->j, &ev, err);
	if (rc == 0)
		rc = audit_add(r->j, &note, err);
	if (rc == 0)
		log_notice("recover.ended", "by=%s pods_kept=%u", LOGS(note.who),
			   HASH_COUNT(r->strays));
	HASH_ITER(hh, r->strays, s, next)
		if (rc == 0 && has_ended(&s->fact))
			let_go(r, s);
	return rc;
}

int recover_finish(struct recover *r, const char *by, struct gpuq_err *err)
{
	const struct recovery *rec = &journal_model(r->j)->recovery;

	if (!rec->since_us)
		return gpuq_fail(err, GPUQ_ECONFLICT, "nothing is being recovered");
	if (!rec->listed)
		return gpuq_fail(
			err, GPUQ_ECONFLICT,
			"the cluster has not been listed since the restore: what runs there "
			"is not known yet");
	return finish(r, by, err);
}

static void on_look(void *arg)
{
	struct recover *r = arg;
	const struct recovery *rec = &journal_model(r->j)->recovery;

	r->look = NULL;
	if (!rec->since_us || journal_read_only(r->j))
		return;
	look_later(r);
	if (!rec->listed)
		return;
	adopt_all(r); /* its queue may exist by now */
	if (!is_open(r))
		finish(r, "", NULL);
}

/* Return the highest of the numbers that it names: its job's, that of its element, and this one. */
static uint32_t highest_of(const struct stray *s, uint32_t highest)
{
	if (s->key.job.id > highest)
		highest = s->key.job.id;
	if (s->has_record && s->record.element_id > highest)
		highest = (uint32_t)s->record.element_id;
	return highest;
}

void recover_listed(struct recover *r, uint32_t generation, const struct keyset *seen,
		    uint32_t kept)
{
	const struct recovery *rec = &journal_model(r->j)->recovery;
	uint32_t highest = kept;
	struct stray *s, *next;

	HASH_ITER(hh, r->strays, s, next) {
		if (s->seen != generation)
			stray_free(r, s);
		else
			highest = highest_of(s, highest);
	}
	if (!rec->since_us)
		return;
	if (!rec->listed)
		first_list(r, seen, highest);
	look_later(r);
	if (!is_open(r))
		finish(r, "", NULL);
}

/* ---- for display ---- */

uint32_t recover_n_pods(const struct recover *r)
{
	return HASH_COUNT(r->strays);
}

static int by_name(struct stray *a, struct stray *b)
{
	return strcmp(a->name, b->name);
}

void recover_each_pod(struct recover *r, void (*fn)(void *arg, const struct recover_pod *p),
		      void *arg)
{
	HASH_SORT(r->strays, by_name);
	for (const struct stray *s = r->strays; s; s = s->hh.next) {
		const struct recover_pod p = { .fact = &s->fact,
					       .key = s->key,
					       .user = s->has_record ? s->record.user : "",
					       .job_name = s->has_record ? s->record.name : "",
					       .why = s->why };

		fn(arg, &p);
	}
}

int recover_new(struct journal *j, recover_again_fn again, void *arg, struct recover **out,
		struct gpuq_err *err)
{
	struct recover *r = calloc(1, sizeof(*r));

	if (!r)
		return gpuq_no_memory(err);
	r->j = j;
	r->again = again;
	r->arg = arg;
	*out = r;
	if (journal_model(j)->recovery.since_us)
		look_later(r);
	return 0;
}

void recover_free(struct recover *r)
{
	struct stray *s, *next;

	if (!r)
		return;
	loop_cancel(r->look);
	HASH_ITER(hh, r->strays, s, next) {
		HASH_DEL(r->strays, s);
		gpuq_arena_done(&s->mem);
		free(s);
	}
	free(r);
}
