/* plan.h - what a scheduling cycle decided, as data
 *
 * Owns     nothing: a plan lives in the arena given to sched_cycle().
 * Touches  memory only.
 * Used by  flow/schedule (plan -> events), gpuq-sim, tests.
 *
 * Indexes are those of the snapshot the plan was made from; keys are given as well so that a plan
 * can be applied to a model. Actions are in the order in which they were decided and are to be
 * applied in that order. A plan guarantees nothing about the world: code that applies one must
 * check that its subject is unchanged. */
#ifndef GPUQD_SCHED_QUOTA_PLAN_H
#define GPUQD_SCHED_QUOTA_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/buf.h"
#include "libgpuq/names.h"

enum plan_kind {
	PLAN_PLACE, /* start it at these pods' places now */
	PLAN_NOMINATE, /* these places are its own once their holders have ended. The victims
		        * follow, with it as preemptor; without victims it only waits for pods that
		        * are ending anyway, and the next cycle may decide differently: nothing
		        * needs to be remembered */
	PLAN_RELEASE, /* its nominated placement is withdrawn */
	PLAN_EVICT, /* all pods of a running job are evicted */
	PLAN_SHRINK, /* these pods of an elastic job are evicted */
	PLAN_GROW, /* these pods join an elastic job that runs or was placed before */
	PLAN_MOVE, /* it is evicted, and these places are its own: it starts there again */
	PLAN_RESERVE, /* start reservation at start_us at these places; nothing to do */
};

/* A pod and its place. */
struct plan_pod {
	uint32_t group; /* of the job's request */
	uint32_t index; /* over all groups of the job, from 0 */
	uint32_t node;
	uint32_t device_first, n_devices; /* into plan.devices; ascending, of that node */
	int32_t milli; /* of each device; 0 when there is none */
};

struct plan_action {
	enum plan_kind kind; /* what is done */
	uint32_t job; /* index; an array's entry when an element of it starts */
	uint32_t request; /* with which it is placed: the job's, or one of its others */
	struct snap_key key; /* index = the element that starts */
	uint32_t flavor; /* that it is charged to; SNAP_NONE without GPUs */
	uint32_t pod_first, n_pods; /* into plan.pods; by index */
	int64_t start_us; /* PLAN_RESERVE: when; else now */
	bool backfilled; /* PLAN_PLACE: backfilled ahead of a start reservation */
	int64_t yield_us; /* PLAN_PLACE: when it must yield its places; 0 = never. To be kept with
			   * the job: snap_job.yield_us */
	int64_t walltime_us; /* PLAN_PLACE: its time limit, when that is less than requested
			      * (snap_job.walltime_min_us); 0 = as requested */
	enum gpuq_cause cause; /* of an evict, shrink or move */
	uint32_t claimant; /* the preemptor (job index), SNAP_NONE */
	const char *rule; /* the rule that allows it, or NULL */
};

/* How have and need are to be printed. */
enum plan_unit {
	PLAN_COUNT, /* pods, jobs, licenses, or no number */
	PLAN_GPUS /* thousandths of a device */,
	PLAN_CPU /* thousandths of a core */,
	PLAN_BYTES, /* of memory */
	PLAN_TIME /* us since 1970 */
};

/* Why a job is pending. have < need; both 0 where there are no numbers. For times have is now. */
struct plan_reason {
	enum gpuq_reason code; /* names.h */
	enum plan_unit unit;
	int64_t have, need;
	const char *object; /* queue, node, user, resource, job... that it is about; "" */
	uint32_t ask; /* PROVISIONING: number of the request; 0 = it is made in this cycle */
};

/* Consecutive reasons in plan.reasons. */
struct plan_why {
	uint32_t first, n;
};

/* A queue's holdings before and after a claim, and its fair share, in thousandths of devices of the
 * claim's flavor. */
struct plan_side {
	uint32_t queue; /* index */
	int64_t before, after, fair_share, quota;
};

/* Running work that was not preempted for a claim. */
enum plan_passed {
	PLAN_PASSED_FIRM, /* it is not preemptible, or on nodes that were requested */
	PLAN_PASSED_BUSY, /* it is ending already, or was started or moved just now */
	PLAN_PASSED_SHIELDED, /* exempt, started too recently, or its queue is not open to
			       * reclaim */
	PLAN_PASSED_NOT_NEEDED, /* it is within its queue's share, or others served better */
	N_PLAN_PASSED
};

/* Why jobs are preempted for another: the numbers behind the rules of its victims' actions. */
struct plan_claim {
	uint32_t job, flavor; /* the preemptor, and the flavor that it is placed on */
	struct snap_key key; /* index = the element that preempts */
	int64_t need; /* thousandths of devices */
	uint32_t side_first, n_sides; /* into plan.claim_sides: its own queue, then the victims'
				       * queues */
	uint32_t passed[N_PLAN_PASSED]; /* units: gangs, and pods beyond them */
};

/* A request for nodes that do not exist: one to be made, or one that was made. Each element is on
 * nodes of one of them at most; a request belongs to the job that is first on its nodes, and the
 * others ride on it. */
struct plan_ask {
	uint32_t ask; /* number of one that was made; 0 = it is to be made */
	const char *pool;
	uint32_t flavor; /* of its nodes */
	uint32_t n_nodes;
	uint32_t job; /* that it belongs to; SNAP_NONE = no job needs it any more */
	struct snap_key key; /* of the element */
	uint32_t n_jobs; /* elements on its nodes */
	int64_t run_us; /* the longest of their time limits; GPUQ_UNLIMITED = one has none */
};

/* An idle node that gets another layout of MIG instances. */
struct plan_cut {
	uint32_t node, layout; /* layout: of those of the node */
	uint32_t job; /* that needs it */
	struct snap_key key; /* of the element */
};

/* Bounds that cut short the work of a cycle; gpuqd-scheduling(7), BOUNDS. */
enum plan_bounded {
#define X(sym, word, stopped, counted) PLAN_BOUND_##sym,
	GPUQ_BOUNDS(X)
#undef X
		N_PLAN_BOUNDS
};

struct plan_bound {
	enum plan_bounded what; /* which bound */
	uint32_t job; /* whose search ended there; SNAP_NONE = that of all jobs without a start
		       * reservation */
	int64_t most;
};

const char *plan_bound_word(enum plan_bounded what);

struct plan {
	const struct plan_action *actions; /* in the order in which they are to be carried out */
	const struct plan_pod *pods;
	const uint32_t *devices; /* device indexes on their node */
	/* Equivalent jobs share their reasons: plan_reasons(). */
	const struct plan_reason *reasons;
	const struct plan_why *why_of_run; /* by snapshot.lines.runs */
	const struct plan_why *why_of_job; /* n 0 = those of its run */
	const uint32_t *started; /* by job: elements that start now or got a nominated placement */
	const struct plan_claim *claims; /* in the order of their nominations */
	const struct plan_side *claim_sides;
	const struct plan_bound *bounds; /* that were reached */
	uint32_t n_bounds;
	/* Those that were made by number, then those to be made as they were decided. */
	const struct plan_ask *asks;
	uint32_t n_asks;
	const struct plan_cut *cuts; /* of pools that differ */
	uint32_t n_cuts;
	uint32_t n_actions, n_pods, n_devices, n_claims;
	/* Queue q, resource r: [q * n_res + r]. allocated is what queues hold with the plan
	 * applied; fair_share and demand do not depend on it. */
	const int64_t *fair_share, *allocated, *demand;
	const int64_t *fair_sum; /* by flavor: fair shares of the queues below the root */
	const int64_t *left_out; /* wanted by pending jobs without a start reservation; NULL: no
				  * memory; see left_out.h */
	const struct priority *priority; /* the terms of the jobs' priorities: priority_terms() */
	int64_t wake_us; /* the next instant at which another plan may come out by time
			   * alone (a begin time, a walltime); GPUQ_UNLIMITED = none */
	uint64_t steps; /* work done, in node visits */
	bool cut_short; /* max_steps was reached; jobs that were not evaluated have reason
			 * NotEvaluated */
};

/* Return the number of reasons why a job is pending, from *first on; the first explains it. Every
 * job of which something is still pending after the plan has at least one; others have none. */
uint32_t plan_reasons(const struct snapshot *s, const struct plan *p, uint32_t job,
		      const struct plan_reason **first);

/* True if the bound ended a search for that pending job. Among jobs that are alike only one is
 * tried. */
bool plan_bound_concerns(const struct snapshot *s, const struct plan *p, const struct plan_bound *b,
			 uint32_t job);

/* Print "place 17 on n1[0-3]": one line an action, then one line a reason ("wait 18 Resources gpus
 * have=2 need=8"). For tests and debugging. */
void plan_print(const struct snapshot *s, const struct plan *p, struct gpuq_buf *out);

/* Return a queue's fair share as it is told, by flavor, in the arena: it is at least its quota as far as that
 * is requested. Where those of all queues, in which a seventh of a card is rounded up, add up to more than the
 * devices there are, each is told as its part of those, rounded down. NULL: no memory. */
const int64_t *plan_fair_told(const struct snapshot *s, const struct plan *p, uint32_t queue,
			      struct gpuq_arena *a);

/* Print "17" or "17_3". Returns out. */
const char *plan_key_print(struct snap_key key, char *out, size_t room);

/* True if nothing is decided about an entry that represents several equivalent jobs: the plan is
 * then the one of the whole (snapshot_take_few). */
bool plan_few_enough(const struct snapshot *s, const struct plan *p);

struct cycle;

/* Return the index of the element that would start next; -1 = not an array. */
int32_t plan_next_element(const struct cycle *c, uint32_t job);
/* Make an action of the places of the current job, whose indexes are consecutive, pods by index;
 * NULL without memory. */
struct plan_action *plan_emit_places(struct cycle *c, enum plan_kind kind, uint32_t job,
				     struct snap_key key, uint32_t flavor);

#endif
