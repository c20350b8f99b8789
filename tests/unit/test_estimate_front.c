/* A long line of which only the front is lived on: the same starts come out. */
#include <criterion/criterion.h>

#include "gpuqd/sched/estimate/estimate.h"
#include "libgpuq/units.h"

#define NOW (INT64_C(1700000000) * GPUQ_US_PER_S)
#define MIN (60 * GPUQ_US_PER_S)
#define N_JOBS 900u

static uint32_t add_queue(struct snapshot *s, const char *name)
{
	struct snap_share shares[3];
	struct snap_queue q;

	snapshot_queue_default(&q);
	for (int i = 0; i < 3; i++)
		snapshot_share_default(&shares[i]);
	q.name = name;
	q.shares = shares;
	return snapshot_add_queue(s, &q);
}

static void add_nodes(struct snapshot *s)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct snap_node node;

		snapshot_node_default(&node);
		node.name = i ? "n1" : "n0";
		node.pool = "default";
		node.flavor = 0;
		node.cpu_milli = 64000;
		node.memory_bytes = INT64_C(64) << 30;
		node.pods = GPUQ_UNLIMITED;
		node.n_devices = 8;
		snapshot_add_node(s, &node);
	}
}

/* No two of them ask for the same; gpus of 1 to 4, and every ninth none. */
static void add_job(struct snapshot *s, uint32_t i, uint32_t queue, uint32_t user)
{
	struct snap_group g = { .name = "main", .pods_min = 1, .pods_max = 1 };
	struct snap_request r = { .groups = &g, .n_groups = 1 };
	struct snap_job j;

	g.gpus_milli = i % 9 == 8 ? 0 : (1 + i * 7 % 4) * 1000;
	g.cpu_milli = 100 + i;
	g.memory_bytes = INT64_C(1) << 20;
	snapshot_job_default(&j);
	j.key = (struct snap_key){ i + 1, -1 };
	j.queue = queue;
	j.user = user;
	j.request = snapshot_add_request(s, &r);
	j.submit_us = NOW - 5000 * MIN + i;
	j.walltime_us = (10 + i * 13 % 97) * MIN;
	j.held = i % 50 == 49 ? SNAP_HELD_USER : 0;
	snapshot_add_job(s, &j);
}

static struct snapshot *many_jobs(void)
{
	struct snap_config config;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s;
	uint32_t a, b, user;

	snapshot_config_default(&config);
	config.now_us = NOW;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "a100", 0);
	a = add_queue(s, "a");
	b = add_queue(s, "b");
	add_nodes(s);
	user = snapshot_user(s, "ann");
	for (uint32_t i = 0; i < N_JOBS; i++)
		add_job(s, i, i % 3 ? a : b, user);
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	return s;
}

static void starts(const struct snapshot *s, uint32_t front, const uint32_t *jobs, uint32_t n,
		   struct gpuq_arena *mem, struct estimate *out)
{
	const struct estimate_config config = { .front = front, .claims = true };
	struct estimate_reach reach;
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(estimate_starts(s, &config, jobs, n, mem, out, &reach, &err), 0, "%s",
		     err.text);
	cr_expect(!reach.cut_short);
}

Test(estimate_front, the_front_of_a_line_tells_what_all_of_it_does)
{
	static const uint32_t jobs[] = { 3, 20, 60, 333, 600, 880 };
	const uint32_t n = sizeof(jobs) / sizeof(jobs[0]);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct snapshot *s = many_jobs();
	struct estimate all[6], some[6];

	starts(s, 0, jobs, n, &mem, all);
	starts(s, 64, jobs, n, &mem, some);
	for (uint32_t i = 0; i < n; i++) {
		const int64_t soon = all[i].start_us - NOW, found = some[i].start_us - NOW;

		cr_expect_neq(some[i].start_us, GPUQ_UNLIMITED, "job %u", jobs[i]);
		cr_expect(jobs[i] > 64 || found == soon, "job %u: %ld s, not %ld", jobs[i],
			  (long)(found / GPUQ_US_PER_S), (long)(soon / GPUQ_US_PER_S));
		/* A job far behind is backfilled less often. */
		cr_expect_geq(found, soon - soon / 20, "job %u", jobs[i]);
	}
	snapshot_free(s);
	gpuq_arena_done(&mem);
}
