/* When a job will start, asked of a daemon's parts without the daemon. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/flow/advise/estimate.h"
#include "libgpuq/wire/mp.h"
#include "tests/unit/journal_rig.h"
#include "tests/unit/site_text.h"

#define HOUR (3600 * GPUQ_US_PER_S)

static struct journal_rig rig;
static struct estimator *estimator;

static void setup(void)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	journal_rig_open(&rig, fresh(2, 4));
	cr_assert_eq(estimator_new(rig.journal, &estimator, &err), 0, "%s", err.text);
}

static void teardown(void)
{
	estimator_free(estimator);
	journal_rig_close(&rig);
}

TestSuite(estimate, .init = setup, .fini = teardown);

/* ---- a world in short words ---- */

static void happen(struct event *ev)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(journal_apply(rig.journal, ev, &err), 0, "%s: %s", event_words[ev->type],
		     err.text);
}

static struct gpuq_spec *spec_of(struct gpuq_arena *a, const char *text)
{
	struct gpuq_spec_opts opts = { .file = "test", .default_name = "test", .now_us = T0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;

	cr_assert_eq(gpuq_specs_read(a, &opts, text, strlen(text), &specs, NULL, &err), 0, "%s",
		     err.text);
	return &specs.items[0];
}

static struct job_key submit(const char *queue, int64_t limit_us, const char *text)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf bytes = GPUQ_BUF_INIT, req = GPUQ_BUF_INIT;
	const struct gpuq_spec *spec = spec_of(&a, text);
	struct event ev = { .type = EV_JOB_SUBMITTED, .job = { rig.model->next_job_id, -1 } };

	cr_assert_eq(request_encode(spec, &req, NULL), 0);
	gpuq_mp_write(&bytes, gpuq_spec_write(&a, spec));
	ev.submitted.spec = spec;
	ev.submitted.spec_bytes = bytes.data;
	ev.submitted.spec_len = bytes.len;
	ev.submitted.request_bytes = req.data;
	ev.submitted.request_len = req.len;
	ev.submitted.user = "ann";
	ev.submitted.queue = queue;
	ev.submitted.qos = "normal";
	ev.submitted.time_limit_us = limit_us;
	happen(&ev);
	gpuq_buf_done(&bytes);
	gpuq_buf_done(&req);
	gpuq_arena_done(&a);
	return ev.job;
}

/* On the first devices of a node, its pod running at once; given_us: for less time than it
 * asked for, 0 = it is not. */
static void run_for(struct job_key key, const char *node, uint32_t n_devices, int64_t given_us)
{
	uint16_t devices[4] = { 0, 1, 2, 3 };
	struct placed_pod pod = {
		0, 0, node, devices, n_devices, 1000 * (int64_t)n_devices, 0, NULL
	};
	struct event ev = { .type = EV_JOB_PLACED, .job = key };

	ev.placed.token = "0123456789abcdef0123456789abcdef";
	ev.placed.flavor = "default";
	ev.placed.pods = &pod;
	ev.placed.n_pods = 1;
	ev.placed.time_limit_us = given_us;
	happen(&ev);
	ev = (struct event){ .type = EV_POD_CREATED,
			     .pod = { key, model_find_job(rig.model, key)->attempt, 0 } };
	ev.created.uid = "uid";
	happen(&ev);
	ev = (struct event){ .type = EV_POD_STARTED,
			     .pod = { key, model_find_job(rig.model, key)->attempt, 0 } };
	ev.started.start_us = loop_now_us(rig.loop);
	happen(&ev);
}

static void run_on(struct job_key key, const char *node, uint32_t n_devices)
{
	run_for(key, node, n_devices, 0);
}

static void end(struct job_key key, int64_t after_us)
{
	struct event ev = { .type = EV_POD_ENDED,
			    .pod = { key, model_find_job(rig.model, key)->attempt, 0 } };

	ev.at_us = ev.pod_ended.end_us = loop_now_us(rig.loop) + after_us;
	ev.pod_ended.message = "";
	happen(&ev);
	ev = (struct event){ .type = EV_JOB_ENDED, .job = key };
	ev.ended.state = GPUQ_JOB_COMPLETED;
	ev.ended.message = "";
	happen(&ev);
	ev = (struct event){ .type = EV_POD_GONE,
			     .pod = { key, model_find_job(rig.model, key)->attempt, 0 } };
	happen(&ev);
}

static void apply_site(const char *text)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_SITE_APPLIED };

	site_text_pack(text, &b);
	ev.site.bytes = b.data;
	ev.site.len = b.len;
	ev.site.who = "test";
	happen(&ev);
	gpuq_buf_done(&b);
}

/* ---- the answer, as one line ---- */

static struct {
	int rc, n_calls;
	char text[512];
	struct start_assumed assumed;
} heard;

static int64_t minutes(int64_t us)
{
	return us == GPUQ_UNLIMITED ? -1
				    : (us - loop_now_us(rig.loop) + 15 * GPUQ_US_PER_S) / 60000000;
}

static void on_answer(void *arg, int rc, const struct start_answer *answers, uint32_t n,
		      const struct start_assumed *assumed, const struct gpuq_err *err)
{
	size_t len = 0;

	(void)arg, (void)err;
	heard.rc = rc;
	heard.n_calls++;
	heard.text[0] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		const struct start_answer *a = &answers[i];

		if (a->rc != 0) {
			len += (size_t)snprintf(heard.text + len, sizeof(heard.text) - len,
						"%u: %s;", a->job.id, gpuq_err_name(a->rc));
			continue;
		}
		len += (size_t)snprintf(heard.text + len, sizeof(heard.text) - len, "%u: %s %d/%d",
					a->job.id, start_by_words[a->by], (int)minutes(a->start_us),
					(int)minutes(a->likely_us));
		for (uint32_t p = 0; p < a->n_pods; p++)
			len += (size_t)snprintf(heard.text + len, sizeof(heard.text) - len, " %s",
						a->pods[p].node);
		for (uint32_t v = 0; v < a->n_victims; v++)
			len += (size_t)snprintf(heard.text + len, sizeof(heard.text) - len,
						" -%u(%s %d)", a->victims[v].job.id,
						a->victims[v].rule,
						(int)(a->victims[v].gpus_milli / 1000));
		len += (size_t)snprintf(heard.text + len, sizeof(heard.text) - len, ";");
	}
	if (assumed)
		heard.assumed = *assumed;
	loop_stop(rig.loop, 0);
}

static const char *ask(const struct job_key *jobs, uint32_t n, const struct start_guest *guests,
		       uint32_t n_guests)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	uint64_t ticket;

	cr_assert_eq(
		estimator_ask(estimator, jobs, n, guests, n_guests, on_answer, NULL, &ticket, &err),
		0, "%s", err.text);
	loop_run(rig.loop);
	cr_assert_eq(heard.rc, 0);
	return heard.text;
}

#define ONE_POD "gpus: 4\nimage: i\ncommand: echo\n"

/* ---- tests ---- */

Test(estimate, who_waits_for_a_node_starts_when_its_job_may_run_no_longer)
{
	const struct job_key a = submit("default", HOUR, "name: a\n" ONE_POD);
	const struct job_key b = submit("default", 2 * HOUR, "name: b\n" ONE_POD);
	const struct job_key waits = submit("default", HOUR, "name: c\n" ONE_POD);
	const struct job_key asked[] = { waits, a, { 99, -1 } };

	run_on(a, "n0", 4);
	run_on(b, "n1", 4);
	cr_expect_str_eq(ask(asked, 3, NULL, 0),
			 "3: reservation 60/60 n0;1: invalid;99: not_found;");
	cr_expect_eq(heard.assumed.n_running, 2);
	cr_expect_eq(heard.assumed.n_endless, 0);
}

Test(estimate, a_job_that_is_not_there_stands_behind_those_that_are)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct start_guest guests[] = {
		{ spec_of(&a, ONE_POD), "bob", "default", "", HOUR },
		{ spec_of(&a, ONE_POD), "bob", "default", "", HOUR },
		{ spec_of(&a, "array: 0-1\n" ONE_POD), "bob", "default", "", HOUR },
	};
	const struct job_key first = submit("default", HOUR, ONE_POD);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct start_guest lost = guests[0];
	uint64_t ticket;

	cr_expect_str_eq(
		ask(&first, 1, guests, 3),
		"1: now 0/0 n0;2: now 0/0 n1;3: reservation 60/60 n0;4: reservation 60/60 n1;");
	cr_expect_eq(rig.model->next_job_id, 2, "nothing was submitted");
	lost.queue = "nowhere";
	cr_expect_eq(estimator_ask(estimator, NULL, 0, &lost, 1, on_answer, NULL, &ticket, &err),
		     GPUQ_ENOENT);
	gpuq_arena_done(&a);
}

Test(estimate, who_would_leave_is_named_with_the_rule)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct start_guest guest = { spec_of(&a, ONE_POD), "bob", "owner", "", HOUR };
	struct job_key borrowed;

	apply_site("version: 1\nqueues:\n- {name: owner, quota: 8}\n- {name: other, quota: 0}\n");
	borrowed = submit("other", GPUQ_UNLIMITED, ONE_POD);
	run_on(borrowed, "n0", 4);
	run_on(submit("other", GPUQ_UNLIMITED, ONE_POD), "n1", 4);
	cr_expect_str_eq(ask(NULL, 0, &guest, 1), "3: claim 0/0 n1 -2(reclaim-quota 4);");
	cr_expect_eq(heard.assumed.n_endless, 2);
	gpuq_arena_done(&a);
}

Test(estimate, who_would_leave_waits_for_all_the_time_it_asked_for)
{
	struct job_key less, asked[2];

	apply_site("version: 1\nqueues:\n- {name: owner, quota: 8}\n- {name: other, quota: 0}\n");
	run_on(submit("other", GPUQ_UNLIMITED, ONE_POD), "n1", 4);
	less = submit("other", 10 * HOUR, "time_min: 1h\n" ONE_POD);
	run_for(less, "n0", 4, 2 * HOUR);
	asked[0] = submit("owner", HOUR, ONE_POD);
	asked[1] = submit("other", GPUQ_UNLIMITED, ONE_POD);
	/* An hour, ten, and the time that each may take to leave. */
	cr_expect_str_eq(ask(asked, 2, NULL, 0),
			 "3: claim 0/0 n0 -2(reclaim-quota 4);4: simulation 661/661 n0;");
}

/* Requeued by hand: it ends, is pending again, and is served before later jobs. */
Test(estimate, who_is_leaving_comes_back_and_competes)
{
	const struct job_key first = submit("default", 2 * HOUR, ONE_POD);
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = first };
	struct job_key waits;

	run_on(first, "n0", 4);
	run_on(submit("default", 5 * HOUR, ONE_POD), "n1", 4);
	waits = submit("default", HOUR, ONE_POD);
	cr_expect_str_eq(ask(&waits, 1, NULL, 0), "3: reservation 120/120 n0;");
	ev.evict.cause = GPUQ_CAUSE_REQUEUE;
	ev.evict.rule = ev.evict.by = ev.evict.by_queue = ev.evict.why = "";
	happen(&ev);
	/* A minute to leave, and two hours again. */
	cr_expect_str_eq(ask(&waits, 1, NULL, 0), "3: simulation 121/121 n0;");
}

Test(estimate, what_is_usual_is_told_beside_what_is_allowed)
{
	struct job_key waits;

	for (int i = 0; i < 3; i++) {
		const struct job_key done = submit("default", 10 * HOUR, "name: short\n" ONE_POD);

		run_on(done, "n0", 4);
		end(done, HOUR);
	}
	run_on(submit("default", 10 * HOUR, "name: short\n" ONE_POD), "n0", 4);
	run_on(submit("default", 10 * HOUR, "name: long\n" ONE_POD), "n1", 4);
	waits = submit("default", HOUR, ONE_POD);
	cr_expect_str_eq(ask(&waits, 1, NULL, 0), "6: reservation 600/60 n0;");
	cr_expect_eq(heard.assumed.n_learned, 1);
}

Test(estimate, the_first_answer_is_compared_with_the_start)
{
	const struct job_key a = submit("default", HOUR, ONE_POD);
	const struct job_key waits[] = { submit("default", HOUR, ONE_POD),
					 submit("default", HOUR, ONE_POD) };
	struct start_record r;

	run_on(a, "n0", 4);
	cr_expect(!estimator_record(estimator, "default", &r));
	cr_expect_str_eq(ask(waits, 2, NULL, 0), "2: now 0/0 n1;3: reservation 60/60 n0;");
	run_on(waits[0], "n1", 4);
	end(a, 60 * GPUQ_US_PER_S);
	run_on(waits[1], "n0", 4);
	cr_assert(estimator_record(estimator, "default", &r));
	cr_expect_eq(r.n, 1, "the other did not have to wait");
	cr_expect_eq(r.n_unknown, 0);
	cr_expect_eq(r.n_late, 0);
	cr_expect_eq(r.n_early, 1);
	cr_expect_eq(r.half_us, 4096 * GPUQ_US_PER_S, "%ld", (long)r.half_us);
	cr_expect_eq(r.most_us, 4096 * GPUQ_US_PER_S, "%ld", (long)r.most_us);
}

Test(estimate, who_has_gone_hears_nothing_and_who_is_left_hears_of_the_end)
{
	const struct job_key a = submit("default", HOUR, ONE_POD);
	struct gpuq_err err = GPUQ_ERR_INIT;
	uint64_t first, second;

	cr_assert_eq(estimator_ask(estimator, &a, 1, NULL, 0, on_answer, NULL, &first, &err), 0);
	cr_assert_eq(estimator_ask(estimator, &a, 1, NULL, 0, on_answer, NULL, &second, &err), 0);
	estimator_forget(estimator, first);
	estimator_free(estimator);
	estimator = NULL;
	cr_expect_eq(heard.n_calls, 1);
	cr_expect_eq(heard.rc, GPUQ_EGONE);
}
