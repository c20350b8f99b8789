/* trace.h - a trace of jobs, replayed in virtual time
 *
 * Owns     the jobs of a trace, the record of their attempts, and its figures.
 * Touches  the trace's file (trace_read.c); else memory only.
 * Used by  gpuq-sim trace.
 *
 * A policy learns of arrivals and ends and decides which job starts where; the clock advances
 * from one of these instants to the next. The events of one instant (ends first, then arrivals
 * in the order of the file) are decided on together. Nodes are alike. Times are microseconds on
 * the trace's own clock.
 */
#ifndef GPUQD_SIM_TRACE_TRACE_H
#define GPUQD_SIM_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/util/intern.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/units.h"

#define TRACE_NODES_MAX 100000u
#define TRACE_BIG_GPUS 8u /* jobs of this size and more have a figure of their own */

struct trace_job {
	const char *id;
	int64_t submit_us, duration_us;
	int64_t estimate_us; /* its walltime, as the scheduler knows it; GPUQ_UNLIMITED = none */
	uint32_t gpus; /* at least 1 */
	uint32_t queue, user; /* numbers in trace.queues, trace.users */
	uint32_t line; /* in the file, from 1 */
	bool preemptible;
};

struct trace {
	struct gpuq_arena arena;
	struct trace_job *jobs; /* by submit time, then line */
	uint32_t n_jobs, n_dropped; /* dropped: those that request no GPU */
	struct intern queues, users; /* names, NUL-terminated, by first appearance */
	bool has_estimates; /* the file has a column estimate_s */
	int64_t first_us, last_us; /* first and last arrival */
};

/* Read name ("-" = standard input; gzip or plain). Release the struct with trace_done() whatever
 * the result. Errors name file, line and column. */
int trace_read(const char *name, struct trace *t, struct gpuq_err *err);
void trace_done(struct trace *t);
const char *trace_queue(const struct trace *t, uint32_t queue);

/* Source of estimates. */
enum trace_estimates { TRACE_EXACT, TRACE_FILE, TRACE_FACTOR };

/* Set every job's estimate. TRACE_FACTOR: the duration times a factor between 1 and factor_milli /
 * 1000, drawn from a fixed sequence, the same in every run. */
int trace_estimate(struct trace *t, enum trace_estimates how, int64_t factor_milli,
		   struct gpuq_err *err);

struct trace_site {
	uint32_t n_nodes, gpus_per_node;
};

/* Fill in what is 0: nodes of 8, as many as a load of 90 % and the largest job require. Refuses a
 * trace with a job that is larger than the site. */
int trace_site_for(const struct trace *t, struct trace_site *site, struct gpuq_err *err);

/* ---- record of the attempts (trace_log.c) ---- */

struct trace_place {
	uint32_t node, gpus;
};

struct trace_attempt {
	uint32_t job; /* into trace.jobs */
	uint32_t number; /* of this job, from 1 */
	uint32_t previous; /* attempt of the same job; UINT32_MAX = none */
	uint32_t place_first, n_places; /* into trace_log.places */
	uint32_t seat; /* in the heap of running attempts; free for the policy afterwards */
	int64_t start_us, end_us; /* end: while it runs, when it will end */
	bool running, evicted;
};

struct trace_log {
	const struct trace *trace;
	struct trace_attempt *attempts; /* in order of start */
	struct trace_place *places;
	uint32_t *last_attempt; /* by job; UINT32_MAX = not started yet */
	uint32_t *heap; /* running attempts, the next to end first */
	uint32_t n_attempts, room_attempts, n_places, room_places, n_heap, room_heap;
	uint32_t n_completed, n_evictions;
	bool failed; /* out of memory; sticky */
};

int trace_log_init(struct trace_log *l, const struct trace *t, struct gpuq_err *err);
void trace_log_done(struct trace_log *l);
/* Start a job, for its whole duration. Returns the attempt; UINT32_MAX: out of memory. */
uint32_t trace_log_start(struct trace_log *l, uint32_t job, int64_t now_us,
			 const struct trace_place *places, uint32_t n_places);
void trace_log_evict(struct trace_log *l, uint32_t attempt, int64_t now_us);
/* Return when the next running attempt ends; GPUQ_UNLIMITED = none is running. */
int64_t trace_log_next_end(const struct trace_log *l);
/* Return an attempt that has completed by now; UINT32_MAX = no more. */
uint32_t trace_log_take_ended(struct trace_log *l, int64_t now_us);

/* ---- policies ---- */

/* A policy with its own state. decide() starts jobs by trace_log_start() and may set *wake_us, an
 * instant at which to decide again. */
struct trace_policy {
	void *(*make)(const struct trace *t, const struct trace_site *site, struct trace_log *l,
		      int variant);
	void (*done)(void *self);
	void (*arrived)(void *self, uint32_t job);
	void (*ended)(void *self, uint32_t attempt, int64_t now_us);
	int (*decide)(void *self, int64_t now_us, int64_t *wake_us, struct gpuq_err *err);
};

enum trace_peer { TRACE_FIFO, TRACE_EASY, TRACE_FAIR_EASY };

extern const struct trace_policy trace_core; /* the scheduler of gpuqd; variant 0 */
extern const struct trace_policy trace_peers; /* variant: enum trace_peer */

/* Called now and then during a replay. */
typedef void (*trace_progress_fn)(const struct trace_log *l, int64_t now_us);

/* Replay the trace from beginning to end. */
int trace_replay(const struct trace *t, const struct trace_site *site,
		 const struct trace_policy *policy, int variant, trace_progress_fn progress,
		 struct trace_log *l, struct gpuq_err *err);

/* ---- figures (trace_figures.c) ---- */

struct trace_spread {
	double mean, p50, p90, p95, p99, max; /* percentiles by nearest rank */
};

/* Every figure can be recomputed from the record. The wait of a job is from its arrival to the
 * start of the attempt that completed; its bounded slowdown is max(1, (wait + duration) /
 * max(duration, bound)). Utilisation, share error and Jain's index cover the time between the first
 * and the last arrival (to the last end if all arrive at once). */
struct trace_figures {
	uint32_t n_jobs, n_big;
	struct trace_spread wait_s, bsld, response_s;
	/* The longest wait in accounts that request, in total, no more GPU time than the capacity
	 * divided by the number of accounts; 0 if there are none. */
	double max_wait_inside_s;
	double big_wait_s; /* mean of jobs of TRACE_BIG_GPUS and more; 0 if there are none */
	double utilisation;
	double makespan_s; /* from the first arrival to the last end */
	uint32_t preemptions;
	double lost; /* fraction of all GPU time that ended in an eviction */
	/* |used - entitled| / entitled, the 95th percentile over all accounts and windows of 1
	 * hour, 1 day, 7 days that begin at full hours; entitled by progressive filling of the
	 * demand of accounts with work at each instant. Accounts are queues, or users if there is
	 * only one queue. */
	double share_error_hour, share_error_day, share_error_week;
	double jain; /* of used / entitled over accounts */
	double bsld_ratio; /* ratio of the largest to the smallest mean slowdown of accounts */
};

int trace_figures(const struct trace *t, const struct trace_site *site, const struct trace_log *l,
		  int64_t bound_us, struct trace_figures *out, struct gpuq_err *err);

/* Run gpuq-sim trace: argv[0] is "trace". Returns the exit status. */
int trace_main(int argc, char **argv);

#endif
