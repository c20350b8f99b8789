#include "gpuqd/cluster/kube/adopt/adopt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#define uthash_fatal(msg) abort() /* as loop_after(): the caller waits for an end */
#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/adopt/cut.h"
#include "gpuqd/cluster/kube/adopt/gang.h"
#include "gpuqd/cluster/kube/adopt/suspended.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define AT_ONCE 8
#define AGAIN_US INT64_C(2000000)
#define WAITING_MAX 100000u /* pods without a node that are kept in mind */
#define SAID_MAX 20000u
#define TEXT_MAX 1000 /* of an Event */

struct stray {
	UT_hash_handle hh; /* by uid */
	struct adopts *a;
	struct stray *prev, *next; /* of those that are to be read */
	bool due, reported;
	json_t *pod; /* while the object of its gang is read */
	struct http_req *req;
	char *namespace_, *name;
	char uid[48];
};

struct said {
	UT_hash_handle hh;
	char name[300];
};

struct adopts {
	struct loop *loop;
	struct http *http;
	const struct cluster_sink *sink;
	struct stray *all, *due;
	struct said *said;
	char **namespaces;
	size_t n_namespaces, n_reading;
	struct loop_timer *timer;
	bool denied; /* the right to write Events lacks, which was said */
};

static void arm(struct adopts *a, int64_t wait_us);

static bool is_wanted(const struct adopts *a, const char *namespace_)
{
	for (size_t i = 0; i < a->n_namespaces; i++)
		if (strcmp(a->namespaces[i], namespace_) == 0)
			return true;
	return false;
}

static void not_due(struct stray *s)
{
	struct adopts *a = s->a;

	if (!s->due)
		return;
	s->due = false;
	*(s->prev ? &s->prev->next : &a->due) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->prev = s->next = NULL;
}

static void be_due(struct stray *s)
{
	struct adopts *a = s->a;

	if (s->due || s->req)
		return;
	s->due = true;
	s->prev = NULL;
	s->next = a->due;
	if (a->due)
		a->due->prev = s;
	a->due = s;
	arm(a, 0);
}

static void drop(struct stray *s)
{
	not_due(s);
	HASH_DEL(s->a->all, s);
	s->a->n_reading -= s->req != NULL;
	http_cancel(s->req);
	json_decref(s->pod);
	free(s->namespace_);
	free(s->name);
	free(s);
}

void adopts_tell(struct adopts *a, struct adopt_fact *f, const json_t *pod)
{
	json_t *cut = adopt_cut(pod);
	char *text = cut ? json_dumps(cut, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	json_decref(cut);
	if (!text)
		return;
	f->manifest = text;
	f->n_manifest = strlen(text);
	f->sees_devices = adopt_sees_devices(pod);
	if (a->sink->adoptable)
		a->sink->adoptable(a->sink->arg, f);
	free(text);
}

static void not_queued(struct stray *s, const char *why)
{
	const struct pod_ref ref = { .name = s->name, .namespace_ = s->namespace_, .uid = s->uid };

	adopts_say(s->a, "Pod", &ref, true, "NotQueued", why);
}

/* g NULL: it is in no gang; its object NULL: the pod itself tells the size. */
static void report(struct stray *s, const json_t *pod, const struct gang *g, const json_t *object)
{
	struct adopt_fact f = { .namespace_ = s->namespace_, .name = s->name, .uid = s->uid };
	struct gpuq_err err = GPUQ_ERR_INIT;
	char owner[254], gang[600] = "", why[700];
	const char *uid = kube_str(json_object_get(object, "metadata"), "uid");

	adopt_owner(pod, &f.owner_kind, owner, &f.owner_uid);
	f.owner_name = owner;
	if (g) {
		snprintf(gang, sizeof(gang), "%s/%s", g->kind, g->name);
		f.owner_kind = g->kind;
		f.owner_name = g->name;
		f.owner_uid = *uid ? uid : f.owner_uid;
		if (gang_size(object, g, &f.n_gang, &err) != 0) {
			snprintf(why, sizeof(why), "its gang, %.300s: %.380s", gang, err.text);
			not_queued(s, why);
		}
	}
	f.gang = gang;
	s->reported = true;
	adopts_tell(s->a, &f, pod);
}

/* One that waits behind the gate is not in a gang; its Job has labels that it has not. */
static void report_gated(struct stray *s, const json_t *pod, const json_t *job)
{
	struct adopt_fact f = { .namespace_ = s->namespace_,
				.name = s->name,
				.uid = s->uid,
				.gang = "",
				.gated = true };
	json_t *whole = json_deep_copy(pod);
	char owner[254];

	if (!whole)
		return;
	suspended_inherit(whole, job);
	adopt_owner(pod, &f.owner_kind, owner, &f.owner_uid);
	f.owner_name = owner;
	s->reported = true;
	adopts_tell(s->a, &f, whole);
	json_decref(whole);
}

/* True if it waits behind the gate, and is of a Job. */
static bool is_gated(const json_t *pod, char name[254])
{
	const char *kind, *uid;

	adopt_owner(pod, &kind, name, &uid);
	return kube_waits_for_us(pod) && strcmp(kind, "Job") == 0;
}

/* Find the object that has to be read with a pod. */
static bool companion(const json_t *pod, struct gang *out, char name[254])
{
	if (!is_gated(pod, name))
		return gang_of(pod, out);
	*out = (struct gang){ "Job", name, "batch", "v1", "jobs", 0 };
	return true;
}

static json_t *object_of(const struct http_answer *answer)
{
	return answer->complete && answer->status == 200
		       ? json_loadb(answer->body, answer->n, JSON_ALLOW_NUL, NULL)
		       : NULL;
}

static void on_gang(void *arg, const struct http_answer *answer)
{
	struct stray *s = arg;
	struct adopts *a = s->a;
	json_t *object = object_of(answer), *pod = s->pod;
	struct gpuq_err err = GPUQ_ERR_INIT;
	char name[254];
	struct gang g = { .kind = "", .name = "" };

	s->req = NULL;
	s->pod = NULL;
	a->n_reading--;
	if (companion(pod, &g, name) && object && is_gated(pod, name)) {
		report_gated(s, pod, object);
	} else if (object) {
		report(s, pod, &g, object);
	} else if (answer->status == 404 || answer->status == 403) {
		gpuq_fail(&err, GPUQ_ENOENT, "%s %s, %s, %s", g.kind, g.name,
			  is_gated(pod, name) ? "which it belongs to"
					      : "which says how many pods start together",
			  answer->status == 404 ? "does not exist"
						: "may not be read by gpuqd (adopt.yaml)");
		not_queued(s, err.text);
		be_due(s);
		arm(a, 5 * AGAIN_US);
	} else {
		be_due(s);
		arm(a, answer->retry_us > AGAIN_US ? answer->retry_us : AGAIN_US);
	}
	json_decref(object);
	json_decref(pod);
	if (a->due && !a->timer)
		arm(a, 0);
}

static void read_gang(struct stray *s, const struct gang *g, json_t *pod)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET", .on_end = on_gang, .arg = s };

	gang_path(g, s->namespace_, &path);
	call.path = gpuq_buf_str(&path);
	s->pod = json_incref(pod);
	s->a->n_reading++;
	s->req = http_start(s->a->http, &call);
	gpuq_buf_done(&path);
}

static void on_read(void *arg, const struct http_answer *answer)
{
	struct stray *s = arg;
	struct adopts *a = s->a;
	json_t *pod = object_of(answer);
	char name[254];
	struct gang g;

	s->req = NULL;
	a->n_reading--;
	/* Another pod may have the name by now, which the watch reports. */
	if (pod && strcmp(kube_str(json_object_get(pod, "metadata"), "uid"), s->uid) == 0 &&
	    is_wanted(a, s->namespace_)) {
		if (kube_waits_for_us(pod) && !is_gated(pod, name))
			not_queued(s,
				   "the scheduling gate " KUBE_GATE " is for pods of Jobs alone");
		else if (!companion(pod, &g, name))
			report(s, pod, NULL, NULL);
		else if (*g.group)
			read_gang(s, &g, pod);
		else
			report(s, pod, &g, NULL);
	} else if (!pod && answer->status != 404) {
		be_due(s);
		arm(a, answer->retry_us > AGAIN_US ? answer->retry_us : AGAIN_US);
	}
	json_decref(pod);
	if (a->due && !a->timer)
		arm(a, 0);
}

static void read_it(struct stray *s)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET", .on_end = on_read, .arg = s };

	not_due(s);
	url_object(&path, s->namespace_, "pods", s->name);
	call.path = gpuq_buf_str(&path);
	s->a->n_reading++;
	s->req = http_start(s->a->http, &call);
	gpuq_buf_done(&path);
}

static void on_timer(void *arg)
{
	struct adopts *a = arg;

	a->timer = NULL;
	while (a->due && a->n_reading < AT_ONCE)
		read_it(a->due);
}

static void arm(struct adopts *a, int64_t wait_us)
{
	if (a->timer && wait_us == 0)
		return;
	loop_cancel(a->timer);
	a->timer = loop_after(a->loop, wait_us, on_timer, a);
}

void adopts_shown(struct adopts *a, const struct pod_fact *f, bool gone)
{
	struct stray *s = NULL;

	if (!f->adoptable && !a->all)
		return;
	HASH_FIND_STR(a->all, f->uid, s);
	if (gone || !f->adoptable) {
		if (s && s->reported && a->sink->adoptable)
			a->sink->adoptable(a->sink->arg,
					   &(struct adopt_fact){ .namespace_ = s->namespace_,
								 .name = s->name,
								 .uid = s->uid });
		if (s)
			drop(s);
		return;
	}
	if (s || strlen(f->uid) >= sizeof(s->uid) || HASH_COUNT(a->all) >= WAITING_MAX)
		return;
	s = calloc(1, sizeof(*s));
	if (s) {
		s->namespace_ = strdup(f->namespace_);
		s->name = strdup(f->name);
	}
	if (!s || !s->namespace_ || !s->name)
		abort(); /* as loop_after() */
	s->a = a;
	memcpy(s->uid, f->uid, strlen(f->uid) + 1);
	HASH_ADD_STR(a->all, uid, s);
	if (is_wanted(a, s->namespace_))
		be_due(s);
}

static void forget_namespaces(struct adopts *a)
{
	for (size_t i = 0; i < a->n_namespaces; i++)
		free(a->namespaces[i]);
	free(a->namespaces);
	a->namespaces = NULL;
	a->n_namespaces = 0;
}

void adopts_want(struct adopts *a, const char *const *namespaces, size_t n)
{
	struct stray *s, *next;

	forget_namespaces(a);
	a->namespaces = calloc(n + 1, sizeof(*a->namespaces));
	if (!a->namespaces)
		abort();
	for (; a->n_namespaces < n; a->n_namespaces++) {
		a->namespaces[a->n_namespaces] = strdup(namespaces[a->n_namespaces]);
		if (!a->namespaces[a->n_namespaces])
			abort();
	}
	HASH_ITER(hh, a->all, s, next)
		if (is_wanted(a, s->namespace_))
			be_due(s);
		else
			not_due(s);
}

/* ---- words ---- */

static void on_said(void *arg, const struct http_answer *answer)
{
	struct adopts *a = arg;

	if (answer->status == 403 && !a->denied) {
		a->denied = true;
		log_notice("kube.adopt_events",
			   "status=403: owners of pods are not told why these wait; see "
			   "etc/kubernetes/optional/adopt.yaml");
	}
}

/* A name by which the same words are not said twice, whichever process says them. */
static void name_event(char *out, size_t room, const struct pod_ref *ref, const char *reason,
		       const char *text)
{
	const char *const parts[] = { ref->uid, reason, text };
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (const char *p = parts[i]; *p; p++)
			h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
	snprintf(out, room, "%.200s.%016" PRIx64, ref->name, h);
}

static void when(struct adopts *a, char out[32])
{
	const time_t now = (time_t)(loop_wall_us(a->loop) / 1000000);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void adopts_say(struct adopts *a, const char *kind, const struct pod_ref *ref, bool warning,
		const char *reason, const char *text)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "POST", .on_end = on_said, .arg = a };
	struct said *s, *next;
	char name[300], at[32], cut[TEXT_MAX + 1];
	json_t *v;
	char *body;

	name_event(name, sizeof(name), ref, reason, text);
	HASH_FIND_STR(a->said, name, s);
	if (s)
		return;
	if (HASH_COUNT(a->said) >= SAID_MAX)
		HASH_ITER(hh, a->said, s, next) {
			HASH_DEL(a->said, s);
			free(s);
		}
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	memcpy(s->name, name, sizeof(s->name));
	HASH_ADD_STR(a->said, name, s);
	snprintf(cut, sizeof(cut), "%s", text);
	when(a, at);
	v = json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s}, s:s, s:s, s:s, s:{s:s}, "
		"s:s, s:s, s:i, s:s, s:s}",
		"apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace",
		ref->namespace_, "involvedObject", "apiVersion",
		strcmp(kind, "Job") == 0 ? "batch/v1" : "v1", "kind", kind, "namespace",
		ref->namespace_, "name", ref->name, "uid", ref->uid, "type",
		warning ? "Warning" : "Normal", "reason", reason, "message", cut, "source",
		"component", "gpuqd", "firstTimestamp", at, "lastTimestamp", at, "count", 1,
		"reportingComponent", "gpuq.io/gpuqd", "reportingInstance", "gpuqd");
	body = json_dumps(v, JSON_COMPACT);
	json_decref(v);
	url_object(&path, ref->namespace_, "events", NULL);
	gpuq_buf_adds(&path, "?fieldManager=gpuqd");
	call.path = gpuq_buf_str(&path);
	call.body = body;
	call.n_body = body ? strlen(body) : 0;
	if (body)
		(void)http_start(a->http, &call);
	free(body);
	gpuq_buf_done(&path);
}

int adopts_new(struct loop *l, struct http *h, const struct cluster_sink *sink, struct adopts **out,
	       struct gpuq_err *err)
{
	struct adopts *a = calloc(1, sizeof(*a));

	if (!a)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	*a = (struct adopts){ .loop = l, .http = h, .sink = sink };
	*out = a;
	return 0;
}

void adopts_free(struct adopts *a)
{
	struct stray *s, *next;
	struct said *w, *w_next;

	if (!a)
		return;
	HASH_ITER(hh, a->all, s, next)
		drop(s);
	HASH_ITER(hh, a->said, w, w_next) {
		HASH_DEL(a->said, w);
		free(w);
	}
	forget_namespaces(a);
	loop_cancel(a->timer);
	free(a);
}
