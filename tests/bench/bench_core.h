/* bench_core.h - what the benchmarks of the core have in common
 *
 * Used by  bench_sched.c, bench_claim.c.
 */
#ifndef TESTS_BENCH_CORE_H
#define TESTS_BENCH_CORE_H

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "gpuqd/snapshot/snapshot.h"

/* Processor time: other work on the machine does not count. */
static inline double bench_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A gang of one group, whose pods need one of a countable resource; NULL = of none. */
static inline uint32_t bench_request_with(struct snapshot *s, uint32_t pods, int64_t milli,
					  int64_t cpu, const char *resource)
{
	const struct gpuq_amount one = { resource, 1 };
	struct snap_group g = { .name = "main",
				.pods_min = pods,
				.pods_max = pods,
				.gpus_milli = milli,
				.cpu_milli = cpu,
				.resources = &one,
				.n_resources = resource != NULL };
	struct snap_request r = { .groups = &g, .n_groups = 1 };

	return snapshot_add_request(s, &r);
}

static inline uint32_t bench_request(struct snapshot *s, uint32_t pods, int64_t milli, int64_t cpu)
{
	return bench_request_with(s, pods, milli, cpu, NULL);
}

/* Nodes of eight devices of flavor 0, and eight of each of these resources. */
static inline void bench_nodes_with(struct snapshot *s, uint32_t n_nodes,
				    const struct snap_resource *resources, uint32_t n_resources)
{
	for (uint32_t i = 0; i < n_nodes; i++) {
		struct snap_node n;
		char name[32];

		snapshot_node_default(&n);
		snprintf(name, sizeof(name), "node-%05" PRIu32, i);
		n.name = name;
		n.flavor = 0;
		n.n_devices = 8;
		n.cpu_milli = 128000;
		n.memory_bytes = INT64_C(1) << 40;
		n.pods = 110;
		n.resources = resources;
		n.n_resources = n_resources;
		snapshot_add_node(s, &n);
	}
}

static inline void bench_nodes(struct snapshot *s, uint32_t n_nodes)
{
	bench_nodes_with(s, n_nodes, NULL, 0);
}

#endif
