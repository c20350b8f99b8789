/* estimate.h - when and where a job will start, and what delays it until then
 *
 * Owns     nothing: estimates live in the caller's arena.
 * Touches  memory only.
 * Used by  gpuq-sim run --estimate; flow/advise/estimate (why, plan).
 *
 * A sealed snapshot is run forward in virtual time: the same sched_cycle(), a clock that jumps to
 * the next moment at which something ends or becomes possible, no new jobs. Everything is assumed
 * to run for its full time limit, so that the start is rather too late than too early; a job
 * without a time limit never ends. No job preempts another except, if requested, in the first
 * cycle: those claims are what happens next. */
#ifndef GPUQD_SCHED_ESTIMATE_ESTIMATE_H
#define GPUQD_SCHED_ESTIMATE_ESTIMATE_H

#include <stdint.h>

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"

#define ESTIMATE_EVENTS_MAX 2000
#define ESTIMATE_EVENTS_LEAST 64 /* at any cost */

/* From at_us on this was the first reason why the job was pending. */
struct estimate_change {
	int64_t at_us; /* when the reason changed */
	struct plan_reason why;
};

/* How a start was found. */
enum estimate_by {
	ESTIMATE_UNKNOWN, /* no estimate */
	ESTIMATE_NOW, /* the first cycle starts it */
	ESTIMATE_CLAIM, /* others are preempted for it, as the first cycle decides or as was
			 * decided */
	ESTIMATE_RESERVATION, /* the first cycle plans its start, no later than this one */
	ESTIMATE_SIMULATION
};

/* A job that the first cycle preempts for it. */
struct estimate_victim {
	uint32_t job; /* of the snapshot */
	enum plan_kind kind; /* PLAN_EVICT, PLAN_SHRINK, PLAN_MOVE */
	const char *rule; /* or NULL */
	uint32_t n_pods; /* that are evicted */
	int64_t gpus_milli; /* of those pods */
	int64_t lost_gpu_ms; /* work that is redone, in device-milliseconds */
};

struct estimate {
	uint32_t job; /* of the snapshot; of an array, its next element */
	enum estimate_by by;
	int64_t start_us; /* GPUQ_UNLIMITED = no estimate */
	uint32_t flavor; /* SNAP_NONE = none, or no estimate */
	const struct snap_alloc *pods; /* its places */
	uint32_t n_pods;
	const struct estimate_victim *victims; /* of its start, when that preempts */
	uint32_t n_victims;
	struct estimate_change *changes; /* until it starts, in order of time */
	uint32_t n_changes;
};

struct estimate_config {
	uint32_t max_events; /* 0 = ESTIMATE_EVENTS_MAX */
	uint64_t max_steps; /* work: of all its cycles, as plan.steps, and a step for each job, pod
			     * and node in each of them; 0 = no bound. ESTIMATE_EVENTS_LEAST are
			     * evaluated in any case */
	/* Number of jobs of each queue that are simulated at a time, and more where the cluster
	 * holds more: jobs further back enter later. 0 = all of them, always. */
	uint32_t front;
	bool claims; /* claims of the first cycle are carried out */
	/* By job of the snapshot: how long it is expected to run, at most its time limit;
	 * GPUQ_UNLIMITED = not known. NULL = all run for their time limits. */
	const int64_t *run_us;
	/* Called between two cycles: false ends the run there, cut short. NULL = it is not
	 * called. */
	bool (*go_on)(void *arg);
	void *go_on_arg; /* for go_on */
};

/* How far the simulation went. */
struct estimate_reach {
	int64_t until_us; /* the last instant evaluated */
	uint32_t n_events;
	bool cut_short; /* by max_events, max_steps or go_on */
};

/* Estimate n pending jobs, jobs[i] in out[i]. s itself is not changed. A cycle runs for each event:
 * this takes the time of that many cycles, and it stops as soon as all jobs to be estimated have
 * started. reach may be NULL. Returns 0; GPUQ_EINVAL (not sealed, a job that does not exist or is
 * not pending); GPUQ_ENOMEM, and then out is untouched. */
int estimate_starts(const struct snapshot *s, const struct estimate_config *config,
		    const uint32_t *jobs, uint32_t n, struct gpuq_arena *mem, struct estimate *out,
		    struct estimate_reach *reach, struct gpuq_err *err);

#endif
