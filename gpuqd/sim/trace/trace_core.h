/* trace_core.h - the state of the policy `default` in a replay
 *
 * Owns     the state between two decisions, and the snapshot that is made of it.
 * Touches  memory only.
 * Used by  trace_core.c (events), trace_freeze.c (the scheduler's snapshot).
 */
#ifndef GPUQD_SIM_TRACE_TRACE_CORE_H
#define GPUQD_SIM_TRACE_TRACE_CORE_H

#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/usage.h"
#include "gpuqd/sim/trace/trace.h"

#define NONE UINT32_MAX
#define DAY_US (86400 * GPUQ_US_PER_S)

/* The allocation of a job, or its nominated placements, pod by pod. */
struct holding {
	struct snap_alloc *pods; /* malloc'ed, devices after them */
	uint32_t n_pods;
};

struct job_state {
	struct holding held, promised;
	struct snap_job *running; /* malloc'ed while it runs: its entry in the snapshot */
	uint32_t kind, before, after; /* its kind; neighbours while it is pending */
	int64_t evicted_us;
	uint32_t evicted_for; /* queue; NONE = never */
};

/* A preemption of another queue's jobs. */
struct claim {
	int64_t at_us;
	uint32_t against; /* queue */
	uint32_t by; /* job */
};

/* Jobs that are alike; the pending ones in order of arrival. */
struct kind {
	uint32_t first, last, n;
	uint32_t request; /* of the snapshot */
	uint32_t gpus;
	uint32_t queue, user;
	uint32_t account; /* into core.accounts */
};

/* Usage of a user in a queue. */
struct account {
	uint32_t queue, user;
	bool seen; /* a job of it has arrived */
	uint32_t usage; /* of the snapshot; NONE = not in it */
	struct usage_account used;
};

struct core {
	const struct trace *t;
	struct trace_site site;
	struct trace_log *log;
	struct snap_config config;
	struct job_state *jobs;
	struct kind *kinds;
	uint32_t n_kinds, n_waiting;
	int64_t ranked_us; /* when pending jobs were last sorted */
	uint32_t *order, *order_scratch; /* scratch, n_jobs each */
	int64_t *points; /* scratch, by job */
	struct account *accounts;
	uint32_t n_accounts;
	int64_t half_life_us;
	uint32_t *running, n_running; /* jobs in order, which saves a sort when sealing */
	uint32_t n_free; /* GPUs */
	uint32_t shown; /* entries of their own per kind: enough the last time */
	struct claim *claims;
	uint32_t n_claims, room_claims, first_claim; /* first: older ones do not count */
	char (*node_names)[16];
	struct snapshot *s; /* trace_freeze.c; NULL = not made yet */
	bool someone_new; /* it lacks an account that was seen */
	uint32_t room_jobs, room_allocs, room_promises; /* of its tables */
	uint64_t *entries; /* scratch: pending jobs as entries */
	struct gpuq_arena mem; /* of a cycle */
};

/* Return how often the job was evicted since then. */
uint32_t core_evictions(const struct core *c, uint32_t job, int64_t since_us);

/* Bring c->s up to date for now_us, of every kind the first `most` as entries of their own and the
 * others in one. It is kept from one instant to the next: only jobs, their allocations and usage
 * are rewritten, directly in the sealed tables. */
int core_freeze(struct core *c, int64_t now_us, uint32_t most, struct gpuq_err *err);

#endif
