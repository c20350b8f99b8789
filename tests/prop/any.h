/* any.h - any snapshot at all, from bytes, and what must hold of any plan for it
 *
 * Used by  tests/fuzz/fuzz_sched.c (bytes of a fuzzer), tests/prop/plan_sums.c (random
 *          bytes). Unlike prop.h this one knows all that a snapshot can say, and looks at
 *          one decision only.
 */
#ifndef TESTS_PROP_ANY_H
#define TESTS_PROP_ANY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/sched/sched.h"

#define ANY_NODES 7
#define ANY_DEVICES 9
#define ANY_QUEUES 6
#define ANY_FLAVORS 2
#define ANY_REQUESTS 5
#define ANY_GROUPS 3
#define ANY_JOBS 20
#define ANY_PODS 160 /* of all that run */
#define ANY_DEVICE_MEMORY (INT64_C(40) << 30)

/* Where choices come from: given bytes, then zeroes; or, without bytes, a generator. */
struct any_source {
	const uint8_t *bytes;
	size_t n;
	uint64_t state; /* of the generator */
};

struct any_node {
	struct snap_node node;
	struct snap_device devices[ANY_DEVICES];
	uint8_t links[ANY_DEVICES * ANY_DEVICES], numa[ANY_DEVICES];
	const char *keys[2], *values[2];
};

struct any_queue {
	struct snap_queue queue;
	struct snap_share shares[ANY_FLAVORS + 2];
};

struct any_request {
	struct snap_request request;
	struct snap_group groups[ANY_GROUPS];
	struct gpuq_slice slices[ANY_GROUPS][2];
	struct gpuq_require require;
	struct gpuq_term term;
	struct gpuq_toleration tolerate;
	struct snap_license_need need;
	const char *flavors[ANY_FLAVORS];
};

struct any_job {
	struct snap_job job;
	struct snap_range range;
	uint32_t exclude;
	int queue, request, user;
};

struct any_pod {
	struct snap_alloc alloc;
	uint32_t devices[ANY_DEVICES];
	int job, node;
};

struct any_reservation {
	struct snap_reservation reservation;
	uint32_t nodes[2];
	int queue; /* -1 = of any */
};

/* A snapshot before it is built: numbers stand for handles. Points into itself. */
struct any {
	struct snap_config config;
	int n_flavors, n_nodes, n_queues, n_requests, n_jobs, n_pods;
	struct any_node nodes[ANY_NODES];
	struct any_queue queues[ANY_QUEUES];
	struct any_request requests[ANY_REQUESTS];
	struct any_job jobs[ANY_JOBS];
	struct any_pod pods[ANY_PODS], promises[ANY_PODS];
	int n_promises;
	struct any_reservation reservations[2];
	int n_reservations;
};

/* What a pod of the group takes: so many devices, so much of each. */
int any_devices(const struct snap_group *g);
int any_milli(const struct snap_group *g);

void any_make(struct any_source *from, struct any *out);

/* A minute later, when what the plan says is under way: what was placed runs, victims
 * are leaving, what they leave is promised. gone: victims of earlier have left by now and
 * wait again. Elements of arrays stay as they were. False: there is no room for it here. */
bool any_next(struct any *a, const struct plan *p, bool gone);

/* As a sealed snapshot, its objects added in an order that follows from order (0 = as they
 * stand). NULL and *fault when sealing refuses it. */
struct snapshot *any_build(const struct any *a, uint64_t order, const char **fault);

/* What does not hold of the plan; NULL = all does. */
const char *any_check(const struct snapshot *s, const struct plan *p);

/* One decision: plan for a built in two orders, check, compare, and go on to where it leads
 * (any_next; no jobs are left where it leads nowhere). The plans as text are appended to
 * text and again. What does not hold; NULL = all does. */
const char *any_cycle(struct any *a, uint64_t order, bool gone, struct gpuq_buf *text,
		      struct gpuq_buf *again);

#endif
