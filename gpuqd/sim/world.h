/* world.h - a scenario, run as gpuqd would run it
 *
 * Owns     a model of gpuqd's own (state/model.h) in virtual time, the scenario's names for its
 *          objects, and the readings at the last rest.
 * Touches  memory only.
 * Used by  gpuq-sim.
 *
 * A case becomes a site, nodes and jobs of the model, by the events that would have created them:
 * submitted, placed, started. From then on all changes are events, too. A cycle is gpuqd's:
 * snapshot_take() -> sched_cycle() -> carry_plan() -> events. The cluster obeys at once
 * (carry/obey.h), so that a pod starts when it is placed and is gone before the next cycle when it
 * is signalled; the verdict on its job is the model's (job_verdict). A job runs until a step, its
 * time limit, its deadline or the idle rule ends it; those fall due in world_events.c, as
 * flow/dispatch has it in the daemon.
 *
 * A case may begin in a state that gpuqd would never reach: over a limit, on a node of 1024
 * devices, with one of its pods missing. It is loaded as written: the site is set, not read from a
 * site file, and requests are the case's own (event.h, as_written). Values that no site and no job
 * file can express (quotas of cpu, devices' use before the case began, a job's last checkpoint) are
 * added where the snapshot is taken (world_more.c, snapshot_take_more.h). None of that makes
 * decisions.
 *
 * The model's zero is "not yet"; a case may begin at 0 and before. The world's clock is therefore
 * WORLD_BASE_US ahead of the case's: instants here are the model's, outcome_time() subtracts the
 * base again.
 *
 * struct sim_job and its parts are readings: world_read() fills them from the model.
 */
#ifndef GPUQD_SIM_WORLD_H
#define GPUQD_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/model.h"
#include "gpuqd/sim/scenario/scenario.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/limits.h"

/* A multiple of seven days, so that half-lives and days begin where the case's 0 is. */
#define WORLD_BASE_US (INT64_C(5200) * 7 * 86400 * 1000000)

enum sim_state { SIM_PENDING, SIM_RUNNING, SIM_ENDED };
enum sim_end { SIM_COMPLETED, SIM_FAILED, SIM_TIMEOUT, SIM_CANCELLED };

struct sim_task {
	uint32_t node; /* into world.nodes */
	uint32_t group; /* of the job's template */
	uint32_t index; /* over all groups; unique within a job */
	uint32_t *devices;
	uint32_t n_devices;
	int32_t milli;
	const char *
		mig; /* profile of its instances, where it could be another; NULL = that of its group */
	bool releasing;
};

/* A role's or group's tasks in a job, and their placement constraint. */
struct sim_group {
	const struct sc_tasks *tasks;
	uint32_t count, min;
	struct gpuq_term *term; /* of the selector; NULL = none */
	struct gpuq_toleration *tolerations;
	struct gpuq_slice *slices;
};

/* Parts common to all members of an array. */
struct sim_template {
	const struct sc_job *spec;
	struct sim_group *groups; /* by rank, then as written */
	uint32_t n_groups;
	uint32_t unit; /* tasks of a sub-group; 0 = no sub-groups */
	const uint32_t *order; /* of the entries of its task list: by rank */
	uint32_t id; /* 1, 2, ... as listed; its number in the model */
	struct gpuq_spec job; /* as passed to the model */
	const char *qos;
	uint32_t first_job; /* into world.jobs */
	uint32_t n_jobs;
	int32_t first, step; /* indexes of an array */
	bool array;
	int64_t submit_us, begin_us, deadline_us, walltime_us; /* GPUQ_UNLIMITED: none; 0: none */
	int64_t walltime_min_us; /* 0: none */
};

/* When it starts at the latest, and why it is pending until then. */
struct sim_estimate {
	int64_t start_us; /* GPUQ_UNLIMITED = not known */
	int64_t *at_us; /* from then on it was pending for why[i] */
	struct plan_reason *why;
	uint32_t n;
};

struct sim_job {
	uint32_t template_ix;
	int32_t element; /* -1 = no array */
	const char *name; /* "x" or "x[2]" */
	const char *queue;
	int64_t priority;
	int state; /* enum sim_state */
	int ended; /* enum sim_end */
	int64_t start_us, end_us;
	int64_t begun_us; /* its first start, if it has started */
	bool begun;
	int64_t use; /* use of its devices in thousandths of a percent; below 0 = not known */
	const char
		*end_cause; /* word of enum gpuq_cause: why it was made to end; NULL = it was not */
	int64_t given_us; /* walltime of the attempt, if it was cut; 0 = it was not */
	uint32_t attempt;
	struct sim_task *tasks;
	uint32_t n_tasks;
	struct sim_task *promises; /* its nominated placements, which victims have not ended yet */
	uint32_t n_promises;
	struct sim_task *hopes; /* of the last cycle: places that it waits for, not nominated */
	uint32_t n_hopes;
	bool moving; /* it starts on its nominated placements once it has left */
	int64_t checkpoint_us; /* its last; 0 = none since it started */
	const struct plan_reason *reasons; /* of the last cycle */
	uint32_t n_reasons;
	const struct plan_bound *bounds; /* that ended a search for it, in the last cycle */
	uint32_t n_bounds;
	struct priority_terms terms; /* of its priority, in the last cycle */
	int64_t planned_us; /* start reservation; 0 = none */
	const struct sim_estimate *estimate; /* NULL = not requested */
	/* at the last rest, to report changes since */
	int was;
	uint32_t was_tasks;
	bool left; /* it ended because it was evicted */
	bool moved;
};

/* Loss of a running job, and the cause: one entry per decision. */
struct sim_eviction {
	uint32_t job;
	const char *mode; /* "requeue", "cancel", "shrink", "move" */
	const char *cause; /* word of enum gpuq_cause */
	const char *by; /* the preempting job; NULL = none */
	const char *rule; /* that allows it; NULL */
	int64_t milli; /* thousandths of devices that it lost */
	int64_t at_us;
};

/* Numbers behind a preemption (plan.h), by names. */
struct sim_side {
	const char *queue;
	int64_t before, after, fair_share, quota; /* thousandths of devices */
};

struct sim_claim {
	uint32_t job;
	int64_t need;
	struct sim_side *sides; /* its own queue, then those that lose */
	uint32_t n_sides;
	uint32_t passed[N_PLAN_PASSED];
};

struct sim_node {
	const char *name;
	const struct sc_node *spec;
	int state; /* enum snap_node_state */
	uint32_t pool; /* into world.pools; SNAP_NONE */
	uint32_t ask; /* SNAP_ASKED: number of its request */
	const char *
		layout; /* of its MIG instances, which it was given; NULL = it is as the case has it */
	uint32_t cards; /* with a layout */
	int64_t cut_us; /* when it has the next one; 0 = it is given none, GPUQ_UNLIMITED = by a step */
};

struct sim_pool {
	const struct sc_pool *spec;
	int64_t closed_until_us; /* requests failed too often: none is made before that */
};

/* A request for nodes, which have its number. */
struct sim_ask {
	uint32_t number, pool;
	uint32_t failures;
	int64_t retry_us; /* when it is made again; 0 = it is made */
	int64_t come_us; /* when its nodes come; GPUQ_UNLIMITED = by a step */
};

struct sim_queue {
	const char *name;
	int64_t allocated_milli, fair_milli, quota_milli; /* over all flavors */
	int64_t demand_milli, limit_milli;
};

struct world {
	struct gpuq_arena arena;
	struct gpuq_arena read; /* of the readings */
	struct gpuq_arena cycle; /* reasons and nominated placements of the last cycle */
	const struct sc_case *c;
	struct model *m;
	int64_t *spent_before_ms; /* by queue: of its budget, beyond what the model knows */
	uint32_t n_steps; /* that have been run */
	uint32_t first_cycles; /* allowed for the first rest */
	bool calm; /* the last cycle decided nothing */
	int64_t unit_us, now_us;
	const char **flavors;
	uint32_t n_flavors;
	const char **licenses;
	int64_t *license_counts;
	uint32_t n_licenses;
	struct sim_node *nodes; /* by name */
	uint32_t n_nodes;
	struct sim_pool *pools; /* as listed */
	uint32_t n_pools;
	struct sim_ask *asks; /* by number */
	uint32_t n_asks, room_asks, last_ask;
	const struct sc_queue *queues; /* by age */
	uint32_t n_queues;
	struct sim_queue *shares; /* by queue, after the last cycle */
	struct sim_template *templates;
	uint32_t n_templates, room_templates;
	struct sim_job *jobs;
	uint32_t n_jobs, room_jobs;
	struct sim_eviction *evictions; /* all since the start, in order */
	uint32_t n_evictions, room_evictions;
	struct sim_claim *claims; /* all since the start, in order */
	uint32_t n_claims, room_claims, marked_claims;
	uint32_t marked_evictions; /* their number at the last mark */
	uint32_t cycles; /* up to the last one with a change, of the last rest */
	int64_t wake_us; /* when another cycle may decide differently */
	struct snap_weights weights;
	bool weighs_classes; /* the case sets the weight of priority classes */
	int64_t half_life_us, made_us; /* made: when the case began */
};

/* Make the case's world. Returns 0; GPUQ_EINVAL with the place in terms of the file (an unknown
 * queue, a running task without room); GPUQ_ENOMEM. */
int world_make(const struct sc_case *c, struct world *w, struct gpuq_err *err);
void world_done(struct world *w);

/* Remember the present, which later changes are compared to. */
void world_mark(struct world *w);

/* Changes of a job since the last mark. */
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

/* Record what a job lost; e.job and e.at_us are set here. */
int world_evicted(struct world *w, const struct sim_job *j, struct sim_eviction e,
		  struct gpuq_err *err);

/* True if the node exists, whatever its state. */
static inline bool world_node_exists(const struct sim_node *n)
{
	return n->state < SNAP_ASKED;
}

/* The first moment of an instant, never the 0 that means none. */
static inline int64_t world_instant(int64_t us)
{
	return us ? us : 1;
}

/* Return places that a job has or was nominated, n of them. */
static inline const struct sim_task *world_places(const struct sim_job *j, uint32_t *n)
{
	*n = j->state == SIM_RUNNING ? j->n_tasks : j->state == SIM_PENDING ? j->n_promises : 0;
	return j->state == SIM_RUNNING ? j->tasks : j->promises;
}

/* Return the job with a snapshot's key; for an array with index -1, its first. */
struct sim_job *world_keyed(struct world *w, struct snap_key key);
/* Return the case's name for it: "x", "x[2]"; an array's own name with index -1. NULL: no such
 * job. */
const char *world_key_name(const struct world *w, struct snap_key key);
/* Return the job with that exact name, or NULL. */
struct sim_job *world_job(struct world *w, const char *name);
uint32_t world_node(const struct world *w, const char *name);

static inline const struct sim_template *world_template(const struct world *w,
							const struct sim_job *j)
{
	return &w->templates[j->template_ix];
}

int64_t world_us(const struct world *w, int64_t milli_units); /* a span of time */
int64_t world_at(const struct world *w, int64_t milli_units); /* an instant */

#endif
