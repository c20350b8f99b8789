#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/state/model.h"
#include "gpuqd/state/record/record.h"
#include "gpuqd/state/record/request.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

#define NOW INT64_C(1795274430500000)
#define TOKEN "00112233445566778899aabbccddeeff"

static struct gpuq_arena arena = GPUQ_ARENA_INIT(0);
static struct model *m;
static struct gpuq_spec spec;
static struct gpuq_buf bytes, request;

static void apply(struct event *ev, int want)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!ev->at_us)
		ev->at_us = NOW;
	cr_assert_eq(model_apply(m, ev, &err), want, "%s: %s", event_words[ev->type], err.text);
}

static struct event submitted(uint32_t id, int32_t index)
{
	struct event ev = { .type = EV_JOB_SUBMITTED, .at_us = NOW - 1000, .job = { id, index } };

	ev.submitted.spec = &spec;
	ev.submitted.spec_bytes = bytes.data;
	ev.submitted.spec_len = bytes.len;
	ev.submitted.request_bytes = request.data;
	ev.submitted.request_len = request.len;
	ev.submitted.user = "ann";
	ev.submitted.queue = "default";
	ev.submitted.qos = "normal";
	ev.submitted.time_limit_us = GPUQ_UNLIMITED;
	return ev;
}

static void init(void)
{
	static const struct device_fact devices[2] = { { "", "", 0, true }, { "", "", 0, true } };
	static const struct node_fact n1 = { .name = "n1",
					     .cpu_milli = 8000,
					     .memory_bytes = INT64_C(1) << 34,
					     .max_pods = 100,
					     .devices = devices,
					     .n_devices = 2,
					     .ready = true,
					     .note = "" };
	struct gpuq_reader r = { .arena = &arena, .lenient = true };
	struct gpuq_val *v = gpuq_map(&arena), *command = gpuq_list(&arena);
	struct event ev = { .type = EV_NODE_SEEN, .node = &n1 };

	m = model_new("0123abcd");
	gpuq_add(&arena, command, gpuq_str(&arena, "a"));
	gpuq_put(&arena, v, "name", gpuq_str(&arena, "j"));
	gpuq_put(&arena, v, "command", command);
	gpuq_put(&arena, v, "gpus", gpuq_int(&arena, 1));
	gpuq_put(&arena, v, "requeue", gpuq_bool(&arena, false));
	cr_assert_eq(gpuq_spec_read(&r, v, &spec), 0);
	gpuq_mp_write(&bytes, gpuq_spec_write(&arena, &spec));
	cr_assert_eq(request_encode(&spec, &request, NULL), 0);
	apply(&ev, 0);
}

static void fini(void)
{
	model_free(m);
	gpuq_buf_done(&bytes);
	gpuq_buf_done(&request);
	gpuq_arena_done(&arena);
}

TestSuite(recover, .init = init, .fini = fini);

static const uint16_t device_1[] = { 1 };

static struct recovered_pod pod(uint32_t index)
{
	return (struct recovered_pod){ .place = { .group_index = index,
						  .node = "n1",
						  .devices = device_1,
						  .n_devices = 1,
						  .gpus_milli = 1000 },
				       .index = index,
				       .uid = "u-1" };
}

/* Pods of an attempt that nothing was known of. as NULL: the job is known. */
static void recover(struct job_key key, uint32_t attempt, uint32_t index, const struct event *as,
		    int want)
{
	const struct recovered_pod p = pod(index);
	struct event ev = { .type = EV_JOB_RECOVERED, .job = key };

	ev.recovered.as = as;
	ev.recovered.token = TOKEN;
	ev.recovered.flavor = "default";
	ev.recovered.attempt = attempt;
	ev.recovered.pods = &p;
	ev.recovered.n_pods = 1;
	apply(&ev, want);
}

static void step(enum event_type type, uint32_t highest, int want)
{
	struct event ev = { .type = type };

	if (type == EV_RECOVERY_LISTED)
		ev.listed.highest = highest;
	else
		ev.by = "";
	apply(&ev, want);
}

static void pod_event(enum event_type type, struct job_key key, uint32_t attempt)
{
	struct event ev = { .type = type, .pod = { key, attempt, 0 } };

	if (type == EV_POD_STARTED)
		ev.started.start_us = NOW - 500;
	if (type == EV_POD_ENDED) {
		ev.pod_ended.exit_code = -1;
		ev.pod_ended.message = "";
	}
	apply(&ev, 0);
}

/* Load the stored records into another model, which replaces the first. */
static void reload(void)
{
	struct model *again = model_new("ffffffff");
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct batch b;

	change_batch_init(&b);
	model_collect(m, &b);
	for (size_t t = 0; t < model_load_order_n; t++)
		for (size_t i = 0; i < b.n; i++)
			if (b.items[i].table == model_load_order[t] && b.items[i].val)
				cr_assert_eq(record_load(again, b.items[i].table, b.items[i].key,
							 b.items[i].key_len, b.items[i].val,
							 b.items[i].val_len, &err),
					     0, "%s", err.text);
	change_batch_done(&b);
	model_free(m);
	m = again;
}

Test(recover, numbers_are_passed_over)
{
	struct event ev = submitted(1, -1);

	apply(&ev, 0);
	cr_expect_not(recovery_waits(m));
	step(EV_RECOVERY_BEGUN, 0, 0);
	cr_expect(recovery_waits(m));
	cr_expect_eq(m->next_job_id, 2 + RECOVERY_SKIP);
	step(EV_RECOVERY_ENDED, 0, GPUQ_EINVAL); /* the cluster was not listed */
	step(EV_RECOVERY_LISTED, 5 * RECOVERY_SKIP, 0);
	cr_expect_not(recovery_waits(m));
	cr_expect_eq(m->next_job_id, 6 * RECOVERY_SKIP);
	cr_expect_eq(m->recovery.floor, 6 * RECOVERY_SKIP);
	step(EV_RECOVERY_LISTED, 0, GPUQ_EINVAL);
	reload();
	cr_expect_eq(m->next_job_id, 6 * RECOVERY_SKIP);
	cr_expect(m->recovery.listed && m->recovery.since_us == NOW);
	step(EV_RECOVERY_ENDED, 0, 0);
	reload();
	cr_expect_eq(m->recovery.since_us, 0);
	cr_expect_eq(m->recovery.floor, 6 * RECOVERY_SKIP);
	/* At the end of the numbers there are none to pass over. */
	step(EV_RECOVERY_BEGUN, 0, 0);
	step(EV_RECOVERY_LISTED, UINT32_MAX - 5, 0);
	cr_expect_eq(m->next_job_id, UINT32_MAX);
}

Test(recover, a_job_of_its_pods)
{
	const struct job_key key = { 7, -1 };
	struct event as = submitted(7, -1), end;
	uint32_t held, recovered;
	const struct job *j;

	step(EV_RECOVERY_BEGUN, 0, 0);
	recover(key, 2, 0, NULL, GPUQ_ENOENT);
	recover(key, 2, 0, &as, 0);
	j = model_find_job(m, key);
	cr_assert(j && j->recovered);
	cr_expect_eq(j->state, GPUQ_JOB_STARTING);
	cr_expect_eq(j->attempt, 2);
	cr_expect_eq(j->submit_us, as.at_us);
	cr_expect_str_eq(j->user, "ann");
	cr_expect_eq(j->queue->allocated_milli, 1000);
	pod_event(EV_POD_STARTED, key, 2);
	cr_expect_eq(j->state, GPUQ_JOB_RUNNING);
	cr_expect_eq(j->life->start_us, NOW - 500, "its limit counts from its own start");
	reload();
	j = model_find_job(m, key);
	cr_assert(j && j->recovered && j->state == GPUQ_JOB_RUNNING);
	recover_count(m, &held, &recovered);
	cr_expect(held == 0 && recovered == 1);
	recover(key, 2, 0, NULL, GPUQ_EINVAL); /* it has that pod */
	recover(key, 1, 0, NULL, GPUQ_EINVAL); /* of an earlier attempt */
	recover(key, 2, 1, NULL, 0); /* a pod more, which came late */
	/* A pod that is lost is the end of it: nothing is tried again. */
	pod_event(EV_POD_GONE, key, 2);
	apply(&(struct event){ .type = EV_POD_GONE, .pod = { key, 2, 1 } }, 0);
	job_verdict(model_find_job(m, key), &end);
	cr_expect_eq(end.type, EV_JOB_ENDED);
	cr_expect_eq(end.ended.state, GPUQ_JOB_NODE_FAIL);
	apply(&end, 0);
	recover_count(m, &held, &recovered);
	cr_expect_eq(recovered, 0);
}

Test(recover, pods_of_a_job_that_waits)
{
	struct event ev = submitted(1, -1);
	const struct job *j;

	apply(&ev, 0);
	step(EV_RECOVERY_BEGUN, 0, 0);
	recover(ev.job, 0, 0, NULL, 0);
	j = model_find_job(m, ev.job);
	cr_expect_eq(j->state, GPUQ_JOB_STARTING);
	cr_expect_not(j->recovered);
	cr_expect_eq(m->recovery.n_adopted, 1);
	/* A later attempt takes the place of the one that the copy knows. */
	recover(ev.job, 3, 0, NULL, 0);
	cr_expect_eq(j->attempt, 3);
	cr_expect_eq(j->state, GPUQ_JOB_STARTING);
}

Test(recover, an_element_without_its_array)
{
	const struct job_key key = { 9, 4 };
	struct event as = submitted(9, 4);

	step(EV_RECOVERY_BEGUN, 0, 0);
	recover(key, 0, 0, &as, 0);
	pod_event(EV_POD_STARTED, key, 0);
	reload();
	cr_assert(model_find_job(m, key) && model_find_job(m, key)->state == GPUQ_JOB_RUNNING);
	apply(&(struct event){ .type = EV_JOB_CANCEL_ASKED,
			       .job = key,
			       .cancel = { .who = "ann" } },
	      0);
	pod_event(EV_POD_ENDED, key, 0);
	apply(&(struct event){ .type = EV_JOB_ENDED,
			       .job = key,
			       .ended = { GPUQ_JOB_CANCELLED, 143, "" } },
	      0);
	pod_event(EV_POD_GONE, key, 0);
	cr_expect_null(model_find_job(m, key));
}

Test(recover, pods_that_are_gone)
{
	struct event ev = submitted(1, -1);
	uint32_t held, recovered;
	const struct job *j;

	apply(&ev, 0);
	recover(ev.job, 0, 0, NULL, 0);
	pod_event(EV_POD_STARTED, ev.job, 0);
	step(EV_RECOVERY_BEGUN, 0, 0);
	apply(&(struct event){ .type = EV_JOB_UNKNOWN, .job = ev.job }, GPUQ_EINVAL); /* it runs */
	pod_event(EV_POD_GONE, ev.job, 0);
	apply(&(struct event){ .type = EV_JOB_UNKNOWN, .job = ev.job }, 0);
	reload();
	j = model_find_job(m, ev.job);
	cr_assert(j && j->state == GPUQ_JOB_PENDING && j->held_restore && !j->pods);
	cr_expect_eq(j->queue->allocated_milli, 0);
	recover_count(m, &held, &recovered);
	cr_expect_eq(held, 1);
	/* Its owner alone does not decide. */
	apply(&(struct event){ .type = EV_JOB_RELEASED, .job = ev.job, .held = { false, "ann" } },
	      0);
	cr_expect(j->held_restore);
	apply(&(struct event){ .type = EV_JOB_RELEASED, .job = ev.job, .held = { true, "root" } },
	      0);
	cr_expect_not(j->held_restore);
	recover_count(m, &held, &recovered);
	cr_expect_eq(held, 0);
}
