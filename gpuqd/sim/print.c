#include "gpuqd/sim/print.h"

#include <stdio.h>
#include <string.h>

#include "libgpuq/names.h"

static double number(const struct gpuq_val *v)
{
	return v && v->type == GPUQ_REAL ? v->d : v && v->type == GPUQ_INT ? (double)v->i : -1;
}

static bool is_number(const struct gpuq_val *v)
{
	return v && (v->type == GPUQ_INT || v->type == GPUQ_REAL);
}

struct text {
	char s[32];
};

/* Return d as text to the thousandth, without trailing zeros: 3, 0.5, 1250. */
static struct text digits(double d)
{
	struct text t;
	size_t n = (size_t)snprintf(t.s, sizeof(t.s), "%.3f", d);

	if (n >= sizeof(t.s)) {
		snprintf(t.s, sizeof(t.s), "%.6g", d);
		return t;
	}
	while (t.s[n - 1] == '0')
		t.s[--n] = '\0';
	if (t.s[n - 1] == '.')
		t.s[n - 1] = '\0';
	return t;
}

/* Return an amount as text; `none` for null. */
static struct text amount(const struct gpuq_val *v, const char *none)
{
	struct text t;

	if (is_number(v))
		return digits(number(v));
	snprintf(t.s, sizeof(t.s), "%s", none);
	return t;
}

/* ---- reasons ---- */

static void print_reason(const struct gpuq_val *reason)
{
	const struct gpuq_val *have = gpuq_get(reason, "have"), *need = gpuq_get(reason, "need");
	const char *code = gpuq_get_str(reason, "code", "");
	const char *object = gpuq_get_str(reason, "object", "");

	printf("%s%s%s", code, *object ? " " : "", object);
	/* Both are 0 where numbers mean nothing. */
	if (is_number(have) && is_number(need) && (number(have) != 0 || number(need) != 0))
		printf(": have %s, need %s", digits(number(have)).s, digits(number(need)).s);
	printf(" (%s)\n", gpuq_reason_doc_of(code));
}

static void print_estimate(const struct gpuq_val *estimate)
{
	const struct gpuq_val *reasons = gpuq_get(estimate, "reasons");

	if (!estimate)
		return;
	if (is_number(gpuq_get(estimate, "start")))
		printf("            starts at %s at the latest\n",
		       digits(number(gpuq_get(estimate, "start"))).s);
	else
		printf("            its start is not known\n");
	for (uint32_t i = 0; reasons && i < reasons->n; i++) {
		printf("            from %s: ",
		       amount(gpuq_get(reasons->items[i], "at"), "unknown").s);
		print_reason(reasons->items[i]);
	}
}

/* Print the preemptor of each eviction of the job, with the rule. */
static void print_left(const struct gpuq_val *out, const char *name)
{
	const struct gpuq_val *list = gpuq_get(out, "evictions");

	for (uint32_t i = 0; list && i < list->n; i++) {
		const char *rule = gpuq_get_str(list->items[i], "rule", "");
		const char *by = gpuq_get_str(list->items[i], "by", "");
		const char *says = gpuq_get_str(list->items[i], "cause", "");

		if (strcmp(gpuq_get_str(list->items[i], "job", ""), name) != 0)
			continue;
		if (rule[0])
			says = gpuq_rule_doc(rule);
		printf("            %s%s%s: %s%s%s%s\n", gpuq_get_str(list->items[i], "mode", ""),
		       by[0] ? " for " : "", by, says, rule[0] ? " (" : "", rule,
		       rule[0] ? ")" : "");
	}
}

/* ---- jobs ---- */

/* Print a place: "n1[0,1]"; "n1[2]*0.5" is half of that device; "n1[1g.10gb]" an instance. */
static void print_place(const struct gpuq_val *place)
{
	const struct gpuq_val *devices = gpuq_get(place, "devices");
	const int64_t milli = gpuq_get_int(place, "milli", 0);

	printf(" %s[%s", gpuq_get_str(place, "node", ""), gpuq_get_str(place, "mig", ""));
	for (uint32_t d = 0; devices && d < devices->n; d++)
		printf("%s%lld", d ? "," : "", (long long)devices->items[d]->i);
	printf("]");
	if (devices && devices->n && milli < SNAP_MILLI)
		printf("*%s", digits((double)milli / SNAP_MILLI).s);
}

static void print_job(const struct gpuq_val *out, const char *key, const char *name,
		      const struct gpuq_val *job)
{
	const struct gpuq_val *places = gpuq_get(job, "placement");
	const struct gpuq_val *reasons = gpuq_get(job, "reasons");
	const struct gpuq_val *bounds = gpuq_get(job, "bounds");
	const struct gpuq_val *planned = gpuq_get(job, "planned_start");

	printf("  %-9s %-16s", key, name);
	for (uint32_t k = 0; places && k < places->n; k++)
		print_place(places->items[k]);
	if (reasons && reasons->n)
		printf(" ");
	for (uint32_t k = 0; reasons && k < reasons->n; k++) {
		if (k)
			printf("            and ");
		print_reason(reasons->items[k]);
	}
	if (!reasons || reasons->n == 0)
		printf("\n");
	for (uint32_t k = 0; bounds && k < bounds->n; k++)
		printf("            bounded: %s, at most %lld\n",
		       gpuq_get_str(bounds->items[k], "bound", ""),
		       (long long)gpuq_get_int(bounds->items[k], "most", 0));
	if (is_number(planned))
		printf("            planned to start at %s\n", digits(number(planned)).s);
	print_left(out, name);
	print_estimate(gpuq_get(job, "estimate"));
}

/* Print the jobs of one list. */
static void print_list(const struct gpuq_val *out, const char *key)
{
	const struct gpuq_val *jobs = gpuq_get(out, "jobs");

	for (uint32_t i = 0; jobs && i < jobs->n; i++)
		if (strcmp(gpuq_get_str(jobs->pairs[i].val, "state", ""), key) == 0)
			print_job(out, key, jobs->pairs[i].key, jobs->pairs[i].val);
}

/* Print jobs that have ended since `before`; NULL = since the beginning. */
static void print_ended(const struct gpuq_val *out, const struct gpuq_val *before)
{
	const struct gpuq_val *ended = gpuq_get(out, "ended"), *cause = gpuq_get(out, "end_cause");
	const struct gpuq_val *old = gpuq_get(before, "ended");

	for (uint32_t i = 0; ended && i < ended->n; i++) {
		const char *name = ended->pairs[i].key, *why = gpuq_get_str(cause, name, NULL);

		if (!gpuq_get(old, name))
			printf("  ended     %-16s %s%s%s%s\n", name, ended->pairs[i].val->s,
			       why ? " (" : "", why ? why : "", why ? ")" : "");
	}
}

/* Print the other jobs that run there and need not be preempted. */
static void print_spared(const struct gpuq_val *claim)
{
	static const struct {
		const char *key, *says;
	} words[] = {
		{ "firm", "cannot be evicted" },
		{ "busy", "ending or just started" },
		{ "shielded", "protected" },
		{ "not_needed", "within their queue's entitlement, or not needed" },
	};
	const struct gpuq_val *passed = gpuq_get(claim, "passed_over");
	const char *sep = "; spared:";

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const int64_t n = gpuq_get_int(passed, words[i].key, 0);

		if (n == 0)
			continue;
		printf("%s %lld %s", sep, (long long)n, words[i].says);
		sep = ",";
	}
}

/* Print the numbers behind preemptions: the preemptors' queues, and those that lost. */
static void print_claims(const struct gpuq_val *out)
{
	const struct gpuq_val *claims = gpuq_get(out, "claims");

	for (uint32_t i = 0; claims && i < claims->n; i++) {
		const struct gpuq_val *queues = gpuq_get(claims->items[i], "queues");

		printf("  claim     %-16s of %s:", gpuq_get_str(claims->items[i], "job", ""),
		       amount(gpuq_get(claims->items[i], "need"), "?").s);
		for (uint32_t k = 0; queues && k < queues->n; k++) {
			const struct gpuq_val *q = queues->items[k];

			printf("%s %s %s -> %s (share %s, quota %s)", k ? ";" : "",
			       gpuq_get_str(q, "queue", ""), amount(gpuq_get(q, "before"), "?").s,
			       amount(gpuq_get(q, "after"), "?").s,
			       amount(gpuq_get(q, "fair_share"), "unlimited").s,
			       amount(gpuq_get(q, "quota"), "unlimited").s);
		}
		print_spared(claims->items[i]);
		printf("\n");
	}
}

static void print_queues(const struct gpuq_val *out)
{
	const struct gpuq_val *queues = gpuq_get(out, "queues");

	for (uint32_t i = 0; queues && i < queues->n; i++) {
		const struct gpuq_val *q = queues->pairs[i].val;

		printf("  queue     %-16s holds %s (share %s, quota %s)\n", queues->pairs[i].key,
		       amount(gpuq_get(q, "allocated"), "?").s,
		       amount(gpuq_get(q, "fair_share"), "unlimited").s,
		       amount(gpuq_get(q, "quota"), "unlimited").s);
	}
}

static void print_cuts(const struct gpuq_val *out)
{
	const struct gpuq_val *cuts = gpuq_get(out, "cuts");

	for (uint32_t i = 0; cuts && i < cuts->n; i++) {
		const struct gpuq_val *c = cuts->pairs[i].val;

		printf("  cut       %-16s %s %s for %s\n", cuts->pairs[i].key,
		       gpuq_get_str(c, "layout", ""), gpuq_get_str(c, "state", ""),
		       gpuq_get_str(c, "job", "a job"));
	}
}

static void print_outcome(const struct gpuq_val *out, const struct gpuq_val *before)
{
	static const char *const keys[] = { "started", "running",   "grown",
					    "shrunk",  "preempted", "pending" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		print_list(out, keys[i]);
	print_ended(out, before);
	print_claims(out);
	print_cuts(out);
	print_queues(out);
}

void print_case(const struct sc_case *c, const struct gpuq_val *outcome)
{
	const struct gpuq_val *steps = gpuq_get(outcome, "steps"), *before = outcome;
	const struct gpuq_val *stable = gpuq_get(outcome, "stable");

	printf("%s%s%s\n", c->id, c->title ? ": " : "", c->title ? c->title : "");
	print_outcome(outcome, NULL);
	if (stable && !stable->b)
		printf("  not stable: further cycles make decisions\n");
	for (uint32_t i = 0; steps && i < steps->n; i++) {
		const struct gpuq_val *step = steps->items[i];

		const char *of = gpuq_get_str(step, "of", "");

		printf(" after %s%s%s at %s\n", gpuq_get_str(step, "event", ""), *of ? " " : "", of,
		       amount(gpuq_get(step, "now"), "?").s);
		print_outcome(step, before);
		before = step;
	}
}

/* ---- shares ---- */

static struct text column(int64_t milli)
{
	struct text t = { "-" };

	return milli == GPUQ_UNLIMITED ? t : digits((double)milli / 1000);
}

void print_shares(const struct world *w)
{
	printf("%-20s %10s %10s %10s %10s\n", "queue", "quota", "demand", "limit", "fair share");
	for (uint32_t q = 0; q < w->n_queues; q++) {
		const struct sim_queue *in = &w->shares[q];

		printf("%-20s %10s %10s %10s %10s\n", in->name, column(in->quota_milli).s,
		       column(in->demand_milli).s, column(in->limit_milli).s,
		       column(in->fair_milli).s);
	}
}
