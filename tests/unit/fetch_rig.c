#include "tests/unit/fetch_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fetch rig_fetch;
unsigned rig_fetches;

struct fetch *fetch_get(struct fetcher *f, const char *url, const struct fetch_opts *o, fetch_fn fn,
			void *arg)
{
	(void)f;
	if (rig_fetch.open)
		abort();
	rig_fetch = (struct fetch){ .open = true, .fn = fn, .arg = arg };
	snprintf(rig_fetch.url, sizeof(rig_fetch.url), "%s", url);
	snprintf(rig_fetch.form, sizeof(rig_fetch.form), "%s", o->form ? o->form : "");
	snprintf(rig_fetch.login, sizeof(rig_fetch.login), "%s", o->login ? o->login : "");
	rig_fetches++;
	return &rig_fetch;
}

void fetch_cancel(struct fetch *t)
{
	if (t)
		t->open = false;
}

void fetch_escape(struct gpuq_buf *b, const char *s)
{
	gpuq_buf_adds(b, s);
}

static void end(const struct fetched *got, const struct gpuq_err *err)
{
	if (!rig_fetch.open)
		abort();
	rig_fetch.open = false;
	rig_fetch.fn(rig_fetch.arg, got, err);
}

void rig_answer(long status, const char *body, int64_t max_age_us)
{
	const struct fetched got = { body, strlen(body), status, max_age_us };

	end(&got, NULL);
}

void rig_away(void)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_fail(&err, GPUQ_EUNREACH, "no route to host");
	end(NULL, &err);
}
