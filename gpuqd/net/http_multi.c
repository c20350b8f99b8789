#include "gpuqd/net/http_multi.h"

#include <stdbool.h>
#include <stdlib.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"

struct http_multi {
	struct loop *loop;
	CURLM *multi;
	struct event *timer;
	long connections;
	bool keep;
	struct http_multi_sink sink;
};

static void collect(struct http_multi *m)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(m->multi, &left)) != NULL) {
		CURL *easy = msg->easy_handle;
		CURLcode code = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		if (!m->keep || code != CURLE_OK)
			curl_multi_remove_handle(m->multi, easy);
		m->sink.done(m->sink.arg, easy, code);
	}
}

static void act(struct http_multi *m, curl_socket_t fd, int mask)
{
	struct loop *l = m->loop;
	const char *before = loop_enter(l, LOOP_HERE);
	int running;
	CURLMcode rc = curl_multi_socket_action(m->multi, fd, mask, &running);

	if (rc == CURLM_OK) {
		collect(m);
	} else {
		log_err("http.transport", "error=%s", LOGS(curl_multi_strerror(rc)));
		m->sink.broken(m->sink.arg, m);
	}
	loop_leave(l, before);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	act(arg, fd,
	    (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static int want_timer(CURLM *multi, long ms, void *arg)
{
	struct http_multi *m = arg;
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	(void)multi;
	if (ms < 0)
		event_del(m->timer);
	else
		event_add(m->timer, &tv);
	return 0;
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *event)
{
	struct http_multi *m = arg;
	struct event *ev = event;
	short mask = EV_PERSIST;

	(void)easy;
	if (ev)
		event_free(ev);
	if (what == CURL_POLL_REMOVE) {
		curl_multi_assign(m->multi, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		mask |= EV_READ;
	if (what & CURL_POLL_OUT)
		mask |= EV_WRITE;
	ev = event_new(loop_base(m->loop), fd, mask, on_socket, m);
	if (!ev || event_add(ev, NULL) != 0)
		abort(); /* as loop_after(): a lost event would be a silent stall */
	curl_multi_assign(m->multi, fd, ev);
	return 0;
}

static CURLM *make(struct http_multi *m)
{
	CURLM *c = curl_multi_init();

	if (!c)
		return NULL;
	curl_multi_setopt(c, CURLMOPT_SOCKETFUNCTION, want_socket);
	curl_multi_setopt(c, CURLMOPT_SOCKETDATA, m);
	curl_multi_setopt(c, CURLMOPT_TIMERFUNCTION, want_timer);
	curl_multi_setopt(c, CURLMOPT_TIMERDATA, m);
	curl_multi_setopt(c, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(c, CURLMOPT_MAX_CONCURRENT_STREAMS, 100L);
	curl_multi_setopt(c, CURLMOPT_MAX_HOST_CONNECTIONS, m->connections);
	curl_multi_setopt(c, CURLMOPT_MAXCONNECTS, m->connections ? m->connections : 4L);
	return c;
}

int http_multi_new(struct loop *l, long connections, const struct http_multi_sink *sink,
		   struct http_multi **out, struct gpuq_err *err)
{
	struct http_multi *m = calloc(1, sizeof(*m));

	if (m) {
		m->loop = l;
		m->connections = connections;
		m->sink = *sink;
		m->timer = event_new(loop_base(l), -1, 0, on_timer, m);
		m->multi = make(m);
	}
	if (!m || !m->timer || !m->multi) {
		http_multi_free(m);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for the HTTP client");
	}
	*out = m;
	return 0;
}

void http_multi_keep(struct http_multi *m)
{
	m->keep = true;
}

void http_multi_free(struct http_multi *m)
{
	if (!m)
		return;
	if (m->multi)
		curl_multi_cleanup(m->multi);
	if (m->timer)
		event_free(m->timer);
	free(m);
}

int http_multi_add(struct http_multi *m, CURL *easy)
{
	return curl_multi_add_handle(m->multi, easy) == CURLM_OK ? 0 : GPUQ_EIO;
}

void http_multi_remove(struct http_multi *m, CURL *easy)
{
	curl_multi_remove_handle(m->multi, easy);
}

int http_multi_renew(struct http_multi *m)
{
	CURLM *next = make(m);

	if (!next)
		return GPUQ_ENOMEM;
	event_del(m->timer);
	curl_multi_cleanup(m->multi);
	m->multi = next;
	return 0;
}
