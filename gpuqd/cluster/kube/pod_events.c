#include "gpuqd/cluster/kube/pod_events.h"

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as loop_after() */
#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/watch/decode_pod.h"

#define LOOK_US INT64_C(10000000) /* a pod that is pending so long is examined, and again */
#define DENIED_US INT64_C(3600000000)
#define AT_ONCE 8u

struct waiter {
	UT_hash_handle hh;
	struct pod_events *m;
	struct http_req *req;
	int64_t due_us; /* monotonic */
	char *name, *namespace_;
	char uid[48];
};

struct pod_events {
	struct loop *loop;
	struct http *http;
	const struct cluster_sink *sink;
	struct loop_timer *tick;
	struct waiter *waiters; /* by uid */
	unsigned n_asked;
	bool off; /* the sink wants none */
	bool told; /* the log has the missing right */
};

static void drop(struct waiter *w)
{
	HASH_DEL(w->m->waiters, w);
	if (w->req)
		w->m->n_asked--;
	http_cancel(w->req);
	free(w->name);
	free(w->namespace_);
	free(w);
}

static void drop_all(struct pod_events *m)
{
	struct waiter *w, *next;

	HASH_ITER(hh, m->waiters, w, next)
		drop(w);
}

/* Return the newest event that reports trouble; NULL = none. */
static const json_t *trouble_of(const json_t *list)
{
	static const char *const reasons[] = { "FailedMount", "FailedAttachVolume",
					       "FailedMapVolume", "FailedCreatePodSandBox" };
	const json_t *found = NULL;
	size_t i;
	json_t *e;

	json_array_foreach(json_object_get(list, "items"), i,
			   e) for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]);
				   k++) if (strcmp(kube_str(e, "reason"), reasons[k]) == 0 &&
					    (!found || strcmp(kube_str(e, "lastTimestamp"),
							      kube_str(found, "lastTimestamp")) >=
							       0)) found = e;
	return found;
}

static void answered(void *arg, const struct http_answer *a)
{
	struct waiter *w = arg;
	struct pod_events *m = w->m;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct pod_fact f = { .trouble = NULL };
	const json_t *event;
	json_t *list;

	w->req = NULL;
	m->n_asked--;
	w->due_us = loop_mono_us(m->loop) + LOOK_US;
	if (a->status == 403) { /* other namespaces may grant it */
		w->due_us += DENIED_US;
		if (!m->told)
			log_notice(
				"kube.events",
				"status=403 namespace=%s: volumes that cannot be mounted are not "
				"reported; see etc/kubernetes/optional/events.yaml",
				LOGS(w->namespace_));
		m->told = true;
		return;
	}
	list = a->complete && a->status == 200 ? json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL)
					       : NULL;
	event = trouble_of(list);
	if (event) {
		f.trouble = kube_str(event, "reason");
		f.whose = TROUBLE_OPERATORS;
		kube_missing_object(&mem, kube_str(event, "message"), &f);
		m->sink->troubled(m->sink->arg, w->name, f.trouble, kube_str(event, "message"),
				  f.whose);
	}
	json_decref(list);
	gpuq_arena_done(&mem);
}

static void ask(struct waiter *w)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET", .on_end = answered, .arg = w };

	url_object(&path, w->namespace_, "events", NULL);
	gpuq_buf_adds(&path, "?limit=50");
	url_query(&path, "fieldSelector", "involvedObject.uid=");
	gpuq_buf_adds(&path, w->uid);
	call.path = gpuq_buf_str(&path);
	w->m->n_asked++;
	w->req = http_start(w->m->http, &call);
	gpuq_buf_done(&path);
}

static void on_tick(void *arg)
{
	struct pod_events *m = arg;
	const int64_t now = loop_mono_us(m->loop);
	struct waiter *w, *next;

	m->tick = loop_after(m->loop, LOOK_US / 10, on_tick, m);
	HASH_ITER(hh, m->waiters, w, next)
		if (m->n_asked < AT_ONCE && !w->req && now >= w->due_us)
			ask(w);
}

void pod_events_shown(struct pod_events *m, const struct pod_fact *f, bool gone)
{
	const bool waits = !gone && !f->leaving && f->phase == POD_PENDING && !f->waiting_bad &&
			   *f->node && strlen(f->uid) < sizeof(((struct waiter *)0)->uid);
	struct waiter *w = NULL;

	if (m->off)
		return;
	HASH_FIND_STR(m->waiters, f->uid, w);
	if (w && !waits)
		drop(w);
	if (w || !waits)
		return;
	w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	w->m = m;
	w->name = strdup(f->name);
	w->namespace_ = strdup(f->namespace_);
	if (!w->name || !w->namespace_)
		abort();
	memcpy(w->uid, f->uid, strlen(f->uid) + 1);
	w->due_us = loop_mono_us(m->loop) + LOOK_US;
	HASH_ADD_STR(m->waiters, uid, w);
}

int pod_events_new(struct loop *l, struct http *h, const struct cluster_sink *sink,
		   struct pod_events **out, struct gpuq_err *err)
{
	struct pod_events *m = calloc(1, sizeof(*m));

	if (!m)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	m->loop = l;
	m->http = h;
	m->sink = sink;
	m->off = !sink->troubled;
	m->tick = loop_after(l, LOOK_US, on_tick, m);
	*out = m;
	return 0;
}

void pod_events_free(struct pod_events *m)
{
	if (!m)
		return;
	drop_all(m);
	loop_cancel(m->tick);
	free(m);
}
