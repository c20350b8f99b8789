#include "gpuqd/auth/issuer.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/net/fetch.h"
#include "libgpuq/buf.h"
#include "libgpuq/limits.h"
#include "libgpuq/base/text.h"

#define US INT64_C(1000000)
#define LEAST_US (GPUQ_KEYS_LEAST_S * US)
#define MOST_US (GPUQ_KEYS_MOST_S * US)
#define FETCH_US (10 * US)
#define WAIT_US (3 * US) /* hello has 5 s, and a refusal waits a second */
#define RETRY_US (60 * US)
#define UNKNOWN_US (GPUQ_KEYS_UNKNOWN_S * US)
#define NONE_US (5 * US) /* between tries while no keys are known */
#define PLACE "/.well-known/openid-configuration"

struct waiter {
	struct waiter *next, **link;
	struct issuer *issuer;
	struct loop_timer *later;
	issuer_fn fn;
	void *arg;
};

struct issuer {
	struct loop *loop;
	struct issuer_opts opts;
	struct jwks *keys;
	int64_t known_us; /* when they were got; monotonic */
	int64_t unknown_us; /* when they were last renewed for a key that was not among them; 0 = never */
	int64_t tried_us;
	struct fetch *fetch;
	struct loop_timer *again;
	struct waiter *waiters;
	unsigned n_waiters;
	char *device, *token; /* struct issuer_places */
	bool places_known, secret_in_form;
	char why[256];
};

static void begin(struct issuer *i);

static void on_again(void *arg)
{
	struct issuer *i = arg;

	i->again = NULL;
	begin(i);
}

/* ---- those that wait ---- */

static void wake(struct waiter *w)
{
	const issuer_fn fn = w->fn;
	void *const arg = w->arg;

	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	w->issuer->n_waiters--;
	loop_cancel(w->later);
	free(w);
	fn(arg);
}

static void on_late(void *arg)
{
	struct waiter *w = arg;

	w->later = NULL;
	wake(w);
}

static void wake_all(struct issuer *i)
{
	/* Who is woken may wait anew, at the list's head: these stay for the next time. */
	struct waiter *w = i->waiters;

	i->waiters = NULL;
	if (w)
		w->link = &w;
	while (w)
		wake(w);
}

/* ---- renewal ---- */

static void finish(struct issuer *i, int64_t again_us)
{
	i->again = loop_after(i->loop, again_us, on_again, i);
	wake_all(i);
}

static void fail(struct issuer *i, const char *what, const char *why)
{
	snprintf(i->why, sizeof(i->why), "%.160s: %.80s", what, why);
	log_warn("auth.keys", "issuer=%s error=%s", LOGS(i->opts.url), LOGS(i->why));
	finish(i, RETRY_US);
}

static void on_keys(void *arg, const struct fetched *got, const struct gpuq_err *err)
{
	struct issuer *i = arg;
	struct gpuq_err why = GPUQ_ERR_INIT;
	struct jwks *keys = NULL;
	int64_t keep_us;

	i->fetch = NULL;
	if (!got || jwks_read(got->bytes, got->n, &keys, &why) < 0) {
		fail(i, "keys (jwks_uri)", got ? why.text : err->text);
		return;
	}
	jwks_free(i->keys);
	i->keys = keys;
	i->known_us = loop_mono_us(i->loop);
	*i->why = '\0';
	keep_us = got->max_age_us < LEAST_US      ? LEAST_US
		  : got->max_age_us > MOST_US / 2 ? MOST_US / 2
						  : got->max_age_us;
	log_info("auth.keys", "issuer=%s keys=%zu", LOGS(i->opts.url), jwks_count(keys));
	finish(i, keep_us);
}

static bool get(struct issuer *i, const char *url, size_t max_bytes, fetch_fn fn)
{
	const struct fetch_opts o = { .ca = i->opts.ca,
				      .proxy = i->opts.proxy,
				      .timeout_us = FETCH_US,
				      .max_bytes = max_bytes };

	i->fetch = fetch_get(i->opts.fetcher, url, &o, fn, i);
	return i->fetch != NULL;
}

static bool takes_basic(const json_t *methods)
{
	const json_t *one;
	size_t k;

	if (!json_is_array(methods))
		return true; /* as OpenID Connect Discovery says of its absence */
	json_array_foreach((json_t *)methods, k,
			   one) if (json_is_string(one) &&
				    strcmp(json_string_value(one), "client_secret_basic") ==
					    0) return true;
	return false;
}

/* Replace a copy of an address; one that is not of https is none. */
static void keep_place(char **at, const json_t *v)
{
	const char *url = json_string_value(v);

	free(*at);
	*at = url && strncmp(url, "https://", 8) == 0 ? strdup(url) : NULL;
}

static void keep_places(struct issuer *i, const json_t *root)
{
	i->places_known = true;
	keep_place(&i->device, json_object_get(root, "device_authorization_endpoint"));
	keep_place(&i->token, json_object_get(root, "token_endpoint"));
	i->secret_in_form =
		!takes_basic(json_object_get(root, "token_endpoint_auth_methods_supported"));
}

static void on_place(void *arg, const struct fetched *got, const struct gpuq_err *err)
{
	struct issuer *i = arg;
	json_t *root = got ? json_loadb(got->bytes, got->n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *name = json_string_value(json_object_get(root, "issuer"));
	const char *url = json_string_value(json_object_get(root, "jwks_uri"));

	i->fetch = NULL;
	if (name && strcmp(name, i->opts.url) == 0)
		keep_places(i, root);
	if (!got)
		fail(i, PLACE, err->text);
	else if (!name || strcmp(name, i->opts.url) != 0)
		fail(i, PLACE, "it does not name this issuer");
	else if (!url || strncmp(url, "https://", 8) != 0)
		fail(i, PLACE, "its jwks_uri is no https:// address");
	else if (!get(i, url, GPUQ_JWKS_BYTES_MAX, on_keys))
		fail(i, "keys (jwks_uri)", "the address is none");
	json_decref(root);
}

static void begin(struct issuer *i)
{
	struct gpuq_buf url = GPUQ_BUF_INIT;
	size_t n = strlen(i->opts.url);

	if (i->fetch)
		return;
	loop_cancel(i->again);
	i->again = NULL;
	i->tried_us = loop_mono_us(i->loop);
	while (n > 0 && i->opts.url[n - 1] == '/')
		n--;
	gpuq_buf_printf(&url, "%.*s" PLACE, (int)n, i->opts.url);
	if (url.failed || !get(i, gpuq_buf_str(&url), GPUQ_JWKS_BYTES_MAX, on_place))
		i->again = loop_after(i->loop, RETRY_US, on_again, i);
	gpuq_buf_done(&url);
}

bool issuer_renew(struct issuer *i, issuer_fn fn, void *arg)
{
	const int64_t now_us = loop_mono_us(i->loop);
	const bool known = issuer_keys(i) != NULL;
	struct waiter *w;

	if (i->n_waiters >= GPUQ_KEYS_WAITERS_MAX)
		return false;
	if (!i->fetch) {
		if (known ? i->unknown_us && now_us - i->unknown_us < UNKNOWN_US
			  : now_us - i->tried_us < NONE_US)
			return false;
		if (known)
			i->unknown_us = now_us;
		begin(i);
	}
	w = i->fetch ? calloc(1, sizeof(*w)) : NULL;
	if (!w)
		return false;
	w->issuer = i;
	w->fn = fn;
	w->arg = arg;
	w->later = loop_after(i->loop, WAIT_US, on_late, w);
	w->next = i->waiters;
	w->link = &i->waiters;
	if (w->next)
		w->next->link = &w->next;
	i->waiters = w;
	i->n_waiters++;
	return true;
}

const struct jwks *issuer_keys(const struct issuer *i)
{
	return i->keys && loop_mono_us(i->loop) - i->known_us < MOST_US ? i->keys : NULL;
}

void issuer_places(const struct issuer *i, struct issuer_places *out)
{
	*out = (struct issuer_places){ i->places_known, i->device, i->token, i->secret_in_form };
}

const char *issuer_why(const struct issuer *i)
{
	return i->why;
}

bool issuer_is(const struct issuer *i, const struct issuer_opts *o)
{
	return strcmp(i->opts.url, o->url) == 0 && gpuq_same_text(i->opts.ca, o->ca) &&
	       gpuq_same_text(i->opts.proxy, o->proxy);
}

const char *issuer_url(const struct issuer *i)
{
	return i->opts.url;
}

struct issuer *issuer_new(struct loop *l, const struct issuer_opts *o)
{
	struct issuer *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->loop = l;
	i->opts = *o;
	begin(i);
	return i;
}

void issuer_free(struct issuer *i)
{
	if (!i)
		return;
	fetch_cancel(i->fetch);
	loop_cancel(i->again);
	wake_all(i);
	jwks_free(i->keys);
	free(i->device);
	free(i->token);
	free(i);
}
