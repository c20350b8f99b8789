/* prop_world.h - the world of a case, separate from the scheduler's view of it
 */
#ifndef TESTS_PROP_PROP_WORLD_H
#define TESTS_PROP_PROP_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/sched/sched.h"
#include "tests/prop/prop.h"

#define ELEMENTS 8
#define PODS 12
#define INSTANCES (PROP_JOBS * ELEMENTS)
#define GIB (INT64_C(1) << 30)

struct pod {
	int node, group, n_devices, devices[10], milli;
};

struct instance {
	int job, element, n_pods;
	int64_t start, end; /* INT64_MAX = no end */
	struct pod pods[PODS];
};

struct world {
	const struct prop_case *pc;
	int round;
	bool waiting[PROP_JOBS][ELEMENTS];
	struct instance running[INSTANCES];
	int n_running;
	bool planned; /* the last cycle made start reservations */
	char wrong[400];
};

static inline int64_t now(const struct world *w)
{
	return 1000 + w->round * 10;
}

extern const char *const prop_flavors[2];

/* Record a violation, unless there is one already. Returns false. */
bool wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Build the present as a sealed snapshot, its objects added in an order that *shuffle decides (NULL
 * = as listed). */
struct snapshot *world_build(struct world *w, uint64_t *shuffle);

/* Check that nothing is allocated twice, and that limits and quotas hold. */
void check_nodes(struct world *w);
void check_limits(struct world *w);

/* True if a pod of the group may run there, whatever is free. */
bool allowed_on(const struct world *w, const struct prop_group *g, int node, int flavor);
int running_elements(const struct world *w, int job);

/* True if this pending job of one group could start. Computed independently of the scheduler. */
bool could_start(const struct world *w, int job);

/* The other half of property 26, before the plan is carried out and while no job runs: without the
 * obstacle of its first reason, the job has another first reason. */
void check_lifted(struct world *w, const struct snapshot *s, const struct plan *p, int job);

#endif
