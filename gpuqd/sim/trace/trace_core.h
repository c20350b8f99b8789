/* trace_core.h - what the policy `default` of a replay knows
 *
 * Owns     the state between two decisions, and the snapshot that is made of it.
 * Touches  memory only.
 * Used by  trace_core.c (what happens), trace_freeze.c (what the scheduler is shown).
 */
#ifndef GPUQD_SIM_TRACE_TRACE_CORE_H
#define GPUQD_SIM_TRACE_TRACE_CORE_H

#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/usage.h"
#include "gpuqd/sim/trace/trace.h"

#define NONE UINT32_MAX
#define DAY_US (86400 * GPUQ_US_PER_S)

/* What a job holds, pod by pod, or is promised. */
struct holding {
	struct snap_alloc *pods; /* malloc'ed, devices behind them */
	uint32_t n_pods;
};

struct job_state {
	struct holding held, promised;
	struct snap_job *running; /* malloc'ed while it runs: what the snapshot shows */
	uint32_t kind, before, after; /* of its kind; neighbours while it waits */
	int64_t evicted_us;
	uint32_t evicted_for; /* queue; NONE = never */
};

/* A claim on another queue's jobs. */
struct claim {
	int64_t at_us;
	uint32_t against; /* queue */
	uint32_t by; /* job */
};

/* Jobs that are alike, those that wait in order of arrival. */
struct kind {
	uint32_t first, last, n;
	uint32_t request; /* of the snapshot */
	uint32_t gpus;
	uint32_t queue, user;
	uint32_t account; /* into core.accounts */
};

/* What a user used in a queue. */
struct account {
	uint32_t queue, user;
	bool seen; /* a job of it has come */
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
	int64_t ranked_us; /* when lines were put in order last */
	uint32_t *order, *order_scratch; /* scratch, n_jobs each */
	int64_t *points; /* scratch, by job */
	struct account *accounts;
	uint32_t n_accounts;
	int64_t half_life_us;
	uint32_t *running, n_running; /* jobs in order, which spares sealing a sort */
	uint32_t n_free; /* GPUs */
	uint32_t shown; /* of each kind one by one: what was enough the last time */
	struct claim *claims;
	uint32_t n_claims, room_claims, first_claim; /* first: older ones do not count */
	char (*node_names)[16];
	struct snapshot *s; /* trace_freeze.c; NULL = to be made */
	bool someone_new; /* an account was seen that it does not have */
	uint32_t room_jobs, room_allocs, room_promises; /* of its tables */
	uint64_t *entries; /* scratch: jobs that wait, as they are shown */
	struct gpuq_arena mem; /* of a cycle */
};

/* How often the job was evicted since then. */
uint32_t core_evictions(const struct core *c, uint32_t job, int64_t since_us);

/* c->s shows what is so at now_us, of every kind the first `most` one by one and the
 * others in one. It lives on from one instant to the next: only jobs, what they hold and
 * what was used are written anew, straight into the sealed tables. */
int core_freeze(struct core *c, int64_t now_us, uint32_t most, struct gpuq_err *err);

#endif
