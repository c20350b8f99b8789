/* trace_log.h - a trace, replayed in virtual time
 *
 * Owns     the record of the attempts, and the clock.
 * Touches  memory only.
 * Used by  the policies (trace_core.c, trace_peers.c) and the figures of `gpuq-sim trace`.
 *
 * A policy learns of arrivals and ends and decides which job starts where; the clock advances
 * from one of these instants to the next. The events of one instant (ends first, then arrivals
 * in the order of the file) are decided on together.
 */
#ifndef GPUQD_SIM_TRACE_TRACE_LOG_H
#define GPUQD_SIM_TRACE_TRACE_LOG_H

#include "gpuqd/sim/trace/trace_read.h"

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

/* A policy with its own state. decide() starts jobs by trace_log_start() and may set *wake_us, an
 * instant at which to decide again. */
struct trace_policy {
	void *(*make)(const struct trace *t, const struct trace_site *site, struct trace_log *l,
		      int variant);
	void (*done)(void *self);
	int (*arrived)(void *self, uint32_t job, struct gpuq_err *err);
	int (*ended)(void *self, uint32_t attempt, int64_t now_us, struct gpuq_err *err);
	int (*decide)(void *self, int64_t now_us, int64_t *wake_us, struct gpuq_err *err);
};

/* Called from time to time during a replay, to report progress. */
typedef void (*trace_progress_fn)(const struct trace_log *l, int64_t now_us);

/* Replay the trace from beginning to end. */
int trace_replay(const struct trace *t, const struct trace_site *site,
		 const struct trace_policy *policy, int variant, trace_progress_fn progress,
		 struct trace_log *l, struct gpuq_err *err);

#endif
