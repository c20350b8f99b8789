#include "gpuqd/cluster/kube/adopt/kueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as loop_after() */
#include <uthash.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define GROUP "/apis/kueue.x-k8s.io"
#define FRESH_US INT64_C(10000000)
#define PAGE 100

struct kueue_check {
	UT_hash_handle hh; /* by uid, in one of the two sets */
	struct kueue *in;
	bool listed; /* in the one that is being listed */
	kueue_fn fn;
	void *arg;
	char *namespace_, *uid;
	int64_t created_us;
};

struct kueue {
	struct loop *loop;
	struct http *http;
	struct http_req *req;
	struct loop_timer *timer; /* of the next turn */
	struct kueue_check *waiting, *listed; /* listed: those that the present list answers */
	char *namespace_, *from; /* of that; from: the next page, NULL = the first */
	char version[32]; /* of the group, as the last turn found it */
};

static void turn(struct kueue *q);

void kueue_cancel(struct kueue_check *k)
{
	if (!k)
		return;
	if (k->listed)
		HASH_DEL(k->in->listed, k);
	else
		HASH_DEL(k->in->waiting, k);
	free(k->namespace_);
	free(k->uid);
	free(k);
}

static void finish(struct kueue_check *k, enum kueue_answer is, const char *words, int64_t retry_us)
{
	const kueue_fn fn = k->fn;
	void *const arg = k->arg;

	kueue_cancel(k);
	fn(arg, is, words, retry_us);
}

/* Answer all that are listed. Each answer may cancel others. */
static void finish_all(struct kueue *q, enum kueue_answer is, const char *words, int64_t retry_us)
{
	char text[448];

	snprintf(text, sizeof(text), "%s", words);
	while (q->listed)
		finish(q->listed, is, text, retry_us);
}

static void unknown(struct kueue *q, const struct http_answer *a)
{
	struct status st;

	status_read(a, &st);
	finish_all(q, KUEUE_UNKNOWN,
		   a->status == 403 ? "gpuqd may not list workloads (adopt.yaml)" : st.text,
		   a->retry_us);
}

/* ---- turns ---- */

static void on_timer(void *arg)
{
	struct kueue *q = arg;

	q->timer = NULL;
	turn(q);
}

static void turn_in(struct kueue *q, int64_t wait_us)
{
	loop_cancel(q->timer);
	q->timer = loop_after(q->loop, wait_us, on_timer, q);
}

static void turn_over(struct kueue *q)
{
	free(q->namespace_);
	free(q->from);
	q->namespace_ = q->from = NULL;
	if (q->waiting)
		turn_in(q, 0);
}

/* Have the next list answer those of a namespace, NULL = all. Returns how long the others wait for one that is
 * too young: with `young` those are listed too. */
static int64_t take(struct kueue *q, bool young)
{
	const int64_t now = loop_wall_us(q->loop);
	struct kueue_check *k, *next;
	int64_t least = FRESH_US;

	HASH_ITER(hh, q->waiting, k, next) {
		const int64_t age_us = now - k->created_us;

		if (!young && age_us >= 0 && age_us < FRESH_US) {
			if (FRESH_US - age_us < least)
				least = FRESH_US - age_us;
			continue;
		}
		if (q->namespace_ && strcmp(q->namespace_, k->namespace_) != 0)
			continue;
		if (!young && !q->namespace_) {
			q->namespace_ = strdup(k->namespace_);
			if (!q->namespace_)
				abort(); /* as loop_after() */
		}
		HASH_DEL(q->waiting, k);
		k->listed = true;
		HASH_ADD_KEYPTR(hh, q->listed, k->uid, strlen(k->uid), k);
	}
	return least;
}

/* ---- the list ---- */

/* Answer those whose Workload the page has. */
static void find(struct kueue *q, const json_t *page)
{
	const json_t *w, *o;
	size_t i, n;

	json_array_foreach(json_object_get(page, "items"), i, w)
	{
		json_array_foreach(kube_path(w, "metadata", "ownerReferences"), n, o)
		{
			const char *uid = kube_str(o, "uid");
			struct kueue_check *k = NULL;

			HASH_FIND_STR(q->listed, uid, k);
			if (k)
				finish(k, KUEUE_HELD,
				       kube_str(json_object_get(w, "metadata"), "name"), 0);
		}
	}
}

static void list(struct kueue *q);

static void on_page(void *arg, const struct http_answer *a)
{
	struct kueue *q = arg;
	json_t *page = a->complete && a->status == 200
			       ? json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL)
			       : NULL;
	const char *next = kube_str(json_object_get(page, "metadata"), "continue");

	q->req = NULL;
	find(q, page);
	if (page && *next && q->listed) {
		free(q->from);
		q->from = strdup(next);
		if (!q->from)
			abort(); /* as loop_after() */
		list(q);
	} else {
		if (page || a->status == 404)
			finish_all(q, KUEUE_FREE, "", 0);
		else
			unknown(q, a);
		turn_over(q);
	}
	json_decref(page);
}

static void list(struct kueue *q)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET", .on_end = on_page, .arg = q };

	gpuq_buf_printf(&path, GROUP "/%s/namespaces/", q->version);
	url_escape(&path, q->namespace_);
	gpuq_buf_printf(&path, "/workloads?limit=%d", PAGE);
	if (q->from)
		url_query(&path, "continue", q->from);
	call.path = gpuq_buf_str(&path);
	q->req = http_start(q->http, &call);
	gpuq_buf_done(&path);
}

static void on_group(void *arg, const struct http_answer *a)
{
	struct kueue *q = arg;
	json_t *root = a->complete && a->status == 200 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
	const char *version = kube_str(json_object_get(root, "preferredVersion"), "version");
	int64_t wait_us;

	q->req = NULL;
	if (*version) {
		snprintf(q->version, sizeof(q->version), "%s", version);
		wait_us = take(q, false);
		if (q->listed)
			list(q);
		else if (q->waiting)
			turn_in(q, wait_us);
	} else {
		take(q, true);
		if (a->status == 404)
			finish_all(q, KUEUE_FREE, "", 0);
		else
			unknown(q, a);
		turn_over(q);
	}
	json_decref(root);
}

/* The group is asked for anew in each turn: Kueue may have come, or gone. */
static void turn(struct kueue *q)
{
	const struct http_call call = {
		.method = "GET", .path = GROUP, .on_end = on_group, .arg = q
	};

	if (!q->req && q->waiting)
		q->req = http_start(q->http, &call);
}

struct kueue_check *kueue_ask(struct kueue *q, const json_t *job, kueue_fn fn, void *arg)
{
	const json_t *meta = json_object_get(job, "metadata");
	struct kueue_check *k = calloc(1, sizeof(*k));

	if (!k)
		abort(); /* as loop_after() */
	k->in = q;
	k->fn = fn;
	k->arg = arg;
	k->namespace_ = strdup(kube_str(meta, "namespace"));
	k->uid = strdup(kube_str(meta, "uid"));
	if (!k->namespace_ || !k->uid)
		abort();
	k->created_us = kube_time_us(kube_str(meta, "creationTimestamp"));
	HASH_ADD_KEYPTR(hh, q->waiting, k->uid, strlen(k->uid), k);
	if (!q->req)
		turn_in(q, 0);
	return k;
}

struct kueue *kueue_new(struct loop *l, struct http *h)
{
	struct kueue *q = calloc(1, sizeof(*q));

	if (q)
		*q = (struct kueue){ .loop = l, .http = h };
	return q;
}

void kueue_free(struct kueue *q)
{
	if (!q)
		return;
	http_cancel(q->req);
	loop_cancel(q->timer);
	free(q->namespace_);
	free(q->from);
	free(q);
}
