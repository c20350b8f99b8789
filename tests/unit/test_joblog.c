/* The log of a job: complete, in order, bounded, and deleted with the job's record. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/view/joblog.h"
#include "gpuqd/state/model_int.h"
#include "gpuqd/state/record/history_index.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/wire/mp.h"
#include "tests/unit/model_rig.h"

static const struct gpuq_mp_limits lim = { 1 << 20, 16, 1 << 16 };

static const struct record *entry(const struct disk *d, struct job_key job, uint32_t n)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	const size_t len = joblog_key(key, job, n);

	for (size_t i = 0; i < d->n; i++)
		if (d->r[i].table == TABLE_LOG && d->r[i].key_len == len &&
		    memcmp(d->r[i].key, key, len) == 0)
			return &d->r[i];
	return NULL;
}

/* "job.held job.placed ...", what is there of the first n. */
static const char *words(const struct disk *d, struct job_key job, uint32_t n)
{
	static struct gpuq_buf out;

	gpuq_buf_clear(&out);
	for (uint32_t i = 0; i < n; i++) {
		const struct record *r = entry(d, job, i);
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_val *v = NULL;

		if (r)
			cr_assert_eq(gpuq_mp_read(&a, &lim, r->val, r->val_len, &v, NULL), 0);
		if (v)
			gpuq_buf_printf(&out, "%s%s", out.len ? " " : "",
					gpuq_get_str(v, "event", "?"));
		gpuq_arena_done(&a);
	}
	return gpuq_buf_str(&out);
}

static int act(struct model *m, enum event_type t, struct job_key job)
{
	struct event ev = { .type = t, .at_us = T0, .job = job };
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (t == EV_JOB_HELD || t == EV_JOB_RELEASED)
		ev.held.who = "ann";
	if (t == EV_JOB_EVICT_ASKED) {
		ev.evict.cause = GPUQ_CAUSE_RECLAIM;
		ev.evict.by = "7";
		ev.evict.rule = "under_quota";
		ev.evict.grace_us = 30000000;
	}
	return model_apply(m, &ev, &err);
}

Test(joblog, a_life_from_hold_to_end)
{
	struct model *m = fresh(1, 4);
	struct disk d = { 0 };
	enum event_type end;

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	cr_assert_eq(act(m, EV_JOB_HELD, J1), 0);
	cr_assert_eq(act(m, EV_JOB_RELEASED, J1), 0);
	cr_assert_eq(place(m, J1, 1, "n0", 2), 0);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, J1, 0, 0, T0 + 20, 0, 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 30, 0, 0), 0);
	cr_assert_neq(pod_event(m, EV_POD_STARTED, J1, 0, 0, T0 + 40, 0, 0), 0, "already running");
	cr_assert_eq(act(m, EV_JOB_EVICT_ASKED, J1), 0);
	/* The numbers go on after a restart. */
	disk_write(&d, m);
	model_free(m);
	m = disk_load(&d);
	cr_assert_neq(act(m, EV_JOB_EVICT_ASKED, J1), 0, "it was asked already");
	cr_assert_eq(pod_event(m, EV_POD_ENDED, J1, 0, 0, T0 + 50, 3, 0), 0);
	cr_assert_eq(verdict(m, J1, T0 + 60, &end), 0);
	disk_write(&d, m);
	cr_expect_str_eq(words(&d, J1, 100),
			 "job.held job.released job.placed pod.created pod.started job.started "
			 "job.evict_asked pod.ended job.requeued");
	cr_assert_eq(pod_event(m, EV_POD_GONE, J1, 0, 0, T0 + 70, 0, 0), 0);
	cr_assert_eq(act(m, EV_JOB_CANCEL_ASKED, J1), 0);
	cr_assert_null(model_find_job(m, J1), "it has left memory");
	disk_write(&d, m);
	cr_expect_str_eq(words(&d, J1, 11),
			 "job.held job.released job.placed pod.created pod.started job.started "
			 "job.evict_asked pod.ended job.requeued job.cancel_asked job.ended");
	cr_expect_null(entry(&d, J1, 11));
	disk_free(&d);
	model_free(m);
}

/* The preemptor, the rule, and the cost. */
Test(joblog, an_eviction_has_its_numbers)
{
	struct model *m = fresh(1, 4);
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct disk d = { 0 };
	struct gpuq_val *v = NULL;
	const struct record *r;

	cr_assert_null(submit_text(m, "{gpus: 1, pods: 2, command: [a]}", NULL));
	cr_assert_eq(place(m, J1, 2, "n0", 0), 0);
	for (uint32_t i = 0; i < 2; i++)
		cr_assert_eq(pod_event(m, EV_POD_STARTED, J1, 0, i, T0 - 90000000, 0, 0), 0);
	cr_assert_eq(act(m, EV_JOB_EVICT_ASKED, J1), 0);
	disk_write(&d, m);
	r = entry(&d, J1, model_find_job(m, J1)->n_log - 1);
	cr_assert_not_null(r);
	cr_assert_eq(gpuq_mp_read(&a, &lim, r->val, r->val_len, &v, NULL), 0);
	cr_expect_str_eq(gpuq_get_str(v, "event", ""), "job.evict_asked");
	cr_expect_str_eq(gpuq_get_str(v, "cause", ""), "reclaim");
	cr_expect_str_eq(gpuq_get_str(v, "rule", ""), "under_quota");
	cr_expect_str_eq(gpuq_get_str(v, "by", ""), "7");
	cr_expect_eq(gpuq_get_int(v, "grace_s", 0), 30);
	cr_expect_eq(gpuq_get_int(v, "gpus", 0), 2);
	cr_expect_eq(gpuq_get_int(v, "ran_s", 0), 90);
	cr_expect_eq(gpuq_get_int(v, "attempt", -1), 0);
	gpuq_arena_done(&a);
	disk_free(&d);
	model_free(m);
}

Test(joblog, the_devices_of_a_pod_are_told)
{
	static const int at[] = { 1, 3 };
	const struct event ev = {
		.type = EV_POD_DEVICES, .at_us = T0, .pod = { J1, 2, 1 }, .devices = { at, 2 }
	};
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = joblog_event_view(&a, &ev), *list = gpuq_get(v, "devices");

	cr_expect_str_eq(gpuq_get_str(v, "event", ""), "pod.devices");
	cr_expect_str_eq(gpuq_get_str(v, "job", ""), "1");
	cr_expect_eq(gpuq_get_int(v, "attempt", -1), 2);
	cr_expect_eq(gpuq_get_int(v, "pod", -1), 1);
	cr_assert(list && list->type == GPUQ_LIST && list->n == 2);
	cr_expect_eq(list->items[0]->i, 1);
	cr_expect_eq(list->items[1]->i, 3);
	gpuq_arena_done(&a);
}

Test(joblog, an_element_of_an_array_has_its_own)
{
	struct model *m = fresh(1, 4);
	struct disk d = { 0 };
	const struct job_key e1 = { 1, 1 };

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a], array: 0-3}", NULL));
	cr_assert_eq(act(m, EV_JOB_HELD, J1), 0);
	cr_assert_eq(act(m, EV_JOB_RELEASED, J1), 0);
	cr_assert_eq(place(m, e1, 1, "n0", 2), 0);
	cr_assert_eq(act(m, EV_JOB_CANCEL_ASKED, (struct job_key){ 1, 2 }), 0);
	disk_write(&d, m);
	/* The array's log has the cause of the element's separation. */
	cr_expect_str_eq(words(&d, J1, 10), "job.held job.released job.cancel_asked");
	cr_expect_str_eq(words(&d, e1, 10), "job.placed");
	cr_expect_str_eq(words(&d, (struct job_key){ 1, 2 }, 10), "job.ended");
	disk_free(&d);
	model_free(m);
}

/* The first and the last stay, and nothing is left when the job is forgotten. */
Test(joblog, a_long_life_is_cut_in_the_middle)
{
	struct model *m = fresh(1, 4);
	struct disk d = { 0 };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&a);
	const uint32_t n = 1000;
	uint32_t left = 0;

	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	for (uint32_t i = 0; i < n; i++)
		cr_assert_eq(act(m, i % 2 ? EV_JOB_RELEASED : EV_JOB_HELD, J1), 0);
	disk_write(&d, m);
	for (uint32_t i = 0; i < n; i++)
		left += entry(&d, J1, i) != NULL;
	cr_expect_eq(left, (uint32_t)JOBLOG_MAX);
	cr_expect_not_null(entry(&d, J1, 0));
	cr_expect_not_null(entry(&d, J1, JOBLOG_FIRST - 1));
	cr_expect_null(entry(&d, J1, JOBLOG_FIRST));
	cr_expect_not_null(entry(&d, J1, n - (JOBLOG_MAX - JOBLOG_FIRST)));
	cr_expect_not_null(entry(&d, J1, n - 1));
	gpuq_put(&a, v, "id", gpuq_int(&a, 1));
	gpuq_put(&a, v, "n_log", gpuq_int(&a, n));
	history_forget(&m->direct, v);
	disk_write(&d, m);
	for (uint32_t i = 0; i < n; i++)
		cr_expect_null(entry(&d, J1, i), "%u", i);
	gpuq_arena_done(&a);
	disk_free(&d);
	model_free(m);
}
