/* trace_figures.h - the results of a replay, in figures
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  trace.c.
 */
#ifndef GPUQD_SIM_TRACE_TRACE_FIGURES_H
#define GPUQD_SIM_TRACE_TRACE_FIGURES_H

#include "gpuqd/sim/trace/trace_log.h"

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

#endif
