#define _GNU_SOURCE /* strcasestr */
#include "gpuqd/net/fetch.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/net/http_multi.h"

#define CONNECTIONS 4L
#define MAX_AGE_S_MAX INT64_C(31536000)
#define US INT64_C(1000000)

struct fetch {
	struct fetch *prev, *next;
	struct fetcher *fetcher;
	CURL *easy; /* NULL: it is over, its outcome is to be told */
	struct loop_timer *later;
	fetch_fn fn;
	void *arg;
	struct gpuq_buf body;
	size_t max_bytes;
	int64_t max_age_us;
	bool any_status;
	long status;
	CURLcode code;
	char why[CURL_ERROR_SIZE];
};

struct fetcher {
	struct loop *loop;
	const char *agent;
	struct http_multi *multi;
	struct fetch *list;
};

static void free_fetch(struct fetch *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		t->fetcher->list = t->next;
	if (t->next)
		t->next->prev = t->prev;
	loop_cancel(t->later);
	if (t->easy) {
		http_multi_remove(t->fetcher->multi, t->easy);
		curl_easy_cleanup(t->easy);
	}
	gpuq_buf_done(&t->body);
	free(t);
}

static int judge(const struct fetch *t, struct gpuq_err *err)
{
	if (t->body.failed)
		return gpuq_fail(err, GPUQ_ETOOBIG, "the answer is larger than %zu bytes",
				 t->max_bytes);
	if (t->status && t->status != 200 && !t->any_status)
		return gpuq_fail(
			err, GPUQ_EIO, "HTTP status %ld%s", t->status,
			t->status >= 300 && t->status < 400 ? ": redirects are not followed" : "");
	if (t->code != CURLE_OK || !t->status)
		return gpuq_fail(err, GPUQ_EUNREACH, "%s",
				 *t->why ? t->why : curl_easy_strerror(t->code));
	return 0;
}

/* From the loop, as libcurl must not be called from its callbacks. */
static void tell(void *arg)
{
	struct fetch *t = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const fetch_fn fn = t->fn;
	void *const fn_arg = t->arg;
	struct gpuq_buf body = t->body;
	const struct fetched got = { gpuq_buf_str(&body), body.len, t->status, t->max_age_us };
	const int rc = judge(t, &err);

	t->later = NULL;
	t->body = (struct gpuq_buf)GPUQ_BUF_INIT;
	free_fetch(t);
	fn(fn_arg, rc == 0 ? &got : NULL, &err);
	gpuq_buf_done(&body);
}

static void finish(struct fetch *t, CURLcode code)
{
	t->code = code;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
	curl_easy_cleanup(t->easy);
	t->easy = NULL;
	t->later = loop_after(t->fetcher->loop, 0, tell, t);
}

static void on_done(void *arg, CURL *easy, CURLcode code)
{
	struct fetch *t = NULL;

	(void)arg;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
	finish(t, code);
}

static void on_broken(void *arg, struct http_multi *m)
{
	struct fetcher *f = arg;

	for (struct fetch *t = f->list; t; t = t->next)
		if (t->easy) {
			http_multi_remove(m, t->easy);
			finish(t, CURLE_FAILED_INIT);
		}
	if (http_multi_renew(m) != 0)
		abort(); /* no memory for a handle: all state is on disk */
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct fetch *t = arg;

	gpuq_buf_add(&t->body, bytes, size * n);
	return t->body.failed ? 0 : size * n;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
	static const char name[] = "cache-control:", age[] = "max-age=";
	struct fetch *t = arg;
	char line[256];
	const size_t len = size * n < sizeof(line) - 1 ? size * n : sizeof(line) - 1;
	const char *at;
	long long s;

	memcpy(line, bytes, len);
	line[len] = '\0';
	if (strncasecmp(line, name, sizeof(name) - 1) != 0)
		return size * n;
	at = strcasestr(line, age);
	s = at ? strtoll(at + sizeof(age) - 1, NULL, 10) : 0;
	if (s < 0 || strcasestr(line, "no-store") || strcasestr(line, "no-cache"))
		s = 0;
	t->max_age_us = (s < MAX_AGE_S_MAX ? s : MAX_AGE_S_MAX) * US;
	return size * n;
}

static int on_new_socket(void *arg, curl_socket_t fd, curlsocktype type)
{
	(void)arg, (void)type;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return CURL_SOCKOPT_OK;
}

static bool set_up(struct fetch *t, const char *url, const struct fetch_opts *o)
{
	CURL *e = t->easy = curl_easy_init();

	if (!e)
		return false;
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(e, CURLOPT_PROXY, o->proxy ? o->proxy : "");
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* a stuck resolver must not hold us */
	curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(o->timeout_us / 1000));
	curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->why);
	curl_easy_setopt(e, CURLOPT_PRIVATE, t);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
	if (o->form && curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, o->form) != CURLE_OK)
		return false;
	if (o->login && curl_easy_setopt(e, CURLOPT_USERPWD, o->login) != CURLE_OK)
		return false;
	if (o->ca && curl_easy_setopt(e, CURLOPT_CAINFO, o->ca) != CURLE_OK)
		return false;
	return curl_easy_setopt(e, CURLOPT_USERAGENT, t->fetcher->agent) == CURLE_OK &&
	       curl_easy_setopt(e, CURLOPT_URL, url) == CURLE_OK;
}

struct fetch *fetch_get(struct fetcher *f, const char *url, const struct fetch_opts *o, fetch_fn fn,
			void *arg)
{
	struct fetch *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->fetcher = f;
	t->fn = fn;
	t->arg = arg;
	t->max_bytes = o->max_bytes;
	t->any_status = o->form != NULL;
	t->body = (struct gpuq_buf)GPUQ_BUF_INIT_MAX(o->max_bytes);
	t->next = f->list;
	if (t->next)
		t->next->prev = t;
	f->list = t;
	if (!set_up(t, url, o) || http_multi_add(f->multi, t->easy) != 0) {
		if (t->easy) { /* it was not added */
			curl_easy_cleanup(t->easy);
			t->easy = NULL;
		}
		free_fetch(t);
		return NULL;
	}
	return t;
}

void fetch_escape(struct gpuq_buf *b, const char *s)
{
	for (; *s; s++)
		if ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
		    (*s >= '0' && *s <= '9') || strchr("-._~", *s))
			gpuq_buf_addc(b, *s);
		else
			gpuq_buf_printf(b, "%%%02X", (unsigned char)*s);
}

void fetch_cancel(struct fetch *t)
{
	if (t)
		free_fetch(t);
}

int fetcher_new(struct loop *l, const char *agent, struct fetcher **out, struct gpuq_err *err)
{
	struct fetcher *f = calloc(1, sizeof(*f));
	const struct http_multi_sink sink = { f, on_done, on_broken };
	int rc;

	if (!f)
		return gpuq_no_memory(err);
	f->loop = l;
	f->agent = agent;
	rc = http_multi_new(l, CONNECTIONS, &sink, &f->multi, err);
	if (rc < 0) {
		free(f);
		return rc;
	}
	*out = f;
	return 0;
}

void fetcher_free(struct fetcher *f)
{
	if (!f)
		return;
	while (f->list)
		free_fetch(f->list);
	http_multi_free(f->multi);
	free(f);
}
