/* A gang that loses a pod with its node goes on, or waits again as a whole. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"
#include "tests/unit/model_rig.h"

#define REPAIR_US (60 * GPUQ_US_PER_S)

/* As a scenario submits it: the spec itself, which lives as long as the arena. */
static void submit_written(struct model *m, struct gpuq_arena *a, const char *text)
{
	static const uint32_t id = 1;
	struct gpuq_spec_opts opts = { .file = "test", .default_name = "test", .now_us = T0 };
	struct event ev = { .type = EV_JOB_SUBMITTED, .at_us = T0 + 1, .job = J1 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;

	cr_assert_eq(gpuq_specs_read(a, &opts, text, strlen(text), &specs, NULL, &err), 0, "%s",
		     err.text);
	ev.submitted.spec = &specs.items[0];
	ev.submitted.spec_bytes = "";
	ev.submitted.request_bytes = &id;
	ev.submitted.request_len = sizeof(id);
	ev.submitted.as_written = true;
	ev.submitted.user = "ann";
	ev.submitted.queue = "default";
	ev.submitted.qos = "normal";
	ev.submitted.time_limit_us = GPUQ_UNLIMITED;
	cr_assert_eq(model_apply(m, &ev, &err), 0, "%s", err.text);
}

static const struct {
	const char *spec;
	bool written; /* by a scenario */
	int64_t repair_us;
	bool kept, is_short;
} rows[] = {
	{ "{gpus: 1, pods: 3, command: [a]}", false, REPAIR_US, false, false },
	{ "{gpus: 1, pods: 3, command: [a]}", true, REPAIR_US, true, true },
	{ "{gpus: 1, pods: 3, command: [a]}", true, 0, false, false },
	{ "{gpus: 1, pods: {min: 2, max: 3}, command: [a]}", false, REPAIR_US, true, false },
	{ "{gpus: 1, pods: {min: 3, max: 4}, command: [a]}", false, REPAIR_US, true, true },
	{ "{gpus: 1, pods: {min: 3, max: 4}, command: [a]}", true, REPAIR_US, true, true },
	/* No pod is ever placed beside the others of a job that has its nodes to itself. */
	{ "{gpus: 1, pods: {min: 2, max: 3}, exclusive: true, command: [a]}", false, REPAIR_US,
	  true, false },
	{ "{gpus: 1, pods: {min: 3, max: 4}, exclusive: true, command: [a]}", false, REPAIR_US,
	  false, false },
	{ "{gpus: 1, pods: 3, exclusive: true, command: [a]}", true, REPAIR_US, false, false },
};

static struct model *running(size_t i, struct gpuq_arena *a)
{
	struct model *m = fresh(1, 4);
	struct policy p = m->policy;

	p.sched.gang_repair_us = rows[i].repair_us;
	model_set_policy(m, &p);
	if (rows[i].written)
		submit_written(m, a, rows[i].spec);
	else
		cr_assert_null(submit_text(m, rows[i].spec, NULL), "row %zu", i);
	cr_assert_eq(place(m, J1, 3, "n0", 0), 0);
	for (uint32_t k = 0; k < 3; k++)
		cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, k, T0 + 20, 0, 0), 0);
	cr_assert_eq(model_find_job(m, J1)->state, GPUQ_JOB_RUNNING);
	return m;
}

Test(lost_pod, is_replaced_or_the_gang_waits_again)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct model *m = running(i, &a);
		const struct job *j = model_find_job(m, J1);
		enum event_type end;

		cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 1, T0 + 30, -1, POD_FAULT_INFRA), 0);
		cr_assert_eq(pod_event(m, EV_POD_GONE, J1, 0, 1, T0 + 30, 0, 0), 0);
		cr_expect_eq(j->state, rows[i].kept ? GPUQ_JOB_RUNNING : GPUQ_JOB_COMPLETING,
			     "row %zu", i);
		cr_expect_eq(j->life->short_us, rows[i].is_short ? T0 + 30 : 0, "row %zu", i);
		/* The others fail as their peer is gone, whether or not they were told to leave. */
		for (uint32_t k = 0; k < 3 && !rows[i].kept; k += 2)
			cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, k, T0 + 40, 1, 0), 0);
		if (!rows[i].kept) {
			cr_assert_eq(verdict(m, J1, T0 + 40, &end), 0);
			cr_expect_eq(end, EV_JOB_REQUEUED, "row %zu", i);
			cr_expect_eq(j->state, GPUQ_JOB_PENDING, "row %zu", i);
			cr_expect_eq(j->life->n_retries, 0, "row %zu", i);
		}
		model_free(m);
		gpuq_arena_done(&a);
	}
}
