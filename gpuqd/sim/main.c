/* gpuq-sim: try a site's queues and jobs on a copy, with the scheduler of gpuqd. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "gpuqd/sim/fairness.h"
#include "gpuqd/sim/pack/file.h"
#include "gpuqd/sim/outcome.h"
#include "gpuqd/sim/pack/packing.h"
#include "gpuqd/sim/print.h"
#include "gpuqd/sim/replay.h"
#include "gpuqd/sim/scenario/scenario.h"
#include "gpuqd/sim/trace/trace.h"
#include "gpuqd/sim/world.h"
#include "gpuqd/sim/world_cycle.h"
#include "gpuqd/sim/world_estimate.h"
#include "gpuqd/sim/world_events.h"

#define FILE_BYTES_MAX (64u << 20)
#define RECORD_BYTES_MAX (1u << 30)

static const char usage[] =
	"usage: gpuq-sim check FILE...\n"
	"       gpuq-sim run [--json] [--estimate] FILE...\n"
	"       gpuq-sim shares [--json] FILE...\n"
	"       " PACKING_USAGE "       gpuq-sim replay FILE...\n"
	"       gpuq-sim trace [OPTION...] FILE.csv\n"
	"       gpuq-sim --help | --version\n"
	"\n"
	"  check   check the expectations of scenario files; the last line counts them\n"
	"  run     print the outcome of every case\n"
	"  shares  print how every case's queues divide the cluster, and rank their users\n"
	"  pack    let pods arrive on empty nodes and print what stays unallocated\n"
	"  replay  run recorded cycles again (record_dir), and print differences\n"
	"  trace   replay a trace of jobs; see gpuq-sim trace --help\n"
	"\n"
	"A FILE of - is standard input. See gpuq-sim(1) for the form of scenario files.\n";

struct run {
	bool json, estimate;
	unsigned passed, failed;
	struct replay replay;
	/* Process one case that could be read; negative = it was refused after all. */
	int (*one)(struct run *r, const struct sc_result *res, struct gpuq_err *err);
	void (*refused)(struct run *r, const struct sc_result *res, const struct gpuq_err *err);
};

static int read_file(const char *name, struct gpuq_buf *out, struct gpuq_err *err)
{
	FILE *f = strcmp(name, "-") == 0 ? stdin : fopen(name, "r");
	int rc;

	if (!f)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", name, strerror(errno));
	rc = file_read(f, name, out, err);
	if (f != stdin)
		fclose(f);
	return rc;
}

static void print_json(const struct gpuq_val *v)
{
	struct gpuq_buf line = GPUQ_BUF_INIT;

	gpuq_json_write(&line, v, 0);
	printf("%s\n", gpuq_buf_str(&line));
	gpuq_buf_done(&line);
}

/* Run a case from beginning to end: the outcome at the first rest, with `steps` in it; *wrong:
 * expectations that do not hold. */
static int run_case(struct gpuq_arena *a, const struct sc_case *c, bool estimate,
		    struct gpuq_val **outcome, struct gpuq_buf *wrong, unsigned *n_wrong,
		    struct gpuq_err *err)
{
	const uint32_t cycles =
		c->config.cycles == SC_ABSENT ? 0 : (uint32_t)(c->config.cycles / 1000);
	struct gpuq_val *out = gpuq_map(a), *rest, *steps;
	struct world w;
	bool stable = false;
	int rc = world_make(c, &w, err);

	*n_wrong = 0;
	if (rc == 0)
		rc = world_rest(&w, cycles, err);
	if (rc == 0)
		rc = world_stable(&w, &stable, err);
	if (rc == 0 && (estimate || gpuq_get(c->expect, "estimate")))
		rc = world_estimate(&w, err);
	if (rc < 0)
		goto out;
	gpuq_put(a, out, "id", gpuq_str(a, c->id));
	gpuq_put(a, out, "cycles", gpuq_int(a, w.cycles));
	gpuq_put(a, out, "stable", gpuq_bool(a, stable));
	rest = outcome_make(a, &w);
	for (uint32_t i = 0; rest && i < rest->n; i++)
		gpuq_put(a, out, rest->pairs[i].key, rest->pairs[i].val);
	*n_wrong += expect_judge(&w, c->expect, out, stable, wrong);
	steps = gpuq_put(a, out, "steps", gpuq_list(a));
	for (size_t i = 0; i < c->n_steps; i++) {
		struct gpuq_val *step = gpuq_add(a, steps, gpuq_map(a));

		world_mark(&w);
		rc = world_step(&w, &c->steps[i], err);
		if (rc == 0)
			rc = world_stable(&w, &stable, err);
		if (rc == 0 && (estimate || gpuq_get(c->steps[i].then, "estimate")))
			rc = world_estimate(&w, err);
		if (rc < 0) {
			scenario_within(err, "steps", i);
			goto out;
		}
		gpuq_put(a, step, "event", gpuq_str(a, scenario_events[c->steps[i].event]));
		gpuq_put(a, step, "of", gpuq_str(a, scenario_subject(&c->steps[i])));
		gpuq_put(a, step, "now", outcome_time(a, &w, w.now_us));
		rest = outcome_make(a, &w);
		for (uint32_t k = 0; rest && k < rest->n; k++)
			gpuq_put(a, step, rest->pairs[k].key, rest->pairs[k].val);
		if (c->steps[i].then && wrong) {
			size_t before = wrong->len;
			unsigned n = expect_judge(&w, c->steps[i].then, step, stable, wrong);

			if (n > 0 && before == wrong->len)
				gpuq_buf_adds(wrong, "  ");
			if (n > 0)
				gpuq_buf_printf(wrong, "  (after step %zu, %s)\n", i + 1,
						scenario_events[c->steps[i].event]);
			*n_wrong += n;
		}
	}
	*outcome = out;
out:
	world_done(&w);
	return rc;
}

/* ---- check ---- */

static int check_one(struct run *r, const struct sc_result *res, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf wrong = GPUQ_BUF_INIT;
	struct gpuq_val *outcome = NULL;
	unsigned n_wrong = 0;
	int rc = run_case(&a, res->c, false, &outcome, &wrong, &n_wrong, err);

	if (rc == 0) {
		r->passed += n_wrong == 0;
		r->failed += n_wrong > 0;
		printf("%s %s%s%s\n", n_wrong ? "FAIL" : "ok  ", res->id, res->c->title ? ": " : "",
		       res->c->title ? res->c->title : "");
		printf("%s", gpuq_buf_str(&wrong));
	}
	gpuq_buf_done(&wrong);
	gpuq_arena_done(&a);
	return rc;
}

/* A refused case passes if it expects an `error` that is part of the refusal. */
static void check_refused(struct run *r, const struct sc_result *res, const struct gpuq_err *err)
{
	const char *want = gpuq_get_str(res->expect, "error", NULL);
	const bool ok = want && strstr(err->text, want);

	r->passed += ok;
	r->failed += !ok;
	printf("%s %s\n", ok ? "ok  " : "FAIL", res->id);
	if (!ok)
		printf("  %s\n", err->text);
}

/* ---- run ---- */

static int run_one(struct run *r, const struct sc_result *res, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *outcome = NULL;
	unsigned n_wrong;
	int rc = run_case(&a, res->c, r->estimate, &outcome, NULL, &n_wrong, err);

	if (rc == 0 && r->json) {
		print_json(outcome);
	} else if (rc == 0) {
		print_case(res->c, outcome);
	}
	r->passed += rc == 0;
	gpuq_arena_done(&a);
	return rc;
}

static void run_refused(struct run *r, const struct sc_result *res, const struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *out = gpuq_map(&a);

	r->failed++;
	gpuq_put(&a, out, "id", gpuq_str(&a, res->id));
	gpuq_put(&a, out, "error", gpuq_str(&a, err->text));
	if (r->json)
		print_json(out);
	else if (!res->c && !res->err.code) /* the file as a whole, which the text names */
		fprintf(stderr, "gpuq-sim: %s\n", err->text);
	else
		fprintf(stderr, "gpuq-sim: %s: %s\n", res->id, err->text);
	gpuq_arena_done(&a);
}

/* ---- shares ---- */

static struct gpuq_val *amount(struct gpuq_arena *a, int64_t milli)
{
	return milli == GPUQ_UNLIMITED ? gpuq_null(a) : gpuq_real(a, (double)milli / 1000);
}

static int shares_one(struct run *r, const struct sc_result *res, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *out = gpuq_map(&a), *queues, *users, *overcommitted;
	struct world w;
	int rc = world_make(res->c, &w, err);

	if (rc == 0)
		rc = world_rest(&w, 1, err);
	if (rc == 0)
		rc = fairness_tell(&w, &a, &users, &overcommitted, err);
	if (rc == 0 && r->json) {
		gpuq_put(&a, out, "id", gpuq_str(&a, res->id));
		queues = gpuq_put(&a, out, "queues", gpuq_map(&a));
		for (uint32_t q = 0; q < w.n_queues; q++) {
			struct gpuq_val *m = gpuq_put(&a, queues, w.shares[q].name, gpuq_map(&a));

			gpuq_put(&a, m, "quota", amount(&a, w.shares[q].quota_milli));
			gpuq_put(&a, m, "demand", amount(&a, w.shares[q].demand_milli));
			gpuq_put(&a, m, "limit", amount(&a, w.shares[q].limit_milli));
			gpuq_put(&a, m, "fair_share", amount(&a, w.shares[q].fair_milli));
		}
		gpuq_put(&a, out, "users", users);
		if (overcommitted->n)
			gpuq_put(&a, out, "overcommitted", overcommitted);
		print_json(out);
	} else if (rc == 0) {
		printf("%s\n", res->id);
		print_shares(&w);
		fairness_print(users, overcommitted);
	}
	r->passed += rc == 0;
	world_done(&w);
	gpuq_arena_done(&a);
	return rc;
}

/* ---- files ---- */

static void run_file(struct run *r, const char *name)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(FILE_BYTES_MAX);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct sc_result *results = NULL;
	size_t n = 0;
	int rc = read_file(name, &text, &err);

	if (rc == 0)
		rc = scenario_read(&a, name, text.data, text.len, &results, &n, &err);
	if (rc < 0) {
		const struct sc_result whole = { .id = name };

		r->refused(r, &whole, &err);
	}
	for (size_t i = 0; i < n; i++) {
		err = (struct gpuq_err)GPUQ_ERR_INIT;
		if (!results[i].c)
			r->refused(r, &results[i], &results[i].err);
		else if (r->one(r, &results[i], &err) < 0) {
			scenario_place(results[i].c, &err);
			r->refused(r, &results[i], &err);
		}
		fflush(stdout);
	}
	gpuq_buf_done(&text);
	gpuq_arena_done(&a);
}

/* ---- replay ---- */

static void replay_file(struct run *r, const char *name)
{
	struct gpuq_buf bytes = GPUQ_BUF_INIT_MAX(RECORD_BYTES_MAX);
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = read_file(name, &bytes, &err);

	if (rc == 0)
		rc = replay_bytes(&r->replay, name, bytes.data, bytes.len, &err);
	if (rc < 0) {
		fflush(stdout);
		fprintf(stderr, "gpuq-sim: %s\n", err.text);
		r->failed++;
	}
	gpuq_buf_done(&bytes);
}

static const struct {
	const char *name;
	int (*one)(struct run *r, const struct sc_result *res, struct gpuq_err *err);
	void (*refused)(struct run *r, const struct sc_result *res, const struct gpuq_err *err);
	bool counts, json, estimate; /* counts: prints how many passed at the end */
	void (*file)(struct run *r, const char *name);
} verbs[] = {
	{ "check", check_one, check_refused, true, false, false, run_file },
	{ "run", run_one, run_refused, false, true, true, run_file },
	{ "shares", shares_one, run_refused, false, true, false, run_file },
	{ "replay", NULL, NULL, false, false, false, replay_file },
};

int main(int argc, char **argv)
{
	const size_t n_verbs = sizeof(verbs) / sizeof(verbs[0]);
	struct run r = { .json = false };
	const char *wrong = NULL;
	size_t v = 0;
	int files = 0;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return fputs(usage, stdout) < 0;
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return printf("gpuq-sim %s\n", PACKAGE_VERSION) < 0;
	if (argc > 1 && strcmp(argv[1], "pack") == 0)
		return packing_main(argc, argv);
	if (argc > 1 && strcmp(argv[1], "trace") == 0)
		return trace_main(argc - 1, argv + 1);
	while (argc > 1 && v < n_verbs && strcmp(argv[1], verbs[v].name) != 0)
		v++;
	if (argc > 1 && v == n_verbs && argv[1][0] != '-')
		fprintf(stderr, "gpuq-sim: there is no command %s\n", argv[1]);
	if (argc == 3 && v < n_verbs && strcmp(argv[2], "--help") == 0)
		return fputs(usage, stdout) < 0;
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0 && v < n_verbs && verbs[v].json)
			r.json = true;
		else if (strcmp(argv[i], "--estimate") == 0 && v < n_verbs && verbs[v].estimate)
			r.estimate = true;
		else if (argv[i][0] != '-' || argv[i][1] == '\0')
			files++;
		else if (v < n_verbs)
			wrong = argv[i];
	}
	if (wrong) {
		fprintf(stderr, "gpuq-sim: %s has no option %s\n", verbs[v].name, wrong);
		v = n_verbs;
	}
	if (argc < 3 || v == n_verbs || files == 0) {
		fputs(usage, stderr);
		return 2;
	}
	r.one = verbs[v].one;
	r.refused = verbs[v].refused;
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "--json") != 0 && strcmp(argv[i], "--estimate") != 0)
			verbs[v].file(&r, argv[i]);
	if (verbs[v].counts)
		printf("%u passed, %u failed\n", r.passed, r.failed);
	if (verbs[v].file == replay_file)
		printf("%lu cycles, %lu different\n", r.replay.n_same + r.replay.n_different,
		       r.replay.n_different);
	return r.failed > 0 || r.replay.n_different > 0;
}
