/* world.h - a cluster that exists in virtual time
 *
 * Owns     what nodes and jobs of a scenario are doing; applies plans and events.
 * Touches  memory only.
 * Used by  gpuq-sim. Decisions come from sched_cycle() alone.
 *
 * Pods start and end at once; a job lives until an event or its walltime ends it.
 */
#ifndef GPUQD_SIM_WORLD_H
#define GPUQD_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/core/plan.h"
#include "gpuqd/core/snapshot.h"
#include "gpuqd/sim/scenario.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/limits.h"

enum sim_state { SIM_PENDING, SIM_RUNNING, SIM_ENDED };
enum sim_end { SIM_COMPLETED, SIM_FAILED, SIM_TIMEOUT, SIM_CANCELLED };

struct sim_task {
	uint32_t node; /* into world.nodes */
	uint32_t group; /* of the job's template */
	uint32_t *devices;
	uint32_t n_devices;
	int32_t milli;
	bool releasing;
};

/* A role's or group's tasks in a job, and the constraint they were given. */
struct sim_group {
	const struct sc_tasks *tasks;
	uint32_t count, min;
	struct gpuq_term *term; /* of the selector; NULL = none */
	struct gpuq_toleration *tolerations;
};

/* What all members of an array share. */
struct sim_template {
	const struct sc_job *spec;
	struct sim_group *groups; /* by rank, then as written */
	uint32_t n_groups;
	uint32_t id; /* 1, 2, ... as listed */
	uint32_t first_job; /* into world.jobs */
	uint32_t n_jobs;
	int32_t first, step; /* indexes of an array */
	bool array;
	int64_t submit_us, begin_us, deadline_us, walltime_us; /* GPUQ_UNLIMITED: none; 0: none */
};

struct sim_job {
	uint32_t template_ix;
	int32_t element; /* -1 = no array */
	const char *name; /* "x" or "x[2]" */
	const char *queue;
	int64_t priority;
	bool hold;
	int state; /* enum sim_state */
	int ended; /* enum sim_end */
	int64_t start_us, end_us;
	uint32_t attempt;
	struct sim_task *tasks;
	uint32_t n_tasks;
	const struct plan_reason *reasons; /* of the last cycle */
	uint32_t n_reasons;
	int64_t planned_us; /* planned start; 0 = none */
	/* at the last rest, to tell what became of it since */
	int was;
	uint32_t was_tasks;
	bool releasing; /* all of it was told to leave when the case began */
};

/* A running job that had to leave. */
struct sim_eviction {
	uint32_t job;
	const char *mode, *cause;
};

struct sim_node {
	const char *name;
	const struct sc_node *spec;
	int state; /* enum snap_node_state */
};

struct sim_queue {
	const char *name;
	int64_t allocated_milli, fair_milli, quota_milli; /* over all flavors */
	int64_t demand_milli, limit_milli;
};

struct world {
	struct gpuq_arena arena;
	const struct sc_case *c;
	int64_t unit_us, now_us;
	const char **flavors;
	uint32_t n_flavors;
	const char **licenses;
	int64_t *license_counts;
	uint32_t n_licenses;
	struct sim_node *nodes; /* by name */
	uint32_t n_nodes;
	const struct sc_queue *queues; /* by age */
	uint32_t n_queues;
	struct sim_queue *shares; /* by queue, after the last cycle */
	struct sim_template *templates;
	uint32_t n_templates, room_templates;
	struct sim_job *jobs;
	uint32_t n_jobs, room_jobs;
	struct sim_eviction *evictions; /* since the last mark */
	uint32_t n_evictions, room_evictions;
	uint32_t cycles; /* up to the last that changed something, of the last rest */
	int64_t wake_us; /* when another cycle may decide differently */
};

/* Make the case's world. Returns 0; GPUQ_EINVAL with the place in the file's terms
 * (an unknown queue, a running task without room); GPUQ_ENOMEM. */
int world_make(const struct sc_case *c, struct world *w, struct gpuq_err *err);
void world_done(struct world *w);

/* A new job, waiting since now. */
int world_submit(struct world *w, const struct sc_job *spec, struct gpuq_err *err);

/* Cycles until nothing changes: at most max_cycles, 0 = 10. */
int world_rest(struct world *w, uint32_t max_cycles, struct gpuq_err *err);

/* Would two more cycles change nothing? The world itself stays as it is. */
int world_stable(struct world *w, bool *stable, struct gpuq_err *err);

/* Remember the present as what later changes are told against. */
void world_mark(struct world *w);

/* Let an event happen, and everything between now and its time; then come to rest. */
int world_step(struct world *w, const struct sc_step *step, struct gpuq_err *err);

/* What has become of a job since the last mark. */
enum sim_fate {
	SIM_FATE_STARTED,
	SIM_FATE_RUNNING,
	SIM_FATE_PREEMPTED,
	SIM_FATE_PENDING,
	SIM_FATE_SHRUNK,
	SIM_FATE_GROWN,
	SIM_FATE_ENDED,
	N_SIM_FATES
};
enum sim_fate world_fate(const struct sim_job *j);
extern const char *const world_fates[N_SIM_FATES];

int world_evicted(struct world *w, const struct sim_job *j, const char *cause,
		  struct gpuq_err *err);

/* Exact name, or NULL. */
struct sim_job *world_job(struct world *w, const char *name);
uint32_t world_node(const struct world *w, const char *name);

static inline const struct sim_template *world_template(const struct world *w,
							const struct sim_job *j)
{
	return &w->templates[j->template_ix];
}

int64_t world_us(const struct world *w, int64_t milli_units);

/* What a job's dependencies say now: 0 they hold, 1 not yet, 2 never; *on = which one. */
int world_depends_all(struct world *w, const struct sim_job *j, const char **on);

#endif
