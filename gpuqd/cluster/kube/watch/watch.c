#include "gpuqd/cluster/kube/watch/watch.h"
#include "gpuqd/cluster/kube/watch/watch_int.h"
#include "gpuqd/cluster/kube/watch/watch_jobs.h"
#include "gpuqd/cluster/kube/watch/watch_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/watch/decode_pod.h"
#include "gpuqd/cluster/kube/watch/decode_node.h"
#include "gpuqd/cluster/kube/watch/missing.h"
#include "gpuqd/cluster/kube/watch/split.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"

#define SECOND_US INT64_C(1000000)
#define PAGE 500
#define LIST_LIMIT_US (120 * SECOND_US)
#define SILENCE_US (90 * SECOND_US) /* bookmarks come about every 60 s */
#define STALE_US (10 * SECOND_US)
#define FIRST_WAIT_US (800 * INT64_C(1000))
#define MAX_WAIT_US (30 * SECOND_US)
#define CALM_US (20 * SECOND_US) /* a watch that lasts so long starts the back-off anew */
#define SETTLE_US (300 * INT64_C(1000))
#define OFF_US (60 * SECOND_US) /* a kind that may not be read is requested no more often */
#define REST_US (100 * INT64_C(1000))
#define LULL_US INT64_C(1000) /* no byte for so long: all that had come is read */
#define SAY_US (10 * SECOND_US) /* skipped objects are logged no more often */

static void list_page(struct reflector *r);
static void begin(struct reflector *r, enum step step);

/* ---- objects ---- */

void watch_skip(struct reflector *r, const char *why)
{
	int64_t now = loop_mono_us(r->watch->loop);

	r->skipped++;
	if (r->said_us && now - r->said_us < SAY_US)
		return;
	r->said_us = now;
	log_warn("kube.object_skipped", "kind=%s count=%llu error=%s", r->kind->word,
		 (unsigned long long)(r->skipped - r->said), LOGS(why));
	r->said = r->skipped;
}

static void node_seen(struct reflector *r, struct kube_object *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct node_fact n;
	struct known_thing t = { .namespace_ = "", .uid = "", .token = "", .node = "" };

	if (kube_read_node(o, &n, &err) != 0) {
		watch_skip(r, err.text);
		return;
	}
	t.name = n.name;
	t.list = r->list;
	if (known_set(r->known, &t) != 0) {
		watch_skip(r, "no memory");
		return;
	}
	if (r->watch->before.node)
		r->watch->before.node(r->watch->before.arg, &n);
	r->watch->sink->node_seen(r->watch->sink->arg, &n);
}

static void node_deleted(struct reflector *r, struct kube_object *o)
{
	const char *name = kube_str(json_object_get(o->object, "metadata"), "name");

	if (!known_find(r->known, "", name))
		return;
	known_drop(r->known, "", name);
	r->watch->sink->node_gone(r->watch->sink->arg, name);
}

static void node_gone(void *arg, const struct known_thing *t)
{
	struct reflector *r = arg;

	r->watch->sink->node_gone(r->watch->sink->arg, t->name);
}

static void tell_pod(const struct watch *w, const struct pod_fact *p, bool gone)
{
	if (w->before.pod)
		w->before.pod(w->before.arg, p, gone);
}

/* In place of the node of a placeholder, which never has one. */
#define STANDS "/"

static bool is_placeholder(const struct reflector *r, const struct kube_object *o)
{
	const json_t *labels = kube_path(o->object, "metadata", "labels");

	return *kube_str(labels, KUBE_L_PLACEHOLDER) &&
	       strcmp(kube_str(labels, KUBE_L_CLUSTER), r->watch->cluster_id) == 0;
}

static void tell_placeholder(const struct watch *w, const struct known_thing *t, bool gone)
{
	if (w->on_placeholder)
		w->on_placeholder(w->on_placeholder_arg, t, gone);
}

/* Report a pod that went away while the watch was down. */
static void pod_gone(void *arg, const struct known_thing *t)
{
	struct reflector *r = arg;
	struct pod_fact p = {
		.name = t->name,
		.namespace_ = t->namespace_,
		.uid = t->uid,
		.token = t->token,
		.node = t->node,
		.phase = t->phase,
		.reason = "",
		.message = "",
	};

	if (strcmp(t->node, STANDS) == 0) {
		tell_placeholder(r->watch, t, true);
		return;
	}
	tell_pod(r->watch, &p, true);
	r->watch->sink->pod_gone(r->watch->sink->arg, &p);
}

static void pod_seen(struct reflector *r, struct kube_object *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const bool stands = is_placeholder(r, o);
	const struct known_thing *old;
	struct pod_fact p;
	struct known_thing t;

	if (kube_read_pod(o, r->watch->cluster_id, &p, &err) != 0) {
		watch_skip(r, err.text);
		return;
	}
	old = known_find(r->known, p.namespace_, p.name);
	/* Deleted and made again between two looks: two pods, one name. */
	if (old && *old->uid && strcmp(old->uid, p.uid) != 0)
		pod_gone(r, old);
	t = (struct known_thing){ .namespace_ = p.namespace_,
				  .name = p.name,
				  .uid = p.uid,
				  .token = p.token,
				  .node = stands ? STANDS : p.node,
				  .phase = p.phase,
				  .list = r->list };
	if (known_set(r->known, &t) != 0) {
		watch_skip(r, "no memory");
		return;
	}
	if (stands) {
		tell_placeholder(r->watch, &t, false);
		return;
	}
	tell_pod(r->watch, &p, false);
	r->watch->sink->pod_seen(r->watch->sink->arg, &p);
}

static void pod_deleted(struct reflector *r, struct kube_object *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_fact p;

	if (kube_read_pod(o, r->watch->cluster_id, &p, &err) != 0) {
		watch_skip(r, err.text);
		return;
	}
	known_drop(r->known, p.namespace_, p.name);
	if (is_placeholder(r, o)) {
		tell_placeholder(r->watch,
				 &(struct known_thing){ .namespace_ = p.namespace_,
							.name = p.name,
							.uid = p.uid,
							.token = p.token },
				 true);
		return;
	}
	tell_pod(r->watch, &p, true);
	r->watch->sink->pod_gone(r->watch->sink->arg, &p);
}

static const struct kind node_kind = { .word = "nodes",
				       .path = "/api/v1/nodes",
				       .seen = node_seen,
				       .deleted = node_deleted,
				       .gone = node_gone };
static const struct kind pod_kind = { .word = "pods",
				      .path = "/api/v1/pods",
				      .seen = pod_seen,
				      .deleted = pod_deleted,
				      .gone = pod_gone };

/* ---- how old our knowledge is ---- */

static struct reflector *oldest(struct watch *w)
{
	struct reflector *a = &w->nodes, *b = &w->pods;

	if (!a->broken_us)
		return b->broken_us ? b : NULL;
	return b->broken_us && b->broken_us < a->broken_us ? b : a;
}

static void on_stale(void *arg)
{
	struct watch *w = arg;
	struct reflector *r = oldest(w);

	w->stale_timer = NULL;
	if (!r || w->stale)
		return;
	w->stale = true;
	log_warn("kube.stale", "kind=%s why=%s", r->kind->word, LOGS(r->why));
	w->sink->stale(w->sink->arg, r->broken_us, r->why);
}

static void broke(struct reflector *r, int64_t ago_us, const char *why)
{
	struct watch *w = r->watch;

	r->fresh = false;
	loop_cancel(r->settle);
	r->settle = NULL;
	if (why != r->why)
		snprintf(r->why, sizeof(r->why), "%s", why);
	if (r->kind->optional)
		return;
	if (!r->broken_us)
		r->broken_us = loop_now_us(w->loop) - ago_us;
	if (!w->stale && !w->stale_timer)
		w->stale_timer = loop_after(w->loop, STALE_US, on_stale, w);
}

static void whole(struct reflector *r)
{
	struct watch *w = r->watch;

	loop_cancel(r->settle);
	r->settle = NULL;
	r->fresh = true;
	r->broken_us = 0;
	if (r->kind->optional || oldest(w))
		return;
	loop_cancel(w->stale_timer);
	w->stale_timer = NULL;
	/* Until the first lists are there, the listener takes what it has for old. */
	if (!w->stale && w->begun)
		return;
	w->stale = false;
	w->begun = true;
	log_notice("kube.fresh", "pods=%zu nodes=%zu", known_count(w->pods.known),
		   known_count(w->nodes.known));
	w->sink->stale(w->sink->arg, 0, "");
}

/* ---- versions ---- */

/* Opaque, but numbers wherever they are made today; what is none is not compared. */
static bool older(const char *a, const char *b)
{
	char *end_a, *end_b;
	unsigned long long x, y;

	if (!a || !b || !*a || !*b)
		return false;
	x = strtoull(a, &end_a, 10);
	y = strtoull(b, &end_b, 10);
	return !*end_a && !*end_b && x < y;
}

static void set_string(char **at, const char *s)
{
	char *copy = s ? strdup(s) : NULL;

	if (s && !copy)
		abort(); /* as loop_after() */
	free(*at);
	*at = copy;
}

/* ---- the steps ---- */

static void on_retry(void *arg)
{
	struct reflector *r = arg;

	r->retry = NULL;
	begin(r, r->step);
}

static void again(struct reflector *r, enum step step, int64_t at_least_us)
{
	int64_t wait_us = backoff_next_us(&r->back, FIRST_WAIT_US, MAX_WAIT_US);
	if (wait_us < at_least_us)
		wait_us = at_least_us + random_between(0, SECOND_US);
	r->step = step;
	r->retry = loop_after(r->watch->loop, wait_us, on_retry, r);
}

/* Our version is of no use to the server: take one new list, at once the first time. */
static void start_over(struct reflector *r, const char *why)
{
	log_notice("kube.relist", "kind=%s why=%s", r->kind->word, LOGS(why));
	broke(r, 0, why);
	r->relist = false;
	if (r->back.fails == 0) {
		r->back.fails = 1;
		begin(r, STEP_LIST);
	} else {
		again(r, STEP_LIST, 0);
	}
}

static bool on_event(void *arg, enum split_what what, const char *json, size_t n)
{
	struct reflector *r = arg;
	struct kube_object o = KUBE_OBJECT_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	json_int_t code;

	(void)what;
	r->events++;
	if (kube_parse_event(json, n, &o, &err) != 0) {
		watch_skip(r, err.text);
		return true;
	}
	if (o.event == KUBE_ERROR) {
		code = json_integer_value(json_object_get(o.object, "code"));
		snprintf(r->why, sizeof(r->why), "%d: %s", (int)code,
			 kube_str(o.object, "message"));
		r->relist = true;
	} else if (older(o.version, r->version)) {
		snprintf(r->why, sizeof(r->why), "version %s after %s: the cluster was restored",
			 o.version, r->version);
		r->relist = true;
	} else {
		if (o.event == KUBE_DELETED)
			r->kind->deleted(r, &o);
		else if (o.event != KUBE_BOOKMARK)
			r->kind->seen(r, &o);
		if (*o.version)
			set_string(&r->version, o.version);
		if (!r->fresh)
			whole(r);
	}
	kube_object_done(&o);
	return !r->relist;
}

static void say_skipped(struct reflector *r, const struct split *before)
{
	if (r->split.too_big != before->too_big)
		watch_skip(r, "larger than 2 MiB");
	if (r->split.too_deep != before->too_deep)
		watch_skip(r, "nested too deeply");
	if (r->split.garbage != before->garbage)
		watch_skip(r, "not JSON");
}

static void on_rested(void *arg)
{
	struct reflector *r = arg;

	r->rest = NULL;
	r->resting = false;
	if (r->paused && r->req)
		http_resume(r->req);
	r->paused = false;
}

/* All that has come is read before there is a rest: the bytes arrive in pieces of a few KiB,
 * and one piece for each rest would fall behind. */
static void on_lull(void *arg)
{
	struct reflector *r = arg;
	bool more = r->fed;

	r->fed = false;
	r->resting = !more;
	r->rest =
		loop_after(r->watch->loop, more ? LULL_US : REST_US, more ? on_lull : on_rested, r);
}

/* Where others change their pods all the time, most of the work is to be woken for each change: while
 * nothing depends on them, they are read together. */
static void take_rest(struct reflector *r)
{
	const struct cluster_sink *sink = r->watch->sink;

	r->fed = true;
	if (r->step != STEP_WATCH || !r->fresh || r->rest || !sink->calm || !sink->calm(sink->arg))
		return;
	r->fed = false;
	r->rest = loop_after(r->watch->loop, LULL_US, on_lull, r);
}

static enum http_want feed(void *arg, const char *bytes, size_t n)
{
	struct reflector *r = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct split before = r->split;

	if (r->resting) {
		r->paused = true;
		return HTTP_PAUSE;
	}
	if (split_feed(&r->split, bytes, n, &err) != 0) {
		if (!r->relist)
			snprintf(r->why, sizeof(r->why), "%s", err.text);
		return HTTP_STOP;
	}
	say_skipped(r, &before);
	take_rest(r);
	return HTTP_MORE;
}

static void on_settle(void *arg)
{
	struct reflector *r = arg;

	r->settle = NULL;
	whole(r);
}

/* A server that has forgotten our version says 200 first and so at once afterwards:
 * only a stream that stands is one. */
static void on_watch_open(void *arg)
{
	struct reflector *r = arg;

	r->opened_us = loop_mono_us(r->watch->loop);
	if (!r->settle)
		r->settle = loop_after(r->watch->loop, SETTLE_US, on_settle, r);
}

static void watch_ended(void *arg, const struct http_answer *a)
{
	struct reflector *r = arg;
	bool quick = !r->opened_us ||
		     (loop_mono_us(r->watch->loop) - r->opened_us < SECOND_US && !r->events);
	struct status st;

	r->req = NULL;
	if (r->opened_us && loop_mono_us(r->watch->loop) - r->opened_us > CALM_US)
		r->back.fails = 0;
	if (r->relist) {
		start_over(r, r->why);
		return;
	}
	if (a->status == 200 && a->complete && !quick) {
		/* The server ends each watch after a while; this is its usual end. So does one
		 * that is stopped to have its store restored, hence the probe. */
		begin(r, STEP_PROBE);
		broke(r, 0, "the watch is being renewed");
		return;
	}
	if (a->status == 200) {
		broke(r, strstr(a->error, "no byte") ? SILENCE_US : 0,
		      *a->error ? a->error : "the watch ended at once");
		log_info("kube.watch_broken", "kind=%s why=%s", r->kind->word, LOGS(r->why));
		again(r, STEP_PROBE, a->retry_us);
		return;
	}
	status_read(a, &st);
	if (st.kind == STATUS_EXPIRED) {
		start_over(r, st.text);
		return;
	}
	broke(r, 0, st.text);
	if (watch_is_off(r, a->status)) {
		again(r, STEP_LIST, OFF_US);
		return;
	}
	log_info("kube.watch_refused", "kind=%s why=%s", r->kind->word, LOGS(st.text));
	again(r, a->status ? STEP_WATCH : STEP_PROBE, a->retry_us);
}

static void watch_start(struct reflector *r)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET",
				  .stream = true,
				  .limit_us = SILENCE_US,
				  .on_open = on_watch_open,
				  .on_data = feed,
				  .on_end = watch_ended,
				  .arg = r };

	gpuq_buf_printf(&path, "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%d",
			r->kind->path, (int)random_between(300, 600));
	if (r->kind->selector)
		url_query(&path, "labelSelector", r->kind->selector);
	url_query(&path, "resourceVersion", r->version);
	split_done(&r->split);
	split_init(&r->split, SPLIT_STREAM, on_event, r);
	r->split.whole = r->kind->optional;
	r->events = 0;
	r->opened_us = 0;
	call.path = gpuq_buf_str(&path);
	r->req = http_start(r->watch->http, &call);
	gpuq_buf_done(&path);
}

static void list_failed(struct reflector *r, const struct http_answer *a)
{
	struct status st;

	status_read(a, &st);
	if (st.kind == STATUS_DONE)
		snprintf(st.text, sizeof(st.text), "%s", r->why);
	broke(r, 0, st.text);
	if (watch_turns(r, a->status)) {
		begin(r, STEP_LIST);
		return;
	}
	if (watch_is_off(r, a->status)) {
		again(r, STEP_LIST, OFF_US);
		return;
	}
	log_info("kube.list_failed", "kind=%s why=%s", r->kind->word, LOGS(st.text));
	again(r, r->step, a->retry_us);
}

/* An unreadable object has no name, so it may be one that seems to be missing. For a pod of gpuq
 * the server is queried; an unreadable foreign pod counts for nothing anyway. */
static void pod_missing(void *arg, const struct known_thing *t)
{
	struct reflector *r = arg;

	if (*t->token) {
		missing_ask(r->watch->missing, t->namespace_, t->name);
		return;
	}
	pod_gone(r, t);
	known_drop(r->known, t->namespace_, t->name);
}

static void on_missing(void *arg, const char *namespace_, const char *name)
{
	struct watch *w = arg;
	const struct known_thing *t = known_find(w->pods.known, namespace_, name);

	if (!t || t->list == w->pods.list)
		return;
	pod_gone(&w->pods, t);
	known_drop(w->pods.known, namespace_, name);
}

static void list_complete(struct reflector *r)
{
	struct watch *w = r->watch;
	bool first = !r->listed;

	if (older(r->page_version, r->version))
		log_warn("kube.rewound", "kind=%s version=%s before=%s", r->kind->word,
			 LOGS(r->page_version), LOGS(r->version));
	if (r->skipped == r->skipped_before)
		known_sweep(r->known, r->list, r->kind->gone, r);
	else if (r == &w->pods)
		known_missing(r->known, r->list, pod_missing, r);
	set_string(&r->version, r->page_version);
	r->listed = true;
	log_info("kube.listed", "kind=%s count=%zu version=%s", r->kind->word,
		 known_count(r->known), LOGS(r->version));
	/* "What was not in it is gone" can be said of pods only after a list of pods. */
	if (r == &w->pods && w->before.listed)
		w->before.listed(w->before.arg);
	if (r == &w->pods)
		w->sink->list_done(w->sink->arg);
	if (r->kind->optional)
		watch_is_on(r);
	begin(r, STEP_WATCH);
	/* Nodes first, so that no pod is heard of before the node it runs on. */
	if (r == &w->nodes && first && !watch_objects_begin(w))
		begin(&w->pods, STEP_LIST);
	else if (r->kind->optional)
		watch_answered(r);
}

void watch_answered(struct reflector *r)
{
	struct watch *w = r->watch;

	if (r->answered)
		return;
	r->answered = true;
	for (size_t i = 0; i < sizeof(w->objects) / sizeof(w->objects[0]); i++)
		if (!w->objects[i].answered)
			return;
	begin(&w->pods, STEP_LIST);
}

void watch_begin(struct reflector *r)
{
	begin(r, STEP_LIST);
}

static void list_ended(void *arg, const struct http_answer *a)
{
	struct reflector *r = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	r->req = NULL;
	if (a->status == 200 && a->complete && split_end(&r->split, &err) == 0 && r->page_version &&
	    *r->page_version) {
		if (r->next_page && *r->next_page)
			list_page(r);
		else
			list_complete(r);
		return;
	}
	if (err.code)
		snprintf(r->why, sizeof(r->why), "%s", err.text);
	else if (a->status == 200 && a->complete)
		snprintf(r->why, sizeof(r->why), "the list has no version");
	list_failed(r, a);
}

static bool on_item(void *arg, enum split_what what, const char *json, size_t n)
{
	struct reflector *r = arg;
	struct kube_object o = KUBE_OBJECT_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (kube_parse_item(json, n, &o, &err) != 0) {
		watch_skip(r, err.text);
		return true;
	}
	if (what == SPLIT_META) {
		set_string(&r->page_version, kube_str(o.object, "resourceVersion"));
		set_string(&r->next_page, kube_str(o.object, "continue"));
	} else if (r->step == STEP_LIST) {
		r->kind->seen(r, &o);
	}
	kube_object_done(&o);
	return true;
}

/* Ask only for the version: has the cluster's store been set back while we were cut
 * off? A watch from a version that is yet to come would stay silent. */
static void probe_ended(void *arg, const struct http_answer *a)
{
	struct reflector *r = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	r->req = NULL;
	if (a->status != 200 || !a->complete || split_end(&r->split, &err) != 0) {
		list_failed(r, a);
		return;
	}
	if (older(r->page_version, r->version)) {
		start_over(r, "the cluster was restored to an earlier state");
		return;
	}
	begin(r, STEP_WATCH);
}

static void get_page(struct reflector *r, int limit, const char *from,
		     void (*ended)(void *, const struct http_answer *))
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET",
				  .limit_us = LIST_LIMIT_US,
				  .on_data = feed,
				  .on_end = ended,
				  .arg = r };

	gpuq_buf_printf(&path, "%s?limit=%d", r->kind->path, limit);
	if (r->kind->selector)
		url_query(&path, "labelSelector", r->kind->selector);
	if (from && *from)
		url_query(&path, "continue", from);
	set_string(&r->page_version, NULL);
	set_string(&r->next_page, NULL);
	split_done(&r->split);
	split_init(&r->split, SPLIT_LIST, on_item, r);
	r->split.whole = r->kind->optional;
	call.path = gpuq_buf_str(&path);
	r->req = http_start(r->watch->http, &call);
	gpuq_buf_done(&path);
}

static void list_page(struct reflector *r)
{
	char *from = r->next_page;

	r->next_page = NULL;
	get_page(r, PAGE, from, list_ended);
	free(from);
}

static void begin(struct reflector *r, enum step step)
{
	r->step = step;
	r->relist = false;
	switch (step) {
	case STEP_LIST:
		r->list++;
		r->skipped_before = r->skipped;
		set_string(&r->next_page, NULL);
		list_page(r);
		break;
	case STEP_WATCH:
		watch_start(r);
		break;
	case STEP_PROBE:
		get_page(r, 1, NULL, probe_ended);
		break;
	}
}

void watch_before_sink(struct watch *w, const struct watch_before *before)
{
	w->before = *before;
}

void watch_on_placeholder(struct watch *w, watch_placeholder_fn fn, void *arg)
{
	w->on_placeholder = fn;
	w->on_placeholder_arg = arg;
}

const struct known_thing *watch_pod(const struct watch *w, const char *namespace_, const char *name)
{
	return known_find(w->pods.known, namespace_, name);
}

void watch_each_pod(const struct watch *w, void (*fn)(void *arg, const struct known_thing *t),
		    void *arg)
{
	known_each(w->pods.known, fn, arg);
}

void watch_init(struct watch *w, struct reflector *r, const struct kind *kind)
{
	r->watch = w;
	r->kind = kind;
	r->known = known_new();
	broke(r, 0, "the first list is not there yet");
}

int watch_new(struct loop *l, struct http *h, const char *cluster_id,
	      const struct cluster_sink *sink, struct watch **out, struct gpuq_err *err)
{
	struct watch *w = calloc(1, sizeof(*w));
	bool all = true;

	if (!w)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	w->loop = l;
	w->http = h;
	w->cluster_id = cluster_id;
	w->sink = sink;
	watch_init(w, &w->nodes, &node_kind);
	watch_init(w, &w->pods, &pod_kind);
	for (int i = 0; i < OBJECT_BINDING; i++) {
		watch_init(w, &w->objects[i], watch_object_kind((enum object_kind)i));
		all &= w->objects[i].known != NULL;
	}
	w->missing = missing_new(l, h, on_missing, w);
	if (!w->nodes.known || !w->pods.known || !w->missing || !all) {
		watch_free(w);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	}
	begin(&w->nodes, STEP_LIST);
	*out = w;
	return 0;
}

void watch_fini(struct reflector *r)
{
	http_cancel(r->req);
	loop_cancel(r->retry);
	loop_cancel(r->settle);
	loop_cancel(r->rest);
	split_done(&r->split);
	known_free(r->known);
	free(r->version);
	free(r->page_version);
	free(r->next_page);
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	missing_free(w->missing);
	watch_requests(w, NULL, NULL, NULL, NULL);
	watch_jobs(w, NULL, 0, NULL, NULL, NULL);
	watch_fini(&w->nodes);
	watch_fini(&w->pods);
	for (int i = 0; i < OBJECT_BINDING; i++)
		watch_fini(&w->objects[i]);
	loop_cancel(w->stale_timer);
	free(w);
}
