#include "gpuqd/cluster/kube/pods/api_remove.h"
#include "gpuqd/cluster/kube/pods/api_int.h"
#include "gpuqd/cluster/kube/pods/api_create.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/http/url.h"

/* LOOK finds the uid, DELETE deletes, RELEASE takes our finalizer off. */
enum step { STEP_LOOK, STEP_DELETE, STEP_RELEASE };

struct removal {
	UT_hash_handle hh;
	struct asks *asks;
	char *path, *name, *uid, *token; /* token "" = do not look, name decides */
	enum step step;
	int64_t grace_us; /* < 0: as the object says */
	bool report, release, told, sooner;
	struct http_req *req;
	struct loop_timer *timer;
	struct backoff back;
	unsigned forbidden;
	struct rest *rest; /* NULL = none */
};

static void go(struct removal *m);

static void free_removal(struct removal *m)
{
	HASH_DEL(m->asks->removals, m);
	http_cancel(m->req);
	loop_cancel(m->timer);
	free(m->path);
	free(m->name);
	free(m->uid);
	free(m->token);
	free(m);
}

static void finish(struct removal *m, enum ask_outcome o, const char *message)
{
	const struct cluster_sink *sink = m->asks->sink;
	struct rest *rest = m->rest;
	bool report = m->report;
	char *name = m->name;

	if (m->sooner && o == ASK_OK) { /* asked again with less grace meanwhile */
		m->sooner = false;
		m->step = STEP_DELETE;
		go(m);
		return;
	}
	m->name = NULL;
	if (o != ASK_OK)
		log_warn("kube.delete_refused", "object=%s error=%s", m->path, LOGS(message));
	free_removal(m);
	if (rest)
		rest_done(rest, o == ASK_OK);
	if (report)
		sink->deleted(sink->arg, name, o, message);
	free(name);
}

static void on_timer(void *arg)
{
	struct removal *m = arg;

	m->timer = NULL;
	go(m);
}

static void later(struct removal *m, const struct status *st, int64_t at_least_us)
{
	int64_t wait = backoff_next_us(&m->back, ASK_FIRST_US, ASK_MAX_US);

	m->timer = loop_after(m->asks->loop, wait > at_least_us ? wait : at_least_us, on_timer, m);
	if (m->told)
		return;
	m->told = true;
	log_info("kube.delete_delayed", "object=%s error=%s", m->path, LOGS(st->text));
	if (m->report)
		m->asks->sink->deleted(m->asks->sink->arg, m->name, ASK_RETRY, st->text);
}

/* Handle an unexpected reply, in any of the three steps. */
static void otherwise(struct removal *m, const struct http_answer *a, const struct status *st)
{
	switch (st->kind) {
	case STATUS_GONE:
		m->sooner = false;
		finish(m, ASK_OK, "it is gone");
		break;
	case STATUS_REFUSED:
	case STATUS_FORBIDDEN:
	case STATUS_CLUSTER:
		/* A right that was taken away may be given again: a pod that holds devices is not
		 * given up for it. */
		if (++m->forbidden < FORBIDDEN_TRIES || (m->report && st->kind != STATUS_REFUSED))
			later(m, st, 0);
		else
			finish(m, ASK_REFUSED, st->text);
		break;
	default:
		later(m, st, a->retry_us);
	}
}

static bool begin_answer(struct removal *m, const struct http_answer *a, struct status *st)
{
	m->req = NULL;
	asks_paused(m->asks, a);
	status_read(a, st);
	return st->kind == STATUS_DONE;
}

static void looked(void *arg, const struct http_answer *a)
{
	struct removal *m = arg;
	struct status st;
	json_t *obj;
	const json_t *meta;
	const char *uid;

	if (!begin_answer(m, a, &st)) {
		otherwise(m, a, &st);
		return;
	}
	obj = json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL);
	meta = json_object_get(obj, "metadata");
	uid = kube_str(meta, "uid");
	if (strcmp(kube_str(json_object_get(meta, "annotations"), KUBE_A_TOKEN), m->token) != 0 ||
	    !*uid) {
		json_decref(obj);
		m->sooner = false;
		finish(m, ASK_OK, "another object has its name");
		return;
	}
	free(m->uid);
	m->uid = strdup(uid);
	json_decref(obj);
	if (!m->uid)
		abort();
	m->step = STEP_DELETE;
	go(m);
}

static bool has_finalizer(const struct http_answer *a)
{
	json_t *obj = json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL), *f;
	bool there = false;
	size_t i;

	json_array_foreach(kube_path(obj, "metadata", "finalizers"), i, f) there =
		there || (json_is_string(f) && strcmp(json_string_value(f), KUBE_FINALIZER) == 0);
	json_decref(obj);
	return there;
}

static void deleted(void *arg, const struct http_answer *a)
{
	struct removal *m = arg;
	struct status st;

	(void)FAILPOINT("kube.delete.answered");
	if (begin_answer(m, a, &st)) {
		if (m->release && has_finalizer(a)) {
			m->step = STEP_RELEASE;
			go(m);
		} else {
			finish(m, ASK_OK, "");
		}
	} else if (st.kind == STATUS_CONFLICT && *m->uid) {
		/* The precondition: the object with our uid is gone, another has its name. */
		m->sooner = false;
		finish(m, ASK_OK, "it is gone");
	} else {
		otherwise(m, a, &st);
	}
}

static void released(void *arg, const struct http_answer *a)
{
	struct removal *m = arg;
	struct status st;

	if (begin_answer(m, a, &st) || (st.kind == STATUS_CONFLICT && *m->uid))
		finish(m, ASK_OK, "");
	else
		otherwise(m, a, &st);
}

static char *delete_body(const struct removal *m)
{
	json_t *v = json_pack("{s:s, s:s, s:s}", "kind", "DeleteOptions", "apiVersion", "v1",
			      "propagationPolicy", "Background");
	int64_t grace_s = (m->grace_us + 999999) / 1000000;
	char *text;

	/* 0 would strike the object from the records while its processes run on. */
	if (m->grace_us >= 0)
		json_object_set_new(v, "gracePeriodSeconds",
				    json_integer(grace_s < 1 ? 1 : grace_s));
	if (*m->uid)
		json_object_set_new(v, "preconditions", json_pack("{s:s}", "uid", m->uid));
	text = json_dumps(v, JSON_COMPACT);
	json_decref(v);
	return text;
}

/* As a strategic merge, which takes one finalizer out and leaves the others. */
static char *release_body(const struct removal *m)
{
	json_t *v = json_pack("{s:{s:[s]}}", "metadata", "$deleteFromPrimitiveList/finalizers",
			      KUBE_FINALIZER);
	char *text;

	if (*m->uid)
		json_object_set_new(json_object_get(v, "metadata"), "uid", json_string(m->uid));
	text = json_dumps(v, JSON_COMPACT);
	json_decref(v);
	return text;
}

static void go(struct removal *m)
{
	/* All that is examined of a reply is the object's metadata. */
	struct http_call call = { .path = m->path, .arg = m, .metadata = true };
	int64_t wait = asks_pause_us(m->asks);
	char *body = NULL;

	if (wait > 0) {
		m->timer = loop_after(m->asks->loop, wait, on_timer, m);
		return;
	}
	switch (m->step) {
	case STEP_LOOK:
		call.method = "GET";
		call.on_end = looked;
		break;
	case STEP_DELETE:
		call.method = "DELETE";
		call.body = body = delete_body(m);
		call.on_end = deleted;
		break;
	case STEP_RELEASE:
		call.method = "PATCH";
		call.content_type = "application/strategic-merge-patch+json";
		call.body = body = release_body(m);
		call.on_end = released;
		break;
	}
	call.n_body = body ? strlen(body) : 0;
	m->req = http_start(m->asks->http, &call);
	free(body);
}

static struct removal *make(struct asks *a, const char *path, const char *name, const char *uid,
			    const char *token)
{
	struct removal *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->asks = a;
	m->path = strdup(path);
	m->name = strdup(name);
	m->uid = strdup(uid ? uid : "");
	m->token = strdup(token ? token : "");
	if (!m->path || !m->name || !m->uid || !m->token)
		abort();
	m->grace_us = -1;
	m->step = *m->uid || !*m->token ? STEP_DELETE : STEP_LOOK;
	HASH_ADD_KEYPTR(hh, a->removals, m->path, strlen(m->path), m);
	return m;
}

static struct removal *find(struct asks *a, const char *path)
{
	struct removal *m;

	HASH_FIND_STR(a->removals, path, m);
	return m;
}

/* Wait no longer: it has been requested again. */
static void hurry(struct removal *m)
{
	if (!m->timer)
		return;
	loop_cancel(m->timer);
	m->timer = loop_after(m->asks->loop, 0, on_timer, m);
}

static char *pod_path(struct asks *a, const struct pod_ref *ref)
{
	const char *ns = ref->namespace_ && *ref->namespace_ ? ref->namespace_ : a->namespace_;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	char *out;

	url_object(&b, ns, "pods", ref->name);
	out = strdup(gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	if (!out)
		abort();
	return out;
}

void asks_delete(struct asks *a, const struct pod_ref *ref, int64_t grace_us)
{
	struct removal *m;
	char *path;

	if (create_leave(a, ref, grace_us))
		return;
	path = pod_path(a, ref);
	m = find(a, path);
	if (m) {
		m->report = true;
		/* The server shortens a grace that was given, never lengthens it. */
		if (m->grace_us < 0 || grace_us < m->grace_us) {
			m->grace_us = grace_us;
			m->sooner = m->req != NULL && m->step == STEP_DELETE;
		}
		hurry(m);
	} else {
		m = make(a, path, pod_ref_as(ref), ref->uid, ref->token);
		m->report = true;
		m->grace_us = grace_us;
		go(m);
	}
	free(path);
}

void asks_forget(struct asks *a, const struct pod_ref *ref)
{
	char *path = pod_path(a, ref);
	struct removal *m = find(a, path);

	if (m) {
		m->release = true;
		hurry(m);
	} else {
		m = make(a, path, pod_ref_as(ref), ref->uid, ref->token);
		m->release = true;
		go(m);
	}
	free(path);
}

void removal_path(struct asks *a, const char *path, struct rest *rest)
{
	struct removal *m = make(a, path, "", "", "");

	m->rest = rest;
	go(m);
}

void removal_free_all(struct asks *a)
{
	struct removal *m, *next;

	HASH_ITER(hh, a->removals, m, next)
		free_removal(m);
}
