#include "gpuqd/flow/provision/verdict.h"

#include <string.h>

/* Return when it was provisioned by our clock. Clocks of the cloud may be wrong: only the time since the
 * request was created is believed, and only where both clocks agree on their order. */
static int64_t provisioned_at(const struct ask *a, const struct capacity_fact *f, int64_t now_us)
{
	const int64_t at = f->said[CAPACITY_PROVISIONED].since_us, after = at - f->created_us;
	const int64_t since = a->since_us + after;

	if (!at || !f->created_us || after < 0 || since > now_us)
		return now_us;
	return since;
}

static struct verdict_of of(enum verdict what, enum ask_state state, const struct capacity_said *s,
			    enum capacity_condition c)
{
	return (struct verdict_of){ .what = what,
				    .state = state,
				    .condition = capacity_word(c),
				    .reason = s->reason ? s->reason : "",
				    .message = s->message ? s->message : "" };
}

/* Judge a request that is not served yet. */
static struct verdict_of waits(const struct ask *a, const struct capacity_fact *f)
{
	const struct capacity_said *not = &f->said[CAPACITY_PROVISIONED],
				   *yes = &f->said[CAPACITY_ACCEPTED];
	const enum ask_state state = yes->on ? ASK_STATE_ACCEPTED : ASK_STATE_SENT;
	struct verdict_of v;

	(void)a;
	if (not ->given && strcmp(not ->reason, "QuotaExceeded") == 0)
		return of(VERDICT_QUOTA, state, not, CAPACITY_PROVISIONED);
	if (not ->given && strcmp(not ->reason, "ResourcePoolExhausted") == 0 &&
	    strstr(not ->message, "indefinite"))
		return of(VERDICT_NEXT, state, not, CAPACITY_PROVISIONED);
	if (not ->given && *not ->reason && strcmp(not ->reason, "NotProvisioned") != 0)
		return of(VERDICT_HEARD, state, not, CAPACITY_PROVISIONED);
	if (!yes->given)
		return (struct verdict_of){ VERDICT_HEARD, state, "", "", "", 0 };
	v = of(VERDICT_HEARD, state, yes, CAPACITY_ACCEPTED);
	/* Words about the time are better than that it was accepted. */
	if (not ->given && *not ->message)
		v.message = not ->message;
	return v;
}

struct verdict_of verdict_judge(const struct ask *a, const struct capacity_fact *f, int64_t now_us)
{
	struct verdict_of v = { VERDICT_NONE, a->state, "", "", "", 0 };
	int c = 0;

	if (a->state >= ASK_STATE_PAUSED)
		return v;
	while (c < N_CAPACITY_CONDITIONS && !f->said[c].on)
		c++;
	if (c < CAPACITY_PROVISIONED) {
		v = of(a->used ? VERDICT_HEARD : VERDICT_RETRY, a->state, &f->said[c],
		       (enum capacity_condition)c);
	} else if (c == CAPACITY_PROVISIONED) {
		v = of(VERDICT_HEARD, ASK_STATE_PROVISIONED, &f->said[c], CAPACITY_PROVISIONED);
		v.provisioned_us = provisioned_at(a, f, now_us);
	} else {
		v = waits(a, f);
	}
	if (v.what == VERDICT_HEARD && v.state <= a->state &&
	    strcmp(v.condition, a->condition) == 0 && strcmp(v.reason, a->reason) == 0 &&
	    strcmp(v.message, a->message) == 0)
		v.what = VERDICT_NONE;
	return v;
}
