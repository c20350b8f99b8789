/* Joint limits of the jobs of a qos, a user or a group. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_pack.h"

#define MINUTE (60 * GPUQ_US_PER_S)

struct rig {
	struct snapshot *s;
	struct gpuq_arena mem;
	struct plan plan;
	uint32_t queue, request, node;
};

/* A node of eight devices, a queue of as many, jobs of one device each. */
static void begin(struct rig *r)
{
	const struct snap_group g = {
		.name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = 1000
	};
	const struct snap_request request = { .groups = &g, .n_groups = 1 };
	struct snap_config config;
	struct snap_queue q;
	struct snap_node n;

	memset(r, 0, sizeof(*r));
	snapshot_config_default(&config);
	config.now_us = 100 * MINUTE;
	r->s = snapshot_new(&config);
	snapshot_add_flavor(r->s, "gpu", 0);
	snapshot_user(r->s, "ann");
	r->request = snapshot_add_request(r->s, &request);
	snapshot_queue_default(&q);
	q.name = "a";
	r->queue = snapshot_add_queue(r->s, &q);
	snapshot_node_default(&n);
	n.name = "n1";
	n.flavor = 0;
	n.n_devices = 8;
	r->node = snapshot_add_node(r->s, &n);
}

static uint32_t cap(struct rig *r, const char *name, int64_t jobs, int64_t gpus_milli,
		    int64_t left_ms)
{
	const struct snap_cap c = { name,       GPUQ_R_LIMIT_USER, jobs,
				    gpus_milli, left_ms,           GPUQ_UNLIMITED };

	return snapshot_add_cap(r->s, &c);
}

static uint32_t set(struct rig *r, uint32_t a, uint32_t b)
{
	struct snap_capset s;

	for (int i = 0; i < SNAP_CAPS_MAX; i++)
		s.caps[i] = i == 0 ? a : i == 1 ? b : SNAP_NONE;

	return snapshot_add_capset(r->s, &s);
}

static uint32_t job(struct rig *r, uint32_t id, uint32_t capset, int64_t start_us)
{
	const uint32_t device = id - 1;
	struct snap_alloc a = {
		.node = r->node, .devices = &device, .n_devices = 1, .milli = 1000
	};
	struct snap_job j;

	snapshot_job_default(&j);
	j.key.id = id;
	j.queue = r->queue;
	j.request = r->request;
	j.user = 0;
	j.capset = capset;
	j.submit_us = j.eligible_us = id;
	j.walltime_us = 60 * MINUTE;
	j.state = start_us ? SNAP_RUNNING : SNAP_PENDING;
	j.start_us = start_us;
	a.job = snapshot_add_job(r->s, &j);
	if (start_us)
		snapshot_add_alloc(r->s, &a);
	return a.job;
}

static void decide(struct rig *r)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(snapshot_seal(r->s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(r->s, &r->mem, &r->plan, &err), 0, "%s", err.text);
}

static void end(struct rig *r)
{
	snapshot_free(r->s);
	gpuq_arena_done(&r->mem);
}

static void waits(const struct rig *r, uint32_t ix, enum gpuq_reason code, const char *object,
		  int64_t have, int64_t need)
{
	const struct plan_reason *why;
	uint32_t n = plan_reasons(r->s, &r->plan, ix, &why);
	bool found = false;

	for (uint32_t i = 0; i < n; i++)
		found |= why[i].code == code && strcmp(why[i].object, object) == 0 &&
			 why[i].have == have && why[i].need == need;
	cr_expect(found, "job %u: %s %s %d %d", ix + 1, n ? gpuq_reason_word(why->code) : "none",
		  n ? why->object : "", n ? (int)why->have : 0, n ? (int)why->need : 0);
}

Test(caps, count_running_jobs)
{
	struct rig r;
	uint32_t s;

	begin(&r);
	s = set(&r, cap(&r, "user/ann", 2, GPUQ_UNLIMITED, GPUQ_UNLIMITED), SNAP_NONE);
	job(&r, 1, s, 90 * MINUTE);
	job(&r, 2, s, 0);
	job(&r, 3, s, 0);
	job(&r, 4, SNAP_NONE, 0);
	decide(&r);
	cr_expect_eq(r.plan.started[1], 1);
	cr_expect_eq(r.plan.started[2], 0);
	cr_expect_eq(r.plan.started[3], 1, "it is another's");
	waits(&r, 2, GPUQ_R_LIMIT_USER, "user/ann", 0, 1);
	end(&r);
}

Test(caps, count_devices_over_several)
{
	struct rig r;
	uint32_t all, one, both;

	begin(&r);
	all = cap(&r, "qos/high", GPUQ_UNLIMITED, 3000, GPUQ_UNLIMITED);
	one = cap(&r, "qos/high/ann", GPUQ_UNLIMITED, 1000, GPUQ_UNLIMITED);
	both = set(&r, all, one);
	job(&r, 1, set(&r, all, SNAP_NONE), 90 * MINUTE);
	job(&r, 2, both, 0);
	job(&r, 3, both, 0);
	job(&r, 4, r.s->n_capsets - 1, 0);
	decide(&r);
	cr_expect_eq(r.plan.started[1], 1);
	waits(&r, 2, GPUQ_R_LIMIT_USER, "qos/high/ann", 0, 1000);
	cr_expect_eq(r.plan.started[3], 1, "the third of three");
	end(&r);
}

/* A job that was taken while more was allowed. */
Test(caps, one_job_may_be_too_large)
{
	struct snap_cap c = { "qos/high",     GPUQ_R_LIMIT_QUEUE, GPUQ_UNLIMITED,
			      GPUQ_UNLIMITED, GPUQ_UNLIMITED,     999 };
	struct rig r;

	begin(&r);
	job(&r, 1, set(&r, snapshot_add_cap(r.s, &c), SNAP_NONE), 0);
	decide(&r);
	cr_expect_eq(r.plan.started[0], 0);
	waits(&r, 0, GPUQ_R_LIMIT_JOB, "qos/high", 999, 1000);
	end(&r);
}

Test(caps, a_budget_of_a_user_is_never_passed)
{
	struct rig r;
	uint32_t s;

	begin(&r);
	/* 100 minutes are left; what runs may still use 50 of them. */
	s = set(&r, cap(&r, "a/ann", GPUQ_UNLIMITED, GPUQ_UNLIMITED, 100 * 60000), SNAP_NONE);
	job(&r, 1, s, 90 * MINUTE);
	job(&r, 2, s, 0);
	decide(&r);
	cr_expect_eq(r.plan.started[1], 0);
	waits(&r, 1, GPUQ_R_BUDGET_COMMITTED, "a/ann", 50, 60);
	end(&r);

	begin(&r);
	s = set(&r, cap(&r, "a/ann", GPUQ_UNLIMITED, GPUQ_UNLIMITED, 59 * 60000), SNAP_NONE);
	job(&r, 1, s, 0);
	decide(&r);
	waits(&r, 0, GPUQ_R_BUDGET, "a/ann", 59, 60);
	end(&r);
}

Test(caps, travel_in_records)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf bytes = GPUQ_BUF_INIT;
	struct snapshot *back;
	uint32_t x, y;
	struct rec in = { 0 };
	struct rig r;

	begin(&r);
	x = cap(&r, "x", 3, 4000, 5);
	y = cap(&r, "y", 6, 7000, GPUQ_UNLIMITED);
	job(&r, 1, set(&r, x, y), 0);
	snapshot_pack(r.s, &bytes);
	in.p = (const unsigned char *)bytes.data;
	in.end = in.p + bytes.len;
	cr_assert_eq(snapshot_unpack(&in, &back, &err), 0, "%s", err.text);
	cr_assert_eq(back->n_caps, 2);
	cr_expect_str_eq(back->caps[1].name, "y");
	cr_expect_eq(back->caps[0].max_gpus_milli, 4000);
	cr_expect_eq(back->capsets[back->jobs[0].capset].caps[1], 1);
	cr_expect_eq(back->capsets[0].caps[2], SNAP_NONE);
	snapshot_free(back);
	gpuq_buf_done(&bytes);
	end(&r);
}

Test(caps, that_are_not_there_are_refused)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct rig r;

	begin(&r);
	job(&r, 1, set(&r, 7, SNAP_NONE), 0);
	cr_expect_eq(snapshot_seal(r.s, &err), GPUQ_EINVAL);
	end(&r);
	begin(&r);
	job(&r, 1, 3, 0);
	cr_expect_eq(snapshot_seal(r.s, &err), GPUQ_EINVAL);
	end(&r);
}
