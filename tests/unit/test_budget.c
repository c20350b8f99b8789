/* GPU-minutes of queues, as a cycle sees them. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/sched/sched.h"

#define MINUTE (60 * GPUQ_US_PER_S)
#define GPU_MINUTE INT64_C(60000) /* in GPU-milliseconds */
#define NOW (INT64_C(100000) * MINUTE)

struct rig {
	struct snapshot *s;
	uint32_t request, jobs;
	struct gpuq_arena mem;
	struct plan plan;
};

static void begin(struct rig *r, uint32_t devices)
{
	const struct snap_group g = {
		.name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = 1000
	};
	const struct snap_request req = { .groups = &g, .n_groups = 1 };
	struct snap_config config;
	struct snap_node n;

	*r = (struct rig){ .mem = GPUQ_ARENA_INIT(0) };
	snapshot_config_default(&config);
	config.now_us = NOW;
	r->s = snapshot_new(&config);
	snapshot_add_flavor(r->s, "gpu", 0);
	snapshot_user(r->s, "ann");
	r->request = snapshot_add_request(r->s, &req);
	snapshot_node_default(&n);
	n.name = "n1";
	n.flavor = 0;
	n.n_devices = devices;
	snapshot_add_node(r->s, &n);
}

static uint32_t queue(struct rig *r, const char *name, const char *parent, int64_t quota_milli,
		      int64_t minutes, int64_t used, bool hard)
{
	struct snap_share shares[3];
	struct snap_queue q;

	snapshot_queue_default(&q);
	for (int i = 0; i < 3; i++)
		snapshot_share_default(&shares[i]);
	shares[0].quota = quota_milli;
	q.shares = shares;
	q.name = name;
	q.parent_name = parent;
	q.age = r->s->n_queues;
	if (minutes >= 0)
		q.budget_gpu_ms = minutes * GPU_MINUTE;
	q.budget_used_gpu_ms = used * GPU_MINUTE;
	q.budget_hard = hard;
	return snapshot_add_queue(r->s, &q);
}

/* One that waits; or runs since `ran` minutes. */
static void job(struct rig *r, uint32_t q, int64_t walltime, int64_t ran)
{
	const struct snap_alloc a = {
		.job = r->jobs, .devices = &r->jobs, .n_devices = 1, .milli = 1000
	};
	struct snap_job j;

	snapshot_job_default(&j);
	j.key.id = r->jobs + 1;
	j.queue = q;
	j.request = r->request;
	j.user = 0;
	j.submit_us = 1;
	j.walltime_us = walltime < 0 ? GPUQ_UNLIMITED : walltime * MINUTE;
	if (ran >= 0) {
		j.state = SNAP_RUNNING;
		j.start_us = NOW - ran * MINUTE;
	}
	snapshot_add_job(r->s, &j);
	if (ran >= 0)
		snapshot_add_alloc(r->s, &a);
	r->jobs++;
}

static void decide(struct rig *r)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(snapshot_seal(r->s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(r->s, &r->mem, &r->plan, &err), 0, "%s", err.text);
}

static bool started(const struct rig *r, uint32_t job)
{
	for (uint32_t i = 0; i < r->plan.n_actions; i++)
		if (r->plan.actions[i].kind == PLAN_PLACE && r->plan.actions[i].job == job)
			return true;
	return false;
}

static void expect_reason(const struct rig *r, uint32_t job, enum gpuq_reason code, int64_t have,
			  int64_t need, const char *object)
{
	const struct plan_reason *why;

	cr_assert_gt(plan_reasons(r->s, &r->plan, job, &why), 0, "no reason for job %u", job);
	cr_expect_eq(why->code, code, "%s", gpuq_reason_word(why->code));
	cr_expect_eq(why->have, have, "have %lld", (long long)why->have);
	cr_expect_eq(why->need, need, "need %lld", (long long)why->need);
	cr_expect_str_eq(why->object, object);
}

static void end(struct rig *r)
{
	gpuq_arena_done(&r->mem);
	snapshot_free(r->s);
}

/* 600 minutes, 480 used, one device with 60 minutes left: 60 fit, 61 do not. */
Test(budget, running_jobs_hold_what_they_may_use)
{
	struct rig r;
	uint32_t q;

	begin(&r, 8);
	q = queue(&r, "team", NULL, 8000, 600, 480, true);
	job(&r, q, 100, 40);
	job(&r, q, 61, -1);
	decide(&r);
	cr_expect(!started(&r, 1));
	expect_reason(&r, 1, GPUQ_R_BUDGET_COMMITTED, 60, 61, "team");
	end(&r);

	begin(&r, 8);
	q = queue(&r, "team", NULL, 8000, 600, 480, true);
	job(&r, q, 100, 40);
	job(&r, q, 60, -1);
	job(&r, q, 1, -1);
	decide(&r);
	cr_expect(started(&r, 1));
	cr_expect(!started(&r, 2), "the one before it holds all that was left");
	expect_reason(&r, 2, GPUQ_R_BUDGET_COMMITTED, 0, 1, "team");
	end(&r);
}

Test(budget, shorter_jobs_are_still_looked_at)
{
	struct rig r;
	uint32_t q;

	begin(&r, 8);
	q = queue(&r, "team", NULL, 8000, 100, 40, true);
	job(&r, q, 61, -1);
	job(&r, q, -1, -1);
	job(&r, q, 30, -1);
	decide(&r);
	expect_reason(&r, 0, GPUQ_R_BUDGET, 60, 61, "team");
	cr_expect(!started(&r, 1), "without a time limit nothing is enough");
	cr_expect(started(&r, 2));
	end(&r);
}

Test(budget, of_every_queue_above)
{
	struct rig r;
	uint32_t q;

	begin(&r, 8);
	queue(&r, "dept", NULL, 8000, 50, 20, true);
	q = queue(&r, "team", "dept", 8000, 1000, 0, true);
	job(&r, q, 31, -1);
	decide(&r);
	expect_reason(&r, 0, GPUQ_R_BUDGET, 30, 31, "dept");
	end(&r);
}

Test(budget, rates_count)
{
	struct rig r;
	uint32_t q;

	begin(&r, 8);
	snapshot_set_rate(r.s, 0, 2500);
	q = queue(&r, "team", NULL, 8000, 100, 0, true);
	job(&r, q, 41, -1);
	job(&r, q, 40, -1);
	decide(&r);
	expect_reason(&r, 0, GPUQ_R_BUDGET, 100, 103, "team");
	cr_expect(started(&r, 1));
	end(&r);
}

/* A queue beyond its soft budget comes last beyond its guarantee, and uses idle capacity. */
Test(budget, soft_lowers_the_standing)
{
	struct rig r;
	uint32_t out, in;

	begin(&r, 3);
	out = queue(&r, "out", NULL, 1000, 100, 100, false);
	in = queue(&r, "in", NULL, 0, 100, 99, false);
	for (int i = 0; i < 3; i++)
		job(&r, out, -1, -1);
	job(&r, in, -1, -1);
	job(&r, in, -1, -1);
	decide(&r);
	cr_expect(r.s->queues[snapshot_find_queue(r.s, "out")].over_budget);
	cr_expect(!r.s->queues[snapshot_find_queue(r.s, "in")].over_budget);
	cr_expect(started(&r, 0), "its guarantee is not touched");
	cr_expect(started(&r, 3));
	cr_expect(started(&r, 4));
	cr_expect(!started(&r, 1));
	end(&r);

	begin(&r, 3);
	out = queue(&r, "out", NULL, 1000, 100, 100, false);
	for (int i = 0; i < 3; i++)
		job(&r, out, -1, -1);
	decide(&r);
	cr_expect(started(&r, 2), "nothing is left idle");
	end(&r);
}

Test(budget, wakes_when_it_runs_out)
{
	struct rig r;
	uint32_t q;

	begin(&r, 8);
	q = queue(&r, "team", NULL, 8000, 100, 40, false);
	job(&r, q, -1, 10);
	job(&r, q, -1, 10);
	decide(&r);
	cr_expect_eq(r.plan.wake_us, NOW + 30 * MINUTE + 1, "60 GPU-minutes, two devices");
	end(&r);
}
