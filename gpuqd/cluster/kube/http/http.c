#include "gpuqd/cluster/kube/http/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/event.h>

#include "gpuqd/base/clock.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/http_parts.h"

#define FLIGHT_MAX 96 /* requests at once; one HTTP/2 connection carries 100 */
#define CONNECTIONS 8L
#define BODY_BYTES_MAX (4u << 20) /* a pod is at most etcd's 1.5 MiB */
#define ERROR_BYTES_MAX (64u << 10)
#define WARNINGS_BYTES_MAX 4096u /* of one answer; more are left out */
#define RETRY_AFTER_MAX_S 300

static struct http_multi *multi_of(const struct http_req *r)
{
	if (r->call.on_tunnel)
		return r->http->tunnels;
	return r->call.stream ? r->http->streams : r->http->requests;
}

/* ---- curl's callbacks: none of them may call back into curl ---- */

/* A header line is no string: it ends where it ends. */
static int64_t whole_seconds(const char *p, const char *end)
{
	int64_t s = 0;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	for (; p < end && *p >= '0' && *p <= '9' && s < RETRY_AFTER_MAX_S; p++)
		s = s * 10 + (*p - '0');
	return s < RETRY_AFTER_MAX_S ? s : RETRY_AFTER_MAX_S;
}

/* The text of `Warning: 299 - "text"`, as a line without control characters. */
static void take_warning(struct gpuq_buf *out, const char *p, const char *end)
{
	p = memchr(p, '"', (size_t)(end - p));
	while (end > p && end[-1] != '"')
		end--;
	if (!p || end - p < 3 || out->len > WARNINGS_BYTES_MAX)
		return;
	for (p++; p < end - 1; p++) {
		if (*p == '\\' && p + 1 < end - 1)
			p++;
		gpuq_buf_addc(out, (unsigned char)*p < 0x20 || *p == 0x7f ? ' ' : *p);
	}
	gpuq_buf_addc(out, '\n');
}

size_t http_on_header(char *line, size_t size, size_t n, void *arg)
{
	struct http_req *r = arg;
	size_t len = size * n;
	int status;

	r->last_us = loop_mono_us(r->http->loop);
	if (len > 5 && strncasecmp(line, "HTTP/", 5) == 0) {
		const char *sp = memchr(line, ' ', len);

		status = sp && sp + 4 <= line + len ? (int)strtol(sp + 1, NULL, 10) : 0;
		r->status = status;
	} else if (len > 12 && strncasecmp(line, "Retry-After:", 12) == 0) {
		r->retry_us = whole_seconds(line + 12, line + len) * INT64_C(1000000);
	} else if (len > 8 && strncasecmp(line, "Warning:", 8) == 0) {
		take_warning(&r->warnings, line + 8, line + len);
	} else if (len <= 2 && r->status >= 200 && r->status < 300 && !r->opened) {
		r->opened = true;
		if (!r->cancelled && r->call.on_open)
			r->call.on_open(r->call.arg);
	}
	return len;
}

size_t http_on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct http_req *r = arg;
	size_t len = size * n;
	bool good = r->status >= 200 && r->status < 300;

	r->last_us = loop_mono_us(r->http->loop);
	if (r->cancelled)
		return 0;
	if (!good || !r->call.on_data) {
		size_t max = good ? BODY_BYTES_MAX : ERROR_BYTES_MAX;

		if (r->body.len + len <= max && gpuq_buf_add(&r->body, bytes, len) == 0)
			return len;
		/* The beginning of an error says enough; half an object says nothing. */
		r->overflow = true;
		return good ? 0 : len;
	}
	switch (r->call.on_data(r->call.arg, bytes, len)) {
	case HTTP_MORE:
		return len;
	case HTTP_PAUSE:
		return CURL_WRITEFUNC_PAUSE;
	default:
		r->stopped = true;
		return 0;
	}
}

/* ---- a request's life ---- */

static void kick(struct http *h)
{
	event_active(h->pump, 0, 0);
}

static void free_call(struct http_req *r)
{
	free((char *)r->call.path);
	free((char *)r->call.body);
}

/* Reset the state of one try of sending it. */
static void end_try(struct http_req *r)
{
	if (r->easy)
		curl_easy_cleanup(r->easy);
	r->easy = NULL;
	curl_slist_free_all(r->headers);
	curl_slist_free_all(r->connect_to);
	r->headers = r->connect_to = NULL;
	creds_put(r->creds);
	r->creds = NULL;
	loop_cancel(r->silence);
	r->silence = NULL;
	gpuq_buf_clear(&r->body);
	gpuq_buf_clear(&r->warnings);
}

static void free_req(struct http_req *r)
{
	end_try(r);
	gpuq_buf_done(&r->body);
	gpuq_buf_done(&r->warnings);
	free_call(r);
	free(r);
}

static void leave_running(struct http_req *r)
{
	TAILQ_REMOVE(&r->http->running, r, link);
	if (!r->call.stream)
		r->http->n_flight--;
}

static void answer(struct http_req *r, const struct http_answer *a)
{
	struct http_answer whole = *a;

	whole.warnings = gpuq_buf_str(&r->warnings);
	if (!r->cancelled)
		r->call.on_end(r->call.arg, &whole);
	free_req(r);
}

/* Before the first byte of a request has left, nothing can have happened. */
static bool maybe_sent(CURL *easy, CURLcode code)
{
	long bytes = 0;

	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_PROXY:
		return false;
	default:
		curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &bytes);
		return bytes > 0;
	}
}

static bool tls_trouble(CURLcode code)
{
	return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM ||
	       code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CONNECT_ERROR;
}

static void on_done(void *arg, CURL *easy, CURLcode code)
{
	struct http *h = arg;
	struct http_req *r = NULL;
	struct http_answer a = { .error = "" };

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
	if (r->call.on_tunnel && code == CURLE_OK) {
		if (!r->cancelled)
			r->call.on_tunnel(r->call.arg);
		return;
	}
	leave_running(r);
	if (r->status == 401 && !r->again && !r->cancelled && creds_refused(h->creds, r->creds)) {
		end_try(r);
		r->again = true;
		r->status = 0;
		TAILQ_INSERT_HEAD(&h->waiting, r, link);
		h->n_waiting++;
		kick(h);
		return;
	}
	if (tls_trouble(code))
		creds_tls_failed(h->creds);
	a.status = r->status >= 200 ? r->status : 0;
	a.sent = code == CURLE_OK || maybe_sent(easy, code);
	a.complete = code == CURLE_OK;
	a.retry_us = r->retry_us;
	a.body = gpuq_buf_str(&r->body);
	a.n = r->body.len;
	if (r->silent)
		a.error = "no data for too long";
	else if (r->overflow && a.status < 300)
		a.error = "the reply is larger than any object may be";
	else if (code != CURLE_OK)
		a.error = r->why[0] ? r->why : curl_easy_strerror(code);
	answer(r, &a);
	kick(h);
}

static void on_broken(void *arg, struct http_multi *m)
{
	struct http *h = arg;
	struct http_answer a = { .sent = true,
				 .error = "the HTTP client had to be restarted",
				 .body = "" };
	struct req_list lost = TAILQ_HEAD_INITIALIZER(lost);
	struct http_req *r, *next;

	for (r = TAILQ_FIRST(&h->running); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (multi_of(r) != m)
			continue;
		http_multi_remove(m, r->easy);
		leave_running(r);
		TAILQ_INSERT_TAIL(&lost, r, link);
	}
	if (http_multi_renew(m) != 0)
		abort(); /* no memory for a handle: state is on disk, start again */
	while ((r = TAILQ_FIRST(&lost)) != NULL) {
		TAILQ_REMOVE(&lost, r, link);
		answer(r, &a);
	}
	kick(h);
}

static void on_silence(void *arg)
{
	struct http_req *r = arg;
	int64_t left = r->last_us + r->call.limit_us - loop_mono_us(r->http->loop);

	r->silence = NULL;
	if (left > 0) {
		r->silence = loop_after(r->http->loop, left, on_silence, r);
		return;
	}
	r->silent = true;
	http_multi_remove(multi_of(r), r->easy);
	on_done(r->http, r->easy, CURLE_OPERATION_TIMEDOUT);
}

static void start(struct http_req *r, struct creds_view *creds)
{
	struct http *h = r->http;
	struct http_answer a = { .body = "", .error = "no memory for a request" };

	r->creds = creds;
	if (!http_make(r) || http_multi_add(multi_of(r), r->easy) != 0) {
		answer(r, &a);
		return;
	}
	r->last_us = loop_mono_us(h->loop);
	if (r->call.stream && r->call.limit_us)
		r->silence = loop_after(h->loop, r->call.limit_us, on_silence, r);
	TAILQ_INSERT_TAIL(&h->running, r, link);
	if (!r->call.stream)
		h->n_flight++;
}

/* ---- from the loop ---- */

static void drop_cancelled(struct http *h)
{
	struct http_req *r, *next;

	if (!h->cancelled)
		return;
	for (r = TAILQ_FIRST(&h->running); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (!r->cancelled)
			continue;
		http_multi_remove(multi_of(r), r->easy);
		leave_running(r);
		free_req(r);
	}
}

/* Resuming may bring bytes at once, and their reader may resume or cancel others:
 * begin anew after each. */
static void resume_paused(struct http *h)
{
	struct http_req *r;
again:
	TAILQ_FOREACH(r, &h->running, link) {
		if (!r->resume || r->cancelled)
			continue;
		r->resume = false;
		curl_easy_pause(r->easy, CURLPAUSE_CONT);
		goto again;
	}
}

/* Thousands may wait, and this is called after every answer: streams stand in front, and
 * when no more requests may go only a cancel is a reason to walk on. */
static bool is_past(const struct http *h)
{
	return h->act_until_us && clock_us(CLOCK_BOOTTIME) >= h->act_until_us;
}

static void start_waiting(struct http *h)
{
	struct http_req *r, *next;
	bool walk = h->cancelled;

	h->cancelled = false;
	for (r = TAILQ_FIRST(&h->waiting); r; r = next) {
		struct creds_view *creds;

		next = TAILQ_NEXT(r, link);
		if (r->cancelled) {
			TAILQ_REMOVE(&h->waiting, r, link);
			h->n_waiting--;
			free_req(r);
			continue;
		}
		if (!r->call.first && (h->held || is_past(h)))
			continue;
		if (!r->call.stream && !r->call.first && h->n_flight >= FLIGHT_MAX) {
			if (!walk)
				return;
			continue;
		}
		creds = creds_get(h->creds);
		if (!creds) {
			h->cancelled = walk;
			return;
		}
		TAILQ_REMOVE(&h->waiting, r, link);
		h->n_waiting--;
		start(r, creds);
	}
}

static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;

	(void)fd, (void)what;
	resume_paused(h);
	drop_cancelled(h);
	start_waiting(h);
}

static void on_creds(void *arg, const struct gpuq_err *err)
{
	struct http *h = arg;
	struct http_answer a = { .body = "" };
	struct req_list lost = TAILQ_HEAD_INITIALIZER(lost);
	struct http_req *r;

	if (!err) {
		kick(h);
		return;
	}
	a.error = err->text;
	TAILQ_CONCAT(&lost, &h->waiting, link);
	h->n_waiting = 0;
	while ((r = TAILQ_FIRST(&lost)) != NULL) {
		TAILQ_REMOVE(&lost, r, link);
		answer(r, &a);
	}
}

struct http_req *http_start(struct http *h, const struct http_call *call)
{
	struct http_req *r = calloc(1, sizeof(*r));

	if (!r)
		abort(); /* as loop_after(): the caller waits for an end */
	r->http = h;
	r->call = *call;
	r->call.path = strdup(call->path);
	r->call.body = NULL;
	if (call->body) {
		char *copy = malloc(call->n_body + 1);

		if (!copy)
			abort();
		memcpy(copy, call->body, call->n_body);
		copy[call->n_body] = '\0';
		r->call.body = copy;
	}
	if (!r->call.path)
		abort();
	if (call->stream || call->first)
		TAILQ_INSERT_HEAD(&h->waiting, r, link);
	else
		TAILQ_INSERT_TAIL(&h->waiting, r, link);
	h->n_waiting++;
	kick(h);
	return r;
}

void http_cancel(struct http_req *r)
{
	if (!r)
		return;
	r->cancelled = true;
	r->http->cancelled = true;
	kick(r->http);
}

void http_resume(struct http_req *r)
{
	r->resume = true;
	kick(r->http);
}

void http_hold(struct http *h, bool on)
{
	h->held = on;
	kick(h);
}

void http_act_until(struct http *h, int64_t boot_us)
{
	h->act_until_us = boot_us;
	kick(h);
}

bool http_is_busy(const struct http *h)
{
	return h->n_waiting >= FLIGHT_MAX;
}

int http_new(struct loop *l, struct kube_config *config, struct http **out, struct gpuq_err *err)
{
	struct http *h = calloc(1, sizeof(*h));
	struct http_multi_sink sink = { .arg = h, .done = on_done, .broken = on_broken };
	int rc = GPUQ_ENOMEM;

	if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(h);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for the HTTP client");
	}
	h->loop = l;
	h->config = config;
	h->h2 = strncasecmp(config->server, "https", 5) == 0;
	TAILQ_INIT(&h->waiting);
	TAILQ_INIT(&h->running);
	h->pump = event_new(loop_base(l), -1, 0, on_pump, h);
	if (h->pump)
		rc = http_multi_new(l, 0, &sink, &h->streams, err);
	if (rc == 0)
		rc = http_multi_new(l, 0, &sink, &h->tunnels, err);
	if (rc == 0)
		http_multi_keep(h->tunnels);
	if (rc == 0)
		rc = http_multi_new(l, CONNECTIONS, &sink, &h->requests, err);
	if (rc == 0)
		rc = creds_new(l, config, on_creds, h, &h->creds, err);
	if (rc != 0) {
		http_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

void http_free(struct http *h)
{
	struct http_req *r;

	if (!h)
		return;
	while ((r = TAILQ_FIRST(&h->running)) != NULL) {
		http_multi_remove(multi_of(r), r->easy);
		leave_running(r);
		free_req(r);
	}
	while ((r = TAILQ_FIRST(&h->waiting)) != NULL) {
		TAILQ_REMOVE(&h->waiting, r, link);
		free_req(r);
	}
	http_multi_free(h->streams);
	http_multi_free(h->tunnels);
	http_multi_free(h->requests);
	creds_free(h->creds);
	if (h->pump)
		event_free(h->pump);
	free(h);
}
