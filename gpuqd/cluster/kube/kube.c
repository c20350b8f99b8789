#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/pods/api.h"
#include "gpuqd/cluster/kube/pods/api_remove.h"
#include "gpuqd/cluster/kube/pods/api_create.h"
#include "gpuqd/cluster/kube/check.h"
#include "gpuqd/cluster/kube/auth/config.h"
#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/identity.h"
#include "gpuqd/cluster/kube/logs.h"
#include "gpuqd/cluster/kube/metrics.h"
#include "gpuqd/cluster/kube/rights.h"
#include "gpuqd/cluster/kube/session.h"
#include "gpuqd/cluster/kube/signal.h"
#include "gpuqd/cluster/kube/watch/watch.h"

/* The Kubernetes cluster: credentials, connections, what is heard, what is asked. Each
 * part has its own file; here they are put together and taken apart. */
struct kube {
	struct cluster cluster; /* first: struct cluster * is struct kube * */
	struct loop *loop;
	struct kube_config config;
	struct http *http;
	struct identity *identity; /* NULL: not requested */
	struct watch *watch; /* NULL before start */
	struct asks *asks;
	struct signals *signals;
	struct metrics *metrics; /* NULL: not wanted */
	struct gpuq_strlist metrics_urls; /* the caller's, until start */
	int64_t measure_every_us;
	struct rights *rights; /* NULL: not requested */
	cluster_rights_fn rights_fn;
	void *rights_arg;
	struct cluster_sink sink;
	char *namespace_, *cluster_id;
	int64_t creates_per_s;
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
	rights_free(k->rights);
	signals_free(k->signals);
	asks_free(k->asks);
	watch_free(k->watch);
	http_free(k->http);
	kube_config_done(&k->config);
	free(k->namespace_);
	free(k->cluster_id);
	free(k);
}

static void on_own(void *arg, const struct pod_fact *f, bool gone)
{
	asks_shown(arg, f, gone);
}

/* In another cluster nothing is read or changed. */
static void on_identity(void *arg, const char *uid)
{
	struct kube *k = arg;

	if (k->sink.identity(k->sink.arg, uid))
		http_hold(k->http, false);
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

static int kube_start(struct cluster *c, const struct cluster_sink *sink, struct gpuq_err *err)
{
	struct kube *k = of(c);
	int rc;

	k->sink = *sink;
	rc = asks_new(k->loop, k->http, k->namespace_, k->cluster_id, k->creates_per_s, &k->sink,
		      &k->asks, err);
	if (rc == 0)
		rc = signals_new(k->loop, k->http,
				 &(struct signals_sink){ k, on_delete, on_signalled }, &k->signals,
				 err);
	if (rc == 0)
		rc = watch_new(k->loop, k->http, k->cluster_id, &k->sink, &k->watch, err);
	if (rc == 0 && k->sink.identity) {
		http_hold(k->http, true);
		k->identity = identity_ask(k->loop, k->http, on_identity, k);
		if (!k->identity)
			rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	}
	if (rc == 0 && k->sink.measured)
		rc = metrics_new(k->loop, &k->metrics_urls, k->measure_every_us, &k->sink,
				 &k->metrics, err);
	if (rc == 0)
		watch_on_own(k->watch, on_own, k->asks);
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

static const char *namespace_of(const struct kube *k, const struct pod_ref *ref)
{
	return ref->namespace_ && *ref->namespace_ ? ref->namespace_ : k->namespace_;
}

static void kube_pod_delete(struct cluster *c, const struct pod_ref *ref, int64_t grace_us)
{
	struct kube *k = of(c);

	if (!signals_hold(k->signals, ref, grace_us))
		asks_delete(k->asks, ref, grace_us);
}

static int kube_pod_signal(struct cluster *c, const struct pod_ref *ref, int signal,
			   struct gpuq_err *err)
{
	struct kube *k = of(c);

	return signals_send(k->signals, namespace_of(k, ref), ref, signal, err);
}

static void kube_pod_forget(struct cluster *c, const struct pod_ref *ref)
{
	signals_gone(of(c)->signals, ref->name);
	asks_forget(of(c)->asks, ref);
}

static void kube_job_forget(struct cluster *c, uint32_t job, int64_t array_index,
			    const char *namespace_)
{
	asks_job_forget(of(c)->asks, job, array_index, namespace_);
}

static struct cluster_log *kube_log_open(struct cluster *c, const struct pod_ref *ref,
					 const struct log_opts *opts, log_fn fn, void *arg,
					 struct gpuq_err *err)
{
	struct kube *k = of(c);
	struct cluster_log *log;

	if (logs_open(k->loop, k->http, k->watch, namespace_of(k, ref), ref, opts, fn, arg, &log,
		      err) != 0)
		return NULL;
	return log;
}

static void on_rights(void *arg, const struct cluster_right *list, size_t n)
{
	struct kube *k = arg;

	k->rights = NULL; /* it is gone when this returns */
	k->rights_fn(k->rights_arg, list, n);
}

static int kube_rights(struct cluster *c, const char *const *namespaces, size_t n,
		       cluster_rights_fn fn, void *arg, struct gpuq_err *err)
{
	struct kube *k = of(c);

	if (k->rights)
		return gpuq_fail(err, GPUQ_EBUSY, "a review is under way");
	k->rights_fn = fn;
	k->rights_arg = arg;
	return rights_ask(k->http, namespaces, n, on_rights, k, &k->rights, err);
}

static struct cluster_session *kube_session_open(struct cluster *c, const struct pod_ref *ref,
						 const struct session_opts *opts,
						 const struct session_sink *sink,
						 struct gpuq_err *err)
{
	struct kube *k = of(c);

	(void)err;
	return session_open(k->loop, k->http, namespace_of(k, ref), ref->name, opts, sink);
}

static const struct cluster_ops ops = {
	.kind = "kube",
	.nodes_remove = true,
	.start = kube_start,
	.spec_check = kube_spec_check,
	.busy = kube_busy,
	.pod_create = kube_pod_create,
	.pod_delete = kube_pod_delete,
	.pod_signal = kube_pod_signal,
	.pod_forget = kube_pod_forget,
	.job_forget = kube_job_forget,
	.log_open = kube_log_open,
	.log_resume = logs_resume,
	.log_close = logs_close,
	.rights = kube_rights,
	.session_open = kube_session_open,
	.session_write = session_write,
	.session_eof = session_eof,
	.session_resize = session_resize,
	.session_resume = session_resume,
	.session_close = session_close,
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
	k->metrics_urls = o->metrics;
	k->measure_every_us = o->measure_every_us;
	rc = kube_config_load(o->kubeconfig, o->context, &k->config, err);
	if (rc != 0)
		goto fail;
	if (!ns || !*ns)
		ns = *k->config.namespace_ ? k->config.namespace_ : "default";
	k->namespace_ = strdup(ns);
	k->cluster_id = strdup(o->cluster_id ? o->cluster_id : "");
	if (!k->namespace_ || !k->cluster_id) {
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
