#include "gpuqd/cluster/kube/http.h"

#include <config.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/creds.h"
#include "gpuqd/cluster/kube/http_multi.h"
#include "libgpuq/buf.h"

#define FLIGHT_MAX 64 /* requests at once; one HTTP/2 connection carries 100 */
#define CONNECTIONS 8L
#define BODY_BYTES_MAX (4u << 20) /* a pod is at most etcd's 1.5 MiB */
#define ERROR_BYTES_MAX (64u << 10)
#define REQUEST_MS 30000
#define CONNECT_MS 5000L
#define RETRY_AFTER_MAX_S 300

struct http_req {
	TAILQ_ENTRY(http_req) link;
	struct http *http;
	struct http_call call;
	CURL *easy; /* NULL = waiting to be sent */
	struct curl_slist *headers, *connect_to;
	struct creds_view *creds;
	int status;
	int64_t retry_us, last_us; /* last_us: when bytes came, monotonic */
	bool opened, cancelled, stopped, silent, resume, again, overflow;
	struct gpuq_buf body;
	struct loop_timer *silence;
	char why[CURL_ERROR_SIZE];
};

TAILQ_HEAD(req_list, http_req);

struct http {
	struct loop *loop;
	struct kube_config *config;
	struct creds *creds;
	struct http_multi *streams, *requests;
	struct req_list waiting, running;
	size_t n_waiting, n_flight; /* n_flight: requests running, streams not counted */
	struct event *pump;
	bool h2;
};

static struct http_multi *multi_of(const struct http_req *r)
{
	return r->call.stream ? r->http->streams : r->http->requests;
}

/* ---- curl's callbacks: none of them may call back into curl ---- */

static int on_new_socket(void *arg, curl_socket_t fd, curlsocktype type)
{
	unsigned limit_ms = 30000;

	(void)arg, (void)type;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* Without it a peer that vanished under unsent bytes is noticed after 15 min. */
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
	return CURL_SOCKOPT_OK;
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
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
		long s = strtol(line + 12, NULL, 10);

		r->retry_us = (s < 0                   ? 0
			       : s > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S
						       : s) *
			      INT64_C(1000000);
	} else if (len <= 2 && r->status >= 200 && r->status < 300 && !r->opened) {
		r->opened = true;
		if (!r->cancelled && r->call.on_open)
			r->call.on_open(r->call.arg);
	}
	return len;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
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

/* What belongs to one try of sending it. */
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
}

static void free_req(struct http_req *r)
{
	end_try(r);
	gpuq_buf_done(&r->body);
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
	if (!r->cancelled)
		r->call.on_end(r->call.arg, a);
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
		a.error = "no byte for too long";
	else if (r->overflow && a.status < 300)
		a.error = "the answer is larger than any object may be";
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

/* ---- making a request ---- */

static bool header(struct http_req *r, const char *name, const char *value)
{
	size_t room = strlen(name) + strlen(value) + 3;
	char *line = malloc(room);
	struct curl_slist *list = NULL;

	if (line) {
		snprintf(line, room, "%s: %s", name, value);
		list = curl_slist_append(r->headers, line);
		explicit_bzero(line, room);
		free(line);
	}
	if (list)
		r->headers = list;
	return list != NULL;
}

static bool set_headers(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	bool ok = header(r, "Accept", "application/json");

	if (r->call.body)
		ok = ok && header(r, "Content-Type",
				  r->call.content_type ? r->call.content_type : "application/json");
	/* No "Expect: 100-continue": it costs a round trip for each large body. */
	r->headers = curl_slist_append(r->headers, "Expect:");
	if (r->creds->token) {
		size_t room = strlen(r->creds->token) + 8;
		char *value = malloc(room);

		if (!value)
			return false;
		snprintf(value, room, "Bearer %s", r->creds->token);
		ok = ok && header(r, "Authorization", value);
		explicit_bzero(value, room);
		free(value);
	}
	if (*k->as_user)
		ok = ok && header(r, "Impersonate-User", k->as_user);
	if (*k->as_uid)
		ok = ok && header(r, "Impersonate-Uid", k->as_uid);
	for (size_t i = 0; i < k->as_groups.n; i++)
		ok = ok && header(r, "Impersonate-Group", k->as_groups.items[i]);
	for (size_t i = 0; i < k->as_extra.n; i++) {
		char name[256];

		snprintf(name, sizeof(name), "Impersonate-Extra-%s", k->as_extra.keys[i]);
		ok = ok && header(r, name, k->as_extra.vals[i]);
	}
	return ok && r->headers;
}

/* tls-server-name: speak to the server's address, but ask for and check that name. */
static bool set_url(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	const char *host = strstr(k->server, "://") + 3;
	size_t n_host = strcspn(host, "/"), n_name, room;
	const char *port = NULL;
	char *url, *to;
	bool ok;

	room = strlen(k->server) + strlen(k->tls_server_name) + strlen(r->call.path) + 8;
	url = malloc(room);
	to = malloc(2 * room);
	if (!url || !to) {
		free(url);
		free(to);
		return false;
	}
	if (!*k->tls_server_name) {
		snprintf(url, room, "%s%s", k->server, r->call.path);
		ok = true;
	} else {
		for (size_t i = n_host; i > 0 && host[i - 1] != ']'; i--)
			if (host[i - 1] == ':') {
				port = host + i;
				break;
			}
		n_name = port ? (size_t)(port - 1 - host) : n_host;
		snprintf(url, room, "%.*s%s:%.*s%s%s", (int)(host - k->server), k->server,
			 k->tls_server_name, port ? (int)(host + n_host - port) : 3,
			 port ? port : "443", host + n_host, r->call.path);
		snprintf(to, 2 * room, "::%.*s:%.*s", (int)n_name, host,
			 port ? (int)(host + n_host - port) : 3, port ? port : "443");
		r->connect_to = curl_slist_append(NULL, to);
		ok = r->connect_to != NULL;
		curl_easy_setopt(r->easy, CURLOPT_CONNECT_TO, r->connect_to);
	}
	ok = ok && curl_easy_setopt(r->easy, CURLOPT_URL, url) == CURLE_OK;
	free(url);
	free(to);
	return ok;
}

static void blob(CURL *e, CURLoption opt, const struct kube_bytes *b)
{
	struct curl_blob cb = { .data = (void *)b->data, .len = b->n, .flags = CURL_BLOB_NOCOPY };

	if (b->data)
		curl_easy_setopt(e, opt, &cb);
}

static void set_tls(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	CURL *e = r->easy;

	curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, k->insecure ? 0L : 1L);
	curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, k->insecure ? 0L : 2L);
	curl_easy_setopt(e, CURLOPT_SSLCERTTYPE, "PEM");
	curl_easy_setopt(e, CURLOPT_SSLKEYTYPE, "PEM");
	blob(e, CURLOPT_CAINFO_BLOB, &r->creds->ca);
	blob(e, CURLOPT_SSLCERT_BLOB, &r->creds->cert);
	blob(e, CURLOPT_SSLKEY_BLOB, &r->creds->key);
}

static void set_transport(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	CURL *e = r->easy;

	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "https,http"); /* http: see kubeconfig.c */
	curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(e, CURLOPT_PROXY, k->proxy_url);
	curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* a stuck resolver must not hold us */
	curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPIDLE, 15L);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPINTVL, 10L);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	if (r->call.stream) {
		curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	} else {
		curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
		curl_easy_setopt(e, CURLOPT_PIPEWAIT, r->http->h2 ? 1L : 0L);
		curl_easy_setopt(e, CURLOPT_TIMEOUT_MS,
				 r->call.limit_us ? (long)(r->call.limit_us / 1000)
						  : (long)REQUEST_MS);
	}
}

static bool make(struct http_req *r)
{
	const struct kube_config *k = r->http->config;
	CURL *e = r->easy = curl_easy_init();

	if (!e)
		return false;
	r->why[0] = '\0';
	set_transport(r);
	set_tls(r);
	curl_easy_setopt(e, CURLOPT_PRIVATE, r);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->why);
	curl_easy_setopt(e, CURLOPT_USERAGENT, "gpuqd/" PACKAGE_VERSION);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
	if (*k->username && !r->creds->token) {
		curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(e, CURLOPT_USERNAME, k->username);
		curl_easy_setopt(e, CURLOPT_PASSWORD, k->password);
	}
	if (strcmp(r->call.method, "GET") != 0) {
		curl_easy_setopt(e, CURLOPT_POST, 1L);
		curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->call.method);
		curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->call.body ? r->call.body : "");
		curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->call.n_body);
	}
	if (!set_url(r) || !set_headers(r))
		return false;
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->headers);
	return true;
}

static void start(struct http_req *r, struct creds_view *creds)
{
	struct http *h = r->http;
	struct http_answer a = { .body = "", .error = "no memory for a request" };

	r->creds = creds;
	if (!make(r) || http_multi_add(multi_of(r), r->easy) != 0) {
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
	TAILQ_FOREACH (r, &h->running, link) {
		if (!r->resume || r->cancelled)
			continue;
		r->resume = false;
		curl_easy_pause(r->easy, CURLPAUSE_CONT);
		goto again;
	}
}

static void start_waiting(struct http *h)
{
	struct http_req *r, *next;

	for (r = TAILQ_FIRST(&h->waiting); r; r = next) {
		struct creds_view *creds;

		next = TAILQ_NEXT(r, link);
		if (r->cancelled) {
			TAILQ_REMOVE(&h->waiting, r, link);
			h->n_waiting--;
			free_req(r);
			continue;
		}
		if (!r->call.stream && h->n_flight >= FLIGHT_MAX)
			continue;
		creds = creds_get(h->creds);
		if (!creds)
			return;
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
	kick(r->http);
}

void http_resume(struct http_req *r)
{
	r->resume = true;
	kick(r->http);
}

size_t http_busy(const struct http *h)
{
	return h->n_flight + h->n_waiting;
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
	http_multi_free(h->requests);
	creds_free(h->creds);
	if (h->pump)
		event_free(h->pump);
	free(h);
}
