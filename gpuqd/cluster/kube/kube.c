#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/adopt/adopt.h"
#include "gpuqd/cluster/kube/adopt/owners.h"
#include "gpuqd/cluster/kube/capacity/capacity.h"
#include "gpuqd/cluster/kube/capacity/node_keep.h"
#include "gpuqd/cluster/kube/capacity/node_label.h"
#include "gpuqd/cluster/kube/pods/api.h"
#include "gpuqd/cluster/kube/pods/api_bind.h"
#include "gpuqd/cluster/kube/pods/api_remove.h"
#include "gpuqd/cluster/kube/pods/api_create.h"
#include "gpuqd/cluster/kube/pods/refused.h"
#include "gpuqd/cluster/kube/check.h"
#include "gpuqd/cluster/kube/auth/config.h"
#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/identity.h"
#include "gpuqd/cluster/kube/lease.h"
#include "gpuqd/cluster/kube/logs.h"
#include "gpuqd/cluster/kube/metrics.h"
#include "gpuqd/cluster/kube/pod_events.h"
#include "gpuqd/cluster/kube/review.h"
#include "gpuqd/cluster/kube/rights.h"
#include "gpuqd/cluster/kube/session.h"
#include "gpuqd/cluster/kube/signal.h"
#include "gpuqd/cluster/kube/trial.h"
#include "gpuqd/cluster/kube/watch/watch.h"
#include "gpuqd/cluster/kube/watch/watch_jobs.h"
#include "gpuqd/cluster/kube/watch/watch_objects.h"

/* The Kubernetes cluster: credentials, connections, what is heard, what is asked. Each
 * part has its own file; here they are put together and taken apart. */
struct kube {
	struct cluster cluster; /* first: struct cluster * is struct kube * */
	struct loop *loop;
	struct kube_config config;
	struct http *http;
	struct identity *identity; /* NULL: not requested */
	struct kube_lease *lease; /* NULL: there is no fence, or not yet */
	char *store_id, *place, *words; /* of the fence; NULL none */
	bool known; /* the cluster is the right one */
	bool code_store;
	bool may_act, fenced; /* the fence lets us; another daemon acts */
	struct watch *watch; /* NULL before start */
	struct asks *asks;
	struct signals *signals;
	struct pod_events *pod_events;
	struct capacity *capacity;
	struct node_keeps *keeps;
	struct adopts *adopts;
	struct owners *owners;
	struct node_label *node_labels; /* being set */
	struct metrics *metrics; /* NULL: not wanted */
	struct gpuq_strlist metrics_urls; /* the caller's, until start */
	bool kubelet_metrics;
	int64_t measure_every_us;
	struct rights *rights; /* NULL: not requested */
	cluster_rights_fn rights_fn;
	void *rights_arg;
	struct cluster_sink sink;
	int64_t start_us;
	char *namespace_, *cluster_id;
	int64_t creates_per_s, plugin_us, lock_us, turn_us;
};

static struct kube *of(struct cluster *c)
{
	return (struct kube *)c;
}

static void kube_free(struct cluster *c)
{
	struct kube *k = of(c);

	if (!k)
		return;
	metrics_free(k->metrics);
	identity_free(k->identity);
	kube_lease_free(k->lease);
	rights_free(k->rights);
	signals_free(k->signals);
	pod_events_free(k->pod_events);
	capacity_free(k->capacity);
	node_keeps_free(k->keeps);
	owners_free(k->owners);
	adopts_free(k->adopts);
	node_label_free_all(&k->node_labels);
	asks_free(k->asks);
	watch_free(k->watch);
	http_free(k->http);
	kube_config_done(&k->config);
	free(k->namespace_);
	free(k->cluster_id);
	free(k->store_id);
	free(k->place);
	free(k->words);
	free(k);
}

static void on_pod(void *arg, const struct pod_fact *f, bool gone)
{
	struct kube *k = arg;

	if (!*f->token) {
		asks_shown_foreign(k->asks, f, gone);
		adopts_shown(k->adopts, f, gone);
		return;
	}
	asks_shown(k->asks, f, gone);
	pod_events_shown(k->pod_events, f, gone);
}

static void on_node(void *arg, const struct node_fact *n)
{
	asks_shown_node(((struct kube *)arg)->asks, n);
}

static void on_listed(void *arg)
{
	asks_listed(((struct kube *)arg)->asks);
}

/* In another cluster, or beside another daemon of our name, nothing is read or changed. */
static void sync_hold(struct kube *k)
{
	http_hold(k->http, !k->known || !k->may_act);
}

static void on_fence(void *arg, const struct cluster_fence *f)
{
	struct kube *k = arg;

	k->fenced = *f->by != '\0';
	k->may_act = !k->fenced;
	sync_hold(k);
	k->sink.fenced(k->sink.arg, f);
}

/* Return the daemon's own namespace: in a cluster that of its account, which need not be that of
 * jobs. */
static const char *own_namespace(const struct kube *k)
{
	return strcmp(k->config.origin, "in-cluster") == 0 && *k->config.namespace_
		       ? k->config.namespace_
		       : k->namespace_;
}

static void begin(struct kube *k)
{
	const struct lease_opts o = { own_namespace(k), k->cluster_id, k->store_id, k->place,
				      k->words };

	k->known = true;
	k->may_act = !k->store_id || !k->sink.fenced;
	if (!k->may_act) {
		k->lease = kube_lease_new(k->loop, k->http, &o, on_fence, k);
		if (!k->lease)
			abort(); /* a few bytes, and without them nothing may be done */
	}
	sync_hold(k);
}

static void on_identity(void *arg, const char *uid)
{
	struct kube *k = arg;

	if (k->sink.identity(k->sink.arg, uid))
		begin(k);
}

/* Nothing is known of this cluster yet: what is in the way (expired credentials) is reported. */
static void on_silence(void *arg, const char *why)
{
	struct kube *k = arg;

	k->sink.stale(k->sink.arg, k->start_us, why);
}

static void on_delete(void *arg, const struct pod_ref *ref, int64_t grace_us)
{
	struct kube *k = arg;

	asks_delete(k->asks, ref, grace_us);
}

static void on_signalled(void *arg, const char *pod, int signal, const struct gpuq_err *err)
{
	struct kube *k = arg;

	if (k->sink.signalled)
		k->sink.signalled(k->sink.arg, pod, signal, err);
}

static void delete_pod(struct kube *k, const struct pod_ref *ref, int64_t grace_us)
{
	if (!signals_hold(k->signals, ref, grace_us))
		asks_delete(k->asks, ref, grace_us);
}

static void on_leave(void *arg, const struct pod_ref *pod, int64_t grace_us)
{
	delete_pod(arg, pod, grace_us);
}

static int kube_start(struct cluster *c, const struct cluster_sink *sink, struct gpuq_err *err)
{
	struct kube *k = of(c);
	int rc;

	k->sink = *sink;
	k->start_us = loop_now_us(k->loop);
	rc = asks_new(k->loop, k->http, k->namespace_, k->cluster_id, k->creates_per_s, &k->sink,
		      &k->asks, err);
	if (rc == 0)
		asks_plugin_times(k->asks, k->plugin_us, k->lock_us, k->turn_us);
	if (rc == 0)
		rc = signals_new(k->loop, k->http,
				 &(struct signals_sink){ k, on_delete, on_signalled }, &k->signals,
				 err);
	if (rc == 0)
		rc = pod_events_new(k->loop, k->http, &k->sink, &k->pod_events, err);
	if (rc == 0)
		rc = watch_new(k->loop, k->http, k->cluster_id, &k->sink, &k->watch, err);
	if (rc == 0)
		rc = capacity_new(k->loop, k->http, k->watch, k->namespace_, k->cluster_id,
				  &k->capacity, err);
	if (rc == 0)
		rc = node_keeps_new(k->loop, k->http, &k->keeps, err);
	if (rc == 0)
		rc = adopts_new(k->loop, k->http, &k->sink, &k->adopts, err);
	if (rc == 0)
		rc = owners_new(k->loop, k->http, &k->sink, k->adopts, on_leave, k, &k->owners,
				err);
	if (rc == 0 && k->sink.identity) {
		http_hold(k->http, true);
		k->identity = identity_ask(k->loop, k->http, on_identity, on_silence, k);
		if (!k->identity)
			rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	} else if (rc == 0) {
		begin(k);
	}
	if (rc == 0 && k->sink.measured)
		rc = metrics_new(k->loop, &k->metrics_urls, k->measure_every_us,
				 k->kubelet_metrics ? k->http : NULL, k->watch, &k->sink,
				 &k->metrics, err);
	if (rc == 0)
		watch_before_sink(k->watch,
				  &(struct watch_before){ on_pod, on_node, on_listed, k });
	return rc;
}

static bool kube_busy(struct cluster *c)
{
	return http_is_busy(of(c)->http);
}

static void kube_pod_create(struct cluster *c, const struct pod_order *order)
{
	asks_create(of(c)->asks, order);
}

static struct cluster_trial *kube_pod_try(struct cluster *c, const struct pod_order *order,
					  cluster_trial_fn fn, void *arg, struct gpuq_err *err)
{
	struct kube *k = of(c);

	return trial_start(k->http, k->namespace_, order, fn, arg, err);
}

static struct cluster_review *kube_token_review(struct cluster *c, const char *token,
						const char *audience, cluster_review_fn fn,
						void *arg)
{
	return review_start(of(c)->http, token, audience, fn, arg);
}

static const char *namespace_of(const struct kube *k, const struct pod_ref *ref)
{
	return ref->namespace_ && *ref->namespace_ ? ref->namespace_ : k->namespace_;
}

static void kube_pod_delete(struct cluster *c, const struct pod_ref *ref, int64_t grace_us)
{
	delete_pod(of(c), ref, grace_us);
}

static int kube_pod_signal(struct cluster *c, const struct pod_ref *ref, int signal,
			   struct gpuq_err *err)
{
	struct kube *k = of(c);

	return signals_send(k->signals, namespace_of(k, ref), ref, signal, err);
}

static bool kube_refusal_probe(struct cluster *c, const char *key)
{
	return refused_probe(of(c)->asks, key);
}

static void kube_refusal_forget(struct cluster *c, const char *key)
{
	refused_forget(of(c)->asks, key);
}

static void kube_pod_forget(struct cluster *c, const struct pod_ref *ref)
{
	signals_gone(of(c)->signals, pod_ref_as(ref));
	asks_forget(of(c)->asks, ref);
}

static void kube_claim_select(struct cluster *c, const struct pod_ref *ref, const char *claim)
{
	asks_claim_select(of(c)->asks, ref, claim);
}

static void kube_claim_volume(struct cluster *c, const struct pod_ref *ref, const char *claim,
			      const char *volume)
{
	asks_claim_volume(of(c)->asks, ref, claim, volume);
}

static void kube_claim_ask(struct cluster *c, const struct claim_ask *ask)
{
	asks_claim(of(c)->asks, watch_claims_version(of(c)->watch), ask);
}

static void kube_pod_bind(struct cluster *c, const struct pod_ref *ref)
{
	asks_bind(of(c)->asks, ref);
}

static void on_job(void *arg, json_t *job, const char *uid)
{
	struct kube *k = arg;

	if (job)
		owners_shown(k->owners, job);
	else
		owners_gone(k->owners, uid);
}

static void on_jobs(void *arg, const char *namespace_)
{
	const struct owner_sink *sink = ((struct kube *)arg)->sink.owners;

	if (sink)
		sink->listed(sink->arg, namespace_);
}

static void kube_adopt(struct cluster *c, const char *const *namespaces, size_t n)
{
	struct kube *k = of(c);

	adopts_want(k->adopts, namespaces, n);
	owners_again(k->owners);
	watch_jobs(k->watch, namespaces, n, on_job, on_jobs, k);
}

static void kube_adopt_say(struct cluster *c, const char *kind, const struct pod_ref *ref,
			   bool warning, const char *reason, const char *text)
{
	adopts_say(of(c)->adopts, kind, ref, warning, reason, text);
}

static void kube_owner_start(struct cluster *c, const struct owner_ref *owner, const char *as)
{
	owners_start(of(c)->owners, owner, as);
}

static void kube_owner_stop(struct cluster *c, const struct owner_ref *owner,
			    const struct pod_ref *pod, int64_t grace_us)
{
	owners_stop(of(c)->owners, owner, pod, grace_us);
}

static void kube_job_forget(struct cluster *c, uint32_t job, int64_t array_index,
			    const char *namespace_)
{
	asks_job_forget(of(c)->asks, job, array_index, namespace_);
}

static void kube_capacity_watch(struct cluster *c, const struct capacity_sink *sink, bool requests)
{
	capacity_watch(of(c)->capacity, sink, requests);
}

static void kube_node_label(struct cluster *c, const struct node_labels *labels,
			    cluster_labels_fn fn, void *arg)
{
	struct kube *k = of(c);

	node_label_set(k->loop, k->http, &k->node_labels, labels, fn, arg);
}

static void kube_capacity_ask(struct cluster *c, const struct capacity_order *order)
{
	capacity_ask(of(c)->capacity, order);
}

static void kube_capacity_drop(struct cluster *c, const char *namespace_, const char *name,
			       const char *token)
{
	capacity_drop(of(c)->capacity, namespace_, name, token);
}

static void kube_placeholder_make(struct cluster *c, const struct capacity_order *order)
{
	capacity_stand(of(c)->capacity, order);
}

static void kube_placeholder_drop(struct cluster *c, const char *namespace_, const char *name,
				  const char *token)
{
	capacity_leave(of(c)->capacity, namespace_, name, token);
}

static void kube_node_keep(struct cluster *c, const char *node, bool on)
{
	node_keep(of(c)->keeps, node, on);
}

/* While fenced, a request would wait for as long as the other daemon lives. */
static bool may_read(const struct kube *k, struct gpuq_err *err)
{
	if (k->fenced)
		gpuq_fail(err, GPUQ_EBUSY,
			  "another gpuqd acts under this identity: ask that one, see gpuq status");
	return !k->fenced;
}

static struct cluster_log *kube_log_open(struct cluster *c, const struct pod_ref *ref,
					 const struct log_opts *opts, log_fn fn, void *arg,
					 struct gpuq_err *err)
{
	struct kube *k = of(c);
	struct cluster_log *log;

	if (!may_read(k, err) || logs_open(k->loop, k->http, k->watch, namespace_of(k, ref), ref,
					   opts, fn, arg, &log, err) != 0)
		return NULL;
	return log;
}

static void kube_owners_held(struct cluster *c, cluster_held_fn fn, void *arg)
{
	owners_each_held(of(c)->owners, fn, arg);
}

static void on_rights(void *arg, const struct cluster_right *list, size_t n)
{
	struct kube *k = arg;

	k->rights = NULL; /* it is gone when this returns */
	k->rights_fn(k->rights_arg, list, n);
}

static int kube_rights(struct cluster *c, const struct cluster_rights_of *rights,
		       cluster_rights_fn fn, void *arg, struct gpuq_err *err)
{
	struct kube *k = of(c);
	struct cluster_rights_of own = *rights;

	if (k->rights)
		return gpuq_fail(err, GPUQ_EBUSY, "a review is under way");
	k->rights_fn = fn;
	k->rights_arg = arg;
	own.kubelets = k->kubelet_metrics;
	return rights_ask(k->http, own_namespace(k), &own, on_rights, k, &k->rights, err);
}

static struct cluster_session *kube_session_open(struct cluster *c, const struct pod_ref *ref,
						 const struct session_opts *opts,
						 const struct session_sink *sink,
						 struct gpuq_err *err)
{
	struct kube *k = of(c);

	if (!may_read(k, err))
		return NULL;
	return session_open(k->loop, k->http, namespace_of(k, ref), ref->name, opts, sink);
}

static void kube_release(struct cluster *c, void (*done)(void *arg), void *arg)
{
	struct kube *k = of(c);

	k->may_act = false;
	sync_hold(k);
	if (k->lease)
		kube_lease_release(k->lease, done, arg);
	else
		done(arg);
}

static int check_spec(struct cluster *c, const struct gpuq_spec *spec,
		      const struct gpuq_spec *whole, const char *queue_image,
		      const struct site_walls *walls, struct gpuq_buf *warnings,
		      struct gpuq_err *err)
{
	return kube_spec_check(of(c)->code_store, spec, whole, queue_image, walls, warnings, err);
}

static const struct cluster_ops ops = {
	.kind = "kube",
	.nodes_remove = true,
	.start = kube_start,
	.spec_check = check_spec,
	.pod_try = kube_pod_try,
	.trial_cancel = trial_cancel,
	.token_review = kube_token_review,
	.review_cancel = review_cancel,
	.busy = kube_busy,
	.pod_create = kube_pod_create,
	.refusal_probe = kube_refusal_probe,
	.refusal_forget = kube_refusal_forget,
	.claim_select = kube_claim_select,
	.claim_volume = kube_claim_volume,
	.claim_ask = kube_claim_ask,
	.pod_bind = kube_pod_bind,
	.adopt = kube_adopt,
	.adopt_say = kube_adopt_say,
	.owner_start = kube_owner_start,
	.owner_stop = kube_owner_stop,
	.pod_delete = kube_pod_delete,
	.pod_signal = kube_pod_signal,
	.pod_forget = kube_pod_forget,
	.job_forget = kube_job_forget,
	.capacity_watch = kube_capacity_watch,
	.capacity_ask = kube_capacity_ask,
	.capacity_drop = kube_capacity_drop,
	.placeholder_make = kube_placeholder_make,
	.placeholder_drop = kube_placeholder_drop,
	.node_keep = kube_node_keep,
	.node_label = kube_node_label,
	.log_open = kube_log_open,
	.log_resume = logs_resume,
	.log_close = logs_close,
	.rights = kube_rights,
	.owners_held = kube_owners_held,
	.session_open = kube_session_open,
	.session_write = session_write,
	.session_eof = session_eof,
	.session_resize = session_resize,
	.session_resume = session_resume,
	.session_close = session_close,
	.release = kube_release,
	.free = kube_free,
};

int cluster_kube_new(struct loop *l, const struct cluster_kube_opts *o, struct cluster **out,
		     struct gpuq_err *err)
{
	struct kube *k = calloc(1, sizeof(*k));
	const char *ns = o->namespace_;
	int rc;

	if (!k)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	k->cluster.ops = &ops;
	k->loop = l;
	k->creates_per_s = o->creates_per_s;
	k->code_store = o->code_store;
	k->plugin_us = o->plugin_timeout_us;
	k->lock_us = o->node_lock_timeout_us;
	k->turn_us = o->turn_timeout_us;
	k->metrics_urls = o->metrics;
	k->kubelet_metrics = o->kubelet_metrics;
	k->measure_every_us = o->measure_every_us;
	rc = kube_config_load(o->kubeconfig, o->context, &k->config, err);
	if (rc != 0)
		goto fail;
	if (!ns || !*ns)
		ns = *k->config.namespace_ ? k->config.namespace_ : "default";
	k->namespace_ = strdup(ns);
	k->cluster_id = strdup(o->cluster_id ? o->cluster_id : "");
	if (o->store_id) {
		k->store_id = strdup(o->store_id);
		k->place = strdup(o->place);
		k->words = strdup(o->words);
	}
	if (!k->namespace_ || !k->cluster_id ||
	    (o->store_id && (!k->store_id || !k->place || !k->words))) {
		rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory");
		goto fail;
	}
	k->cluster.namespace_ = k->namespace_;
	rc = http_new(l, &k->config, &k->http, err);
	if (rc != 0)
		goto fail;
	log_info("kube.server", "server=%s credentials=%s namespace=%s", LOGS(k->config.server),
		 LOGS(k->config.origin), LOGS(k->namespace_));
	*out = &k->cluster;
	return 0;
fail:
	kube_free(&k->cluster);
	return rc;
}
