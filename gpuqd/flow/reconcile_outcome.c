/* Outcomes of requests to the cluster: to create, bind, signal and delete pods. Declared in reconcile_int.h. */
#include "gpuqd/flow/reconcile_int.h"

#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

#define QUOTA_RETRY_US (10 * GPUQ_US_PER_S)

static void give_back(struct reconcile *r, struct job_key key, const char *rule)
{
	struct event evict = { .type = EV_JOB_EVICT_ASKED, .job = key };

	evict.evict.cause = GPUQ_CAUSE_REQUEUE;
	evict.evict.rule = rule;
	evict.evict.by = "";
	evict.evict.grace_us = 0;
	reconcile_apply(r, &evict);
}

/* Keep the job pending for a while. object: without the pod's name, which differs at each attempt. */
static void block(struct reconcile *r, struct job_key key, enum gpuq_reason code,
		  const char *object, const char *message)
{
	struct event ev = { .type = EV_JOB_BLOCKED, .job = key };

	ev.blocked.reason.code = code;
	ev.blocked.reason.object = object ? object : order_namespace_of(journal_model(r->j), key);
	ev.blocked.words = message;
	ev.blocked.until_us = loop_now_us(r->l) + QUOTA_RETRY_US;
	reconcile_apply(r, &ev);
}

static void never_created(struct reconcile *r, struct pod_key key, enum pod_fault fault,
			  const char *message)
{
	struct event ev = { .type = EV_POD_ENDED, .pod = key };

	ev.pod_ended.exit_code = -1;
	ev.pod_ended.fault = fault;
	ev.pod_ended.message = message;
	reconcile_apply(r, &ev);
	ev = (struct event){ .type = EV_POD_GONE, .pod = key };
	reconcile_apply(r, &ev);
	reconcile_verdict(r, key.job);
}

static void on_created(void *arg, const char *pod, enum ask_outcome o, const char *uid,
		       const char *message)
{
	struct reconcile *r = arg;
	struct pod_key key;
	const struct pod *p = reconcile_pod(r, pod, &key);

	if (!p)
		return; /* the watch will show it, and then it is an orphan */
	switch (o) {
	case ASK_OK:
		keyset_add(&r->seen, &key);
		if (p->state == GPUQ_POD_PLANNED) {
			struct event ev = { .type = EV_POD_CREATED, .pod = key };

			ev.created.uid = uid;
			reconcile_apply(r, &ev);
		}
		break;
	case ASK_QUOTA:
		log_info("pod.quota", "pod=%s message=%s", LOGS(pod), LOGS(message));
		block(r, key.job, GPUQ_R_NAMESPACE_QUOTA, strstr(message, "exceeded quota"),
		      message);
		give_back(r, key.job, gpuq_reason_word(GPUQ_R_NAMESPACE_QUOTA));
		if (reconcile_pod(r, pod, &key))
			never_created(r, key, POD_FAULT_NONE, message);
		break;
	case ASK_REFUSED:
		log_warn("pod.refused", "pod=%s message=%s", LOGS(pod), LOGS(message));
		never_created(r, key, POD_FAULT_IMAGE, message);
		break;
	case ASK_CONFLICT:
		log_err("pod.conflict", "pod=%s message=%s", LOGS(pod), LOGS(message));
		never_created(r, key, POD_FAULT_INFRA, message);
		break;
	case ASK_RETRY:
	case ASK_UNKNOWN:
		log_warn("pod.create_unsure", "pod=%s message=%s", LOGS(pod), LOGS(message));
		break;
	}
}

/* The job is not at fault: it gives its places back and is pending again. */
static void on_refused(void *arg, const char *pod, const struct refusal *refusal)
{
	struct reconcile *r = arg;
	struct pod_key key;

	if (!reconcile_pod(r, pod, &key))
		return;
	log_info("pod.refused", "pod=%s object=%s message=%s", LOGS(pod), LOGS(refusal->object),
		 LOGS(refusal->words));
	if (r->on_refused.refused)
		r->on_refused.refused(r->on_refused.arg, key, refusal);
	give_back(r, key.job, RULE_REFUSED);
	if (reconcile_pod(r, pod, &key))
		never_created(r, key, POD_FAULT_NONE, refusal->words);
}

static void on_probed(void *arg, const char *key, bool taken)
{
	struct reconcile *r = arg;

	if (r->on_refused.probed)
		r->on_refused.probed(r->on_refused.arg, key, taken);
}

static void on_deleted(void *arg, const char *pod, enum ask_outcome o, const char *message)
{
	struct reconcile *r = arg;
	struct pod_key key;
	const struct pod *p = reconcile_pod(r, pod, &key);

	if (o != ASK_OK)
		log_warn("pod.delete", "pod=%s message=%s", LOGS(pod), LOGS(message));
	/* It was never created, and will not be: the request is withdrawn. */
	if (p && o == ASK_OK && model_pod_is_unmade(journal_model(r->j), p)) {
		struct event ev = { .type = EV_POD_GONE, .pod = key };

		reconcile_apply(r, &ev);
		reconcile_verdict(r, key.job);
	}
}

static void on_signalled(void *arg, const char *pod, int signal, const struct gpuq_err *err)
{
	struct reconcile *r = arg;
	struct event ev = { .type = EV_POD_SIGNALLED };

	if (!model_pod_name_parse(journal_model(r->j), pod, &ev.pod))
		return;
	ev.signalled.signal = signal;
	ev.signalled.sent = !err;
	ev.signalled.message = err ? err->text : "";
	reconcile_apply(r, &ev);
	if (r->on_signalled)
		r->on_signalled(r->on_signalled_arg, ev.pod, signal, err);
}

static void on_not_bound(void *arg, const char *pod, const char *message)
{
	struct reconcile *r = arg;
	const struct pod *p;
	const struct job *j;
	struct pod_key key;
	bool all; /* pods of its queue are bound */

	log_warn("pod.not_bound", "pod=%s message=%s", LOGS(pod), LOGS(message));
	p = reconcile_pod(r, pod, &key);
	if (!p)
		return;
	j = model_find_job(journal_model(r->j), key.job);
	all = j && (order_binds(j->queue) || model_is_adopted(journal_model(r->j), j));
	block(r, key.job, all ? GPUQ_R_CLUSTER_REFUSED : GPUQ_R_VOLUME_PENDING,
	      model_pod_is_unmade(journal_model(r->j), p) ? "jobs"
	      : all                                       ? "pods/binding"
							  : NULL,
	      message);
	give_back(r, key.job, all ? RULE_REFUSED : gpuq_reason_word(GPUQ_R_VOLUME_PENDING));
	if (r->on_released)
		r->on_released(r->on_released_arg, key.job);
}

/* Its claims are not written: the job waits for the right, or for what is wrong. */
static void on_claim_refused(void *arg, const char *pod, const char *resource, const char *message)
{
	struct reconcile *r = arg;
	struct pod_key key;

	log_warn("pod.claim_refused", "pod=%s resource=%s message=%s", LOGS(pod), resource,
		 LOGS(message));
	if (!reconcile_pod(r, pod, &key))
		return;
	block(r, key.job, GPUQ_R_CLUSTER_REFUSED, resource, message);
	give_back(r, key.job, RULE_REFUSED);
}

void reconcile_outcomes(struct cluster_sink *s)
{
	s->created = on_created;
	s->deleted = on_deleted;
	s->signalled = on_signalled;
	s->refused = on_refused;
	s->probed = on_probed;
	s->claim_refused = on_claim_refused;
	s->not_bound = on_not_bound;
}
