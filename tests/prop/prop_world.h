/* prop_world.h - the world a case lives in, kept apart from the scheduler's own idea of it
 *
 * Used by prop_build.c, prop_check.c, prop_lift.c and prop_run.c only.
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
	bool planned; /* the last cycle planned starts */
	char wrong[400];
};

static inline int64_t now(const struct world *w)
{
	return 1000 + w->round * 10;
}

extern const char *const prop_flavors[2];

/* Note what does not hold, unless something has been noted already. Returns false. */
bool wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The present as a sealed snapshot, its objects added in an order that *shuffle decides
 * (NULL = as they stand). */
struct snapshot *world_build(struct world *w, uint64_t *shuffle);

/* Nothing is given twice; limits and quotas hold. */
void check_nodes(struct world *w);
void check_limits(struct world *w);

/* May a pod of the group stand there, whatever is free? */
bool allowed_on(const struct world *w, const struct prop_group *g, int node, int flavor);
int running_elements(const struct world *w, int job);

/* Could this waiting job of one group start? An answer found in another way than the
 * scheduler's. */
bool could_start(const struct world *w, int job);

/* The other half of property 26, before the plan is carried out and while nothing runs:
 * without what the job's first reason names, this is not its first reason any more. */
void check_lifted(struct world *w, const struct snapshot *s, const struct plan *p, int job);

#endif
