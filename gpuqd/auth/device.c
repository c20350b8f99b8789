#include "gpuqd/auth/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uthash.h>

#include "gpuqd/auth/device_reply.h"
#include "gpuqd/auth/issuer.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/net/fetch.h"
#include "libgpuq/buf.h"
#include "libgpuq/limits.h"

#define US INT64_C(1000000)
#define FETCH_US (10 * US)
#define WAIT_US (3 * US) /* hello has 5 s, and a refusal waits a second */
#define SLOWER_S 5 /* by RFC 8628 section 3.5 */
#define LATE_US (60 * US) /* after the end of a login, so that the issuer's word for it is heard */
#define ID_BYTES 32
#define SECRET_BYTES_MAX 1024
#define GRANT "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code"

struct login {
	UT_hash_handle hh;
	struct devices *all;
	char id[2 * ID_BYTES + 1];
	const struct auth_rule *rule;
	struct issuer *issuer;
	char *from;
	char *code; /* of the device, a secret; NULL = the issuer has not answered yet */
	int64_t interval_s, next_us, until_us; /* monotonic */
	struct fetch *fetch;
	struct loop_timer *late, *forget;
	device_begun_fn begun; /* the one that waits for it */
	device_fn fn;
	void *arg;
	char *token; /* it came after the one that asked for it had gone */
	struct gpuq_err why; /* it failed then */
	char trouble[256];
};

struct devices {
	struct loop *loop;
	struct fetcher *fetcher;
	const char *const *proxy;
	struct login *logins;
};

static int64_t now_us(const struct login *g)
{
	return loop_mono_us(g->all->loop);
}

static void wipe(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

static void forget(struct login *g)
{
	HASH_DEL(g->all->logins, g);
	fetch_cancel(g->fetch);
	loop_cancel(g->late);
	loop_cancel(g->forget);
	wipe(g->code);
	wipe(g->token);
	free(g->from);
	free(g);
}

/* It has not begun: say so, and forget it. */
static void fail_begin(struct login *g, const struct gpuq_err *why)
{
	const device_begun_fn fn = g->begun;
	void *const arg = g->arg;

	forget(g);
	if (fn)
		fn(arg, NULL, why);
}

static void answer(struct login *g);

static void on_forget(void *arg)
{
	struct login *g = arg;

	g->forget = NULL;
	log_info("auth.login", "issuer=%s forgotten=yes", LOGS(g->rule->name));
	gpuq_fail(&g->why, GPUQ_EAUTH, "the login has ended: repeat gpuq login");
	if (g->fn)
		answer(g);
	else
		forget(g);
}

/* It lives until it ends, or as long as its client asks. */
static void keep(struct login *g)
{
	const int64_t end_us = g->until_us + LATE_US - now_us(g);
	const int64_t idle_us = (GPUQ_LOGIN_IDLE_S + g->interval_s) * US;

	loop_cancel(g->forget);
	g->forget = loop_after(g->all->loop,
			       end_us < 0         ? 0
			       : end_us < idle_us ? end_us
						  : idle_us,
			       on_forget, g);
}

/* ---- requests ---- */

/* Read a client's secret; out has room for SECRET_BYTES_MAX + 1. */
static int read_secret(const char *path, char *out, struct gpuq_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) != 0 || (n = read(fd, out, SECRET_BYTES_MAX + 1)) < 0) {
		gpuq_fail(err, GPUQ_EINVAL, "client_secret: %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return GPUQ_EINVAL;
	}
	close(fd);
	if (st.st_mode & 077)
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"client_secret: %s is readable by others (mode %04o): chmod 600 %s", path,
			(unsigned)st.st_mode & 07777, path);
	while (n > 0 && strchr(" \t\r\n", out[n - 1]) && out[n - 1])
		n--;
	if (n == 0 || n > SECRET_BYTES_MAX || memchr(out, '\0', (size_t)n))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "client_secret: %s: expected a text of at most %d bytes", path,
				 SECRET_BYTES_MAX);
	out[n] = '\0';
	return 0;
}

int device_check_secret(const struct auth_rule *r, struct gpuq_err *err)
{
	char secret[SECRET_BYTES_MAX + 1];
	int rc = r->client_secret ? read_secret(r->client_secret, secret, err) : 0;

	explicit_bzero(secret, sizeof(secret));
	return rc;
}

static void field(struct gpuq_buf *b, const char *name, const char *value)
{
	gpuq_buf_printf(b, "&%s=", name);
	fetch_escape(b, value);
}

/* Send form, to which the client's name and secret are added. 0, or why it was not sent. */
static int post(struct login *g, const char *url, struct gpuq_buf *form, fetch_fn fn,
		struct gpuq_err *err)
{
	const struct auth_rule *r = g->rule;
	char secret[SECRET_BYTES_MAX + 1] = "";
	struct gpuq_buf basic = GPUQ_BUF_INIT;
	struct issuer_places places;
	struct fetch_opts o = { .ca = r->ca,
				.proxy = *g->all->proxy,
				.timeout_us = FETCH_US,
				.max_bytes = GPUQ_LOGIN_REPLY_BYTES_MAX };
	int rc = r->client_secret ? read_secret(r->client_secret, secret, err) : 0;

	issuer_places(g->issuer, &places);
	field(form, "client_id", r->client_id);
	if (*secret && places.secret_in_form) {
		field(form, "client_secret", secret);
	} else if (*secret) {
		fetch_escape(&basic, r->client_id);
		gpuq_buf_addc(&basic, ':');
		fetch_escape(&basic, secret);
		o.login = gpuq_buf_str(&basic);
	}
	o.form = gpuq_buf_str(form);
	if (rc == 0 && !form->failed && !basic.failed)
		g->fetch = fetch_get(g->all->fetcher, url, &o, fn, g);
	if (rc == 0 && !g->fetch)
		rc = gpuq_fail(err, GPUQ_EUNREACH, "%s: the address is none", r->name);
	explicit_bzero(secret, sizeof(secret));
	if (form->data)
		explicit_bzero(form->data, form->len);
	if (basic.data)
		explicit_bzero(basic.data, basic.len);
	gpuq_buf_done(&basic);
	return rc;
}

/* ---- begin ---- */

static void on_begun(void *arg, const struct fetched *got, const struct gpuq_err *err)
{
	struct login *g = arg;
	struct device_codes codes;
	struct gpuq_err why = GPUQ_ERR_INIT;
	const device_begun_fn fn = g->begun;
	struct device_begun b = { .login = g->id, .rule = g->rule->name };

	g->fetch = NULL;
	if (!got) {
		gpuq_fail(&why, GPUQ_EUNREACH, "%s: %.200s", g->rule->name, err->text);
		fail_begin(g, &why);
		return;
	}
	if (device_read_codes(g->rule->name, got, &codes, &why) < 0) {
		log_warn("auth.login", "error=%s", LOGS(why.text));
		fail_begin(g, &why);
		return;
	}
	g->code = strdup(codes.device_code);
	if (!g->code)
		abort(); /* a few bytes of a reply that is in memory */
	g->interval_s = codes.interval_s;
	g->next_us = now_us(g) + g->interval_s * US;
	g->until_us = now_us(g) + codes.expires_s * US;
	loop_cancel(g->late);
	g->late = NULL;
	g->begun = NULL;
	keep(g);
	b.uri = codes.uri;
	b.uri_complete = codes.uri_complete;
	b.code = codes.user_code;
	b.expires_s = codes.expires_s;
	b.interval_s = codes.interval_s;
	fn(g->arg, &b, NULL);
	device_codes_done(&codes);
}

/* True once the issuer has said where logins begin; then the request is under way, or it has failed. */
static bool ask_for_code(struct login *g)
{
	struct gpuq_buf form = GPUQ_BUF_INIT, scope = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct issuer_places places;
	int rc = 0;

	issuer_places(g->issuer, &places);
	if (!places.known)
		return false;
	gpuq_buf_adds(&scope, "openid");
	for (size_t k = 0; k < g->rule->login_scopes.n; k++)
		gpuq_buf_printf(&scope, " %s", g->rule->login_scopes.items[k]);
	gpuq_buf_adds(&form, "scope=");
	fetch_escape(&form, gpuq_buf_str(&scope));
	if (!places.device || !places.token)
		rc = gpuq_fail(&err, GPUQ_EUNREACH,
			       "%s has no logins with a code (device_authorization_endpoint): its "
			       "operators may allow them, else use a token",
			       g->rule->name);
	else
		rc = post(g, places.device, &form, on_begun, &err);
	gpuq_buf_done(&form);
	gpuq_buf_done(&scope);
	if (rc < 0)
		fail_begin(g, &err);
	return true;
}

static void no_answer(struct login *g)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *why = issuer_why(g->issuer);

	gpuq_fail(&err, GPUQ_EUNREACH, "%s does not answer%s%.160s: repeat later", g->rule->name,
		  *why ? ": " : "", why);
	fail_begin(g, &err);
}

/* The issuer waits for the login under way, found by its name: it may be gone. */
struct renewal {
	struct devices *all;
	char id[2 * ID_BYTES + 1];
};

static void on_renewed(void *arg)
{
	struct renewal *n = arg;
	struct login *g;

	HASH_FIND_STR(n->all->logins, n->id, g);
	free(n);
	if (g && !ask_for_code(g))
		no_answer(g);
}

static void on_late(void *arg)
{
	struct login *g = arg;

	g->late = NULL;
	no_answer(g);
}

/* Room for one more of that address. */
static int check_room(const struct devices *d, const char *from, struct gpuq_err *err)
{
	unsigned n = 0;

	for (const struct login *g = d->logins; g; g = g->hh.next)
		n += strcmp(g->from, from) == 0;
	if (n < GPUQ_LOGINS_PER_ADDRESS && HASH_COUNT(d->logins) < GPUQ_LOGINS_MAX)
		return 0;
	gpuq_fail(err, GPUQ_EBUSY, "%s logins are under way%s already: repeat in a few minutes",
		  n < GPUQ_LOGINS_PER_ADDRESS ? "too many" : "several",
		  n < GPUQ_LOGINS_PER_ADDRESS ? "" : " from this address");
	if (err)
		err->retry_ms = 60000;
	return GPUQ_EBUSY;
}

static int name_it(char out[2 * ID_BYTES + 1], struct gpuq_err *err)
{
	unsigned char raw[ID_BYTES];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return gpuq_fail(err, GPUQ_EIO, "no random bytes for a login");
	for (size_t k = 0; k < ID_BYTES; k++)
		snprintf(out + 2 * k, 3, "%02x", raw[k]);
	return 0;
}

void device_begin(struct devices *d, const struct auth_rule *r, struct issuer *i, const char *from,
		  device_begun_fn fn, void *arg)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct renewal *n = NULL;
	struct login *g = NULL;
	int rc = check_room(d, from, &err);

	if (rc == 0 && (!(g = calloc(1, sizeof(*g))) || !(g->from = strdup(from))))
		rc = gpuq_no_memory(&err);
	if (rc == 0)
		rc = name_it(g->id, &err);
	if (rc < 0) {
		if (g)
			free(g->from);
		free(g);
		fn(arg, NULL, &err);
		return;
	}
	g->all = d;
	g->rule = r;
	g->issuer = i;
	g->begun = fn;
	g->arg = arg;
	HASH_ADD_STR(d->logins, id, g);
	g->late = loop_after(d->loop, WAIT_US, on_late, g);
	if (ask_for_code(g))
		return;
	n = calloc(1, sizeof(*n));
	if (n) {
		n->all = d;
		memcpy(n->id, g->id, sizeof(n->id));
	}
	if (!n || !issuer_renew(i, on_renewed, n)) {
		free(n);
		no_answer(g);
	}
}

/* ---- finish ---- */

/* Answer the one that waits, if there is one, with what is known now. */
static void answer(struct login *g)
{
	const device_fn fn = g->fn;
	void *const arg = g->arg;
	const int64_t wait_us = g->next_us - now_us(g);
	const struct gpuq_err why = g->why;
	struct device_state s = { .rule = g->rule,
				  .issuer = g->issuer,
				  .token = g->token,
				  .interval_s = wait_us > 0 ? (wait_us + US - 1) / US : 1,
				  .trouble = g->token ? "" : g->trouble };

	if (!fn)
		return;
	loop_cancel(g->late);
	g->late = NULL;
	g->fn = NULL;
	if (!g->why.code && !g->token) {
		fn(arg, &s, NULL);
		return;
	}
	g->token = NULL;
	forget(g);
	fn(arg, why.code ? NULL : &s, &why);
	wipe((char *)s.token);
}

static void on_token(void *arg, const struct fetched *got, const struct gpuq_err *err)
{
	struct login *g = arg;

	g->fetch = NULL;
	*g->trouble = '\0';
	switch (device_read_token(g->rule->name, got, err, &g->token, &g->why)) {
	case DEVICE_HAS_TOKEN:
	case DEVICE_FAILED:
		break;
	case DEVICE_SLOWER:
		g->interval_s += SLOWER_S;
		break;
	case DEVICE_AWAY:
		/* RFC 8628 section 3.5: less often after each. */
		g->interval_s = g->interval_s * 2 < 60 ? g->interval_s * 2 : 60;
		snprintf(g->trouble, sizeof(g->trouble), "%.255s", g->why.text);
		g->why = (struct gpuq_err)GPUQ_ERR_INIT;
		break;
	case DEVICE_PENDING:
		break;
	}
	g->next_us = now_us(g) + g->interval_s * US;
	if (g->why.code)
		log_warn("auth.login", "error=%s", LOGS(g->why.text));
	answer(g);
}

static void on_slow(void *arg)
{
	struct login *g = arg;

	g->late = NULL;
	answer(g);
}

static void ask_for_token(struct login *g)
{
	struct gpuq_buf form = GPUQ_BUF_INIT;
	struct issuer_places places;

	issuer_places(g->issuer, &places);
	gpuq_buf_adds(&form, "grant_type=" GRANT);
	field(&form, "device_code", g->code);
	if (places.token)
		post(g, places.token, &form, on_token, &g->why);
	gpuq_buf_done(&form);
}

void device_finish(struct devices *d, const char *login, device_fn fn, void *arg)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct login *g;

	HASH_FIND_STR(d->logins, login, g);
	if (!g || !g->code || g->fn) {
		gpuq_fail(&err, GPUQ_EAUTH,
			  "no such login is under way: it has expired, or gpuqd was restarted; "
			  "repeat gpuq login");
		fn(arg, NULL, &err);
		return;
	}
	g->fn = fn;
	g->arg = arg;
	keep(g);
	if (!g->token && !g->why.code && !g->fetch && now_us(g) >= g->next_us)
		ask_for_token(g);
	if (g->fetch && !g->token && !g->why.code)
		g->late = loop_after(d->loop, WAIT_US, on_slow, g);
	else
		answer(g);
}

struct devices *devices_new(struct loop *l, struct fetcher *f, const char *const *proxy)
{
	struct devices *d = calloc(1, sizeof(*d));

	if (d)
		*d = (struct devices){ .loop = l, .fetcher = f, .proxy = proxy };
	return d;
}

void devices_end(struct devices *d)
{
	struct gpuq_err why = GPUQ_ERR_INIT;
	struct login *g, *next;

	gpuq_fail(&why, GPUQ_EAUTH, "the login has ended: repeat gpuq login");
	HASH_ITER(hh, d->logins, g, next) {
		g->why = why;
		if (g->begun)
			fail_begin(g, &why);
		else if (g->fn)
			answer(g);
		else
			forget(g);
	}
}

void devices_free(struct devices *d)
{
	if (d)
		devices_end(d);
	free(d);
}
