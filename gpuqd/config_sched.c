#include "gpuqd/config_sched.h"

#include "gpuqd/snapshot/policy_sched.h"
#include "libgpuq/units.h"

#define DAY_US (INT64_C(86400) * GPUQ_US_PER_S)
#define TIME_MAX_US (INT64_C(366) * DAY_US)
#define COUNT_MAX INT64_C(1000000)

#define S(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct policy_sched, member_),  \
		__VA_ARGS__                                                                        \
	}
#define COUNT(key_, member_, doc_)                                                                 \
	S(key_, GPUQ_K_INT, member_, .min = 0, .max = COUNT_MAX, .doc = (doc_))
#define SPAN(key_, member_, least_, doc_)                                                          \
	S(key_, GPUQ_K_DURATION, member_, .min = (least_), .max = TIME_MAX_US, .doc = (doc_))

static const char *const reclaim_tos[] = { "fair_share", "guarantee", NULL };
static const char *const methods[] = { "lca", "queue", NULL };

/* clang-format off */
static const struct gpuq_field fields[] = {
	S("reclaim_to", GPUQ_K_ENUM, reclaim_to, .names = reclaim_tos, .doc = "how far a queue may reclaim: to its fair share, or only to its quota"),
	S("consolidation", GPUQ_K_BOOL, consolidation, .doc = "relocate jobs when that makes room for a pending job"),
	S("cross_queue_priority", GPUQ_K_BOOL, cross_queue_priority, .doc = "among otherwise equal queues, serve the one whose next job has the highest priority first, not the oldest"),
	S("backfill_depth", GPUQ_K_LIMIT, backfill_depth, .min = 0, .max = COUNT_MAX, .doc = "blocked jobs of each flavor that get a start reservation"),
	COUNT("max_job_test", max_job_test, "blocked jobs that are evaluated for a start reservation"),
	SPAN("starve_time", starve_us, GPUQ_US_PER_S, "a job pending longer gets a start reservation ahead of all others"),
	SPAN("preemption_delay", preemption_delay_us, 0, "minimum pending time before a job may preempt others"),
	SPAN("cooldown", cooldown_us, 0, "time in which a preempted job may not preempt jobs of the preempting queue, except to restore quota"),
	COUNT("claims_per_hour", claims_per_hour, "reclaims to fair share against one queue; 0: no bound"),
	COUNT("claim_reversals", claim_reversals, "reversals between two queues in an hour before reclaim is suspended; 0: no bound"),
	S("claim_spare_max", GPUQ_K_LIMIT, claim_spare_max, .min = 0, .max = COUNT_MAX, .doc = "devices by which the victims' total may exceed the request"),
	COUNT("exempt_evictions", exempt_evictions, "preemptions in a day after which a job is exempt from fair-share reclaim for a while; 0: never"),
	COUNT("moves_per_day", moves_per_day, "relocations of one job"),
	SPAN("grow_delay", grow_delay_us, 0, "minimum time after a shrink before an elastic job grows"),
	SPAN("gang_repair", gang_repair_us, 0, "time for which a gang that lost pods is kept"),
	S("min_runtime_method", GPUQ_K_ENUM, min_runtime_method, .names = methods, .doc = "queue whose reclaim_min_runtime applies: the victim's ancestor below the common one, or its own"),
	SPAN("preempt_min_runtime", preempt_min_runtime_us, 0, "default of queues that set none"),
	S("reclaim_min_runtime", GPUQ_K_DURATION, reclaim_min_runtime_us, .min = 0, .max = POLICY_SHIELD_MAX_US, .doc = "default of queues that set none"),
	{ .key = NULL },
};
/* clang-format on */

static void defaults(void *obj)
{
	*(struct policy_sched *)obj = policy_sched_default();
}

const struct gpuq_schema config_sched_schema = { .name = "scheduler",
						 .size = sizeof(struct policy_sched),
						 .fields = fields,
						 .defaults = defaults };
