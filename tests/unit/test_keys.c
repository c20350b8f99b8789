/* Keys of queues and of the scheduler, row by row: each survives the site file, the store, export, scenarios
 * and recorded cycles. A new row is tested without another line here. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/config_sched.h"
#include "gpuqd/flow/report/export.h"
#include "gpuqd/sim/scenario/scenario.h"
#include "gpuqd/site/site.h"
#include "gpuqd/snapshot/snapshot_pack.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/yaml.h"
#include "tests/unit/model_rig.h"

#define ROUNDS 60

static uint64_t seed = 20261123;

static int64_t any(int64_t least, int64_t most)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return least + (int64_t)((seed >> 33) % (uint64_t)(most - least + 1));
}

/* ---- a value of each kind, in its range ---- */

static int n_words(const char *const *words)
{
	int n = 0;

	while (words[n])
		n++;
	return n;
}

#define ANY_FACTOR(names, least, most) any(0, 9999)
#define ANY_INT(names, least, most) any(least, most)
#define ANY_WORD(names, least, most) (int)any(0, n_words(names) - 1)
#define ANY_FLAG(names, least, most) any(0, 1)
#define ANY_SPAN(names, least, most)                                                               \
	(any(1, (most) ? (most) / GPUQ_US_PER_S : 14400) * GPUQ_US_PER_S)
#define ANY_COUNT(names, least, most) any(least, most)
#define ANY_LIMIT(names, least, most) (any(0, 3) ? any(least, most) : GPUQ_UNLIMITED)
#define ANY_DEVICES(names, least, most) (any(0, 3) ? any(0, 99999) : GPUQ_UNLIMITED)

static struct policy_queue any_queue(void)
{
	struct policy_queue p;

#define X(kind, member, key, scenario, dflt, recorded, how, names, least, most, may, doc)          \
	p.member = ANY_##kind(names, least, most);
	POLICY_QUEUE_KEYS(X)
#undef X
	return p;
}

static struct policy_sched any_sched(void)
{
	struct policy_sched p;

#define X(kind, member, key, dflt, absent, recorded, names, least, most, doc)                      \
	p.member = ANY_##kind(names, least, most);
	POLICY_SCHED_KEYS(X)
#undef X
	return p;
}

/* ---- as a file has it ---- */

static void say_milli(struct gpuq_buf *b, const char *key, int64_t milli)
{
	if (milli == GPUQ_UNLIMITED)
		gpuq_buf_printf(b, "%s: unlimited, ", key);
	else
		gpuq_buf_printf(b, "%s: %lld.%03lld, ", key, (long long)(milli / 1000),
				(long long)(milli % 1000));
}

static void say_count(struct gpuq_buf *b, const char *key, int64_t n)
{
	if (n == GPUQ_UNLIMITED)
		gpuq_buf_printf(b, "%s: unlimited, ", key);
	else
		gpuq_buf_printf(b, "%s: %lld, ", key, (long long)n);
}

#define SAY_FACTOR(key, v, names) say_milli(&b, key, v)
#define SAY_INT(key, v, names) say_count(&b, key, v)
#define SAY_WORD(key, v, names) gpuq_buf_printf(&b, "%s: %s, ", key, (names)[v])
#define SAY_FLAG(key, v, names) gpuq_buf_printf(&b, "%s: %s, ", key, (v) ? "true" : "false")
#define SAY_SPAN(key, v, names)                                                                    \
	gpuq_buf_printf(&b, "%s: %llds, ", key, (long long)((v) / GPUQ_US_PER_S))
#define SAY_COUNT(key, v, names) say_count(&b, key, v)
#define SAY_LIMIT(key, v, names) say_count(&b, key, v)
#define SAY_DEVICES(key, v, names) say_milli(&b, key, v)

static struct gpuq_val *parse(struct gpuq_arena *mem, const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(mem, "f", text, strlen(text), &docs, &n, &err), 0, "%s\n%s",
		     err.text, text);
	return docs[0];
}

static const char *queue_text(struct gpuq_arena *mem, const struct policy_queue *p)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *text;

	gpuq_buf_adds(&b, "{version: 1, queues: [{");
#define X(kind, member, key, scenario, dflt, recorded, how, names, ...)                            \
	SAY_##kind(key, p->member, names);
	POLICY_QUEUE_KEYS(X)
#undef X
	gpuq_buf_adds(&b, "name: q}]}");
	text = gpuq_arena_strdup(mem, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return text;
}

static const char *sched_text(struct gpuq_arena *mem, const struct policy_sched *p)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *text;

	gpuq_buf_adds(&b, "{");
#define X(kind, member, key, dflt, absent, recorded, names, ...) SAY_##kind(key, p->member, names);
	POLICY_SCHED_KEYS(X)
#undef X
	gpuq_buf_adds(&b, "}");
	text = gpuq_arena_strdup(mem, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return text;
}

/* ---- what must be the same ---- */

static void same_queue(const char *where, const struct policy_queue *is,
		       const struct policy_queue *was)
{
#define X(kind, member, key, ...)                                                                  \
	cr_assert_eq(is->member, was->member, "%s: %s is %lld, and was %lld", where, key,          \
		     (long long)is->member, (long long)was->member);
	POLICY_QUEUE_KEYS(X)
#undef X
}

static void same_sched(const char *where, const struct policy_sched *is,
		       const struct policy_sched *was)
{
#define X(kind, member, key, ...)                                                                  \
	cr_assert_eq(is->member, was->member, "%s: %s is %lld, and was %lld", where, key,          \
		     (long long)is->member, (long long)was->member);
	POLICY_SCHED_KEYS(X)
#undef X
}

/* Scenarios count priorities in thousandths. */
#define IN_CASE_FACTOR(v) (v)
#define IN_CASE_INT(v) ((v) == INT64_MIN ? (v) : (v)*1000)
#define IN_CASE_WORD(v) (v)
#define IN_CASE_FLAG(v) (v)
#define IN_CASE_SPAN(v) (v)

static struct policy_queue in_case(struct policy_queue p)
{
#define X(kind, member, ...) p.member = IN_CASE_##kind(p.member);
	POLICY_QUEUE_KEYS(X)
#undef X
	return p;
}

/* ---- the ways ---- */

static struct site *site_of(const struct gpuq_val *v)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct site *s = NULL;

	cr_assert_eq(site_read(v, "f", 0, &s, &err), 0, "%s", err.text);
	return s;
}

struct parts {
	struct gpuq_buf config, queues;
};

static void add_part(void *arg, const struct gpuq_val *item)
{
	struct parts *p = arg;
	const char *part = gpuq_get_str(item, "part", "");
	struct gpuq_buf *b = strcmp(part, "config") == 0   ? &p->config
			     : strcmp(part, "queues") == 0 ? &p->queues
							   : NULL;

	if (b && b->len)
		gpuq_buf_adds(b, ", ");
	if (b)
		gpuq_json_write(b, gpuq_get(item, "value"), 0);
}

/* The only case of what the model exports. */
static const struct sc_case *exported(struct gpuq_arena *mem, const struct model *m)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct parts p = { GPUQ_BUF_INIT, GPUQ_BUF_INIT };
	struct sc_result *cases;
	const char *text;
	size_t n;

	cr_assert_eq(export_scenario(m, T0 + 1, add_part, &p, &err), 0, "%s", err.text);
	text = gpuq_arena_printf(mem, "{\"config\": %s, \"queues\": [%s]}", gpuq_buf_str(&p.config),
				 gpuq_buf_str(&p.queues));
	gpuq_buf_done(&p.config);
	gpuq_buf_done(&p.queues);
	cr_assert_eq(scenario_read(mem, "case", text, strlen(text), &cases, &n, &err), 0, "%s",
		     err.text);
	cr_assert(cases[0].c, "%s", cases[0].err.text);
	return cases[0].c;
}

static const struct snap_queue *queue_named(const struct snapshot *s, const char *name)
{
	const uint32_t q = snapshot_find_queue(s, name);

	cr_assert_neq(q, SNAP_NONE);
	return &s->queues[q];
}

/* A recorded cycle with that queue and that policy, written and read back. */
static void through_a_record(const struct policy_queue *queue, const struct policy_sched *sched)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct snap_config c;
	struct snap_queue q;
	struct snapshot *s, *back;
	struct rec r;

	snapshot_config_default(&c);
	c.sched = *sched;
	s = snapshot_new(&c);
	snapshot_add_flavor(s, "default", 0);
	snapshot_queue_default(&q);
	q.name = "q";
	q.policy = *queue;
	snapshot_add_queue(s, &q);
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	snapshot_pack(s, &b);
	r = (struct rec){ (const unsigned char *)b.data, (const unsigned char *)b.data + b.len,
			  false };
	cr_assert_eq(snapshot_unpack(&r, &back, &err), 0, "%s", err.text);
	same_sched("recorded", &back->config.sched, sched);
	same_queue("recorded", &back->queues[0].policy, queue);
	snapshot_free(back);
	snapshot_free(s);
	gpuq_buf_done(&b);
}

Test(keys, each_survives_every_form_of_it)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
		const struct policy_queue queue = any_queue(), on_paper = in_case(queue);
		const struct policy_sched sched = any_sched();
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_reader r = { .arena = &mem, .file = "f", .err = &err };
		struct event ev = { .type = EV_SITE_APPLIED, .at_us = T0 };
		struct site *site = site_of(parse(&mem, queue_text(&mem, &queue))), *again;
		struct policy_sched read;
		struct gpuq_buf b = GPUQ_BUF_INIT;
		struct disk d = { NULL, 0 };
		struct model *m = fresh(1, 1), *loaded;
		const struct sc_case *c;
		struct snapshot *s = NULL;

		same_queue("site file", &site_queue_find(site, "q")->policy, &queue);
		again = site_of(site->tree);
		same_queue("site exported", &site_queue_find(again, "q")->policy, &queue);
		site_free(again);

		cr_assert_eq(gpuq_schema_read(&r, &config_sched_schema,
					      parse(&mem, sched_text(&mem, &sched)), &read),
			     0, "%s", err.text);
		same_sched("gpuqd.yaml", &read, &sched);
		cr_assert_eq(gpuq_schema_read(&r, &config_sched_schema,
					      gpuq_schema_write(&mem, &config_sched_schema, &read),
					      &read),
			     0, "%s", err.text);
		same_sched("gpuqd.yaml printed", &read, &sched);

		gpuq_mp_write(&b, site->tree);
		ev.site.bytes = b.data;
		ev.site.len = b.len;
		cr_assert_eq(model_apply(m, &ev, &err), 0, "%s", err.text);
		disk_write(&d, m);
		loaded = disk_load(&d);
		same_queue("stored", &model_find_queue(loaded, "q")->site->policy, &queue);
		loaded->policy.sched = sched;
		cr_assert_eq(snapshot_take(loaded, T0 + 1, &s, &err), 0, "%s", err.text);
		same_sched("seen by a cycle", &s->config.sched, &sched);
		same_queue("seen by a cycle", &queue_named(s, "q")->policy, &queue);
		c = exported(&mem, loaded);
		same_sched("scenario", &c->config.sched, &sched);
		for (size_t i = 0; i < c->queues.n; i++) {
			const struct sc_queue *sq = (const struct sc_queue *)c->queues.items + i;

			if (strcmp(sq->name, "q") == 0)
				same_queue("scenario", &sq->policy, &on_paper);
		}
		through_a_record(&on_paper, &sched);
		snapshot_free(s);
		site_free(site);
		gpuq_buf_done(&b);
		model_free(loaded);
		model_free(m);
		disk_free(&d);
		gpuq_arena_done(&mem);
	}
}

/* ---- what was recorded before the rows were tables ---- */

static const char recorded[] =
	"dc0010dc0020cd03e80b0c0d01c2c201cd36b0cd3a98cd3e80cd42681213ceffffffffcd"
	"5208cd55f017cd5dc0191a1b1c1d1e1f20222123cd8e94c3909194a46131303000cd03e8c2"
	"90909292dc001ba5706c61696ec0cd03e80000c20000c2c2d38000000000000000ffff00"
	"c200d37fffffffffffffffd37fffffffffffffffd37fffffffffffffffd37fffffffffff"
	"ffffd37fffffffffffffff0000c2c2c2d37fffffffffffffff93940000d37fffffffffff"
	"ffffd37fffffffffffffff94d37fffffffffffffffd37fffffffffffffffd37fffffffff"
	"ffffffd37fffffffffffffff94d37fffffffffffffffd37fffffffffffffffd37fffffff"
	"ffffffffd37fffffffffffffff92dc001ba466756c6ca5706c61696ecd05dcfd02c30201"
	"c3c329cda410cda7f82cc32d2e2f3031323334c3c3c3359394000035d37fffffffffffff"
	"ff94d37fffffffffffffff00d37fffffffffffffffd37fffffffffffffff94d37fffffff"
	"ffffffff00d37fffffffffffffffd37fffffffffffffff90909090909090909090";

static void put_full(struct snap_config *c, struct snap_queue *q)
{
	snapshot_config_default(c);
	c->now_us = 1000;
	c->max_steps = 11;
	c->sched = (struct policy_sched){ .backfill_depth = 12,
					  .max_job_test = 13,
					  .reclaim_to = SNAP_RECLAIM_GUARANTEE,
					  .min_runtime_method = SNAP_RUNTIME_QUEUE,
					  .preempt_min_runtime_us = 14000,
					  .reclaim_min_runtime_us = 15000,
					  .cooldown_us = 16000,
					  .preemption_delay_us = 17000,
					  .claims_per_hour = 18,
					  .claim_reversals = 19,
					  .moves_per_day = GPUQ_UNLIMITED,
					  .grow_delay_us = 21000,
					  .gang_repair_us = 22000,
					  .starve_us = 24000,
					  .exempt_evictions = 25,
					  .claim_spare_milli = 36500,
					  .cross_queue_priority = true };
	c->reclaim = false;
	c->usage_k_milli = 23;
	c->weights = (struct snap_weights){ 26, 27, 28, 29, 30, 31, 32, 33 };
	c->usage_step_us = 34;
	c->wake_us = 35;
	snapshot_queue_default(q);
	q->name = "full";
	q->parent_name = "plain";
	q->policy = (struct policy_queue){ .weight_milli = 1500,
					   .rank = -3,
					   .stopped = true,
					   .reclaim = SNAP_RECLAIM_LOWER,
					   .preempt = SNAP_PREEMPT_LOWER_OR_NEWER,
					   .fence = true,
					   .reclaimable = false,
					   .borrow_preempt_max_priority = 41,
					   .preempt_min_runtime_us = 42000,
					   .reclaim_min_runtime_us = 43000,
					   .own_preempt = POLICY_OWN_STRICT,
					   .budget_demotes_guarantee = true };
	q->age = 2;
	q->usage_micro = 44;
	q->n_claims_hour = 45;
	q->user_max_running = 46;
	q->user_max_gpus_milli = 47;
	q->max_running = 48;
	q->job_max_gpus_milli = 49;
	q->budget_gpu_ms = 50;
	q->budget_used_gpu_ms = 51;
	q->budget_reset_us = 52;
	q->budget_hard = q->spread = true;
	q->max_gpus_milli = 53;
}

Test(keys, a_recorded_cycle_keeps_its_bytes)
{
	struct gpuq_buf b = GPUQ_BUF_INIT, hex = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_config c;
	struct snap_queue q, plain;
	struct snapshot *s, *back;
	struct rec r;

	put_full(&c, &q);
	s = snapshot_new(&c);
	snapshot_add_flavor(s, "a100", 0);
	snapshot_queue_default(&plain);
	plain.name = "plain";
	snapshot_add_queue(s, &plain);
	snapshot_add_queue(s, &q);
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	snapshot_pack(s, &b);
	for (size_t i = 0; i < b.len; i++)
		gpuq_buf_printf(&hex, "%02x", (unsigned char)b.data[i]);
	cr_expect_str_eq(gpuq_buf_str(&hex), recorded);

	/* And is read as what it said. */
	r = (struct rec){ (const unsigned char *)b.data, (const unsigned char *)b.data + b.len,
			  false };
	cr_assert_eq(snapshot_unpack(&r, &back, &err), 0, "%s", err.text);
	same_sched("recorded before", &back->config.sched, &c.sched);
	same_queue("recorded before", &queue_named(back, "full")->policy, &q.policy);
	same_queue("recorded before", &queue_named(back, "plain")->policy, &plain.policy);
	snapshot_free(back);
	snapshot_free(s);
	gpuq_buf_done(&hex);
	gpuq_buf_done(&b);
}
