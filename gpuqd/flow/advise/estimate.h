/* estimate.h - when will it start, where, and who would have to leave for it
 *
 * Owns     one thread; the questions that wait for it; how good past answers were.
 * Touches  reads the model (a snapshot, which is the thread's own from then on); calls
 *          the pure core. Never changes the model.
 * Used by  rpc (job.why, job.plan); daemon.c makes and frees it.
 *
 * Questions of the same moment share one snapshot, taken in the loop as a cycle's is; all
 * the rest happens in the thread, so the loop is not held. What the thread may do is
 * bounded by counted work, not by a clock: where that ends, the answer is "unknown". At
 * most one snapshot is taken at a time, and after each there is a rest of a multiple of
 * what it took: on a large site an answer takes longer, the loop does not.
 *
 * An answer is worth what it assumes: nobody new comes, what runs takes as long as it
 * may, claims are made only in the first instant. likely_us is the same with what jobs of
 * that user, queue and name have really taken of their limits.
 */
#ifndef GPUQD_FLOW_ADVISE_ESTIMATE_H
#define GPUQD_FLOW_ADVISE_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "gpuqd/snapshot/snapshot_take_guest.h"
#include "libgpuq/err.h"
#include "libgpuq/names.h"

struct estimator;
struct journal;

#define ESTIMATE_JOBS_MAX 64 /* in one question */
#define ESTIMATE_QUESTIONS_MAX 256 /* that wait */

/* How the start was found. */
enum start_by {
	START_NOW, /* the next cycle starts it */
	START_CLAIM, /* others leave for it; it starts when the slowest of them is gone */
	START_RESERVATION, /* a start is planned, which nobody behind it may make later */
	START_SIMULATION, /* as the site lives on from here */
	START_UNKNOWN, /* not within what was looked at */
	N_START_BY
};
extern const char *const start_by_words[N_START_BY]; /* "now", "claim", "reservation", ... */

struct start_pod {
	const char *node;
	uint32_t group, index; /* of the spec; over all groups */
	const uint32_t *devices; /* on the node; of planned starts nobody knows which yet */
	uint32_t n_devices;
	int64_t gpus_milli;
};

/* Somebody who leaves, or moves, so that it can start. */
struct start_victim {
	struct job_key job;
	const char *queue, *user;
	const char *rule; /* as shown with an eviction */
	bool moves; /* it has another place already */
	uint32_t n_pods; /* that leave */
	int64_t gpus_milli;
	int64_t grace_us; /* that it may take */
	int64_t lost_gpu_ms; /* work that is done again, in device-milliseconds */
};

/* From at_us on this was the first reason why it waits. */
struct start_wait {
	int64_t at_us;
	struct reason_fact why;
};

struct start_answer {
	int rc; /* 0; GPUQ_ENOENT (no such job), GPUQ_EINVAL (it does not wait) */
	struct job_key job; /* asked for; of a guest the id that it would get, index -1 */
	enum start_by by;
	int64_t start_us; /* taking all limits as run times; GPUQ_UNLIMITED = unknown */
	int64_t likely_us; /* taking what is usual; GPUQ_UNLIMITED = unknown */
	const char *flavor; /* "" = none known */
	const struct start_pod *pods; /* where, at start_us; n_pods 0 = unknown */
	uint32_t n_pods;
	const struct start_victim *victims;
	uint32_t n_victims;
	const struct start_wait *waits; /* until it starts, in order of time */
	uint32_t n_waits;
};

/* How far the answers of one question reach. */
struct start_assumed {
	int64_t at_us; /* when the snapshot was taken */
	int64_t ahead_us; /* walltime.h */
	int64_t until_us; /* up to when it was lived on */
	uint32_t n_events; /* instants looked at */
	bool cut_short; /* the bound on work ended it */
	uint32_t n_running, n_endless; /* jobs that run; those of them without a limit */
	uint32_t n_learned; /* jobs of which it is known what is usual */
};

/* rc != 0: no answers (GPUQ_ENOMEM, GPUQ_EGONE at the daemon's end). In the loop; what is
 * pointed at lives until fn returns. */
typedef void (*estimate_fn)(void *arg, int rc, const struct start_answer *answers, uint32_t n,
			    const struct start_assumed *assumed, const struct gpuq_err *err);

int estimator_new(struct journal *j, struct estimator **out, struct gpuq_err *err);
/* Whoever waits for an answer is told GPUQ_EGONE. NULL is allowed. */
void estimator_free(struct estimator *e);

/* Jobs that wait (index -1: of an array, its next element), then guests, all of them at
 * once as if submitted in that order behind all others; answers come in the same order.
 * *ticket: for estimator_forget(). Returns 0; GPUQ_EINVAL (too many, or none),
 * GPUQ_ENOENT (a guest's queue), GPUQ_EBUSY (too many questions wait), GPUQ_ENOMEM, and
 * then fn is not called. */
int estimator_ask(struct estimator *e, const struct job_key *jobs, uint32_t n_jobs,
		  const struct start_guest *guests, uint32_t n_guests, estimate_fn fn, void *arg,
		  uint64_t *ticket, struct gpuq_err *err);
/* fn of that question is not called any more (the peer has gone). */
void estimator_forget(struct estimator *e, uint64_t ticket);

/* How good answers were: of jobs that had to wait, the first answer after their
 * submission beside their real start. In memory, since the daemon's start. */
struct start_record {
	uint32_t n; /* that have started since */
	uint32_t n_unknown; /* of them had no estimate */
	uint32_t n_late; /* of the others started more than a minute late */
	uint32_t n_early; /* more than a minute early */
	/* By how much, up or down: half of them by less, nine of ten by less. Of powers of two
	 * of seconds, rounded up. 0 without any. */
	int64_t half_us, most_us;
};
/* Of one queue; false: nothing is known of it. */
bool estimator_record(const struct estimator *e, const char *queue, struct start_record *out);

#endif
