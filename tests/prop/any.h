/* any.h - arbitrary snapshots from bytes, and the properties of every plan for them
 *
 * Used by  tests/fuzz/fuzz_sched.c (bytes of a fuzzer), tests/prop/plan_sums.c (random
 *          bytes). Unlike prop.h this one covers all that a snapshot can express, and evaluates
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
#define ANY_PODS 160 /* of all running jobs */
#define ANY_DEVICE_MEMORY (INT64_C(40) << 30)

/* Source of choices: the given bytes, then zeroes; without bytes, a generator. */
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

enum any_omit {
	ANY_OMIT_NOTHING,
	ANY_LEFT_OUT, /* the snapshot has its user alone */
	ANY_ABSENT
};

struct any_job {
	struct snap_job job;
	enum any_omit omit; /* only one that is pending, and has nothing nominated */
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

/* A snapshot before it is built: numbers stand for handles. It points into itself. */
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

/* Return the number of devices that a pod of the group takes, and *milli of each. */
int any_devices(const struct snap_group *g);
int any_milli(const struct snap_group *g);

void any_make(struct any_source *from, struct any *out);

/* Advance a minute, with the plan being carried out: placed jobs run, victims are leaving, their
 * places are nominated. gone: earlier victims have left by now and are pending again. Elements of
 * arrays stay as they were. False: there is no room for the result. */
bool any_next(struct any *a, const struct plan *p, bool gone);

/* Build and seal the snapshot, its objects added in an order that follows from order (0 = as
 * listed). NULL and *fault when sealing refuses it. */
struct snapshot *any_build(const struct any *a, uint64_t order, const char **fault);

/* Return the property that the plan violates; NULL = none. */
const char *any_check(const struct snapshot *s, const struct plan *p);

/* Make one decision: plan for a built in two orders, check, compare, and advance to the next state
 * (any_next; no jobs are left if there is none). The plans as text are appended to text and again.
 * Return the property violated; NULL = none. */
const char *any_cycle(struct any *a, uint64_t order, bool gone, struct gpuq_buf *text,
		      struct gpuq_buf *again);

#endif
