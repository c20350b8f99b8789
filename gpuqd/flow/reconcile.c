#include "gpuqd/flow/reconcile_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/state/model.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/flow/dispatch.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/measure.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/flow/recover.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/flow/told/pod_end.h"
#include "gpuqd/flow/told/pod_same.h"
#include "gpuqd/flow/told/pod_told.h"
#include "gpuqd/flow/told/pod_trouble.h"
#include "gpuqd/util/keyset.h"
#include "libgpuq/units.h"

const struct pod *reconcile_pod(struct reconcile *r, const char *name, struct pod_key *key)
{
	const struct model *m = journal_model(r->j);

	return model_pod_name_parse(m, name, key) ? model_find_pod(m, *key) : NULL;
}

/* Return the pod of the ledger that a report is of: by its name; one that was not submitted by its uid. With
 * *origin set, NULL means that its job has no pods now. */
static const struct pod *reported(struct reconcile *r, const struct pod_fact *f,
				  struct pod_key *key, const struct origin_pod **origin)
{
	const struct model *m = journal_model(r->j);
	const struct pod *p = NULL;

	*origin = m->origins ? origin_find(m->origins, f->uid) : NULL;
	if (!*origin)
		return reconcile_pod(r, f->name, key);
	p = model_find_origin(m, *origin);
	if (p)
		*key = model_pod_key(p);
	return p;
}

void reconcile_apply(struct reconcile *r, struct event *ev)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (ev->type == EV_POD_GONE)
		keyset_remove(&r->seen, &ev->pod);
	if (journal_apply(r->j, ev, &err) < 0)
		log_debug("reconcile.skip", "event=%s error=%s", event_words[ev->type],
			  LOGS(err.text));
}

/* ---- nodes ---- */

static void on_node_seen(void *arg, const struct node_fact *n)
{
	struct event ev = { .type = EV_NODE_SEEN, .node = n };

	reconcile_apply(arg, &ev);
}

static void on_node_gone(void *arg, const char *name)
{
	struct event ev = { .type = EV_NODE_GONE, .name = name };

	log_notice("node.gone", "node=%s", LOGS(name));
	reconcile_apply(arg, &ev);
}

/* ---- pods ---- */

/* Decide when the last pod of an attempt is over: end, or back to the queue. */
void reconcile_verdict(struct reconcile *r, struct job_key key)
{
	const struct model *m = journal_model(r->j);
	const struct job *j = model_find_job(m, key);
	int64_t now = loop_now_us(r->l);
	struct event ev;

	if (!j || !model_job_is_live(j) || !model_job_attempt_over(j))
		return;
	if (recovery_waits(m))
		return; /* a later attempt of it may still be reported */
	job_verdict(j, &ev);
	if (ev.type == EV_JOB_REQUEUED) {
		ev.requeued.not_before_us = pod_end_not_before(j, &ev, now);
		log_notice("job.requeued", "job=%" PRIu32 " index=%" PRId32 " cause=%s why=%s",
			   key.id, key.index, gpuq_cause_word(ev.requeued.cause),
			   LOGS(ev.requeued.message));
	} else {
		log_info("job.ended", "job=%" PRIu32 " index=%" PRId32 " state=%s exit_code=%d",
			 key.id, key.index, gpuq_job_state_word(ev.ended.state),
			 ev.ended.exit_code);
	}
	reconcile_apply(r, &ev);
}

static void delete_orphan(struct reconcile *r, const struct pod_fact *p)
{
	const struct pod_ref ref = order_fact_ref(p);

	if (!p->leaving) {
		log_warn("pod.orphan", "pod=%s uid=%s", LOGS(p->name), LOGS(p->uid));
		r->cluster->ops->pod_delete(r->cluster, &ref, 0);
	}
	if (p->phase == POD_SUCCEEDED || p->phase == POD_FAILED)
		r->cluster->ops->pod_forget(r->cluster, &ref);
}

/* Remove a pod that the ledger does not know, unless the ledger is an older copy. */
static void remove_orphan(struct reconcile *r, const struct pod_fact *p, struct pod_key key)
{
	if (!recover_keeps(r->recover, p, key, r->generation))
		delete_orphan(r, p);
}

static void pod_ended(struct reconcile *r, const struct pod *p, struct pod_key key,
		      const struct pod_fact *f)
{
	struct event ev = { .pod = key };
	char node[256];
	const struct pod_rejection rejection = {
		node,
		p->job->user,
		p->job->request ? p->job->request->id : 0,
		f->short_of,
		f->short_have,
		f->short_of ? node_pod_asks(journal_model(r->j), p, f->short_of) : 0
	};
	const bool refused = f->fault == POD_FAULT_REJECTED;
	char text[POD_END_ROOM];

	strncpy(node, p->node->name, sizeof(node) - 1);
	node[sizeof(node) - 1] = '\0';
	pod_end_told(journal_model(r->j), p, f, loop_ahead_us(r->l), &ev, text);
	reconcile_apply(r, &ev);
	if (refused && r->on_refused.rejected)
		r->on_refused.rejected(r->on_refused.arg, &rejection);
	reconcile_verdict(r, key.job);
}

/* Charge the pod as admission made it, and with the devices that the cluster chose; it keeps running. */
static void charge_as_told(struct reconcile *r, const struct pod *p, struct pod_key key,
			   const struct pod_fact *f)
{
	struct event amounts = { .pod = key }, devices = { .pod = key };
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool same;

	if (pod_told_amounts(journal_model(r->j), p, f, &amounts))
		reconcile_apply(r, &amounts);
	if (!pod_told_devices(p, f, &devices, &same))
		return;
	if (journal_apply(r->j, &devices, &err) < 0)
		log_warn("pod.devices_doubtful", "pod=%s error=%s", LOGS(f->name), LOGS(err.text));
	else if (!same)
		log_warn("pod.devices_differ", "pod=%s first=%d: the cluster chose others",
			 LOGS(f->name), f->devices[0]);
}

/* True for a pod that runs, and for one whose start and end are first seen together. */
static bool has_run(const struct pod_fact *f)
{
	return f->phase == POD_RUNNING ||
	       (f->start_us && (f->phase == POD_SUCCEEDED ||
				(f->phase == POD_FAILED && f->fault == POD_FAULT_NONE)));
}

static void trouble_told(struct reconcile *r, const struct pod *p, struct pod_key key,
			 const char *object, const char *words, enum trouble_whose whose,
			 bool unserved)
{
	struct event ev;

	if (!pod_trouble_told(p, &key, object, words, whose, unserved, &ev))
		return;
	if (object)
		log_notice("pod.trouble", "job=%" PRIu32 " pod=%" PRIu32 " object=%s message=%s",
			   key.job.id, key.index, LOGS(object), LOGS(words));
	reconcile_apply(r, &ev);
}

void reconcile_waits(struct reconcile *r, const struct pod *p, const char *object,
		     const char *words)
{
	trouble_told(r, p, model_pod_key(p), object, words, TROUBLE_TURN, false);
}

static void on_troubled(void *arg, const char *pod, const char *object, const char *words,
			enum trouble_whose whose)
{
	struct reconcile *r = arg;
	struct pod_key key;
	const struct pod *p = reconcile_pod(r, pod, &key);

	if (p && p->state < GPUQ_POD_RUNNING)
		trouble_told(r, p, key, object, words, whose, false);
}

static void on_waits(void *arg, const char *pod, const struct turn_wait *w)
{
	struct reconcile *r = arg;
	char words[800];
	const char *object = pod_trouble_turn(journal_model(r->j), w, words, sizeof(words));

	on_troubled(r, pod, object, words, TROUBLE_TURN);
}

static void root_refused(struct reconcile *r, const struct pod *p, struct pod_key key,
			 const struct pod_fact *f)
{
	char text[POD_END_ROOM];
	const struct pod_fact bad = pod_end_root_refused(f, text);

	pod_ended(r, p, key, &bad);
}

/* Another client deleted a pod that was not submitted: so ends its job, which is not gpuqd's to repeat. */
static void deleted_outside(struct reconcile *r, const struct pod *p)
{
	struct event ev = { .type = EV_JOB_CANCEL_ASKED, .job = p->job->key };

	if (!model_pod_origin(journal_model(r->j), p) || pod_end_is_requested(p))
		return;
	ev.cancel.who = "";
	ev.cancel.why = "its pod was deleted";
	reconcile_apply(r, &ev);
}

/* Deleted by another client, a drain for example, while it is kept for its log. */
static void told_late(struct reconcile *r, const struct pod *p, struct pod_key key,
		      const struct pod_fact *f)
{
	struct event ev = { .type = EV_POD_LEAVING, .pod = key };

	if (!f->leaving || p->leaving)
		return;
	reconcile_apply(r, &ev);
	dispatch_touch(r->dispatch, key.job);
}

/* Take the news of a pod that has not ended. */
static void pod_news(struct reconcile *r, const struct pod *p, struct pod_key key,
		     const struct pod_fact *f)
{
	struct event ev = { 0 };
	char why[512];

	charge_as_told(r, p, key, f);
	if (pod_told_disruption(journal_model(r->j), p, f, &ev, why, sizeof(why)))
		reconcile_apply(r, &ev);
	if (!f->leaving && f->phase == POD_PENDING && r->on_unbound)
		r->on_unbound(r->on_unbound_arg, key, *f->node ? NULL : &f->claims);
	if (f->leaving && !p->leaving) {
		ev = (struct event){ .type = EV_POD_LEAVING, .pod = key };
		reconcile_apply(r, &ev);
		deleted_outside(r, p);
	}
	if (has_run(f) && p->state < GPUQ_POD_RUNNING) {
		ev = (struct event){ .type = EV_POD_STARTED, .pod = key };
		ev.started.start_us = walltime_to_ledger(f->start_us, loop_ahead_us(r->l));
		reconcile_apply(r, &ev);
	}
	if (f->phase == POD_SUCCEEDED || f->phase == POD_FAILED)
		pod_ended(r, p, key, f);
	else if (f->waiting_bad && pod_end_is_root_refused(f) && p->state < GPUQ_POD_RUNNING &&
		 p->job->life->leave_us == 0)
		root_refused(r, p, key, f);
	else if (p->state < GPUQ_POD_RUNNING)
		trouble_told(r, p, key, f->trouble, *f->message ? f->message : f->reason, f->whose,
			     f->unserved != 0);
}

static void foreign_seen(struct reconcile *r, const struct pod_fact *f)
{
	struct event ev = { .type = EV_FOREIGN_SEEN, .foreign = f };

	/* Most changes of foreign pods are not of what they hold. */
	if (!node_foreign_is_known(journal_model(r->j), f))
		reconcile_apply(r, &ev);
}

/* A pod that was not submitted; p NULL: its job has no pods now. */
static void adopted_seen(struct reconcile *r, const struct origin_pod *o, const struct pod *p,
			 struct pod_key key, const struct pod_fact *f)
{
	struct event ev = { .type = EV_POD_CREATED, .pod = key };

	if (r->adopts.seen)
		r->adopts.seen(r->adopts.arg, o, f);
	if (!p) {
		if (*f->node)
			foreign_seen(r, f);
		return;
	}
	keyset_add(&r->seen, &key);
	if (*f->node && strcmp(f->node, p->node->name) != 0) {
		r->adopts.elsewhere(r->adopts.arg, key, f);
		foreign_seen(r, f);
		return;
	}
	ev.created.uid = f->uid;
	if (p->state == GPUQ_POD_PLANNED && *f->node)
		reconcile_apply(r, &ev);
	if (!model_pod_takes(p))
		told_late(r, p, key, f);
	else if (p->state != GPUQ_POD_PLANNED)
		pod_news(r, p, key, f);
}

static void on_pod_seen(void *arg, const struct pod_fact *f)
{
	struct reconcile *r = arg;
	const struct model *m = journal_model(r->j);
	const struct origin_pod *origin;
	struct pod_key key;
	const struct pod *p = reported(r, f, &key, &origin);
	const char *token;

	if (origin) {
		adopted_seen(r, origin, p, key, f);
		return;
	}
	if (!p && !model_pod_name_parse(m, f->name, &key)) {
		foreign_seen(r, f);
		return;
	}
	if (!p) {
		remove_orphan(r, f, key);
		return;
	}
	if (recovery_waits(m) && !pod_same_is_meant(p, &key, f)) {
		recover_keeps(r->recover, f, key, r->generation);
		return;
	}
	if (pod_same_name_only(p, &key, f)) {
		log_err("pod.conflict",
			"pod=%s namespace=%s: the name is taken by a foreign object", LOGS(f->name),
			LOGS(f->namespace_));
		return;
	}
	keyset_add(&r->seen, &key);
	token = pod_same_token(p, &key);
	if (token && *f->token && strcmp(f->token, token) != 0) {
		log_err("pod.conflict", "pod=%s: the name is taken by a foreign object",
			LOGS(f->name));
		return;
	}
	if (p->state == GPUQ_POD_PLANNED && *f->uid) {
		struct event ev = { .type = EV_POD_CREATED, .pod = key };

		ev.created.uid = f->uid;
		reconcile_apply(r, &ev);
	}
	if (*f->uid && *p->uid && strcmp(f->uid, p->uid) != 0) {
		remove_orphan(r, f, key); /* another object under the same name */
		return;
	}
	if (model_pod_takes(p))
		pod_news(r, p, key, f);
	else
		told_late(r, p, key, f);
}

static void gone_for_good(struct reconcile *r, struct pod_key key, const char *name)
{
	const struct pod *p = model_find_pod(journal_model(r->j), key);
	struct event ev = { .type = EV_POD_GONE, .pod = key };

	if (!p)
		return;
	if (model_pod_takes(p)) {
		log_notice("pod.gone", "pod=%s: gone without an end", LOGS(name));
		deleted_outside(r, p);
		schedule_kick(r->schedule); /* devices are free, whatever the verdict */
	}
	reconcile_apply(r, &ev);
	reconcile_verdict(r, key.job);
}

static void on_pod_gone(void *arg, const struct pod_fact *f)
{
	struct reconcile *r = arg;
	const struct origin_pod *origin;
	struct pod_key key;
	const struct pod *p = reported(r, f, &key, &origin);

	if (!origin && !p && !model_pod_name_parse(journal_model(r->j), f->name, &key)) {
		struct event ev = { .type = EV_FOREIGN_GONE, .foreign = f };

		reconcile_apply(r, &ev);
		return;
	}
	if (!p && !origin)
		recover_gone(r->recover, f->name);
	if (p && !origin &&
	    (pod_same_name_only(p, &key, f) || (*f->uid && *p->uid && strcmp(f->uid, p->uid) != 0)))
		return;
	/* Its last known state may include its end. */
	if (p && model_pod_takes(p) && (f->phase == POD_SUCCEEDED || f->phase == POD_FAILED))
		pod_ended(r, p, key, f);
	if (p)
		gone_for_good(r, key, f->name);
	if (origin && r->adopts.gone)
		r->adopts.gone(r->adopts.arg, f->uid);
}

/* ---- the list as a whole ---- */

/* End the pods that the list did not name. */
static void not_listed(struct reconcile *r)
{
	const struct model *m = journal_model(r->j);
	struct gone {
		struct gone *next;
		struct pod_key key;
	} *gone = NULL, *g;

	/* By node: most jobs are pending, and have no pods to check. */
	node_each(m, n) {
		const struct pod *p;

		DL_FOREACH2(n->pods, p, node_next) {
			const struct pod_key key = model_pod_key(p);

			if (p->state == GPUQ_POD_GONE || keyset_has(&r->seen, &key) ||
			    model_pod_is_unmade(m, p))
				continue;
			g = calloc(1, sizeof(*g));
			if (!g)
				abort();
			g->key = key;
			g->next = gone;
			gone = g;
		}
	}
	for (; gone; gone = g) {
		struct event ev = { .type = EV_POD_GONE, .pod = gone->key };
		const struct pod *p = model_find_pod(m, gone->key);

		g = gone->next;
		log_notice("pod.gone", "job=%" PRIu32 " index=%" PRIu32 ": gone", gone->key.job.id,
			   gone->key.index);
		if (p && model_pod_takes(p))
			deleted_outside(r, p);
		reconcile_apply(r, &ev);
		reconcile_verdict(r, gone->key.job);
		free(gone);
	}
}

static void on_list_done(void *arg)
{
	struct reconcile *r = arg;
	const struct model *m = journal_model(r->j);
	const struct cluster_ops *ops = r->cluster->ops;
	const char *before = loop_enter(r->l, LOOP_HERE);

	if (!recovery_waits(m))
		not_listed(r);
	recover_listed(r->recover, r->generation, &r->seen,
		       ops->highest_job && recovery_waits(m) ? ops->highest_job(r->cluster) : 0);
	r->generation++;
	keyset_clear(&r->seen);
	if (r->adopts.listed)
		r->adopts.listed(r->adopts.arg);
	/* A restart may have come before a verdict: check every attempt that is over. */
	for (int s = 0; s < N_GPUQ_JOB_STATES; s++) {
		const struct job *k, *next;

		if (s != GPUQ_JOB_PENDING)
			DL_FOREACH_SAFE2(m->jobs_by_state[s], k, next, state_next)
				reconcile_verdict(r, k->key);
	}
	dispatch_touch_all(r->dispatch);
	schedule_ready(r->schedule, true);
	loop_leave(r->l, before);
}

static void on_stale(void *arg, int64_t since_us, const char *why)
{
	struct reconcile *r = arg;

	if (since_us && !r->stale_since_us)
		log_warn("cluster.stale", "why=%s", LOGS(why));
	else if (!since_us && r->stale_since_us)
		log_notice("cluster.fresh", "stale_s=%" PRId64,
			   (loop_now_us(r->l) - r->stale_since_us) / GPUQ_US_PER_S);
	r->stale_since_us = since_us;
	snprintf(r->stale_why, sizeof(r->stale_why), "%s", since_us ? why : "");
	schedule_ready(r->schedule, since_us == 0);
}

void reconcile_on_refused(struct reconcile *r, const struct reconcile_refusals *to)
{
	r->on_refused = *to;
}

static void on_job_forgotten(void *arg, uint32_t job, int64_t array_index)
{
	struct event ev = { .type = EV_BESIDE_GONE, .job = { job, (int32_t)array_index } };

	reconcile_apply(arg, &ev);
}

void reconcile_on_signalled(struct reconcile *r, reconcile_signalled_fn fn, void *arg)
{
	r->on_signalled = fn;
	r->on_signalled_arg = arg;
}

static void on_fenced(void *arg, const struct cluster_fence *f)
{
	struct reconcile *r = arg;

	r->on_fenced(r->on_fenced_arg, f);
}

void reconcile_on_fenced(struct reconcile *r, reconcile_fenced_fn fn, void *arg)
{
	r->on_fenced = fn;
	r->on_fenced_arg = arg;
}

static void on_object_seen(void *arg, const struct object_fact *f)
{
	reconcile_apply(arg, &(struct event){ .type = EV_OBJECT_SEEN, .object = f });
}

static void on_object_gone(void *arg, const struct object_fact *f)
{
	reconcile_apply(arg, &(struct event){ .type = EV_OBJECT_GONE, .object = f });
}

static void on_objects_known(void *arg, enum object_kind kind, bool known, const char *why)
{
	struct reconcile *r = arg;
	struct event ev = { .type = EV_OBJECTS_KNOWN };

	ev.objects.kind = kind;
	ev.objects.known = known;
	ev.objects.why = why;
	ev.objects.home = r->cluster->namespace_ ? r->cluster->namespace_ : "";
	reconcile_apply(r, &ev);
}

void reconcile_on_released(struct reconcile *r, reconcile_released_fn fn, void *arg)
{
	r->on_released = fn;
	r->on_released_arg = arg;
}

static void on_adoptable(void *arg, const struct adopt_fact *f)
{
	struct reconcile *r = arg;

	if (r->adopts.adoptable)
		r->adopts.adoptable(r->adopts.arg, f);
}

void reconcile_on_adopts(struct reconcile *r, const struct reconcile_adopts *to)
{
	r->adopts = *to;
}

void reconcile_on_unbound(struct reconcile *r, reconcile_unbound_fn fn, void *arg)
{
	r->on_unbound = fn;
	r->on_unbound_arg = arg;
}

static void on_measured(void *arg, const struct use_round *round)
{
	measure_round(((struct reconcile *)arg)->measure, round);
}

/* The store's jobs run in one cluster. In another one all of them would seem to be gone. */
static bool on_identity(void *arg, const char *uid)
{
	struct reconcile *r = arg;
	const struct model *m = journal_model(r->j);
	struct event ev = { .type = EV_CLUSTER_KNOWN, .name = uid };

	if (!*uid || strcmp(m->cluster_uid, uid) == 0)
		return true;
	if (*m->cluster_uid && !r->adopt) {
		log_err("cluster.other",
			"uid=%s expected=%s: the credentials belong to another cluster than "
			"the jobs in this database; no action is taken there. Give the right "
			"--kubeconfig or --context, or another --state; if the cluster was "
			"rebuilt and the jobs of the old one are lost, start once with "
			"--adopt-cluster",
			LOGS(uid), LOGS(m->cluster_uid));
		return false;
	}
	log_notice("cluster.known", "uid=%s before=%s", LOGS(uid), LOGS(m->cluster_uid));
	reconcile_apply(r, &ev);
	return true;
}

void reconcile_adopt(struct reconcile *r, bool on)
{
	r->adopt = on;
}

static bool on_calm(void *arg)
{
	const struct reconcile *r = arg;
	const struct model *m = journal_model(r->j);

	return m->n_jobs_by_state[GPUQ_JOB_PENDING] == 0 &&
	       m->n_jobs_by_state[GPUQ_JOB_STARTING] == 0 &&
	       m->n_jobs_by_state[GPUQ_JOB_COMPLETING] == 0;
}

const struct cluster_sink *reconcile_sink(struct reconcile *r, struct cluster *c)
{
	r->cluster = c;
	r->generation++;
	keyset_clear(&r->seen);
	recover_drop(r->recover);
	r->sink = (struct cluster_sink){
		.arg = r,
		.node_seen = on_node_seen,
		.node_gone = on_node_gone,
		.pod_seen = on_pod_seen,
		.pod_gone = on_pod_gone,
		.list_done = on_list_done,
		.stale = on_stale,
		.identity = on_identity,
		.measured = on_measured,
		.job_forgotten = on_job_forgotten,
		.troubled = on_troubled,
		.waits = on_waits,
		.object_seen = on_object_seen,
		.object_gone = on_object_gone,
		.objects_known = on_objects_known,
		.calm = on_calm,
		.adoptable = on_adoptable,
		.owners = r->adopts.owners,
		.fenced = r->on_fenced ? on_fenced : NULL,
	};
	reconcile_outcomes(&r->sink);
	return &r->sink;
}

struct recover *reconcile_recover(const struct reconcile *r)
{
	return r->recover;
}

const struct measure *reconcile_measure(const struct reconcile *r)
{
	return r->measure;
}

const char *reconcile_stale_why(const struct reconcile *r)
{
	return r->stale_why;
}

int64_t reconcile_stale_since_us(const struct reconcile *r)
{
	return r->stale_since_us;
}

int reconcile_new(struct journal *j, struct dispatch *d, struct schedule *s, struct reconcile **out,
		  struct gpuq_err *err)
{
	struct reconcile *r = calloc(1, sizeof(*r));

	if (!r)
		return gpuq_no_memory(err);
	r->j = j;
	r->l = journal_loop(j);
	r->dispatch = d;
	r->schedule = s;
	r->generation = 1;
	r->seen.bytes = sizeof(struct pod_key);
	r->stale_since_us = loop_now_us(r->l);
	if (measure_new(j, &r->measure, err) < 0 ||
	    recover_new(j, on_pod_seen, r, &r->recover, err) < 0) {
		measure_free(r->measure);
		free(r);
		return GPUQ_ENOMEM;
	}
	*out = r;
	return 0;
}

void reconcile_free(struct reconcile *r)
{
	if (!r)
		return;
	keyset_clear(&r->seen);
	recover_free(r->recover);
	measure_free(r->measure);
	free(r);
}
