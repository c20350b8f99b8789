/* policy_sched.h - `scheduler` of gpuqd.yaml: how far the scheduler goes, and what holds it back
 *
 * Owns     POLICY_SCHED_KEYS, struct policy_sched and its defaults. Touches nothing.
 * Used by  gpuqd/config_sched.c, site/policy.h, snapshot/snapshot.h (a snapshot's config holds one),
 *          snapshot_pack (recorded cycles), flow/report/export_cluster and sim/scenario (the config of a case).
 *
 * A key is added here and read where the scheduler decides by it; the rest follows from its row.
 */
#ifndef GPUQD_SITE_POLICY_SCHED_H
#define GPUQD_SITE_POLICY_SCHED_H

#include "gpuqd/site/policy_rows.h"
#include "libgpuq/units.h"

/* A queue's jobs are safe from other queues for so long at most, whatever it says. */
#define POLICY_SHIELD_MAX_US (INT64_C(4) * 3600 * 1000000)
#define POLICY_SPAN_MAX_US (INT64_C(366) * 86400 * 1000000)
#define POLICY_COUNT_MAX INT64_C(1000000)

/* X(kind, member, key, default, what absent means in a scenario, number in recorded cycles, words, least,
 * most, doc). On paper nothing is held back in time unless the case says so. The next free number is 32:
 * numbers are never used again. */
/* clang-format off */
#define POLICY_SCHED_KEYS(X) \
	X(WORD, reclaim_to, "reclaim_to", 0, 0, 4, policy_reclaim_tos, 0, 0, \
	  "how far a queue may reclaim: to its fair share, or only to its quota") \
	X(FLAG, consolidation, "consolidation", true, true, 6, NULL, 0, 0, \
	  "relocate jobs that lose little work when that makes room for a pending job") \
	X(FLAG, cross_queue_priority, "cross_queue_priority", false, false, 31, NULL, 0, 0, \
	  "among queues with equal share, quota and rank, serve the one whose next job has the highest priority first, as Kueue does, instead of the oldest queue") \
	X(LIMIT, backfill_depth, "backfill_depth", 8, 8, 2, NULL, 0, POLICY_COUNT_MAX, \
	  "number of blocked jobs of each flavor that get a start reservation, which other jobs may not delay; unlimited means every job within max_job_test") \
	X(COUNT, max_job_test, "max_job_test", 1000, 1000, 3, NULL, 0, POLICY_COUNT_MAX, \
	  "maximum number of blocked jobs evaluated for a start reservation") \
	X(SPAN, starve_us, "starve_time", INT64_C(86400) * GPUQ_US_PER_S, INT64_C(86400) * GPUQ_US_PER_S, 18, NULL, GPUQ_US_PER_S, POLICY_SPAN_MAX_US, \
	  "a job pending longer than this and longer than its own time limit starts ahead of all others if it fits, and otherwise gets a start reservation ahead of all others") \
	X(SPAN, preemption_delay_us, "preemption_delay", 0, 0, 11, NULL, 0, POLICY_SPAN_MAX_US, \
	  "minimum pending time before a job may preempt others") \
	X(SPAN, cooldown_us, "cooldown", INT64_C(600) * GPUQ_US_PER_S, 0, 10, NULL, 0, POLICY_SPAN_MAX_US, \
	  "for this time after a job was preempted it may not preempt jobs of the preempting queue, except to restore its own queue's quota") \
	X(COUNT, claims_per_hour, "claims_per_hour", 20, 0, 12, NULL, 0, POLICY_COUNT_MAX, \
	  "maximum number of reclaims to fair share against one queue per hour; 0 sets no bound") \
	X(COUNT, claim_reversals, "claim_reversals", 2, 0, 13, NULL, 0, POLICY_COUNT_MAX, \
	  "maximum number of reversals per hour, in which two queues reclaim from each other what the other had reclaimed; beyond it reclaim between them is suspended for a while") \
	X(DEVICES, claim_spare_milli, "claim_spare_max", GPUQ_UNLIMITED, GPUQ_UNLIMITED, 30, NULL, 0, 0, \
	  "maximum number of devices by which the victims' total may exceed the request") \
	X(COUNT, exempt_evictions, "exempt_evictions", 3, 3, 19, NULL, 0, POLICY_COUNT_MAX, \
	  "a job preempted this many times within 24 hours is exempt from fair-share reclaim until it has run for four times its reclaim_min_runtime; 0 disables the exemption") \
	X(COUNT, moves_per_day, "moves_per_day", 2, GPUQ_UNLIMITED, 14, NULL, 0, POLICY_COUNT_MAX, \
	  "maximum number of relocations of one job per day") \
	X(SPAN, grow_delay_us, "grow_delay", INT64_C(60) * GPUQ_US_PER_S, 0, 15, NULL, 0, POLICY_SPAN_MAX_US, \
	  "minimum time after a shrink before an elastic job grows") \
	X(SPAN, gang_repair_us, "gang_repair", INT64_C(60) * GPUQ_US_PER_S, 0, 16, NULL, 0, POLICY_SPAN_MAX_US, \
	  "time for which an elastic gang that lost pods and is below its minimum is kept until replacements run; a gang of one size is requeued at once") \
	X(WORD, min_runtime_method, "min_runtime_method", 0, 0, 7, policy_runtime_methods, 0, 0, \
	  "queue whose reclaim_min_runtime protects a job: the ancestor of its queue directly below the common ancestor with the preemptor's queue, or its own queue") \
	X(SPAN, preempt_min_runtime_us, "preempt_min_runtime", 0, 0, 8, NULL, 0, POLICY_SPAN_MAX_US, \
	  "default for queues that neither set nor inherit it") \
	X(SPAN, reclaim_min_runtime_us, "reclaim_min_runtime", 0, 0, 9, NULL, 0, POLICY_SHIELD_MAX_US, \
	  "default for queues that neither set nor inherit it; at most four hours")
/* clang-format on */

struct policy_sched {
	POLICY_SCHED_KEYS(POLICY_MEMBER)
};

/* In a struct: the keys one by one, and under that name all of them. */
#define POLICY_SCHED_GROUP(name)                                                                   \
	union {                                                                                    \
		struct policy_sched name;                                                          \
		struct {                                                                           \
			POLICY_SCHED_KEYS(POLICY_MEMBER)                                           \
		};                                                                                 \
	}

static inline struct policy_sched policy_sched_default(void)
{
#define X(kind, member, key, dflt, ...) .member = (dflt),
	return (struct policy_sched){ POLICY_SCHED_KEYS(X) };
#undef X
}

/* The words of the keys that have some; each ends with NULL. */
extern const char *const policy_reclaim_tos[], *const policy_runtime_methods[];

#endif
