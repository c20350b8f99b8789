#include "gpuqd/cluster/kube/pods/api_post.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/pods/refused.h"
#include "gpuqd/cluster/kube/watch/split.h"
#include "gpuqd/cluster/kube/http/url.h"

enum step { STEP_POST, STEP_LOOK };

struct post {
	struct asks *asks;
	struct post_call call;
	char *collection, *object; /* paths */
	enum step step;
	struct http_req *req;
	struct loop_timer *timer;
	struct backoff back;
	unsigned forbidden;
	bool abandoned, told_retry, told_unknown;
	bool made; /* as was learned elsewhere */
	bool exists; /* the server said that the name is taken */
	/* It said that the quota is used up, or refused it for the cluster's sake. */
	bool full;
	struct status why;
};

static void go(struct post *p);

static void free_post(struct post *p)
{
	http_cancel(p->req);
	loop_cancel(p->timer);
	free(p->collection);
	free(p->object);
	free(p);
}

static void finish(struct post *p, enum ask_outcome o, const json_t *object, const char *message)
{
	struct post_call call = p->call;

	free_post(p);
	call.done(call.arg, o, object, message);
}

/* It is not there, and the last answer to the request stands. */
static void finish_refused(struct post *p)
{
	const struct post_call call = p->call;
	const struct status why = p->why; /* p goes before it is reported */

	if (why.kind == STATUS_QUOTA) {
		finish(p, ASK_QUOTA, NULL, why.text);
	} else if (refused_by_policy(&why, call.pod_policy)) {
		finish(p, ASK_REFUSED, NULL, why.text);
	} else {
		struct refusal r;

		refused_note(p->asks, &call, p->collection, &why, &r);
		free_post(p);
		call.refused(call.arg, &r);
	}
}

static void on_timer(void *arg)
{
	struct post *p = arg;

	p->timer = NULL;
	go(p);
}

static void later(struct post *p, int64_t at_least_us)
{
	int64_t wait = backoff_next_us(&p->back, ASK_FIRST_US, ASK_MAX_US);

	p->timer = loop_after(p->asks->loop, wait > at_least_us ? wait : at_least_us, on_timer, p);
}

/* Comes last: whoever hears of it may abandon the post. */
static void tell(struct post *p, enum ask_outcome o, const char *message)
{
	bool *told = o == ASK_RETRY ? &p->told_retry : &p->told_unknown;

	if (*told || !p->call.trying)
		return;
	*told = true;
	log_info("kube.create_delayed", "name=%s error=%s", p->call.name, LOGS(message));
	p->call.trying(p->call.arg, o, message);
}

static bool on_pruned(void *arg, enum split_what what, const char *json, size_t n)
{
	json_t **obj = arg;

	(void)what;
	*obj = json_loadb(json, n, JSON_ALLOW_NUL, NULL);
	return false;
}

/* Most of metadata is managedFields. A script must be read completely. */
static json_t *read_object(const struct post *p, const struct http_answer *a)
{
	struct split s;
	json_t *obj = NULL;

	if (!p->call.metadata)
		return json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL);
	split_init(&s, SPLIT_STREAM, on_pruned, &obj);
	(void)split_feed(&s, a->body, a->n, NULL);
	split_done(&s);
	return obj;
}

/* An object came back: is it ours? */
static void found(struct post *p, const struct http_answer *a)
{
	json_t *obj = read_object(p, a);

	if (!json_is_object(obj)) {
		p->step = STEP_LOOK;
		later(p, 0);
	} else if (p->call.ours(p->call.arg, obj)) {
		finish(p, ASK_OK, obj, "");
	} else {
		finish(p, ASK_CONFLICT, NULL, "the name is taken by an object that is not ours");
	}
	json_decref(obj);
}

static void refused(struct post *p, const struct status *st)
{
	if (st->kind == STATUS_FORBIDDEN && ++p->forbidden < FORBIDDEN_TRIES) {
		later(p, 0);
		tell(p, ASK_RETRY, st->text);
	} else if (st->kind != STATUS_REFUSED) {
		/* All of this is asked before the name: what fills the quota may be our own pod,
		 * made by a request whose answer was lost with the process that sent it. */
		p->full = true;
		p->why = *st;
		p->step = STEP_LOOK;
		go(p);
	} else {
		finish(p, ASK_REFUSED, NULL, st->text);
	}
}

/* The look was refused, too: nothing speaks for the object being there. The watch would show
 * it. */
static void look_refused(struct post *p, const struct status *st)
{
	if (!p->full && st->kind == STATUS_FORBIDDEN && ++p->forbidden < FORBIDDEN_TRIES) {
		later(p, 0);
		tell(p, ASK_RETRY, st->text);
		return;
	}
	if (!p->full)
		p->why = *st;
	if (p->made)
		finish(p, ASK_OK, NULL, "");
	else if (p->abandoned)
		finish(p, ASK_REFUSED, NULL, "it was never created");
	else if (p->why.kind == STATUS_REFUSED)
		finish(p, ASK_REFUSED, NULL, st->text);
	else
		finish_refused(p);
}

static void posted(void *arg, const struct http_answer *a)
{
	struct post *p = arg;
	struct status st;

	(void)FAILPOINT("kube.post.answered");
	p->req = NULL;
	asks_paused(p->asks, a);
	status_read(a, &st);
	switch (st.kind) {
	case STATUS_DONE:
		found(p, a);
		break;
	case STATUS_EXISTS:
		p->exists = true;
		p->step = STEP_LOOK;
		go(p);
		break;
	case STATUS_LATER:
		later(p, a->retry_us);
		tell(p, ASK_RETRY, st.text);
		break;
	case STATUS_CONFLICT:
	case STATUS_EXPIRED:
	case STATUS_UNKNOWN:
		p->step = STEP_LOOK;
		later(p, a->retry_us);
		tell(p, ASK_UNKNOWN, st.text);
		break;
	default:
		refused(p, &st);
	}
}

static void looked(void *arg, const struct http_answer *a)
{
	struct post *p = arg;
	struct status st;

	p->req = NULL;
	asks_paused(p->asks, a);
	status_read(a, &st);
	switch (st.kind) {
	case STATUS_DONE:
		found(p, a);
		break;
	case STATUS_GONE:
		if (p->made) {
			finish(p, ASK_OK, NULL, ""); /* and it has ended and gone since */
			break;
		}
		if (p->abandoned) {
			finish(p, ASK_REFUSED, NULL, "it was never created");
			break;
		}
		if (p->full) {
			finish_refused(p);
			break;
		}
		p->step = STEP_POST;
		/* Taken a moment ago and free now: what had the name has just gone. */
		if (p->exists)
			later(p, 0);
		p->exists = false;
		if (!p->timer)
			go(p);
		break;
	case STATUS_REFUSED:
	case STATUS_FORBIDDEN:
	case STATUS_CLUSTER:
		look_refused(p, &st);
		break;
	default:
		later(p, a->retry_us);
		tell(p, ASK_RETRY, st.text);
	}
}

static void go(struct post *p)
{
	struct http_call call = { .arg = p, .metadata = p->call.metadata };
	int64_t wait = asks_pause_us(p->asks);

	if (p->made) {
		finish(p, ASK_OK, NULL, "");
		return;
	}
	if (wait > 0) {
		p->timer = loop_after(p->asks->loop, wait, on_timer, p);
		return;
	}
	if (p->abandoned)
		p->step = STEP_LOOK;
	if (p->step == STEP_POST) {
		(void)FAILPOINT("kube.post");
		call.method = "POST";
		call.path = p->collection;
		call.body = p->call.body;
		call.n_body = strlen(p->call.body);
		call.on_end = posted;
	} else {
		call.method = "GET";
		call.path = p->object;
		call.on_end = looked;
	}
	p->req = http_start(p->asks->http, &call);
}

static char *path_of(const struct post_call *c, const char *name)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	char *out;

	url_object(&b, c->namespace_, c->plural, name);
	if (!name)
		gpuq_buf_adds(&b, "?fieldManager=gpuqd&fieldValidation=Strict");
	out = strdup(gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	if (!out)
		abort();
	return out;
}

struct post *post_start(struct asks *a, const struct post_call *call)
{
	struct post *p = calloc(1, sizeof(*p));
	int64_t wait;

	if (!p)
		abort(); /* as loop_after() */
	p->asks = a;
	p->call = *call;
	p->collection = path_of(call, NULL);
	p->object = path_of(call, call->name);
	wait = call->paced ? asks_turn_us(a) : 0;
	if (wait > 0)
		p->timer = loop_after(a->loop, wait, on_timer, p);
	else
		go(p);
	return p;
}

void post_cancel(struct post *p)
{
	if (p)
		free_post(p);
}

static void soon(struct post *p)
{
	if (p->req) /* its reply tells */
		return;
	loop_cancel(p->timer);
	p->timer = loop_after(p->asks->loop, 0, on_timer, p);
}

void post_abandon(struct post *p)
{
	p->abandoned = true;
	soon(p);
}

void post_made(struct post *p)
{
	p->made = true;
	soon(p);
}
