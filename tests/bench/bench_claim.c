/* How long claims take: a gang takes back what another queue borrowed, on clusters full of
 * one-GPU jobs; and whole cycles on a large site. Prints one line a case; measures,
 * judges nothing. bench_claim ROW measures one of them, from 1: for counting instructions. */
#include <stdlib.h>

#include "gpuqd/sched/sched.h"
#include "tests/bench/bench_core.h"

#define MINUTE_US (60 * GPUQ_US_PER_S)

struct site {
	const char *name;
	uint32_t nodes, queues;
	uint32_t running; /* jobs, each of gpus_running devices, node after node */
	uint32_t gpus_running;
	uint32_t waiting; /* one-GPU jobs */
	uint32_t gang; /* of eight devices a pod, in the last queue */
	uint32_t quota; /* devices, of the last queue */
};

static struct snapshot *new_site(const struct site *b)
{
	struct snap_config config;
	struct snapshot *s;
	char name[32];

	snapshot_config_default(&config);
	config.now_us = 600 * MINUTE_US;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	bench_nodes(s, b->nodes);
	for (uint32_t i = 0; i < b->queues; i++) {
		struct snap_share shares[3];
		struct snap_queue q;

		snapshot_queue_default(&q);
		for (int r = 0; r < 3; r++)
			snapshot_share_default(&shares[r]);
		if (i + 1 == b->queues)
			shares[0].quota = (int64_t)b->quota * SNAP_MILLI;
		q.shares = shares;
		snprintf(name, sizeof(name), "queue-%03" PRIu32, i);
		q.name = name;
		q.age = i;
		snapshot_add_queue(s, &q);
	}
	return s;
}

static void add_jobs(struct snapshot *s, const struct site *b)
{
	const uint32_t user = snapshot_user(s, "ann"), lenders = b->queues > 1 ? b->queues - 1 : 1;
	uint32_t id = 1, node = 0, device = 0;

	for (uint32_t i = 0; i < b->running; i++) {
		uint32_t devices[8];
		struct snap_alloc a = { .devices = devices,
					.n_devices = b->gpus_running,
					.milli = SNAP_MILLI };
		struct snap_job j;

		snapshot_job_default(&j);
		j.key.id = id++;
		j.user = user;
		j.queue = i % lenders;
		j.state = SNAP_RUNNING;
		j.start_us = j.submit_us = (1 + i % 500) * MINUTE_US;
		j.request = bench_request(s, 1, (int64_t)b->gpus_running * SNAP_MILLI, 1000);
		if (device + b->gpus_running > 8) {
			node++;
			device = 0;
		}
		for (uint32_t d = 0; d < b->gpus_running; d++)
			devices[d] = device++;
		a.job = snapshot_add_job(s, &j);
		a.node = node;
		snapshot_add_alloc(s, &a);
	}
	for (uint32_t i = 0; i < b->waiting + (b->gang > 0); i++) {
		struct snap_job j;

		snapshot_job_default(&j);
		j.key.id = id++;
		j.user = user;
		j.submit_us = 500 * MINUTE_US + i;
		j.queue = i < b->waiting ? i % lenders : b->queues - 1;
		j.request = i < b->waiting ? bench_request(s, 1, SNAP_MILLI, 1000)
					   : bench_request(s, b->gang, 8 * SNAP_MILLI, 1000);
		snapshot_add_job(s, &j);
	}
}

static uint32_t count(const struct plan *p, enum plan_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_actions; i++)
		n += p->actions[i].kind == kind;
	return n;
}

int main(int argc, char **argv)
{
	static const struct site sites[] = {
		{ "reclaim: 100 full nodes, gang of 10 x 8", 100, 2, 800, 1, 0, 10, 80 },
		{ "reclaim: 500 full nodes, gang of 50 x 8", 500, 2, 4000, 1, 0, 50, 400 },
		{ "reclaim: 1,000 full nodes, gang of 100 x 8", 1000, 2, 8000, 1, 0, 100, 800 },
		{ "the same beside 50 queues that lend", 1000, 51, 8000, 1, 0, 100, 800 },
		{ "500 queues, 5,000 run, 100,000 wait", 10000, 500, 5000, 8, 100000, 0, 0 },
		{ "500 queues, full, 10,000 run, 100,000 wait", 10000, 500, 10000, 8, 100000, 0,
		  0 },
	};

	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct snapshot *s;
		struct plan p = { 0 };
		double t0, t1, t2;

		if (argc > 1 && (size_t)strtoul(argv[1], NULL, 10) != i + 1)
			continue;
		s = new_site(&sites[i]);
		add_jobs(s, &sites[i]);
		t0 = bench_seconds();
		if (snapshot_seal(s, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		t1 = bench_seconds();
		if (sched_cycle(s, &mem, &p, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		t2 = bench_seconds();
		printf("%-43s %6" PRIu32 " jobs  seal %6.1f ms  decide %7.1f ms  %" PRIu32
		       " starts  %" PRIu32 " promised  %" PRIu32 " evicted\n",
		       sites[i].name, sites[i].waiting + (sites[i].gang > 0), (t1 - t0) * 1e3,
		       (t2 - t1) * 1e3, count(&p, PLAN_PLACE), count(&p, PLAN_NOMINATE),
		       count(&p, PLAN_EVICT));
		snapshot_free(s);
		gpuq_arena_done(&mem);
	}
	return 0;
}
