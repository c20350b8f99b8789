/* Pod use is charged exactly, once, and across restarts. */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/site_text.h"
#include "gpuqd/state/record/record.h"
#include "gpuqd/util/civil.h"
#include "gpuqd/state/model_int.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

#define S GPUQ_US_PER_S
#define HOUR (3600 * S)
#define DAY (24 * HOUR)
#define T0 (INT64_C(1764547200) * S) /* 2025-12-01T00:00Z, a Monday */

/* ---- a model that is written down and read again ---- */

enum { BATCHES_MAX = 64 };

struct rig {
	struct model *m;
	struct batch disk[BATCHES_MAX]; /* the newest record of a key holds */
	int n;
};

static void apply(struct rig *r, struct event *ev)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(model_apply(r->m, ev, &err), 0, "%s", err.text);
	cr_assert_lt(r->n, BATCHES_MAX);
	change_batch_init(&r->disk[r->n]);
	model_collect(r->m, &r->disk[r->n++]);
}

static bool same_key(const struct change *x, const struct change *y)
{
	return x->table == y->table && x->key_len == y->key_len &&
	       memcmp(x->key, y->key, x->key_len) == 0;
}

static bool newer(const struct rig *r, int b, size_t i)
{
	for (int k = b; k < r->n; k++)
		for (size_t c = k == b ? i + 1 : 0; c < r->disk[k].n; c++)
			if (same_key(&r->disk[k].items[c], &r->disk[b].items[i]))
				return true;
	return false;
}

static void restart(struct rig *r)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct policy policy = r->m->policy;

	model_free(r->m);
	r->m = model_new("ffffffff");
	r->m->policy = policy;
	for (size_t t = 0; t < model_load_order_n; t++)
		for (int b = 0; b < r->n; b++)
			for (size_t i = 0; i < r->disk[b].n; i++) {
				const struct change *c = &r->disk[b].items[i];

				if (c->table != model_load_order[t] || !c->val || newer(r, b, i))
					continue;
				cr_assert_eq(record_load(r->m, c->table, c->key, c->key_len, c->val,
							 c->val_len, &err),
					     0, "%s", err.text);
			}
}

static void site(struct rig *r, const char *text, int64_t at_us)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_SITE_APPLIED, .at_us = at_us };

	site_text_pack(text, &b);
	ev.site.bytes = b.data;
	ev.site.len = b.len;
	apply(r, &ev);
	gpuq_buf_done(&b);
}

static void begin(struct rig *r, const char *site_text)
{
	struct device_fact devices[8];
	struct node_fact f = { .name = "n0",
			       .cpu_milli = 64000,
			       .memory_bytes = INT64_C(1) << 38,
			       .max_pods = 110,
			       .devices = devices,
			       .n_devices = 8,
			       .ready = true,
			       .note = "" };
	struct event ev = { .type = EV_NODE_SEEN, .at_us = T0, .node = &f };

	memset(r, 0, sizeof(*r));
	r->m = model_new("0123abcd");
	for (int i = 0; i < 8; i++)
		devices[i] = (struct device_fact){ "GPU-x", "TEST", 1024, true };
	site(r, site_text, T0);
	apply(r, &ev);
}

static void end(struct rig *r)
{
	model_free(r->m);
	while (r->n > 0)
		change_batch_done(&r->disk[--r->n]);
}

/* A job of so many pods, one device each; placed, and its pods created. */
static void job(struct rig *r, const char *user, const char *queue, uint32_t n_pods, int64_t at_us)
{
	static const char text[] = "{gpus: 1, pods: %u, command: [a]}";
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_spec_opts opts = { .file = "test", .default_name = "test", .now_us = at_us };
	struct gpuq_buf bytes = GPUQ_BUF_INIT, req = GPUQ_BUF_INIT, spec = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_JOB_SUBMITTED, .at_us = at_us };
	struct placed_pod pods[8];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;
	uint16_t devices[8];

	gpuq_buf_printf(&spec, text, n_pods);
	cr_assert_eq(gpuq_specs_read(&a, &opts, spec.data, spec.len, &specs, NULL, &err), 0, "%s",
		     err.text);
	cr_assert_eq(request_encode(&specs.items[0], &req, &err), 0);
	gpuq_mp_write(&bytes, gpuq_spec_write(&a, &specs.items[0]));
	ev.job = (struct job_key){ r->m->next_job_id, -1 };
	ev.submitted.spec = &specs.items[0];
	ev.submitted.spec_bytes = bytes.data;
	ev.submitted.spec_len = bytes.len;
	ev.submitted.request_bytes = req.data;
	ev.submitted.request_len = req.len;
	ev.submitted.user = user;
	ev.submitted.queue = queue;
	ev.submitted.qos = "normal";
	ev.submitted.time_limit_us = GPUQ_UNLIMITED;
	apply(r, &ev);
	gpuq_buf_done(&bytes);
	gpuq_buf_done(&req);
	gpuq_buf_done(&spec);
	gpuq_arena_done(&a);

	ev = (struct event){ .type = EV_JOB_PLACED,
			     .at_us = at_us,
			     .job = { r->m->next_job_id - 1, -1 } };
	for (uint32_t i = 0; i < n_pods; i++) {
		devices[i] = (uint16_t)i;
		pods[i] = (struct placed_pod){ 0, i, "n0", &devices[i], 1, 1000, 0, NULL };
	}
	ev.placed.token = "0123456789abcdef0123456789abcdef";
	ev.placed.flavor = "default";
	ev.placed.pods = pods;
	ev.placed.n_pods = n_pods;
	apply(r, &ev);
}

static void started(struct rig *r, uint32_t id, uint32_t pod, int64_t start_us, int64_t told_us)
{
	struct event ev = { .type = EV_POD_STARTED, .at_us = told_us };

	ev.pod = (struct pod_key){ { id, -1 }, 0, pod };
	ev.started.start_us = start_us;
	apply(r, &ev);
}

static void ended(struct rig *r, uint32_t id, uint32_t pod, int64_t start_us, int64_t end_us,
		  int64_t told_us)
{
	struct event ev = { .type = EV_POD_ENDED, .at_us = told_us };

	ev.pod = (struct pod_key){ { id, -1 }, 0, pod };
	ev.pod_ended.start_us = start_us;
	ev.pod_ended.end_us = end_us;
	ev.pod_ended.message = "";
	apply(r, &ev);
}

struct sum {
	const char *queue, *user;
	usage_q32 used;
};

static bool add(void *arg, struct queue *q, const char *user, usage_q32 used)
{
	struct sum *s = arg;

	if (strcmp(q->name, s->queue) == 0 && strcmp(user, s->user) == 0)
		s->used += used;
	return true;
}

static usage_q32 used(const struct rig *r, const char *queue, const char *user, int64_t now_us)
{
	struct sum s = { .queue = queue, .user = user };

	account_each(r->m, now_us, add, &s);
	return s.used;
}

static int64_t spent_ms(const struct rig *r, const char *queue, int64_t now_us, int64_t *reset_us)
{
	struct spent out[8];
	const uint32_t ix = model_find_queue(r->m, queue)->ix;

	budget_spending(r->m, now_us, out);
	if (reset_us)
		*reset_us = out[ix].reset_us;
	return out[ix].used_ms;
}

static void expect_used(usage_q32 got, usage_q32 want, const char *what)
{
	const uint64_t off = (uint64_t)(got > want ? got - want : want - got);

	cr_expect_leq(off, 256, "%s: %" PRIu64 ", not %" PRIu64, what, (uint64_t)got,
		      (uint64_t)want);
}

static const char plain[] = "{version: 1, queues: [{name: a}, {name: a1, parent: a}]}";

/* ---- what counts for fair shares ---- */

Test(model_usage, running_pods_are_charged_all_the_time)
{
	struct rig r;

	begin(&r, plain);
	r.m->policy.usage_half_life_us = HOUR;
	job(&r, "ann", "a1", 2, T0);
	started(&r, 1, 0, T0 + 10 * S, T0 + 10 * S);
	started(&r, 1, 1, T0 + 10 * S, T0 + 40 * S); /* told late */
	expect_used(used(&r, "a1", "ann", T0 + HOUR), usage_of(2000, HOUR - 10 * S, HOUR),
		    "while it runs");
	ended(&r, 1, 0, 0, T0 + HOUR, T0 + HOUR + 30 * S);
	ended(&r, 1, 1, T0 + 20 * S, T0 + 2 * HOUR, T0 + 2 * HOUR); /* it began later, after all */
	expect_used(used(&r, "a1", "ann", T0 + 4 * HOUR),
		    usage_left(usage_of(1000, HOUR - 10 * S, HOUR), 3 * HOUR, HOUR) +
			    usage_left(usage_of(1000, 2 * HOUR - 20 * S, HOUR), 2 * HOUR, HOUR),
		    "it fades when it has ended");
	cr_expect_eq((uint64_t)used(&r, "a1", "bob", T0 + HOUR), 0);
	end(&r);
}

/* ---- other machines' clocks ---- */

static int64_t ran_for(const struct rig *r)
{
	const struct job *j = model_find_job(r->m, (struct job_key){ 1, -1 });

	return j->pods->end_us - j->pods->start_us;
}

/* That of a node is off by `off`: a job of an hour is charged an hour, between what we saw. */
static void hour_with_clock_off(int64_t off)
{
	const int64_t placed = T0 + 5 * S, start = T0 + 10 * S, end_us = start + HOUR;
	const struct pod *p;
	struct rig r;

	begin(&r, plain);
	job(&r, "ann", "a1", 1, placed);
	started(&r, 1, 0, start + off, start + S);
	p = model_find_job(r.m, (struct job_key){ 1, -1 })->pods;
	cr_expect_geq(p->start_us, placed);
	cr_expect_leq(p->start_us, start + S, "not in the future");
	ended(&r, 1, 0, start + off, end_us + off, end_us + S);
	cr_expect_geq(p->start_us, placed);
	cr_expect_leq(p->end_us, end_us + S, "not in the future");
	cr_expect_leq(llabs(ran_for(&r) - HOUR), 6 * S, "%" PRId64 " s", ran_for(&r) / S);
	end(&r);
}

Test(model_usage, clocks_of_nodes_are_bracketed_by_ours)
{
	static const int64_t offs[] = { 0,    S,     -S,       600 * S,  -600 * S,
					HOUR, -HOUR, 30 * DAY, -30 * DAY };

	for (size_t i = 0; i < sizeof(offs) / sizeof(offs[0]); i++)
		hour_with_clock_off(offs[i]);
}

Test(model_usage, an_end_before_its_start_is_nothing)
{
	struct rig r;

	begin(&r, plain);
	job(&r, "ann", "a1", 1, T0);
	started(&r, 1, 0, T0 + 10 * S, T0 + 10 * S);
	ended(&r, 1, 0, T0 + 10 * S, T0 - DAY, T0 + HOUR);
	cr_expect_eq(ran_for(&r), 0);
	end(&r);
}

/* Nothing shows how far off its clock is: what was seen limits what is charged. */
Test(model_usage, an_end_without_a_start_is_not_in_the_future)
{
	struct rig r;

	begin(&r, plain);
	job(&r, "ann", "a1", 1, T0);
	started(&r, 1, 0, T0 + 10 * S, T0 + 10 * S);
	ended(&r, 1, 0, 0, T0 + 30 * DAY, T0 + 10 * S + HOUR);
	cr_expect_eq(ran_for(&r), HOUR);
	end(&r);
}

/* ---- our own wall clock ---- */

static void clock_set(struct rig *r, int64_t ahead_us, int64_t at_us)
{
	struct event ev = { .type = EV_CLOCK_SET, .at_us = at_us };

	ev.clock.boot = "b";
	ev.clock.base_us = 17;
	ev.clock.ahead_us = ahead_us;
	apply(r, &ev);
}

/* Two days of the wall clock, one hour of ledger time: charged once, on the days of then. */
Test(model_usage, the_wall_clock_decides_about_days_not_about_amounts)
{
	struct rig r;
	int64_t reset;

	begin(&r, "{version: 1, queues: [{name: a, budget: {gpu_minutes: 600, period: day}}]}");
	job(&r, "ann", "a", 1, T0);
	started(&r, 1, 0, T0, T0);
	clock_set(&r, DAY, T0 + HOUR / 2);
	restart(&r);
	cr_expect_eq(r.m->ahead_us, DAY);
	cr_expect_str_eq(r.m->clock_boot, "b");
	cr_expect_eq(r.m->clock_base_us, 17);
	cr_expect_geq(r.m->newest_us, T0);
	ended(&r, 1, 0, T0, T0 + HOUR, T0 + HOUR);
	expect_used(used(&r, "a", "ann", T0 + HOUR), usage_of(1000, HOUR, 7 * DAY), "an hour");
	cr_expect_eq(spent_ms(&r, "a", T0 + HOUR, &reset), HOUR / 1000);
	cr_expect_eq(reset, T0 + DAY, "midnight of the wall clock, as ledger time");
	cr_expect_eq(clock_day(r.m, T0), civil_day(T0) + 1);
	clock_set(&r, 6 * HOUR, T0 + HOUR);
	cr_expect_eq(clock_day_begins(r.m, civil_day(T0)), T0 - 6 * HOUR);
	end(&r);
}

/* AC-KGS-3: a restart neither loses a charge nor makes it twice. */
Test(model_usage, a_restart_changes_nothing)
{
	usage_q32 before;
	struct rig r;

	begin(&r, plain);
	job(&r, "ann", "a1", 1, T0);
	started(&r, 1, 0, T0 + 7, T0 + 13);
	before = used(&r, "a1", "ann", T0 + DAY);
	cr_expect_gt((uint64_t)before, 0);
	restart(&r);
	cr_expect_eq((uint64_t)used(&r, "a1", "ann", T0 + DAY), (uint64_t)before, "bit for bit");
	ended(&r, 1, 0, 0, T0 + DAY, T0 + DAY);
	before = used(&r, "a1", "ann", T0 + 2 * DAY);
	restart(&r);
	cr_expect_eq((uint64_t)used(&r, "a1", "ann", T0 + 2 * DAY), (uint64_t)before);
	expect_used(before, usage_left(usage_of(1000, DAY - 7, 7 * DAY), DAY, 7 * DAY), "one day");
	end(&r);
}

/* A repeated report is refused, and charges nothing a second time. */
Test(model_usage, the_same_news_twice_is_charged_once)
{
	struct event ev = { .type = EV_POD_STARTED,
			    .at_us = T0 + HOUR,
			    .pod = { { 1, -1 }, 0, 0 } };
	usage_q32 before;
	struct rig r;

	begin(&r, plain);
	job(&r, "ann", "a1", 1, T0);
	started(&r, 1, 0, T0, T0);
	before = used(&r, "a1", "ann", T0 + DAY);
	ev.started.start_us = T0;
	cr_expect_neq(model_apply(r.m, &ev, NULL), 0);
	cr_expect_eq((uint64_t)used(&r, "a1", "ann", T0 + DAY), (uint64_t)before);
	ended(&r, 1, 0, 0, T0 + HOUR, T0 + HOUR);
	before = used(&r, "a1", "ann", T0 + DAY);
	ev.type = EV_POD_ENDED;
	ev.pod_ended.start_us = 0;
	ev.pod_ended.end_us = T0 + 2 * HOUR;
	ev.pod_ended.message = "";
	cr_expect_neq(model_apply(r.m, &ev, NULL), 0);
	cr_expect_eq((uint64_t)used(&r, "a1", "ann", T0 + DAY), (uint64_t)before);
	cr_expect_eq(spent_ms(&r, "a", T0 + DAY, NULL), 3600000);
	end(&r);
}

Test(model_usage, rates_and_factors_count)
{
	struct rig r;

	begin(&r, "{version: 1, flavors: [{name: default, rate: 2.5}], queues: [{name: a}],"
		  " qos: [{name: normal, usage_factor: 0.5}]}");
	r.m->policy.usage_half_life_us = 0;
	job(&r, "ann", "a", 1, T0);
	started(&r, 1, 0, T0, T0);
	expect_used(used(&r, "a", "ann", T0 + 1000 * S), (usage_q32)1250 << 32, "1000 s x 2.5 / 2");
	cr_expect_eq(spent_ms(&r, "a", T0 + 1000 * S, NULL), 1250000);
	ended(&r, 1, 0, 0, T0 + 1000 * S, T0 + 1000 * S);
	cr_expect_eq(spent_ms(&r, "a", T0 + 2000 * S, NULL), 1250000);
	end(&r);
}

Test(model_usage, what_has_faded_is_forgotten)
{
	struct event ev = { .type = EV_KEYS_EXPIRED, .at_us = T0 + 20 * DAY };
	struct rig r;

	begin(&r, plain);
	r.m->policy.usage_half_life_us = HOUR;
	job(&r, "ann", "a1", 2, T0);
	started(&r, 1, 0, T0, T0);
	started(&r, 1, 1, T0, T0);
	ended(&r, 1, 0, 0, T0 + HOUR, T0 + HOUR);
	apply(&r, &ev);
	cr_expect_eq(HASH_COUNT(r.m->accounts), 1, "one pod runs on");
	ended(&r, 1, 1, 0, T0 + 20 * DAY, T0 + 20 * DAY);
	apply(&r, &ev);
	cr_expect_eq(HASH_COUNT(r.m->accounts), 1, "it has just ended");
	ev.at_us = T0 + 22 * DAY;
	apply(&r, &ev);
	cr_expect_eq(HASH_COUNT(r.m->accounts), 0);
	restart(&r);
	cr_expect_eq(HASH_COUNT(r.m->accounts), 0);
	end(&r);
}

/* ---- budgets ---- */

/* AC-KGS-6: nothing is carried over. */
Test(model_usage, a_period_begins_anew)
{
	struct rig r;
	int64_t reset;

	begin(&r, "{version: 1, queues: [{name: a, budget: {gpu_minutes: 100, period: month}},"
		  " {name: a1, parent: a, budget: {gpu_minutes: 10, period: day}}]}");
	job(&r, "ann", "a1", 2, T0);
	started(&r, 1, 0, T0 + 30 * DAY, T0 + 30 * DAY); /* the 31st */
	started(&r, 1, 1, T0 + 30 * DAY, T0 + 30 * DAY);
	cr_expect_eq(spent_ms(&r, "a", T0 + 30 * DAY + HOUR, &reset), 2 * 3600000);
	cr_expect_eq(reset, T0 + 31 * DAY);
	cr_expect_eq(spent_ms(&r, "a1", T0 + 30 * DAY + HOUR, &reset), 2 * 3600000);
	cr_expect_eq(reset, T0 + 31 * DAY);
	ended(&r, 1, 0, 0, T0 + 31 * DAY + HOUR, T0 + 31 * DAY + HOUR);
	cr_expect_eq(spent_ms(&r, "a", T0 + 31 * DAY + 2 * HOUR, &reset), 3 * 3600000,
		     "what was used in the new month");
	cr_expect_eq(reset, T0 + 62 * DAY);
	restart(&r);
	cr_expect_eq(spent_ms(&r, "a", T0 + 31 * DAY + 2 * HOUR, NULL), 3 * 3600000);
	ended(&r, 1, 1, 0, T0 + 32 * DAY, T0 + 32 * DAY);
	cr_expect_eq(spent_ms(&r, "a", T0 + 32 * DAY, NULL), 25 * 3600000);
	cr_expect_eq(spent_ms(&r, "a1", T0 + 32 * DAY, NULL), 0);
	end(&r);
}

Test(model_usage, a_budget_may_fade)
{
	static const char fading[] =
		"{version: 1, queues: [{name: a, budget: {gpu_minutes: 100, half_life: 1h}},"
		" {name: a1, parent: a}]}";
	int64_t ms, reset;
	struct rig r;

	begin(&r, plain);
	job(&r, "ann", "a1", 1, T0);
	started(&r, 1, 0, T0, T0);
	site(&r, fading, T0 + HOUR); /* counts from now on */
	ms = spent_ms(&r, "a", T0 + 2 * HOUR, &reset);
	cr_expect_eq(ms, (int64_t)((usage_of(1000, HOUR, HOUR) >> 16) * 1000 >> 16));
	cr_expect_eq(reset, 0);
	restart(&r);
	cr_expect_eq(spent_ms(&r, "a", T0 + 2 * HOUR, NULL), ms);
	ended(&r, 1, 0, 0, T0 + 2 * HOUR, T0 + 2 * HOUR);
	cr_expect_eq(spent_ms(&r, "a", T0 + 3 * HOUR, NULL), ms / 2);
	cr_expect_eq((uint64_t)used(&r, "a", "", T0 + 60 * DAY), 0);
	site(&r, plain, T0 + 4 * HOUR);
	cr_expect_eq((uint64_t)used(&r, "a", "", T0 + 4 * HOUR), 0, "it went with the budget");
	cr_expect_eq(spent_ms(&r, "a", T0 + 4 * HOUR, NULL), 2 * 3600000);
	end(&r);
}

/* ---- the book of days ---- */

static int64_t booked(const struct rig *r, enum charge kind)
{
	int64_t us = 0;

	for (const struct usage *u = r->m->usages; u; u = u->hh.next)
		us += u->us[kind];
	return us;
}

static void requeued(struct rig *r, uint32_t id, enum gpuq_cause cause, int64_t at_us)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .at_us = at_us - S, .job = { id, -1 } };

	if (cause != GPUQ_CAUSE_INFRA && cause != GPUQ_CAUSE_REQUEUE) {
		ev.evict.cause = cause;
		ev.evict.by = ev.evict.rule = "";
		apply(r, &ev);
	}
	ended(r, id, 0, 0, at_us, at_us);
	ev = (struct event){ .type = EV_JOB_REQUEUED, .at_us = at_us, .job = { id, -1 } };
	ev.requeued.cause = cause;
	ev.requeued.message = "";
	apply(r, &ev);
}

Test(ledger, what_is_lost_is_refunded_by_cause)
{
	static const struct {
		enum gpuq_cause cause;
		bool refunded;
	} cases[] = {
		{ GPUQ_CAUSE_RECLAIM, true },     { GPUQ_CAUSE_PREEMPT, true },
		{ GPUQ_CAUSE_DRAIN, true },       { GPUQ_CAUSE_INFRA, true },
		{ GPUQ_CAUSE_CONSOLIDATE, true }, { GPUQ_CAUSE_REQUEUE, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig r;

		begin(&r, "{version: 1, queues: [{name: a, budget: {gpu_minutes: 100}}]}");
		job(&r, "ann", "a", 1, T0);
		started(&r, 1, 0, T0 + 5 * S, T0 + 5 * S);
		requeued(&r, 1, cases[i].cause, T0 + HOUR + 5 * S);
		cr_expect_eq(booked(&r, CHARGE_USED), HOUR, "%zu", i);
		cr_expect_eq(booked(&r, CHARGE_STARTING), 5 * S, "%zu", i);
		cr_expect_eq(booked(&r, CHARGE_REFUNDED), cases[i].refunded ? HOUR : 0, "%zu", i);
		cr_expect_eq(booked(&r, CHARGE_EVICTED), cases[i].refunded ? HOUR : 0, "%zu", i);
		restart(&r);
		cr_expect_eq(spent_ms(&r, "a", T0 + DAY, NULL), cases[i].refunded ? 0 : 3600000,
			     "%zu", i);
		end(&r);
	}
}

Test(ledger, work_since_the_last_checkpoint_is_lost)
{
	struct rig r;
	struct job *j;
	struct wish w;

	begin(&r, plain);
	job(&r, "ann", "a1", 1, T0);
	j = model_find_job(r.m, (struct job_key){ 1, -1 });
	w = *j->wish;
	w.checkpoint_every_us = 10 * 60 * S;
	job_set_wish(r.m, j, &w);
	started(&r, 1, 0, T0, T0);
	requeued(&r, 1, GPUQ_CAUSE_RECLAIM, T0 + HOUR + 61 * S); /* told to leave a second before */
	cr_expect_eq(booked(&r, CHARGE_REFUNDED), 61 * S);
	cr_expect_eq(booked(&r, CHARGE_USED), HOUR + 61 * S);
	end(&r);
}

Test(ledger, a_refund_of_what_fades_fades_as_well)
{
	struct rig r;

	begin(&r, "{version: 1, queues: [{name: a, budget: {gpu_minutes: 100, half_life: 1h}}]}");
	job(&r, "ann", "a", 1, T0);
	started(&r, 1, 0, T0, T0);
	cr_expect_gt(spent_ms(&r, "a", T0 + HOUR, NULL), 1000000);
	requeued(&r, 1, GPUQ_CAUSE_INFRA, T0 + HOUR);
	cr_expect_leq(spent_ms(&r, "a", T0 + HOUR, NULL), 1);
	restart(&r);
	cr_expect_leq(spent_ms(&r, "a", T0 + 2 * HOUR, NULL), 1);
	end(&r);
}

Test(ledger, a_refund_is_given_once_and_leaves_what_others_used)
{
	const int64_t hour = (int64_t)((usage_of(1000, HOUR, HOUR) >> 16) * 1000 >> 16);
	struct rig r;

	begin(&r, "{version: 1, queues: [{name: a, budget: {gpu_minutes: 100, user_gpu_minutes: 90,"
		  " half_life: 1h}}]}");
	for (uint32_t id = 1; id <= 3; id++) {
		job(&r, "ann", "a", 1, T0);
		started(&r, id, 0, T0, T0);
	}
	requeued(&r, 1, GPUQ_CAUSE_INFRA, T0 + HOUR);
	ended(&r, 2, 0, 0, T0 + HOUR, T0 + HOUR);
	ended(&r, 3, 0, 0, T0 + HOUR, T0 + HOUR);
	cr_expect_leq(llabs(spent_ms(&r, "a", T0 + HOUR, NULL) - 2 * hour), 4);
	cr_expect_leq(
		llabs(budget_user_spent_ms(r.m, model_find_queue(r.m, "a"), "ann", T0 + HOUR) -
		      2 * hour),
		4);
	restart(&r);
	cr_expect_leq(llabs(spent_ms(&r, "a", T0 + HOUR, NULL) - 2 * hour), 4);
	end(&r);
}

Test(ledger, days_add_up_and_are_paid_at_their_price)
{
	int64_t cost = 0, n = 0;
	struct rig r;

	begin(&r, "{version: 1, currency: EUR, flavors: [{name: default, price: 3.60}],"
		  " queues: [{name: a}]}");
	job(&r, "ann", "a", 1, T0);
	started(&r, 1, 0, T0 + DAY - 1, T0 + DAY - 1);
	site(&r,
	     "{version: 1, currency: EUR, flavors: [{name: default, price: 7.20}],"
	     " queues: [{name: a}]}",
	     T0 + DAY);
	ended(&r, 1, 0, 0, T0 + 3 * DAY + 1, T0 + 3 * DAY + 1);
	for (const struct usage *u = r.m->usages; u; u = u->hh.next) {
		n += u->us[CHARGE_USED] > 0;
		cost += u->cost_micro;
	}
	cr_expect_eq(n, 4, "a microsecond, two days, a microsecond");
	cr_expect_eq(booked(&r, CHARGE_USED), 2 * DAY + 2);
	cr_expect_eq(cost, INT64_C(2) * 24 * 7200000);
	end(&r);
}

static void grant(struct rig *r, const char *queue, int64_t minutes, int64_t at_us)
{
	struct event ev = { .type = EV_QUEUE_GRANTED, .at_us = at_us };

	ev.granted.name = queue;
	ev.granted.gpu_minutes = minutes;
	ev.granted.why = ev.granted.who = "";
	apply(r, &ev);
}

static int64_t granted_ms(const struct rig *r, const char *queue, int64_t now_us)
{
	struct spent out[8];

	budget_spending(r->m, now_us, out);
	return out[model_find_queue(r->m, queue)->ix].granted_ms;
}

/* AC-KGS-6: what was granted is there at once. */
Test(ledger, a_grant_ends_with_its_period)
{
	struct rig r;

	begin(&r, "{version: 1, queues: [{name: a, budget: {gpu_minutes: 1200, period: month}},"
		  " {name: b, budget: {gpu_minutes: 60, half_life: 1h}}, {name: c}]}");
	grant(&r, "a", 300, T0 + DAY);
	grant(&r, "b", 60, T0);
	cr_expect_eq(granted_ms(&r, "a", T0 + DAY), 300 * 60000, "at once");
	cr_expect_eq(granted_ms(&r, "b", T0 + HOUR), 30 * 60000);
	restart(&r);
	cr_expect_eq(granted_ms(&r, "a", T0 + DAY), 300 * 60000);
	cr_expect_eq(granted_ms(&r, "b", T0 + 2 * HOUR), 15 * 60000);
	cr_expect_eq(spent_ms(&r, "a", T0 + DAY, NULL), 0);
	cr_expect_eq(granted_ms(&r, "a", T0 + 31 * DAY), 0, "the next month has its own");
	grant(&r, "a", -100, T0 + 32 * DAY);
	cr_expect_eq(granted_ms(&r, "a", T0 + 33 * DAY), -100 * 60000);
	cr_expect_eq((uint64_t)used(&r, "b", "", T0), 0, "it is no use");
	end(&r);
}

Test(ledger, a_default_budget_is_for_leaves)
{
	struct rig r;

	begin(&r, "{version: 1, default_budget: {gpu_minutes: 7}, queues: [{name: a},"
		  " {name: a1, parent: a}, {name: b, budget: {gpu_minutes: 9}}]}");
	cr_expect_null(model_find_queue(r.m, "a")->budget);
	cr_expect_eq(model_find_queue(r.m, "a1")->budget->gpu_minutes, 7);
	cr_expect_eq(model_find_queue(r.m, "b")->budget->gpu_minutes, 9);
	end(&r);
}

Test(ledger, users_are_told_apart)
{
	struct rig r;

	begin(&r, "{version: 1, queues: [{name: a, budget: {gpu_minutes: 9, period: day}},"
		  " {name: a1, parent: a}]}");
	job(&r, "ann", "a1", 1, T0);
	started(&r, 1, 0, T0 + 23 * HOUR, T0 + 23 * HOUR);
	cr_expect_eq(budget_user_spent_ms(r.m, model_find_queue(r.m, "a"), "ann", T0 + DAY + HOUR),
		     3600000, "of this day");
	cr_expect_eq(budget_user_spent_ms(r.m, model_find_queue(r.m, "a"), "bob", T0 + DAY), 0);
	cr_expect_eq(budget_committed_ms(r.m, model_find_queue(r.m, "a"), "ann", T0 + DAY),
		     GPUQ_UNLIMITED, "it has no walltime");
	ended(&r, 1, 0, 0, T0 + DAY + 2 * HOUR, T0 + DAY + 2 * HOUR);
	cr_expect_eq(
		budget_user_spent_ms(r.m, model_find_queue(r.m, "a"), "ann", T0 + DAY + 3 * HOUR),
		7200000);
	cr_expect_eq(budget_committed_ms(r.m, model_find_queue(r.m, "a"), NULL, T0 + DAY), 0);
	end(&r);
}

Test(ledger, a_users_part_of_a_budget_fades_as_the_budget_does)
{
	static const char both[] =
		"{version: 1, queues: [{name: a, budget: {gpu_minutes: 100, user_gpu_minutes: 50,"
		" half_life: 1h}}, {name: a1, parent: a}]}";
	static const char whole[] =
		"{version: 1, queues: [{name: a, budget: {gpu_minutes: 100, half_life: 1h}},"
		" {name: a1, parent: a}]}";
	const struct queue *a;
	struct rig r;
	int64_t ms;

	begin(&r, both);
	job(&r, "ann", "a1", 2, T0);
	job(&r, "bob", "a1", 1, T0);
	started(&r, 1, 0, T0, T0);
	started(&r, 1, 1, T0, T0);
	started(&r, 2, 0, T0, T0);
	a = model_find_queue(r.m, "a");
	ms = budget_user_spent_ms(r.m, a, "ann", T0 + HOUR);
	cr_expect_eq(ms, (int64_t)((usage_of(2000, HOUR, HOUR) >> 16) * 1000 >> 16));
	cr_expect_eq(budget_user_rate_milli(r.m, a, "ann"), 2000);
	cr_expect_eq(budget_user_rate_milli(r.m, a, "eve"), 0);
	cr_expect_eq(spent_ms(&r, "a", T0 + HOUR, NULL) / 10, (ms + ms / 2) / 10,
		     "nothing counts twice");
	ended(&r, 1, 0, 0, T0 + HOUR, T0 + HOUR);
	ended(&r, 1, 1, 0, T0 + HOUR, T0 + HOUR);
	restart(&r);
	a = model_find_queue(r.m, "a");
	cr_expect_eq(budget_user_spent_ms(r.m, a, "ann", T0 + 2 * HOUR), ms / 2);
	site(&r, whole, T0 + 2 * HOUR);
	site(&r, both, T0 + 2 * HOUR);
	a = model_find_queue(r.m, "a");
	cr_expect_eq(budget_user_spent_ms(r.m, a, "ann", T0 + 2 * HOUR), 0,
		     "it went with its part");
	end(&r);
}

/* A running pod is charged to the present budgets above it. */
Test(model_usage, a_queue_may_move_while_its_jobs_run)
{
	static const char under_a[] =
		"{version: 1, queues: [{name: a, budget: {gpu_minutes: 9, half_life: 1h}},"
		" {name: b, budget: {gpu_minutes: 9, half_life: 1h}}, {name: x, parent: a}]}";
	static const char under_b[] =
		"{version: 1, queues: [{name: a, budget: {gpu_minutes: 9, half_life: 1h}},"
		" {name: b, budget: {gpu_minutes: 9, half_life: 1h}}, {name: x, parent: b}]}";
	static const char both[] =
		"{version: 1, queues: [{name: a, budget: {gpu_minutes: 9, half_life: 1h}},"
		" {name: b, parent: a, budget: {gpu_minutes: 9, half_life: 2h}}, {name: x, parent: "
		"b}]}";
	struct rig r;
	int64_t a;

	begin(&r, under_a);
	job(&r, "ann", "x", 1, T0);
	started(&r, 1, 0, T0, T0);
	site(&r, under_b, T0 + HOUR);
	a = spent_ms(&r, "a", T0 + HOUR, NULL);
	cr_expect_gt(a, 0);
	cr_expect_eq(spent_ms(&r, "b", T0 + HOUR, NULL), 0);
	restart(&r);
	cr_expect_eq(spent_ms(&r, "a", T0 + 2 * HOUR, NULL), a / 2, "nothing is added any more");
	cr_expect_eq(spent_ms(&r, "b", T0 + 2 * HOUR, NULL), a, "as much as was there");
	site(&r, both, T0 + 2 * HOUR);
	restart(&r);
	ended(&r, 1, 0, 0, T0 + 3 * HOUR, T0 + 3 * HOUR);
	cr_expect_eq(spent_ms(&r, "a", T0 + 4 * HOUR, NULL), (a / 4 + a) / 2);
	for (const char **q = (const char *[]){ "a", "b", NULL }; *q; q++)
		cr_expect_lt(spent_ms(&r, *q, T0 + 100 * DAY, NULL), 1, "%s: nothing runs", *q);
	end(&r);
}

/* ---- days ---- */

Test(calendar, days_and_dates)
{
	int64_t first, next;

	cr_expect_eq(civil_number(0), 19700101);
	cr_expect_eq(civil_number(-1), 19691231);
	cr_expect_eq(civil_number(civil_day(T0)), 20251201);
	cr_expect_eq(civil_day(-1), -1);
	for (int64_t day = -200000; day < 200000; day += 13)
		cr_assert_eq(civil_from_date(civil_date(day)), day);
	cr_expect_eq(civil_number(civil_from_date((struct civil_date){ 2024, 2, 29 }) + 1),
		     20240301);
	civil_period(2, civil_day(T0) + 6, &first, &next);
	cr_expect_eq(first, civil_day(T0), "a Monday");
	cr_expect_eq(next, first + 7);
	civil_period(4, civil_day(T0), &first, &next);
	cr_expect_eq(civil_number(first), 20251001);
	cr_expect_eq(civil_number(next), 20260101);
	civil_period(5, civil_day(T0), &first, &next);
	cr_expect_eq(civil_number(first), 20250101);
	cr_expect_eq(civil_number(next), 20260101);
	civil_period(0, 0, &first, &next);
	cr_expect_eq(next, INT64_MAX);
}
