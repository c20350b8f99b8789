#include "gpuqd/cluster/kube/adopt/kueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define GROUP "/apis/kueue.x-k8s.io"
#define FRESH_US INT64_C(10000000)
#define PAGE 100

struct kueue_check {
	struct loop *loop;
	struct http *http;
	struct http_req *req;
	struct loop_timer *timer;
	kueue_fn fn;
	void *arg;
	char *namespace_, *uid, *from; /* from: the next page; NULL = the first */
	int64_t created_us;
	char version[32];
};

void kueue_cancel(struct kueue_check *k)
{
	if (!k)
		return;
	http_cancel(k->req);
	loop_cancel(k->timer);
	free(k->namespace_);
	free(k->uid);
	free(k->from);
	free(k);
}

static void finish(struct kueue_check *k, enum kueue_answer is, const char *words, int64_t retry_us)
{
	const kueue_fn fn = k->fn;
	void *const arg = k->arg;
	char text[448];

	snprintf(text, sizeof(text), "%s", words);
	kueue_cancel(k);
	fn(arg, is, text, retry_us);
}

static void unknown(struct kueue_check *k, const struct http_answer *a)
{
	struct status st;

	status_read(a, &st);
	finish(k, KUEUE_UNKNOWN,
	       a->status == 403 ? "gpuqd may not list workloads (adopt.yaml)" : st.text,
	       a->retry_us);
}

/* Return the name of the Workload of that Job; NULL = the page has none. */
static const char *find(const json_t *page, const char *uid)
{
	const json_t *w, *o;
	size_t i, n;

	json_array_foreach(json_object_get(page, "items"), i, w)
	{
		json_array_foreach(kube_path(w, "metadata", "ownerReferences"), n, o)
		{
			if (strcmp(kube_str(o, "uid"), uid) == 0)
				return kube_str(json_object_get(w, "metadata"), "name");
		}
	}
	return NULL;
}

static void list(struct kueue_check *k);

static void on_page(void *arg, const struct http_answer *a)
{
	struct kueue_check *k = arg;
	json_t *page = a->complete && a->status == 200
			       ? json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL)
			       : NULL;
	const char *name = find(page, k->uid);
	const char *next = kube_str(json_object_get(page, "metadata"), "continue");

	k->req = NULL;
	if (name) {
		finish(k, KUEUE_HELD, name, 0);
	} else if (page && *next) {
		free(k->from);
		k->from = strdup(next);
		if (!k->from)
			abort(); /* as loop_after() */
		list(k);
	} else if (page || a->status == 404) {
		finish(k, KUEUE_FREE, "", 0);
	} else {
		unknown(k, a);
	}
	json_decref(page);
}

static void list(struct kueue_check *k)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET", .on_end = on_page, .arg = k };

	gpuq_buf_printf(&path, GROUP "/%s/namespaces/", k->version);
	url_escape(&path, k->namespace_);
	gpuq_buf_printf(&path, "/workloads?limit=%d", PAGE);
	if (k->from)
		url_query(&path, "continue", k->from);
	call.path = gpuq_buf_str(&path);
	k->req = http_start(k->http, &call);
	gpuq_buf_done(&path);
}

static void on_timer(void *arg)
{
	struct kueue_check *k = arg;

	k->timer = NULL;
	list(k);
}

static void on_group(void *arg, const struct http_answer *a)
{
	struct kueue_check *k = arg;
	json_t *root = a->complete && a->status == 200 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
	const char *version = kube_str(json_object_get(root, "preferredVersion"), "version");
	const int64_t age_us = loop_wall_us(k->loop) - k->created_us;

	k->req = NULL;
	if (a->status == 404) {
		finish(k, KUEUE_FREE, "", 0);
	} else if (!*version) {
		unknown(k, a);
	} else {
		snprintf(k->version, sizeof(k->version), "%s", version);
		if (age_us < 0 || age_us >= FRESH_US)
			list(k);
		else
			k->timer = loop_after(k->loop, FRESH_US - age_us, on_timer, k);
	}
	json_decref(root);
}

struct kueue_check *kueue_ask(struct loop *l, struct http *h, const json_t *job, kueue_fn fn,
			      void *arg)
{
	const json_t *meta = json_object_get(job, "metadata");
	struct kueue_check *k = calloc(1, sizeof(*k));
	const struct http_call call = {
		.method = "GET", .path = GROUP, .on_end = on_group, .arg = k
	};

	if (!k)
		abort();
	k->loop = l;
	k->http = h;
	k->fn = fn;
	k->arg = arg;
	k->namespace_ = strdup(kube_str(meta, "namespace"));
	k->uid = strdup(kube_str(meta, "uid"));
	if (!k->namespace_ || !k->uid)
		abort();
	k->created_us = kube_time_us(kube_str(meta, "creationTimestamp"));
	k->req = http_start(h, &call);
	return k;
}
