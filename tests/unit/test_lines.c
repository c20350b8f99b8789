#include <criterion/criterion.h>

#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/snapshot/snapshot.h"

/* Lines of a sealed snapshot: pending jobs, as runs of identical ones, and busy jobs. */

#define JOBS 60
#define HOUR_US (3600 * GPUQ_US_PER_S)
#define NOW_US (100 * HOUR_US)

static uint64_t dice;

static uint32_t below(uint32_t n)
{
	dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(dice >> 33) % n;
}

static struct snapshot *begin(uint32_t requests[2])
{
	struct snap_group g = { .name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = 1000 };
	const struct snap_request r = { .groups = &g, .n_groups = 1 };
	struct snap_config config;
	struct snapshot *s;
	struct snap_node n;

	snapshot_config_default(&config);
	config.now_us = NOW_US;
	config.weights.size = 500;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	snapshot_user(s, "ann");
	snapshot_user(s, "bob");
	for (int i = 0; i < 2; i++) {
		struct snap_queue q;

		snapshot_queue_default(&q);
		q.name = i ? "b" : "a";
		q.age = i;
		snapshot_add_queue(s, &q);
		requests[i] = snapshot_add_request(s, &r);
		g.gpus_milli = 2000;
	}
	snapshot_node_default(&n);
	n.name = "n1";
	n.flavor = 0;
	n.n_devices = 8;
	snapshot_add_node(s, &n);
	return s;
}

static struct snap_job any_job(uint32_t id, const uint32_t *requests)
{
	static const struct snap_range elements = { 0, 2, 1 };
	struct snap_job j;

	snapshot_job_default(&j);
	j.key.id = id;
	j.queue = below(2);
	j.request = requests[below(2)];
	j.user = below(2);
	j.submit_us = (int64_t)below(120) * HOUR_US;
	j.eligible_us = below(2) ? (int64_t)below(120) * HOUR_US : 0;
	j.walltime_us = below(3) ? (1 + (int64_t)below(2) * 30) * HOUR_US : GPUQ_UNLIMITED;
	j.n_evicted_day = below(4) == 0;
	j.nice = below(4) == 0 ? 7 : 0;
	j.fixed_priority = below(8) == 0 ? 5 : 0;
	j.walltime_min_us = below(8) == 0 ? 60 : 0;
	j.held = below(8) == 0 ? SNAP_HELD_USER : 0;
	j.gate = below(8) == 0 ? GPUQ_R_DEPENDENCY : GPUQ_R_NONE;
	j.gate_object = below(2) ? "afterok:1" : "afterok:2";
	if (below(8) == 0) {
		j.ranges = &elements;
		j.n_ranges = 1;
	}
	if (below(10) == 0)
		j.throttle = 1 + below(3);
	if (below(8) == 0) {
		j.state = SNAP_RUNNING;
		j.start_us = NOW_US;
		j.ranges = NULL;
		j.n_ranges = 0;
	}
	return j;
}

/* True if a query about one of them alone could not tell the two apart. */
static bool alike(const struct snap_job *x, const struct snap_job *y)
{
	return x->queue == y->queue && x->user == y->user && x->request == y->request &&
	       x->priority == y->priority && x->nice == y->nice && x->boost == y->boost &&
	       x->fixed_priority == y->fixed_priority && x->walltime_min_us == y->walltime_min_us &&
	       x->begin_us == y->begin_us && x->deadline_us == y->deadline_us &&
	       x->walltime_us == y->walltime_us && x->held == y->held && x->gate == y->gate &&
	       strcmp(x->gate_object, y->gate_object) == 0 && x->preemptible == y->preemptible &&
	       x->n_evicted_day == y->n_evicted_day && !x->n_ranges && !y->n_ranges &&
	       !x->throttle && !y->throttle && !x->n_promises && !y->n_promises && !x->n_exclude &&
	       !y->n_exclude;
}

/* Each of the run is alike, and stands where priority, submit time and id want it. */
static uint32_t check_run(const struct snapshot *s, const struct priority *p, uint32_t run,
			  uint32_t *seen)
{
	const struct snap_run *r = &s->lines.runs[run];
	uint32_t n = 0, last = SNAP_NONE;

	for (uint32_t i = r->first; i != SNAP_NONE; i = s->lines.behind[i]) {
		cr_assert_eq(s->lines.run_of[i], run);
		cr_assert_eq(seen[i]++, 0, "job %u stands in two places", s->jobs[i].key.id);
		if (n++ > 0) {
			const uint64_t a = priority_key(p, last), b = priority_key(p, i);

			cr_assert(alike(&s->jobs[last], &s->jobs[i]));
			cr_assert(a > b ||
				  (a == b && s->jobs[last].submit_us <= s->jobs[i].submit_us));
			cr_assert_lt(last, i);
		}
		last = i;
	}
	cr_assert_eq(r->last, last);
	cr_assert_eq(r->n_jobs, n);
	return n;
}

static void check(const struct snapshot *s, uint32_t *longest)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct priority *p = priority_new(s, &mem);
	uint32_t seen[JOBS] = { 0 }, busy = 0;

	cr_assert_not_null(p);
	for (uint32_t q = 0; q < s->n_queues; q++)
		for (uint32_t r = s->lines.first_run[q]; r != SNAP_NONE;
		     r = s->lines.runs[r].next) {
			const uint32_t n = check_run(s, p, r, seen);

			cr_assert_eq(s->jobs[s->lines.runs[r].first].queue, q);
			*longest = n > *longest ? n : *longest;
		}
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const bool waits = s->jobs[i].state == SNAP_PENDING;

		cr_assert_eq(seen[i], waits);
		cr_assert_eq(s->lines.run_of[i] == SNAP_NONE, !waits);
		if (!waits)
			cr_assert_eq(s->lines.busy[busy++], i);
	}
	cr_assert_eq(s->lines.n_busy, busy);
	gpuq_arena_done(&mem);
}

Test(lines, runs_are_alike_and_in_order)
{
	uint32_t longest = 0;

	for (dice = 1; dice < 300; dice++) {
		const uint64_t seed = dice;
		struct gpuq_err err = GPUQ_ERR_INIT;
		uint32_t requests[2];
		struct snapshot *s = begin(requests);

		for (uint32_t i = 0; i < JOBS; i++) {
			const struct snap_job j = any_job(i + 1, requests);

			snapshot_add_job(s, &j);
		}
		cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
		check(s, &longest);
		snapshot_free(s);
		dice = seed;
	}
	cr_assert_gt(longest, 2, "nobody was alike");
}

/* Jobs that came one after the other and ask for the same are one run. */
Test(lines, what_is_alike_is_one)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	uint32_t requests[2];
	struct snapshot *s = begin(requests);

	for (uint32_t i = 0; i < 1000; i++) {
		struct snap_job j;

		snapshot_job_default(&j);
		j.key.id = i + 1;
		j.queue = i % 2;
		j.request = requests[i / 2 % 2];
		j.user = 0;
		j.submit_us = i;
		snapshot_add_job(s, &j);
	}
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	cr_expect_eq(s->lines.n_runs, 4);
	for (uint32_t i = 0; i < s->lines.n_runs; i++)
		cr_expect_eq(s->lines.runs[i].n_jobs, 250);
	snapshot_free(s);
}

/* Elements of one array, of which some run and some wait, count as one where any of them
 * has a throttle. */
Test(lines, arrays_with_a_throttle_are_numbered)
{
	static const struct snap_range waiting = { 5, 9, 1 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	uint32_t requests[2];
	struct snapshot *s = begin(requests);
	struct snap_job j;

	for (uint32_t id = 1; id <= 3; id++) {
		snapshot_job_default(&j);
		j.key = (struct snap_key){ id, -1 };
		j.request = requests[0];
		j.queue = 0;
		j.user = 0;
		j.ranges = &waiting;
		j.n_ranges = 1;
		j.throttle = id == 2 ? 0 : 4;
		snapshot_add_job(s, &j);
		j.key.index = 3;
		j.ranges = NULL;
		j.n_ranges = j.throttle = 0;
		j.state = SNAP_RUNNING;
		snapshot_add_job(s, &j);
	}
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	cr_expect_eq(s->lines.n_arrays, 2);
	for (uint32_t i = 0; i < 6; i++)
		cr_expect_eq(s->lines.array_of[i], i < 2 ? 0 : i < 4 ? SNAP_NONE : 1);
	snapshot_free(s);
}
