#include "gpuq/cmd/site/device_login.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/term.h"

#define CALL_US INT64_C(15000000)
#define INTERVAL_S_MAX 60

/* Each call is on a connection of its own: the server keeps none for long before hello. */
static int call(struct gpuq_arena *a, const struct gpuq_connect_opts *server, const char *method,
		const char *key, const char *value, struct gpuq_val **reply, struct gpuq_err *err)
{
	struct gpuq_connect_opts o = *server;
	struct gpuq_val *params = gpuq_map(a);
	struct gpuq *g = NULL;
	int rc;

	o.no_hello = true;
	if (value)
		gpuq_put(a, params, key, gpuq_str(a, value));
	rc = gpuq_connect_opts(&o, &g, err);
	if (rc == 0)
		rc = gpuq_call(g, method, params, NULL, CALL_US, a, reply, err);
	gpuq_close(g);
	return rc;
}

static void say(const char *text)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT;

	term_clean_str(&clean, text);
	fprintf(stderr, "%s\n", gpuq_buf_str(&clean));
	gpuq_buf_done(&clean);
}

/* Where the user goes, and with what. */
static void show(const struct gpuq_val *begun)
{
	const char *whole = gpuq_get_str(begun, "verification_uri_complete", NULL);
	struct gpuq_buf b = GPUQ_BUF_INIT;

	gpuq_buf_printf(&b, "To log in, open %s in a browser and enter the code %s",
			gpuq_get_str(begun, "verification_uri", "?"),
			gpuq_get_str(begun, "user_code", "?"));
	say(gpuq_buf_str(&b));
	if (whole) {
		gpuq_buf_clear(&b);
		gpuq_buf_printf(&b, "or open %s", whole);
		say(gpuq_buf_str(&b));
	}
	gpuq_buf_done(&b);
}

/* Wait until at_us, counting down on a terminal. */
static void pause_until(int64_t at_us, int64_t end_us)
{
	const struct timespec second = { 1, 0 };

	while (cli_mono_us() < at_us) {
		const int64_t left_s = (end_us - cli_mono_us()) / 1000000;

		if (isatty(2))
			fprintf(stderr, "\rWaiting for it, %" PRId64 ":%02" PRId64 " left ",
				left_s / 60, left_s % 60);
		nanosleep(&second, NULL);
	}
}

static int64_t interval_us(const struct gpuq_val *reply)
{
	const int64_t s = gpuq_get_int(reply, "interval_s", 5);

	return (s < 1 ? 1 : s > INTERVAL_S_MAX ? INTERVAL_S_MAX : s) * 1000000;
}

/* True if it is worth while to ask again: the server is away, or busy, for a moment. */
static bool passes(int rc)
{
	return rc == GPUQ_EUNREACH || rc == GPUQ_EUNKNOWN || rc == GPUQ_EBUSY ||
	       rc == GPUQ_ETIMEOUT;
}

static int wait_for_it(struct gpuq_arena *a, const struct gpuq_connect_opts *server,
		       const struct gpuq_val *begun, const char **token, struct gpuq_err *err)
{
	const char *login = gpuq_get_str(begun, "login", "");
	const int64_t end_us = cli_mono_us() + gpuq_get_int(begun, "expires_s", 0) * 1000000;
	int64_t wait_us = interval_us(begun);
	char said[256] = "";

	while (cli_mono_us() + wait_us < end_us) {
		struct gpuq_val *reply = NULL;
		const char *trouble = "";
		int rc;

		pause_until(cli_mono_us() + wait_us, end_us);
		rc = call(a, server, "auth.finish", "login", login, &reply, err);
		if (rc < 0 && !passes(rc))
			return rc;
		if (rc == 0 && (*token = gpuq_get_str(reply, "token", NULL)) != NULL)
			return 0;
		if (rc == 0)
			wait_us = interval_us(reply);
		trouble = rc < 0 ? err->text : gpuq_get_str(reply, "trouble", "");
		if (*trouble && strncmp(trouble, said, sizeof(said) - 1) != 0)
			cli_say("%s; still waiting", trouble);
		snprintf(said, sizeof(said), "%.255s", trouble);
	}
	return gpuq_fail(err, GPUQ_EAUTH,
			 "expired_token: the code was not confirmed in time: repeat gpuq login");
}

int device_login(struct gpuq_arena *a, const struct gpuq_connect_opts *server, const char *issuer,
		 const char **token, struct gpuq_err *err)
{
	struct gpuq_val *begun = NULL;
	int rc = call(a, server, "auth.begin", "issuer", issuer, &begun, err);

	/* Servers without such logins: of this version, and of those before it. */
	if (!issuer && (rc == GPUQ_ENOENT || rc == GPUQ_EPROTO))
		return 0;
	if (rc < 0)
		return rc;
	show(begun);
	rc = wait_for_it(a, server, begun, token, err);
	if (isatty(2))
		fputs("\r\033[K", stderr);
	return rc < 0 ? rc : 1;
}
