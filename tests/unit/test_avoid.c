/* A node that failed a job is avoided by it: for a while, where others would do, over a
 * restart; and a job that never gets to run is held. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/state/record/model_apply.h"
#include "gpuqd/snapshot/snapshot_take_past.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "tests/unit/model_rig.h"

#define MINUTE_US (60 * GPUQ_US_PER_S)

/* An attempt on node that ends so. */
static void attempt(struct model *m, uint32_t n, const char *node, enum pod_fault fault)
{
	enum event_type type;

	cr_assert_eq(place(m, J1, 1, node, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, n, 0, T0 + 20, 0, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, n, 0, T0 + 30, fault ? -1 : 75, fault), 0);
	cr_assert_eq(pod_event(m, EV_POD_GONE, J1, n, 0, T0 + 30, 0, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 30, &type), 0);
	cr_assert_eq(type, EV_JOB_REQUEUED);
}

/* Nodes that the job is kept off at that time, by name. */
static const char *kept_off(struct model *m, int64_t now_us)
{
	static char text[200];
	struct snapshot *s = NULL;
	struct gpuq_err err = GPUQ_ERR_INIT;
	size_t n = 0;

	text[0] = '\0';
	cr_assert_eq(snapshot_take(m, now_us, &s, &err), 0, "%s", err.text);
	for (uint32_t i = 0; i < s->jobs[0].n_exclude; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
				      s->nodes[s->jobs[0].exclude[i]].name);
	snapshot_free(s);
	return text;
}

Test(avoid, for_a_while_where_others_would_do)
{
	struct model *m = fresh(3, 2);

	cr_assert_null(submit_text(m, "{gpus: 2, command: [a]}", NULL));
	attempt(m, 0, "n0", POD_FAULT_INFRA);
	cr_expect_str_eq(kept_off(m, T0 + 40), "n0");
	cr_expect_eq(snapshot_avoided_end(m, T0 + 40), T0 + 30 + JOB_AVOID_US);
	attempt(m, 1, "n1", POD_FAULT_INFRA);
	cr_expect_str_eq(kept_off(m, T0 + 40), "n0 n1");
	/* All three failed it: it takes what there is. */
	attempt(m, 2, "n2", POD_FAULT_INFRA);
	cr_expect_str_eq(kept_off(m, T0 + 40), "");
	cr_expect_str_eq(kept_off(m, T0 + 30 + JOB_AVOID_US), "");
	cr_expect_eq(snapshot_avoided_end(m, T0 + 30 + JOB_AVOID_US), GPUQ_UNLIMITED);
	model_free(m);
}

Test(avoid, a_gang_needs_as_many_others)
{
	struct model *m = fresh(3, 2);
	enum event_type type;

	cr_assert_null(submit_text(m, "{gpus: 2, pods: 2, command: [a]}", NULL));
	cr_assert_eq(place(m, J1, 2, "n0", 0), 0);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, i, T0 + 30, -1, POD_FAULT_INFRA), 0);
		cr_assert_eq(pod_event(m, EV_POD_GONE, J1, 0, i, T0 + 30, 0, 0), 0);
	}
	cr_assert_eq(verdict(m, J1, T0 + 30, &type), 0);
	cr_expect_str_eq(kept_off(m, T0 + 40), "n0");
	model_find_node(m, "n2")->drain = true;
	cr_expect_str_eq(kept_off(m, T0 + 40), "", "one other is not enough");
	model_free(m);
}

Test(avoid, a_narrow_job_only_for_a_minute)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct gpuq_val *list;
	struct model *m = fresh(3, 2);

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a], nodes: [n0, n1]}", NULL));
	attempt(m, 0, "n0", POD_FAULT_INFRA);
	cr_expect_str_eq(kept_off(m, T0 + 40), "n0");
	cr_expect_str_eq(kept_off(m, T0 + 30 + MINUTE_US), "");
	cr_expect_eq(snapshot_avoided_end(m, T0 + 40), T0 + 30 + MINUTE_US);
	list = gpuq_get(view_job(&a, m, model_find_job(m, J1), T0 + 40), "avoids");
	cr_assert_eq(list->n, 1);
	cr_expect_eq(gpuq_get_int(list->items[0], "until_time", 0), T0 + 30 + MINUTE_US);
	list = gpuq_get(view_job(&a, m, model_find_job(m, J1), T0 + 30 + MINUTE_US), "avoids");
	cr_expect_eq(list->n, 0);
	gpuq_arena_done(&a);
	model_free(m);
}

/* A job that has no other node gets the same one again at once, whatever other nodes there are. */
Test(avoid, not_where_the_others_cannot_have_it)
{
	static const char *const jobs[] = {
		"{gpus: 1, command: [a], nodes: [n0]}",
		"{gpus: 1, command: [a], exclude: [n1, n2]}",
		"{gpus: 1, command: [a], node_selector: {only: here}}",
		"{gpu_memory: 1Gi, gpu_cores: 10, command: [a]}",
	};

	const char *key = "only", *value = "here";

	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		struct model *m = fresh(3, 2);

		model_find_node(m, "n0")->fact.labels = (struct gpuq_strmap){ &key, &value, 1 };
		for (uint32_t k = 1; k < 3; k++)
			model_find_node(m, k == 1 ? "n1" : "n2")->backend = backend_of("whole");
		cr_assert_null(submit_text(m, jobs[i], NULL));
		attempt(m, 0, "n0", POD_FAULT_REJECTED);
		cr_expect_str_eq(kept_off(m, T0 + 40), "", "%s", jobs[i]);
		model_free(m);
	}
}

Test(avoid, the_last_four_each_once)
{
	static const char *const nodes[] = { "n0", "n1", "n0", "n2", "n3", "n4" };
	struct model *m = fresh(6, 1);
	const struct job *j;

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	for (uint32_t i = 0; i < 6; i++)
		attempt(m, i, nodes[i], POD_FAULT_INFRA);
	j = model_find_job(m, J1);
	cr_assert_eq(j->life->avoids->n, 4);
	cr_expect_str_eq(j->life->avoids->items[0].node, "n0");
	cr_expect_str_eq(j->life->avoids->items[3].node, "n4");
	cr_expect_str_eq(kept_off(m, T0 + 40), "n0 n2 n3 n4");
	model_free(m);
}

/* n0 refuses devices, as its kubelet says. */
static void lacks_devices(struct model *m)
{
	struct event ev = { .type = EV_NODE_SHORT, .at_us = T0 + 20 };
	struct gpuq_err err = GPUQ_ERR_INIT;

	model_find_node(m, "n0")->fact.device = "nvidia.com/gpu";
	ev.short_of.name = "n0";
	ev.short_of.resource = "nvidia.com/gpu";
	ev.short_of.lacks = 2;
	ev.short_of.until_us = T0 + 40;
	ev.short_of.times = 1;
	cr_assert_eq(model_apply(m, &ev, &err), 0, "%s", err.text);
}

/* A job that waits may try the node, one that runs is not moved there. */
Test(avoid, a_job_that_runs_is_kept_off_a_node_that_refused_what_it_asks_for)
{
	struct model *m = fresh(2, 2);

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	lacks_devices(m);
	cr_expect_str_eq(kept_off(m, T0 + 50), "");
	cr_assert_eq(place(m, J1, 1, "n1", 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 55, 0, 0), 0);
	cr_expect_str_eq(kept_off(m, T0 + 60), "n0");
	model_free(m);
}

/* The node has not failed it: gpuqd called the job away. */
Test(avoid, not_a_node_that_it_is_called_away_from)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .at_us = T0 + 30, .job = J1 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct model *m = fresh(2, 2);

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 20, 0, 0), 0);
	ev.evict.cause = GPUQ_CAUSE_CONSOLIDATE;
	ev.evict.rule = ev.evict.by = ev.evict.why = "";
	cr_assert_eq(model_apply(m, &ev, &err), 0, "%s", err.text);
	cr_assert_eq(pod_event(m, EV_POD_GONE, J1, 0, 0, T0 + 35, 0, 0), 0);
	cr_expect_null(model_find_job(m, J1)->life->avoids);
	model_free(m);
}

/* Refusals that name what the node lacks hold no job. */
Test(avoid, many_named_refusals_hold_no_job)
{
	struct model *m = fresh(4, 2);
	const struct job *j;

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	j = model_find_job(m, J1);
	for (uint32_t i = 0; i < 12; i++) {
		struct event ev = { .type = EV_POD_ENDED, .at_us = T0 + 30, .pod = { J1, i, 0 } };
		static const char *const nodes[] = { "n0", "n1", "n2", "n3" };
		struct gpuq_err err = GPUQ_ERR_INIT;
		enum event_type type;

		cr_assert_eq(place(m, J1, 1, nodes[i % 4], 0), 0);
		ev.pod_ended.fault = POD_FAULT_REJECTED;
		ev.pod_ended.exit_code = -1;
		ev.pod_ended.named = true;
		cr_assert_eq(model_apply(m, &ev, &err), 0, "%s", err.text);
		cr_assert_eq(pod_event(m, EV_POD_GONE, J1, i, 0, T0 + 30, 0, 0), 0);
		cr_assert_eq(verdict(m, J1, T0 + 30, &type), 0);
		cr_expect_not(j->held_retries);
	}
	cr_expect_null(j->life->avoids);
	model_free(m);
}

/* The owner's own exit code says nothing of the node. */
Test(avoid, not_after_a_failure_of_its_own)
{
	struct model *m = fresh(2, 1);

	cr_assert_null(submit_text(
		m, "{gpus: 1, command: [a], retry: {limit: 2, on: [infra, \"exit:75\"]}}", NULL));
	attempt(m, 0, "n0", POD_FAULT_NONE);
	cr_expect_str_eq(kept_off(m, T0 + 40), "");
	cr_expect_eq(model_find_job(m, J1)->life->n_retries, 1);
	attempt(m, 1, "n0", POD_FAULT_INFRA);
	cr_expect_str_eq(kept_off(m, T0 + 40), "n0");
	cr_expect_eq(model_find_job(m, J1)->life->n_retries, 1, "a lost node uses up no retry");
	model_free(m);
}

Test(avoid, outlives_a_restart_and_is_shown)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct model *m = fresh(3, 2);
	struct disk d = { 0 };
	const struct gpuq_val *list;

	cr_assert_null(submit_text(m, "{gpus: 2, command: [a]}", NULL));
	attempt(m, 0, "n1", POD_FAULT_INFRA);
	disk_write(&d, m);
	model_free(m);
	m = disk_load(&d);
	cr_assert_not_null(m);
	cr_expect_eq(m->n_avoiding, 1);
	cr_expect_str_eq(kept_off(m, T0 + 40), "n1");
	list = gpuq_get(view_job(&a, m, model_find_job(m, J1), T0 + 40), "avoids");
	cr_assert_eq(list->n, 1);
	cr_expect_str_eq(gpuq_get_str(list->items[0], "node", "?"), "n1");
	cr_expect_eq(gpuq_get_int(list->items[0], "until_time", 0), T0 + 30 + JOB_AVOID_US);
	list = gpuq_get(view_job(&a, m, model_find_job(m, J1), T0 + 30 + JOB_AVOID_US), "avoids");
	cr_expect_eq(list->n, 0, "forgotten");
	gpuq_arena_done(&a);
	model_free(m);
	disk_free(&d);
}

/* ---- start timeouts ---- */

static void leaves(struct model *m, uint32_t n, enum gpuq_cause cause, const char *rule)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .at_us = T0 + 50, .job = J1 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	enum event_type type;

	ev.evict.cause = cause;
	ev.evict.rule = rule;
	ev.evict.by = "";
	ev.evict.why = "not running 10m after it was placed: pod 0 on n0 (created)";
	ev.evict.grace_us = -1;
	cr_assert_eq(place(m, J1, 1, n % 2 ? "n1" : "n0", 0), 0);
	cr_assert_eq(model_apply(m, &ev, &err), 0, "%s", err.text);
	cr_assert_eq(pod_event(m, EV_POD_GONE, J1, n, 0, T0 + 60, 0, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 60, &type), 0);
	cr_assert_eq(type, EV_JOB_REQUEUED);
}

static void start_too_late(struct model *m, uint32_t n, const char *rule)
{
	leaves(m, n, GPUQ_CAUSE_INFRA, rule);
}

/* A Secret that only kubelets miss is an operator's business, however often the job tries. */
Test(avoid, tries_that_the_cluster_refuses_do_not_count)
{
	struct model *m = fresh(3, 1);
	const struct job *j;

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a], retry: {limit: 1}}", NULL));
	j = model_find_job(m, J1);
	for (uint32_t n = 0; n < 7; n++)
		leaves(m, n, GPUQ_CAUSE_REQUEUE, RULE_REFUSED);
	cr_expect_not(j->held_retries);
	cr_expect_eq(j->life->n_retries, 0);
	model_free(m);
}

Test(avoid, what_never_runs_is_held_with_the_reason)
{
	struct model *m = fresh(3, 1);
	struct event ev = { .type = EV_JOB_RELEASED, .at_us = T0 + 70, .job = J1 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct job *j;

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	j = model_find_job(m, J1);
	for (uint32_t n = 0; n < 3; n++)
		start_too_late(m, n, RULE_START_TIMEOUT);
	cr_expect_str_eq(kept_off(m, T0 + 70), "n0 n1");
	start_too_late(m, 3, "pod_lost"); /* something else between: it counts anew */
	for (uint32_t n = 4; n < 8; n++)
		start_too_late(m, n, RULE_START_TIMEOUT);
	cr_expect_not(j->held_retries);
	cr_expect_eq(m->queues[0]->allocated_milli, 0, "its devices are given back");
	start_too_late(m, 8, RULE_START_TIMEOUT);
	cr_expect(j->held_retries);
	cr_expect_str_eq(j->life->message,
			 "not running 10m after it was placed: pod 0 on n0 (created)");
	cr_expect_eq(j->life->n_retries, 0);
	cr_assert_eq(model_apply(m, &ev, &err), 0);
	cr_expect_not(j->held_retries);
	model_free(m);
}
