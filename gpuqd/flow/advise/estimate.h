/* estimate.h - when and where a pending job will start, and what it would preempt
 *
 * Owns     one thread; the pending questions; how good past estimates were.
 * Touches  reads the model (a snapshot, which is the thread's own from then on); calls
 *          the pure core. Never changes the model.
 * Used by  rpc (job.why, job.plan); daemon.c makes and frees it.
 *
 * Questions of the same moment share one snapshot, taken in the loop like that of a cycle; the
 * rest happens in the thread, so the loop is not held. Work in the thread is bounded by counted
 * steps, not by a clock: when they are used up, the reply is "unknown". At most one snapshot is
 * taken at a time, and a pause of a multiple of the time it took follows: on a large site a reply
 * takes longer, the loop does not.
 *
 * An estimate is as good as its assumptions: no new jobs, running jobs use their whole time
 * limits, jobs are preempted only in the first instant. likely_us replaces the limits by what
 * jobs of that user, queue and name have used of them.
 */
#ifndef GPUQD_FLOW_ADVISE_ESTIMATE_H
#define GPUQD_FLOW_ADVISE_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "libgpuq/err.h"
#include "libgpuq/names.h"

struct estimator;
struct journal;

#define ESTIMATE_JOBS_MAX 64 /* in one question */
#define ESTIMATE_QUESTIONS_MAX 256 /* pending */

/* How the start was found. */
enum start_by {
	START_NOW, /* the next cycle starts it */
	START_CLAIM, /* jobs are preempted for it; it starts when the slowest is gone */
	START_RESERVATION, /* it has a start reservation, which no job ranked behind it may delay */
	START_SIMULATION, /* found by simulating the site from here on */
	START_UNKNOWN, /* not within the bound on work */
	N_START_BY
};
extern const char *const start_by_words[N_START_BY]; /* "now", "claim", "reservation", ... */

struct start_pod {
	const char *node;
	uint32_t group, index; /* of the spec; over all groups */
	const uint32_t *devices; /* on the node; unknown for a start reservation */
	uint32_t n_devices;
	int64_t gpus_milli;
};

/* A job that is preempted, or moved, so that it can start. */
struct start_victim {
	struct job_key job;
	const char *queue, *user;
	const char *rule; /* as reported with an eviction */
	bool moves; /* it has new places already */
	uint32_t n_pods; /* that are evicted */
	int64_t gpus_milli;
	int64_t grace_us; /* grace period */
	int64_t lost_gpu_ms; /* work to be repeated, in device-milliseconds */
};

/* The first reason why it is pending, from at_us on. */
struct start_wait {
	int64_t at_us;
	struct reason_fact why;
};

struct start_answer {
	int rc; /* 0; GPUQ_ENOENT (no such job), GPUQ_EINVAL (not pending) */
	struct job_key job; /* the job in question; for a guest the id it would get, index -1 */
	enum start_by by;
	int64_t start_us; /* with whole limits as run times; GPUQ_UNLIMITED = unknown */
	int64_t likely_us; /* with usual run times; GPUQ_UNLIMITED = unknown */
	const char *flavor; /* "" = none known */
	const struct start_pod *pods; /* where, at start_us; n_pods 0 = unknown */
	uint32_t n_pods;
	const struct start_victim *victims;
	uint32_t n_victims;
	const struct start_wait *waits; /* until it starts, in order of time */
	uint32_t n_waits;
};

/* How far the simulation of one question reached. */
struct start_assumed {
	int64_t at_us; /* when the snapshot was taken */
	int64_t ahead_us; /* walltime.h */
	int64_t until_us; /* end of the simulated time */
	uint32_t n_events; /* instants evaluated */
	bool cut_short; /* the bound on work ended it */
	uint32_t n_running, n_endless; /* running jobs; those without a time limit */
	uint32_t n_learned; /* jobs whose usual run time is known */
};

/* Called in the loop. rc != 0: no estimates (GPUQ_ENOMEM, GPUQ_EGONE when the daemon stops). The
 * data pointed at live until fn returns. */
typedef void (*estimate_fn)(void *arg, int rc, const struct start_answer *answers, uint32_t n,
			    const struct start_assumed *assumed, const struct gpuq_err *err);

int estimator_new(struct journal *j, struct estimator **out, struct gpuq_err *err);
/* Free it; pending questions get GPUQ_EGONE. NULL is allowed. */
void estimator_free(struct estimator *e);

/* Ask about pending jobs (index -1: for an array, its next element), then guests, all of them as if
 * submitted at once, in that order, behind all others; the estimates have the same order. *ticket:
 * for estimator_forget(). Returns 0; GPUQ_EINVAL (too many, or none), GPUQ_ENOENT (a guest's
 * queue), GPUQ_EBUSY (too many pending questions), GPUQ_ENOMEM: fn is not called then. */
int estimator_ask(struct estimator *e, const struct job_key *jobs, uint32_t n_jobs,
		  const struct start_guest *guests, uint32_t n_guests, estimate_fn fn, void *arg,
		  uint64_t *ticket, struct gpuq_err *err);
/* Drop a question: its fn is not called any more (the peer has gone). */
void estimator_forget(struct estimator *e, uint64_t ticket);

/* Quality of estimates: for jobs that were pending for a while, the first estimate after submission
 * compared with the real start. In memory, since the daemon's start. */
struct start_record {
	uint32_t n; /* jobs started since */
	uint32_t n_unknown; /* of these, had no estimate */
	uint32_t n_late; /* of the others started more than a minute late */
	uint32_t n_early; /* more than a minute early */
	/* Error, in either direction, that half of them and nine of ten of them stay below. Powers
	 * of two of seconds, rounded up. 0 without any. */
	int64_t half_us, most_us;
};
/* Get the record of one queue; false: none. */
bool estimator_record(const struct estimator *e, const char *queue, struct start_record *out);

#endif
