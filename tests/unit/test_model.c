/* The state half of the core: what events do, and that records bring all of it back. */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/model_int.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/state/view/view_node.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"
#include "gpuqd/site/quotas.h"
#include "tests/unit/model_rig.h"

/* ---- tests ---- */

Test(model, a_job_lives_and_becomes_history)
{
	struct model *m = fresh(1, 4);
	struct disk d = { 0 };
	enum event_type end;

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_PENDING);
	cr_expect_eq(model_find_queue(m, "default")->n_pending, 1);
	cr_assert_eq(place(m, J1, 1, "n0", 2), 0);
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_STARTING);
	cr_expect_eq(model_find_queue(m, "default")->allocated_milli, 1000);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, J1, 0, 0, T0 + 20, 0, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 1000000, 0, 0), 0);
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_RUNNING);
	disk_write(&d, m);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 4000000, 3, 0), 0);
	cr_expect_eq(model_find_queue(m, "default")->allocated_milli, 0);
	cr_expect_eq(model_find_job(m, J1)->life->gpu_us, 3000000);
	cr_assert_neq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 5000000, 0, 0), 0,
		      "the first end wins");
	cr_assert_eq(verdict(m, J1, T0 + 4000001, &end), 0);
	cr_expect_eq(end, EV_JOB_ENDED);
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_FAILED);
	cr_assert_eq(pod_event(m, EV_POD_GONE, J1, 0, 0, T0 + 5000000, 0, 0), 0);
	cr_expect_null(model_find_job(m, J1), "it has left memory");
	disk_write(&d, m);
	cr_expect(disk_has(&d, TABLE_HISTORY, 1, -1));
	cr_expect(!disk_has(&d, TABLE_JOB, 1, -1));
	cr_expect(!disk_has(&d, TABLE_POD, 1, -1));
	cr_expect_eq(m->usages->us[CHARGE_USED], 3000000);
	disk_free(&d);
	model_free(m);
}

Test(model, a_job_does_not_end_before_it_started)
{
	struct model *m = fresh(1, 4);
	enum event_type end;

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	cr_assert_eq(place(m, J1, 1, "n0", 2), 0);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, J1, 0, 0, T0 + 20, 0, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 5000, 0, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 6000, 0, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 4000, &end), 0);
	cr_expect_eq(model_find_job(m, J1)->life->start_us, T0 + 5000);
	cr_expect_eq(model_find_job(m, J1)->life->end_us, T0 + 5000);
	model_free(m);
}

Test(model, a_gang_fails_with_its_first_failing_pod)
{
	struct model *m = fresh(1, 4);
	enum event_type end;

	cr_assert_null(submit_text(m, "{gpus: 1, pods: 3, command: [a]}", NULL));
	cr_assert_eq(place(m, J1, 3, "n0", 0), 0);
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_STARTING, "not all run yet");
		cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, i, T0 + 100, 0, 0), 0);
	}
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_RUNNING);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 1, T0 + 200, 9, 0), 0);
	cr_expect_eq(model_find_job(m, J1)->life->outcome, GPUQ_JOB_FAILED);
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_COMPLETING);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 300, 143, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 2, T0 + 300, 143, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 301, &end), 0);
	cr_expect_eq(model_find_job(m, J1)->life->exit_code, 9);
	model_free(m);
}

static const struct {
	const char *spec;
	int exit_code;
	enum pod_fault fault;
	enum event_type first; /* what follows the first failure */
	enum gpuq_job_state finally; /* after every attempt failed alike */
	uint32_t attempts;
} retries[] = {
	{ "{command: [a]}", 1, POD_FAULT_NONE, EV_JOB_ENDED, GPUQ_JOB_FAILED, 1 },
	{ "{command: [a], retry: {limit: 2, on: [failure]}}", 1, POD_FAULT_NONE, EV_JOB_REQUEUED,
	  GPUQ_JOB_FAILED, 3 },
	{ "{command: [a], retry: {limit: 1, on: ['exit:75']}}", 75, POD_FAULT_NONE, EV_JOB_REQUEUED,
	  GPUQ_JOB_FAILED, 2 },
	{ "{command: [a], retry: {limit: 1, on: ['exit:75']}}", 74, POD_FAULT_NONE, EV_JOB_ENDED,
	  GPUQ_JOB_FAILED, 1 },
	{ "{command: [a]}", 137, POD_FAULT_OOM, EV_JOB_ENDED, GPUQ_JOB_OUT_OF_MEMORY, 1 },
	{ "{command: [a], retry: {limit: 1, on: [oom]}}", 137, POD_FAULT_OOM, EV_JOB_REQUEUED,
	  GPUQ_JOB_OUT_OF_MEMORY, 2 },
	{ "{command: [a], requeue: false}", -1, POD_FAULT_INFRA, EV_JOB_ENDED, GPUQ_JOB_NODE_FAIL,
	  1 },
};

Test(model, an_attempt_is_tried_again_when_its_rules_say_so)
{
	for (size_t i = 0; i < sizeof(retries) / sizeof(retries[0]); i++) {
		struct model *m = fresh(1, 1);
		enum event_type end = EV_JOB_REQUEUED;
		uint32_t n = 0;

		cr_assert_null(submit_text(m, retries[i].spec, NULL), "row %zu", i);
		while (end == EV_JOB_REQUEUED && n < 10) {
			cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
			cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, n, 0, T0 + 100, 0, 0), 0);
			cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, n, 0, T0 + 200,
					       retries[i].exit_code, retries[i].fault),
				     0);
			cr_assert_eq(verdict(m, J1, T0 + 300, &end), 0);
			if (n++ == 0)
				cr_expect_eq(end, retries[i].first, "row %zu", i);
		}
		cr_expect_eq(n, retries[i].attempts, "row %zu: %u attempts", i, n);
		cr_expect_eq(model_find_job(m, J1)->state, retries[i].finally, "row %zu", i);
		model_free(m);
	}
}

Test(model, infrastructure_failures_do_not_use_up_retries)
{
	struct model *m = fresh(1, 1);
	enum event_type end;

	cr_assert_null(submit_text(m, "{command: [a]}", NULL));
	for (uint32_t n = 0; n < 5; n++) {
		cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
		cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, n, 0, T0 + 200, -1, POD_FAULT_REJECTED),
			     0);
		cr_assert_eq(verdict(m, J1, T0 + 300, &end), 0);
		cr_expect_eq(end, EV_JOB_REQUEUED);
		cr_expect_eq(model_find_job(m, J1)->life->n_retries, 0);
		cr_expect_eq(model_find_job(m, J1)->attempt, n);
	}
	model_free(m);
}

Test(model, a_job_that_is_cancelled_while_it_fails_is_not_tried_again)
{
	struct model *m = fresh(1, 2);
	struct event ev = { .type = EV_JOB_CANCEL_ASKED, .at_us = T0 + 250, .job = J1 };
	enum event_type end;

	cr_assert_null(submit_text(m, "{command: [a], pods: 2}", NULL));
	cr_assert_eq(place(m, J1, 2, "n0", 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 200, -1, POD_FAULT_INFRA), 0);
	ev.cancel.who = "ann";
	ev.cancel.why = "";
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 1, T0 + 260, -1, POD_FAULT_INFRA), 0);
	cr_assert_eq(verdict(m, J1, T0 + 300, &end), 0);
	cr_expect_eq(end, EV_JOB_ENDED);
	model_free(m);
}

Test(model, a_node_that_gets_or_loses_devices_is_known_by_what_it_has)
{
	static const size_t counts[] = { 4, 1, 3 };
	struct model *m = fresh(1, 2);
	struct device_fact devices[4];

	for (size_t i = 0; i < 4; i++)
		devices[i] = (struct device_fact){ "GPU-x", "TEST", 1024, true };
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct node_fact f = { .name = "n0",
				       .cpu_milli = 64000,
				       .memory_bytes = INT64_C(1) << 38,
				       .max_pods = 110,
				       .devices = devices,
				       .n_devices = counts[i],
				       .ready = true,
				       .note = "" };
		struct event ev = { .type = EV_NODE_SEEN, .at_us = T0, .node = &f };

		cr_assert_eq(model_apply(m, &ev, NULL), 0);
		cr_expect_eq(m->nodes->n_devices, counts[i]);
	}
	model_free(m);
}

Test(model, an_array_splits_and_ends_with_its_worst_code)
{
	struct model *m = fresh(1, 4);
	struct disk d = { 0 };
	enum event_type end;

	cr_assert_null(submit_text(m, "{gpus: 1, array: 0-3, command: [a]}", NULL));
	cr_expect_eq(model_find_queue(m, "default")->n_pending, 4);
	for (int i = 0; i < 4; i++) {
		struct job_key k = { 1, i };

		cr_assert_eq(place(m, k, 1, "n0", (uint16_t)i), 0);
		cr_assert_eq(pod_event(m, EV_POD_STARTED, k, 0, 0, T0 + 100, 0, 0), 0);
		cr_assert_eq(pod_event(m, EV_POD_ENDED, k, 0, 0, T0 + 200, i == 2 ? 5 : 0, 0), 0);
		cr_assert_eq(verdict(m, k, T0 + 300, &end), 0);
		cr_assert_eq(pod_event(m, EV_POD_GONE, k, 0, 0, T0 + 400, 0, 0), 0);
	}
	cr_assert_neq(place(m, (struct job_key){ 1, 2 }, 1, "n0", 0), 0, "each element once");
	disk_write(&d, m);
	cr_expect_null(model_find_job(m, J1), "the whole array is history");
	cr_expect(disk_has(&d, TABLE_HISTORY, 1, -1) && disk_has(&d, TABLE_HISTORY, 1, 3));
	cr_expect_eq(model_find_queue(m, "default")->n_pending, 0);
	cr_expect_eq(model_find_queue(m, "default")->n_running, 0);
	disk_free(&d);
	model_free(m);
}

Test(model, an_element_gets_a_number_of_its_own_at_its_first_start)
{
	const struct job_key third = { 1, 2 }, first = { 1, 0 };
	struct model *m = fresh(1, 4), *again;
	struct disk d = { 0 };
	enum event_type end;
	unsigned n = 0;

	cr_assert_null(submit_text(m,
				   "{gpus: 1, array: 0-3, retry: {limit: 1, on: [failure]}, "
				   "command: [a]}",
				   NULL));
	cr_assert_eq(place(m, third, 1, "n0", 0), 0);
	cr_assert_eq(place(m, first, 1, "n0", 1), 0);
	cr_expect_eq(model_find_job(m, third)->life->element_id, 2u);
	cr_expect_eq(model_find_job(m, first)->life->element_id, 3u);
	cr_expect_eq(model_find_job(m, J1)->life->element_id, 0u, "the array has its own number");
	cr_expect_eq(model_find_element(m, 2), model_find_job(m, third));
	cr_expect_null(model_find_element(m, 1));
	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	cr_expect_not_null(model_find_job(m, (struct job_key){ 4, -1 }), "from the same counter");
	/* It keeps it at the next start. */
	cr_assert_eq(pod_event(m, EV_POD_STARTED, third, 0, 0, T0 + 100, 0, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, third, 0, 0, T0 + 200, 1, 0), 0);
	cr_assert_eq(verdict(m, third, T0 + 300, &end), 0);
	cr_expect_eq(end, EV_JOB_REQUEUED);
	cr_assert_eq(place(m, third, 1, "n0", 2), 0);
	cr_expect_eq(model_find_job(m, third)->life->element_id, 2u);
	disk_write(&d, m);
	again = disk_load(&d);
	cr_assert_not_null(again);
	cr_expect_eq(again->next_job_id, 5u);
	cr_expect_eq(model_find_element(again, 2), model_find_job(again, third));
	cr_expect_eq(model_find_element(again, 3), model_find_job(again, first));
	model_free(again);
	/* Its record is found by the number when it has ended. */
	cr_assert_eq(pod_event(m, EV_POD_STARTED, first, 0, 0, T0 + 100, 0, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, first, 0, 0, T0 + 200, 0, 0), 0);
	cr_assert_eq(verdict(m, first, T0 + 300, &end), 0);
	cr_assert_eq(pod_event(m, EV_POD_GONE, first, 0, 0, T0 + 400, 0, 0), 0);
	disk_write(&d, m);
	cr_expect_null(model_find_element(m, 3));
	for (size_t i = 0; i < d.n; i++)
		n += d.r[i].table == TABLE_ELEMENT && change_key_read_u32(d.r[i].key) == 3;
	cr_expect_eq(n, 1u);
	disk_free(&d);
	model_free(m);
}

static const struct {
	const char *dep;
	int exit_code;
	bool waits, never;
} deps[] = {
	{ "afterok:1", 0, false, false },  { "afterok:1", 1, true, true },
	{ "afterany:1", 1, false, false }, { "afternotok:1", 1, false, false },
	{ "afternotok:1", 0, true, true },
};

Test(model, dependencies_follow_the_end_of_the_other_job)
{
	for (size_t i = 0; i < sizeof(deps) / sizeof(deps[0]); i++) {
		struct model *m = fresh(1, 1);
		char text[128];
		enum event_type end;
		bool never;

		cr_assert_null(submit_text(m, "{command: [a]}", NULL));
		snprintf(text, sizeof(text), "{command: [a], depends: ['%s']}", deps[i].dep);
		cr_assert_null(submit_text(m, text, NULL));
		cr_expect(
			deps_are_awaited(model_find_job(m, (struct job_key){ 2, -1 }), T0, &never));
		cr_expect(!never);
		cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
		cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 100, 0, 0), 0);
		cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 200, deps[i].exit_code, 0),
			     0);
		cr_assert_eq(verdict(m, J1, T0 + 300, &end), 0);
		cr_expect_eq(deps_are_awaited(model_find_job(m, (struct job_key){ 2, -1 }),
					      T0 + 400, &never),
			     deps[i].waits, "row %zu", i);
		cr_expect_eq(never, deps[i].never, "row %zu", i);
		model_free(m);
	}
}

static int cancel(struct model *m, uint32_t id)
{
	struct event ev = { .type = EV_JOB_CANCEL_ASKED, .at_us = T0 + 100, .job = { id, -1 } };

	ev.cancel.who = "ann";
	return model_apply(m, &ev, NULL);
}

static bool is_held_up(struct model *m, uint32_t id)
{
	bool never;

	return deps_are_awaited(model_find_job(m, (struct job_key){ id, -1 }), T0 + 200, &never);
}

Test(model, singletons_follow_one_another)
{
	struct model *m = fresh(1, 1);

	cr_assert_null(submit_text(m, "{name: x, command: [a]}", NULL));
	cr_assert_null(submit_text(m, "{name: x, command: [a], depends: [singleton]}", NULL));
	cr_assert_null(submit_text(m, "{name: y, command: [a], depends: [singleton]}", NULL));
	cr_assert_null(submit_text(m, "{name: x, command: [a], depends: [singleton]}", NULL));
	cr_assert_null(submit_text(m, "{name: x, command: [a]}", NULL));
	cr_assert_null(submit_text(m, "{name: x, command: [a], depends: [singleton]}", NULL));
	cr_expect(is_held_up(m, 2));
	cr_expect(!is_held_up(m, 3), "nobody else is named so");
	cr_assert_eq(cancel(m, 4), 0);
	cr_expect(is_held_up(m, 2) && is_held_up(m, 6));
	cr_assert_eq(cancel(m, 1), 0);
	cr_expect(!is_held_up(m, 2));
	cr_expect(is_held_up(m, 6));
	cr_assert_eq(cancel(m, 2), 0);
	cr_expect(is_held_up(m, 6), "one that came between waits for nobody, but still counts");
	cr_assert_eq(cancel(m, 5), 0);
	cr_expect(!is_held_up(m, 6));
	model_free(m);
}

Test(model, who_has_left_is_not_the_next_of_a_name)
{
	struct model *m = fresh(1, 1);
	struct event named = { .type = EV_JOB_UPDATED, .at_us = T0 + 100, .job = J1 };
	struct gpuq_spec spec = { .name = (char *)"y", .requeue = true };

	for (int i = 0; i < 4; i++)
		cr_assert_null(submit_text(m,
					   i ? "{name: x, command: [a], depends: [singleton]}"
					     : "{name: x, command: [a]}",
					   NULL));
	cr_assert_eq(cancel(m, 2), 0);
	cr_expect(is_held_up(m, 3) && is_held_up(m, 4));
	named.updated.spec = &spec;
	named.updated.queue = "default";
	named.updated.qos = "normal";
	named.updated.request_bytes = model_find_job(m, J1)->request->bytes;
	named.updated.request_len = model_find_job(m, J1)->request->len;
	named.updated.time_limit_us = GPUQ_UNLIMITED;
	cr_assert_eq(model_apply(m, &named, NULL), 0);
	cr_expect(!is_held_up(m, 3), "the first is called otherwise now");
	cr_expect(is_held_up(m, 4));
	model_free(m);
}

/* The pending part of an array ends as one; a job that depends on an element is released. */
Test(model, elements_that_never_started_end_for_others_too)
{
	struct model *m = fresh(1, 1);
	struct disk d = { 0 };
	bool never;

	cr_assert_null(submit_text(m, "{command: [a], array: 0-9:3}", NULL));
	cr_assert_null(submit_text(m, "{command: [a], depends: ['afterany:1_6']}", NULL));
	cr_assert_null(submit_text(m, "{command: [a], depends: ['afterok:1_9']}", NULL));
	cr_assert_null(submit_text(m, "{command: [a], depends: ['afterany:1_5']}", NULL));
	disk_write(&d, m);
	model_free(m);
	m = disk_load(&d);
	cr_expect(is_held_up(m, 2) && is_held_up(m, 3));
	cr_assert_eq(cancel(m, 1), 0);
	cr_expect(!is_held_up(m, 2));
	cr_expect(deps_are_awaited(model_find_job(m, (struct job_key){ 3, -1 }), T0 + 200, &never));
	cr_expect(never);
	cr_expect(is_held_up(m, 4), "there is no such element");
	disk_free(&d);
	model_free(m);
}

Test(model, a_pod_name_is_read_back)
{
	static const struct pod_key keys[] = { { { 17, -1 }, 0, 0 },
					       { { 17, 3 }, 2, 11 },
					       { { 4294967295u, 0 }, 4000000, 4095 } };
	static const char *const others[] = { "gpuq-0123abcd-17-0",
					      "gpuq-ffffffff-17-0-0",
					      "gpuq-0123abcd-1-2-3-4-5",
					      "gpuq-0123abcd-x-0-0",
					      "other",
					      "gpuq-0123abcd-17-0-",
					      "" };
	struct model *m = fresh(0, 0);
	struct pod_key got;
	char name[64];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		model_pod_key_name(CLUSTER, keys[i], name);
		cr_assert(model_pod_name_parse(m, name, &got), "%s", name);
		cr_expect_eq(memcmp(&got, &keys[i], sizeof(got)), 0, "%s", name);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect(!model_pod_name_parse(m, others[i], &got), "%s", others[i]);
	model_free(m);
}

Test(model, a_site_with_jobs_in_a_queue_cannot_lose_it)
{
	struct model *m = fresh(1, 1);
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&a), *list = gpuq_list(&a), *q = gpuq_map(&a);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_SITE_APPLIED, .at_us = T0 };
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_put(&a, v, "version", gpuq_int(&a, 1));
	gpuq_put(&a, q, "name", gpuq_str(&a, "other"));
	gpuq_add(&a, list, q);
	gpuq_put(&a, v, "queues", list);
	gpuq_mp_write(&b, v);
	ev.site.bytes = b.data;
	ev.site.len = b.len;
	cr_assert_null(submit_text(m, "{command: [a]}", NULL));
	cr_expect_eq(model_apply(m, &ev, &err), GPUQ_ECONFLICT);
	cr_expect_not_null(model_find_queue(m, "default"));
	cr_expect_not_null(strstr(err.text, "default"));
	gpuq_buf_done(&b);
	gpuq_arena_done(&a);
	model_free(m);
}

/* Forget what a release without the rule of `default` did not store: the last two members. */
static void make_old(struct disk *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct record *r = &d->r[i];

		if (r->table != TABLE_META || r->key_len != 5)
			continue;
		cr_assert_eq(r->val[0], 0x9d, "13 members");
		r->val[0] = 0x9b;
		r->val_len -= 2;
	}
}

static int rule(struct model *m, int64_t at_us)
{
	struct event ev = { .type = EV_DEFAULT_RULED, .at_us = at_us };

	return model_apply(m, &ev, NULL);
}

/* Usage is kept by a queue that exists. */
static bool account_is_of_a_queue(void *arg, struct queue *q, const char *user, usage_q32 used)
{
	const struct model *m = arg;

	(void)used;
	cr_expect_eq(q, model_find_queue(m, "default"), "%s", user);
	return true;
}

Test(model, default_of_an_old_database_keeps_its_quota_for_a_while)
{
	struct model *m = fresh(1, 1);
	struct disk d = { NULL, 0 };

	rig_site(m,
		 "{version: 1, queues: [{name: default, quota: unlimited}, {name: a, quota: 4}]}");
	cr_expect_eq(m->default_from_us, 0);
	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 10, 0, 0), 0);
	disk_write(&d, m);
	model_free(m);
	make_old(&d);
	m = disk_load(&d);
	cr_assert_eq(m->default_from_us, -1);
	cr_assert_eq(rule(m, T0), 0);
	cr_expect_eq(m->default_from_us, T0 + QUOTAS_SPARE_US);
	cr_expect(!model_find_queue(m, "default")->site->quota.given);
	cr_expect(queue_is_free(m, model_find_queue(m, "default")));
	account_each(m, T0, account_is_of_a_queue, m);
	disk_write(&d, m);
	model_free(m);
	m = disk_load(&d); /* it was stopped meanwhile */
	cr_expect_eq(m->default_from_us, T0 + QUOTAS_SPARE_US);
	cr_expect(queue_is_free(m, model_find_queue(m, "default")));
	cr_assert_eq(rule(m, T0 + QUOTAS_SPARE_US), 0);
	cr_expect(!queue_is_free(m, model_find_queue(m, "default")));
	disk_write(&d, m);
	model_free(m);
	m = disk_load(&d);
	cr_expect(!queue_is_free(m, model_find_queue(m, "default")));
	model_free(m);
	disk_free(&d);
}

/* ---- any history of events survives a restart ---- */

static uint64_t rng_state;

static uint32_t rng(uint32_t n)
{
	rng_state = rng_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(rng_state >> 33) % n;
}

static int by_account(const void *a, const void *b)
{
	const struct account *x = *(const struct account *const *)a;
	const struct account *y = *(const struct account *const *)b;

	return strcmp((const char *)x->bytes, (const char *)y->bytes);
}

static void dump(const struct model *m, struct gpuq_buf *out)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct spent spent[8];
	const struct account *at[64];
	int n_accounts = 0;
	struct job_key key;

	for (key.id = 1; key.id < m->next_job_id; key.id++)
		for (key.index = -1; key.index < 8; key.index++) {
			const struct job *j = model_find_job(m, key);

			if (!j)
				continue;
			gpuq_json_write(out, view_job(&a, m, j, T0), 0);
			gpuq_buf_printf(out, " %d %d %" PRIu32 " %" PRId64 "\n", j->held_user,
					j->cancel_asked, j->life->n_retries, j->life->leave_us);
		}
	budget_spending(m, T0 + 5 * GPUQ_US_PER_S, spent);
	for (uint32_t i = 0; i < m->n_queues; i++)
		gpuq_json_write(out, view_queue(&a, m, m->queues[i], spent[i].used_ms, NULL), 0);
	for (const struct account *u = m->accounts; u; u = u->hh.next) {
		at[n_accounts++] = u;
		cr_assert_lt(n_accounts, 64);
	}
	qsort(at, n_accounts, sizeof(*at), by_account);
	for (int i = 0; i < n_accounts; i++)
		gpuq_buf_printf(out, " %s:%" PRIu64 " %" PRId64 " %" PRId64, at[i]->bytes,
				(uint64_t)at[i]->a.sum, at[i]->a.at_us, at[i]->a.rate_milli);
	for (int i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		if (model_find_node(m, name))
			gpuq_json_write(out, view_node(&a, m, model_find_node(m, name), 0), 0);
	}
	gpuq_json_write(out, view_status(&a, m, T0), 0);
	gpuq_buf_printf(out, " %s %" PRIu32 " %u", m->cluster_id, m->next_job_id, m->keys.slots.n);
	gpuq_arena_done(&a);
}

static bool device_free(const struct model *m, const char *node, unsigned device)
{
	const struct pod *p;

	DL_FOREACH2(model_find_node(m, node)->pods, p, node_next)
		for (uint32_t i = 0; model_pod_takes(p) && i < p->n_devices; i++)
			if (p->devices[i] == device)
				return false;
	return true;
}

static void random_event(struct model *m, int64_t at)
{
	static const char *const specs[] = {
		"{gpus: 1, command: [a]}",
		"{gpus: 1, pods: 2, command: [a], retry: {limit: 1, on: [failure]}}",
		"{gpus: 1, array: '0-4%2', command: [a]}",
		"{command: [a], depends: ['afterok:1'], hold: true}"
	};
	struct job_key key = { 1 + rng(m->next_job_id), (int32_t)rng(6) - 1 };
	struct job *j;
	struct event ev = { .at_us = at };
	char text[32];
	enum event_type t;

	if (rng(6) == 0) {
		snprintf(text, sizeof(text), "key-%u", rng(50));
		submit_text(m, specs[rng(m->next_job_id > 1 ? 4 : 3)],
			    model_find_key(m, "ann", text) ? NULL : text);
		return;
	}
	j = model_find_job(m, key);
	switch (rng(9)) {
	case 0:
	case 1: {
		const char *node = rng(2) ? "n0" : "n1";
		uint16_t device = (uint16_t)rng(3);

		if (device_free(m, node, device) && device_free(m, node, device + 1u))
			place(m, key, j ? model_job_pods(j) : 1, node, device);
		return;
	}
	case 2:
		ev.type = EV_JOB_CANCEL_ASKED;
		ev.job = key;
		ev.cancel.who = "ann";
		break;
	case 3:
		ev.type = rng(2) ? EV_JOB_HELD : EV_JOB_RELEASED;
		ev.job = key;
		ev.held.who = "ann";
		break;
	case 4:
		ev.type = EV_JOB_EVICT_ASKED;
		ev.job = key;
		ev.evict.cause = rng(2) ? GPUQ_CAUSE_LIMIT : GPUQ_CAUSE_RECLAIM;
		ev.evict.by = "job 9";
		ev.evict.rule = "reclaim-quota";
		break;
	case 5:
		if (j && model_job_is_live(j) && model_job_attempt_over(j))
			verdict(m, key, at, &t);
		return;
	default: {
		static const enum event_type pods[] = { EV_POD_CREATED, EV_POD_STARTED,
							EV_POD_ENDED, EV_POD_GONE };

		pod_event(m, pods[rng(4)], key, j ? j->attempt : 0, rng(2), at, rng(3) ? 0 : 1,
			  rng(5) ? POD_FAULT_NONE : POD_FAULT_INFRA);
		return;
	}
	}
	model_apply(m, &ev, NULL); /* what cannot happen is refused, and that is fine */
}

/* Counters that are kept while events come must be what the objects add up to. */
static void check_sums(const struct model *m)
{
	int64_t allocated = 0;
	uint32_t pending = 0, running = 0;

	for (const struct job *j = m->jobs; j; j = j->next) {
		const struct pod *p;

		if (model_job_is_live(j))
			running++;
		else if (!j->ended)
			pending += j->array ? (uint32_t)j->array->n_waiting : 1;
		DL_FOREACH2(j->pods, p, job_next)
			if (model_pod_takes(p))
				allocated += p->gpus_milli;
	}
	cr_assert_eq(m->queues[0]->allocated_milli, allocated);
	cr_assert_eq(m->queues[0]->n_pending, pending);
	cr_assert_eq(m->queues[0]->n_running, running);
}

#define COUNT(n, head, next_, ok)                                                                  \
	do {                                                                                       \
		const struct job *it_;                                                             \
		DL_FOREACH2(head, it_, next_) {                                                    \
			cr_assert(ok);                                                             \
			n++;                                                                       \
		}                                                                                  \
	} while (0)

/* Every job is in the lists of its user, queue, state and array once, and in no other. */
static void check_lists(const struct model *m)
{
	const uint32_t n = m->n_jobs;
	uint32_t by_user = 0, by_queue = 0, by_state = 0, kin = 0, elements = 0;

	for (uint32_t i = 0; i < m->n_queues; i++)
		COUNT(by_queue, m->queues[i]->jobs, queue_next, it_->queue == m->queues[i]);
	for (int s = 0; s < N_GPUQ_JOB_STATES; s++)
		COUNT(by_state, m->jobs_by_state[s], state_next, (int)it_->state == s);
	job_each(m, j) {
		bool first_of_user = true;

		for (const struct job *k = m->jobs; k != j; k = k->next)
			first_of_user &= strcmp(k->user, j->user) != 0;
		if (first_of_user)
			COUNT(by_user, index_of_user(m, j->user), user_next,
			      strcmp(it_->user, j->user) == 0);
		if (j->key.index >= 0)
			elements++;
		else
			COUNT(kin, index_elements(m, j->key.id), life->kin_next,
			      it_->key.id == j->key.id && it_->key.index >= 0);
	}
	cr_assert_eq(by_user, n);
	cr_assert_eq(by_queue, n);
	cr_assert_eq(by_state, n);
	cr_assert_leq(kin, elements, "an array may have left before its elements");
	cr_assert_null(index_of_user(m, "nobody"));
	cr_assert_null(index_elements(m, 4000000000u));
}

Test(model, any_history_survives_a_restart, .timeout = 300)
{
	const char *env = getenv("GPUQ_TEST_CASES");
	int n_cases = env ? atoi(env) : 300;

	for (int c = 0; c < n_cases; c++) {
		struct model *m = fresh(3, 4), *again;
		struct gpuq_buf x = GPUQ_BUF_INIT, y = GPUQ_BUF_INIT;
		struct disk d = { 0 };

		rng_state = (uint64_t)c * 7919 + 1;
		for (int i = 0; i < 80; i++) {
			random_event(m, T0 + 1000 * i);
			check_sums(m);
			check_lists(m);
			if (rng(4) == 0)
				disk_write(&d, m);
		}
		disk_write(&d, m);
		again = disk_load(&d);
		dump(m, &x);
		dump(again, &y);
		if (strcmp(gpuq_buf_str(&y), gpuq_buf_str(&x)) != 0)
			cr_assert_fail("seed %d\nbefore: %s\nafter:  %s", c, gpuq_buf_str(&x),
				       gpuq_buf_str(&y));
		check_sums(again);
		check_lists(again);
		gpuq_buf_done(&x);
		gpuq_buf_done(&y);
		disk_free(&d);
		model_free(m);
		model_free(again);
	}
}

/* All jobs of m are written anew: the records must be those of d. */
static void check_records(struct model *m, const struct disk *d)
{
	struct disk anew = { 0 };
	size_t n = 0;

	job_each_rw(m, j)
		model_job_dirty(m, j);
	disk_write(&anew, m);
	for (size_t i = 0; i < d->n; i++) {
		const struct record *x = &d->r[i];

		if (x->table != TABLE_JOB)
			continue;
		n++;
		for (size_t k = 0; k < anew.n; k++) {
			const struct record *y = &anew.r[k];

			if (y->table != x->table || y->key_len != x->key_len ||
			    memcmp(y->key, x->key, x->key_len) != 0)
				continue;
			cr_assert_eq(y->val_len, x->val_len, "record %zu", i);
			cr_assert_eq(memcmp(y->val, x->val, x->val_len), 0, "record %zu", i);
			n--;
		}
	}
	cr_expect_eq(n, 0, "each has come back");
	disk_free(&anew);
}

Test(model, jobs_that_are_alike_come_back_as_they_were)
{
	static const char *const texts[] = {
		"{command: [a], gpus: 1}",
		"{command: [a], gpus: 1}",
		"{command: [a], gpus: 1, name: other}",
		"{command: [a], gpus: 1, name: other}",
		"{command: [a], gpus: 1, name: others}",
		"{command: [a], gpus: 1, nice: 5, hold: true, retry: {limit: 3, on: ['exit:75']}}",
		"{command: [a], gpus: 1, nice: 5, hold: true, retry: {limit: 3, on: ['exit:75']}}",
		"{command: [a], gpus: 2, labels: {x: y}}",
		"{command: [a], gpus: 2, labels: {x: y}}",
		"{command: [a], gpus: 2, array: 0-3}",
		"{command: [a], gpus: 2, array: 0-3}",
		"{command: [a], gpus: 2, depends: [afterok:1]}",
		"{command: [a], gpus: 2, depends: [afterok:1]}",
		"{command: [a], gpus: 2}",
		"{command: [a], gpus: 2}",
	};
	struct model *m = fresh(1, 4), *again;
	struct disk d = { 0 };
	const struct job *first, *second;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_assert_null(submit_text(m, texts[i], NULL), "%s", texts[i]);
	place(m, (struct job_key){ 14, -1 }, 1, "n0", 0);
	place(m, (struct job_key){ 10, 2 }, 1, "n0", 1);
	disk_write(&d, m);
	again = disk_load(&d);
	check_sums(again);
	check_lists(again);
	check_records(again, &d);
	first = model_find_job(again, J1);
	second = model_find_job(again, (struct job_key){ 2, -1 });
	cr_expect_eq(first->wish, second->wish, "they want the same");
	cr_expect_eq(first->request->n_jobs, 7);
	cr_expect(job_wish_has_exit(model_find_job(again, (struct job_key){ 7, -1 })->wish, 75));
	cr_expect_not(job_wish_has_exit(first->wish, 75));
	model_free(m);
	model_free(again);
	disk_free(&d);
}
