/* Preemption between jobs, as the model and its records have it. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/view/view.h"
#include "gpuqd/state/record/model_apply.h"
#include "tests/unit/model_rig.h"

static const struct job_key J2 = { 2, -1 };

static int nominate(struct model *m, struct job_key key, const char *node, uint32_t n_pods,
		    const struct job_key *victims, uint32_t n_victims)
{
	struct placed_pod pods[8];
	uint16_t devices[8];
	struct event ev = { .type = EV_JOB_NOMINATED, .at_us = T0 + 50, .job = key };

	for (uint32_t i = 0; i < n_pods; i++) {
		devices[i] = (uint16_t)i;
		pods[i] = (struct placed_pod){ 0, i, node, &devices[i], 1, 1000, 0, NULL };
	}
	ev.nominated.flavor = "default";
	ev.nominated.pods = pods;
	ev.nominated.n_pods = n_pods;
	ev.nominated.victims = victims;
	ev.nominated.n_victims = n_victims;
	ev.nominated.rule = n_victims ? "G" : ""; /* as earlier builds called it */
	ev.nominated.why = n_victims ? "needs 2: a 0 -> 2 (share 2, quota 2)" : "";
	return model_apply(m, &ev, NULL);
}

static int evict(struct model *m, struct job_key key, enum gpuq_cause cause)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .at_us = T0 + 50, .job = key };

	ev.evict.cause = cause;
	ev.evict.by = "2";
	ev.evict.by_queue = "default";
	ev.evict.rule = "guarantee";
	ev.evict.why = "needs 2: a 0 -> 2 (share 2, quota 2)";
	ev.evict.grace_us = 5000000;
	return model_apply(m, &ev, NULL);
}

static int shrink(struct model *m, struct job_key key, uint32_t index)
{
	struct event ev = { .type = EV_JOB_SHRINK_ASKED, .at_us = T0 + 60, .job = key };

	ev.evict.cause = GPUQ_CAUSE_RECLAIM;
	ev.evict.by = "2";
	ev.evict.rule = "";
	ev.evict.pods = &index;
	ev.evict.n_pods = 1;
	return model_apply(m, &ev, NULL);
}

static int grow(struct model *m, struct job_key key, uint16_t device)
{
	const struct placed_pod pod = { 0, 0, "n0", &device, 1, 1000, 0, NULL };
	struct event ev = { .type = EV_JOB_GROWN, .at_us = T0 + 70, .job = key };

	ev.grown.pods = &pod;
	ev.grown.n_pods = 1;
	return model_apply(m, &ev, NULL);
}

static int simple(struct model *m, enum event_type t, struct job_key key)
{
	struct event ev = { .type = t, .at_us = T0 + 80, .job = key };

	ev.held.who = "ann"; /* first member alike in a hold and a cancel */
	if (t == EV_JOB_CANCEL_ASKED)
		ev.cancel.who = "ann";
	return model_apply(m, &ev, NULL);
}

/* Job 1 runs on n0's first n devices, job 2 waits. */
static struct model *two_jobs(const char *first, const char *second, uint32_t n)
{
	struct model *m = fresh(1, 8);

	cr_assert_null(submit_text(m, first, NULL));
	cr_assert_null(submit_text(m, second, NULL));
	cr_assert_eq(place(m, J1, n, "n0", 0), 0);
	for (uint32_t i = 0; i < n; i++)
		cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, i, T0 + 20, 0, 0), 0);
	return m;
}

static void claim(struct model *m)
{
	cr_assert_eq(nominate(m, J2, "n0", 2, &J1, 1), 0);
	cr_assert_eq(evict(m, J1, GPUQ_CAUSE_RECLAIM), 0);
}

#define ONE "{gpus: 1, command: [a]}"
#define TWO "{gpus: 1, pods: 2, command: [a]}"
#define ELASTIC "{gpus: 1, pods: {min: 2, max: 4}, command: [a]}"

Test(claim, it_is_stored_with_those_who_leave_for_it)
{
	struct model *m = two_jobs(TWO, TWO, 2), *again;
	struct disk d = { 0 };
	const struct job *j;

	disk_write(&d, m);
	claim(m);
	disk_write(&d, m);
	again = disk_load(&d);
	j = model_find_job(again, J2);
	cr_assert_not_null(j->life->promise);
	cr_expect_eq(j->life->promise->n_pods, 2);
	cr_expect_str_eq(j->life->promise->pods[1].node, "n0");
	cr_expect_eq(j->life->promise->pods[1].devices[0], 1);
	cr_expect_eq(j->life->promise->pods[1].gpus_milli, 1000);
	cr_expect_str_eq(j->life->promise->flavor, "default");
	cr_expect_eq(j->life->promise->victims[0].id, 1);
	cr_expect_eq(job_victims_left(again, j), 1);
	cr_expect_str_eq(j->life->promise->rule, "reclaim-quota");
	cr_expect_str_eq(j->life->promise->why, "needs 2: a 0 -> 2 (share 2, quota 2)");
	cr_expect_eq(model_find_queue(again, "default")->held_milli, 2000);
	cr_expect_eq(again->n_promises, 1);
	j = model_find_job(again, J1);
	cr_expect_eq(j->life->leave_us, T0 + 50);
	cr_expect_eq(j->life->leave_grace_us, 5000000);
	cr_expect_str_eq(j->life->evictions[0].by_queue, "default");
	cr_expect_str_eq(j->life->evictions[0].by, "2");
	cr_expect_str_eq(j->life->evictions[0].why, "needs 2: a 0 -> 2 (share 2, quota 2)");
	cr_expect(!model_is_dirty(again), "what was loaded is what is stored");
	model_free(again);
	model_free(m);
	disk_free(&d);
}

Test(claim, the_victim_is_requeued_and_shown_why)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct model *m = two_jobs(TWO, TWO, 2);
	struct gpuq_val *v, *e;
	enum event_type end;

	claim(m);
	v = view_job(&a, m, model_find_job(m, J2), T0 + 55);
	cr_expect_str_eq(gpuq_get_str(v, "reason", ""), "Victims");
	cr_expect_str_eq(gpuq_path(v, "promise", "victims", NULL)->items[0]->s, "1");
	cr_expect_eq(gpuq_path(v, "promise", "victims_left", NULL)->i, 1);
	cr_expect_str_eq(gpuq_path(v, "promise", "rule", NULL)->s, "G");
	cr_expect_not_null(strstr(gpuq_path(v, "promise", "why", NULL)->s, "0 -> 2"));
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_COMPLETING);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 90, 143, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 1, T0 + 90, 0, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 91, &end), 0);
	cr_expect_eq(end, EV_JOB_REQUEUED);
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_PENDING);
	cr_expect_eq(model_find_job(m, J1)->submit_us, T0 + 1);
	cr_expect_eq(model_find_job(m, J1)->life->n_retries, 0);
	cr_expect_eq(job_victims_left(m, model_find_job(m, J2)), 0);
	v = view_job(&a, m, model_find_job(m, J1), T0 + 95);
	e = gpuq_get(v, "evictions")->items[0];
	cr_expect_str_eq(gpuq_get_str(e, "cause", ""), "reclaim");
	cr_expect_str_eq(gpuq_get_str(e, "rule", ""), "guarantee");
	cr_expect_str_eq(gpuq_get_str(e, "by", ""), "2");
	cr_expect_str_eq(gpuq_get_str(e, "by_queue", ""), "default");
	cr_expect_not_null(strstr(gpuq_get_str(e, "why", ""), "quota 2"));
	cr_expect_eq(place(m, J2, 2, "n0", 0), 0);
	cr_expect_null(model_find_job(m, J2)->life->promise, "it has what it was nominated");
	cr_expect_eq(model_find_queue(m, "default")->held_milli, 0);
	model_free(m);
	gpuq_arena_done(&a);
}

Test(claim, a_victim_that_may_not_be_requeued_ends_preempted)
{
	struct model *m = two_jobs("{gpus: 1, requeue: false, command: [a]}", ONE, 1);
	enum event_type end;

	cr_assert_eq(evict(m, J1, GPUQ_CAUSE_PREEMPT), 0);
	cr_assert_eq(evict(m, J1, GPUQ_CAUSE_PREEMPT), GPUQ_EINVAL, "it leaves already");
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 90, 143, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 91, &end), 0);
	cr_expect_eq(end, EV_JOB_ENDED);
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_PREEMPTED);
	model_free(m);
}

Test(claim, a_victim_that_is_cancelled_meanwhile_does_not_come_back)
{
	struct model *m = two_jobs(TWO, TWO, 2);
	enum event_type end;

	claim(m);
	cr_assert_eq(simple(m, EV_JOB_CANCEL_ASKED, J1), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 90, 143, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 1, T0 + 90, 143, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 91, &end), 0);
	cr_expect_eq(end, EV_JOB_ENDED);
	cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_CANCELLED);
	model_free(m);
}

static int ended_untold(struct model *m, uint32_t index, int64_t end_us, int exit_code)
{
	struct event ev = { .type = EV_POD_ENDED, .at_us = T0 + 90, .pod = { J1, 0, index } };

	ev.pod_ended.end_us = end_us;
	ev.pod_ended.exit_code = exit_code;
	ev.pod_ended.untold = true;
	ev.pod_ended.message = "";
	return model_apply(m, &ev, NULL);
}

Test(claim, a_victim_that_was_done_before_it_was_told_is_done)
{
	static const struct {
		int exit_code; /* of its second pod */
		bool untold;
		int64_t end_us; /* it was told at 50 */
		enum event_type end;
	} rows[] = {
		{ 0, true, T0 + 40, EV_JOB_ENDED },
		{ 0, true, T0 + 60, EV_JOB_REQUEUED },
		{ 0, false, T0 + 90, EV_JOB_REQUEUED },
		{ 1, true, T0 + 40, EV_JOB_REQUEUED },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model *m = two_jobs(TWO, TWO, 2);
		enum event_type end;

		claim(m);
		cr_assert_eq(ended_untold(m, 0, T0 + 40, 0), 0);
		if (rows[i].untold)
			cr_assert_eq(ended_untold(m, 1, rows[i].end_us, rows[i].exit_code), 0);
		else
			cr_assert_eq(
				pod_event(m, EV_POD_ENDED, J1, 0, 1, T0 + 90, rows[i].exit_code, 0),
				0);
		cr_assert_eq(verdict(m, J1, T0 + 91, &end), 0);
		cr_expect_eq(end, rows[i].end, "row %zu", i);
		if (end == EV_JOB_ENDED) {
			cr_expect_eq(model_find_job(m, J1)->state, GPUQ_JOB_COMPLETED);
			cr_expect_eq(model_find_job(m, J1)->life->exit_code, 0);
		}
		model_free(m);
	}
}

Test(claim, a_promise_ends_with_what_makes_it_void)
{
	static const enum event_type ends[] = { EV_JOB_RENOUNCED, EV_JOB_HELD,
						EV_JOB_CANCEL_ASKED };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct model *m = two_jobs(TWO, TWO, 2);
		struct disk d = { 0 };
		const struct job *j;

		disk_write(&d, m);
		claim(m);
		disk_write(&d, m);
		cr_assert_eq(simple(m, ends[i], J2), 0);
		j = model_find_job(m, J2);
		cr_expect(!j || !j->life->promise, "row %zu", i);
		cr_expect_eq(model_find_queue(m, "default")->held_milli, 0, "row %zu", i);
		cr_expect_eq(m->n_promises, 0);
		disk_write(&d, m);
		model_free(m);
		m = disk_load(&d);
		cr_expect_eq(m->n_promises, 0, "row %zu: stored", i);
		cr_expect_neq(simple(m, EV_JOB_RENOUNCED, J2), 0, "there is none");
		model_free(m);
		disk_free(&d);
	}
}

Test(claim, what_is_moved_keeps_its_new_places_while_it_leaves_the_old)
{
	struct model *m = fresh(2, 8);
	struct disk d = { 0 };
	enum event_type end;

	cr_assert_null(submit_text(m, ONE, NULL));
	cr_assert_eq(place(m, J1, 1, "n1", 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 20, 0, 0), 0);
	cr_expect_eq(nominate(m, J1, "n0", 1, NULL, 0), GPUQ_EINVAL, "it runs");
	cr_assert_eq(evict(m, J1, GPUQ_CAUSE_CONSOLIDATE), 0);
	cr_assert_eq(nominate(m, J1, "n0", 1, NULL, 0), 0);
	disk_write(&d, m);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 90, 143, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 91, &end), 0);
	cr_expect_eq(end, EV_JOB_REQUEUED);
	cr_assert_not_null(model_find_job(m, J1)->life->promise);
	disk_write(&d, m);
	model_free(m);
	m = disk_load(&d);
	cr_assert_not_null(model_find_job(m, J1)->life->promise);
	cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
	cr_expect_null(model_find_job(m, J1)->life->promise);
	cr_expect_eq(model_find_job(m, J1)->attempt, 1);
	/* When the node is lost instead, it starts wherever there is room. */
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 1, 0, T0 + 120, 0, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 1, 0, T0 + 130, -1, POD_FAULT_INFRA), 0);
	cr_assert_eq(verdict(m, J1, T0 + 131, &end), 0);
	cr_expect_eq(model_find_job(m, J1)->life->avoids->n, 1);
	model_free(m);
	disk_free(&d);
}

Test(claim, an_element_is_split_off_by_its_nomination)
{
	static const struct job_key element = { 1, 3 };
	struct model *m = fresh(1, 8);

	cr_assert_null(submit_text(m, "{gpus: 1, array: 0-9, command: [a]}", NULL));
	cr_expect_neq(nominate(m, element, "n7", 1, NULL, 0), 0, "no such node");
	cr_expect_null(model_find_job(m, element), "what is refused changes nothing");
	cr_expect_eq(model_find_job(m, J1)->array->n_waiting, 10);
	cr_expect_neq(nominate(m, J1, "n0", 1, NULL, 0), 0, "an array as a whole does not start");
	cr_assert_eq(nominate(m, element, "n0", 1, NULL, 0), 0);
	cr_assert_not_null(model_find_job(m, element)->life->promise);
	cr_expect_eq(model_find_job(m, J1)->array->n_waiting, 9);
	cr_expect_eq(model_find_queue(m, "default")->n_pending, 10);
	cr_assert_eq(place(m, element, 1, "n0", 0), 0);
	model_free(m);
}

Test(claim, an_elastic_job_shrinks_and_grows_within_its_attempt)
{
	struct model *m = two_jobs(ELASTIC, ONE, 2), *again;
	struct disk d = { 0 };
	const struct job *j = model_find_job(m, J1);
	enum event_type end;

	cr_assert_eq(grow(m, J1, 4), 0);
	cr_expect_eq(model_find_pod(m, (struct pod_key){ J1, 0, 2 })->group_index, 2);
	cr_assert_eq(grow(m, J1, 5), 0);
	cr_expect_neq(grow(m, J1, 6), 0, "as many as it may have");
	cr_expect_eq(j->state, GPUQ_JOB_RUNNING, "it runs meanwhile");
	cr_expect_neq(shrink(m, J1, 7), 0, "no such pod");
	cr_assert_eq(shrink(m, J1, 3), 0);
	cr_expect_neq(shrink(m, J1, 3), 0, "it leaves already");
	cr_expect_eq(j->life->shrunk_us, T0 + 60);
	disk_write(&d, m);
	again = disk_load(&d);
	cr_expect(model_find_pod(again, (struct pod_key){ J1, 0, 3 })->dropped);
	cr_expect(!model_find_pod(again, (struct pod_key){ J1, 0, 2 })->dropped);
	cr_expect_eq(model_find_job(again, J1)->life->n_indexes, 4);
	cr_expect_eq(model_find_job(again, J1)->life->shrunk_us, T0 + 60);
	model_free(again);
	/* Its end is no failure, and its index is not used again. */
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 3, T0 + 90, 143, 0), 0);
	cr_expect_eq(j->state, GPUQ_JOB_RUNNING);
	cr_expect_eq(j->life->outcome, GPUQ_JOB_PENDING);
	cr_assert_eq(pod_event(m, EV_POD_GONE, J1, 0, 3, T0 + 91, 0, 0), 0);
	cr_expect_null(model_find_pod(m, (struct pod_key){ J1, 0, 3 }));
	cr_assert_eq(grow(m, J1, 6), 0);
	cr_assert_not_null(model_find_pod(m, (struct pod_key){ J1, 0, 4 }));
	cr_expect_eq(model_find_pod(m, (struct pod_key){ J1, 0, 4 })->group_index, 3);
	for (uint32_t i = 0; i < 5; i++)
		if (i != 3)
			cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, i, T0 + 99, 0, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 100, &end), 0);
	cr_expect_eq(j->state, GPUQ_JOB_COMPLETED);
	cr_expect_eq(model_find_queue(m, "default")->allocated_milli, 0);
	model_free(m);
	disk_free(&d);
}

Test(claim, an_elastic_job_outlives_a_lost_pod_and_is_repaired)
{
	struct model *m = two_jobs(ELASTIC, ONE, 2);
	const struct job *j = model_find_job(m, J1);
	enum event_type end;

	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 90, -1, POD_FAULT_INFRA), 0);
	cr_expect_eq(j->state, GPUQ_JOB_RUNNING);
	cr_expect_eq(j->life->short_us, T0 + 90, "fewer than its minimum");
	cr_assert_eq(grow(m, J1, 5), 0);
	cr_expect_eq(j->life->short_us, 0);
	/* A failure of its own is one as before. */
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 2, T0 + 95, 7, POD_FAULT_NONE), 0);
	cr_expect_eq(j->life->outcome, GPUQ_JOB_FAILED);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 1, T0 + 96, 143, POD_FAULT_NONE), 0);
	cr_assert_eq(verdict(m, J1, T0 + 97, &end), 0);
	cr_expect_eq(j->life->exit_code, 7);
	model_free(m);
}

Test(claim, the_last_pod_that_is_lost_is_the_end_of_the_attempt)
{
	struct model *m = two_jobs(ELASTIC, ONE, 2);
	enum event_type end;

	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 90, -1, POD_FAULT_INFRA), 0);
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 1, T0 + 91, -1, POD_FAULT_INFRA), 0);
	cr_assert_eq(verdict(m, J1, T0 + 92, &end), 0);
	cr_expect_eq(end, EV_JOB_REQUEUED);
	cr_assert_eq(place(m, J1, 2, "n0", 0), 0);
	cr_expect_eq(model_find_job(m, J1)->life->short_us, 0);
	cr_expect_eq(model_find_job(m, J1)->life->n_indexes, 2);
	model_free(m);
}

Test(claim, what_lies_apart_survives)
{
	struct event ev = { .type = EV_JOB_FRAGMENTED, .job = J1, .at_us = T0 + 20 };
	struct model *m = fresh(1, 2), *again;
	struct disk d = { 0 };

	submit_text(m, "{command: [true], gpus: 2}", NULL);
	ev.fragmented.flavor = "default";
	ev.fragmented.milli = 2000;
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
	disk_write(&d, m);
	again = disk_load(&d);
	cr_assert_not_null(model_find_job(again, J1)->life->apart);
	cr_expect_str_eq(model_find_job(again, J1)->life->apart->flavor, "default");
	cr_expect_eq(model_find_job(again, J1)->life->apart->milli, 2000);
	cr_expect_eq(model_find_job(again, J1)->life->apart->since_us, T0 + 20);
	cr_expect_eq(again->n_apart, 1);
	model_free(again);
	model_free(m);
	disk_free(&d);
}
