/* policy_queue.h - the keys of a queue that the scheduler reads, a row for each
 *
 * Owns     POLICY_QUEUE_KEYS, struct policy_queue and its defaults. Touches nothing.
 * Used by  site/site.h and snapshot/snapshot.h (their queues hold one), snapshot_pack (recorded cycles),
 *          flow/admit/apply_access (rights), flow/report/export_queue and sim/scenario (the queue of a case).
 *
 * A key is added here and read where the scheduler decides by it; the rest follows from its row: the site
 * file with its checks, gpuq-site(5), export, the snapshot, recorded cycles and scenarios.
 */
#ifndef GPUQD_SITE_POLICY_QUEUE_H
#define GPUQD_SITE_POLICY_QUEUE_H

#include "gpuqd/site/policy_rows.h"

enum policy_own { POLICY_OWN_PRIORITY, POLICY_OWN_STRICT };

/* The users who may change a key of a queue besides operators, or'ed: a manager of the queue itself; a manager of a
 * queue above it. */
enum policy_may { POLICY_OPERATOR = 0, POLICY_OWN = 1, POLICY_BELOW = 2 };

/* X(kind, member, key, key in scenarios, default, number in recorded cycles, how it is recorded, words,
 * least, most, who may change it, doc). The rows are in the order of `gpuq export`. The next free number is 27: numbers are
 * never used again. */
/* clang-format off */
#define POLICY_QUEUE_KEYS(X) \
	X(FACTOR, weight_milli, "weight", "weight", 1000, 2, PLAIN, NULL, 0, 0, POLICY_BELOW, \
	  "weight when dividing idle capacity") \
	X(INT, rank, "rank", "priority", 0, 3, PLAIN, NULL, -1000000, 1000000, POLICY_BELOW, \
	  "order in which idle capacity is offered") \
	X(WORD, reclaim, "reclaim", "reclaim", 0, 6, PLAIN, policy_reclaims, 0, 0, POLICY_OPERATOR, \
	  "jobs of other queues it may reclaim from, by their priority") \
	X(WORD, preempt, "preempt", "preempt_within", 0, 7, PLAIN, policy_preempts, 0, 0, POLICY_BELOW, \
	  "jobs of the queue itself that may be preempted, by their priority") \
	X(WORD, own_preempt, "own_preempt", "own_preempt", POLICY_OWN_PRIORITY, 14, AS_BOOL, policy_own_preempts, 0, 0, POLICY_BELOW, \
	  "preemption within the queue: by priority, or with strict only by jobs at the same or a better entitlement level") \
	X(INT, borrow_preempt_max_priority, "borrow_preempt_max_priority", "borrow_preempt_max_priority", INT64_MIN, 10, PLAIN, NULL, -1000000000, 1000000000, POLICY_OPERATOR, \
	  "highest priority of borrowers that it may preempt while borrowing itself; absent: it preempts none") \
	X(FLAG, fence, "fence", "fence", false, 8, PLAIN, NULL, 0, 0, POLICY_OPERATOR, \
	  "whether its jobs reclaim only inside it") \
	X(FLAG, reclaimable, "reclaimable", "reclaimable", true, 9, INVERTED, NULL, 0, 0, POLICY_OPERATOR, \
	  "whether other queues may reclaim what it borrows") \
	X(SPAN, reclaim_min_runtime_us, "reclaim_min_runtime", "reclaim_min_runtime", -1, 12, PLAIN, NULL, 0, 0, POLICY_OPERATOR, \
	  "minimum run time before other queues may preempt its jobs; at most four hours") \
	X(SPAN, preempt_min_runtime_us, "preempt_min_runtime", "preempt_min_runtime", -1, 11, PLAIN, NULL, 0, 0, POLICY_BELOW, \
	  "minimum run time before its own jobs may preempt each other") \
	X(FLAG, budget_demotes_guarantee, "budget_demotes_guarantee", "budget_demotes_guarantee", false, 25, PLAIN, NULL, 0, 0, POLICY_OPERATOR, \
	  "when the budget is exhausted the quota no longer protects against reclaim") \
	X(FLAG, stopped, "stopped", "stopped", false, 5, PLAIN, NULL, 0, 0, POLICY_OWN | POLICY_BELOW, \
	  "whether it starts no jobs")
/* clang-format on */

struct policy_queue {
	POLICY_QUEUE_KEYS(POLICY_MEMBER)
};

/* In a struct: the keys one by one, and under that name all of them. */
#define POLICY_QUEUE_GROUP(name)                                                                   \
	union {                                                                                    \
		struct policy_queue name;                                                          \
		struct {                                                                           \
			POLICY_QUEUE_KEYS(POLICY_MEMBER)                                           \
		};                                                                                 \
	}

static inline struct policy_queue policy_queue_default(void)
{
#define X(kind, member, key, scenario, dflt, ...) .member = (dflt),
	return (struct policy_queue){ POLICY_QUEUE_KEYS(X) };
#undef X
}

/* The words of the keys that have some; each ends with NULL. */
extern const char *const policy_reclaims[], *const policy_preempts[], *const policy_own_preempts[];

#endif
