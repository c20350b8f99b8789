/* How long a cycle takes where jobs are all alike, and where no two are: each pair of rows is
 * one cluster with the same jobs, but for what they ask for. Measures, judges nothing.
 * bench_unlike ROW measures one pair, from 1. */
#include <stdlib.h>

#include "gpuqd/sched/sched.h"
#include "tests/bench/bench_core.h"

#define QUEUES 50
#define STEP_WORK 20000

enum fill {
	EMPTY,
	FULL, /* a job holds every node */
	APART, /* two devices of each node are free, and most of its cpu is taken */
};

struct pair {
	const char *name;
	uint32_t nodes, jobs;
	enum fill fill;
	bool timed;
	uint32_t pools; /* that could grow by four nodes each */
	int64_t machine_cpu_milli; /* of these nodes; waiting jobs need 4000 at least */
};

struct cost {
	double seal_ms, decide_ms;
	uint32_t n_actions;
};

static void add_queues(struct snapshot *s)
{
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct snap_queue q;
		char name[32];

		snapshot_queue_default(&q);
		snprintf(name, sizeof(name), "queue-%03" PRIu32, i);
		q.name = name;
		q.age = i;
		snapshot_add_queue(s, &q);
	}
}

/* Nodes that do not exist yet. */
static void add_pools(struct snapshot *s, const struct pair *p)
{
	for (uint32_t i = 0; i < 4 * p->pools; i++) {
		struct snap_node n;
		char name[32], pool[32];

		snapshot_node_default(&n);
		snprintf(name, sizeof(name), "pool-%03" PRIu32, i);
		snprintf(pool, sizeof(pool), "pool-%03" PRIu32, i / 4);
		n.name = name;
		n.pool = pool;
		n.flavor = 0;
		n.state = SNAP_PLANNED;
		n.n_devices = 8;
		n.cpu_milli = p->machine_cpu_milli;
		snapshot_add_node(s, &n);
	}
}

/* Holders of a node from the beginning. */
static void add_tenant(struct snapshot *s, const struct pair *p, uint32_t user, uint32_t node)
{
	static const uint32_t all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const uint32_t n = p->fill == FULL ? 8 : 6;
	struct snap_alloc a = { .devices = all, .n_devices = n, .milli = SNAP_MILLI, .node = node };
	struct snap_job j;

	snapshot_job_default(&j);
	j.key.id = p->jobs + node + 1;
	j.user = user;
	j.queue = node % QUEUES;
	j.state = SNAP_RUNNING;
	j.request = bench_request(s, 1, (int64_t)n * SNAP_MILLI, p->fill == FULL ? 8000 : 126000);
	if (p->timed)
		j.walltime_us = (1 + node * UINT64_C(7919) % 5000) * 60 * GPUQ_US_PER_S;
	a.job = snapshot_add_job(s, &j);
	snapshot_add_alloc(s, &a);
}

/* One of the jobs that wait. */
static void add_waiter(struct snapshot *s, const struct pair *p, uint32_t user, uint32_t i,
		       bool unlike)
{
	struct snap_group g = { .name = "main", .pods_min = 1, .pods_max = 1 };
	const struct snap_request r = { .groups = &g, .n_groups = 1 };
	struct snap_job j;

	g.gpus_milli = (unlike ? 1 + i % 4 : 1) * INT64_C(1000);
	g.cpu_milli = unlike ? 4000 + i % 20000 : 4000;
	g.memory_bytes = (unlike ? INT64_C(16384) + i : 16384) << 20;
	snapshot_job_default(&j);
	j.key.id = i + 1;
	j.user = user;
	j.submit_us = i;
	j.queue = i % QUEUES;
	j.request = snapshot_add_request(s, &r);
	if (p->timed)
		j.walltime_us = (unlike ? 60 + i : 60) * 60 * GPUQ_US_PER_S;
	snapshot_add_job(s, &j);
}

static struct snapshot *build(const struct pair *p, bool unlike)
{
	struct snap_config config;
	struct snapshot *s;
	uint32_t user;

	snapshot_config_default(&config);
	config.now_us = 1;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	user = snapshot_user(s, "ann");
	bench_nodes(s, p->nodes);
	add_pools(s, p);
	add_queues(s);
	for (uint32_t i = 0; i < p->jobs; i++)
		add_waiter(s, p, user, i, unlike);
	for (uint32_t i = 0; p->fill != EMPTY && i < p->nodes; i++)
		add_tenant(s, p, user, i);
	return s;
}

static void measure(const struct pair *p, bool unlike, struct cost *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = build(p, unlike);
	struct plan plan = { 0 };
	double t0 = bench_seconds(), t1;

	if (snapshot_seal(s, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	t1 = bench_seconds();
	out->seal_ms = (t1 - t0) * 1e3;
	if (sched_cycle(s, &mem, &plan, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	out->decide_ms = (bench_seconds() - t1) * 1e3;
	out->n_actions = plan.n_actions;
	snapshot_free(s);
	gpuq_arena_done(&mem);
}

int main(int argc, char **argv)
{
	static const struct pair pairs[] = {
		{ "15,000 jobs, 2,000 empty nodes", 2000, 15000, EMPTY, false, 0, 0 },
		{ "100,000 jobs, 10,000 full nodes", 10000, 100000, FULL, false, 0, 0 },
		{ "the same with time limits", 10000, 100000, FULL, true, 0, 0 },
		{ "100,000 jobs, 10,000 nodes short of cpu", 10000, 100000, APART, false, 0, 0 },
		{ "the same with time limits", 10000, 100000, APART, true, 0, 0 },
		{ "1,000,000 jobs, 10,000 full nodes", 10000, 1000000, FULL, true, 0, 0 },
		{ "row 2 with 50 pools of nodes too small", 10000, 100000, FULL, false, 50, 2000 },
		{ "row 2 with 50 pools that can grow", 10000, 100000, FULL, false, 50, 128000 },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct cost alike, unlike;

		if (argc > 1 && (size_t)strtoul(argv[1], NULL, 10) != i + 1)
			continue;
		measure(&pairs[i], false, &alike);
		measure(&pairs[i], true, &unlike);
		printf("%-43s seal %6.1f ms alike, %7.1f unlike (%.1f times)  decide %6.1f ms "
		       "alike, %7.1f unlike (%.1f times), %" PRIu32 " and %" PRIu32 " starts\n",
		       pairs[i].name, alike.seal_ms, unlike.seal_ms, unlike.seal_ms / alike.seal_ms,
		       alike.decide_ms, unlike.decide_ms, unlike.decide_ms / alike.decide_ms,
		       alike.n_actions, unlike.n_actions);
	}
	return 0;
}
