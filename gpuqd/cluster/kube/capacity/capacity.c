#include "gpuqd/cluster/kube/capacity/capacity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define uthash_fatal(msg) abort() /* as loop_after(): the caller waits for an end */
#include <uthash.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/capacity/capacity_body.h"
#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define FIRST_US INT64_C(200000)
#define MOST_US INT64_C(30000000)
#define OFF_US INT64_C(10000000) /* between looks whether the kind is served */

enum thing { TEMPLATE, REQUEST, POD, N_THINGS };

/* The next step. The first two are done for template and request, one after the other. */
enum step {
	POST, /* create it */
	LOOK, /* the name is taken: by ours? */
	ADOPT, /* have the request own the template */
	MARK, /* have autoscalers see the placeholder */
	FIND, /* look what there is to be removed */
	REMOVE,
};

struct item {
	UT_hash_handle hh; /* by name */
	struct capacity *in;
	char *namespace_, *name, *token;
	char *bodies[N_THINGS]; /* NULL: it is only to be removed */
	char uid[N_THINGS][48]; /* of what is there, "" not known */
	bool wanted; /* false: it is to be removed */
	bool refused; /* removed because the request was refused: that is told */
	bool told; /* that it is delayed */
	enum thing at, last; /* last: that is removed first */
	enum step step;
	struct http_req *req;
	struct loop_timer *timer;
	struct backoff back;
	char why[448];
};

struct capacity {
	struct loop *loop;
	struct http *http;
	struct watch *watch;
	const char *namespace_, *cluster_id;
	struct capacity_sink sink;
	bool on, requests; /* there is a sink; requests are wanted */
	const char *version; /* that is served; NULL = not known, or none */
	int tries; /* version that is being looked for */
	struct http_req *find;
	struct loop_timer *again;
	struct item *items;
};

static const char *const versions[] = { "v1", "v1beta1" };
#define N_VERSIONS ((int)(sizeof(versions) / sizeof(versions[0])))

static void go(struct item *it);

/* ---- which version is served ---- */

static void look_for(struct capacity *c);

static void on_look_again(void *arg)
{
	struct capacity *c = arg;

	c->again = NULL;
	c->tries = 0;
	look_for(c);
}

static void on_seen(void *arg, const struct capacity_fact *f, bool gone)
{
	struct capacity *c = arg;

	if (gone)
		c->sink.gone(c->sink.arg, f->name, f->token);
	else
		c->sink.seen(c->sink.arg, f);
}

static void on_known(void *arg, bool known, const char *why)
{
	struct capacity *c = arg;

	c->sink.known(c->sink.arg, known, why);
}

static bool is_served(const struct http_answer *a)
{
	json_t *root = a->complete ? json_loadb(a->body, a->n, 0, NULL) : NULL, *r;
	bool served = false;
	size_t i;

	json_array_foreach(json_object_get(root, "resources"), i, r) served |=
		strcmp(kube_str(r, "name"), "provisioningrequests") == 0;
	json_decref(root);
	return served;
}

static void found_version(void *arg, const struct http_answer *a)
{
	struct capacity *c = arg;
	struct status st;

	c->find = NULL;
	if (a->status == 200 && is_served(a)) {
		c->version = versions[c->tries];
		log_info("kube.capacity", "version=%s", c->version);
		watch_requests(c->watch, c->version, on_seen, on_known, c);
		return;
	}
	if ((a->status == 200 || a->status == 404) && ++c->tries < N_VERSIONS) {
		look_for(c);
		return;
	}
	status_read(a, &st);
	c->again = loop_after(c->loop, OFF_US, on_look_again, c);
	c->sink.known(c->sink.arg, false,
		      a->status == 404 || a->status == 200
			      ? "the cluster serves no ProvisioningRequest of " CAPACITY_GROUP
			      : st.text);
}

static void look_for(struct capacity *c)
{
	char path[96];
	const struct http_call call = {
		.method = "GET", .path = path, .on_end = found_version, .arg = c
	};

	snprintf(path, sizeof(path), "/apis/" CAPACITY_GROUP "/%s", versions[c->tries]);
	c->find = http_start(c->http, &call);
}

static void on_placeholder(void *arg, const struct known_thing *t, bool gone)
{
	struct capacity *c = arg;

	if (c->on)
		c->sink.stands(c->sink.arg, t->name, t->namespace_, t->token, gone);
}

void capacity_watch(struct capacity *c, const struct capacity_sink *sink, bool requests)
{
	c->on = sink != NULL;
	if (sink)
		c->sink = *sink;
	requests &= c->on;
	if (c->requests == requests)
		return;
	c->requests = requests;
	http_cancel(c->find);
	loop_cancel(c->again);
	c->find = NULL;
	c->again = NULL;
	c->version = NULL;
	watch_requests(c->watch, NULL, NULL, NULL, NULL);
	if (!requests)
		return;
	c->tries = 0;
	look_for(c);
}

/* ---- one request ---- */

static void item_free(struct item *it)
{
	HASH_DEL(it->in->items, it);
	http_cancel(it->req);
	loop_cancel(it->timer);
	for (int i = 0; i < N_THINGS; i++)
		free(it->bodies[i]);
	free(it->namespace_);
	free(it->name);
	free(it->token);
	free(it);
}

static void on_timer(void *arg)
{
	struct item *it = arg;

	it->timer = NULL;
	go(it);
}

static void later(struct item *it, int64_t at_least_us, const char *why)
{
	const int64_t wait = backoff_next_us(&it->back, FIRST_US, MOST_US);
	const struct capacity *c = it->in;

	it->timer = loop_after(c->loop, wait > at_least_us ? wait : at_least_us, on_timer, it);
	if (!*why || !c->on || !it->wanted || (it->told && strcmp(it->why, why) == 0))
		return;
	it->told = true;
	snprintf(it->why, sizeof(it->why), "%s", why);
	log_notice("kube.capacity_delayed", "name=%s error=%s", it->name, LOGS(why));
	c->sink.asked(c->sink.arg, it->name, CAPACITY_DELAYED, why);
}

static void next(struct item *it, enum thing at, enum step step)
{
	it->at = at;
	it->step = step;
	it->back.fails = 0;
	go(it);
}

/* Tell the outcome; the item is gone when the sink hears of it, which may ask anew. */
static void finish(struct item *it, enum capacity_outcome o)
{
	struct capacity *c = it->in;
	char name[256], why[sizeof(it->why)];

	snprintf(name, sizeof(name), "%s", it->name);
	snprintf(why, sizeof(why), "%s", it->why);
	item_free(it);
	if (c->on)
		c->sink.asked(c->sink.arg, name, o, o == CAPACITY_MADE ? "" : why);
}

static void removed(struct item *it)
{
	struct capacity *c = it->in;
	char name[256];

	if (it->refused) {
		finish(it, CAPACITY_REFUSED);
		return;
	}
	snprintf(name, sizeof(name), "%s", it->name);
	item_free(it);
	if (c->on)
		c->sink.dropped(c->sink.arg, name);
}

static void refuse(struct item *it, const char *why)
{
	snprintf(it->why, sizeof(it->why), "%s", why);
	log_notice("kube.capacity_refused", "name=%s error=%s", it->name, LOGS(why));
	it->refused = true;
	it->wanted = false;
	next(it, it->last, FIND);
}

/* Note the uid of the object. False: it is not ours. */
static bool take(struct item *it, const struct http_answer *a)
{
	json_t *o = json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL);
	const json_t *meta = json_object_get(o, "metadata");
	const bool ours = strcmp(kube_str(json_object_get(meta, "annotations"), KUBE_A_TOKEN),
				 it->token) == 0;

	snprintf(it->uid[it->at], sizeof(it->uid[it->at]), "%s", ours ? kube_str(meta, "uid") : "");
	json_decref(o);
	return ours;
}

static void made(struct item *it)
{
	if (it->at == TEMPLATE)
		next(it, REQUEST, POST);
	else
		next(it, it->at, it->at == POD ? MARK : ADOPT);
}

static void created(struct item *it, const struct http_answer *a, const struct status *st)
{
	if (it->at == TEMPLATE)
		(void)FAILPOINT("kube.capacity.template.answered");
	else if (it->at == REQUEST)
		(void)FAILPOINT("kube.capacity.request.answered");
	else
		(void)FAILPOINT("kube.placeholder.answered");
	if (st->kind == STATUS_DONE) {
		take(it, a);
		made(it);
	} else if (st->kind == STATUS_EXISTS) {
		next(it, it->at, LOOK);
	} else if (st->kind == STATUS_REFUSED) {
		refuse(it, st->text);
	} else {
		later(it, a->retry_us, st->text);
	}
}

static void looked(struct item *it, const struct http_answer *a, const struct status *st)
{
	if (st->kind == STATUS_DONE && take(it, a))
		made(it);
	else if (st->kind == STATUS_DONE)
		refuse(it, "the name is taken by an object that is not ours");
	else if (st->kind == STATUS_GONE)
		next(it, it->at, POST);
	else
		later(it, a->retry_us, st->text);
}

static void found(struct item *it, const struct http_answer *a, const struct status *st)
{
	if (st->kind == STATUS_DONE && take(it, a)) {
		next(it, it->at, REMOVE);
	} else if (st->kind == STATUS_DONE || st->kind == STATUS_GONE) {
		if (it->at == REQUEST)
			next(it, TEMPLATE, FIND);
		else
			removed(it);
	} else {
		later(it, a->retry_us, st->text);
	}
}

static void answered(void *arg, const struct http_answer *a)
{
	struct item *it = arg;
	struct status st;

	it->req = NULL;
	status_read(a, &st);
	/* It was taken back meanwhile. Whether the lost request still arrives is not known: a moment is
	 * waited. */
	if (!it->wanted && it->step < FIND) {
		const bool lost = st.kind == STATUS_UNKNOWN;

		it->at = it->last;
		it->step = FIND;
		if (lost)
			later(it, FIRST_US * 10, "");
		else
			go(it);
		return;
	}
	switch (it->step) {
	case POST:
		created(it, a, &st);
		break;
	case LOOK:
		looked(it, a, &st);
		break;
	case ADOPT: /* without it the template is removed by us alone */
		finish(it, CAPACITY_MADE);
		break;
	case MARK:
		if (st.kind == STATUS_DONE)
			finish(it, CAPACITY_MADE);
		else if (st.kind == STATUS_GONE)
			next(it, POD, POST);
		else
			later(it, a->retry_us, st.text);
		break;
	case FIND:
		found(it, a, &st);
		break;
	case REMOVE:
		if (st.kind == STATUS_DONE || st.kind == STATUS_GONE ||
		    st.kind == STATUS_CONFLICT) {
			it->step = FIND; /* until it is gone */
			if (st.kind == STATUS_GONE)
				go(it);
			else
				later(it, 0, "");
		} else {
			later(it, a->retry_us, st.text);
		}
		break;
	}
}

static void path_of(const struct item *it, enum thing at, bool one, struct gpuq_buf *out)
{
	if (at == TEMPLATE) {
		url_object(out, it->namespace_, "podtemplates", one ? it->name : NULL);
		return;
	}
	if (at == POD) {
		url_object(out, it->namespace_, "pods", one ? it->name : NULL);
		if (it->step == MARK)
			gpuq_buf_adds(out, "/status");
		return;
	}
	gpuq_buf_printf(out, "/apis/" CAPACITY_GROUP "/%s/namespaces/", it->in->version);
	url_escape(out, it->namespace_);
	gpuq_buf_adds(out, "/provisioningrequests");
	if (one) {
		gpuq_buf_adds(out, "/");
		url_escape(out, it->name);
	}
}

/* Return the body that the step sends; NULL = none. */
static char *body_of(const struct item *it)
{
	json_t *root = NULL;
	char *text, api[64];

	if (it->step == POST)
		return it->bodies[it->at] ? strdup(it->bodies[it->at]) : NULL;
	if (it->step == MARK)
		return capacity_unschedulable(loop_wall_us(it->in->loop));
	if (it->step == REMOVE)
		root = json_pack("{s:s, s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind",
				 "DeleteOptions", "propagationPolicy", "Background",
				 "preconditions", "uid", it->uid[it->at]);
	snprintf(api, sizeof(api), CAPACITY_GROUP "/%s", it->in->version ? it->in->version : "v1");
	if (it->step == ADOPT)
		root = json_pack("{s:{s:[{s:s, s:s, s:s, s:s}]}}", "metadata", "ownerReferences",
				 "apiVersion", api, "kind", "ProvisioningRequest", "name", it->name,
				 "uid", it->uid[REQUEST]);
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}

static void go(struct item *it)
{
	static const char *const methods[] = {
		[POST] = "POST",  [LOOK] = "GET", [ADOPT] = "PATCH",
		[MARK] = "PATCH", [FIND] = "GET", [REMOVE] = "DELETE"
	};
	const enum thing at = it->step == ADOPT ? TEMPLATE : it->at;
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = methods[it->step], .on_end = answered, .arg = it };
	char *body;

	if (!it->in->version &&
	    at != POD) { /* until the kind is served there is nothing to be done */
		it->timer = loop_after(it->in->loop, FIRST_US * 5, on_timer, it);
		return;
	}
	if (it->step == POST) {
		if (it->at == TEMPLATE)
			(void)FAILPOINT("kube.capacity.template");
		else if (it->at == REQUEST)
			(void)FAILPOINT("kube.capacity.request");
		else
			(void)FAILPOINT("kube.placeholder");
	} else if (it->step == REMOVE) {
		if (it->at == TEMPLATE)
			(void)FAILPOINT("kube.capacity.template.remove");
		else if (it->at == REQUEST)
			(void)FAILPOINT("kube.capacity.request.remove");
		else
			(void)FAILPOINT("kube.placeholder.remove");
	} else if (it->step == MARK) {
		(void)FAILPOINT("kube.placeholder.mark");
	}
	if (it->step == POST && !it->bodies[it->at])
		abort();
	path_of(it, at, it->step != POST, &path);
	if (it->step == POST)
		gpuq_buf_adds(&path, "?fieldManager=gpuqd&fieldValidation=Strict");
	body = body_of(it);
	call.path = gpuq_buf_str(&path);
	call.body = body;
	call.n_body = body ? strlen(body) : 0;
	if (it->step == ADOPT)
		call.content_type = "application/merge-patch+json";
	if (it->step == MARK)
		call.content_type = "application/strategic-merge-patch+json";
	it->req = http_start(it->in->http, &call);
	free(body);
	gpuq_buf_done(&path);
}

static struct item *item_find(const struct capacity *c, const char *name)
{
	struct item *it;

	HASH_FIND(hh, c->items, name, strlen(name), it);
	return it;
}

static char *copy(const char *s)
{
	char *out = strdup(s);

	if (!out)
		abort();
	return out;
}

static struct item *item_new(struct capacity *c, const char *namespace_, const char *name,
			     const char *token, enum thing last)
{
	struct item *it = calloc(1, sizeof(*it));

	if (!it)
		abort();
	it->in = c;
	it->last = last;
	it->namespace_ = copy(namespace_ && *namespace_ ? namespace_ : c->namespace_);
	it->name = copy(name);
	it->token = copy(token);
	HASH_ADD_KEYPTR(hh, c->items, it->name, strlen(it->name), it);
	return it;
}

void capacity_ask(struct capacity *c, const struct capacity_order *o)
{
	struct item *it = item_find(c, o->name);
	const char *ns = o->namespace_ && *o->namespace_ ? o->namespace_ : c->namespace_;

	if (it)
		return; /* on its way, or being removed: then its removal is told */
	it = item_new(c, ns, o->name, o->token, REQUEST);
	it->wanted = true;
	it->bodies[TEMPLATE] = capacity_template(o, ns);
	it->bodies[REQUEST] = capacity_request(o, ns, c->version ? c->version : versions[0]);
	if (!it->bodies[TEMPLATE] || !it->bodies[REQUEST])
		abort();
	next(it, TEMPLATE, POST);
}

void capacity_stand(struct capacity *c, const struct capacity_order *o)
{
	const char *ns = o->namespace_ && *o->namespace_ ? o->namespace_ : c->namespace_;
	struct item *it = item_find(c, o->name);

	if (it)
		return;
	it = item_new(c, ns, o->name, o->token, POD);
	it->wanted = true;
	it->bodies[POD] = capacity_placeholder(o, ns);
	if (!it->bodies[POD])
		abort();
	next(it, POD, POST);
}

static void drop(struct capacity *c, const char *namespace_, const char *name, const char *token,
		 enum thing last)
{
	struct item *it = item_find(c, name);

	if (it && !it->wanted) {
		it->refused = false; /* that it is gone is told, and no more */
		return;
	}
	if (!it) {
		it = item_new(c, namespace_, name, token, last);
		next(it, last, FIND);
		return;
	}
	it->wanted = false;
	if (it->req) /* its answer goes on */
		return;
	loop_cancel(it->timer);
	it->timer = NULL;
	next(it, last, FIND);
}

void capacity_drop(struct capacity *c, const char *namespace_, const char *name, const char *token)
{
	drop(c, namespace_, name, token, REQUEST);
}

void capacity_leave(struct capacity *c, const char *namespace_, const char *name, const char *token)
{
	drop(c, namespace_, name, token, POD);
}

int capacity_new(struct loop *l, struct http *h, struct watch *w, const char *namespace_,
		 const char *cluster_id, struct capacity **out, struct gpuq_err *err)
{
	struct capacity *c = calloc(1, sizeof(*c));

	if (!c)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	c->loop = l;
	c->http = h;
	c->watch = w;
	c->namespace_ = namespace_;
	c->cluster_id = cluster_id;
	watch_on_placeholder(w, on_placeholder, c);
	*out = c;
	return 0;
}

void capacity_free(struct capacity *c)
{
	struct item *it, *next_;

	if (!c)
		return;
	HASH_ITER(hh, c->items, it, next_)
		item_free(it);
	http_cancel(c->find);
	loop_cancel(c->again);
	free(c);
}
