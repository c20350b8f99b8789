#include "gpuqd/cluster/kube/watch/missing.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "libgpuq/buf.h"

#define AGAIN_US INT64_C(2000000)

struct question {
	UT_hash_handle hh; /* by path */
	struct missing *m;
	char *path, *namespace_, *name;
	struct http_req *req;
	struct loop_timer *again;
};

struct missing {
	struct loop *loop;
	struct http *http;
	void (*gone)(void *arg, const char *namespace_, const char *name);
	void *arg;
	struct question *questions;
};

static void ask(struct question *q);

static void free_question(struct question *q)
{
	HASH_DEL(q->m->questions, q);
	http_cancel(q->req);
	loop_cancel(q->again);
	free(q->path);
	free(q->namespace_);
	free(q->name);
	free(q);
}

static void on_again(void *arg)
{
	struct question *q = arg;

	q->again = NULL;
	ask(q);
}

static void answered(void *arg, const struct http_answer *a)
{
	struct question *q = arg;

	q->req = NULL;
	if (a->status == 404 && a->complete) {
		q->m->gone(q->m->arg, q->namespace_, q->name);
		free_question(q);
	} else if (a->status == 200) {
		free_question(q); /* what becomes of it, the watch reports it */
	} else {
		q->again = loop_after(q->m->loop, a->retry_us > AGAIN_US ? a->retry_us : AGAIN_US,
				      on_again, q);
	}
}

static void ask(struct question *q)
{
	const struct http_call call = {
		.method = "GET", .path = q->path, .on_end = answered, .arg = q
	};

	q->req = http_start(q->m->http, &call);
}

void missing_ask(struct missing *m, const char *namespace_, const char *name)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct question *q;

	url_object(&path, namespace_, "pods", name);
	HASH_FIND_STR(m->questions, gpuq_buf_str(&path), q);
	if (!q) {
		q = calloc(1, sizeof(*q));
		if (!q)
			abort(); /* as loop_after() */
		q->m = m;
		q->path = strdup(gpuq_buf_str(&path));
		q->namespace_ = strdup(namespace_);
		q->name = strdup(name);
		if (!q->path || !q->namespace_ || !q->name)
			abort();
		HASH_ADD_KEYPTR(hh, m->questions, q->path, strlen(q->path), q);
		ask(q);
	}
	gpuq_buf_done(&path);
}

struct missing *missing_new(struct loop *l, struct http *h,
			    void (*gone)(void *arg, const char *namespace_, const char *name),
			    void *arg)
{
	struct missing *m = calloc(1, sizeof(*m));

	if (m)
		*m = (struct missing){ .loop = l, .http = h, .gone = gone, .arg = arg };
	return m;
}

void missing_free(struct missing *m)
{
	struct question *q, *next;

	if (!m)
		return;
	HASH_ITER(hh, m->questions, q, next)
		free_question(q);
	free(m);
}
