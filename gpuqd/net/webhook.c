#include "gpuqd/net/webhook.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/net/http_multi.h"

#define ANSWER_BYTES_MAX (64u << 10) /* read so far, so that the connection can be kept */
#define CONNECTIONS 16L

struct webhook_call {
	struct webhook_call *prev, *next;
	struct webhook *w;
	CURL *easy; /* NULL: it is over, its outcome is to be reported */
	struct curl_slist *headers;
	struct loop_timer *later;
	webhook_fn fn;
	void *arg;
	size_t n_answer;
	long status;
	CURLcode code;
	char why[CURL_ERROR_SIZE];
};

struct webhook {
	struct loop *loop;
	struct webhook_opts opts;
	struct http_multi *multi;
	struct webhook_call *calls;
};

static void free_call(struct webhook_call *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		c->w->calls = c->next;
	if (c->next)
		c->next->prev = c->prev;
	loop_cancel(c->later);
	if (c->easy) {
		http_multi_remove(c->w->multi, c->easy);
		curl_easy_cleanup(c->easy);
	}
	curl_slist_free_all(c->headers);
	free(c);
}

static bool is_final(const struct webhook_call *c)
{
	if (c->code == CURLE_URL_MALFORMAT || c->code == CURLE_UNSUPPORTED_PROTOCOL)
		return true;
	return c->status >= 300 && c->status < 500 && c->status != 408 && c->status != 425 &&
	       c->status != 429;
}

/* From the loop, as libcurl must not be called from its callbacks, and whoever is told may
 * call anew. */
static void tell(void *arg)
{
	struct webhook_call *c = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const webhook_fn fn = c->fn;
	void *const fn_arg = c->arg;
	const bool final = is_final(c);
	int rc = 0;

	c->later = NULL;
	/* The status is the reply, whatever became of the rest. */
	if (c->status < 200 || c->status >= 300) {
		if (c->status)
			rc = gpuq_fail(&err, GPUQ_EIO, "HTTP status %ld%s", c->status,
				       c->status >= 300 && c->status < 400
					       ? ": redirects are not followed"
					       : "");
		else
			rc = gpuq_fail(&err, GPUQ_EUNREACH, "%s",
				       *c->why ? c->why : curl_easy_strerror(c->code));
	}
	free_call(c);
	fn(fn_arg, rc, final, &err);
}

static void finish(struct webhook_call *c, CURLcode code)
{
	c->code = code;
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &c->status);
	curl_easy_cleanup(c->easy);
	c->easy = NULL;
	c->later = loop_after(c->w->loop, 0, tell, c);
}

static void on_done(void *arg, CURL *easy, CURLcode code)
{
	struct webhook_call *c = NULL;

	(void)arg;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&c);
	finish(c, code);
}

static void on_broken(void *arg, struct http_multi *m)
{
	struct webhook *w = arg;

	for (struct webhook_call *c = w->calls; c; c = c->next)
		if (c->easy) {
			http_multi_remove(m, c->easy);
			finish(c, CURLE_FAILED_INIT);
		}
	if (http_multi_renew(m) != 0)
		abort(); /* no memory for a handle: the outbox is on disk */
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct webhook_call *c = arg;

	(void)bytes;
	c->n_answer += size * n;
	return c->n_answer > ANSWER_BYTES_MAX ? 0 : size * n;
}

static int on_new_socket(void *arg, curl_socket_t fd, curlsocktype type)
{
	(void)arg, (void)type;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return CURL_SOCKOPT_OK;
}

static bool header(struct webhook_call *c, const char *name, const char *value)
{
	char line[256];
	struct curl_slist *list;

	snprintf(line, sizeof(line), "%s:%s%s", name, *value ? " " : "", value);
	list = curl_slist_append(c->headers, line);
	if (list)
		c->headers = list;
	return list != NULL;
}

static bool set_up(struct webhook_call *c, const char *url, const char *id, const char *body,
		   size_t n)
{
	const struct webhook_opts *o = &c->w->opts;
	CURL *e = c->easy = curl_easy_init();

	if (!e)
		return false;
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "https,http");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(e, CURLOPT_PROXY, o->proxy ? o->proxy : "");
	curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* a stuck resolver must not hold us */
	curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(o->timeout_us / 1000));
	curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->why);
	curl_easy_setopt(e, CURLOPT_PRIVATE, c);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(e, CURLOPT_USERAGENT, o->agent);
	curl_easy_setopt(e, CURLOPT_POST, 1L);
	curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	if (curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, body) != CURLE_OK ||
	    curl_easy_setopt(e, CURLOPT_URL, url) != CURLE_OK ||
	    !header(c, "Content-Type", "application/json") || !header(c, "Expect", "") ||
	    !header(c, "Idempotency-Key", id))
		return false;
	return curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK;
}

int webhook_post(struct webhook *w, const char *url, const char *id, const char *body, size_t n,
		 webhook_fn fn, void *arg, struct webhook_call **out, struct gpuq_err *err)
{
	struct webhook_call *c = calloc(1, sizeof(*c));

	if (!c)
		return gpuq_no_memory(err);
	c->w = w;
	c->fn = fn;
	c->arg = arg;
	c->next = w->calls;
	if (c->next)
		c->next->prev = c;
	w->calls = c;
	if (!set_up(c, url, id, body, n) || http_multi_add(w->multi, c->easy) != 0) {
		free_call(c);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a transfer");
	}
	*out = c;
	return 0;
}

void webhook_cancel(struct webhook_call *c)
{
	if (c)
		free_call(c);
}

int webhook_new(struct loop *l, const struct webhook_opts *o, struct webhook **out,
		struct gpuq_err *err)
{
	struct webhook *w = calloc(1, sizeof(*w));
	const struct http_multi_sink sink = { w, on_done, on_broken };
	int rc;

	if (!w)
		return gpuq_no_memory(err);
	w->loop = l;
	w->opts = *o;
	rc = http_multi_new(l, CONNECTIONS, &sink, &w->multi, err);
	if (rc < 0) {
		free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void webhook_set_opts(struct webhook *w, const struct webhook_opts *o)
{
	w->opts = *o;
}

void webhook_free(struct webhook *w)
{
	if (!w)
		return;
	while (w->calls)
		free_call(w->calls);
	http_multi_free(w->multi);
	free(w);
}
