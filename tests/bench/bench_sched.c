/* How long decisions take: one-GPU jobs onto an empty cluster, and a full cluster with
 * many more waiting. Prints one line a case; measures, judges nothing.
 * bench_sched ROW measures one of them, from 1: for counting instructions. */
#include <stdlib.h>

#include "gpuqd/sched/sched.h"
#include "tests/bench/bench_core.h"

#define QUEUES 50

enum {
	PLAIN,
	FULL = 1, /* a job holds every node */
	HUNGRY = 2, /* cpu may run out before devices do */
	TIMED = 4, /* all jobs have walltimes, so that starts can be planned */
	RESOURCES = 8, /* nodes have five countable resources, one of which each job needs */
	HALVES = 16, /* each job has half a device */
	GROWS = 32, /* pools that could grow, by nodes that are too small for the jobs */
};

#define POOLS 50
#define POOL_NODES 20

static const struct snap_resource five[] = { { "rdma/hca", 8, 0 },
					     { "example.com/nic", 8, 0 },
					     { "hugepages-2Mi", 8, 0 },
					     { "example.com/fpga", 8, 0 },
					     { "vpu", 8, 0 } };
#define N_FIVE (sizeof(five) / sizeof(five[0]))

struct bench {
	const char *name;
	uint32_t nodes, jobs, gpus, pods, kinds;
	unsigned is; /* of the following */
};

static int64_t cpu_of(const struct bench *b, uint32_t i)
{
	/* 16 cores for each device: some kinds need more, some less. */
	if (b->is & HUNGRY)
		return 2000 + i % b->kinds * 28000 / b->kinds;
	return 4000 + i % b->kinds;
}

static int64_t milli_of(const struct bench *b, uint32_t i)
{
	if (b->is & HALVES)
		return 500;
	return b->gpus ? (int64_t)b->gpus * SNAP_MILLI : 50 + i % b->kinds * 900 / b->kinds;
}

static void add_pools(struct snapshot *s)
{
	char name[48], pool[32];

	for (uint32_t i = 0; i < POOLS * POOL_NODES; i++) {
		struct snap_node n;

		snapshot_node_default(&n);
		snprintf(pool, sizeof(pool), "pool-%02" PRIu32, i / POOL_NODES);
		snprintf(name, sizeof(name), "%s/%" PRIu32, pool, i % POOL_NODES);
		n.name = name;
		n.pool = pool;
		n.flavor = 0;
		n.n_devices = 4;
		n.state = SNAP_PLANNED;
		n.made_up = true;
		n.max_asks = 100;
		n.run_us = INT64_C(605400) * GPUQ_US_PER_S;
		n.lasts = true;
		n.cpu_milli = 64000;
		n.memory_bytes = INT64_C(1) << 39;
		snapshot_add_node(s, &n);
	}
}

static struct snapshot *build(const struct bench *b)
{
	struct snap_config config;
	struct snapshot *s;
	uint32_t user;
	char name[32];

	snapshot_config_default(&config);
	config.now_us = 1;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	user = snapshot_user(s, "ann");
	bench_nodes_with(s, b->nodes, five, b->is & RESOURCES ? N_FIVE : 0);
	if (b->is & GROWS)
		add_pools(s);
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct snap_queue q;

		snapshot_queue_default(&q);
		snprintf(name, sizeof(name), "queue-%03" PRIu32, i);
		q.name = name;
		q.age = i;
		snapshot_add_queue(s, &q);
	}
	for (uint32_t i = 0; i < b->jobs + (b->is & FULL ? b->nodes : 0); i++) {
		static const uint32_t all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
		struct snap_alloc a = { .devices = all, .n_devices = 8, .milli = SNAP_MILLI };
		struct snap_job j;

		snapshot_job_default(&j);
		j.key.id = i + 1;
		j.user = user;
		j.submit_us = i;
		j.queue = i % QUEUES;
		if (b->is & TIMED)
			j.walltime_us = (1 + i * UINT64_C(7919) % 5000) * 60 * GPUQ_US_PER_S;
		if (i < b->jobs) {
			j.request = bench_request_with(
				s, b->pods, milli_of(b, i), cpu_of(b, i),
				b->is & RESOURCES ? five[i % b->kinds % N_FIVE].name : NULL);
			snapshot_add_job(s, &j);
			continue;
		}
		j.state = SNAP_RUNNING;
		j.request = bench_request(s, 1, INT64_C(8) * SNAP_MILLI, 8000);
		a.job = snapshot_add_job(s, &j);
		a.node = i - b->jobs;
		snapshot_add_alloc(s, &a);
	}
	return s;
}

static uint32_t count_reasons(const struct snapshot *s, const struct plan *p)
{
	const struct plan_reason *why;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++)
		n += plan_reasons(s, p, i, &why);
	return n;
}

int main(int argc, char **argv)
{
	static const struct bench benches[] = {
		{ "10,000 one-GPU jobs, 1,250 empty nodes", 1250, 10000, 1, 1, 1, PLAIN },
		{ "10,000 one-GPU jobs of 100 kinds", 1250, 10000, 1, 1, 100, PLAIN },
		{ "20 kinds, some short of cpu", 1250, 10000, 1, 1, 20, HUNGRY },
		{ "the same on 10,000 nodes", 10000, 10000, 1, 1, 20, HUNGRY },
		{ "10,000 parts of devices, 20 sizes", 1250, 10000, 0, 1, 20, PLAIN },
		{ "1,000 gangs of 16 x 4 GPUs, 10,000 nodes", 10000, 1000, 4, 16, 1, PLAIN },
		{ "1,000 waiting, 10,000 full nodes", 10000, 1000, 1, 1, 10, FULL },
		{ "100,000 waiting, 1,250 full nodes", 1250, 100000, 1, 1, 10, FULL },
		{ "100,000 waiting, 10,000 full nodes", 10000, 100000, 1, 1, 10, FULL },
		{ "the same, no two alike", 10000, 100000, 1, 1, 100000, FULL },
		{ "no two alike, with walltimes", 10000, 100000, 1, 1, 100000, FULL | TIMED },
		{ "the same with walltimes", 10000, 100000, 1, 1, 10, FULL | TIMED },
		{ "the same with gangs of 16 x 8", 10000, 100000, 8, 16, 10, FULL | TIMED },
		{ "10,000 one-GPU jobs of 100 kinds, 5 resources", 1250, 10000, 1, 1, 100,
		  RESOURCES },
		{ "10,000 half-GPU jobs, 625 empty nodes", 625, 10000, 0, 1, 1, HALVES },
		{ "100,000 waiting for whole nodes, 1,250 full", 1250, 100000, 8, 1, 10, FULL },
		{ "the same, 50 pools could grow (aim 1.3 times)", 1250, 100000, 8, 1, 10,
		  FULL | GROWS },
	};

	for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;

		if (argc > 1 && (size_t)strtoul(argv[1], NULL, 10) != i + 1)
			continue;
		double t0 = bench_seconds(), t1, t2, t3;
		struct snapshot *s = build(&benches[i]);
		struct plan p = { 0 };

		t1 = bench_seconds();
		if (snapshot_seal(s, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		t2 = bench_seconds();
		if (sched_cycle(s, &mem, &p, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		t3 = bench_seconds();
		printf("%-43s %6" PRIu32
		       " jobs  add %6.1f ms  seal %6.1f ms  decide %7.1f ms  %" PRIu32
		       " starts (%.0f/s)  %" PRIu32 " reasons  %.1f MB\n",
		       benches[i].name, benches[i].jobs, (t1 - t0) * 1e3, (t2 - t1) * 1e3,
		       (t3 - t2) * 1e3, p.n_actions, p.n_actions / (t3 - t2), count_reasons(s, &p),
		       (double)mem.used_bytes / 1e6);
		snapshot_free(s);
		gpuq_arena_done(&mem);
	}
	return 0;
}
