/* pod_log.c - GET of a pod's log
 *
 * The text is the annotation gpuq.test/log, a line at once or, with
 * gpuq.test/log-every, a line per interval from the start of the container.
 */
#include "audit.h"
#include "kubelet.h"
#include "pods.h"

#include <stdlib.h>
#include <string.h>

#define POLL_US 20000

struct tail {
	struct conn *c;
	struct event *timer;
	char uid[UID_SIZE];
	char *text; /* the whole log that will be */
	const char *at; /* what was not sent yet */
	size_t line; /* its number */
	int64_t started_us, every_us;
	bool timestamps;
	struct fault fault;
	uint64_t sent;
	bool spoilt;
};

static struct event_base *log_base;

void pods_init(struct event_base *base)
{
	log_base = base;
}

static void tail_free(void *arg)
{
	struct tail *t = arg;

	event_free(t->timer);
	free(t->text);
	free(t);
}

static void add_line(struct buf *b, const struct tail *t, const char *line, size_t n, size_t number)
{
	if (t->timestamps) {
		const int64_t us = t->started_us + (int64_t)number * t->every_us;
		char when[TIME_TEXT_SIZE];

		time_text(when, us);
		buf_addf(b, "%.19s.%06lld000Z ", when, (long long)(us % SECOND_US));
	}
	buf_add(b, line, n);
	buf_adds(b, "\n");
}

/* How many lines exist at a time. */
static size_t lines_until(const struct tail *t, int64_t now)
{
	if (t->every_us == 0)
		return SIZE_MAX;
	return now < t->started_us ? 0 : (size_t)((now - t->started_us) / t->every_us) + 1;
}

/* Move the lines that exist by now into b. Returns true at the end of the text. */
static bool take_lines(struct tail *t, size_t until, struct buf *b)
{
	while (*t->at && t->line < until) {
		const size_t n = strcspn(t->at, "\n");

		add_line(b, t, t->at, n, t->line);
		t->at += n + (t->at[n] == '\n');
		t->line++;
		t->sent++;
	}
	return !*t->at;
}

static void spoil(struct tail *t)
{
	struct conn *c = t->c;

	t->spoilt = true;
	if (t->fault.act == FAULT_HALF_OPEN) {
		http_stream_freeze(c);
	} else if (t->fault.act == FAULT_CLOSE) {
		const bool reset = t->fault.reset;

		tail_free(t);
		http_stream_kill(c, reset);
	}
}

static void on_tail(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval again = { 0, POLL_US };
	int64_t started = 0, ended = 0;
	struct tail *t = arg;
	struct conn *c = t->c;
	struct buf b = BUF_INIT;
	bool known, over;

	(void)fd;
	(void)what;
	known = kubelet_times(t->uid, &started, &ended);
	take_lines(t, lines_until(t, ended ? ended : now_us()), &b);
	over = !known || ended;
	http_send(c, b.s, b.len);
	buf_done(&b);
	if (!t->spoilt && t->fault.act != FAULT_NONE && t->sent >= t->fault.after_events) {
		const bool closes = t->fault.act == FAULT_CLOSE;

		spoil(t);
		if (closes)
			return;
	}
	if (over) {
		tail_free(t);
		http_stream_end(c);
		return;
	}
	evtimer_add(t->timer, &again);
}

/* Which container; NULL when r refuses. */
static const struct container *pick(const struct call *call, const struct facts *f, struct reply *r)
{
	const char *name = http_param(call->req, "container");
	struct buf names = BUF_INIT;

	for (size_t i = 0; i < f->pod.n_containers; i++) {
		const struct container *c = &f->pod.containers[i];

		if (name && strcmp(name, c->name) == 0)
			return c;
		buf_addf(&names, "%s%s", i ? " " : "", c->name);
	}
	if (!name && f->pod.n_containers == 1) {
		buf_done(&names);
		return &f->pod.containers[0];
	}
	if (name)
		reply_error(r, 400, "BadRequest", NULL, NULL,
			    "container %s is not valid for pod %s", name, f->name);
	else
		reply_error(r, 400, "BadRequest", NULL, NULL,
			    "a container name must be specified for pod %s, choose one of: [%s]",
			    f->name, names.s ? names.s : "");
	buf_done(&names);
	return NULL;
}

/* tailLines and limitBytes of a log that is complete. */
static void trim(const struct call *call, struct buf *b)
{
	const char *tail = http_param(call->req, "tailLines");
	const char *limit = http_param(call->req, "limitBytes");
	uint64_t n;

	if (tail && uint_parse(tail, &n) == 0) {
		size_t at = b->len;

		while (at > 0) {
			if (b->s[at - 1] == '\n' && at != b->len && n-- == 1)
				break;
			if (n == 0)
				break;
			at--;
		}
		if (b->s && at) {
			memmove(b->s, b->s + at, b->len - at + 1);
			b->len -= at;
		}
	}
	if (limit && uint_parse(limit, &n) == 0 && n < b->len)
		b->len = n;
}

void pods_log(const struct call *call, const struct fault *fault, struct reply *r)
{
	struct obj *o = store_find(call->kind, call->ns, call->name);
	const struct timeval now = { 0, 0 };
	const struct facts *f;
	const struct container *c;
	const char *since = http_param(call->req, "sinceTime");
	int64_t started = 0, ended = 0;
	struct tail *t;
	bool known;

	if (!o) {
		reply_not_found(r, call->kind, call->name);
		return;
	}
	f = o->v->facts;
	if (!*f->pod.node) {
		reply_text(r, 204, "", "");
		return;
	}
	c = pick(call, f, r);
	if (!c)
		return;
	if (kubelet_node_is_down(f->pod.node)) {
		reply_error(
			r, 500, "", NULL, NULL,
			"Get \"https://%s:10250/containerLogs/%s/%s/%s\": dial tcp: connect: no "
			"route to host",
			f->pod.node, f->ns, f->name, c->name);
		return;
	}
	known = kubelet_times(f->uid, &started, &ended);
	if ((known && !started) || o->v->phase == PHASE_PENDING) {
		reply_error(r, 400, "BadRequest", NULL, NULL,
			    "container \"%s\" in pod \"%s\" is waiting to start: ContainerCreating",
			    c->name, f->name);
		return;
	}
	t = xcalloc(1, sizeof(*t));
	snprintf(t->uid, sizeof(t->uid), "%s", f->uid);
	t->at = t->text = xstrdup(f->pod.play.log);
	t->started_us = started;
	t->every_us = f->pod.play.log_every_us;
	t->timestamps = http_param_true(call->req, "timestamps");
	t->timer = evtimer_new(log_base, on_tail, t);
	if (fault)
		t->fault = *fault;
	if (since && t->every_us) {
		struct buf skip = BUF_INIT;

		take_lines(t, lines_until(t, time_parse(since) - 1), &skip);
		buf_done(&skip);
	}
	if (!http_param_true(call->req, "follow")) {
		reply_text(r, 200, "text/plain", "");
		take_lines(t, known ? lines_until(t, ended ? ended : now_us()) : SIZE_MAX,
			   &r->body);
		trim(call, &r->body);
		tail_free(t);
		return;
	}
	t->c = http_stream(call->req, "text/plain", fault ? &fault->fx : NULL, tail_free, t);
	if (t->c)
		evtimer_add(t->timer, &now);
	else
		tail_free(t);
}
