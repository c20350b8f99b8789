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
	S("reclaim_to", GPUQ_K_ENUM, reclaim_to, .names = reclaim_tos, .doc = "up to what a queue takes from others: its fair share, or its quota alone"),
	S("consolidation", GPUQ_K_BOOL, consolidation, .doc = "jobs are moved where one that waits would fit then"),
	S("cross_queue_priority", GPUQ_K_BOOL, cross_queue_priority, .doc = "of queues alike in all else the one whose next job has the highest priority is served first, not the oldest"),
	S("backfill_depth", GPUQ_K_LIMIT, backfill_depth, .min = 0, .max = COUNT_MAX, .doc = "blocked jobs of each flavor that get a planned start"),
	COUNT("max_job_test", max_job_test, "blocked jobs that are looked at for one"),
	SPAN("starve_time", starve_us, GPUQ_US_PER_S, "who waits longer is planned before all others"),
	SPAN("preemption_delay", preemption_delay_us, 0, "nobody has to leave for a job that waits less long"),
	SPAN("cooldown", cooldown_us, 0, "a job that had to leave takes nothing back from who took it, but what its queue is owed"),
	COUNT("claims_per_hour", claims_per_hour, "of fair shares, against one queue; 0: no bound"),
	COUNT("claim_reversals", claim_reversals, "of claims between two queues in an hour, then they rest; 0: no bound"),
	S("claim_spare_max", GPUQ_K_LIMIT, claim_spare_max, .min = 0, .max = COUNT_MAX, .doc = "devices that those who leave for a job may hold beyond what it asks for"),
	COUNT("exempt_evictions", exempt_evictions, "in a day; then a job leaves for no fair share for a while; 0: never"),
	COUNT("moves_per_day", moves_per_day, "of one job"),
	SPAN("grow_delay", grow_delay_us, 0, "an elastic job that shrank grows no sooner"),
	SPAN("gang_repair", gang_repair_us, 0, "a gang that lost pods is kept as long"),
	S("min_runtime_method", GPUQ_K_ENUM, min_runtime_method, .names = methods, .doc = "whose reclaim_min_runtime counts: of the victim's side below the common parent, or of its own queue"),
	SPAN("preempt_min_runtime", preempt_min_runtime_us, 0, "of queues that name none"),
	S("reclaim_min_runtime", GPUQ_K_DURATION, reclaim_min_runtime_us, .min = 0, .max = POLICY_SHIELD_MAX_US, .doc = "of queues that name none"),
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
