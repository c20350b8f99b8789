/* estimate.h - when will it start, where, and what keeps it until then
 *
 * Owns     nothing: estimates live in the caller's arena.
 * Touches  memory only.
 * Used by  gpuq-sim run --estimate; flow/advise/estimate (why, plan).
 *
 * A sealed snapshot is lived on in virtual time: the same sched_cycle(), a clock that
 * jumps to the next moment at which something ends or becomes possible, nobody new.
 * Everything is taken to run as long as it may, so that the start is rather too late than
 * too early; what has no walltime never ends. Nobody claims what others hold, except, if
 * that is wanted, in the first cycle: those claims are what happens next.
 */
#ifndef GPUQD_SCHED_ESTIMATE_ESTIMATE_H
#define GPUQD_SCHED_ESTIMATE_ESTIMATE_H

#include <stdint.h>

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"

#define ESTIMATE_EVENTS_MAX 2000
#define ESTIMATE_EVENTS_LEAST 64 /* whatever they cost */

/* From at_us on this was the first reason why the job waited. */
struct estimate_change {
	int64_t at_us;
	struct plan_reason why;
};

/* How a start was found. */
enum estimate_by {
	ESTIMATE_UNKNOWN, /* there is none */
	ESTIMATE_NOW, /* the first cycle starts it */
	ESTIMATE_CLAIM, /* others leave for it, as the first cycle decides or as was decided */
	ESTIMATE_RESERVATION, /* the first cycle plans a start, no later than this one */
	ESTIMATE_SIMULATION
};

/* Somebody whom the first cycle has leave for it. */
struct estimate_victim {
	uint32_t job; /* of the snapshot */
	enum plan_kind kind; /* PLAN_EVICT, PLAN_SHRINK, PLAN_MOVE */
	const char *rule; /* or NULL */
	uint32_t n_pods; /* that leave */
	int64_t gpus_milli; /* of them */
	int64_t lost_gpu_ms; /* work that is done again, in device-milliseconds */
};

struct estimate {
	uint32_t job; /* of the snapshot; of an array, its next element */
	enum estimate_by by;
	int64_t start_us; /* GPUQ_UNLIMITED = no estimate */
	uint32_t flavor; /* SNAP_NONE = none, or no estimate */
	const struct snap_alloc *pods; /* where it starts */
	uint32_t n_pods;
	const struct estimate_victim *victims;
	uint32_t n_victims;
	struct estimate_change *changes; /* until it starts, in order of time */
	uint32_t n_changes;
};

struct estimate_config {
	uint32_t max_events; /* 0 = ESTIMATE_EVENTS_MAX */
	uint64_t max_steps; /* work: of all its cycles, as plan.steps, and a step for each job,
			     * pod and node in each of them; 0 = no bound. ESTIMATE_EVENTS_LEAST
			     * are looked at in any case */
	/* So many jobs of each queue's line are lived on at a time, and more where the cluster holds
	 * more: what stands far behind comes in later. 0 = all of them, always. */
	uint32_t front;
	bool claims; /* what the first cycle claims is given to it */
	/* By job of the snapshot: how long it is thought to run, at most its walltime;
	 * GPUQ_UNLIMITED = nobody knows. NULL = all as long as they may. */
	const int64_t *run_us;
	/* Asked between two cycles: false ends it there, cut short. NULL = nobody is asked. */
	bool (*go_on)(void *arg);
	void *go_on_arg;
};

/* How far it went. */
struct estimate_reach {
	int64_t until_us; /* the last instant looked at */
	uint32_t n_events;
	bool cut_short; /* by max_events, max_steps or go_on */
};

/* Estimates for n pending jobs, jobs[i] in out[i]. s itself stays as it is. A cycle runs
 * for each event: the time this takes is that of so many cycles, and it stops as soon as
 * all that were asked for have started. reach may be NULL. Returns 0; GPUQ_EINVAL (not
 * sealed, a job that is not there or does not wait); GPUQ_ENOMEM, and then out is
 * untouched. */
int estimate_starts(const struct snapshot *s, const struct estimate_config *config,
		    const uint32_t *jobs, uint32_t n, struct gpuq_arena *mem, struct estimate *out,
		    struct estimate_reach *reach, struct gpuq_err *err);

#endif
