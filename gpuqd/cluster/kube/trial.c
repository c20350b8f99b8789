#include "gpuqd/cluster/kube/trial.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/pods/podspec.h"

#define LIMIT_US (5 * INT64_C(1000000)) /* a submission does not wait longer for it */

struct cluster_trial {
	struct http_req *req;
	cluster_trial_fn fn;
	void *arg;
};

/* A refusal is the pod's own fault only if the apiserver itself found it in the pod: webhooks and
 * quotas speak of the moment, and some webhooks refuse every dry run. */
static enum trial_outcome judge(const struct http_answer *a, const struct status *st)
{
	if (st->kind == STATUS_DONE || st->kind == STATUS_EXISTS || st->kind == STATUS_QUOTA)
		return TRIAL_TAKEN;
	if (st->kind == STATUS_REFUSED && (a->status == 400 || a->status == 422) &&
	    !strstr(st->text, "admission webhook") && !strstr(st->text, "dry run"))
		return TRIAL_REFUSED;
	return TRIAL_UNKNOWN;
}

static void on_end(void *arg, const struct http_answer *a)
{
	struct cluster_trial *t = arg;
	const cluster_trial_fn fn = t->fn;
	void *to = t->arg;
	struct status st;

	status_read(a, &st);
	free(t);
	fn(to, judge(a, &st), st.text, a->warnings);
}

static char *body_of(const struct pod_order *o, struct gpuq_err *err)
{
	json_t *pod = NULL;
	char *text = NULL;

	if (podspec_pod(o, &pod, err) < 0)
		return NULL;
	/* The node is not chosen yet. */
	json_object_del(json_object_get(pod, "spec"), "nodeName");
	text = json_dumps(pod, JSON_COMPACT);
	json_decref(pod);
	if (!text)
		gpuq_no_memory(err);
	return text;
}

struct cluster_trial *trial_start(struct http *h, const char *ns, const struct pod_order *o,
				  cluster_trial_fn fn, void *arg, struct gpuq_err *err)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct cluster_trial *t = NULL;
	char *body = body_of(o, err);

	if (body)
		t = calloc(1, sizeof(*t));
	if (body && !t)
		gpuq_no_memory(err);
	if (t) {
		struct http_call call = { .method = "POST",
					  .body = body,
					  .n_body = strlen(body),
					  .limit_us = LIMIT_US,
					  .on_end = on_end,
					  .arg = t };

		url_object(&path, o->namespace_ && *o->namespace_ ? o->namespace_ : ns, "pods",
			   NULL);
		gpuq_buf_adds(&path, "?dryRun=All&fieldManager=gpuqd&fieldValidation=Strict");
		call.path = gpuq_buf_str(&path);
		t->fn = fn;
		t->arg = arg;
		t->req = http_start(h, &call);
	}
	gpuq_buf_done(&path);
	free(body);
	return t;
}

void trial_cancel(struct cluster_trial *t)
{
	if (t)
		http_cancel(t->req);
	free(t);
}
