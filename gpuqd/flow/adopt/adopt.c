#include "gpuqd/flow/adopt/adopt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/admit/submit.h"
#include "gpuqd/flow/adopt/adopt_spec.h"
#include "gpuqd/flow/adopt/strays.h"
#include "gpuqd/flow/dispatch.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/site/site_find.h"
#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

#define SOON_US (2 * GPUQ_US_PER_S) /* until the job of a suspended owner has ended */
#define AGAIN_US (60 * GPUQ_US_PER_S) /* pods that were refused are tried again */
#define TICK_US (5 * GPUQ_US_PER_S) /* pods of cancelled jobs are told again */
#define USER_ROOM 80
#define POD_DELETED "its pod was deleted"
#define GANG_ENDED "the pods that its gang starts with have ended"
#define COUNT_CHANGED "its number of pods was changed, and gpuqd makes none of them"
#define NOT_ADOPTED "its namespace was taken out of adopt"
#define OWNER_DELETED "its owner was deleted, or started by another client"

/* A pod of a job, or a suspended owner, as long as it is there. */
struct heard {
	UT_hash_handle hh;
	uint32_t list; /* number of the last list, or of the watch after it, that named it */
	bool owner, started; /* it is an owner, which is started */
	char uid[48];
};

/* A namespace of which all owners are known. */
struct listed {
	struct listed *next;
	char namespace_[64];
};

struct adopt {
	struct journal *j;
	struct loop *l;
	struct reconcile *reconcile;
	struct cluster *cluster;
	struct heard *heard;
	uint32_t list;
	struct listed *listed;
	struct owner_sink owners;
	struct strays *strays;
	struct loop_timer *again, *tick, *grow;
	uint32_t site; /* whose namespaces the cluster knows */
};

static bool may_act(const struct adopt *a)
{
	const struct model *m = journal_model(a->j);

	return a->cluster && a->cluster->ops->adopt && !recovery_waits(m) && !model_is_fenced(m);
}

/* ---- which namespaces ---- */

static void tell_namespaces(struct adopt *a)
{
	const struct model *m = journal_model(a->j);
	const struct site_adopt *s = m->site->adopt;
	const size_t n = s ? s->namespaces.n : 0;
	const char **names = calloc(n + 1, sizeof(*names));
	size_t i = 0;

	if (!names)
		abort(); /* as loop_after() */
	a->site = m->site_generation;
	if (s)
		site_each(site_adopted, s->namespaces, it)
			names[i++] = it->name;
	if (a->cluster && a->cluster->ops->adopt)
		a->cluster->ops->adopt(a->cluster, names, n);
	free(names);
}

static void on_again(void *arg)
{
	struct adopt *a = arg;

	a->again = NULL;
	tell_namespaces(a);
}

static void try_again(struct adopt *a)
{
	if (!a->again)
		a->again = loop_after(a->l, AGAIN_US, on_again, a);
}

/* ---- which pods are there ---- */

static struct heard *heard(const struct adopt *a, const char *uid)
{
	struct heard *h = NULL;

	HASH_FIND_STR(a->heard, uid, h);
	return h;
}

static struct heard *note_heard(struct adopt *a, const char *uid)
{
	struct heard *h = heard(a, uid);

	if (!h && strlen(uid) < sizeof(h->uid)) {
		h = calloc(1, sizeof(*h));
		if (!h)
			abort(); /* as loop_after() */
		memcpy(h->uid, uid, strlen(uid) + 1);
		HASH_ADD_STR(a->heard, uid, h);
	}
	if (h)
		h->list = a->list;
	return h;
}

/* ---- a pod that could be queued ---- */

/* True for an owner that waits suspended: there is no pod yet. */
static bool is_suspended(const struct adopt_fact *f)
{
	return f->gated && strcmp(f->uid, f->owner_uid) == 0;
}

static void say(struct adopt *a, const struct adopt_fact *f, bool warning, const char *reason,
		const char *text)
{
	const struct pod_ref ref = { .name = f->name, .namespace_ = f->namespace_, .uid = f->uid };

	if (a->cluster->ops->adopt_say)
		a->cluster->ops->adopt_say(a->cluster, is_suspended(f) ? f->owner_kind : "Pod",
					   &ref, warning, reason, text);
}

/* The text without the place of the pod in its job, which its owner did not write. */
static const char *in_pod(const char *text)
{
	static const char group[] = "groups[", of[] = "].template.";
	const char *at = text;

	if (strncmp(at, group, sizeof(group) - 1) != 0)
		return text;
	at += sizeof(group) - 1;
	at += strspn(at, "0123456789");
	return strncmp(at, of, sizeof(of) - 1) == 0 ? at + sizeof(of) - 1 : text;
}

static void refused(struct adopt *a, const struct adopt_fact *f, const struct gpuq_err *err)
{
	char text[700];

	snprintf(text, sizeof(text), "gpuqd does not queue it: %.600s", in_pod(err->text));
	log_notice("adopt.refused", "pod=%s namespace=%s why=%s", LOGS(f->name),
		   LOGS(f->namespace_), LOGS(err->text));
	say(a, f, true, "NotQueued", text);
	try_again(a);
}

static void queued(struct adopt *a, const struct adopt_fact *f, uint32_t job, const char *queue,
		   struct gpuq_buf *warnings)
{
	char text[900], ignored[600] = "";
	char *p;

	snprintf(ignored, sizeof(ignored), "%s", gpuq_buf_str(warnings));
	for (p = ignored; *p; p++)
		if (*p == '\n')
			*p = p[1] ? ';' : '\0';
	snprintf(text, sizeof(text), "it is job %" PRIu32 " of queue %s%s%s", job, queue,
		 *ignored ? "; " : "", ignored);
	log_info("adopt.queued", "job=%" PRIu32 " pod=%s namespace=%s owner=%s/%s", job,
		 LOGS(f->name), LOGS(f->namespace_), LOGS(f->owner_kind), LOGS(f->owner_name));
	say(a, f, false, "Queued", text);
	note_heard(a, f->uid); /* the list that is being taken may have named it before */
}

/* A queue of Kueue need not be one of gpuqd. */
static void choose_queue(const struct adopt *a, const struct site_adopted *is,
			 const struct adopt_fact *f, struct gpuq_spec *spec,
			 struct gpuq_buf *warnings)
{
	if (spec->queue && is->queue && f->gated &&
	    !site_queue_find(journal_model(a->j)->site, spec->queue)) {
		gpuq_buf_printf(warnings, "gpuqd has no queue %s\n", spec->queue);
		spec->queue = is->queue;
	}
	if (!spec->queue)
		spec->queue = is->queue;
}

/* Make the job of these pods. */
static int submit(struct adopt *a, const struct site_adopted *is, const struct adopt_fact **pods,
		  size_t n, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf warnings = GPUQ_BUF_INIT;
	struct submit_result result;
	struct gpuq_spec spec;
	struct gpuq_val *list = gpuq_list(&mem), *tree;
	char user[USER_ROOM];
	const struct submit_who who = { .user = user,
					.uid = UINT32_MAX,
					.gid = UINT32_MAX,
					.adopts = is->queue ? is->queue : "" };
	int rc = adopt_spec(&mem, pods, n, loop_wall_us(a->l), &spec, &warnings, err);

	snprintf(user, sizeof(user), is->user ? "%s" : "kube:%s", is->user ? is->user : is->name);
	if (rc == 0)
		choose_queue(a, is, pods[0], &spec, &warnings);
	if (rc == 0 && !spec.queue)
		rc = gpuq_fail(err, GPUQ_EINVAL,
			       "it names no queue: give it the label gpuq.io/queue");
	if (rc == 0) {
		tree = gpuq_spec_write(&mem, &spec);
		if (!tree || !list || !gpuq_add(&mem, list, tree))
			rc = gpuq_no_memory(err);
	}
	(void)FAILPOINT("adopt.submit");
	if (rc == 0)
		rc = submit_jobs(a->j, a->cluster, &who, list, NULL, 0, false, &mem, &result, err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		queued(a, pods[i], result.first_id, spec.queue, &warnings);
	gpuq_buf_done(&warnings);
	gpuq_arena_done(&mem);
	return rc;
}

/* ---- gangs ---- */

static const struct job *going_on(const struct adopt *a, const struct origin *o)
{
	const struct job *j = model_find_job(journal_model(a->j), (struct job_key){ o->job, -1 });

	return j && !j->ended && !j->cancel_asked && !model_job_is_over(j) ? j : NULL;
}

/* True if all of its pods have started; some may have ended since. */
static bool runs(const struct job *j)
{
	return j->state == GPUQ_JOB_RUNNING || j->state == GPUQ_JOB_COMPLETING;
}

/* True for a job of pods of that gang. Where nothing of the cluster stands for the gang, its pods have names alone
 * in common. */
static bool is_of_gang(const struct origin *o, const struct adopt_fact *f)
{
	if (strcmp(f->owner_uid, f->uid) != 0)
		return strcmp(o->uid, f->owner_uid) == 0;
	return strcmp(o->kind, f->owner_kind) == 0 && strcmp(o->name, f->owner_name) == 0 &&
	       strcmp(o->namespace_, f->namespace_) == 0;
}

/* Return the job of those that start together, if it goes on: a pod beyond their number is a job of its own, which
 * may start once they run. */
static const struct job *core_of(const struct adopt *a, const struct adopt_fact *f)
{
	const struct model *m = journal_model(a->j);

	for (const struct origin *o = origin_first(m->origins); o; o = o->hh.next)
		if (is_of_gang(o, f) && o->n_pods >= f->n_gang && going_on(a, o))
			return going_on(a, o);
	return NULL;
}

/* A pod that came after those that start together, and before they run. */
static void wait_for_core(struct adopt *a, const struct adopt_fact *f, const struct job *core)
{
	char text[400];

	strays_add(&a->strays, f);
	snprintf(
		text, sizeof(text),
		"it is beyond the %" PRIu32
		" pods of %.300s that start together: it is queued when these run, as job %" PRIu32,
		f->n_gang, f->gang, core->key.id);
	say(a, f, false, "GangWaits", text);
}

static void gather(struct adopt *a, const struct site_adopted *is, const struct adopt_fact *f)
{
	const uint32_t n = strays_add(&a->strays, f);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct adopt_fact **facts;
	struct stray_pods *pods;
	char text[400];
	size_t n_facts;

	if (n < f->n_gang) {
		snprintf(text, sizeof(text),
			 "%" PRIu32 " of the %" PRIu32
			 " pods of %.300s are there: they start together",
			 n, f->n_gang, f->gang);
		say(a, f, false, "GangIncomplete", text);
		return;
	}
	pods = strays_take(&a->strays, f->namespace_, f->gang);
	facts = strays_facts(pods, &n_facts);
	if (submit(a, is, facts, n_facts, &err) != 0)
		for (size_t i = 0; i < n_facts; i++)
			refused(a, facts[i], &err);
	strays_done(pods);
}

/* ---- pods of owners that were suspended ---- */

static const struct job *job_of(const struct adopt *a, const struct origin_pod *o)
{
	const struct job *j =
		o ? model_find_job(journal_model(a->j), (struct job_key){ o->of->job, -1 }) : NULL;

	return j && !j->ended ? j : NULL;
}

static void look_again_soon(struct adopt *a)
{
	loop_cancel(a->again);
	a->again = loop_after(a->l, SOON_US, on_again, a);
}

/* Give the places of a job back whose owner will not make its pod now. */
static void let_wait(struct adopt *a, const struct job *j)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = j->key };

	if (!j->pods || !model_pod_is_unmade(journal_model(a->j), j->pods) || model_job_is_over(j))
		return;
	ev.evict.cause = GPUQ_CAUSE_REQUEUE;
	ev.evict.by = ev.evict.rule = "";
	ev.evict.grace_us = 0;
	journal_apply(a->j, &ev, NULL);
}

/* The first pod of an owner takes the place of that in its job; each other is a job of its own. */
static bool fill(struct adopt *a, const struct adopt_fact *f)
{
	const struct origin_pod *o = origin_find(journal_model(a->j)->origins, f->owner_uid);
	const struct job *j = job_of(a, o);
	struct event ev = { .type = EV_JOB_FILLED };

	if (!o)
		return false;
	/* The owner is being suspended: the pod will go. */
	if (!j || j->cancel_asked || model_job_is_over(j)) {
		try_again(a);
		return true;
	}
	(void)FAILPOINT("adopt.fill");
	ev.job = j->key;
	ev.filled.name = f->name;
	ev.filled.uid = f->uid;
	note_heard(a, f->uid);
	journal_apply(a->j, &ev, NULL);
	log_info("adopt.filled", "job=%" PRIu32 " pod=%s namespace=%s", ev.job.id, LOGS(f->name),
		 LOGS(f->namespace_));
	return true;
}

static void on_adoptable(void *arg, const struct adopt_fact *f)
{
	struct adopt *a = arg;
	const struct model *m = journal_model(a->j);
	const struct site_adopted *is = adoption_of(m->site, f->namespace_);
	const struct origin_pod *known = origin_find(m->origins, f->uid);
	const struct job *core = NULL;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!f->manifest) {
		strays_remove(&a->strays, f->uid);
		return;
	}
	/* Its job is about to end: then it is queued anew. */
	if (is && known && is_suspended(f) &&
	    (!job_of(a, known) || model_job_is_over(job_of(a, known))))
		look_again_soon(a);
	if (!is || known)
		return;
	if (*f->gang && f->n_gang > 1)
		core = core_of(a, f);
	if (!may_act(a) || (*f->gang && f->n_gang == 0))
		try_again(a);
	else if (f->gated && !is_suspended(f) && fill(a, f))
		return;
	else if (*f->gang && f->n_gang > 1 && !core)
		gather(a, is, f);
	else if (core && !runs(core))
		wait_for_core(a, f, core);
	else if (submit(a, is, &f, 1, &err) != 0)
		refused(a, f, &err);
}

/* ---- what becomes of the pods of pending jobs ---- */

static const struct job *pending(const struct adopt *a, const struct origin *o)
{
	const struct job *j = model_find_job(journal_model(a->j), (struct job_key){ o->job, -1 });

	return j && !j->ended && !model_job_is_live(j) ? j : NULL;
}

static void end(struct adopt *a, const struct job *j, const char *reason)
{
	struct event ev = { .type = EV_JOB_ENDED, .job = j->key };
	char why[300];

	snprintf(why, sizeof(why), "%s",
		 j->cancel_asked ? j->life->message ? j->life->message : "" : reason);
	ev.ended.state = GPUQ_JOB_CANCELLED;
	ev.ended.exit_code = -1;
	ev.ended.message = why;
	log_info("adopt.ended", "job=%" PRIu32 " why=%s: pending, and its pods are gone", j->key.id,
		 LOGS(why));
	journal_apply(a->j, &ev, NULL);
}

static void forget(struct adopt *a, struct heard *h)
{
	if (h)
		HASH_DEL(a->heard, h);
	free(h);
}

static size_t count_heard(const struct adopt *a, const struct origin *o)
{
	size_t n = 0;

	for (uint32_t i = 0; i < o->n_pods; i++)
		n += heard(a, o->pods[i].uid) != NULL;
	return n;
}

/* A pending job ends when it has lost a pod; one that was cancelled, when all of them are gone. */
static void check_pods(struct adopt *a, const struct origin *o)
{
	const struct job *j = pending(a, o);
	const size_t n = j ? count_heard(a, o) : 0;

	if (!j || origin_is_suspended(o) || (j->cancel_asked ? n > 0 : n == o->n_pods))
		return;
	end(a, j, POD_DELETED);
	if (n == 0)
		return;
	/* The rest of a gang is queued anew, with what its owner makes. */
	loop_cancel(a->again);
	a->again = loop_after(a->l, 0, on_again, a);
}

/* ---- what becomes of pods beyond those that start together ---- */

static bool same_gang(const struct origin *a, const struct origin *b)
{
	return strcmp(a->kind, b->kind) == 0 && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->namespace_, b->namespace_) == 0 &&
	       (strcmp(a->uid, b->uid) == 0 || strcmp(a->uid, a->pods[0].uid) == 0);
}

/* Return a job of pods beyond those of core. NULL: there is none, or others that start together are there. */
static const struct origin *member_of(const struct adopt *a, const struct origin *core)
{
	const struct origin *found = NULL;

	for (const struct origin *o = origin_first(journal_model(a->j)->origins); o;
	     o = o->hh.next) {
		if (o == core || o->n_pods == 0 || !same_gang(o, core) || !going_on(a, o))
			continue;
		if (o->n_pods >= core->n_pods)
			return NULL;
		found = o;
	}
	return found;
}

/* Those that start together have ended, and not well: the rest of the gang does not go on without them. */
static void core_ended(struct adopt *a, const struct origin *core)
{
	struct event ev = { .type = EV_JOB_CANCEL_ASKED };
	const struct origin *o;

	while ((o = member_of(a, core)) != NULL) {
		const struct job *j = going_on(a, o);

		log_info("adopt.gang_ended", "job=%" PRIu32 " gang=%s/%s of=%" PRIu32, o->job,
			 LOGS(o->kind), LOGS(o->name), core->job);
		if (!model_job_is_live(j)) {
			end(a, j, GANG_ENDED);
			continue;
		}
		ev.job = j->key;
		ev.cancel.who = "";
		ev.cancel.why = GANG_ENDED;
		if (journal_apply(a->j, &ev, NULL) < 0)
			break;
	}
}

static void on_grow(void *arg)
{
	struct adopt *a = arg;
	const struct model *m = journal_model(a->j);
	char gang[600];

	a->grow = NULL;
	for (const struct origin *o = origin_first(m->origins), *next; o && a->strays; o = next) {
		const struct site_adopted *is = adoption_of(m->site, o->namespace_);
		const struct job *j = going_on(a, o);
		const struct adopt_fact **facts;
		struct stray_pods *pods;
		size_t n;

		next = o->hh.next;
		if (o->n_pods < 2 || !is || !j || !runs(j))
			continue;
		snprintf(gang, sizeof(gang), "%s/%s", o->kind, o->name);
		pods = strays_take(&a->strays, o->namespace_, gang);
		facts = strays_facts(pods, &n);
		for (size_t i = 0; i < n; i++)
			on_adoptable(a, facts[i]);
		strays_done(pods);
	}
}

static void on_gang_event(struct adopt *a, const struct event *ev)
{
	const struct model *m = journal_model(a->j);
	const struct origin *o;

	if (ev->type == EV_POD_STARTED && a->strays && !a->grow)
		a->grow = loop_after(a->l, 0, on_grow, a);
	if (ev->type != EV_JOB_ENDED)
		return;
	o = origin_of(m->origins, ev->job.id);
	if (!o || o->n_pods < 2)
		return;
	if (ev->ended.state != GPUQ_JOB_COMPLETED)
		core_ended(a, o);
	/* Pods that waited for them, or are left, may be enough for another start. */
	look_again_soon(a);
}

static void on_seen(void *arg, const struct origin_pod *o, const struct pod_fact *f)
{
	struct adopt *a = arg;

	note_heard(a, f->uid);
	/* Another scheduler gave it a node. */
	if (*f->node && pending(a, o->of)) {
		log_warn("adopt.bound", "pod=%s namespace=%s node=%s: not by gpuqd", LOGS(f->name),
			 LOGS(f->namespace_), LOGS(f->node));
		end(a, pending(a, o->of), POD_DELETED);
	}
}

static void on_elsewhere(void *arg, struct pod_key pod, const struct pod_fact *f)
{
	struct adopt *a = arg;
	struct event ev = { .type = EV_POD_ENDED, .pod = pod };
	char why[400];

	snprintf(why, sizeof(why), "its pod was bound to node %s, and not by gpuqd", f->node);
	log_warn("adopt.elsewhere", "pod=%s namespace=%s node=%s", LOGS(f->name),
		 LOGS(f->namespace_), LOGS(f->node));
	ev.pod_ended.exit_code = -1;
	ev.pod_ended.fault = POD_FAULT_INFRA;
	ev.pod_ended.message = why;
	journal_apply(a->j, &ev, NULL); /* it may have ended already */
	ev = (struct event){ .type = EV_POD_GONE, .pod = pod };
	journal_apply(a->j, &ev, NULL);
	reconcile_verdict(a->reconcile, pod.job);
}

static void on_gone(void *arg, const char *uid)
{
	struct adopt *a = arg;
	const struct origin_pod *p = origin_find(journal_model(a->j)->origins, uid);

	forget(a, heard(a, uid));
	if (p)
		check_pods(a, p->of);
}

/* ---- what becomes of suspended owners ---- */

static bool is_listed(const struct adopt *a, const char *namespace_)
{
	for (const struct listed *l = a->listed; l; l = l->next)
		if (strcmp(l->namespace_, namespace_) == 0)
			return true;
	return false;
}

/* Owners are listed anew by another cluster, or another connection to it. */
static void forget_owners(struct adopt *a)
{
	struct heard *h, *next;
	struct listed *l;

	HASH_ITER(hh, a->heard, h, next)
		if (h->owner)
			forget(a, h);
	while ((l = a->listed) != NULL) {
		a->listed = l->next;
		free(l);
	}
}

/* It is not gpuqd's to start any more. */
static void lost(struct adopt *a, const struct origin *o, const char *why)
{
	const struct job *j = origin_is_suspended(o) ? job_of(a, &o->pods[0]) : NULL;

	if (!j)
		return;
	if (model_job_is_live(j))
		let_wait(a, j); /* and then: on_event() */
	else
		end(a, j, why);
}

static void check_owner(struct adopt *a, const struct origin *o)
{
	if (origin_is_suspended(o) && is_listed(a, o->namespace_) && !heard(a, o->uid))
		lost(a, o, OWNER_DELETED);
}

static void on_owner(void *arg, const struct owner_fact *f)
{
	struct adopt *a = arg;
	const struct origin_pod *p = origin_find(journal_model(a->j)->origins, f->uid);
	struct heard *h;

	if (f->state == OWNER_LEFT) {
		forget(a, heard(a, f->uid));
		if (p && !recovery_waits(journal_model(a->j)))
			lost(a, p->of, f->why);
		return;
	}
	h = note_heard(a, f->uid);
	if (!h)
		return;
	h->owner = true;
	/* Another client suspended it before its first pod was there. */
	if (h->started && f->state == OWNER_WAITS && p && origin_is_suspended(p->of) &&
	    job_of(a, p) && model_job_is_live(job_of(a, p)))
		let_wait(a, job_of(a, p));
	h->started = f->state == OWNER_STARTED;
}

static void on_owners_listed(void *arg, const char *namespace_)
{
	struct adopt *a = arg;
	const struct model *m = journal_model(a->j);
	const struct origin *o, *next;
	struct listed *l;

	if (!is_listed(a, namespace_)) {
		l = calloc(1, sizeof(*l));
		if (!l)
			abort(); /* as loop_after() */
		snprintf(l->namespace_, sizeof(l->namespace_), "%s", namespace_);
		l->next = a->listed;
		a->listed = l;
	}
	for (o = origin_first(m->origins); o && !recovery_waits(m); o = next) {
		next = o->hh.next;
		check_owner(a, o);
	}
}

/* Delete the pods of a job that was cancelled while it was pending. */
static void remove_pods(struct adopt *a, const struct job *j, const struct origin *o)
{
	for (uint32_t i = 0; i < o->n_pods; i++) {
		const struct pod_ref ref = { .name = o->pods[i].name,
					     .namespace_ = o->namespace_,
					     .uid = o->pods[i].uid,
					     .node = "",
					     .token = "",
					     .gated = o->gated };

		(void)FAILPOINT("adopt.delete");
		dispatch_leave(journal_model(a->j), a->cluster, j, &ref, 0);
	}
}

static void on_tick(void *arg)
{
	struct adopt *a = arg;
	const struct model *m = journal_model(a->j);
	bool more = false;

	a->tick = NULL;
	for (const struct origin *o = origin_first(m->origins); o; o = o->hh.next) {
		const struct job *j = pending(a, o);

		if (!j || !j->cancel_asked)
			continue;
		more = true;
		if (may_act(a))
			remove_pods(a, j, o);
	}
	if (more && !a->tick)
		a->tick = loop_after(a->l, TICK_US, on_tick, a);
}

static void on_durable(void *arg, int rc, const struct gpuq_err *err)
{
	struct adopt *a = arg;

	(void)err;
	if (rc < 0)
		return;
	loop_cancel(a->tick);
	a->tick = loop_after(a->l, 0, on_tick, a);
}

/* ---- namespaces that are not adopted any more ---- */

/* Its pods stay: whoever made them may have another scheduler give them nodes. */
static void disown(struct adopt *a, const struct origin *o)
{
	const struct job *j = pending(a, o);

	if (!j || j->cancel_asked || adoption_of(journal_model(a->j)->site, o->namespace_))
		return;
	for (uint32_t i = 0; a->cluster && i < o->n_pods; i++) {
		const struct adopt_fact f = { .namespace_ = o->namespace_,
					      .name = o->pods[i].name,
					      .uid = o->pods[i].uid,
					      .owner_uid = o->uid,
					      .owner_kind = o->kind,
					      .gated = o->gated };

		say(a, &f, true, "NotQueued", "gpuqd does not queue it: " NOT_ADOPTED);
	}
	end(a, j, NOT_ADOPTED);
}

static void on_site(struct adopt *a)
{
	const struct model *m = journal_model(a->j);
	const struct origin *next;

	tell_namespaces(a);
	for (const struct origin *o = origin_first(m->origins); o && !recovery_waits(m); o = next) {
		next = o->hh.next;
		disown(a, o);
	}
}

/* An earlier version let the number of pods of a job be changed: gpuqd makes none of them. The pods that
 * are there are queued anew. */
static void check_count(struct adopt *a, const struct origin *o)
{
	const struct job *j = pending(a, o);
	const struct request_spec *spec = j ? &j->request->spec : NULL;
	uint64_t n = 0;

	for (uint32_t g = 0; spec && g < spec->n_groups; g++)
		n += (uint64_t)spec->groups[g].pods_max;
	if (!j || j->cancel_asked || n == o->n_pods)
		return;
	end(a, j, COUNT_CHANGED);
	look_again_soon(a);
}

/* Jobs that lost a pod while gpuqd was away; those that were cancelled before a restart. */
static void on_listed(void *arg)
{
	struct adopt *a = arg;
	const struct model *m = journal_model(a->j);
	const struct origin *o, *next;
	struct heard *h, *h_next;

	HASH_ITER(hh, a->heard, h, h_next)
		if (h->list != a->list && !h->owner)
			forget(a, h);
	a->list++;
	for (o = origin_first(m->origins); o && !recovery_waits(m); o = next) {
		next = o->hh.next;
		disown(a, o);
		if (origin_is_suspended(o))
			check_owner(a, o);
		else
			check_pods(a, o);
		check_count(a, o);
	}
	on_durable(a, 0, NULL);
}

static void on_event(void *arg, const struct event *ev)
{
	struct adopt *a = arg;
	const struct model *m = journal_model(a->j);
	const struct origin *o;

	if (m->site_generation != a->site)
		on_site(a);
	if (m->origins)
		on_gang_event(a, ev);
	if (!m->origins || (ev->type != EV_JOB_CANCEL_ASKED && ev->type != EV_JOB_REQUEUED))
		return;
	o = origin_of(m->origins, ev->job.id);
	if (o && ev->type == EV_JOB_CANCEL_ASKED)
		journal_after(a->j, on_durable, a);
	else if (o)
		check_owner(a, o);
}

void adopt_set_cluster(struct adopt *a, struct cluster *c)
{
	a->cluster = c;
	forget_owners(a);
	if (c)
		tell_namespaces(a);
}

int adopt_new(struct journal *j, struct reconcile *r, struct adopt **out, struct gpuq_err *err)
{
	struct adopt *a = calloc(1, sizeof(*a));
	const struct reconcile_adopts to = { .arg = a,
					     .adoptable = on_adoptable,
					     .seen = on_seen,
					     .gone = on_gone,
					     .elsewhere = on_elsewhere,
					     .listed = on_listed,
					     .owners = a ? &a->owners : NULL };

	if (!a)
		return gpuq_no_memory(err);
	a->owners = (struct owner_sink){ a, on_owner, on_owners_listed };
	a->j = j;
	a->reconcile = r;
	a->l = journal_loop(j);
	journal_subscribe(j, on_event, a);
	reconcile_on_adopts(r, &to);
	*out = a;
	return 0;
}

void adopt_free(struct adopt *a)
{
	struct heard *h, *next;

	if (!a)
		return;
	HASH_ITER(hh, a->heard, h, next)
		forget(a, h);
	strays_free(a->strays);
	forget_owners(a);
	loop_cancel(a->again);
	loop_cancel(a->tick);
	loop_cancel(a->grow);
	free(a);
}
