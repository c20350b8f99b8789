#include "api.h"
#include "audit.h"
#include "control.h"
#include "faults.h"
#include "list.h"
#include "pods.h"
#include "watch.h"
#include "write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOO_NEW_US (3 * SECOND_US) /* how long a list waits for a future version */

/* A request on its way, which may take several turns of the loop. */
struct task {
	struct task *next, **at;
	struct call call;
	struct fault fault; /* act FAULT_NONE: none */
	struct reply reply;
	struct event *timer;
	bool waited;
};

static struct {
	struct event_base *base;
	char *token; /* "Bearer ..." or NULL */
	struct task *tasks; /* those that wait */
} api;

static void task_free(struct task *t)
{
	if (t->at) {
		*t->at = t->next;
		if (t->next)
			t->next->at = t->at;
	}
	if (t->timer)
		event_free(t->timer);
	buf_done(&t->reply.body);
	free(t);
}

static void task_later(struct task *t, int64_t us, event_callback_fn fn)
{
	const struct timeval tv = { us / SECOND_US, us % SECOND_US };

	if (!t->at) {
		t->at = &api.tasks;
		t->next = api.tasks;
		if (t->next)
			t->next->at = &t->next;
		api.tasks = t;
	}
	if (t->timer)
		event_free(t->timer);
	t->timer = evtimer_new(api.base, fn, t);
	evtimer_add(t->timer, &tv);
}

static void task_send(struct task *t)
{
	http_reply(t->call.req, t->reply.code, t->reply.type,
		   *t->reply.headers ? t->reply.headers : NULL, &t->reply.body, &t->fault.fx);
	task_free(t);
}

static void on_send(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	task_send(arg);
}

/* The request is done; what becomes of the answer? */
static void task_answer(struct task *t)
{
	switch (t->fault.act) {
	case FAULT_DROP_AFTER:
		http_drop(t->call.req, t->fault.reset);
		task_free(t);
		return;
	case FAULT_HANG_AFTER:
		http_hang(t->call.req);
		task_free(t);
		return;
	default:
		break;
	}
	if (t->fault.delay_after_us)
		task_later(t, t->fault.delay_after_us, on_send);
	else
		task_send(t);
}

static void method_not_allowed(const struct call *call, struct reply *r)
{
	reply_error(r, 405, "MethodNotAllowed", call->kind, call->name,
		    "the server does not allow this method on the requested resource");
}

static void get_one(const struct call *call, struct reply *r)
{
	const struct obj *o = store_find(call->kind, call->ns, call->name);

	if (o)
		reply_object(r, 200, o->v);
	else
		reply_not_found(r, call->kind, call->name);
}

/* Subresources: which verb does what. */
static void run_sub(const struct call *call, struct reply *r)
{
	const bool pod = call->kind == &kinds[KIND_PODS];
	const bool post = call->verb == VERB_POST;

	if (strcmp(call->sub, "status") == 0 && call->verb == VERB_GET)
		get_one(call, r);
	else if (strcmp(call->sub, "status") == 0 &&
		 (call->verb == VERB_PUT || call->verb == VERB_PATCH))
		write_update(call, r);
	else if (pod && post && strcmp(call->sub, "binding") == 0)
		pods_bind(call, r);
	else if (pod && post && strcmp(call->sub, "eviction") == 0)
		pods_evict(call, r);
	else
		reply_error(r, 404, "NotFound", NULL, NULL,
			    "the server could not find the requested resource");
}

/* Everything that answers at once. */
static void run_verb(const struct call *call, struct reply *r)
{
	if (*call->sub) {
		run_sub(call, r);
		return;
	}
	switch (call->verb) {
	case VERB_GET:
		get_one(call, r);
		break;
	case VERB_POST:
		if (*call->name)
			method_not_allowed(call, r);
		else
			write_create(call, r);
		break;
	case VERB_PUT:
	case VERB_PATCH:
		if (*call->name)
			write_update(call, r);
		else
			method_not_allowed(call, r);
		break;
	case VERB_DELETE:
		if (*call->name)
			write_delete(call, r);
		else
			write_delete_collection(call, r);
		break;
	case VERB_LIST:
	case VERB_WATCH:
		break;
	}
}

static void task_run(struct task *t);

static void on_waited(evutil_socket_t fd, short what, void *arg)
{
	struct task *t = arg;

	(void)fd;
	(void)what;
	t->waited = true;
	task_run(t);
}

static bool is_log(const struct call *call)
{
	return call->kind == &kinds[KIND_PODS] && call->verb == VERB_GET &&
	       strcmp(call->sub, "log") == 0;
}

static bool is_session(const struct call *call)
{
	return call->kind == &kinds[KIND_PODS] && call->verb == VERB_GET &&
	       pods_session_kind(call->sub);
}

/* The faults that keep the request from being done. Returns true when done with. */
static bool spoil_before(struct task *t)
{
	switch (t->fault.act) {
	case FAULT_DROP_BEFORE:
		http_drop(t->call.req, t->fault.reset);
		task_free(t);
		return true;
	case FAULT_HANG_BEFORE:
		http_hang(t->call.req);
		task_free(t);
		return true;
	case FAULT_GONE:
	case FAULT_GARBAGE:
		if (t->call.verb == VERB_WATCH)
			return false;
		break;
	case FAULT_STATUS:
	case FAULT_HTML:
		break;
	default:
		return false;
	}
	fault_reply(&t->fault, &t->call, &t->reply);
	task_answer(t);
	return true;
}

static void task_run(struct task *t)
{
	if (spoil_before(t))
		return;
	if (t->call.verb == VERB_WATCH || is_log(&t->call) || is_session(&t->call)) {
		if (is_session(&t->call))
			pods_session(&t->call, &t->fault, &t->reply);
		else if (is_log(&t->call))
			pods_log(&t->call, &t->fault, &t->reply);
		else
			watch_start(&t->call, &t->fault, &t->reply);
		if (t->reply.code)
			task_answer(t);
		else
			task_free(t); /* the stream has taken over */
		return;
	}
	if (t->call.verb == VERB_LIST) {
		if (list_get(&t->call, t->waited, &t->reply)) {
			task_later(t, TOO_NEW_US, on_waited);
			return;
		}
	} else {
		run_verb(&t->call, &t->reply);
	}
	task_answer(t);
}

static void on_delayed(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	task_run(arg);
}

static void reply_and_free(struct http_req *req, struct reply *r)
{
	http_reply(req, r->code, r->type, *r->headers ? r->headers : NULL, &r->body, NULL);
	buf_done(&r->body);
}

/* Cut the next part off a path; NULL at the end. */
static char *next_part(char **path)
{
	char *part = *path, *slash;

	if (!part || !*part)
		return NULL;
	slash = strchr(part, '/');
	if (slash)
		*slash = '\0';
	*path = slash ? slash + 1 : NULL;
	return part;
}

static bool copy_part(char *to, size_t size, const char *from)
{
	if (!from)
		return true;
	if (strlen(from) >= size)
		return false;
	strcpy(to, from);
	return true;
}

/* /api/v1/... and /apis/GROUP/VERSION/... after the version. */
static bool read_resource(char *path, const char *group, const char *version, struct call *call)
{
	char *part = next_part(&path), *name, *sub;

	if (!part)
		return false;
	/* namespaces/NS/RESOURCE, but namespaces/NS and namespaces/NS/status are the
	 * namespace itself. */
	if (strcmp(part, "namespaces") == 0) {
		char *ns = next_part(&path), *rest = next_part(&path);

		if (!ns || !rest || strcmp(rest, "status") == 0) {
			call->kind = kind_find(group, version, "namespaces");
			return call->kind && copy_part(call->name, sizeof(call->name), ns) &&
			       copy_part(call->sub, sizeof(call->sub), rest);
		}
		if (!copy_part(call->ns, sizeof(call->ns), ns))
			return false;
		part = rest;
	}
	name = next_part(&path);
	sub = next_part(&path);
	call->kind = kind_find(group, version, part);
	if (!call->kind || (*call->ns && !call->kind->namespaced) ||
	    (name && call->kind->namespaced && !*call->ns))
		return false;
	return copy_part(call->name, sizeof(call->name), name) &&
	       copy_part(call->sub, sizeof(call->sub), sub) && !(path && *path);
}

static bool read_verb(const struct http_req *req, struct call *call)
{
	static const struct {
		const char *method;
		enum verb verb;
	} methods[] = {
		{ "GET", VERB_GET },     { "POST", VERB_POST },     { "PUT", VERB_PUT },
		{ "PATCH", VERB_PATCH }, { "DELETE", VERB_DELETE },
	};

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (strcmp(methods[i].method, req->method) != 0)
			continue;
		call->verb = methods[i].verb;
		if (call->verb == VERB_GET && !*call->name)
			call->verb = http_param_true(req, "watch") ? VERB_WATCH : VERB_LIST;
		return true;
	}
	return false;
}

static bool read_call(struct http_req *req, struct call *call)
{
	char *copy = xstrdup(req->path), *path = copy + 1, *part;
	bool ok = false;

	call->req = req;
	part = next_part(&path);
	if (part && strcmp(part, "api") == 0) {
		part = next_part(&path);
		ok = part && strcmp(part, "v1") == 0 && read_resource(path, "", "v1", call);
	} else if (part && strcmp(part, "apis") == 0) {
		char *group = next_part(&path), *version = next_part(&path);

		ok = group && version && read_resource(path, group, version, call);
	}
	free(copy);
	return ok;
}

static bool authorized(const struct http_req *req)
{
	return !api.token || strcmp(req->authorization, api.token) == 0;
}

/* In a group that is served the answer is a Status, else plain text. */
static void not_found(const char *path, struct reply *r)
{
	char group[64], version[16];

	if (strncmp(path, "/api/v1/", 8) == 0 ||
	    (sscanf(path, "/apis/%63[^/]/%15[^/]/", group, version) == 2 &&
	     kind_of_group(group, version)))
		reply_error(r, 404, "NotFound", NULL, NULL,
			    "the server could not find the requested resource");
	else
		reply_text(r, 404, "text/plain", "404 page not found\n");
}

void api_on_request(struct http_req *req)
{
	struct call call = { 0 };
	struct reply r = { 0 };
	const struct fault *f;
	struct task *t;

	if (strncmp(req->path, "/fake/", 6) == 0) {
		control_request(req, &r);
		reply_and_free(req, &r);
		return;
	}
	audit_request();
	if (!authorized(req)) {
		reply_error(&r, 401, "Unauthorized", NULL, NULL, "Unauthorized");
		reply_and_free(req, &r);
		return;
	}
	if (!read_call(req, &call)) {
		call = (struct call){ .req = req };
		if (!review_post(req, &r) && !discovery_get(req, &r))
			not_found(req->path, &r);
		f = rules_match(&call);
	} else if (!read_verb(req, &call)) {
		method_not_allowed(&call, &r);
		reply_and_free(req, &r);
		return;
	} else {
		f = rules_match(&call);
	}
	t = xcalloc(1, sizeof(*t));
	t->call = call;
	t->reply = r;
	if (f)
		t->fault = *f;
	if (!call.kind) { /* discovery: the answer is there, it can only be spoiled */
		if (!spoil_before(t))
			task_answer(t);
	} else if (t->fault.delay_us) {
		task_later(t, t->fault.delay_us, on_delayed);
	} else {
		task_run(t);
	}
}

void api_set_token(const char *token)
{
	struct buf b = BUF_INIT;

	free(api.token);
	if (token)
		buf_addf(&b, "Bearer %s", token);
	api.token = b.s;
}

void api_init(struct event_base *base, const char *token)
{
	api.base = base;
	api_set_token(token);
}

void api_done(void)
{
	while (api.tasks) {
		http_drop(api.tasks->call.req, false);
		task_free(api.tasks);
	}
	free(api.token);
}
