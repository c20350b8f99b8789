/* The numbers behind decisions, kept for later queries. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/sched/sched.h"
#include "gpuqd/flow/advise/why_log.h"
#include "libgpuq/units.h"

#define NOW (INT64_C(1700000000) * GPUQ_US_PER_S)

/* One node of two devices, all used by a queue that owns none of them; the owner of one
 * asks for it. */
static struct snapshot *world(void)
{
	struct snap_config config;
	struct snap_share shares[3];
	struct snap_queue q;
	struct snap_node n;
	struct snap_group g = { .name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = 1000 };
	struct snap_request r = { .groups = &g, .n_groups = 1 };
	struct snap_job j;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s;
	uint32_t request;

	snapshot_config_default(&config);
	config.now_us = NOW;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "a100", 0);
	for (int i = 0; i < 3; i++)
		snapshot_share_default(&shares[i]);
	for (int i = 0; i < 2; i++) {
		snapshot_queue_default(&q);
		shares[0].quota = i ? 2000 : 0;
		q.name = i ? "owner" : "guest";
		q.shares = shares;
		q.age = i;
		snapshot_add_queue(s, &q);
	}
	snapshot_node_default(&n);
	n.name = "n0";
	n.cpu_milli = n.memory_bytes = n.pods = GPUQ_UNLIMITED;
	n.flavor = 0;
	n.n_devices = 2;
	snapshot_add_node(s, &n);
	request = snapshot_add_request(s, &r);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t device = i;
		struct snap_alloc a = { .devices = &device, .n_devices = 1, .milli = 1000 };

		snapshot_job_default(&j);
		j.key = (struct snap_key){ i + 1, -1 };
		j.queue = i == 2;
		j.user = snapshot_user(s, "ann");
		j.request = request;
		j.submit_us = NOW - 60 * GPUQ_US_PER_S;
		if (i < 2) {
			j.state = SNAP_RUNNING;
			j.start_us = NOW - 3600 * GPUQ_US_PER_S;
		}
		a.job = snapshot_add_job(s, &j);
		if (i < 2)
			snapshot_add_alloc(s, &a);
	}
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	return s;
}

Test(why_log, remembers_a_claim_for_both_sides)
{
	struct why_log *log = why_log_new();
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = world();
	struct plan p;

	cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0);
	cr_assert_eq(p.n_claims, 1);
	why_log_note(log, s, &p);
	/* The claimant, its victim, and one that it is not about. */
	for (uint32_t id = 1; id <= 3; id++) {
		struct gpuq_val *v = gpuq_map(&mem);
		const struct gpuq_val *claims, *sides;
		const struct plan_action *evict = &p.actions[1];

		why_log_put(log, (struct job_key){ id, -1 }, &mem, v);
		claims = gpuq_get(v, "claims");
		cr_expect_eq(claims->n, id == 3 || id == evict->key.id, "job %u", id);
		if (!claims->n)
			continue;
		sides = gpuq_get(claims->items[0], "sides");
		cr_expect_str_eq(gpuq_get_str(claims->items[0], "job", ""), "3");
		cr_expect_str_eq(gpuq_get_str(sides->items[0], "queue", ""), "owner");
		cr_expect_eq(gpuq_get_int(sides->items[0], "before", -1), 0);
		cr_expect_eq(gpuq_get_int(sides->items[0], "after", -1), 1);
		cr_expect_eq(gpuq_get_int(sides->items[0], "quota", -1), 2);
		cr_expect_eq(gpuq_get_int(sides->items[1], "before", -1), 2);
		cr_expect_eq(gpuq_get_int(sides->items[1], "after", -1), 1);
	}
	why_log_free(log);
	snapshot_free(s);
	gpuq_arena_done(&mem);
}

Test(why_log, remembers_starts_newest_first_and_forgets_the_oldest)
{
	struct why_log *log = why_log_new();
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct snapshot *s = world();
	const struct plan_action place = {
		.kind = PLAN_PLACE, .job = 2, .key = { 3, -1 }, .claimant = SNAP_NONE
	};
	int64_t amounts[16] = { 1000, 1000, 1000, 2000, 2000, 2000 };
	const struct plan p = { .actions = &place,
				.n_actions = 1,
				.fair_share = amounts,
				.allocated = amounts,
				.demand = amounts };
	struct gpuq_val *v = gpuq_map(&mem);
	const struct gpuq_val *starts;

	why_log_note(log, s, &p);
	s->config.now_us += GPUQ_US_PER_S;
	why_log_note(log, s, &p);
	why_log_put(log, (struct job_key){ 3, -1 }, &mem, v);
	starts = gpuq_get(v, "starts");
	cr_assert_eq(starts->n, 2);
	cr_expect_eq(gpuq_get_int(starts->items[0], "waited_s", 0), 61);
	cr_expect_eq(gpuq_get_int(starts->items[1], "waited_s", 0), 60);
	cr_expect_str_eq(gpuq_get_str(starts->items[0], "queue", ""), "owner");
	cr_expect_eq(gpuq_get_int(starts->items[0], "allocated", 0), 2);
	/* Others came since: nothing is known any more. */
	s->jobs[2].key.id = 4;
	for (int i = 0; i < 5000; i++) {
		struct plan_action other = place;
		struct plan q = p;

		other.key.id = 4;
		q.actions = &other;
		why_log_note(log, s, &q);
	}
	v = gpuq_map(&mem);
	why_log_put(log, (struct job_key){ 3, -1 }, &mem, v);
	cr_expect_eq(gpuq_get(v, "starts")->n, 0);
	why_log_free(log);
	snapshot_free(s);
	gpuq_arena_done(&mem);
}
