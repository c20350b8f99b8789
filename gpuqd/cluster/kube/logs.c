#include "gpuqd/cluster/kube/logs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/loglines.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "libgpuq/units.h"

#define FIRST_US INT64_C(300000)
#define MAX_US INT64_C(5000000) /* a person is watching the screen */
#define TRIES 20 /* of errors in a row before giving up */
#define LOOKS 60 /* about half a minute */
#define LIMIT_US (300 * INT64_C(1000000))

struct cluster_log {
	struct loop *loop;
	struct http *http;
	const struct watch *watch;
	char *namespace_, *name, *uid, *container;
	bool follow;
	int64_t tail_lines;
	char since[LOGLINES_TIME_MAX]; /* "" = from the beginning */
	log_fn fn;
	void *arg;
	struct loglines lines;
	struct http_req *req;
	struct loop_timer *timer;
	struct backoff back;
	unsigned looks; /* for a pod that is not there yet */
	bool busy, closed; /* its reader is being called, and has closed it */
	bool seen; /* the watch has known the pod */
	bool read_once; /* its log could be read */
	bool opened, paused, waiting; /* waiting: the request itself is paused */
	bool over; /* the pod had ended when this reading began */
};

static void go(struct cluster_log *log);
static void free_log(struct cluster_log *log);

static bool starts_with_time(const struct cluster_log *log)
{
	return *log->lines.last != '\0';
}

/* Ended, gone, or another pod under the name: nothing more will be written. One that
 * has not been heard of yet is not over: its creation may be a moment ago. */
static bool pod_is_over(struct cluster_log *log)
{
	const struct known_thing *t = watch_pod(log->watch, log->namespace_, log->name);

	if (!t)
		return log->seen;
	log->seen = true;
	if ((*log->uid && *t->uid && strcmp(log->uid, t->uid) != 0))
		return true;
	return t->phase == POD_SUCCEEDED || t->phase == POD_FAILED;
}

static void fail(struct cluster_log *log, int code, const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_fail(&err, code, "log of %s: %s", log->name, text);
	log->fn(log->arg, NULL, 0, &err);
}

static void on_timer(void *arg)
{
	struct cluster_log *log = arg;

	log->timer = NULL;
	go(log);
}

static void later(struct cluster_log *log, int64_t wait_us)
{
	log->timer = loop_after(log->loop, wait_us, on_timer, log);
}

static void on_open(void *arg)
{
	struct cluster_log *log = arg;

	log->opened = true;
}

static enum http_want on_data(void *arg, const char *bytes, size_t n)
{
	struct cluster_log *log = arg;
	struct gpuq_buf out = GPUQ_BUF_INIT;
	bool more = true;

	if (log->paused) {
		log->waiting = true;
		return HTTP_PAUSE;
	}
	log->back.fails = 0;
	loglines_feed(&log->lines, bytes, n, &out);
	log->busy = true;
	if (out.len)
		more = log->fn(log->arg, out.data, out.len, NULL);
	log->busy = false;
	gpuq_buf_done(&out);
	if (log->closed) {
		free_log(log);
		return HTTP_STOP;
	}
	log->paused = !more;
	return HTTP_MORE;
}

/* A pod that has not started has no log; an unknown pod never will. */
static void refused(struct cluster_log *log, const struct http_answer *a)
{
	struct status st;
	bool not_yet;

	status_read(a, &st);
	not_yet = a->status == 204 || strstr(st.text, "is waiting to start") ||
		  strstr(st.text, "ContainerCreating") || strstr(st.text, "PodInitializing");
	if (st.kind == STATUS_GONE && log->read_once) {
		/* Deleted with what it had written last, if that was not read in time. */
		log->fn(log->arg, NULL, 0, NULL);
	} else if (st.kind == STATUS_GONE && log->follow && !*log->uid && log->looks++ < LOOKS) {
		/* Whoever asks has no uid yet: its creation may be under way. */
		later(log, FIRST_US + random_between(0, FIRST_US));
	} else if (st.kind == STATUS_GONE) {
		fail(log, GPUQ_ENOENT, "it is gone from the cluster");
	} else if (not_yet && log->follow && !log->over) {
		later(log, FIRST_US + random_between(0, FIRST_US));
	} else if (not_yet) {
		log->fn(log->arg, NULL, 0, NULL);
	} else if (st.kind == STATUS_REFUSED || st.kind == STATUS_FORBIDDEN ||
		   st.kind == STATUS_CLUSTER) {
		fail(log, st.kind == STATUS_REFUSED ? GPUQ_EINVAL : GPUQ_EPERM, st.text);
	} else if (log->back.fails >= TRIES || !log->follow) {
		fail(log, GPUQ_EIO, st.text);
	} else {
		later(log, backoff_next_us(&log->back, FIRST_US, MAX_US));
	}
}

static void on_end(void *arg, const struct http_answer *a)
{
	struct cluster_log *log = arg;

	log->req = NULL;
	if (!log->opened || a->status == 204) {
		refused(log, a);
		return;
	}
	log->read_once = true;
	loglines_resume(&log->lines);
	if (a->complete && (!log->follow || log->over)) {
		log->fn(log->arg, NULL, 0, NULL);
		return;
	}
	if (!log->follow || log->back.fails >= TRIES) {
		fail(log, GPUQ_EIO, *a->error ? a->error : "the connection breaks repeatedly");
		return;
	}
	/* The end of the stream may be the pod's or only the connection's. A pod that
	 * has ended is read once more, for what was written at the very last. */
	later(log, a->complete ? FIRST_US : backoff_next_us(&log->back, FIRST_US, MAX_US));
}

static void go(struct cluster_log *log)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET",
				  .stream = true,
				  .on_open = on_open,
				  .on_data = on_data,
				  .on_end = on_end,
				  .arg = log };

	log->over = pod_is_over(log);
	log->opened = false;
	url_object(&path, log->namespace_, "pods", log->name);
	gpuq_buf_adds(&path, "/log?timestamps=true");
	if (log->follow)
		gpuq_buf_adds(&path, "&follow=true");
	if (starts_with_time(log) || *log->since)
		url_query(&path, "sinceTime", starts_with_time(log) ? log->lines.last : log->since);
	if (!starts_with_time(log) && log->tail_lines >= 0)
		gpuq_buf_printf(&path, "&tailLines=%lld", (long long)log->tail_lines);
	if (log->container)
		url_query(&path, "container", log->container);
	call.path = gpuq_buf_str(&path);
	if (!log->follow)
		call.limit_us = LIMIT_US;
	log->req = http_start(log->http, &call);
	gpuq_buf_done(&path);
}

int logs_open(struct loop *l, struct http *h, const struct watch *watch, const char *namespace_,
	      const struct pod_ref *ref, const struct log_opts *opts, log_fn fn, void *arg,
	      struct cluster_log **out, struct gpuq_err *err)
{
	struct cluster_log *log = calloc(1, sizeof(*log));

	if (log) {
		log->namespace_ = strdup(namespace_);
		log->name = strdup(ref->name);
		log->uid = strdup(ref->uid ? ref->uid : "");
		log->container = opts->container ? strdup(opts->container) : NULL;
	}
	if (!log || !log->namespace_ || !log->name || !log->uid ||
	    (opts->container && !log->container)) {
		if (log)
			logs_close(log);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	}
	log->loop = l;
	log->http = h;
	log->watch = watch;
	log->follow = opts->follow;
	log->tail_lines = opts->tail_lines;
	if (opts->since_us)
		gpuq_instant_print(opts->since_us, log->since, sizeof(log->since));
	log->fn = fn;
	log->arg = arg;
	loglines_init(&log->lines, opts->timestamps);
	go(log);
	*out = log;
	return 0;
}

void logs_resume(struct cluster_log *log)
{
	if (!log->paused)
		return;
	log->paused = false;
	if (log->waiting && log->req)
		http_resume(log->req);
	log->waiting = false;
}

static void free_log(struct cluster_log *log)
{
	free(log->namespace_);
	free(log->name);
	free(log->uid);
	free(log->container);
	free(log);
}

void logs_close(struct cluster_log *log)
{
	http_cancel(log->req);
	loop_cancel(log->timer);
	log->closed = true;
	if (!log->busy)
		free_log(log);
}
