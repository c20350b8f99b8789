#include "watch.h"
#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define WATCH_DEFAULT_S 1800 /* times 1..2, as the real server's min-request-timeout */

struct watcher {
	struct watcher *next, **at; /* in kind->watchers */
	struct conn *c;
	struct kind *kind;
	char ns[256];
	struct selector *sel;
	bool bookmarks;
	uint64_t from; /* events up to here were seen by the client */
	uint64_t sent; /* events so far, for the faults that count them */
	struct event *end, *bookmark, *fault_timer;

	enum fault_act act;
	uint64_t act_after;
	bool act_counts, reset, spoilt;
};

static struct {
	struct event_base *base;
	int64_t bookmark_us;
	unsigned n;
} w_;

static struct timeval tv_us(int64_t us)
{
	return (struct timeval){ us / SECOND_US, us % SECOND_US };
}

static void watcher_free(void *arg)
{
	struct watcher *w = arg;

	*w->at = w->next;
	if (w->next)
		w->next->at = w->at;
	event_free(w->end);
	event_free(w->bookmark);
	event_free(w->fault_timer);
	selector_free(w->sel);
	free(w);
	w_.n--;
}

/* Leave the connection to itself and forget the watch. */
static void watcher_end(struct watcher *w, bool kill, bool reset)
{
	struct conn *c = w->c;

	watcher_free(w);
	if (kill)
		http_stream_kill(c, reset);
	else
		http_stream_end(c);
}

static void send_error(struct watcher *w, int code, const char *reason, const char *message)
{
	struct buf b = BUF_INIT;

	buf_adds(&b, "{\"type\":\"ERROR\",\"object\":");
	status_text(&b, code, reason, message);
	buf_adds(&b, "}\n");
	http_send(w->c, b.s, b.len);
	buf_done(&b);
}

/* Do what the fault says. Returns true when the watcher is gone. */
static bool spoil(struct watcher *w)
{
	static const char garbage[] =
		"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"na\x01me:\n";

	w->spoilt = true;
	switch (w->act) {
	case FAULT_HALF_OPEN:
		http_stream_freeze(w->c);
		return false;
	case FAULT_GONE:
		send_error(w, 410, "Expired", "too old resource version");
		watcher_end(w, false, false);
		return true;
	case FAULT_GARBAGE:
		http_send(w->c, garbage, sizeof(garbage) - 1);
		return false;
	case FAULT_CLOSE:
		watcher_end(w, true, w->reset);
		return true;
	default:
		return false;
	}
}

static bool spoil_if_due(struct watcher *w)
{
	if (w->spoilt || !w->act_counts || w->sent < w->act_after)
		return false;
	return spoil(w);
}

/* Returns true when the watcher is gone. */
static bool send_event(struct watcher *w, const char *type, const struct version *v)
{
	static struct buf b; /* one stream after another: no allocation per event */

	b.len = 0;
	buf_addf(&b, "{\"type\":\"%s\",\"object\":", type);
	version_text(v, &b);
	buf_adds(&b, "}\n");
	http_send(w->c, b.s, b.len);
	w->sent++;
	if (http_backlog(w->c) > HTTP_BACKLOG_MAX) {
		watcher_end(w, true, false); /* a reader that is too slow loses its watch */
		return true;
	}
	return spoil_if_due(w);
}

/* Apply a selector to an event: entering is ADDED, leaving is DELETED. */
static bool tell(struct watcher *w, const struct event *e)
{
	bool now, before;

	if (e->cur->rv <= w->from)
		return false;
	if (*w->ns && strcmp(e->cur->facts->ns, w->ns) != 0)
		return false;
	now = e->type != EVENT_DELETED && selector_match(w->sel, e->cur);
	before = e->prev && selector_match(w->sel, e->prev);
	if (now)
		return send_event(w, before ? "MODIFIED" : "ADDED", e->cur);
	if (!before)
		return false;
	if (e->type != EVENT_DELETED) { /* it left the selector: the state before */
		static const struct version_edit no_edit;
		struct version *v = version_edit(e->prev, e->cur->rv, &no_edit);
		const bool gone = send_event(w, "DELETED", v);

		version_unref(v);
		return gone;
	}
	return send_event(w, "DELETED", e->cur);
}

static void on_store_event(const struct event *e)
{
	struct watcher *next;

	for (struct watcher *w = e->cur->kind->watchers; w; w = next) {
		next = w->next;
		tell(w, e);
	}
}

void watch_close_all(void)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		while (kinds[i].watchers)
			watcher_end(kinds[i].watchers, true, false);
	}
}

static void send_bookmark(struct watcher *w, bool initial_end)
{
	struct buf b = BUF_INIT;

	/* To a client from the future (after a rewind) there is nothing to say:
	 * a real server sends no bookmark that lies behind the watch. */
	if (store_rv() < w->from)
		return;
	buf_addf(&b,
		 "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\","
		 "\"metadata\":{\"resourceVersion\":\"%llu\",\"creationTimestamp\":null%s}",
		 w->kind->name, w->kind->api_version, (unsigned long long)store_rv(),
		 initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
	if (w->kind == &kinds[KIND_PODS])
		buf_adds(&b, ",\"spec\":{\"containers\":null},\"status\":{}");
	buf_adds(&b, "}}\n");
	http_send(w->c, b.s, b.len);
	buf_done(&b);
}

static void on_bookmark(evutil_socket_t fd, short what, void *arg)
{
	struct watcher *w = arg;
	const struct timeval tv = tv_us(w_.bookmark_us);

	(void)fd;
	(void)what;
	send_bookmark(w, false);
	evtimer_add(w->bookmark, &tv);
}

static void on_end_time(evutil_socket_t fd, short what, void *arg)
{
	struct watcher *w = arg;

	(void)fd;
	(void)what;
	if (w->bookmarks)
		send_bookmark(w, false);
	watcher_end(w, false, false);
}

static void on_fault_time(evutil_socket_t fd, short what, void *arg)
{
	struct watcher *w = arg;

	(void)fd;
	(void)what;
	if (!w->spoilt)
		spoil(w);
}

void watch_init(struct event_base *base, int64_t bookmark_us)
{
	w_.base = base;
	w_.bookmark_us = bookmark_us;
	store_listen(on_store_event, watch_close_all);
}

unsigned watch_count(void)
{
	return w_.n;
}

/* Where to start from, and what is wrong with the parameters. */
static int read_start(const struct call *call, struct reply *r, uint64_t *rv, bool *initial)
{
	const char *text = http_param(call->req, "resourceVersion");
	const char *send_initial = http_param(call->req, "sendInitialEvents");
	const char *match = http_param(call->req, "resourceVersionMatch");

	*rv = 0;
	if (text && *text && uint_parse(text, rv) != 0) {
		reply_error(r, 400, "BadRequest", NULL, NULL, "invalid resource version \"%s\"",
			    text);
		return -1;
	}
	if ((send_initial != NULL) != (match != NULL) ||
	    (match && strcmp(match, "NotOlderThan") != 0)) {
		reply_causes(r, 422, "Invalid", NULL, NULL,
			     json_pack("[{s:s,s:s,s:s}]", "reason", "FieldValueForbidden",
				       "message", "Forbidden: sendInitialEvents needs NotOlderThan",
				       "field", "resourceVersionMatch"),
			     "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents and "
			     "resourceVersionMatch=NotOlderThan go together");
		return -1;
	}
	*initial = send_initial ? http_param_true(call->req, "sendInitialEvents") : *rv == 0;
	return 0;
}

/* The state now, as ADDED events. Returns true when the watcher is gone. */
static bool send_initial_state(struct watcher *w)
{
	struct obj *o, *tmp;

	HASH_ITER(hh, w->kind->objs, o, tmp) {
		if ((!*w->ns || strcmp(o->v->facts->ns, w->ns) == 0) &&
		    selector_match(w->sel, o->v) && send_event(w, "ADDED", o->v))
			return true;
	}
	return false;
}

static bool send_history(struct watcher *w, uint64_t rv)
{
	for (uint64_t i = rv + 1; i <= store_rv(); i++) {
		const struct event *e = store_event(i);

		if (e->cur->kind == w->kind && tell(w, e))
			return true;
	}
	return false;
}

static void start_timers(struct watcher *w, const struct call *call, const struct fault *f)
{
	const char *text = http_param(call->req, "timeoutSeconds");
	uint64_t seconds = 0;
	struct timeval tv;

	if (!text || uint_parse(text, &seconds) != 0 || seconds == 0 || seconds > 1000000)
		seconds = WATCH_DEFAULT_S + rand_u64() % WATCH_DEFAULT_S;
	tv = (struct timeval){ (time_t)seconds, 0 };
	evtimer_add(w->end, &tv);
	if (w->bookmarks) {
		tv = tv_us(w_.bookmark_us);
		evtimer_add(w->bookmark, &tv);
	}
	if (f && f->after_us) {
		tv = tv_us(f->after_us);
		evtimer_add(w->fault_timer, &tv);
	}
}

void watch_start(const struct call *call, const struct fault *f, struct reply *r)
{
	struct selector *sel = NULL;
	struct watcher *w;
	uint64_t rv;
	bool initial, gone, mark_end;
	char *why = NULL;

	if (read_start(call, r, &rv, &initial) != 0)
		return;
	if (selector_parse(call->kind, http_param(call->req, "labelSelector"),
			   http_param(call->req, "fieldSelector"), &sel, &why) != 0) {
		reply_error(r, 400, "BadRequest", NULL, NULL, "%s", why);
		free(why);
		return;
	}
	w = xcalloc(1, sizeof(*w));
	w->kind = call->kind;
	strcpy(w->ns, call->ns);
	w->sel = sel;
	w->bookmarks = http_param_true(call->req, "allowWatchBookmarks") && !(f && f->no_bookmarks);
	if (f) {
		w->act = f->act;
		w->reset = f->reset;
		w->act_counts = f->after_us == 0;
		w->act_after = f->after_events;
	}
	w->end = evtimer_new(w_.base, on_end_time, w);
	w->bookmark = evtimer_new(w_.base, on_bookmark, w);
	w->fault_timer = evtimer_new(w_.base, on_fault_time, w);
	w->at = &call->kind->watchers;
	w->next = *w->at;
	if (w->next)
		w->next->at = &w->next;
	*w->at = w;
	w_.n++;
	start_timers(w, call, f);
	mark_end = initial && w->bookmarks && http_param(call->req, "sendInitialEvents");
	w->c = http_stream(call->req, "application/json", f ? &f->fx : NULL, watcher_free, w);
	if (!w->c) {
		watcher_free(w);
		return;
	}
	if (spoil_if_due(w))
		return;
	if (!initial && rv < store_oldest_rv()) {
		char message[96];

		snprintf(message, sizeof(message), "too old resource version: %llu (%llu)",
			 (unsigned long long)rv, (unsigned long long)store_oldest_rv());
		send_error(w, 410, "Expired", message);
		watcher_end(w, false, false);
		return;
	}
	gone = initial ? send_initial_state(w) : send_history(w, rv);
	if (gone)
		return;
	/* From the future: silence until the number is passed, as etcd does. */
	w->from = rv > store_rv() ? rv : 0;
	if (mark_end)
		send_bookmark(w, true);
}
