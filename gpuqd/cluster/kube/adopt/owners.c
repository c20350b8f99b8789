#include "gpuqd/cluster/kube/adopt/owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as loop_after(): the caller waits for an end */
#include <uthash.h>
#include <utlist.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/adopt/kueue.h"
#include "gpuqd/cluster/kube/adopt/suspended.h"
#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define FIRST_US INT64_C(200000)
#define MOST_US INT64_C(30000000)
#define HELD_US INT64_C(30000000) /* between looks whether a Workload has gone */
#define OWNERS_MAX 100000u
#define READS_MAX                                                                                  \
	32 /* under way of those that only wait: after a restart all of them are to be read */
#define REFUSED_MAX 3 /* tries to suspend: the right may come back */

/* A pod that leaves once its owner makes no other. */
struct leaver {
	struct leaver *next;
	char *name, *namespace_, *uid, *node, *as;
	int64_t grace_us;
};

enum step { READ, START, STOP, RESET, RESTORE };

struct owner {
	UT_hash_handle hh; /* by uid */
	struct owners *in;
	char *namespace_, *name;
	char uid[48];
	json_t *job; /* as it was seen last; NULL = it was dealt with, or is `due` */
	uint64_t version; /* of that */
	bool due; /* it is to be read */
	bool reading; /* a request for that is under way */
	struct owner *prev, *next; /* of those that wait for it */
	bool in_line;
	char *as; /* it is to be started, for this pod; NULL = it is not */
	bool stopping; /* it is to be suspended, before it may be started */
	uint32_t cancelled; /* to be noted then */
	struct leaver *leavers;
	enum step step;
	struct http_req *req;
	struct kueue_check *check;
	struct loop_timer *timer;
	struct backoff back;
	bool unheld; /* no Workload holds it, as it is now */
	char *workload; /* that holds it; NULL = none is known */
	bool told; /* in which state: */
	enum owner_state state;
	json_int_t generation; /* of what was reported to wait */
};

struct owners {
	struct loop *loop;
	struct http *http;
	const struct cluster_sink *sink;
	struct adopts *adopts;
	owners_leave_fn leave;
	void *leave_arg;
	struct kueue *kueue;
	struct owner *all;
	struct owner *line; /* to be read, in this order, as soon as fewer reads are under way */
	uint32_t n_reading;
};

static void go(struct owner *it);

/* ---- memory ---- */

static char *copy(const char *s)
{
	char *out = strdup(s ? s : "");

	if (!out)
		abort(); /* as loop_after() */
	return out;
}

static void leaver_free(struct leaver *p)
{
	free(p->name);
	free(p->namespace_);
	free(p->uid);
	free(p->node);
	free(p->as);
	free(p);
}

static void leave_line(struct owner *it)
{
	if (it->in_line)
		DL_DELETE(it->in->line, it);
	it->in_line = false;
}

static void has_read(struct owner *it)
{
	it->in->n_reading -= it->reading;
	it->reading = false;
}

static void owner_free(struct owner *it)
{
	struct leaver *p;

	leave_line(it);
	has_read(it);
	HASH_DEL(it->in->all, it);
	http_cancel(it->req);
	kueue_cancel(it->check);
	loop_cancel(it->timer);
	while ((p = it->leavers) != NULL) {
		it->leavers = p->next;
		leaver_free(p);
	}
	json_decref(it->job);
	free(it->as);
	free(it->workload);
	free(it->namespace_);
	free(it->name);
	free(it);
}

static struct owner *find(const struct owners *o, const char *uid)
{
	struct owner *it = NULL;

	HASH_FIND_STR(o->all, uid, it);
	return it;
}

static struct owner *need(struct owners *o, const char *namespace_, const char *name,
			  const char *uid)
{
	struct owner *it = find(o, uid);

	if (it || !*uid || strlen(uid) >= sizeof(it->uid) || HASH_COUNT(o->all) >= OWNERS_MAX)
		return it;
	it = calloc(1, sizeof(*it));
	if (!it)
		abort();
	it->in = o;
	it->namespace_ = copy(namespace_);
	it->name = copy(name);
	memcpy(it->uid, uid, strlen(uid) + 1);
	HASH_ADD_STR(o->all, uid, it);
	return it;
}

/* ---- reports ---- */

static void say(struct owner *it, bool warning, const char *reason, const char *text)
{
	const struct pod_ref ref = { .name = it->name,
				     .namespace_ = it->namespace_,
				     .uid = it->uid };

	adopts_say(it->in->adopts, "Job", &ref, warning, reason, text);
}

static void tell(struct owner *it, enum owner_state state, const char *why)
{
	const struct owner_sink *sink = it->in->sink->owners;
	const struct owner_fact f = { it->namespace_, it->uid, state, why };

	if (it->told && it->state == state && state != OWNER_WAITS)
		return;
	it->told = true;
	it->state = state;
	if (sink)
		sink->seen(sink->arg, &f);
}

/* It may be queued: what its pods will request is that of its template. */
static void offer(struct owner *it)
{
	struct adopt_fact f = { .namespace_ = it->namespace_,
				.name = it->name,
				.uid = it->uid,
				.owner_kind = "Job",
				.owner_name = it->name,
				.owner_uid = it->uid,
				.gang = "",
				.gated = true };
	json_t *pod = suspended_pod(it->job);

	it->generation = json_integer_value(kube_path(it->job, "metadata", "generation"));
	tell(it, OWNER_WAITS, "");
	adopts_tell(it->in->adopts, &f, pod);
	json_decref(pod);
}

static void let_leave(struct owner *it)
{
	struct owners *o = it->in;
	struct leaver *p;

	while ((p = it->leavers) != NULL) {
		const struct pod_ref ref = { .name = p->name,
					     .namespace_ = p->namespace_,
					     .uid = p->uid,
					     .node = p->node,
					     .token = "",
					     .as = p->as,
					     .gated = true };

		it->leavers = p->next;
		o->leave(o->leave_arg, &ref, p->grace_us);
		leaver_free(p);
	}
}

static void read_next(struct owners *o)
{
	struct owner *it;

	while (o->n_reading < READS_MAX && (it = o->line) != NULL) {
		leave_line(it);
		go(it);
	}
}

static void gone(struct owner *it)
{
	struct owners *o = it->in;
	const struct cluster_sink *sink = o->sink;

	tell(it, OWNER_LEFT, "its Job was deleted");
	if (it->as && sink->not_bound)
		sink->not_bound(sink->arg, it->as, "its Job was deleted");
	let_leave(it);
	owner_free(it);
	read_next(o);
}

/* ---- requests ---- */

static void on_timer(void *arg)
{
	struct owner *it = arg;

	it->timer = NULL;
	go(it);
}

static void later(struct owner *it, int64_t at_least_us)
{
	const int64_t wait = backoff_next_us(&it->back, FIRST_US, MOST_US);

	it->timer = loop_after(it->in->loop, wait > at_least_us ? wait : at_least_us, on_timer, it);
}

static void read_again(struct owner *it)
{
	json_decref(it->job);
	it->job = NULL;
	it->due = true;
}

/* There is nothing to be done until it changes: most of them wait for long. */
static void settled(struct owner *it)
{
	json_decref(it->job);
	it->job = NULL;
	it->due = false;
}

/* Take over what was read; false: it is another of that name. */
static bool take(struct owner *it, json_t *job)
{
	const json_t *meta = json_object_get(job, "metadata");
	/* A number wherever it is made today. */
	const uint64_t version = strtoull(kube_str(meta, "resourceVersion"), NULL, 10);

	if (strcmp(kube_str(meta, "uid"), it->uid) != 0)
		return false;
	if (version < it->version)
		return true;
	json_decref(it->job);
	it->job = json_incref(job);
	it->version = version;
	return true;
}

static void refuse_start(struct owner *it, const char *why)
{
	const struct cluster_sink *sink = it->in->sink;
	char *as = it->as;

	it->as = NULL;
	it->unheld = false;
	if (sink->not_bound)
		sink->not_bound(sink->arg, as, why);
	free(as);
}

/* It makes no more pods, or cannot be kept from it. */
static void stopped(struct owner *it)
{
	it->stopping = false;
	it->cancelled = 0;
	let_leave(it);
	go(it);
}

static void refused(struct owner *it, const struct status *st)
{
	log_warn("kube.owner_refused", "job=%s namespace=%s error=%s", LOGS(it->name),
		 LOGS(it->namespace_), LOGS(st->text));
	if (it->stopping && it->back.fails >= REFUSED_MAX) {
		it->back.fails = 0;
		stopped(it);
	} else if (it->stopping || !it->as) {
		later(it, it->stopping ? 0 : MOST_US);
	} else {
		refuse_start(it, st->text);
		later(it, 0);
	}
}

static void pass_answered(enum step step)
{
	switch (step) {
	case START:
		(void)FAILPOINT("kube.owner.start.answered");
		break;
	case STOP:
		(void)FAILPOINT("kube.owner.stop.answered");
		break;
	case RESTORE:
		(void)FAILPOINT("kube.owner.restore.answered");
		break;
	case READ:
	case RESET:
		break;
	}
}

static void answered(void *arg, const struct http_answer *a)
{
	struct owner *it = arg;
	struct owners *o = it->in;
	json_t *job;
	struct status st;

	pass_answered(it->step);
	it->req = NULL;
	has_read(it);
	status_read(a, &st);
	switch (st.kind) {
	case STATUS_DONE:
		job = a->complete ? json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL) : NULL;
		if (!job) {
			read_again(it);
			later(it, 0);
		} else if (!take(it, job)) {
			gone(it);
		} else {
			it->back.fails = 0;
			if (it->step == STOP)
				it->cancelled = 0;
			go(it);
		}
		json_decref(job);
		break;
	case STATUS_GONE:
		gone(it);
		break;
	case STATUS_EXISTS:
	case STATUS_CONFLICT:
	case STATUS_LATER:
	case STATUS_UNKNOWN:
	case STATUS_EXPIRED:
		read_again(it); /* it may be another by now */
		later(it, a->retry_us);
		break;
	case STATUS_FORBIDDEN:
	case STATUS_QUOTA:
	case STATUS_CLUSTER:
	case STATUS_REFUSED:
		refused(it, &st);
		break;
	}
	read_next(o);
}

static void pass(enum step step)
{
	switch (step) {
	case START:
		(void)FAILPOINT("kube.owner.start");
		break;
	case STOP:
		(void)FAILPOINT("kube.owner.stop");
		break;
	case RESTORE:
		(void)FAILPOINT("kube.owner.restore");
		break;
	case READ:
	case RESET:
		break;
	}
}

static json_t *body_of(const struct owner *it, enum step step)
{
	switch (step) {
	case READ:
		break;
	case START:
		return suspended_to_start(it->job);
	case STOP:
		return suspended_to_stop(it->job, it->cancelled);
	case RESET:
		return suspended_to_reset(it->job);
	case RESTORE:
		return suspended_to_restore(it->job);
	}
	return NULL;
}

static void send(struct owner *it, enum step step)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	json_t *body = body_of(it, step);
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct http_call call = { .method = step == READ ? "GET" : "PATCH",
				  .content_type = "application/merge-patch+json",
				  .body = text,
				  .n_body = text ? strlen(text) : 0,
				  .on_end = answered,
				  .arg = it };

	if (step != READ && !text)
		abort();
	if (step == READ)
		call.content_type = NULL;
	pass(step);
	it->step = step;
	it->reading = step == READ;
	it->in->n_reading += it->reading;
	leave_line(it);
	gpuq_buf_adds(&path, "/apis/batch/v1/namespaces/");
	url_escape(&path, it->namespace_);
	gpuq_buf_adds(&path, "/jobs/");
	url_escape(&path, it->name);
	gpuq_buf_adds(&path, step == RESET  ? "/status?fieldManager=gpuqd"
			     : step == READ ? ""
					    : "?fieldManager=gpuqd");
	call.path = gpuq_buf_str(&path);
	it->req = http_start(it->in->http, &call);
	json_decref(body);
	free(text);
	gpuq_buf_done(&path);
}

/* ---- Kueue ---- */

static void on_checked(void *arg, enum kueue_answer is, const char *words, int64_t retry_us)
{
	struct owner *it = arg;
	char text[600];

	it->check = NULL;
	free(it->workload);
	it->workload = NULL;
	if (is == KUEUE_FREE) {
		it->unheld = true;
		go(it);
		return;
	}
	if (is == KUEUE_HELD) {
		snprintf(text, sizeof(text),
			 "Workload %.300s of Kueue holds it: gpuqd leaves it alone", words);
		it->workload = copy(words);
	} else {
		snprintf(text, sizeof(text), "whether Kueue holds it is not known: %.448s", words);
	}
	if (it->as)
		refuse_start(it, text);
	say(it, false, is == KUEUE_HELD ? "HeldByKueue" : "NotQueued", text);
	if (is == KUEUE_HELD)
		tell(it, OWNER_LEFT, text);
	it->timer = loop_after(it->in->loop, retry_us > HELD_US ? retry_us : HELD_US, on_timer, it);
}

static void check(struct owner *it)
{
	it->check = kueue_ask(it->in->kueue, it->job, on_checked, it);
}

/* ---- decisions ---- */

static void restore(struct owner *it)
{
	send(it, suspended_has_begun(it->job) ? RESET : RESTORE);
}

static void stop(struct owner *it, enum suspended_state is)
{
	const bool mark = it->cancelled && is != SUSPENDED_NOT_OURS;

	if (is == SUSPENDED_GATED || mark)
		send(it, STOP);
	else
		stopped(it);
}

static void start(struct owner *it, enum suspended_state is, const char *why)
{
	switch (is) {
	case SUSPENDED_GATED:
		free(it->as);
		it->as = NULL;
		go(it);
		break;
	case SUSPENDED_TO_RESTORE:
		restore(it);
		break;
	case SUSPENDED_NOT_OURS:
	case SUSPENDED_REFUSED:
		refuse_start(it, why);
		go(it);
		break;
	case SUSPENDED_WAITS:
		if (!it->unheld)
			check(it);
		else
			send(it, suspended_has_begun(it->job) ? RESET : START);
		break;
	}
}

static void look(struct owner *it, enum suspended_state is, const char *why)
{
	const json_int_t generation =
		json_integer_value(kube_path(it->job, "metadata", "generation"));

	if (is != SUSPENDED_WAITS) {
		it->unheld = false;
		free(it->workload);
		it->workload = NULL;
	}
	switch (is) {
	case SUSPENDED_GATED:
		tell(it, OWNER_STARTED, "");
		settled(it);
		break;
	case SUSPENDED_TO_RESTORE:
		restore(it);
		break;
	case SUSPENDED_REFUSED:
		say(it, true, "NotQueued", why);
		/* fall through */
	case SUSPENDED_NOT_OURS:
		tell(it, OWNER_LEFT, why);
		settled(it);
		break;
	case SUSPENDED_WAITS:
		if (it->state == OWNER_WAITS && it->generation != generation)
			tell(it, OWNER_LEFT, "its Job was changed");
		if (it->state != OWNER_WAITS) {
			if (!it->unheld) {
				check(it);
				break;
			}
			offer(it);
		}
		settled(it);
		break;
	}
}

static void go(struct owner *it)
{
	struct gpuq_err why = GPUQ_ERR_INIT;
	enum suspended_state is;

	if (it->req || it->check || it->timer)
		return;
	if (!it->job && it->due && !it->stopping && !it->as && it->in->n_reading >= READS_MAX) {
		if (!it->in_line)
			DL_APPEND(it->in->line, it);
		it->in_line = true;
		return;
	}
	if (!it->job) {
		if (it->due || it->stopping || it->as)
			send(it, READ);
		return;
	}
	is = suspended_state(it->job, &why);
	if (it->stopping)
		stop(it, is);
	else if (it->as)
		start(it, is, why.text);
	else
		look(it, is, why.text);
}

static void go_now(struct owner *it)
{
	loop_cancel(it->timer);
	it->timer = NULL;
	go(it);
}

/* Requests are not answered from within. */
static void go_soon(struct owner *it)
{
	kueue_cancel(it->check);
	it->check = NULL;
	if (it->req)
		return;
	loop_cancel(it->timer);
	it->timer = loop_after(it->in->loop, 0, on_timer, it);
}

void owners_shown(struct owners *o, json_t *job)
{
	const json_t *meta = json_object_get(job, "metadata");
	struct owner *it =
		need(o, kube_str(meta, "namespace"), kube_str(meta, "name"), kube_str(meta, "uid"));

	if (!it)
		return;
	if (!it->told)
		tell(it, OWNER_THERE, "");
	take(it, job);
	go_now(it);
}

void owners_gone(struct owners *o, const char *uid)
{
	struct owner *it = find(o, uid);

	if (it)
		gone(it);
}

void owners_again(struct owners *o)
{
	struct owner *it, *next;

	HASH_ITER(hh, o->all, it, next) {
		if (it->state != OWNER_WAITS)
			continue;
		it->state = OWNER_THERE;
		it->due = true;
		go_now(it);
	}
}

void owners_start(struct owners *o, const struct owner_ref *owner, const char *as)
{
	struct owner *it = need(o, owner->namespace_, owner->name, owner->uid);

	if (!it)
		return;
	free(it->as);
	it->as = copy(as);
	it->unheld = false; /* Kueue may have come since */
	go_soon(it);
}

static bool leaves_already(const struct owner *it, const char *uid)
{
	for (const struct leaver *p = it->leavers; p; p = p->next)
		if (strcmp(p->uid, uid) == 0)
			return true;
	return false;
}

void owners_stop(struct owners *o, const struct owner_ref *owner, const struct pod_ref *pod,
		 int64_t grace_us)
{
	struct owner *it = need(o, owner->namespace_, owner->name, owner->uid);
	struct leaver *p;

	if (!it) {
		o->leave(o->leave_arg, pod, grace_us);
		return;
	}
	if (it->as && strcmp(it->as, pod_ref_as(pod)) == 0) {
		free(it->as);
		it->as = NULL;
	}
	it->stopping = true;
	if (owner->cancelled)
		it->cancelled = owner->cancelled;
	if (!leaves_already(it, pod->uid)) {
		p = calloc(1, sizeof(*p));
		if (!p)
			abort();
		p->name = copy(pod->name);
		p->namespace_ = copy(pod->namespace_);
		p->uid = copy(pod->uid);
		p->node = copy(pod->node);
		p->as = copy(pod_ref_as(pod));
		p->grace_us = grace_us;
		p->next = it->leavers;
		it->leavers = p;
	}
	go_soon(it);
}

void owners_each_held(const struct owners *o, cluster_held_fn fn, void *arg)
{
	for (const struct owner *it = o->all; it; it = it->hh.next)
		if (it->workload)
			fn(arg, it->namespace_, it->name, it->workload);
}

int owners_new(struct loop *l, struct http *h, const struct cluster_sink *sink,
	       struct adopts *adopts, owners_leave_fn leave, void *arg, struct owners **out,
	       struct gpuq_err *err)
{
	struct owners *o = calloc(1, sizeof(*o));

	if (!o)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	*o = (struct owners){ .loop = l,
			      .http = h,
			      .sink = sink,
			      .adopts = adopts,
			      .leave = leave,
			      .leave_arg = arg };
	o->kueue = kueue_new(l, h);
	if (!o->kueue) {
		free(o);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	}
	*out = o;
	return 0;
}

void owners_free(struct owners *o)
{
	struct owner *it, *next;

	if (!o)
		return;
	HASH_ITER(hh, o->all, it, next)
		owner_free(it);
	kueue_free(o->kueue);
	free(o);
}
