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

#include "gpuqd/state/idle.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/usage.h"
#include "gpuqd/sim/scenario/scenario.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/limits.h"

enum sim_state { SIM_PENDING, SIM_RUNNING, SIM_ENDED };
enum sim_end { SIM_COMPLETED, SIM_FAILED, SIM_TIMEOUT, SIM_CANCELLED };

struct sim_task {
	uint32_t node; /* into world.nodes */
	uint32_t group; /* of the job's template */
	uint32_t index; /* over all groups; no two of a job have the same */
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
	uint32_t unit; /* tasks of a sub-group; 0 = there are none */
	const uint32_t *order; /* of the entries of its task list: by rank */
	uint32_t id; /* 1, 2, ... as listed */
	uint32_t first_job; /* into world.jobs */
	uint32_t n_jobs;
	int32_t first, step; /* indexes of an array */
	bool array;
	int64_t submit_us, begin_us, deadline_us, walltime_us; /* GPUQ_UNLIMITED: none; 0: none */
	int64_t walltime_min_us; /* 0: none */
};

/* When it starts at the latest, and what it waits for until then. */
struct sim_estimate {
	int64_t start_us; /* GPUQ_UNLIMITED = nobody knows */
	int64_t *at_us; /* from then on it waited for why[i] */
	struct plan_reason *why;
	uint32_t n;
};

struct sim_job {
	uint32_t template_ix;
	int32_t element; /* -1 = no array */
	const char *name; /* "x" or "x[2]" */
	const char *queue;
	int64_t priority;
	bool hold;
	int64_t released_us; /* when it was last released; 0 = never */
	int state; /* enum sim_state */
	int ended; /* enum sim_end */
	int64_t start_us, end_us;
	int64_t begun_us; /* its first start, where it has begun */
	bool begun;
	int64_t use; /* percent in thousandths that its devices do; below 0 = nobody knows */
	struct idle idle; /* of this attempt */
	const char
		*end_cause; /* word of enum gpuq_cause: why it was told to end; NULL = it was not */
	int64_t yield_us; /* when its places are somebody else's; 0 = never */
	int64_t given_us; /* walltime of the attempt, where that was cut; 0 = it was not */
	uint32_t attempt;
	struct sim_task *tasks;
	uint32_t n_tasks;
	struct sim_task *promises; /* places that it was given and others have yet to leave */
	uint32_t n_promises;
	bool owns; /* the promises are its own until it starts; else only of the last cycle */
	bool moving; /* it starts on its promises as soon as it has left */
	int64_t checkpoint_us; /* its last; 0 = none since it started */
	int64_t evicted_us; /* when it last had to leave for another queue; 0 = never */
	const char *evicted_for; /* that queue */
	int64_t shrunk_us; /* when it last lost tasks beyond its minimum; 0 = never */
	int64_t short_us; /* since when it has fewer tasks than its minimum; 0 = it has them */
	const struct plan_reason *reasons; /* of the last cycle */
	uint32_t n_reasons;
	struct priority_terms terms; /* of its place in the line, of the last cycle */
	int64_t planned_us; /* planned start; 0 = none */
	const struct sim_estimate *estimate; /* NULL = none was asked for */
	/* at the last rest, to tell what became of it since */
	int was;
	uint32_t was_tasks;
	bool requeue; /* it is leaving, and waits again then */
	bool left; /* it ended because it was made to leave */
	bool moved;
};

/* What a running job lost, and why: an entry for each decision. */
struct sim_eviction {
	uint32_t job;
	const char *mode; /* "requeue", "cancel", "shrink", "move" */
	const char *cause; /* word of enum gpuq_cause */
	const char *by; /* the job that it was for; NULL = none */
	const char *rule; /* that allows it; NULL */
	int64_t milli; /* thousandths of devices that it lost */
	int64_t at_us;
};

/* What a claim rested on (plan.h), by names. */
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
};

struct sim_queue {
	const char *name;
	int64_t allocated_milli, fair_milli, quota_milli; /* over all flavors */
	int64_t demand_milli, limit_milli;
};

/* What a user has used in a queue, as it stands now. */
struct sim_use {
	uint32_t queue; /* into world.queues */
	const char *user;
	usage_q32 used;
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
	struct sim_eviction *evictions; /* all that ever were, in order */
	uint32_t n_evictions, room_evictions;
	struct sim_claim *claims; /* all that ever were, in order */
	uint32_t n_claims, room_claims, marked_claims;
	uint32_t marked_evictions; /* as many there were at the last mark */
	uint32_t cycles; /* up to the last that changed something, of the last rest */
	int64_t wake_us; /* when another cycle may decide differently */
	/* world_usage.c */
	struct snap_weights weights;
	bool weighs_classes; /* the case says how much classes count */
	int64_t half_life_us, made_us; /* made: when the case began */
	struct sim_use *uses;
	uint32_t n_uses, room_uses;
	uint32_t *parents; /* by queue; n_queues = none */
	usage_q32 *used; /* by queue, since the case began, of that queue alone */
	int64_t *spent_us; /* the same in device-us, not forgotten */
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

/* Estimates for all that wait, without anything changing. */
int world_estimate(struct world *w, struct gpuq_err *err);

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

/* Note what a job lost; e.job and e.at_us are set here. */
int world_evicted(struct world *w, const struct sim_job *j, struct sim_eviction e,
		  struct gpuq_err *err);

/* What the scheduler is shown; NULL with err when it cannot be. Free it with
 * snapshot_free(). Nodes have the same indexes there. */
struct snapshot *world_freeze(struct world *w, struct gpuq_err *err);

/* Carry out a plan made from s. Pods that are told to leave are `releasing` until
 * world_release(). Returns 0; GPUQ_EINVAL when the plan is not about this world (a job
 * grows that does not run, a pod leaves that is not there); GPUQ_ENOMEM. */
int world_apply(struct world *w, const struct snapshot *s, const struct plan *p,
		struct gpuq_err *err);
/* Would it change anything? Planned starts do not, nor does waiting for what leaves. */
bool world_changes(const struct plan *p);

/* What was told to leave has left. Returns whether anything had been. */
bool world_release(struct world *w);

/* The first moment of an instant that never is the 0 that stands for none. */
static inline int64_t world_instant(int64_t us)
{
	return us ? us : 1;
}

/* Places that a job has or was promised, n of them. */
static inline const struct sim_task *world_places(const struct sim_job *j, uint32_t *n)
{
	*n = j->state == SIM_RUNNING ? j->n_tasks : j->state == SIM_PENDING ? j->n_promises : 0;
	return j->state == SIM_RUNNING ? j->tasks : j->promises;
}

/* Has each group of its tasks the minimum? Leaving ones do not count. */
bool world_complete(const struct world *w, const struct sim_job *j);

/* The job of a snapshot's key: of an array, the first of it when the index is -1. */
struct sim_job *world_keyed(struct world *w, struct snap_key key);
/* What the case calls it: "x", "x[2]"; an array's own name with index -1. NULL: no such job. */
const char *world_key_name(const struct world *w, struct snap_key key);
/* Exact name, or NULL. */
struct sim_job *world_job(struct world *w, const char *name);
uint32_t world_node(const struct world *w, const char *name);

static inline const struct sim_template *world_template(const struct world *w,
							const struct sim_job *j)
{
	return &w->templates[j->template_ix];
}

/* How long it may run; of what runs, what it was given. */
static inline int64_t world_walltime_us(const struct world *w, const struct sim_job *j)
{
	return j->state == SIM_RUNNING && j->given_us ? j->given_us
						      : world_template(w, j)->walltime_us;
}

int64_t world_us(const struct world *w, int64_t milli_units);

/* What a job's dependencies say now: 0 they hold, 1 not yet, 2 never; *on = which one. */
int world_depends_all(struct world *w, const struct sim_job *j, const char **on);

#endif
