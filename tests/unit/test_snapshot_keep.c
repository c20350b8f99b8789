/* A kept snapshot gives the plan that one taken anew gives, while jobs come, start, are preempted and
 * end, requests and users come and go, nodes are drained and the site changes. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/carry/carry.h"
#include "gpuqd/carry/obey.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_keep.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/state/record/model_apply.h"
#include "tests/unit/model_rig.h"

#define STEPS 600
#define MINUTE_US (60 * GPUQ_US_PER_S)
#define SIZES 6

struct life_of {
	struct model *m;
	struct snapshot_keep *keep;
	struct gpuq_arena mem; /* of a cycle */
	int64_t now_us;
	uint32_t dice;
	uint32_t n_placed, n_evicted;
};

static uint32_t draw(struct life_of *l, uint32_t below)
{
	l->dice = l->dice * 1664525u + 1013904223u;
	return (l->dice >> 8) % below;
}

static int apply(void *arg, struct event *ev, struct gpuq_err *err)
{
	struct life_of *l = arg;
	const uint32_t job = ev->job.id ? ev->job.id : ev->pod.job.id;
	int rc;

	ev->at_us = l->now_us;
	rc = model_apply_unrecorded(l->m, ev, err);
	if (job)
		cr_assert(snapshot_keep_changed(l->keep, job));
	return rc;
}

static void submit(struct life_of *l)
{
	static struct gpuq_group groups[SIZES];
	static struct gpuq_spec specs[SIZES];
	static const char *const users[] = { "ann", "bob", "cyd", "dan" };
	static const char *const queues[] = { "one", "two" };
	struct event ev = { .type = EV_JOB_SUBMITTED, .job = { l->m->next_job_id, -1 } };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const uint32_t size = draw(l, SIZES);

	groups[size] = (struct gpuq_group){ .name = "main",
					    .pods_min = 1 + size / 4,
					    .pods_max = 1 + size / 4,
					    .gpus_milli = (size % 4 + 1) * INT64_C(1000) };
	specs[size] = (struct gpuq_spec){ .groups = &groups[size], .n_groups = 1, .requeue = true };
	ev.submitted.spec = &specs[size];
	ev.submitted.spec_bytes = "";
	ev.submitted.request_bytes = &size;
	ev.submitted.request_len = sizeof(size);
	ev.submitted.as_written = true;
	ev.submitted.user = users[draw(l, 4)];
	ev.submitted.queue = queues[draw(l, 2)];
	ev.submitted.qos = "normal";
	ev.submitted.time_limit_us = (1 + draw(l, 200)) * MINUTE_US;
	cr_assert_eq(apply(l, &ev, &err), 0, "%s", err.text);
}

/* End some running jobs. */
static void end_some(struct life_of *l)
{
	const struct obey_to to = { apply, l };

	job_each(l->m, j) {
		if (model_job_is_live(j) && draw(l, 12) == 0)
			cr_assert_eq(obey_end(&to, j, true, 0, NULL), 0);
	}
}

static void drain(struct life_of *l)
{
	struct event ev = { .type = EV_NODE_DRAIN };

	ev.drain.name = "n1";
	ev.drain.on = draw(l, 2);
	ev.drain.why = ev.drain.who = "";
	cr_assert_eq(apply(l, &ev, NULL), 0);
}

static void token(char out[33])
{
	snprintf(out, 33, "%032x", 0);
}

static void on_news(void *arg, enum carry_news news, const struct plan_action *a,
		    const struct event *ev, const struct gpuq_err *err)
{
	struct life_of *l = arg;
	const struct obey_to to = { apply, l };
	const struct job *j = model_find_job(l->m, (struct job_key){ a->key.id, a->key.index });

	(void)ev;
	cr_assert_neq(news, CARRY_REFUSED, "%s", err->text);
	l->n_placed += news == CARRY_PLACED;
	l->n_evicted += news == CARRY_EVICTED;
	if (news == CARRY_PLACED)
		cr_assert_eq(obey_start(&to, j, NULL), 0);
	if (news == CARRY_EVICTED)
		cr_assert_eq(obey_end(&to, j, true, 143, NULL), 0);
}

static uint32_t pending_of(struct life_of *l, struct keep_pending *out)
{
	uint32_t n = 0;

	job_each(l->m, j)
		if (j->state == GPUQ_JOB_PENDING)
			out[n++] = (struct keep_pending){ j->key.id, 0 };
	return n;
}

static void cycle(struct life_of *l)
{
	static struct keep_pending pending[STEPS * 3];
	const struct carry_to to = { .apply = apply, .token = token, .news = on_news, .arg = l };
	struct gpuq_buf kept = GPUQ_BUF_INIT, whole = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = NULL, *all = NULL;
	struct plan p = { 0 }, q = { 0 };

	cr_assert_eq(
		snapshot_keep_take(l->keep, l->now_us, pending, pending_of(l, pending), &s, &err),
		0, "%s", err.text);
	cr_assert_eq(sched_cycle(s, &l->mem, &p, &err), 0, "%s", err.text);
	cr_assert_eq(snapshot_take(l->m, l->now_us, &all, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(all, &l->mem, &q, &err), 0, "%s", err.text);
	plan_print(s, &p, &kept);
	plan_print(all, &q, &whole);
	cr_assert_str_eq(gpuq_buf_str(&kept), gpuq_buf_str(&whole));
	carry_plan(&to, l->m, s, &p, &l->mem);
	snapshot_free(all);
	gpuq_buf_done(&kept);
	gpuq_buf_done(&whole);
	gpuq_arena_reset(&l->mem);
}

Test(snapshot_keep, is_the_one_that_would_be_taken)
{
	struct life_of l = { .m = fresh(3, 4), .now_us = T0, .dice = 7 };

	rig_site(l.m, "{version: 1, queues: [{name: one, quota: 4}, {name: two, quota: 6}]}");
	l.keep = snapshot_keep_new(l.m);
	cr_assert_not_null(l.keep);
	for (int i = 0; i < STEPS; i++) {
		l.now_us += draw(&l, 10) * MINUTE_US;
		if (draw(&l, 3))
			submit(&l);
		end_some(&l);
		if (draw(&l, 60) == 0)
			drain(&l);
		if (i == STEPS / 2)
			rig_site(l.m, "{version: 1, queues: [{name: one}, {name: two, weight: 3, "
				      "quota: 2}]}");
		cycle(&l);
	}
	cr_expect_gt(l.n_placed, STEPS / 4);
	cr_expect_gt(l.n_evicted, 10);
	snapshot_keep_free(l.keep);
	gpuq_arena_done(&l.mem);
	model_free(l.m);
}
