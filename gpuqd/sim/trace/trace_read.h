/* trace_read.h - a trace of jobs, read from a file
 *
 * Owns     the jobs of a trace.
 * Touches  the trace's file; else memory only.
 * Used by  gpuq-sim trace.
 *
 * Nodes are alike. Times are microseconds on the trace's own clock.
 */
#ifndef GPUQD_SIM_TRACE_TRACE_READ_H
#define GPUQD_SIM_TRACE_TRACE_READ_H

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

#endif
